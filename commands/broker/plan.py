"""The result of translating a command: operations to apply, and the warnings for its sender."""

from __future__ import annotations

from dataclasses import dataclass

from commands.headers.response import Warned
from rfh2.constants import MQRCCF_NOT_AUTHORIZED
from rfh2.errors import CommandError
from streams.operations import Operation
from streams.subscriptions import Subscription


@dataclass(frozen=True, slots=True)
class CommandPlan:
    """The operations of one command, in order.

    full: the subscription whose attributes FullResp asks for: as it will be or, if it is removed, as it was.
    """

    operations: tuple[Operation, ...] = ()
    warnings: tuple[Warned, ...] = ()
    full: Subscription | None = None


def not_authorized(topic: str) -> Warned:
    """The warning for a topic that the sender has no authority for."""
    return Warned(MQRCCF_NOT_AUTHORIZED, (("Topic", topic),))


def warnings_or_error(refused: list[Warned], anything_left: bool) -> tuple[Warned, ...]:
    """*refused* as warnings; raises the first as a CommandError where the rest of the command has no operations."""
    if refused and not anything_left:
        raise CommandError(refused[0].reason, refused[0].tags[0][1], "not authorized", refused[0].tags)
    return tuple(refused)
