"""The port to the servers of administration commands (``commands.mqsc.pcf``) and of MQSUB (``commands.qmgr.mqi``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from commands.broker.core import BrokerCore
from commands.broker.outcome import Arrival
from commands.broker.puts import Outgoing
from commands.headers.response import Completion
from commands.qmgr.store.port import UnitOfWork


@dataclass(frozen=True, slots=True)
class Administered:
    """The result of an administration command, whose changes are in memory and saved.

    puts: the responses, or a dead letter; the iterator makes each one when it is needed, and all must be put before
    anything else changes. redefined: whether definitions have changed. resubscribed: whether subscriptions have
    changed. reason, why: of a command that failed.
    """

    puts: Iterator[Outgoing]
    completion: Completion = Completion.OK
    redefined: bool = False
    resubscribed: bool = False
    reason: int | None = None
    why: str = ""


class CommandServer(Protocol):
    """Carries out administration commands in the unit of work that got them."""

    @property
    def queue(self) -> str:
        """The queue that holds the commands."""

    @property
    def kind(self) -> str:
        """What the commands are: the name under which an observer counts them."""

    def carry_out(self, unit: UnitOfWork, broker: BrokerCore, arrival: Arrival) -> Administered:
        """Carry out the command. Raises StoreError where the store cannot keep the changes, and UndeliverableError."""
