"""Compares the versions on a capture, and captured messages on subscriber queues with the puts of each version.

A captured message counts as a delivery where a broker put it (PutApplType MQAT_BROKER) on a queue that no broker reads,
and it is a publication, and no dead letter. Deliveries are counted by queue, topics and data; only queues on which any
were captured are compared.

Publications that both versions put alike, like one before them: nothing differs, and no broker has to say so.

Programs publish messages that differ in few places (``commands.templates``). What a version makes of a publication is
decided by its fixed parts, by its topic, and by the subscriptions that match there; texts and data are passed on. So
where both versions put one publication alike, they put the next one alike that has the same fixed parts and topic,
while the same subscriptions match. It is then not processed at all: it changes nothing, and leads to no more than the
deliveries and signs of the first.

The brokers process everything else: what leaves something retained, and what reaches a subscription that does not get
each publication in an MQRFH2. The same goes for a message before which something has expired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from typing import Final, NamedTuple

from commands.broker.forward import delivered_topic
from commands.broker.outcome import Arrival, Outcome
from commands.broker.puts import Copies
from commands.explain.problems import command_of, readable_command
from commands.headers.response import Completion
from commands.model import Publish
from commands.replay.arrivals import Arrivals
from commands.replay.differences.causes import signs_of
from commands.replay.differences.explain import Explainer
from commands.replay.differences.observe import BothVersions, ComparedMessage, Cutover, Observed
from commands.replay.differences.report import DeliveryLine, DifferenceReport, DifferenceTally, PutDifference
from commands.templates.parts import Parts, ShapeKey, parts_of
from commands.templates.templates import has_no_other_header, is_fit
from rfh2.captured import CapturedMessage
from rfh2.constants import MQAT_BROKER, MQRCCF_UNKNOWN_STREAM
from rfh2.dlh import Dlh
from rfh2.explain.reading import PartialMessage, read_message
from streams.operations import PublishToTopic
from streams.subscriptions import Subscription
from streams.topic_space import TopicSpace

_MOST: Final = 65_536


class Delivered(NamedTuple):
    """A publication as one version puts it. topics: those that it names. whose: a ``Whose``."""

    qmgr: str
    queue: str
    topics: tuple[str, ...]
    whose: int


class Alike(NamedTuple):
    """What a publication leads to that both versions put alike. data: what is behind its header."""

    delivered: Sequence[Delivered]
    signs: Sequence[str]
    data: bytes


@dataclass(slots=True)
class _Matched:
    """The subscriptions that a topic of one version matches. as_of: the changes after which it was last seen to."""

    topic: str
    subscriptions: tuple[Subscription, ...]
    as_of: int

    def is_good(self, space: TopicSpace, arrival: Arrival) -> bool:
        """Whether it still does; nothing is due."""
        if self.as_of != space.subscription_changes:
            if space.match(self.topic, arrival.now) != self.subscriptions:
                return False
            self.as_of = space.subscription_changes
        return True


class _Known(NamedTuple):
    matched: tuple[_Matched, _Matched]
    delivered: Sequence[Delivered]
    signs: Sequence[str]


class AlikePublications:
    """Those of one queue manager. old, new: the topic spaces of version 6 and of version 7."""

    def __init__(self, old: TopicSpace, new: TopicSpace) -> None:
        self._spaces = old, new
        self._known: dict[ShapeKey, dict[bytes, _Known]] = {}
        self._count = 0

    def find(self, arrival: Arrival) -> Alike | None:
        """What *arrival* leads to; None where the brokers have to process it."""
        old, new = self._spaces
        if old.is_due(arrival.now) or new.is_due(arrival.now) or (parts := parts_of(arrival)) is None:
            return None
        known = self._known.get(parts.key, {}).get(parts.topic)
        if known is None:
            return None
        of_old, of_new = known.matched
        if not (of_old.is_good(old, arrival) and of_new.is_good(new, arrival)):
            return None
        return Alike(known.delivered, known.signs, arrival.body[parts.length :])

    def learn(self, step: ComparedMessage, delivered: Sequence[Delivered], signs: Sequence[str]) -> None:
        """Learn from a message in which nothing differs. delivered: its publications."""
        parts = parts_of(step.arrival)
        if parts is None:
            return
        sides = zip(self._spaces, (step.old.outcome, step.new.outcome), strict=True)
        old, new = (_matched(space, step.arrival, parts, outcome) for space, outcome in sides)
        if old is None or new is None:
            return
        if self._count >= _MOST:
            self._known.clear()
            self._count = 0
        self._known.setdefault(parts.key, {})[parts.topic] = _Known((old, new), delivered, signs)
        self._count += 1


def _matched(space: TopicSpace, arrival: Arrival, parts: Parts, outcome: Outcome) -> _Matched | None:
    """What the topic matches; None where another such publication may have another result."""
    if outcome.completion is not Completion.OK or outcome.effects or outcome.lost or len(outcome.operations) != 1:
        return None
    (operation,) = outcome.operations
    if not isinstance(operation, PublishToTopic) or operation.not_to is not None:
        return None
    matched = space.match(operation.topic_string, arrival.now)
    if not has_no_other_header(operation.publication.message, parts) or not all(map(is_fit, matched)):
        return None
    return _Matched(operation.topic_string, matched, space.subscription_changes)


Mark = tuple[str, str, bytes, int]
"""A queue manager and a queue, a digest of topics and data, and whose it is."""


_Content = tuple[tuple[str, ...], bytes, bytes]
"""Topics, the fields of the descriptor that say how the body is read, and the body."""

_BODY_FORM: Final = slice(24, 40)  # Encoding, CodedCharSetId, Format


class Whose(IntEnum):
    """The party that put a delivery."""

    CAPTURED = 0
    OLD = 1
    NEW = 2


class Deliveries:
    """Counts deliveries."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, bytes], list[int]] = {}

    def add(self, mark: Mark, count: int = 1) -> None:
        """Add a number to the count of one delivery."""
        qmgr, queue, digest, whose = mark
        self._counts.setdefault((qmgr, queue, digest), [0, 0, 0])[whose] += count

    def lines(self) -> list[DeliveryLine]:
        """One for each queue with captured deliveries, in order of name."""
        by_queue: dict[tuple[str, str], list[list[int]]] = {}
        for (qmgr, queue, _), counts in self._counts.items():
            by_queue.setdefault((qmgr, queue), []).append(counts)
        return lines_of(by_queue)


def lines_of(by_queue: Mapping[tuple[str, str], Sequence[Sequence[int]]]) -> list[DeliveryLine]:
    """One for each queue with captured deliveries, in order of name.

    by_queue: of each delivery of a queue, how often it was captured, put by version 6, put by version 7.
    """
    return [
        _line(*place, counts)
        for place, counts in sorted(by_queue.items())
        if any(each[Whose.CAPTURED] for each in counts)
    ]


def _line(qmgr: str, queue: str, counts: Iterable[Sequence[int]]) -> DeliveryLine:
    sums = dict.fromkeys(DeliveryLine.model_fields.keys() - {"qmgr", "queue"}, 0)
    for captured, old, new in counts:
        sums["captured"] += captured
        for version, put in (("old", old), ("new", new)):
            sums[version] += put
            sums[f"missing_in_{version}"] += max(0, captured - put)
            sums[f"only_in_{version}"] += max(0, put - captured)
    return DeliveryLine(qmgr=qmgr, queue=queue, **sums)


def marks_of(step: ComparedMessage) -> list[Mark]:
    """The deliveries that a message is, or leads to."""
    if step.new.outcome.completion is None and step.old.outcome.completion is None:
        captured = _captured(step)
        return [] if captured is None else [captured]
    digests: dict[_Content, bytes] = {}
    return [*_put(step.old, Whose.OLD, digests), *_put(step.new, Whose.NEW, digests)]


def delivered_by(step: ComparedMessage) -> tuple[Delivered, ...]:
    """The publications that both versions put."""
    sides = ((step.old, Whose.OLD), (step.new, Whose.NEW))
    return tuple(
        [
            Delivered(put.qmgr, put.queue, _topics(copy), int(whose))
            for side, whose in sides
            for put, copy in zip(side.publications, side.copies, strict=True)
        ]
    )


def marks_of_alike(alike: Alike) -> list[Mark]:
    """The deliveries that a publication leads to which was not processed."""
    digests = {topics: _digest(topics, alike.data) for topics in {each.topics for each in alike.delivered}}
    return [(qmgr, queue, digests[topics], whose) for qmgr, queue, topics, whose in alike.delivered]


def not_processed(step: ComparedMessage) -> str | None:
    """The stream of a command that neither version knows; None for every other message.

    Neither reads the queue of its stream, or both refuse the stream. Nothing was compared then. What a broker has put,
    and what is no command, is for programs.
    """
    old, new = step.old.outcome, step.new.outcome
    if old.reason == new.reason == MQRCCF_UNKNOWN_STREAM:
        command = new.command or old.command
        return step.arrival.queue if command is None else command.stream_name
    if old.completion is not None or new.completion is not None:
        return None
    partial = read_arrival(step.arrival)
    if partial.assumed.put_appl_type == MQAT_BROKER:
        return None
    is_command = command_of(partial) is not None or readable_command(partial) is not None
    return step.arrival.queue if is_command else None


def read_arrival(arrival: Arrival) -> PartialMessage:
    """As much of the message as can be read."""
    md_hex = None if arrival.md is None else arrival.md.hex()
    return read_message(CapturedMessage(seq=0, queue=arrival.queue, md_hex=md_hex, body_hex=arrival.body.hex()))


def _captured(step: ComparedMessage) -> Mark | None:
    arrival = step.arrival
    partial = read_arrival(arrival)
    headers = partial.message.headers
    if partial.assumed.put_appl_type != MQAT_BROKER or any(isinstance(header, Dlh) for header in headers):
        return None
    command = command_of(partial)
    if not isinstance(command, Publish):
        return None
    return step.qmgr, arrival.queue, _digest(command.topics, partial.message.body), Whose.CAPTURED


def _put(observed: Observed, whose: Whose, digests: dict[_Content, bytes]) -> list[Mark]:
    """digests: of the message's earlier puts; most have the same content."""
    marks = []
    for put, copy in zip(observed.publications, observed.copies, strict=True):
        topics = _topics(copy)
        content = topics, put.md[_BODY_FORM], put.body
        digest = digests.get(content)
        if digest is None:
            digest = digests[content] = _digest(topics, put.message.body)
        marks.append((put.qmgr, put.queue, digest, int(whose)))
    return marks


def _topics(copies: Copies) -> tuple[str, ...]:
    return tuple([delivered_topic(each.subscription, each.topic_string) for each in copies])


def _digest(topics: Iterable[str], data: bytes) -> bytes:
    digest = blake2b(digest_size=16)
    for topic in topics:
        digest.update(topic.encode("utf-8", "surrogatepass") + b"\0")
    digest.update(b"\0" + data)
    return digest.digest()


@dataclass(slots=True)
class _QueueManager:
    """is_migrated: whether version 7 has begun. last: the number of the last message before that."""

    pair: BothVersions
    alike: AlikePublications
    explainer: Explainer
    is_migrated: bool
    last: int = 0


class LocalDifferences:
    """Compares captured messages. setup: MQSC that every queue manager starts with, in both versions.

    old: which broker of version 6, ``v6`` or ``v6-broker``. watch: called with each message that is reported, and what
    differs in what it leads to. cutover: when version 7 begins with what version 6 has; None, both begin with nothing.
    ``before_cutover`` counts the messages that version 6 alone processed.
    """

    def __init__(
        self,
        setup: str = "",
        old: str = "v6",
        watch: Callable[[ComparedMessage, Sequence[PutDifference]], None] | None = None,
        cutover: Cutover | None = None,
    ) -> None:
        self._setup, self._old, self._watch, self._cutover = setup, old, watch, cutover
        self.before_cutover = 0
        self._qmgrs: dict[str, _QueueManager] = {}
        self._arrivals = Arrivals()
        self._tally, self._deliveries = DifferenceTally(), Deliveries()

    def compare(self, message: CapturedMessage, *, counted: bool = True) -> list[PutDifference]:
        """What differs in what one message leads to.

        counted: whether it is reported. If not, nothing is returned, and both versions process it all the same. Raises
        OutOfOrderError where it came before the last one; QPubSubError where the setup fails.
        """
        return self.arrived(*self._arrivals.of(message), counted=counted)

    def arrived(self, qmgr: str, arrival: Arrival, *, counted: bool) -> list[PutDifference]:
        """The same for what ``Arrivals`` made of a message; the order is not checked again."""
        known = self._qmgrs.get(qmgr)
        if known is None:
            pair = BothVersions(qmgr, self._setup, self._old)
            known = self._qmgrs[qmgr] = _QueueManager(
                pair, AlikePublications(*pair.spaces), Explainer(), self._cutover is None
            )
            known.explainer.causes.begin(*known.pair.subscriptions())
        if self._cutover is not None and not known.is_migrated:
            if arrival.now < self._cutover.at:
                known.pair.before_cutover(arrival)
                known.last = arrival.seq
                self.before_cutover += 1
                return []
            left = known.pair.cut_over(self._cutover)
            known.alike = AlikePublications(*known.pair.spaces)
            known.explainer.causes.begin(*known.pair.subscriptions())
            known.explainer.causes.migrated(left, known.last)
            known.is_migrated = True
        if self._watch is None and (alike := known.alike.find(arrival)) is not None:
            if counted:
                self._take(arrival, (), None, marks_of_alike(alike), alike.signs)
            return []
        step, explainer = known.pair.step(arrival), known.explainer
        if not counted:
            explainer.causes.learn(step)
            return []
        differences, signs = explainer.step(step), signs_of(step)
        self._take(arrival, differences, not_processed(step), marks_of(step), signs)
        if not differences and self._watch is None:
            known.alike.learn(step, delivered_by(step), signs)
        if self._watch is not None:
            self._watch(step, differences)
        return differences

    def _take(
        self,
        arrival: Arrival,
        differences: Sequence[PutDifference],
        stream: str | None,
        marks: Iterable[Mark],
        signs: Iterable[str],
    ) -> None:
        self._tally.message(differences, stream)
        for mark in marks:
            self._deliveries.add(mark)
        for rule in signs:
            self._tally.sign(rule, arrival.seq)

    def report(self) -> DifferenceReport:
        """The report on all messages so far."""
        return self._tally.report(self._deliveries.lines())
