"""A broker that MQSC sets up, for captured messages: programs and replays use it."""

from __future__ import annotations

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
from commands.broker.views import RetainedView, SubscriptionsView, TopicsView
from commands.mqsc.execute import run_setup
from rfh2.captured import CapturedMessage
from streams.operations import RetainedPublication
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_space import TopicSpace


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
