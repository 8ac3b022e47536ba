"""From a message to the command in it: the one place that knows which header leads to which parser."""

from __future__ import annotations

from commands.model import Command
from commands.parse_psc import parse_psc
from commands.psc_folder import split_psc
from rfh2.constants import (
    MQRC_FORMAT_ERROR,
    MQRC_RFH_COMMAND_ERROR,
    MQRC_RFH_DUPLICATE_PARM,
    MQRC_RFH_PARM_ERROR,
)
from rfh2.errors import CommandError, DecodeError
from rfh2.folders import Folder
from rfh2.folders import parse as folder_roots
from rfh2.message import Message


def parse(message: Message) -> Command:
    """The command that *message* carries in the psc folder of its first MQRFH2.

    Raises DecodeError where there is no such header or the folder's text is broken, CommandError where the folder
    breaks a rule of its command (guide 6.7). Other folders are not read: they belong to the publication.
    """
    header = message.rfh2
    if header is None:
        why = f"no MQRFH2: Format of the message is {message.mqmd.format!r}"
        raise DecodeError(0, "message", why, "no-command-header", MQRC_FORMAT_ERROR)
    found, _ = split_psc(header)
    if not found:
        raise CommandError(MQRC_RFH_COMMAND_ERROR, why="the MQRFH2 has no psc folder")
    if len(found) > 1:
        raise CommandError(MQRC_RFH_DUPLICATE_PARM, why="the MQRFH2 has more than one psc folder")
    return parse_psc(_pairs(found[0]))


def _pairs(psc: Folder) -> list[tuple[str, str]]:
    pairs = psc.pairs()
    # Each leaf has two tags, and so has psc itself: where the text holds no more, nothing can be nested in a leaf.
    if psc.text.count("<") != 2 * len(pairs) + 2:
        for child in folder_roots(psc)[0]:
            if len(child):
                raise CommandError(MQRC_RFH_PARM_ERROR, why=f"{child.tag} holds other elements instead of a value")
    return pairs
