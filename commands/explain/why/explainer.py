"""Answers, message after message, for one queue manager: who got each publication, who did not, and by which rule.

The broker processes each message with a trace (``BrokerCore.trace``), which says whom a publication reached and whom it
passed over, by which rule. What the trace cannot say is looked up in indexes beside it: near misses (``near``),
subscriptions that are not there and retained publications that expired (``roster``). Whether the publication
would have reached them otherwise is again the topic space's decision (``TopicSpace.rule_for``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Final, TypeGuard

from commands.broker.authority import Action
from commands.broker.context import not_read, prefix_of_sub_point
from commands.broker.core import BrokerCore
from commands.broker.objects import CONTROL_QUEUE
from commands.broker.outcome import Arrival, Outcome, Trace, TracedOperation
from commands.broker.puts import Exited, PutKind
from commands.explain.why.answers import (
    Answers,
    Attempt,
    DeadPublication,
    Doubts,
    attempt,
    dead_publication,
    publications_of,
    subscriptions_of,
)
from commands.explain.why.near import Publishing, difference_words, moved_to, place_prefix, selects
from commands.explain.why.roster import Former, Roster, SeenTopics
from commands.explain.why.verdict import (
    OF_RULE,
    PLACES,
    Asked,
    QueueState,
    Reason,
    Verdict,
    by_definition,
    disabled_sentence,
    exit_reason,
    exit_sentence,
    rule_sentence,
)
from commands.headers.response import Completion
from commands.model import Publish, RegisterSubscriber
from rfh2 import constants as mq
from rfh2.captured import iso
from streams.operations import (
    AlterSubscription,
    Delivery,
    Operation,
    PassedOver,
    Publication,
    PublishToTopic,
    RequestRetained,
    Rule,
    Subscribe,
)
from streams.patterns import parse_pattern, written_topic
from streams.subscriptions import Subscription
from streams.topic_strings import SEPARATOR, add_prefix

# Messages that were refused, could not be read, or were put to a queue that no broker reads: whom that concerns.

_UNAUTHORIZED = (mq.MQRCCF_NOT_AUTHORIZED, mq.MQRC_NOT_AUTHORIZED)


class Refusals:
    """Finds the subscribers of publications that were not published, and keeps subscriptions that were not made.

    published: whether any of these publications was one that the question is about.
    """

    def __init__(self, broker: BrokerCore, roster: Roster, answers: Answers, seen: SeenTopics, doubts: Doubts) -> None:
        self._seen, self._doubts = seen, doubts
        self._broker, self._space, self._roster, self._answers = broker, broker.space, roster, answers
        self.published = False

    def refused(self, arrival: Arrival, outcome: Outcome, trace: Trace) -> None:
        """A command was refused."""
        if outcome.command is not None and not isinstance(outcome.command, Publish | RegisterSubscriber):
            return
        wanted = attempt(arrival, outcome.command)
        if wanted is None:
            self.undecodable(arrival, outcome)
        elif wanted.word == RegisterSubscriber.word:
            self._registrations(arrival, outcome, subscriptions_of(wanted, self._broker, arrival))
        elif wanted.word == Publish.word:
            if trace.refused:
                self.topics_refused(arrival, outcome, trace)
            else:
                self._publish_refused(arrival, outcome, wanted)

    def topics_refused(self, arrival: Arrival, outcome: Outcome, trace: Trace) -> None:
        """Topics of a Publish were refused, all or some."""
        for operation in trace.refused:
            self._not_published(arrival, outcome, operation, None)
            topic, publication = operation.topic_string, operation.publication
            prefix = place_prefix(publication.stream, publication.sub_point, self._broker)
            self._nearly(arrival, operation, prefix, *self._refusal(arrival, outcome, topic, None))

    def registrations_refused(
        self, arrival: Arrival, outcome: Outcome, command: RegisterSubscriber, trace: Trace
    ) -> None:
        """Some topics of a RegSub were refused: the user has no authority for them."""
        if outcome.reason not in _UNAUTHORIZED:
            return
        done = {
            written_topic(traced.operation.subscription)
            for traced in trace.operations
            if isinstance(traced.operation, Subscribe | AlterSubscription)
        }
        wanted = attempt(arrival, command)
        if wanted is not None:
            every = subscriptions_of(wanted, self._broker, arrival)
            self._registrations(arrival, outcome, (each for each in every if written_topic(each) not in done))

    def undecodable(self, arrival: Arrival, outcome: Outcome) -> None:
        """A message cannot be read: nobody knows its subscribers."""
        if arrival.queue != CONTROL_QUEUE:
            why = f"message {arrival.seq} on {arrival.queue} cannot be read as a command: {outcome.why}"
            self._answers.add_unknown(arrival.seq, Reason.DEAD_LETTER, why)

    def not_read(self, arrival: Arrival) -> None:
        """A message is on a queue that no broker reads: a dead letter, or a command on the wrong queue."""
        if arrival.queue in self._roster.queues:
            return  # what a subscriber got, captured too
        dead = dead_publication(arrival)
        if dead is not None:
            self._dead(arrival, dead)
            return
        wanted = attempt(arrival)
        if wanted is None or wanted.message.mqmd.put_appl_type == mq.MQAT_BROKER:
            return
        why = f"message {arrival.seq} was not processed: {not_read(arrival.queue)}"
        if wanted.word == RegisterSubscriber.word:
            for subscription in subscriptions_of(wanted, self._broker, arrival):
                self._roster.refused(subscription, Reason.REFUSED, arrival.seq, why)
        elif wanted.word == Publish.word:
            for written, operation in publications_of(wanted, self._broker, arrival):
                # Nothing is below the name of a queue, so that all subscriptions to the topic are elsewhere.
                publishing = Publishing(add_prefix(arrival.queue, written), written, arrival.queue, arrival.queue, None)
                self._expecting(arrival, operation.topic_string, publishing, Reason.STREAM, why)
                there = PublishToTopic(written, replace(operation.publication, stream=None))
                self._nearly(arrival, there, "", Reason.STREAM, why)

    def _registrations(self, arrival: Arrival, outcome: Outcome, wanted: Iterable[Subscription]) -> None:
        code = outcome.reason or 0
        reason = self._doubts.refusal(code, Reason.AUTHORITY if code in _UNAUTHORIZED else Reason.REFUSED)
        why = f"RegSub {arrival.seq} was refused: {_code_sentence(code, outcome.why)}"
        for subscription in wanted:
            self._roster.refused(subscription, reason, arrival.seq, why)

    def _publish_refused(self, arrival: Arrival, outcome: Outcome, wanted: Attempt) -> None:
        """A Publish was refused for another reason than its topics, or before they were read."""
        for written, operation in publications_of(wanted, self._broker, arrival):
            reached = self._not_published(arrival, outcome, operation, wanted)
            topic, publication = operation.topic_string, operation.publication
            prefix = topic[: -len(written) - 1]
            self._nearly(arrival, operation, prefix, *self._refusal(arrival, outcome, topic, wanted))
            if not reached:
                place = wanted.sub_point or publication.stream or prefix
                publishing = Publishing(topic, written, place, publication.stream, publication.sub_point)
                self._expecting(arrival, topic, publishing, *self._refusal(arrival, outcome, topic, wanted))

    def _not_published(
        self, arrival: Arrival, outcome: Outcome, operation: PublishToTopic, wanted: Attempt | None
    ) -> bool:
        """A publication did not reach the subscriptions that it would have reached; whether there are any."""
        topic = operation.topic_string
        if not self._answers.is_about(arrival.seq, topic):
            return True
        self.published = True
        self._seen.refused(topic, arrival.seq)
        reason, why = self._refusal(arrival, outcome, topic, wanted)
        matching = self._space.match(topic, arrival.now)
        for subscription in matching:
            if self._space.rule_for(subscription, operation, arrival.now) is None:
                self._answers.add(arrival.seq, topic, subscription, reason, why)
        return bool(matching)

    def _expecting(self, arrival: Arrival, topic: str, publishing: Publishing, reason: Reason, why: str) -> None:
        """The subscriptions to the same topic elsewhere, as nothing can be at *publishing*."""
        if self._answers.is_about(arrival.seq, topic):
            self.published = True
            self._seen.refused(topic, arrival.seq)
        for miss in self._roster.near.find(publishing, ()):
            if miss.reason in PLACES:
                self._answers.add(arrival.seq, topic, miss.subscription, reason, why)

    def _nearly(self, arrival: Arrival, operation: PublishToTopic, prefix: str, reason: Reason, why: str) -> None:
        """The subscriptions that the publication would have missed all the same, by a second fault."""
        topic = operation.topic_string
        if not self._answers.is_about(arrival.seq, topic):
            return
        for miss in self._roster.near.find(Publishing.of(operation, prefix), self._space.match(topic, arrival.now)):
            is_kept = self._space.rule_for(miss.corrected, operation, arrival.now) is not None
            if miss.reason not in PLACES and not is_kept:
                both = f"{why}; besides, {miss.why}"
                self._answers.add(arrival.seq, topic, miss.subscription, reason, both)

    def _refusal(self, arrival: Arrival, outcome: Outcome, topic: str, wanted: Attempt | None) -> tuple[Reason, str]:
        code = outcome.reason or 0
        if code == mq.MQRC_PUT_INHIBITED:
            return Reason.PUBLISH_DISABLED, disabled_sentence(topic, self._space.topic_objects)
        why = f"Publish {arrival.seq} was refused: {_code_sentence(code, outcome.why)}"
        if code in _UNAUTHORIZED:
            return Reason.AUTHORITY, why
        if wanted is not None and wanted.sub_point:
            broker = self._broker
            if prefix_of_sub_point(wanted.sub_point, broker.objects, broker.semantics) is None:
                return Reason.SUB_POINT, why
        if any(put.kind is PutKind.DEADLETTER for put in outcome.puts):
            return Reason.DEAD_LETTER, f"{why}; it is a dead letter"
        return Reason.REFUSED, why

    def _dead(self, arrival: Arrival, dead: DeadPublication) -> None:
        if dead.queue not in self._roster.queues:
            return
        for prefix, topic in product(self._roster.prefixes, dead.topics):
            full = add_prefix(prefix, topic)
            for subscription in self._space.match(full, arrival.now):
                if subscription.dest_queue == dead.queue and subscription.prefix == prefix:
                    self._answers.add(arrival.seq, full, subscription, dead.reason, dead.why, amends=True)


def _code_sentence(code: int, why: str) -> str:
    return f"{code} {mq.reason_text(code)}: {why}" if str(code) not in why else why


_MOST_RETAINED: Final = 100
"""So many retained publications that one command passed over are answers."""


class Explainer:
    """Explains the messages of one queue manager. broker: processes them, and is used by nobody else.

    asked: which answers are wanted. queue_state: what keeps publications from a queue; by default its definition.
    is_whole: whether the question is about all messages; if not, ``take`` is given those that it is about.
    """

    def __init__(
        self,
        broker: BrokerCore,
        asked: Asked | None = None,
        queue_state: QueueState | None = None,
        *,
        is_whole: bool = True,
    ) -> None:
        self._broker, self._space, self._is_whole = broker, broker.space, is_whole
        self._asked = Asked() if asked is None else asked
        self._queue_state = by_definition(broker.objects) if queue_state is None else queue_state
        self.doubts = Doubts(broker)
        """What the capture does not say."""
        self._answers = Answers(self._asked, broker.qmgr, self.doubts)
        self._roster = Roster(self._space, self._asked)
        self._seen = SeenTopics()
        self._refusals = Refusals(broker, self._roster, self._answers, self._seen, self.doubts)
        # The sub_ids that anything was delivered for.
        self._served: set[bytes] = set()
        self._published = False
        self.refusal = ""
        """Why the last message was refused; empty if it was not."""

    @property
    def queues(self) -> Iterator[str]:
        """The queues that somebody subscribed for, or wanted to."""
        return iter(self._roster.queues)

    @property
    def published(self) -> bool:
        """Whether anything was published that the question is about."""
        return self._published or self._refusals.published

    @property
    def knows_subscriber(self) -> bool:
        """Whether there is, or was, a subscription that the question is about."""
        return len(self._roster.former) > 0 or next(iter(self._roster.near), None) is not None

    def take(self, arrival: Arrival, *, is_selected: bool = True) -> list[Verdict]:
        """Process one message; the answers about it. is_selected: whether the question is about it."""
        self._answers.is_selected = self._roster.is_selected = is_selected
        self.refusal = ""
        assumed = self.doubts.arrival(arrival)
        if assumed is None:
            return []
        arrival = assumed
        # Messages for subscribers take long to make, and matter to a publish exit alone.
        outcome = self._broker.trace(arrival, explains=True, forwards=self._broker.publish_exit is not None)
        self.doubts.after(arrival, outcome)
        trace = outcome.trace
        assert trace is not None
        self.refusal = outcome.why
        if trace.expired:
            self._roster.expired(trace.expired, arrival)
        if outcome.undecodable:
            self._refusals.undecodable(arrival, outcome)
        elif outcome.completion is None:
            self._refusals.not_read(arrival)
        else:
            self._roster.apply(outcome.effects[len(trace.expired) :], arrival)
            if outcome.completion is Completion.ERROR and outcome.reason != mq.MQRCCF_NO_RETAINED_MSG:
                self._refusals.refused(arrival, outcome, trace)
            else:
                self._carried_out(arrival, outcome, trace)
        for former in self._roster.given_up:
            self._unanswered(former)
            self._answers.mentioned.discard(former.subscription.sub_id)
        self._roster.given_up.clear()
        return self._answers.take()

    def end(self) -> list[Verdict]:
        """The answers about subscriptions that no answer was about: nothing was published for them."""
        self._answers.is_selected = self._is_whole
        for subscription in self._space.subscriptions():
            if subscription.sub_id not in self._answers.mentioned:
                why = self._seen.no_match_sentence(subscription, self._roster.since.get(subscription.sub_id))
                self._answers.add(None, subscription.topic_string, subscription, Reason.NO_MATCH, why)
        for former in self._roster.former:
            self._unanswered(former)
        return self._answers.take()

    def _unanswered(self, former: Former) -> None:
        """A line about a former subscription, unless there was one."""
        subscription = former.subscription
        if subscription.sub_id in self._answers.mentioned:
            return
        topic = subscription.topic_string
        is_refused = former.reason in (Reason.REFUSED, Reason.AUTHORITY, Reason.UNKNOWN)
        self._answers.is_selected = former.is_selected if is_refused else self._is_whole
        if is_refused:
            self._answers.add(former.seq, topic, subscription, former.reason, former.why)
        else:
            why = f"{self._seen.no_match_sentence(subscription, None)}; {former.why}"
            self._answers.add(None, topic, subscription, Reason.NO_MATCH, why)

    # Commands that were carried out

    def _carried_out(self, arrival: Arrival, outcome: Outcome, trace: Trace) -> None:
        exited = {id(each.copies): each for each in outcome.exited}
        for copies in outcome.copies:
            if id(copies) not in exited:
                self._put(arrival, copies)
        for each in outcome.exited:
            self._exited(arrival, each)
        for traced in trace.operations:
            for delivery in traced.deliveries:
                self._served.add(delivery.subscription.sub_id)
                self._answers.mentioned.add(delivery.subscription.sub_id)
            if isinstance(traced.operation, PublishToTopic):
                self._passed_over(arrival, traced, None)
            elif isinstance(traced.operation, Subscribe | RequestRetained) or _sends_retained(traced.operation):
                self._passed_over(arrival, traced, _MOST_RETAINED)
                self._lapsed(arrival, traced.operation)
        if isinstance(outcome.command, Publish):
            self._missed(arrival, outcome.command, trace)
            self._refusals.topics_refused(arrival, outcome, trace)
        elif isinstance(outcome.command, RegisterSubscriber) and outcome.completion is Completion.WARNING:
            self._refusals.registrations_refused(arrival, outcome, outcome.command, trace)

    def _exited(self, arrival: Arrival, exited: Exited) -> None:
        first, reason = exited.copies[0], exit_reason(exited)
        is_there = reason is Reason.DELIVERED
        state = self._queue_state(exited.qmgr, exited.queue) if is_there else None
        why = exit_sentence(exited, self._broker.qmgr)
        if state is not None:
            reason, why = state[0], f"{why}; {state[1]}"
            is_there = reason in (Reason.DELIVERED, Reason.TRANSMISSION)
        self._answers.add(arrival.seq, first.topic_string, first.subscription, reason, why, delivered=is_there)

    def _put(self, arrival: Arrival, copies: Sequence[Delivery]) -> None:
        first, asked = copies[0], self._asked
        topic = first.topic_string
        if asked.topic is not None:
            topic = next((copy.topic_string for copy in copies if asked.is_about_topic(copy.topic_string)), topic)
        state = self._queue_state(first.subscription.dest_qmgr, first.subscription.dest_queue)
        if state is not None:
            reason, why = state
            delivered = reason in (Reason.DELIVERED, Reason.TRANSMISSION)
            self._answers.add(arrival.seq, topic, first.subscription, reason, why, delivered=delivered)
        else:
            say = "" if len(copies) == 1 and not first.from_retained else partial(_delivery_sentence, copies)
            self._answers.add(arrival.seq, topic, first.subscription, Reason.DELIVERED, say, delivered=True)

    def _passed_over(self, arrival: Arrival, traced: TracedOperation, most: int | None) -> None:
        for passed in traced.passed_over[:most]:
            reason, subscription = OF_RULE[passed.rule], passed.subscription
            if reason in PLACES and (
                subscription.sub_id in self._served or not self._would_reach_there(passed, traced.operation, arrival)
            ):
                continue
            say = partial(rule_sentence, passed, self._space.topic_objects)
            self._answers.add(arrival.seq, passed.topic_string, subscription, reason, say)

    def _would_reach_there(self, passed: PassedOver, operation: Operation, arrival: Arrival) -> bool:
        """Whether a publication would reach a subscription if that were on its stream and its subscription point."""
        publication = passed.publication
        there = moved_to(publication, passed.subscription, self._broker)
        if not selects(there.topic_string, there.wildcard, passed.topic_string):
            return False
        if isinstance(operation, PublishToTopic):
            return self._would_reach(there, operation, arrival)
        # What a replay retains is in memory.
        assert isinstance(publication, Publication)
        if isinstance(operation, RequestRetained):
            there = replace(there, options=replace(there.options, pub_on_req_only=False))
        elif there.options.new_pubs_only:
            return False
        return self._would_reach(there, PublishToTopic(passed.topic_string, publication), arrival)

    def _lapsed(self, arrival: Arrival, operation: Operation) -> None:
        """Retained publications that expired before a subscriber came who would have got them."""
        asks = isinstance(operation, RequestRetained)
        if not isinstance(operation, RequestRetained) and not _sends_retained(operation):
            return
        subscription = operation.subscription
        for topic, publication in self._roster.lapsed.match(subscription)[:_MOST_RETAINED]:
            rule = self._space.rule_for(subscription, PublishToTopic(topic, publication), arrival.now)
            if publication.expires_at is not None and (rule is None or (asks and rule is Rule.REQUEST_ONLY)):
                why = f"the retained publication on this topic expired at {iso(publication.expires_at)}"
                self._answers.add(arrival.seq, topic, subscription, Reason.EXPIRED_PUBLICATION, why)

    # Publications that missed somebody

    def _missed(self, arrival: Arrival, command: Publish, trace: Trace) -> None:
        asked = self._asked
        operations = [t.operation for t in trace.operations if isinstance(t.operation, PublishToTopic)]
        prefix = prefix_of(command.topics, operations)
        for operation in operations:
            topic = operation.topic_string
            self._seen.add(topic, arrival.seq)
            if not self._answers.is_about(arrival.seq, topic):
                continue
            self._published = True
            self._near_misses(arrival, operation, prefix, trace)
            self._former_ones(arrival, operation, trace)
            if asked.names_publication and asked.names_subscriber:
                self._no_matches(arrival, topic)

    def _near_misses(self, arrival: Arrival, operation: PublishToTopic, prefix: str, trace: Trace) -> None:
        topic, publishing = operation.topic_string, Publishing.of(operation, prefix)
        served: set[tuple[str, str, bytes]] | None = None
        queues = {delivery.subscription.dest_queue for delivery in trace.deliveries} if self.doubts else frozenset()
        done = []
        for miss in self._roster.near.find(publishing, self._space.match(topic, arrival.now)):
            subscription = miss.subscription
            if miss.reason in PLACES and subscription.sub_id in self._served:
                continue
            if served is None:
                served = {delivery.subscription.traditional_identity for delivery in trace.deliveries}
            if subscription.dest_queue in queues and self.doubts.is_assumed(subscription.sub_id):
                continue
            if subscription.traditional_identity in served or not self._would_reach(miss.corrected, operation, arrival):
                continue
            if self._answers.add(arrival.seq, topic, subscription, miss.reason, miss.why) and self._answers.is_last(
                subscription, miss.reason
            ):
                done.append(subscription.sub_id)
        for sub_id in done:
            self._roster.near.remove(sub_id)

    def _would_reach(self, corrected: Subscription, operation: PublishToTopic, arrival: Arrival) -> bool:
        """Whether the publication would reach a subscription with its topic corrected, which could be registered."""
        if self._space.rule_for(corrected, operation, arrival.now) is not None:
            return False
        if corrected.admin:
            return True
        literal = parse_pattern(corrected.topic_string, corrected.wildcard).literal_topic
        attributes = self._space.topic_objects.resolve(literal)
        if not (attributes.sub and attributes.durable_subs):
            return False
        return self._broker.authority.may_use_topic(corrected.user, Action.SUBSCRIBE, literal)

    def _former_ones(self, arrival: Arrival, operation: PublishToTopic, trace: Trace) -> None:
        topic = operation.topic_string
        found = self._roster.former.match(topic)
        if not found:
            return
        served = {(d.subscription.dest_qmgr, d.subscription.dest_queue) for d in trace.deliveries}
        for former in found:
            subscription = former.subscription
            if (subscription.dest_qmgr, subscription.dest_queue) in served:
                continue
            if former.has_ended(arrival.now) or self._space.rule_for(subscription, operation, arrival.now) is not None:
                continue
            if self._answers.add(arrival.seq, topic, subscription, former.reason, former.why) and self._answers.is_last(
                subscription, former.reason
            ):
                self._roster.former.remove(subscription.sub_id)
                self._answers.mentioned.discard(subscription.sub_id)

    def _no_matches(self, arrival: Arrival, topic: str) -> None:
        """A line for each subscription that is asked for, and that no answer about this publication was about."""
        said = self._answers.about(topic)
        for subscription in self._roster.near:
            is_selected = selects(subscription.topic_string, subscription.wildcard, topic)
            if (subscription.dest_queue, subscription.name) not in said and not is_selected:
                written = written_topic(subscription)
                differ = difference_words(written, subscription.wildcard, topic.removeprefix(f"{subscription.prefix}/"))
                why = f"the subscription to {written!r} does not select {topic!r}{differ and f': {differ}'}"
                self._answers.add(arrival.seq, topic, subscription, Reason.NO_MATCH, why)


def _sends_retained(operation: Operation) -> TypeGuard[Subscribe | AlterSubscription]:
    """Whether a new or changed subscription gets what is retained; a change seldom does."""
    return isinstance(operation, Subscribe | AlterSubscription) and operation.send_retained


def prefix_of(topics: Sequence[str], operations: Sequence[PublishToTopic]) -> str:
    """What a Publish to *topics* was published below: the prefix of its stream and its subscription point."""
    if all(operation.topic_string in topics for operation in operations):
        return ""
    first = operations[0].topic_string
    found = sorted((first[: -len(topic) - 1] for topic in topics if first.endswith(f"{SEPARATOR}{topic}")), key=len)
    fitting = (
        prefix for prefix in found if prefix and all(op.topic_string[len(prefix) + 1 :] in topics for op in operations)
    )
    return next(fitting, "")


def _delivery_sentence(copies: Sequence[Delivery]) -> str:
    first = copies[0]
    said = []
    if first.from_retained:
        said.append(f"retained since {iso(first.publication.published_at)}")
    if len(copies) > 1:
        said.append(f"one message for {len(copies)} topics")
    return "; ".join(said)
