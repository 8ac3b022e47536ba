"""What the analysis counts in the result of one message, and the analysis of a capture in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from commands.broker.context import semantics_of
from commands.broker.outcome import Arrival, Outcome, Trace
from commands.broker.puts import Copies, Outgoing, PutKind
from commands.broker.reading import natural_queue
from commands.broker.times import EPOCH
from commands.headers.response import Completion
from commands.model import (
    DeletePublication,
    DeregisterSubscriber,
    Publish,
    RegisterSubscriber,
    RegOpt,
    RequestUpdate,
)
from commands.mqsc.broker import Broker
from commands.replay.analysis import tables
from commands.replay.arrivals import Arrivals, in_order
from commands.replay.differences.observe import descriptor_of
from commands.replay.frames import messages_of, needing_pyarrow
from rfh2.captured import CapturedMessage
from rfh2.captures.reading import read_captures
from rfh2.errors import CaptureError
from rfh2.mqmd import name_of
from streams.operations import Delivery, PublishToTopic, SubscriptionAdded
from streams.patterns import written_topic
from streams.subscriptions import Subscription

BY_SETUP = -1
"""The seq of subscriptions that the setup defined."""

_KINDS = (Publish, RegisterSubscriber, DeregisterSubscriber, RequestUpdate, DeletePublication)


@dataclass(frozen=True, slots=True)
class _Seen:
    """One message and its results. deliveries, copies: those that were put."""

    qmgr: str
    arrival: Arrival
    outcome: Outcome
    published: tuple[PublishToTopic, ...]
    deliveries: tuple[Delivery, ...]
    copies: tuple[Copies, ...]
    application: str
    user: str

    @property
    def at(self) -> datetime | None:
        """The time of the message; None where no message has had a time yet."""
        return self.arrival.now if self.arrival.now > EPOCH else None

    def puts(self, kind: PutKind) -> list[Outgoing]:
        return [put for put in self.outcome.puts if put.kind is kind]


def defined(qmgr: str, subscriptions: Iterable[Subscription]) -> Iterator[tables.Fact]:
    """The subscriptions that the setup defined."""
    for subscription in subscriptions:
        yield _of_subscription(qmgr, subscription, (0, 0), BY_SETUP, None)


def facts_of(qmgr: str, arrival: Arrival, outcome: Outcome) -> Iterator[tables.Fact]:
    """The facts about one message that are counted. outcome: with its trace."""
    trace = outcome.trace
    # A refused command put nothing.
    if trace is None or outcome.completion is Completion.ERROR:
        trace = Trace()
    operations = (traced.operation for traced in trace.operations)
    published = tuple(operation for operation in operations if isinstance(operation, PublishToTopic))
    seen = _Seen(qmgr, arrival, outcome, published, trace.deliveries, outcome.copies, *_program(arrival))
    yield from _traffic(seen)
    yield from _topics(seen)
    yield from _subscriptions(seen)
    yield from _duplicates(seen)
    yield from _errors(seen)


def _program(arrival: Arrival) -> tuple[str, str]:
    """The program and the user that put the message, by its descriptor."""
    mqmd = descriptor_of(arrival)
    user = name_of(mqmd.user_identifier) if arrival.user is None else arrival.user
    return name_of(mqmd.put_appl_name), user


def _traffic(seen: _Seen) -> Iterator[tables.Fact]:
    arrival, outcome, at = seen.arrival, seen.outcome, seen.at
    size = len(arrival.body)
    deliveries, responses, dead = (len(seen.puts(kind)) for kind in PutKind)
    publications = int(isinstance(outcome.command, Publish))
    error, passed = int(outcome.completion is Completion.ERROR), int(outcome.completion is None)
    sums = (1, size, publications, deliveries, responses, dead, error, passed)
    yield tables.Fact(tables.QMGRS.name, (seen.qmgr,), sums, arrival.seq, at)
    sums_of_queue = (1, size, publications, deliveries, error, passed)
    yield tables.Fact(tables.STREAMS.name, (seen.qmgr, arrival.queue), sums_of_queue, arrival.seq, at)
    kinds = tuple(int(isinstance(outcome.command, kind)) for kind in _KINDS)
    of_program = (1, size, *kinds, int(not any(kinds)), deliveries, error)
    yield tables.Fact(tables.APPLICATIONS.name, (seen.qmgr, seen.application, seen.user), of_program, arrival.seq, at)
    if at is not None:
        second = at.replace(microsecond=0)
        of_moment = (1, publications, deliveries, error)
        yield tables.Fact(tables.MINUTES.name, (second.replace(second=0),), of_moment, arrival.seq, at)
        yield tables.Fact(tables.SECONDS.name, (second,), of_moment, arrival.seq, at)


def _topics(seen: _Seen) -> Iterator[tables.Fact]:
    seq, at, queue = seen.arrival.seq, seen.at, seen.arrival.queue
    for operation in seen.published:
        size = len(operation.publication.message.body)
        sums = (1, size, 0, int(operation.retain), 0)
        yield tables.Fact(tables.TOPICS.name, (seen.qmgr, operation.topic_string), sums, seq, at, (queue,))
    given = Counter((delivery.topic_string, delivery.from_retained) for delivery in seen.deliveries)
    for (topic, read), count in given.items():
        sums = (0, 0, 0, 0, count) if read else (0, 0, count, 0, 0)
        yield tables.Fact(tables.TOPICS.name, (seen.qmgr, topic), sums, seq, at, (queue,))


def _subscriptions(seen: _Seen) -> Iterator[tables.Fact]:
    seq, at = seen.arrival.seq, seen.at
    for effect in seen.outcome.effects:
        if isinstance(effect, SubscriptionAdded):
            yield _of_subscription(seen.qmgr, effect.subscription, (0, 0), seq, at)
    for delivery in seen.deliveries:
        read = int(delivery.from_retained)
        yield _of_subscription(seen.qmgr, delivery.subscription, (1 - read, read), seq, at)


def _of_subscription(
    qmgr: str, subscription: Subscription, sums: tuple[int, int], seq: int, at: datetime | None
) -> tables.Fact:
    s = subscription
    words = (
        s.user,
        _subscriber(qmgr, s),
        written_topic(s),
        s.name,
        s.stream,
        s.sub_point,
        s.selector,
        s.topic_string,
        s.wildcard.value,
        _options(s),
    )
    return tables.Fact(
        tables.SUBSCRIPTIONS.name, (qmgr, s.sub_id.hex()), sums, seq, at, tuple(word or "" for word in words)
    )


def _options(subscription: Subscription) -> str:
    options = subscription.options
    words = ((RegOpt.PUB_ON_REQ_ONLY, options.pub_on_req_only), (RegOpt.NEW_PUBS_ONLY, options.new_pubs_only))
    return " ".join(word.value for word, is_set in words if is_set)


def _duplicates(seen: _Seen) -> Iterator[tables.Fact]:
    """Messages to one subscriber about one topic of one publication."""
    together: dict[tuple[str, str, bytes, str], list[tuple[Subscription, Outgoing]]] = {}
    puts = seen.puts(PutKind.PUBLICATION)
    for (delivery, *_), put in zip(seen.copies, puts, strict=True):
        if not delivery.from_retained:
            key = (*delivery.subscription.traditional_identity, delivery.topic_string)
            together.setdefault(key, []).append((delivery.subscription, put))
    for (*_, topic), several in together.items():
        if len(several) > 1:
            names = " + ".join(sorted(_named(subscription) for subscription, _ in several))
            size = sum(len(put.body) for _, put in several[1:])
            where = _subscriber(seen.qmgr, several[0][0])
            sums = (1, len(several) - 1, size)
            yield tables.Fact(
                tables.DUPLICATES.name, (seen.qmgr, where, names), sums, seen.arrival.seq, seen.at, (topic,)
            )


def _errors(seen: _Seen) -> Iterator[tables.Fact]:
    outcome = seen.outcome
    if outcome.completion not in (Completion.ERROR, Completion.WARNING):
        return
    command = outcome.command.word if outcome.command is not None else ""
    completion, reason = outcome.completion.value, outcome.reason or 0
    key = (seen.qmgr, completion, reason, seen.application, seen.user, command)
    sums = (1, len(seen.puts(PutKind.RESPONSE)), len(seen.puts(PutKind.DEADLETTER)))
    yield tables.Fact(
        tables.REASONS.name, (completion, reason, command), sums, seen.arrival.seq, seen.at, (outcome.why,)
    )
    yield tables.Fact(tables.ERRORS.name, key, sums, seen.arrival.seq, seen.at, (outcome.why,))


def _subscriber(qmgr: str, subscription: Subscription) -> str:
    """Queue, queue manager where it is another one, and correlation identifier where there is one."""
    to_qmgr, queue, correl_id = subscription.traditional_identity
    where = queue if to_qmgr in ("", qmgr) else f"{queue} at {to_qmgr}"
    return f"{where} {correl_id.hex()}" if any(correl_id) else where


def _named(subscription: Subscription) -> str:
    topic = written_topic(subscription)
    return topic if subscription.name is None else f"{topic} ({subscription.name})"


class LocalAnalysis:
    """Analyses captured messages. setup: MQSC that every queue manager starts with. semantics: ``v7`` or ``v6``."""

    def __init__(self, setup: str = "", semantics: str = "v7") -> None:
        semantics_of(semantics)
        self._setup, self._semantics = setup, semantics
        self._brokers: dict[str, Broker] = {}
        self._arrivals = Arrivals()
        self._counts = tables.TableCounts()

    def take(self, message: CapturedMessage, *, counted: bool = True) -> None:
        """Analyse one message. counted: whether it is in the tables; it changes the broker in either case.

        Raises OutOfOrderError if it came before the last one, QPubSubError if the setup fails.
        """
        self.arrived(*self._arrivals.of(message), counted=counted)

    def arrived(self, qmgr: str, arrival: Arrival, *, counted: bool) -> None:
        """The same for what ``Arrivals`` made of a message; the order is not checked again."""
        broker = self._brokers.get(qmgr)
        if broker is None:
            broker = self._brokers[qmgr] = Broker.of_capture(qmgr, self._setup, self._semantics)
            self._counts.add(defined(qmgr, broker.space.subscriptions()))
        if counted:
            self._counts.add(facts_of(qmgr, arrival, broker.trace(arrival)))
        else:
            broker.process(arrival)

    def rows(self, of: tables.Table | tables.TableView) -> list[tables.Row]:
        """All rows of a table or a view, sorted."""
        return self._counts.rows(of)

    def look(self, of: tables.Table | tables.TableView, most: int | None) -> tuple[int, Sequence[tables.Row]]:
        """How many rows a table or a view has, and the first *most* of them (None: all)."""
        rows = self.rows(of)
        return len(rows), rows[:most]


if TYPE_CHECKING:
    import pyarrow as pa


def analysis_to_batches(
    source: Path | str | BinaryIO,
    table: str,
    format: str = "auto",  # noqa: A002 - as in read_captures
    *,
    setup: str = "",
    semantics: str = "v7",
    on_problem: Callable[[CaptureError], None] | None = None,
) -> pa.RecordBatchReader:
    """A table of the analysis of a capture (docs/analysis.md).

    table: its name, such as ``topics`` or ``never_matched``. The rest is as for ``puts_to_batches``; the whole capture
    is read before there is a batch. Raises ValueError for another name.
    """
    with needing_pyarrow(source):
        import pyarrow as pa  # noqa: PLC0415 - an extra

        from commands.replay.analysis.files import arrow_table_schema  # noqa: PLC0415
    known = {each.name: each for each in (*tables.TABLES, *tables.VIEWS)}
    if table not in known:
        raise ValueError(f"there is no table {table}: use {', '.join(known)}")
    of = known[table]
    schema = arrow_table_schema(of.table if isinstance(of, tables.TableView) else of)

    def batches() -> Iterator[pa.RecordBatch]:
        analysis = LocalAnalysis(setup, semantics)
        for message in in_order(messages_of(records, on_problem)):
            analysis.take(message)
        yield from pa.Table.from_pylist(analysis.rows(of), schema=schema).to_batches()

    records = read_captures(source, format, default_queue=natural_queue)
    return pa.RecordBatchReader.from_batches(schema, batches())
