"""Which subscriptions are not the same in both versions, by which rule, and since which command.

If only one version delivers a publication, the cause can be an earlier registration that only this version accepted.
The same is true for a command that finds a subscription in one version and not in the other. For some rules a capture
has signs, though no put differs in a replay: a person has to check them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from commands import model
from commands.broker.objects import ADMIN_STREAM, DEFAULT_STREAM, is_dynamic_name
from commands.broker.register import is_metatopic
from commands.replay.differences.observe import (
    ComparedMessage,
    ForSubscriber,
    Key,
    descriptor_of,
    identity_of,
    key_of,
    same,
)
from commands.replay.differences.report import FINDING
from rfh2 import constants as mq
from rfh2.mqmd import name_of
from streams.operations import Effect, SubscriptionAdded, SubscriptionAltered, SubscriptionRemoved
from streams.patterns import has_char_wildcards
from streams.subscriptions import PublicationFormat, Subscription
from streams.topic_objects import QUEUE_NAMELIST

_NOT_ALTERABLE: Final = (mq.MQRC_TOPIC_NOT_ALTERABLE, mq.MQRC_SELECTOR_NOT_ALTERABLE)
_EVENTS: Final = "$SYS/"

Explained = tuple[str, str] | None
"""A rule, and its subject in this command, in words."""


def of_command(step: ComparedMessage) -> Explained:
    """The rule that applies to the command by the names in it; None if none of these applies."""
    command = step.new.outcome.command or step.old.outcome.command
    if command is None:
        return None
    if (unlisted := of_unlisted_stream(step)) is not None or isinstance(command, model.DeletePublication):
        return unlisted
    found = _of_sub_point(command, step)
    if isinstance(command, model.Publish):
        return found or of_publisher(step)
    # If there are several topics, a topic that is none of these may be the reason.
    metatopics = of_metatopics(command.topics) if all(map(is_metatopic, command.topics)) else None
    return metatopics or found or _of_name(command, step)


def of_metatopics(topics: Iterable[str]) -> Explained:
    """The rule of the first metatopic among *topics*."""
    for topic in filter(is_metatopic, topics):
        return ("D24" if topic.startswith(_EVENTS) else "D04"), f"{topic} is a metatopic"
    return None


def of_answers(step: ComparedMessage) -> Explained:
    """The rule by what the versions answered; None where none is known."""
    command = step.new.outcome.command or step.old.outcome.command
    if not isinstance(command, ForSubscriber):
        return None
    old, new = step.old.outcome.reason, step.new.outcome.reason
    meant = step.old.named if command.sub_name is None else None
    if meant is not None and meant in (*step.old.touched, *_delivered_to(step)):
        return _by_identity(meant)
    if new in _NOT_ALTERABLE and old not in _NOT_ALTERABLE:
        return "D10", f"subscription {command.sub_name} is registered again with another topic or filter"
    if old == mq.MQRCCF_DUPLICATE_IDENTITY != new:
        return "D13", "the identity belongs to another user"
    if new == mq.MQRCCF_WRONG_USER != old:
        return "D13", "what fits belongs to another user"
    return of_metatopics(command.topics) if meant is None else _by_identity(meant)


def of_unlisted_stream(step: ComparedMessage) -> Explained:
    """Whether version 7 does not know the stream, which is in no namelist: of a queue, or of a subscriber's command."""
    old, new = step.old.outcome, step.new.outcome
    if old.completion is not None and new.completion is None:
        return "D34", f"{step.arrival.queue} is not in {QUEUE_NAMELIST}"
    if new.reason == mq.MQRCCF_UNKNOWN_STREAM != old.reason:
        stream = None if new.command is None else new.command.stream_name
        return "D34", f"stream {stream} is not in {QUEUE_NAMELIST}"
    return None


def of_publisher(step: ComparedMessage) -> Explained:
    """Whether the publisher speaks MQRFH2 on a stream queue."""
    command = step.new.outcome.command or step.old.outcome.command
    by_mqrfh2 = isinstance(command, model.Publish) and command.header is PublicationFormat.RFH2
    if not by_mqrfh2 or step.arrival.queue == DEFAULT_STREAM:
        return None
    return "D23", f"an MQRFH2 publisher put to {step.arrival.queue}"


def _of_sub_point(command: model.Command, step: ComparedMessage) -> Explained:
    """Whether version 7 refuses the command's subscription point."""
    point = getattr(command, "sub_point", None)
    if point and step.new.outcome.reason == mq.MQRCCF_TOPIC_ERROR != step.old.outcome.reason:
        return "D21", f"subscription point {point} is not defined"
    return None


def _of_name(command: model.Command, step: ComparedMessage) -> Explained:
    """Whether version 7 finds the command's name on another stream than the command means."""
    stream = None if command.stream_name == DEFAULT_STREAM else command.stream_name
    named = step.new.named
    if named is None or named.stream == stream or getattr(command, "sub_name", None) is None:
        return None
    return "D15", f"the name {named.name} is that of a subscription on {named.stream or 'the default stream'}"


def _by_identity(named: Subscription) -> Explained:
    return "D20", f"by its identity the command means subscription {named.name}, too"


def _delivered_to(step: ComparedMessage) -> Iterator[Subscription]:
    return (delivery.subscription for copy in step.old.copies for delivery in copy)


NO_RULE = (FINDING, "no rule explains it")


@dataclass(frozen=True, slots=True)
class Cause:
    """Why the versions differ, and since which command."""

    rule: str
    why: str
    since: int


@dataclass
class Causes:
    """The subscriptions of one queue manager that are not the same in both versions."""

    known: dict[Key, Cause] = field(default_factory=dict)
    _old: dict[Key, Subscription] = field(default_factory=dict)
    _new: dict[Key, Subscription] = field(default_factory=dict)
    _healed: set[Key] = field(default_factory=set)

    def begin(self, old: Iterable[Subscription], new: Iterable[Subscription]) -> None:
        """Start from what the setup defined."""
        self._old = {key_of(subscription): subscription for subscription in old}
        self._new = {key_of(subscription): subscription for subscription in new}

    def migrated(self, left: Mapping[Key, tuple[str, str]], since: int) -> None:
        """After ``begin``: version 7 began with what was migrated. left: why some were not. since: the last message."""
        for key in self._old.keys() | self._new.keys():
            if not same(self._old.get(key), self._new.get(key)):
                self.known[key] = Cause(*left.get(key, NO_RULE), since)

    def learn(self, step: ComparedMessage) -> list[tuple[Key, Cause | None]]:
        """Note what a command did to subscriptions. Returns the new causes; None where there is no longer one.

        A cause without effect any more stays known while the command that ended it is explained.
        """
        for key in self._healed:
            self.known.pop(key, None)
        self._healed.clear()
        touched = {*_applied(step.old.outcome.effects, self._old), *_applied(step.new.outcome.effects, self._new)}
        learnt: list[tuple[Key, Cause | None]] = []
        for key in touched:
            if same(self._old.get(key), self._new.get(key)):
                if key in self.known:
                    self._healed.add(key)
                    learnt.append((key, None))
            elif key not in self.known:
                self.known[key] = self._origin(step, key)
                learnt.append((key, self.known[key]))
        return learnt

    def explained(self, step: ComparedMessage) -> Cause | None:
        """Why the versions process a command differently: its own rule, or the result of an earlier command."""
        found = of_command(step)
        if found is None:
            earlier = self._of_name(step)
            if earlier is not None:
                return earlier
            found = of_answers(step)
        return self._of_identity(step) if found is None else Cause(*found, step.arrival.seq)

    def _origin(self, step: ComparedMessage, key: Key) -> Cause:
        """The cause for a subscription that is no longer the same: the rule of the earlier cause that led to it."""
        found = of_metatopics((key[4],))
        cause = self.explained(step) if found is None else None
        if cause is not None:
            found = cause.rule, cause.why
        return Cause(*(found or NO_RULE), step.arrival.seq)

    def _of_name(self, step: ComparedMessage) -> Cause | None:
        """The cause for the subscription that the command names."""
        command = step.new.outcome.command or step.old.outcome.command
        if not isinstance(command, ForSubscriber) or command.sub_name is None:
            return None
        for subscription in (step.old.named, step.new.named):
            if subscription is not None and (cause := self._before(step, key_of(subscription))) is not None:
                return cause
        return None

    def _of_identity(self, step: ComparedMessage) -> Cause | None:
        """The causes for subscriptions that the command means without a name."""
        for side in (step.old, step.new):
            for subscription in (*side.touched, *(delivery.subscription for copy in side.copies for delivery in copy)):
                if (cause := self._before(step, key_of(subscription))) is not None:
                    return cause
        command = step.new.outcome.command or step.old.outcome.command
        if not isinstance(command, ForSubscriber):
            return None
        identity = identity_of(command, step.arrival, step.qmgr)
        for key in self.known:
            meant = key[:3] == identity and (key[4] in command.topics or not command.topics)
            if meant and (cause := self._before(step, key)) is not None:
                return cause
        return None

    def _before(self, step: ComparedMessage, key: Key) -> Cause | None:
        cause = self.known.get(key)
        return cause if cause is not None and cause.since < step.arrival.seq else None


def _applied(effects: Iterable[Effect], to: dict[Key, Subscription]) -> Iterator[Key]:
    for effect in effects:
        match effect:
            case SubscriptionAdded(subscription):
                to[key_of(subscription)] = subscription
                yield key_of(subscription)
            case SubscriptionAltered(before, after):
                to.pop(key_of(before), None)
                to[key_of(after)] = after
                yield from (key_of(before), key_of(after))
            case SubscriptionRemoved(subscription):
                to.pop(key_of(subscription), None)
                yield key_of(subscription)


def signs_of(step: ComparedMessage) -> list[str]:
    """The ids of the rules that the command of a step is a sign of."""
    command = step.new.outcome.command or step.old.outcome.command
    if command is None:
        return []
    return list(
        _of_publication(command, step) if isinstance(command, model.Publish) else _of_registration(command, step)
    )


def _of_publication(command: model.Publish, step: ComparedMessage) -> Iterator[str]:
    if ADMIN_STREAM in (command.stream_name, step.arrival.queue):
        yield "D05"
    # "As its queue" most often means nonpersistent, and the queue of version 6 is not known.
    if command.has(model.PubOpt.RETAIN_PUB) and descriptor_of(step.arrival).persistence != mq.MQPER_PERSISTENT:
        yield "D28"
    if any(delivery.subscription.format is not command.header for delivery in step.new.deliveries):
        yield "D31"


def _of_registration(command: model.Command, step: ComparedMessage) -> Iterator[str]:
    if ADMIN_STREAM in (command.stream_name, step.arrival.queue):
        yield "D05"
    if isinstance(command, model.RegisterPublisher | model.DeregisterPublisher):
        yield "D06"
    if isinstance(command, model.RegisterSubscriber | model.DeregisterSubscriber | model.RequestUpdate):
        # Version 7 reads those of MQRFH by character as version 6 did.
        if command.header is PublicationFormat.RFH2 and any(map(has_char_wildcards, command.topics)):
            yield "D14"
        if is_dynamic_name(command.q_name or name_of(descriptor_of(step.arrival).reply_to_q)):
            yield "D17"
            yield "D18"
    if isinstance(command, model.RegisterSubscriber):
        yield from _premise_of_name(command, step)
        # Both versions answer ok, and a replay has none of the publications that version 6 made there itself.
        metatopic = of_metatopics(command.topics)
        if metatopic is not None:
            yield metatopic[0]
        if command.filter:
            yield "D30"
    if isinstance(command, model.RegisterSubscriber | model.DeregisterSubscriber) and command.sub_identity is not None:
        yield "D32"


def _premise_of_name(command: model.RegisterSubscriber, step: ComparedMessage) -> Iterator[str]:
    """A name registered for another queue, which MQSUB does not alter; or a second name for a subscription."""
    if command.sub_name is None:
        return
    named = step.new.named
    queue = identity_of(command, step.arrival, step.qmgr)[:2]
    # The name of a subscription on another stream is refused, whatever its queue: that is D15.
    is_its_own = named is not None and (named.stream or DEFAULT_STREAM) == (command.stream_name or DEFAULT_STREAM)
    if (
        named is not None
        and is_its_own
        and queue != (named.dest_qmgr, named.dest_queue)
        and not command.has(model.RegOpt.NO_ALTER)
    ):
        yield "D10"
    if named is None and step.new.outcome.reason == mq.MQRCCF_DUPLICATE_SUBSCRIPTION:
        yield "D25"
