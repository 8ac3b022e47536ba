"""A broker that MQSC sets up, for captured messages: programs and replays use it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from commands.broker.authority import Authority
from commands.broker.context import semantics_of
from commands.broker.core import BrokerCore
from commands.broker.exit_values import PublishExit
from commands.broker.objects import Objects, QueueManager, is_object_name
from commands.broker.outcome import Arrival, Outcome
from commands.broker.puts import Put
from commands.broker.selection import Selection
from commands.broker.times import EPOCH
from commands.mqsc.execute import run_setup
from rfh2.captured import CapturedMessage
from streams.operations import Published, RetainedPublication
from streams.patterns import parse_pattern
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_objects import ResolvedTopic
from streams.topic_space import TopicSpace

# What a broker holds, for programs that embed it: its subscriptions, its topics, its retained publications.
#
# A view changes nothing and copies nothing. It always shows the current state, so a program can keep it from message to
# message. It does not show what has expired by the time of the last message.

Clock = Callable[[], datetime]
"""The time of the last message, UTC."""


class SubscriptionsView(Collection[Subscription]):
    """The subscriptions, in the order in which they were made. ``len`` and ``for`` work on it."""

    __slots__ = ("_now", "_space")

    def __init__(self, space: TopicSpace, now: Clock) -> None:
        self._space, self._now = space, now

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Subscription]:
        now = self._now()
        return (s for s in self._space.subscriptions() if s.expires_at is None or s.expires_at > now)

    def __contains__(self, subscription: object) -> bool:
        return any(one == subscription for one in self)

    def __repr__(self) -> str:
        return f"<subscriptions: {len(self)}>"

    def named(self, name: str) -> Subscription | None:
        """The subscription with this SubName; None where there is none."""
        return next((one for one in self if one.name == name), None)

    def of_queue(self, queue: str) -> tuple[Subscription, ...]:
        """The subscriptions whose publications go to *queue*."""
        return tuple(one for one in self if one.dest_queue == queue)

    def matching(self, topic_string: str) -> tuple[Subscription, ...]:
        """The subscriptions that select *topic_string*, with WILDCARD(BLOCK) taken into account.

        A Filter or a registration option can still keep a publication from one of them.
        """
        return self._space.match(topic_string, self._now())


class RetainedView(Mapping[str, Published]):
    """The retained publications by topic string, in ascending order; each has ``message`` and ``published_at``."""

    __slots__ = ("_now", "_space")

    def __init__(self, space: TopicSpace, now: Clock) -> None:
        self._space, self._now = space, now

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[str]:
        return (one.topic_string for one in self._held())

    def __getitem__(self, topic_string: str) -> Published:
        found = next((one for one in self._held() if one.topic_string == topic_string), None)
        if found is None:
            raise KeyError(topic_string)
        return found.publication

    def __repr__(self) -> str:
        return f"<retained publications: {len(self)}>"

    def matching(self, pattern: str, wildcard: WildcardScheme = WildcardScheme.TOPIC) -> dict[str, Published]:
        """The retained publications that a new subscription to *pattern* would select.

        Raises CommandError 3072 where *pattern* is not a topic string of the wildcard scheme.
        """
        found = self._space.retained(pattern, wildcard, self._now())
        return {one.topic_string: one.publication for one in found}

    def _held(self) -> Iterator[RetainedPublication]:
        now = self._now()
        for one in self._space.retained_publications():
            if one.publication.expires_at is None or one.publication.expires_at > now:
                yield one


@dataclass(frozen=True, slots=True)
class TopicState:
    """What a broker holds at one topic.

    attributes: the attributes that it has from topic objects. subscriptions: the subscriptions that select it.
    retained: its retained publication, if it has one.
    """

    topic_string: str
    attributes: ResolvedTopic
    subscriptions: tuple[Subscription, ...]
    retained: Published | None


class TopicsView(Mapping[str, TopicState]):
    """The topics in use by topic string, in ascending order.

    A topic is in use where a topic object, a retained publication or a subscription without wildcards has its topic
    string.
    """

    __slots__ = ("_retained", "_space", "_subscriptions")

    def __init__(self, space: TopicSpace, subscriptions: SubscriptionsView, retained: RetainedView) -> None:
        self._space, self._subscriptions, self._retained = space, subscriptions, retained

    def __len__(self) -> int:
        return len(self._in_use())

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._in_use()))

    def __getitem__(self, topic_string: str) -> TopicState:
        if topic_string not in self._in_use():
            raise KeyError(topic_string)
        return self.at(topic_string)

    def __repr__(self) -> str:
        return f"<topics: {len(self)}>"

    def at(self, topic_string: str) -> TopicState:
        """What a publication on *topic_string* would find there, whether the topic is in use or not."""
        return TopicState(
            topic_string,
            self._space.topic_objects.resolve(topic_string),
            self._subscriptions.matching(topic_string),
            self._retained.get(topic_string),
        )

    def _in_use(self) -> set[str]:
        topics = {one.topic_string for one in self._space.topic_objects if one.topic_string}
        topics.update(self._retained)
        patterns = (parse_pattern(one.topic_string, one.wildcard) for one in self._subscriptions)
        topics.update(pattern.literal for pattern in patterns if not pattern.is_wild)
        return topics


@dataclass(frozen=True, slots=True)
class BrokerState:
    """What captured messages made of a broker, beside its setup.

    last_time: of the last message that had one. begun: whether a message has arrived, so that what the setup defined
    expires. subscriptions: in ascending order of sub_id. retained: in ascending order of topic string; topics that keep
    the same publication share it.
    """

    last_time: datetime
    begun: bool
    subscriptions: tuple[Subscription, ...]
    retained: tuple[RetainedPublication, ...]


class Broker(BrokerCore):
    """A queue manager's queued publish/subscribe interface, in memory, with no queue store.

    qmgr: its name. setup: an MQSC script, which runs first; the expiry of what it defines starts with the first
    message. semantics: ``v7``, or ``v6`` for the behaviour of the version 6 broker where it differs (guide 7.5, 8.5).
    objects, space, authority: for callers that keep them elsewhere. rfh2_wildcards: the wildcard scheme of MQRFH2
    commands; the broker of WebSphere MQ version 6 used CHAR for all commands (guide 2.5.1.1). publish_exit: called for
    each message for a subscriber (guide 4.6.2).

    Raises ValueError where *qmgr* cannot be the name of a queue manager, and QPubSubError where *setup* fails.

    >>> setup = "DEFINE TOPIC(SPORT) TOPICSTR('Sport')", "DEFINE SUB(S1) TOPICSTR('Sport/#') DEST(BOARD)"
    >>> broker = Broker("QM1", "\\n".join(setup))
    >>> broker
    <Broker QM1: subscriptions 1, topics 1, retained publications 0>
    >>> [subscription.dest_queue for subscription in broker.subscriptions.matching("Sport/Tennis")]
    ['BOARD']
    >>> list(broker.topics)
    ['Sport']
    """

    def __init__(
        self,
        qmgr: str,
        setup: str = "",
        semantics: str = "v7",
        *,
        objects: Objects | None = None,
        space: TopicSpace | None = None,
        authority: Authority | None = None,
        rfh2_wildcards: WildcardScheme = WildcardScheme.TOPIC,
        publish_exit: PublishExit | None = None,
    ) -> None:
        if objects is None:
            if not is_object_name(qmgr):
                raise ValueError(
                    f"{qmgr!r} cannot be the name of a queue manager: use 1 to 48 of the characters A-Z a-z 0-9 . _ / %"
                )
            objects = Objects(QueueManager(qmgr))
        space = space if space is not None else TopicSpace(objects.topics, Selection(), semantics_of(semantics).value)
        if setup:
            run_setup(setup, objects, space, EPOCH)
        super().__init__(objects, space, semantics, authority, rfh2_wildcards=rfh2_wildcards, publish_exit=publish_exit)
        self._last_time = EPOCH

    @classmethod
    def of_capture(
        cls, qmgr: str, setup: str = "", semantics: str = "v7", publish_exit: PublishExit | None = None
    ) -> Self:
        """A broker with the name that a capture gives to the queue manager, even where MQ would not allow the name.

        Raises QPubSubError where *setup* fails.
        """
        return cls(qmgr, setup, semantics, objects=Objects(QueueManager(qmgr)), publish_exit=publish_exit)

    @classmethod
    def of_state(cls, qmgr: str, setup: str, semantics: str, state: BrokerState) -> Self:
        """The broker that ``of_capture`` makes, in the state that a broker with the same setup had.

        Raises what ``of_capture`` does; CommandError or ValueError where the state contradicts itself.
        """
        broker = cls.of_capture(qmgr, setup, semantics)
        space = TopicSpace(broker.objects.topics, Selection(), semantics_of(semantics).value)
        space.restore(state.subscriptions, state.retained, running=broker.space)
        broker.space, broker._last_time = space, state.last_time
        if state.begun:
            broker._not_begun = ()
        return broker

    def state(self) -> BrokerState:
        """The state, for ``of_state``."""
        space = self.space
        return BrokerState(self._last_time, not self._not_begun, space.subscriptions(), space.retained_publications())

    def __repr__(self) -> str:
        held = (len(self.subscriptions), len(self.topics), len(self.retained))
        return "<Broker {}: subscriptions {}, topics {}, retained publications {}>".format(self.qmgr, *held)

    @property
    def subscriptions(self) -> SubscriptionsView:
        """The subscriptions, oldest first; ``matching(topic)``, ``named(name)`` and ``of_queue(queue)`` find some."""
        return SubscriptionsView(self.space, self._now)

    @property
    def retained(self) -> RetainedView:
        """The retained publications by topic string; ``matching(pattern)`` finds those of a pattern."""
        return RetainedView(self.space, self._now)

    @property
    def topics(self) -> TopicsView:
        """The topics in use by topic string; ``at(topic)`` says what holds at any topic."""
        return TopicsView(self.space, self.subscriptions, self.retained)

    def _now(self) -> datetime:
        return self._last_time

    def handle(self, message: CapturedMessage) -> list[Put]:
        """Process one captured message and return its puts. A message without a time gets the time of the last one.

        The identifiers of puts are made from ``seq``. Give each message another ``seq``: the puts of two messages with
        the same one have the same identifiers.
        """
        return self.replay(message)[1]

    def replay(self, message: CapturedMessage) -> tuple[Outcome, list[Put]]:
        """The same as ``handle``, with the outcome beside the puts."""
        outcome = self.process(self.arrival(message))
        return outcome, [Put.of(message.seq, self.qmgr, n, put) for n, put in enumerate(outcome.puts)]

    def arrival(self, message: CapturedMessage) -> Arrival:
        """*message* as it arrives at this queue manager now."""
        if message.time is not None:
            self._last_time = message.time
        # Not message.md and message.body, which the message would keep: most messages are read this once.
        md = None if message.md_hex is None else bytes.fromhex(message.md_hex)
        return Arrival(message.seq, self._last_time, message.queue, md, bytes.fromhex(message.body_hex), message.user)
