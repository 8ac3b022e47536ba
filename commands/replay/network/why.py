"""Explains the capture of a network: who got each publication where, and which queue manager kept it from whom.

Three sources: the trace of each broker that had the publication; for queue managers that it did not reach,
``commands.network.network``; and for subscriptions that nearly select the topic, ``commands.explain.why.near``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from commands.broker.context import Semantics
from commands.explain.problems import with_md
from commands.explain.selection import EVERYTHING, Choosing, MessageSelection
from commands.explain.why import Asked, Explainer, Reason, Verdict
from commands.explain.why.answers import unread_sentence
from commands.explain.why.explainer import prefix_of
from commands.explain.why.near import NearMisses, Publishing
from commands.explain.why.verdict import OF_RULE, PLACES, rule_sentence
from commands.model import Publish
from commands.mqsc.broker import Broker
from commands.network.flows import Place
from commands.network.network import Received, Step, absence, own_scope, would_come
from commands.network.queue_manager import at_neighbour
from commands.replay.arrivals import DEFAULT_QMGR, Arrivals
from commands.replay.local import ExitOf
from commands.replay.network.local import NetworkReplay, NetworkSetup
from rfh2.captured import CapturedMessage
from streams.operations import PassedOver, PublishToTopic, Rule
from streams.subscriptions import Subscription
from streams.topic_space import TopicSpace

# Explains a capture in this process: message after message, in the order of ``seq``, for each queue manager.

HELD_ANSWERS: Final = 2_000
"""So many answers are held back: a dead letter among the next messages may show that one of them is wrong."""


class LocalWhy:
    """Explains captured messages.

    setup: MQSC that every queue manager starts with. semantics: ``v7`` or ``v6``. selection: the messages that the
    question is about; the others are processed too. exit_of: the publish exit of a queue manager.
    """

    def __init__(
        self,
        setup: str = "",
        semantics: str = "v7",
        asked: Asked | None = None,
        selection: MessageSelection = EVERYTHING,
        exit_of: ExitOf | None = None,
    ) -> None:
        self._setup, self._semantics, self._exit_of = setup, semantics, exit_of
        self._asked = Asked() if asked is None else asked
        self._is_whole, self._choosing = selection.is_all, Choosing(selection)
        self._explainers: dict[str, Explainer] = {}
        self._held: deque[Verdict] = deque()
        # Those of them that are asked for.
        self._asked_held = 0
        self._arrivals = Arrivals()
        self._answered = False
        self._unread = 0

    @property
    def unread(self) -> int:
        """How many records of the capture could not be read, as far as is known: what is absent may be in them."""
        return self._unread

    @unread.setter
    def unread(self, number: int) -> None:
        if number != self._unread:
            self._unread = number
            for explainer in self._explainers.values():
                explainer.doubts.unread = number

    @property
    def is_over(self) -> bool:
        """Whether no later message changes an answer: the limit is reached, and no answer is held back."""
        return self._choosing.is_over and not self._asked_held

    def answers(self, messages: Iterable[CapturedMessage]) -> Iterator[Verdict]:
        """All answers about *messages*, which are in the order of ``seq``. Raises what ``take`` does."""
        for message in messages:
            yield from self.take(message)
            if self.is_over:
                break
        yield from self.end()

    def take(self, message: CapturedMessage) -> Iterator[Verdict]:
        """Take in one message; the answers that are final now.

        Raises OutOfOrderError where it came before the last one; QPubSubError where the setup fails.
        """
        qmgr, arrival = self._arrivals.of(message)
        is_selected = self._is_whole or self._choosing.chooses(message)
        return self._final(self._explainer(qmgr).take(arrival, is_selected=is_selected), HELD_ANSWERS)

    def end(self) -> Iterator[Verdict]:
        """The answers that are left when all messages were taken."""
        if not self._explainers:
            self._explainer(DEFAULT_QMGR)
        for explainer in self._explainers.values():
            yield from self._final(explainer.end(), HELD_ANSWERS)
        yield from self._final([], 0)
        if not self._answered and not (self._asked.is_all and self._is_whole):
            yield self._nothing_found()

    def _explainer(self, qmgr: str) -> Explainer:
        known = self._explainers.get(qmgr)
        if known is None:
            publish_exit = None if self._exit_of is None else self._exit_of(qmgr)
            broker = Broker.of_capture(qmgr, self._setup, self._semantics, publish_exit)
            known = self._explainers[qmgr] = Explainer(broker, self._asked, is_whole=self._is_whole)
            known.doubts.unread = self._unread
        return known

    def _final(self, verdicts: Iterable[Verdict], held: int) -> Iterator[Verdict]:
        waiting = self._held
        for verdict in verdicts:
            if not (verdict.amends and self._amend(verdict)):
                waiting.append(verdict)
                self._asked_held += verdict.is_asked
        final = []
        while len(waiting) > held:
            verdict = waiting.popleft()
            if verdict.is_asked:
                final.append(verdict)
        self._asked_held -= len(final)
        self._answered = self._answered or bool(final)
        return iter(final)

    def _amend(self, verdict: Verdict) -> bool:
        """Correct the last answer that said of the same queue and topic that it was delivered; whether there is one."""
        for at in range(len(self._held) - 1, -1, -1):
            one = self._held[at]
            if one.delivered and (one.queue, one.topic) == (verdict.queue, verdict.topic):
                self._held[at] = replace(one, delivered=False, reason=verdict.reason, say=verdict.say)
                return True
        return False

    def _nothing_found(self) -> Verdict:
        """The answer to a question that no message of the capture is about."""
        asked, explainers = self._asked, list(self._explainers.values())
        selected = "" if self._is_whole else " by the messages that are selected"
        is_narrow = asked.names_publication or not self._is_whole
        if is_narrow and not any(explainer.published for explainer in explainers):
            what = "" if asked.topic is None else f" on {asked.topic!r}"
            what += "" if asked.seq is None else f" by message {asked.seq}"
            why = f"nothing was published{what}{selected or ' in the capture'}"
        elif self._choosing.is_over or (not self._is_whole and any(each.knows_subscriber for each in explainers)):
            why = f"no subscription{asked.subscriber_words} selects a topic on which something was published{selected}"
        else:
            queues = {queue for explainer in explainers for queue in explainer.queues}
            where = asked.subscriber_words
            why = f"no subscription was registered in the capture{where}{asked.similar_queues(queues)}"
        reason = Reason.NO_MATCH
        if self._unread or any(explainer.doubts for explainer in explainers):
            reason, why = Reason.UNKNOWN, f"{why}; {self._unsaid(explainers)}"
        return Verdict(asked.seq, asked.topic, asked.queue or "", asked.sub, False, reason, why)

    def _unsaid(self, explainers: list[Explainer]) -> str:
        """What the capture does not say."""
        if self._unread:
            return unread_sentence(self._unread)
        return "the queues of commands without an MQMD are unknown"


class NetworkWhy:
    """Explains captured messages. selection: those that the question is about; the others are processed too."""

    def __init__(
        self, setup: NetworkSetup, asked: Asked | None = None, selection: MessageSelection = EVERYTHING
    ) -> None:
        self._replay = NetworkReplay(setup, explains=True)
        self._network = self._replay.network
        self._asked = Asked() if asked is None else asked
        self._is_whole, self._choosing = selection.is_all, Choosing(selection)
        self._near = {qmgr: _Near(each.broker.space) for qmgr, each in self._network.queue_managers.items()}
        self._served: set[tuple[str, bytes]] = set()  # the subscriptions that ever got something, with their place
        self._answered = False
        self.unread = 0
        """How many records could not be read, as far as is known."""

    @property
    def is_over(self) -> bool:
        """Whether no later message is asked about."""
        return self._choosing.is_over

    def take(self, message: CapturedMessage) -> Iterator[Verdict]:
        """Take in one message; the answers about it. Raises what ``NetworkReplay.replay`` does."""
        is_selected = self._is_whole or self._choosing.chooses(message)
        step, _ = self._replay.replay(with_md(message))
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
            reason = Reason.NO_MATCH
            if self.unread:
                reason, why = Reason.UNKNOWN, f"{why}; {unread_sentence(self.unread)}"
            yield Verdict(asked.seq, asked.topic, asked.queue or "", asked.sub, False, reason, why)

    def _is_asked(self, verdict: Verdict) -> bool:
        asked = self._asked
        return asked.is_about(verdict.queue, verdict.sub_name) and asked.is_about_publication(
            verdict.seq, verdict.topic
        )

    def _verdicts(self, seq: int, step: Step) -> Iterator[Verdict]:
        for received in step.received:
            yield from self._at(seq, received)
        command = step.outcome.command
        operations = [each for each in step.outcome.operations if isinstance(each, PublishToTopic)]
        prefix = prefix_of(command.topics, operations) if isinstance(command, Publish) and operations else ""
        for operation in operations:
            yield from self._elsewhere(seq, step, operation)
            yield from self._near_misses(seq, step, operation, prefix)

    def _at(self, seq: int, received: Received) -> Iterator[Verdict]:
        """What a broker that had the publication did with it."""
        trace, qmgr = received.outcome.trace, received.qmgr
        assert trace is not None
        by = "" if received.flow is None else f"it came by {' - '.join(received.flow.fingerprints)}"
        for delivery in trace.deliveries:
            if not delivery.subscription.is_proxy:
                self._served.add((qmgr, delivery.subscription.sub_id))
                yield _verdict(seq, qmgr, delivery.topic_string, delivery.subscription, Reason.DELIVERED, by)
        for traced in trace.operations:
            for passed in traced.passed_over:
                reason = OF_RULE[passed.rule]
                if not passed.subscription.is_proxy and reason not in PLACES:
                    why = self._passed_over(qmgr, passed)
                    yield _verdict(seq, qmgr, passed.topic_string, passed.subscription, reason, why)

    def _passed_over(self, qmgr: str, passed: PassedOver) -> str:
        here = self._network.queue_managers[qmgr]
        if passed.came_from and passed.rule is Rule.SCOPE and here.broker.semantics is Semantics.V7:
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

    def _near_misses(self, seq: int, step: Step, operation: PublishToTopic, prefix: str) -> Iterator[Verdict]:
        """Subscriptions that would select the topic but for spelling, wildcards, stream or subscription point.

        At queue managers of the publisher's version, where the topic string is the same.
        """
        topic, publication, origin = operation.topic_string, operation.publication, step.received[0].qmgr
        publishing = Publishing.of(operation, prefix)
        version = self._network.queue_managers[origin].broker.semantics
        served = {
            (received.qmgr, delivery.subscription.traditional_identity)
            for received in step.received
            if received.outcome.trace is not None
            for delivery in received.outcome.trace.deliveries
        }
        for qmgr, near in self._near.items():
            here = self._network.queue_managers[qmgr].broker
            if here.semantics is not version or (qmgr != origin and publication.local):
                continue
            for miss in near.now().find(publishing, here.space.match_once(topic, step.now)):
                corrected = miss.corrected
                if (qmgr, miss.subscription.traditional_identity) in served:
                    continue
                if miss.reason in PLACES and (qmgr, miss.subscription.sub_id) in self._served:
                    continue
                if here.space.rule_for(corrected, operation, step.now) is not None:
                    continue
                if qmgr == origin or would_come(self._network, corrected, topic, qmgr, origin):
                    yield _verdict(seq, qmgr, topic, miss.subscription, miss.reason, miss.why)


class _Near:
    """The subscriptions of programs at one queue manager, as an index of near misses."""

    def __init__(self, space: TopicSpace) -> None:
        self._space, self._as_of, self._index = space, -1, NearMisses()

    def now(self) -> NearMisses:
        """As they are now."""
        if self._as_of != self._space.subscription_changes:
            self._as_of = self._space.subscription_changes
            there = {each.sub_id: each for each in self._space.subscriptions() if not each.is_proxy}
            for gone in [each.sub_id for each in self._index if each.sub_id not in there]:
                self._index.remove(gone)
            known = {each.sub_id: each for each in self._index}
            for sub_id, subscription in there.items():
                if known.get(sub_id) is not subscription:
                    self._index.add(subscription)
        return self._index


def _was_at(step: Step, qmgr: str, topic: str) -> bool:
    return any(
        received.qmgr == qmgr and received.flow is not None and received.flow.operation.topic_string == topic
        for received in step.received
    )


def _verdict(seq: int, qmgr: str, topic: str, subscription: Subscription, reason: Reason, why: str) -> Verdict:
    delivered = reason is Reason.DELIVERED
    return Verdict(seq, topic, subscription.dest_queue, subscription.name, delivered, reason, why, qmgr)
