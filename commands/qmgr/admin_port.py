"""The port: who carries out what programs put on the command queue of the queue manager (``commands.mqsc.pcf``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from commands.broker.core import Arrival, BrokerCore
from commands.broker.puts import Outgoing
from commands.headers.response import Completion
from commands.qmgr.store.port import UnitOfWork


@dataclass(frozen=True, slots=True)
class Administered:
    """What an administration command came to; its changes are in memory and saved.

    puts: the responses, or a dead letter; each is made when it is asked for, and all have to be put before anything is
    changed. redefined: whether definitions have changed. resubscribed: whether subscriptions have. reason, why: of a
    command that failed.
    """

    puts: Iterator[Outgoing]
    completion: Completion = Completion.OK
    redefined: bool = False
    resubscribed: bool = False
    reason: int | None = None
    why: str = ""


class CommandServer(Protocol):
    """Carries out administration commands in the unit of work in which they were got."""

    @property
    def queue(self) -> str:
        """The queue that holds them."""

    def carry_out(self, unit: UnitOfWork, broker: BrokerCore, arrival: Arrival) -> Administered:
        """Do what the message asks for. Raises StoreError where it cannot be kept, and UndeliverableError."""
