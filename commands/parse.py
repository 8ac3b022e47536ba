"""From a message to the command in it: the one place that knows which header leads to which parser."""

from __future__ import annotations

from commands.model import Command
from commands.parse_psc import parse_psc
from rfh2.constants import MQRC_FORMAT_ERROR, MQRC_RFH_COMMAND_ERROR, MQRC_RFH_DUPLICATE_PARM
from rfh2.errors import CommandError, DecodeError
from rfh2.message import Message


def parse(message: Message) -> Command:
    """The command that *message* carries in the psc folder of its first MQRFH2.

    Raises DecodeError where there is no such header or the folder's text is broken, CommandError where the folder breaks
    a rule of its command (guide 6.7). Other folders are not read: they belong to the publication.
    """
    header = message.rfh2
    if header is None:
        why = f"no MQRFH2: Format of the message is {message.mqmd.format!r}"
        raise DecodeError(0, "message", why, "no-command-header", MQRC_FORMAT_ERROR)
    found = [folder for folder in header.folders if folder.name == "psc"]
    if not found:
        raise CommandError(MQRC_RFH_COMMAND_ERROR, why="the MQRFH2 has no psc folder")
    if len(found) > 1:
        raise CommandError(MQRC_RFH_DUPLICATE_PARM, why="the MQRFH2 has more than one psc folder")
    return parse_psc(found[0].pairs())
