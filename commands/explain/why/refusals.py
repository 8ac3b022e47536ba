"""Messages that were refused, could not be read, or were put to a queue that no broker reads: whom that concerns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product

from commands.broker.context import not_read, prefix_of_sub_point
from commands.broker.core import BrokerCore
from commands.broker.objects import CONTROL_QUEUE
from commands.broker.outcome import Arrival, Outcome, Trace
from commands.broker.puts import PutKind
from commands.explain.why.answers import Answers, Doubts
from commands.explain.why.attempts import (
    Attempt,
    DeadPublication,
    attempt,
    dead_publication,
    publications_of,
    subscriptions_of,
)
from commands.explain.why.near import Publishing, place_prefix
from commands.explain.why.roster import Roster, SeenTopics
from commands.explain.why.rules import disabled_sentence
from commands.explain.why.verdict import PLACES, Reason
from commands.model import Publish, RegisterSubscriber
from rfh2.constants import MQAT_BROKER, MQRC_NOT_AUTHORIZED, MQRC_PUT_INHIBITED, MQRCCF_NOT_AUTHORIZED, reason_text
from streams.operations import AlterSubscription, PublishToTopic, Subscribe
from streams.patterns import written_topic
from streams.subscriptions import Subscription
from streams.topic_strings import add_prefix

_UNAUTHORIZED = (MQRCCF_NOT_AUTHORIZED, MQRC_NOT_AUTHORIZED)


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
        if wanted is None or wanted.message.mqmd.put_appl_type == MQAT_BROKER:
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
        if code == MQRC_PUT_INHIBITED:
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
    return f"{code} {reason_text(code)}: {why}" if str(code) not in why else why
