"""What comes into the broker, and what it makes of it: an arrival in, an outcome out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from commands.broker.copies import Copies
from commands.broker.exit_calls import Exited
from commands.broker.puts import Outgoing
from commands.broker.trace import Trace
from commands.headers.response import Completion
from commands.model import Command
from streams.operations import Delivery, Effect, Operation
from streams.subscriptions import Subscription


# Not frozen: there is one for each message, and a frozen one takes four times as long to make.
@dataclass(slots=True, unsafe_hash=True)
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


@dataclass(slots=True, unsafe_hash=True)  # as above
class Outcome:
    """The result of one arrival; one by a template (``commands.templates``) has no command, operations and copies."""

    puts: tuple[Outgoing, ...] = ()  # in order
    effects: tuple[Effect, ...] = ()  # in order
    command: Command | None = None  # None where the message could not be read as a command
    completion: Completion | None = None  # None where the message was not a command and was passed over
    reason: int | None = None  # the first reason code
    why: str = ""
    undecodable: bool = False  # the message could not be read
    lost: tuple[str, ...] = ()  # what the format of a subscriber cannot hold, after the name of its queue (guide 8.7)
    operations: tuple[Operation, ...] = ()  # those of a command that was carried out
    topics: tuple[str, ...] = ()  # on which it was published
    # The deliveries that each publication among the puts, or the publish exit's dead letter for it, stands for.
    copies: tuple[Copies, ...] = ()
    exited: tuple[Exited, ...] = ()  # what the publish exit suppressed or sent elsewhere
    filtered: tuple[Subscription, ...] = ()  # the subscriptions whose selection string excluded a publication
    # The deliveries to proxy subscriptions, which the network takes from here; no put stands for them.
    carried: tuple[Delivery, ...] = ()
    trace: Trace | None = None  # how the result was reached, where the caller asked for it
