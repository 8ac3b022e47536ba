"""The replay as a continuous query: captured messages come in, puts go out, for as long as the query runs.

Each queue manager is one group of rows. What its broker knows, subscriptions, retained publications and the place in
the order of ``seq``, is in Spark's state store, and in the checkpoint with it: a batch that is tried again, or a query
that is started again, begins with what the last finished batch left, so that no put is lost and none doubled.

Within a batch messages are put in the order of ``seq``. A message that may come in a later batch than one behind it
asks for patience: with ``hold`` a message waits, in the state, until one with a ``seq`` that many higher has come, or
nothing has for ``idle_s``. What comes later still is not processed, and not lost either: it goes out as it came, with
``late`` for its kind; and so does a second message with the same ``seq``, unless it is an exact copy of one that is
there: a replay that never ends cannot end with an error as the others do. A record that could not be read goes out
with ``problem`` for its kind.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from pyspark.sql import (
    Column,
    DataFrame,
    Row,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from commands.broker.outcome import Arrival
from commands.broker.state import subscription_of, subscription_state
from commands.broker.times import from_microseconds, to_microseconds
from commands.mqsc.broker import Broker
from commands.replay.arrivals import DEFAULT_QMGR
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.schemas import CAPTURED, STREAMED, check_columns
from rfh2.errors import QPubSubError
from rfh2.message import decode, encode
from streams import operations as op

# A broker that continues another one: its knowledge as rows of a state, and the next messages.
#
# Between two batches of a continuous replay, a broker is stored as rows: its subscriptions, its retained publications,
# and a position in the order of ``seq``. A broker made from the rows makes the same puts as the first one would.

_ATTRIBUTES: Final = tuple(each.name for each in fields(op.Publication) if each.name != "message")


class RetainedRow(NamedTuple):
    """A retained publication as it is kept: the message that it came with, and everything else as JSON.

    seq: of the command that published it.
    """

    seq: int
    attributes: str
    md: bytes
    body: bytes


class Waiting(NamedTuple):
    """A captured message without its queue manager and seq. at: its time, in microseconds since 1970."""

    at: int | None
    queue: str
    user: str | None
    md: bytes | None
    body: bytes


def begun(setting: ReplaySetup, qmgr: str, first: datetime) -> Broker:
    """A broker just before its first message, which comes at *first*."""
    return replace(setting, begins={qmgr: first}).broker(qmgr)


def continued(
    setting: ReplaySetup, qmgr: str, subscriptions: Iterable[str], retained: Iterable[tuple[str, RetainedRow]]
) -> Broker:
    """A broker with these subscriptions and these retained publications, which are given by topic string."""
    broker = setting.broker(qmgr)
    known = [subscription_of(state) for state in subscriptions]
    published: dict[tuple[int, str], op.Publication] = {}
    restored = []
    for topic, row in retained:
        # What one message published on several topics stays one publication.
        key = (row.seq, row.attributes)
        if key not in published:
            published[key] = _publication(row)
        restored.append(op.RetainedPublication(topic, published[key]))
    broker.space.restore(known, restored, setting.broker(qmgr).space)
    return broker


@dataclass
class Changes:
    """The changes of a batch to the rows; None for a row that is deleted."""

    subscriptions: dict[bytes, str | None] = field(default_factory=dict)
    retained: dict[str, RetainedRow | None] = field(default_factory=dict)

    @classmethod
    def first(cls, broker: Broker) -> Changes:
        """The state of a broker before its first message."""
        return cls({each.sub_id: subscription_state(each) for each in broker.space.subscriptions()})

    def take(self, seq: int, effects: Iterable[op.Effect]) -> None:
        """Note the changes of one message."""
        last: tuple[op.Published, RetainedRow] | None = None
        for effect in effects:
            match effect:
                case op.SubscriptionAdded(subscription) | op.SubscriptionAltered(_, subscription):
                    self.subscriptions[subscription.sub_id] = subscription_state(subscription)
                case op.SubscriptionRemoved(subscription):
                    self.subscriptions[subscription.sub_id] = None
                case op.RetainedStored(retained):
                    # Topics that retain one publication share its bytes.
                    if last is None or last[0] is not retained.publication:
                        last = retained.publication, _retained_row(seq, retained.publication)
                    self.retained[retained.topic_string] = last[1]
                case op.RetainedCleared(topic):
                    self.retained[topic] = None


def _retained_row(seq: int, publication: op.Published) -> RetainedRow:
    attributes: dict[str, Any] = {}
    for name in _ATTRIBUTES:
        value = getattr(publication, name)
        attributes[name] = {"us": to_microseconds(value)} if isinstance(value, datetime) else value
    message = publication.message
    return RetainedRow(seq, json.dumps(attributes), message.mqmd.encode(), encode(message))


def _publication(row: RetainedRow) -> op.Publication:
    attributes: dict[str, Any] = {
        name: from_microseconds(value["us"]) if isinstance(value, dict) else value
        for name, value in json.loads(row.attributes).items()
    }
    return op.Publication(decode(row.body, row.md), **attributes)


# Which messages are next


@dataclass(frozen=True, slots=True)
class DueMessages:
    """What becomes of the messages that are there.

    due: to be processed, in order. waits: those that have come and wait. released: the seq of those that had waited and
    are due. late: those that came too late, or with the seq of another message; an exact copy of one that is there is
    passed over. highest: the highest seq so far.
    """

    due: tuple[tuple[int, Waiting], ...]
    waits: dict[int, Waiting]
    released: tuple[int, ...]
    late: tuple[tuple[int, Waiting], ...]
    highest: int


def turn(
    new: Sequence[tuple[int, Waiting]], waiting: Mapping[int, Waiting], last: int, highest: int, hold: int
) -> DueMessages:
    """Sort out what is due: up to *hold* below the highest seq.

    new: in any order. waiting: what waits since earlier batches. last: the seq of the last one processed. highest: of
    all that have come.
    """
    late = []
    taken: dict[int, Waiting] = {}
    # In an order of their own, so that a batch which is tried again chooses the same one of two with one seq.
    for seq, message in sorted(new, key=_order):
        known = waiting.get(seq) or taken.get(seq)
        if seq <= last or (known is not None and known != message):
            late.append((seq, message))
        elif known is not None:
            continue
        else:
            taken[seq] = message
    highest = max((highest, *taken))
    limit = highest - hold
    due = sorted((seq, message) for seq, message in (*waiting.items(), *taken.items()) if seq <= limit)
    return DueMessages(
        tuple(due),
        {seq: message for seq, message in taken.items() if seq > limit},
        tuple(seq for seq in waiting if seq <= limit),
        tuple(late),
        highest,
    )


def _order(numbered: tuple[int, Waiting]) -> tuple[Any, ...]:
    seq, (at, queue, user, md, body) = numbered
    return (seq, at or 0, queue, user or "", md or b"", body)


LATE: Final = "late"
"""The kind of a row that is no put, but a message that came too late to be processed."""

PROBLEM: Final = "problem"
"""The kind of a row that is no put, but says why a record could not be read."""

STATE_STORE: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""What ``spark.sql.streaming.stateStore.providerClass`` has to be."""

READ: Final = (2,)
"""The formats of state, and of what ``following`` marks with it, that a query goes on with; it writes the last one.
fixtures/checkpoints has one of each. A format stays here until the release after the one that replaced it."""

_ROW: Final = Row(*STREAMED.names)
_PLACE: Final = "last long, now long, digest binary, highest long, setting string"
_WAITING: Final = "at long, queue string, user string, md binary, body binary"
_RETAINED: Final = "seq long, attributes string, md binary, body binary"
_MOST_KNOWN: Final = 64
_NOTHING: Final = (None,) * 4  # topic, sub_name, completion, reason


class SettingChangedError(QPubSubError):
    """A query was started earlier with another setup or other semantics."""


def replay_stream(
    captured: DataFrame,
    setup: str = "",
    semantics: str = "v7",
    *,
    hold: int = 0,
    idle_s: float | None = None,
    monotonic_clock: bool = False,
) -> DataFrame:
    """The puts of a stream of captured messages, late messages and problems: the columns of STREAMED.

    captured: a streaming DataFrame with the columns of CAPTURED, or of READ. setup, semantics, monotonic_clock: as for
    ``replayed``; the same for as long as the checkpoint is used, else the query fails with SettingChangedError. hold:
    how much higher the seq of a message must be that lets one go. idle_s: seconds without a message of its queue
    manager after which whatever waits is let go; None for never. A query with both never ends by itself: it is not for
    the trigger ``availableNow``. Raises SchemaError; QPubSubError where the setup fails.
    """
    check_columns(captured.schema, CAPTURED, "the capture")
    setting = ReplaySetup(setup, semantics, monotonic_clock=monotonic_clock)
    setting.broker(DEFAULT_QMGR)
    captured.sparkSession.conf.set("spark.sql.streaming.stateStore.providerClass", STATE_STORE)
    messages = captured.select(
        F.coalesce(F.nullif("qmgr", F.lit("")), F.lit(DEFAULT_QMGR)).alias("qmgr"),
        "seq",
        F.unix_micros("time").alias("at"),
        F.coalesce("queue", F.lit("")).alias("queue"),
        "user",
        "md",
        "body",
        _problem(captured).alias("problem"),
    )
    processor = _Replay(setting, hold, idle_s, uuid.uuid4().hex)
    return messages.groupBy("qmgr").transformWithState(
        statefulProcessor=processor,
        outputStructType=STREAMED,
        outputMode="Append",
        # A query with timers runs batches even if no message arrives.
        timeMode="None" if idle_s is None or not hold else "ProcessingTime",
    )


def _problem(captured: DataFrame) -> Column:
    known = F.col("problem") if "problem" in captured.columns else F.lit(None).cast("string")
    missing = F.when(F.col("body").isNull() | F.col("seq").isNull(), F.lit("a message without seq or body"))
    return F.coalesce(known, missing)


def digest_of(setting: ReplaySetup, version: int) -> str:
    """What state of a format remembers of a setting."""
    described = json.dumps([version, setting.setup, setting.semantics, *([True] if setting.monotonic_clock else [])])
    return hashlib.sha256(described.encode()).hexdigest()


class _Place(NamedTuple):
    """Where a queue manager is. last: the seq of the last message processed. now: its moment, in microseconds.

    digest: of all that was processed, so that two places are one only where the same messages led there. highest: the
    highest seq that has come. setting: the digest of the setting.
    """

    last: int
    now: int
    digest: bytes
    highest: int
    setting: str


@dataclass
class _Known:
    """A broker that is kept between the batches of one worker, and the place it is at."""

    broker: Broker
    place: _Place


# By query and queue manager. A broker is used only where its place is that of the state.
_KNOWN: Final[dict[tuple[str, str], _Known]] = {}


class _Replay(StatefulProcessor):
    """One queue manager after the other: state in, puts out, state back."""

    def __init__(self, setting: ReplaySetup, hold: int, idle_s: float | None, query: str) -> None:
        self._setting, self._hold, self._idle_s, self._query = setting, hold, idle_s, query
        self._digests = [digest_of(setting, version) for version in READ]

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state."""
        self._handle = handle
        self._place = handle.getValueState("place", _PLACE)
        self._subscriptions = handle.getMapState("subscriptions", "sub_id binary", "state string")
        self._retained = handle.getMapState("retained", "topic string", _RETAINED)
        self._waiting = handle.getMapState("waiting", "seq long", _WAITING)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """The messages of one batch."""
        qmgr, place, new = key[0], self._where(), []
        for row in rows:
            if row.problem is not None:
                yield _row(row.seq, 0, qmgr, PROBLEM, qmgr, row.queue, *_NOTHING, None, None, None, None, row.problem)
            else:
                new.append((row.seq, Waiting(row.at, row.queue, row.user, _bytes(row.md), bytes(row.body))))
        if not new:
            return
        waiting = self._all_waiting()
        found = turn(new, waiting, place.last, place.highest, self._hold)
        for seq, late in found.late:
            time = None if late.at is None else from_microseconds(late.at)
            yield _row(seq, 0, qmgr, LATE, qmgr, late.queue, *_NOTHING, late.md, late.body, time, late.user, None)
        for seq in found.released:
            self._waiting.removeKey((seq,))
        for seq, message in found.waits.items():
            self._waiting.updateValue((seq,), tuple(message))
        self._set_timer(timerValues, bool(found.waits) or len(waiting) > len(found.released))
        yield from self._process(qmgr, found.due, place._replace(highest=found.highest))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        """No message has arrived for a while: process all messages that wait."""
        due = sorted(self._all_waiting().items())
        self._waiting.clear()
        yield from self._process(key[0], due, self._where())

    def close(self) -> None:
        """Nothing to do."""

    def _where(self) -> _Place:
        found = self._place.get()
        if found is None:
            return _Place(-1, 0, b"", -1, self._digests[-1])
        place = _Place(*found)
        if place.setting not in self._digests:
            raise SettingChangedError(
                "the query was begun with another setup, under other semantics, or by another version of qpubsub: "
                "start it as it was, or begin again with another checkpoint and another output"
            )
        return place._replace(digest=bytes(place.digest), setting=self._digests[-1])

    def _all_waiting(self) -> dict[int, Waiting]:
        if not self._hold and not self._waiting.exists():
            return {}
        rows = ((seq, *row) for (seq,), row in self._waiting.iterator())
        return {seq: Waiting(at, queue, user, _bytes(md), bytes(body)) for seq, at, queue, user, md, body in rows}

    def _set_timer(self, timers: Any, wanted: bool) -> None:
        if self._idle_s is None or not self._hold:
            return
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        if wanted:
            self._handle.registerTimer(timers.getCurrentProcessingTimeInMs() + int(self._idle_s * 1000))

    def _process(self, qmgr: str, due: Iterable[tuple[int, Waiting]], place: _Place) -> Iterator[Row]:
        in_order = list(due)
        if not in_order:
            self._place.update(tuple(place))
            return
        changes = Changes()
        broker = self._broker(qmgr, place, in_order[0][1], changes)
        now, digest = from_microseconds(place.now), hashlib.blake2b(place.digest, digest_size=16)
        for seq, message in in_order:
            if message.at is not None:
                at = from_microseconds(message.at)
                now = max(now, at) if self._setting.monotonic_clock else at
            outcome = broker.process(Arrival(seq, now, message.queue, message.md, message.body, message.user))
            changes.take(seq, outcome.effects)
            digest.update(b"%d %d " % (seq, len(message.body)))
            digest.update(message.body)
            for n, put in enumerate(outcome.puts):
                completion = None if put.completion is None else put.completion.value
                where = (put.qmgr, put.queue, put.topic, put.sub_name)
                yield _row(
                    seq, n, qmgr, put.kind.value, *where, completion, put.reason, put.md, put.body, None, None, None
                )
        self._write(changes)
        reached = place._replace(last=in_order[-1][0], now=to_microseconds(now), digest=digest.digest())
        self._place.update(tuple(reached))
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[self._query, qmgr] = _Known(broker, reached)

    def _broker(self, qmgr: str, place: _Place, first: Waiting, changes: Changes) -> Broker:
        """The broker of *qmgr*, at its place: the one that this worker has, or one made from the state."""
        known = _KNOWN.pop((self._query, qmgr), None)
        if known is not None and known.place[:3] == place[:3]:
            return known.broker
        if place.last < 0:
            broker = begun(self._setting, qmgr, from_microseconds(first.at or 0))
            changes.subscriptions.update(Changes.first(broker).subscriptions)
            return broker
        subscriptions = (state for (state,) in self._subscriptions.values())
        retained = (
            (topic, RetainedRow(seq, attributes, bytes(md), bytes(body)))
            for (topic,), (seq, attributes, md, body) in self._retained.iterator()
        )
        return continued(self._setting, qmgr, subscriptions, retained)

    def _write(self, changes: Changes) -> None:
        for sub_id, state in changes.subscriptions.items():
            if state is None:
                self._subscriptions.removeKey((sub_id,))
            else:
                self._subscriptions.updateValue((sub_id,), (state,))
        for topic, row in changes.retained.items():
            if row is None:
                self._retained.removeKey((topic,))
            else:
                self._retained.updateValue((topic,), tuple(row))


def _row(*values: Any) -> Row:
    made: Row = _ROW(*values)
    return made


def _bytes(value: bytes | bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
