"""What comes into the broker, and what it makes of it: an arrival in, an outcome out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from commands.broker.copies import Copies
from commands.broker.exit_calls import Exited
from commands.broker.puts import Outgoing
from commands.broker.trace import Trace
from commands.headers.response import Completion
from commands.model import Command
from streams.operations import Delivery, Effect, Operation
from streams.subscriptions import Subscription

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message that was put to a queue.

    seq: arrival number, unique in the queue manager. md: the bytes of its MQMD, or None for the defaults. user: who put
    it, or None for the MQMD's UserIdentifier. now: UTC.
    """

    seq: int
    now: datetime
    queue: str
    md: bytes | None
    body: bytes
    user: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one arrival.

    puts, effects: in order. command: None where the message could not be read as a command. completion: None where the
    message was not a command and was passed over. reason: the first reason code. undecodable: the message could not be
    read. lost: parts of a publication that the format of a subscriber cannot hold, after the name of its queue (guide
    8.7). operations: those of a command that was carried out. copies: the deliveries that each publication among the
    puts stands for, or the dead letter that the publish exit made of it, in order. exited: what the publish exit
    suppressed or sent elsewhere. filtered: the subscriptions whose selection string excluded a publication. carried:
    the deliveries to proxy subscriptions, which the network takes from here; no put stands for them. trace: how the
    result was reached, where the caller asked for it.
    """

    puts: tuple[Outgoing, ...] = ()
    effects: tuple[Effect, ...] = ()
    command: Command | None = None
    completion: Completion | None = None
    reason: int | None = None
    why: str = ""
    undecodable: bool = False
    lost: tuple[str, ...] = ()
    operations: tuple[Operation, ...] = ()
    copies: tuple[Copies, ...] = ()
    exited: tuple[Exited, ...] = ()
    filtered: tuple[Subscription, ...] = ()
    carried: tuple[Delivery, ...] = ()
    trace: Trace | None = None
