"""Why version 7 puts what version 6 does not, and the other way round.

A difference has its reason in the command itself (scope, stream, several topics ...), or in an earlier command that
left the two versions with different subscriptions. ``Causes`` remembers the latter: for each subscription that is not
the same in both, the rule and the command. So a publication that one version alone delivers is explained by the
registration that it alone accepted, however long ago.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from commands.model import Publish
from commands.objects import DEFAULT_STREAM
from commands.puts import Outgoing
from commands.replay.differences.commands_compared import Explained, rule_of
from commands.replay.differences.model import FINDING, Change, Difference
from commands.replay.differences.observe import Observed, Step
from commands.replay.differences.subscribers import Key, key_of, same, told_topic
from rfh2.constants import REASON_NAMES
from rfh2.errors import DecodeError
from rfh2.mqmd import Mqmd, name_of
from streams.operations import (
    Delivery,
    Effect,
    SubscriptionAdded,
    SubscriptionAltered,
    SubscriptionRemoved,
)
from streams.patterns import parse_pattern
from streams.subscriptions import PublicationFormat, Subscription

_Place = tuple[Key, str]
_PRODUCT = b"AMQ "
_NOWHERE = (FINDING, "no rule explains it")


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a subscription is not the same in both versions, and since which command."""

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

    def learn(self, step: Step) -> list[tuple[Key, Cause | None]]:
        """Take in what a command did to subscriptions; what became known by it, None for what is the same again.

        What is the same again stays known for the command that made it so.
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
                rule, why = rule_of(step) or _NOWHERE
                self.known[key] = Cause(rule, why, step.arrival.seq)
                learnt.append((key, self.known[key]))
        return learnt


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


class Explainer:
    """Explains the differences of one queue manager, message after message. causes: as they are before the message."""

    def __init__(self, causes: Causes | None = None) -> None:
        self.causes = causes if causes is not None else Causes()

    def step(self, step: Step) -> list[Difference]:
        """The differences in what one message leads to; the causes are brought up to date."""
        self.causes.learn(step)
        return self.differences(step)

    def differences(self, step: Step) -> list[Difference]:
        """The same, with causes that take in the message already."""
        if step.old.outcome.puts == step.new.outcome.puts:
            return []
        deliveries = list(self._deliveries(step))
        return [*deliveries, *self._answers(step, deliveries)]

    def _deliveries(self, step: Step) -> Iterator[Difference]:
        old, new = _places(step.old), _places(step.new)
        for place, reached in new.items():
            if place not in old:
                yield self._one_sided(step, place, reached, Change.GAINED)
        for place, reached in old.items():
            if place not in new:
                yield self._one_sided(step, place, reached, Change.LOST)
        yield from _together(step, old, new)

    def _one_sided(self, step: Step, place: _Place, reached: list[_Reached], change: Change) -> Difference:
        key, topic = place
        delivery = reached[0].delivery
        cause = self.causes.known.get(key)
        if cause is not None:
            rule, why = cause.rule, cause.why
        else:
            rule, why = _of_publication(step, delivery, change)
        since = cause.since if cause is not None and cause.since != step.arrival.seq else None
        count = str(len({each.message for each in reached}))
        counts = ("0", count) if change is Change.GAINED else (count, "0")
        return _difference(step, rule, why, since, change, delivery.subscription, topic, counts)

    def _answers(self, step: Step, deliveries: list[Difference]) -> Iterator[Difference]:
        old, new = ([_answer(put) for put in side.answers] for side in (step.old, step.new))
        if old == new:
            return
        # What is answered follows from what is delivered: ReqUpdate finds something, or nothing.
        delivered = (deliveries[0].rule, deliveries[0].why) if deliveries else None
        rule, why = rule_of(step) or delivered or self._by_state(step) or _NOWHERE
        put = (step.new.answers or step.old.answers)[0]
        command = step.new.outcome.command or step.old.outcome.command
        yield Difference(
            seq=step.arrival.seq,
            time=step.arrival.now,
            qmgr=step.qmgr,
            user=_user(step),
            command=None if command is None else command.word,
            rule=rule,
            since=None,
            change=Change.ANSWER,
            queue=put.queue,
            sub_name=None,
            topic=command.topics[0] if command is not None and command.topics else None,
            old=_said(step.old.answers),
            new=_said(step.new.answers),
            why=why,
        )

    def _by_state(self, step: Step) -> Explained:
        """An answer that is what it is because of subscriptions that were not the same before."""
        effects = (*step.old.outcome.effects, *step.new.outcome.effects)
        touched = {key for effect in effects for key in _keys(effect)}
        deliveries = (d for side in (step.old, step.new) for copy in side.copies for d in copy)
        touched.update(key_of(delivery.subscription) for delivery in deliveries)
        for key in touched:
            cause = self.causes.known.get(key)
            if cause is not None:
                return cause.rule, cause.why
        # A subscription that one version has and the other has not, and which the command names.
        command = step.new.outcome.command or step.old.outcome.command
        for key, cause in self.causes.known.items():
            if command is not None and key[4] in command.topics:
                return cause.rule, cause.why
        return None


def _keys(effect: Effect) -> tuple[Key, ...]:
    match effect:
        case SubscriptionAdded(subscription) | SubscriptionRemoved(subscription):
            return (key_of(subscription),)
        case SubscriptionAltered(before, after):
            return (key_of(before), key_of(after))
        case _:
            return ()


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
        # What is in no message was left out: another subscription of the subscriber has it told already.
        other = numbers.get((publication, subscription.traditional_identity), -1)
        own = single.get((publication, subscription.sub_id, delivery.topic_string))
        number = own.pop(0) if own else other
        found.setdefault((key_of(subscription), told_topic(delivery)), []).append(_Reached(delivery, number))
    return found


def _together(step: Step, old: _Places, new: _Places) -> Iterator[Difference]:
    """What reached a subscriber in both versions: in as many messages, and with the same content?"""
    by_subscriber: dict[object, list[_Place]] = {}
    for place in new:
        if place in old:
            by_subscriber.setdefault(new[place][0].delivery.subscription.traditional_identity, []).append(place)
    for places in by_subscriber.values():
        before, after = ({each.message for place in places for each in side[place]} for side in (old, new))
        delivery, topic = new[places[0]][0].delivery, places[0][1]
        if len(before) != len(after):
            # A publication may name one topic twice.
            several = len({topic for _, topic in places}) > 1 or len({key for key, _ in places}) == 1
            why = "the publication names several topics" if several else "several of its subscriptions match"
            counts = (str(len(before)), str(len(after)))
            rule = "D11" if several else "D12"
            yield _difference(step, rule, why, None, Change.SPLIT, delivery.subscription, topic, counts)
            continue
        for place in places:
            told = [_told(side, reached[place][0]) for side, reached in ((step.old, old), (step.new, new))]
            if told[0] != told[1]:
                counts = ("1", "1")
                rule, why = _NOWHERE
                yield _difference(step, rule, why, None, Change.CONTENT, delivery.subscription, place[1], counts)


def _told(observed: Observed, reached: _Reached) -> tuple[Mqmd, bytes]:
    """A publication as it was put, without the identifiers that each version counts for itself."""
    put = observed.publications[reached.message]
    mqmd = put.message.mqmd
    made_up = mqmd.correl_id == observed.copies[reached.message][0].subscription.sub_id
    return replace(mqmd, msg_id=bytes(24), correl_id=bytes(24) if made_up else mqmd.correl_id), put.body


def _of_publication(step: Step, delivery: Delivery, change: Change) -> tuple[str, str]:
    """The rule for a delivery to a subscription that is the same in both versions."""
    subscription, publication = delivery.subscription, delivery.publication
    command = step.new.outcome.command or step.old.outcome.command
    if isinstance(command, Publish):
        header, queue = command.header, step.arrival.queue
        if header is PublicationFormat.RFH2 and queue != DEFAULT_STREAM:
            return "D23", f"an MQRFH2 publisher put to {queue}"
    if change is Change.GAINED:
        if publication.local and not subscription.options.local:
            return "D01", "the publication is local, the subscription is not"
        if subscription.options.local and not publication.local:
            return "D02", "the subscription is local, the publication is not"
    if publication.sub_point != subscription.sub_point:
        return "D22", f"published on subscription point {publication.sub_point or 'none'}"
    if publication.stream != subscription.stream:
        wild = parse_pattern(subscription.topic_string, subscription.wildcard).is_wild
        where = publication.stream or "the default stream"
        return ("D08", f"published on {where}") if wild else ("D09", f"the topic is one of {where}, too")
    if delivery.from_retained:
        return "D08", "what was retained is not the same: streams are kept apart otherwise"
    return _NOWHERE


def _difference(
    step: Step,
    rule: str,
    why: str,
    since: int | None,
    change: Change,
    subscription: Subscription,
    topic: str,
    counts: tuple[str, str],
) -> Difference:
    command = step.new.outcome.command or step.old.outcome.command
    return Difference(
        seq=step.arrival.seq,
        time=step.arrival.now,
        qmgr=step.qmgr,
        user=_user(step),
        command=None if command is None else command.word,
        rule=rule,
        since=since,
        change=change,
        queue=subscription.dest_queue,
        sub_name=subscription.name,
        topic=topic,
        old=counts[0],
        new=counts[1],
        why=why,
    )


def _answer(put: Outgoing) -> tuple[object, ...]:
    """A response or dead letter, without what is counted."""
    mqmd = put.message.mqmd
    msg_id = mqmd.msg_id if mqmd.msg_id[:4] != _PRODUCT else bytes(24)
    return (put.kind, put.qmgr, put.queue, put.completion, put.reason, replace(mqmd, msg_id=msg_id), put.body)


def _said(answers: tuple[Outgoing, ...]) -> str:
    return "; ".join(f"{put.kind} {put.completion}{_reason(put.reason)}" for put in answers) or "nothing"


def _reason(reason: int | None) -> str:
    return "" if reason is None else f" {reason} {REASON_NAMES.get(reason, '')}".rstrip()


def _user(step: Step) -> str:
    if step.arrival.user is not None:
        return step.arrival.user
    try:
        md = step.arrival.md
        return "" if md is None else name_of(Mqmd.decode(md).user_identifier)
    except DecodeError:
        return ""
