"""The same message in both versions, the result in each, and the subscriptions that are the same in both, though their
places in the topic space and their sub_ids may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import TypeAlias

from commands.broker.context import V6_BROKER, Semantics
from commands.broker.forward import MadePuts
from commands.broker.identity import name_in_stream, name_without_stream
from commands.broker.objects import DEFAULT_STREAM
from commands.broker.outcome import Arrival, Outcome, Trace
from commands.broker.puts import Copies, Outgoing, PutKind
from commands.broker.reading import Reading
from commands.model import DeregisterSubscriber, RegisterSubscriber, RegOpt, RequestUpdate
from commands.mqsc.broker import Broker
from commands.replay.differences.report import FINDING
from rfh2.errors import DecodeError
from rfh2.mqi_constants import MQCI_NONE
from rfh2.mqmd import Mqmd, name_of
from streams import operations as op
from streams.patterns import written_topic
from streams.subscribers import Identity
from streams.subscriptions import Subscription
from streams.topic_space import TopicSpace

ForSubscriber: TypeAlias = RegisterSubscriber | DeregisterSubscriber | RequestUpdate
"""A command about subscriptions."""

Key = tuple[str, str, bytes, str, str, str | None, str | None, str | None, str | None]
"""What identifies a subscription in both versions."""


def key_of(subscription: Subscription) -> Key:
    """Traditional identity, user, topic as the subscriber wrote it, stream, subscription point, filter and name.

    The name is that of version 6, which a migration appends the stream's to.
    """
    s = subscription
    name = s.name and name_without_stream(s.name, s.stream)
    return (*s.traditional_identity, s.user, written_topic(s), s.stream, s.sub_point, s.selector, name)


def same(one: Subscription | None, other: Subscription | None) -> bool:
    """Whether a subscription is the same in both versions, apart from its place, the kind of its wildcards
    (``explain`` has a rule for them), what a migration appends to its name, and the command that made it."""
    if one is None or other is None:
        return one is other
    placed = replace(
        other,
        sub_id=one.sub_id,
        created=one.created,
        topic_string=one.topic_string,
        prefix=one.prefix,
        wildcard=one.wildcard,
        name=one.name if key_of(one) == key_of(other) else other.name,
    )
    return one == placed


def identity_of(command: ForSubscriber, arrival: Arrival, qmgr: str) -> Identity:
    """The traditional identity that a command gives, by its tags or by the descriptor (guide 6.7.2).

    qmgr: whose command it is. The queue is "" where the command names none.
    """
    mqmd = descriptor_of(arrival)
    return (
        name_of(command.qmgr_name or "") or name_of(mqmd.reply_to_qmgr) or qmgr,
        name_of(command.q_name or "") or name_of(mqmd.reply_to_q),
        mqmd.correl_id if command.has(RegOpt.CORREL_AS_ID) else MQCI_NONE,
    )


def descriptor_of(arrival: Arrival) -> Mqmd:
    """The message's descriptor; the defaults for one that cannot be read."""
    return _descriptor(arrival.md)


@lru_cache(maxsize=1)  # each difference of a message names its user and program
def _descriptor(md: bytes | None) -> Mqmd:
    try:
        return Mqmd() if md is None else Mqmd.decode(md)
    except DecodeError:
        return Mqmd()


@dataclass(frozen=True, slots=True)
class Observed:
    """What one version made of a message.

    deliveries: which publications went to which subscriptions. copies: those of each publication that was put, in
    order; of several that a subscriber is sent in one message, not all. touched: subscriptions that the command altered
    or removed, as they were; not those that had run out. named: the subscription that the command's SubName stood for,
    as it was before the command; where it gives none, one with a name that fits its traditional identity and topics.
    """

    outcome: Outcome
    deliveries: tuple[op.Delivery, ...] = ()
    copies: tuple[Copies, ...] = ()
    touched: tuple[Subscription, ...] = ()
    named: Subscription | None = None

    @classmethod
    def of(cls, arrival: Arrival, qmgr: str, outcome: Outcome, space: TopicSpace, semantics: Semantics) -> Observed:
        """From an outcome with its trace, just after the message.

        Deliveries that a refused command led to were never put.
        """
        trace = outcome.trace
        if trace is None or not outcome.copies:
            trace = Trace()
        deliveries, copies = trace.deliveries, outcome.copies
        command = outcome.command
        if not isinstance(command, ForSubscriber):
            return cls(outcome, deliveries, copies)
        touched = tuple(_touched(outcome, arrival.now))
        if command.sub_name is None:
            named = _like(command, identity_of(command, arrival, qmgr), touched, space)
        else:
            named = _named(command, command.sub_name, outcome, touched, space, semantics)
        return cls(outcome, deliveries, copies, touched, named)

    @property
    def publications(self) -> tuple[Outgoing, ...]:
        """The publications that it put, one for each of ``copies``."""
        return tuple(put for put in self.outcome.puts if put.kind is PutKind.PUBLICATION)

    @property
    def answers(self) -> tuple[Outgoing, ...]:
        """Responses and dead letters."""
        return tuple(put for put in self.outcome.puts if put.kind is not PutKind.PUBLICATION)


def _touched(outcome: Outcome, now: datetime) -> Iterator[Subscription]:
    for effect in outcome.effects:
        match effect:
            case op.SubscriptionRemoved(subscription) if (
                subscription.expires_at is None or subscription.expires_at > now
            ):
                yield subscription
            case op.SubscriptionAltered(before, _):
                yield before


def _named(
    command: ForSubscriber,
    name: str,
    outcome: Outcome,
    touched: tuple[Subscription, ...],
    space: TopicSpace,
    semantics: Semantics,
) -> Subscription | None:
    stream = None if command.stream_name == DEFAULT_STREAM else command.stream_name
    names = [name]
    if stream is not None and semantics is Semantics.V7:
        names.insert(0, name_in_stream(name, stream))
    for subscription in touched:
        if subscription.name in names:
            return subscription
    made = {e.subscription.sub_id for e in outcome.effects if isinstance(e, op.SubscriptionAdded)}
    given = {e.after.sub_id for e in outcome.effects if isinstance(e, op.SubscriptionAltered)}
    for each in names:
        found = space.by_name(each, stream)
        if found is not None:
            # The subscription with this name had no name before, or did not exist.
            return None if found.sub_id in made | given else found
    return None


def _like(
    command: ForSubscriber, identity: Identity, touched: tuple[Subscription, ...], space: TopicSpace
) -> Subscription | None:
    there = (found for topic in command.topics or (None,) for found in space.by_identity(identity, topic))
    return next((each for each in (*touched, *there) if each.name is not None), None)


@dataclass(frozen=True, slots=True)
class ComparedMessage:
    """One message, and its results in version 6 (old) and version 7 (new).

    by_character: whether version 6 reads the wildcards of MQRFH2 as characters, as WebSphere MQ's own broker did.
    """

    arrival: Arrival
    qmgr: str
    old: Observed
    new: Observed
    by_character: bool = False


Migrate: TypeAlias = Callable[[Broker, Broker, datetime], tuple[Broker, Iterable[tuple[Subscription, str, str]]]]
"""A migration: of a broker of version 6, to what ``--setup`` made, at a time (UTC).

It gives the queue manager afterwards and, of each subscription that it did not migrate, the rule, "" for none, and why.
"""


@dataclass(frozen=True, slots=True)
class Cutover:
    """When a queue manager is migrated, and how: messages before it are version 6's alone."""

    at: datetime
    migrate: Migrate


class BothVersions:
    """A queue manager in both versions. setup: MQSC for both. old: ``v6`` or ``v6-broker``.

    Raises QPubSubError where the setup fails.
    """

    def __init__(self, qmgr: str, setup: str = "", old: str = Semantics.V6.value) -> None:
        self._qmgr, self._by_character = qmgr, old == V6_BROKER
        self._old, self._new = (Broker.of_capture(qmgr, setup, each) for each in (old, Semantics.V7.value))

    @property
    def spaces(self) -> tuple[TopicSpace, TopicSpace]:
        """The topic spaces of version 6 and of version 7."""
        return self._old.space, self._new.space

    def subscriptions(self) -> tuple[tuple[Subscription, ...], tuple[Subscription, ...]]:
        """Those of version 6, and those of version 7."""
        return self._old.space.subscriptions(), self._new.space.subscriptions()

    def before_cutover(self, arrival: Arrival) -> None:
        """Process one message in version 6 alone."""
        self._old.process(arrival)

    def cut_over(self, cutover: Cutover) -> dict[Key, tuple[str, str]]:
        """Begin version 7 with what version 6 has now. Returns the rule, and why, of what was not migrated."""
        self._new, left = cutover.migrate(self._old, self._new, cutover.at)
        return {key_of(each): (rule or FINDING, f"it is not migrated: {why}") for each, rule, why in left}

    def step(self, arrival: Arrival) -> ComparedMessage:
        """Process one message in both versions."""
        reading = Reading.of_captured(arrival.md, arrival.body)
        before = self._old.trace(arrival, reading)
        after = self._new.trace(arrival, reading, made=MadePuts(before.copies, before.puts))
        old = Observed.of(arrival, self._qmgr, before, self._old.space, Semantics.V6)
        new = Observed.of(arrival, self._qmgr, after, self._new.space, Semantics.V7)
        return ComparedMessage(arrival, self._qmgr, old, new, self._by_character)
