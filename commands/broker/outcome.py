"""What comes into the broker, and what it makes of it: an arrival in, an outcome out.

``copies`` says how many messages one publication makes for one subscriber (guide 7.5, 8.5: publication to multiple
topics). Version 7 sends a copy for each topic and each subscription that match. Version 6 sends a subscriber one
message, even if several of its subscriptions match, unless it registered with DupsOK. If the publication has several
topics, the message names all that the subscriber gets. A subscriber is its traditional identity there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from commands.broker.context import Semantics
from commands.broker.puts import Copies, Exited, Outgoing
from commands.broker.trace import Trace
from commands.headers.response import Completion
from commands.model import Command
from streams.operations import Delivery, Effect, Operation
from streams.subscriptions import Subscription

_Key = tuple[int, bool, tuple[str, str, bytes]]


def copies(deliveries: Sequence[Delivery], semantics: Semantics) -> list[Copies]:
    """*deliveries* in groups, one for each message to put; the first of a group decides its descriptor."""
    if semantics is Semantics.V7:
        return [(delivery,) for delivery in deliveries]
    groups: list[dict[str, Delivery]] = []  # by topic
    of_subscriber: dict[_Key, dict[str, Delivery]] = {}
    for delivery in deliveries:
        subscription = delivery.subscription
        if subscription.options.dups_ok:
            groups.append({delivery.topic_string: delivery})
            continue
        key = (id(delivery.publication), delivery.from_retained, subscription.traditional_identity)
        group = of_subscriber.get(key)
        if group is None:
            group = of_subscriber[key] = {}
            groups.append(group)
        group.setdefault(delivery.topic_string, delivery)
    return [tuple(group.values()) for group in groups]


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
