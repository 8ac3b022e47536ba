"""From a message to the command in it, whatever header it came in."""

from __future__ import annotations

from commands.families.table import FAMILIES, family_of
from commands.model import Command
from rfh2.message import Message


def parse(message: Message) -> Command:
    """The command that *message* carries in an MQRFH2, an MQRFH or PCF.

    Raises DecodeError where it carries none or what carries it is broken; CommandError where it breaks a rule of its
    command (guide 6.7; wire formats 2.5).
    """
    return FAMILIES[family_of(message)].parse(message)
