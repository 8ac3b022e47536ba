"""From a message to the command in it, whatever header it came in."""

from __future__ import annotations

from commands.headers.psc_commands import parse_psc
from commands.headers.psc_folder import psc_leaves
from commands.headers.registry import FAMILIES, family_of
from commands.model import Command
from rfh2.message import Message
from rfh2.rfh2 import Rfh2


def parse(message: Message) -> Command:
    """The command that *message* carries in an MQRFH2, an MQRFH or PCF.

    Raises DecodeError where it carries none or what carries it is broken; CommandError where it breaks a rule of its
    command (guide 6.7; wire formats 2.5).
    """
    # The usual message by the shortest way: an MQRFH2 in front whose psc folder takes no closer look is the command,
    # whatever stands behind it.
    if message.headers and isinstance(first := message.headers[0], Rfh2):
        leaves = psc_leaves(first)
        if leaves is not None:
            return parse_psc(leaves)
    return FAMILIES[family_of(message)].parse(message)
