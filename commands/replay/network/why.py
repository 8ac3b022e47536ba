"""Explains the capture of a network: who got each publication where, and which queue manager kept it from whom.

Two sources: the trace of each broker that had the publication, and, for queue managers that it did not reach,
``commands.network.absence``.
"""

from __future__ import annotations

from collections.abc import Iterator

from commands.explain.selection import EVERYTHING, Choosing, MessageSelection
from commands.explain.why import Asked, Reason, Verdict
from commands.explain.why.rules import rule_sentence
from commands.explain.why.verdict import OF_RULE, PLACES
from commands.network.absence import absence, own_scope
from commands.network.addressing import at_neighbour
from commands.network.flows import Place
from commands.network.network import Received, Step
from commands.replay.network.building import NetworkSetup
from commands.replay.network.local import NetworkReplay
from rfh2.captured import CapturedMessage
from streams.operations import PassedOver, PublishToTopic, Rule
from streams.subscriptions import Subscription


class NetworkWhy:
    """Explains captured messages. selection: those that the question is about; the others are processed too."""

    def __init__(
        self, setup: NetworkSetup, asked: Asked | None = None, selection: MessageSelection = EVERYTHING
    ) -> None:
        self._replay = NetworkReplay(setup, explains=True)
        self._network = self._replay.network
        self._asked = Asked() if asked is None else asked
        self._is_whole, self._choosing = selection.is_all, Choosing(selection)
        self._answered = False

    @property
    def is_over(self) -> bool:
        """Whether no later message is asked about."""
        return self._choosing.is_over

    def take(self, message: CapturedMessage) -> Iterator[Verdict]:
        """Take in one message; the answers about it. Raises what ``NetworkReplay.replay`` does."""
        is_selected = self._is_whole or self._choosing.chooses(message)
        step, _ = self._replay.replay(message)
        if is_selected:
            for verdict in self._verdicts(message.seq, step):
                if self._is_asked(verdict):
                    self._answered = True
                    yield verdict

    def end(self) -> Iterator[Verdict]:
        """An answer to a question that no message was about."""
        if not self._answered and not self._asked.is_all:
            asked = self._asked
            why = f"no subscription{asked.subscriber_words} selects a topic that was published"
            yield Verdict(asked.seq, asked.topic, asked.queue or "", asked.sub, False, Reason.NO_MATCH, why)

    def _is_asked(self, verdict: Verdict) -> bool:
        asked = self._asked
        return asked.is_about(verdict.queue, verdict.sub_name) and asked.is_about_publication(
            verdict.seq, verdict.topic
        )

    def _verdicts(self, seq: int, step: Step) -> Iterator[Verdict]:
        for received in step.received:
            yield from self._at(seq, received)
        for operation in step.outcome.operations:
            if isinstance(operation, PublishToTopic):
                yield from self._elsewhere(seq, step, operation)

    def _at(self, seq: int, received: Received) -> Iterator[Verdict]:
        """What a broker that had the publication did with it."""
        trace, qmgr = received.outcome.trace, received.qmgr
        assert trace is not None
        by = "" if received.flow is None else f"it came by {' - '.join(received.flow.fingerprints)}"
        for delivery in trace.deliveries:
            if not delivery.subscription.is_proxy:
                yield _verdict(seq, qmgr, delivery.topic_string, delivery.subscription, Reason.DELIVERED, by)
        for traced in trace.operations:
            for passed in traced.passed_over:
                reason = OF_RULE[passed.rule]
                if not passed.subscription.is_proxy and reason not in PLACES:
                    why = self._passed_over(qmgr, passed)
                    yield _verdict(seq, qmgr, passed.topic_string, passed.subscription, reason, why)

    def _passed_over(self, qmgr: str, passed: PassedOver) -> str:
        here = self._network.queue_managers[qmgr]
        if passed.came_from and passed.rule is Rule.SCOPE:
            scope = own_scope(here, passed.subscription)
            if scope:
                return f"kept back at {qmgr} by {scope}: it came from {passed.came_from}"
        return rule_sentence(passed, here.broker.objects.topics)

    def _elsewhere(self, seq: int, step: Step, operation: PublishToTopic) -> Iterator[Verdict]:
        """Subscriptions that select the topic at queue managers that the publication did not reach."""
        topic, publication = operation.topic_string, operation.publication
        origin = self._network.queue_managers[step.received[0].qmgr].broker
        for qmgr, each in self._network.queue_managers.items():
            there = at_neighbour(Place(topic, stream=publication.stream), origin, each.broker)
            topic_there = topic if there is None else there.topic_string
            if each.broker is origin or _was_at(step, qmgr, topic_there):
                continue
            for subscription in each.broker.space.match_once(topic_there, step.now):
                if subscription.is_proxy:
                    continue
                kept = absence(self._network, step, subscription, topic, qmgr)
                if kept.rule is not None:
                    why = f"kept back at {kept.qmgr} by {kept.why}"
                    yield _verdict(seq, qmgr, topic_there, subscription, OF_RULE[kept.rule], why)


def _was_at(step: Step, qmgr: str, topic: str) -> bool:
    return any(
        received.qmgr == qmgr and received.flow is not None and received.flow.operation.topic_string == topic
        for received in step.received
    )


def _verdict(seq: int, qmgr: str, topic: str, subscription: Subscription, reason: Reason, why: str) -> Verdict:
    delivered = reason is Reason.DELIVERED
    return Verdict(seq, topic, subscription.dest_queue, subscription.name, delivered, reason, why, qmgr)
