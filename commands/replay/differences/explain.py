"""Why one version makes a put that the other version does not make.

A difference has its reason in the command itself (scope, stream, several topics ...), or in an earlier command that
left the two versions with different subscriptions, which ``Causes`` remembers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from commands.broker.forward import delivered_topic
from commands.broker.puts import Copies, Outgoing
from commands.headers.registry import parse
from commands.model import Command, RequestUpdate
from commands.replay.differences.causes import NO_RULE, Cause, Causes, Explained, of_publisher, of_unlisted_stream
from commands.replay.differences.observe import ComparedMessage, Key, Observed, descriptor_of, key_of
from commands.replay.differences.report import Change, PutDifference
from rfh2.constants import REASON_NAMES
from rfh2.errors import QPubSubError
from rfh2.layouts import MQMD1
from rfh2.mqmd import name_of
from streams.operations import Delivery
from streams.patterns import parse_pattern
from streams.subscriptions import PublicationFormat, Subscription, WildcardScheme
from streams.topic_strings import SEPARATOR, is_within


def of_delivery(step: ComparedMessage, delivery: Delivery, change: Change) -> Explained:
    """Why one version alone delivers. change: GAINED or LOST."""
    explained = of_unlisted_stream(step) or of_publisher(step)
    if explained is None and change is Change.GAINED:
        explained = _of_scope(delivery)
    if explained is None:
        explained = _of_place(delivery)
    if explained is None and delivery.from_retained:
        explained = _of_retained(delivery, change)
    return explained or (_of_wildcards(delivery, change) if step.by_character else None)


def of_content(step: ComparedMessage, old: Delivery, new: Delivery, together: tuple[Delivery, ...]) -> Explained:
    """Why both deliver, and not the same message. together: what version 6 put in one message with *old*."""
    if (explained := of_publisher(step)) is not None:
        return explained
    if len(together) > 1:
        return "D11", "version 6 names all topics in one message"
    if together and together[0].subscription.sub_id != old.subscription.sub_id:
        return "D12", "version 6 puts one message, as another of its subscriptions has it"
    if old.from_retained and new.from_retained:
        return _of_place(new) or _of_retained(old, Change.LOST)
    return None


def _of_wildcards(delivery: Delivery, change: Change) -> Explained:
    """Whether the pattern fits the topic as the version that delivers reads it, and not as the other one does."""
    scheme = WildcardScheme.TOPIC if change is Change.LOST else WildcardScheme.CHAR
    subscription = delivery.subscription
    if subscription.format is PublicationFormat.RFH1 or subscription.wildcard is scheme:
        return None
    if parse_pattern(subscription.topic_string, scheme).matches(delivery.topic_string):
        return None
    return "D14", "version 6 reads the wildcards of MQRFH2 as characters"


def _of_scope(delivery: Delivery) -> Explained:
    subscription, publication = delivery.subscription, delivery.publication
    if publication.local and not subscription.options.local:
        return "D01", "the publication is local, the subscription is not"
    if subscription.options.local and not publication.local:
        return "D02", "the subscription is local, the publication is not"
    return None


def _of_place(delivery: Delivery) -> Explained:
    """Whether version 6 keeps the two apart by subscription point or stream."""
    subscription, publication = delivery.subscription, delivery.publication
    if publication.sub_point != subscription.sub_point:
        return "D22", f"published on subscription point {publication.sub_point or 'none'}"
    if publication.stream is not None and _is_mqrfh2(delivery):
        return "D23", f"an MQRFH2 publisher put to {publication.stream}"
    if publication.stream != subscription.stream:
        where = publication.stream or "the default stream"
        if _from_outside(delivery):
            return "D08", f"published on {where}"
        return "D09", f"the topic is one of {where}, too"
    return None


def _from_outside(delivery: Delivery) -> bool:
    """Whether the stream's topic object, with WILDCARD(BLOCK), would keep the two apart; else their topics are one."""
    subscription, publication = delivery.subscription, delivery.publication
    if publication.stream is None:
        return not subscription.prefix
    command = _command_of(delivery)
    written = command.topics if command is not None else ()
    ends = (SEPARATOR + topic for topic in written if delivery.topic_string.endswith(SEPARATOR + topic))
    prefix = delivery.topic_string.removesuffix(next(ends, delivery.topic_string))
    pattern = parse_pattern(subscription.topic_string, subscription.wildcard)
    return not prefix or not is_within(prefix, pattern.literal_topic)


def _of_retained(delivery: Delivery, change: Change) -> Explained:
    """Why one version alone still has what was published where the subscription is.

    Under version 6 an MQRFH2 publisher's DeletePub, too, is to no stream; a DeletePub otherwise deletes more in version
    7, where a stream's topics may be those of another.
    """
    if change is Change.GAINED:
        return "D23", "version 6 has it deleted by an MQRFH2 publisher who put to a stream queue"
    if _is_mqrfh2(delivery):
        return "D23", "version 7 has it, or had it deleted, on the stream that its MQRFH2 publisher put to"
    if delivery.publication.stream is None:
        return (
            "D33",
            "version 7 had it deleted by a DeletePub of the other scope, or by one on a stream that it is in (D09)",
        )
    return "D09", "version 7 had it deleted or replaced by way of another stream, or by an MQRFH2 publisher"


def _is_mqrfh2(delivery: Delivery) -> bool:
    command = _command_of(delivery)
    return command is not None and command.header is PublicationFormat.RFH2


def _command_of(delivery: Delivery) -> Command | None:
    try:
        return parse(delivery.publication.message)
    except QPubSubError:
        return None


_Place = tuple[Key, str]
_PRODUCT = b"AMQ "
_AT: Final = MQMD1.slices()
_MSG_ID, _CORREL_ID = _AT["MsgId"], _AT["CorrelId"]


class Explainer:
    """Explains the differences of one queue manager, message after message. causes: as they are before the message."""

    def __init__(self, causes: Causes | None = None) -> None:
        self.causes = causes if causes is not None else Causes()

    def step(self, step: ComparedMessage) -> list[PutDifference]:
        """The differences in what one message leads to; the causes are brought up to date."""
        self.causes.learn(step)
        return self.differences(step)

    def differences(self, step: ComparedMessage) -> list[PutDifference]:
        """The same, with causes that take in the message already."""
        if step.old.outcome.puts == step.new.outcome.puts:
            return []
        deliveries = list(self._deliveries(step))
        return [*deliveries, *self._answers(step, deliveries)]

    def _deliveries(self, step: ComparedMessage) -> Iterator[PutDifference]:
        old, new = _places(step.old), _places(step.new)
        for place, reached in new.items():
            if place not in old:
                yield self._one_sided(step, place, reached, Change.GAINED)
        for place, reached in old.items():
            if place not in new:
                yield self._one_sided(step, place, reached, Change.LOST)
        yield from self._together(step, old, new)

    def _one_sided(
        self, step: ComparedMessage, place: _Place, reached: list[_Reached], change: Change
    ) -> PutDifference:
        key, topic = place
        delivery = reached[0].delivery
        cause = self.causes.known.get(key) or self._of_request(step)
        if cause is None:
            cause = Cause(*(of_delivery(step, delivery, change) or NO_RULE), step.arrival.seq)
        count = str(len({each.message for each in reached}))
        counts = ("0", count) if change is Change.GAINED else (count, "0")
        return _difference(step, cause, change, delivery.subscription, topic, counts)

    def _together(self, step: ComparedMessage, old: _Places, new: _Places) -> Iterator[PutDifference]:
        """Compare what reached a subscriber in both versions: the number of messages, and their content."""
        by_subscriber: dict[object, list[_Place]] = {}
        for place in new:
            if place in old:
                by_subscriber.setdefault(new[place][0].delivery.subscription.traditional_identity, []).append(place)
        was_put, now_put = (list(zip(side.publications, side.copies, strict=True)) for side in (step.old, step.new))
        for places in by_subscriber.values():
            before, after = ({each.message for place in places for each in side[place]} for side in (old, new))
            delivery, topic = new[places[0]][0].delivery, places[0][1]
            if len(before) != len(after):
                # A publication may name one topic twice.
                several = len({topic for _, topic in places}) > 1 or len({key for key, _ in places}) == 1
                why = "the publication names several topics" if several else "several of its subscriptions match"
                counts = (str(len(before)), str(len(after)))
                rule = "D11" if several else "D12"
                yield _difference(
                    step, Cause(rule, why, step.arrival.seq), Change.SPLIT, delivery.subscription, topic, counts
                )
                continue
            for place in places:
                was, now = old[place][0], new[place][0]
                if _as_delivered(*was_put[was.message]) != _as_delivered(*now_put[now.message]):
                    cause = self.causes.known.get(place[0])
                    if cause is None:
                        found = of_content(step, was.delivery, now.delivery, step.old.copies[was.message])
                        cause = Cause(*(found or NO_RULE), step.arrival.seq)
                    yield _difference(step, cause, Change.CONTENT, now.delivery.subscription, place[1], ("1", "1"))

    def _of_request(self, step: ComparedMessage) -> Cause | None:
        """Of a command that asks for what is retained: the versions may take it to mean other subscriptions."""
        command = step.new.outcome.command or step.old.outcome.command
        return self.causes.explained(step) if isinstance(command, RequestUpdate) else None

    def _answers(self, step: ComparedMessage, deliveries: list[PutDifference]) -> Iterator[PutDifference]:
        old, new = ([_answer(put) for put in side.answers] for side in (step.old, step.new))
        if old == new:
            return
        cause = self.causes.explained(step)
        if cause is None and deliveries:
            # The answer depends on the deliveries: ReqUpdate finds a retained publication, or none.
            first = deliveries[0]
            cause = Cause(first.rule, first.why, step.arrival.seq if first.since is None else first.since)
        if cause is None:
            cause = Cause(*NO_RULE, step.arrival.seq)
        command = step.new.outcome.command or step.old.outcome.command
        yield _put_difference(
            step,
            cause,
            Change.ANSWER,
            queue=(step.new.answers or step.old.answers)[0].queue,
            topic=command.topics[0] if command is not None and command.topics else None,
            counts=(_said(step.old.answers), _said(step.new.answers)),
        )


@dataclass(frozen=True, slots=True)
class _Reached:
    """A publication that reached a subscription, and the number of the message that it went in."""

    delivery: Delivery
    message: int


_Places = dict[_Place, list[_Reached]]


def _places(observed: Observed) -> _Places:
    """By subscription and topic."""
    numbers: dict[tuple[int, object], int] = {}
    single: dict[tuple[int, bytes, str], list[int]] = {}
    for number, (first, *others) in enumerate(observed.copies):
        numbers[id(first.publication), first.subscription.traditional_identity] = number
        for delivery in (first, *others):
            place = (id(delivery.publication), delivery.subscription.sub_id, delivery.topic_string)
            single.setdefault(place, []).append(number)
    found: _Places = {}
    for delivery in observed.deliveries:
        subscription, publication = delivery.subscription, id(delivery.publication)
        # A publication that is in no message was left out, because another subscription of the subscriber has the
        # message.
        other = numbers.get((publication, subscription.traditional_identity), -1)
        own = single.get((publication, subscription.sub_id, delivery.topic_string))
        number = own.pop(0) if own else other
        found.setdefault((key_of(subscription), delivered_topic(subscription, delivery.topic_string)), []).append(
            _Reached(delivery, number)
        )
    return found


def _as_delivered(put: Outgoing, copy: Copies) -> tuple[object, ...]:
    """A publication as it was put, without the identifiers that each version counts for itself."""
    md, correl_id = put.md, put.md[_CORREL_ID]
    made_up = correl_id == copy[0].subscription.sub_id
    return md[: _MSG_ID.start], None if made_up else correl_id, md[_CORREL_ID.stop :], put.body


def _difference(
    step: ComparedMessage, cause: Cause, change: Change, subscription: Subscription, topic: str, counts: tuple[str, str]
) -> PutDifference:
    return _put_difference(step, cause, change, subscription.dest_queue, topic, counts, subscription)


def _put_difference(
    step: ComparedMessage,
    cause: Cause,
    change: Change,
    queue: str,
    topic: str | None,
    counts: tuple[str, str],
    subscription: Subscription | None = None,
) -> PutDifference:
    command = step.new.outcome.command or step.old.outcome.command
    user, mqmd = step.arrival.user, descriptor_of(step.arrival)
    return PutDifference(
        seq=step.arrival.seq,
        time=step.arrival.now,
        qmgr=step.qmgr,
        user=name_of(mqmd.user_identifier) if user is None else user,
        program=name_of(mqmd.put_appl_name),
        command=None if command is None else command.word,
        rule=cause.rule,
        since=None if cause.since == step.arrival.seq else cause.since,
        change=change,
        queue=queue,
        sub_name=None if subscription is None else subscription.name,
        sub_user=None if subscription is None else subscription.user,
        topic=topic,
        old=counts[0],
        new=counts[1],
        why=cause.why,
    )


def _answer(put: Outgoing) -> tuple[object, ...]:
    """A response or dead letter, without what is counted."""
    mqmd = put.mqmd
    msg_id = mqmd.msg_id if mqmd.msg_id[:4] != _PRODUCT else bytes(24)
    return (put.kind, put.qmgr, put.queue, put.completion, put.reason, replace(mqmd, msg_id=msg_id), put.body)


def _said(answers: tuple[Outgoing, ...]) -> str:
    return "; ".join(f"{put.kind} {put.completion}{_reason(put.reason)}" for put in answers) or "nothing"


def _reason(reason: int | None) -> str:
    return "" if reason is None else f" {reason} {REASON_NAMES.get(reason, '')}".rstrip()
