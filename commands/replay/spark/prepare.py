"""Captured messages made ready for a replay: in ranges of ``seq`` of about the same size, each with its moment.

A range is what one task replays. Ranges are made from a histogram of ``seq``, so that neither a hot topic nor a hot
stream, nor numbers that are really time stamps, put most of the work on one task.

A message without a time comes when the last one of its queue manager came. Where the clock goes back *and* something
expires, what has expired depends on single messages: ``Expiry.behind`` names the ranges in which the replay has to find
them (``twopass.ticks_of``). With a monotonic clock no message comes earlier than the one before it, and there are none.

The first pass needs those messages that have a role in it (``FirstPassRole``), which their commands decide. A message
is parsed only if neither its bytes show its role nor one of the same shape was parsed before.

All messages are replayed. Where a person selects some, the column CHOSEN says, up to the last one that a limit allows,
of which the results are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, auto
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import (
    Column,
    DataFrame,
    SparkSession,
    Window,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.types import BooleanType, StructType

from commands.broker.objects import CONTROL_QUEUE
from commands.broker.outcome import Arrival
from commands.broker.times import EPOCH
from commands.explain.selection import EVERYTHING, MessageSelection, compile_where
from commands.headers.registry import parse
from commands.model import DeletePublication, Publish, PubOpt
from commands.replay.arrivals import DEFAULT_QMGR, RepeatedSeqError
from commands.replay.divided import is_plain
from commands.replay.spark.replay_setup import EXPIRY, UNLIMITED, ReplaySetup
from commands.replay.spark.schemas import CAPTURED, COLUMNS, check_columns, columns, message_of
from commands.templates.parts import ShapeKey, parts_of
from rfh2.errors import QPubSubError
from rfh2.message import decode

_MOST_KNOWN: Final = 100_000


class FirstPassRole(Enum):
    """CONTROL: it is on the control queue, or deletes what is retained. RETAINING: it leaves something retained, if it
    succeeds. NONE: it does neither."""

    CONTROL = auto()
    RETAINING = auto()
    NONE = auto()


class Roles:
    """The roles of messages on the control queue and on stream queues."""

    def __init__(self) -> None:
        self._known: dict[ShapeKey, FirstPassRole] = {}

    def of(self, queue: str, md: bytes | None, body: bytes) -> FirstPassRole:
        """The role of one message."""
        if queue == CONTROL_QUEUE:
            return FirstPassRole.CONTROL
        if is_plain(body):
            return FirstPassRole.NONE
        # Messages of one shape are one command, but for texts that only decide whether it succeeds.
        parts = parts_of(Arrival(0, EPOCH, queue, md, body))
        role = None if parts is None else self._known.get(parts.key)
        if role is not None:
            return role
        role = _role_of(md, body)
        if role is None:
            return FirstPassRole.NONE
        if parts is not None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[parts.key] = role
        return role

    def split(self, batch: pa.RecordBatch) -> dict[FirstPassRole, pa.RecordBatch]:
        """The messages of *batch* that have a role, by it; the others, most of a batch, are not copied."""
        places: dict[FirstPassRole, list[int]] = {role: [] for role in FirstPassRole}
        for at, row in enumerate(columns(batch, "queue", "md", "body")):
            places[self.of(*row)].append(at)
        del places[FirstPassRole.NONE]
        return {role: batch.take(pa.array(found, pa.int64())) for role, found in places.items() if found}


def _role_of(md: bytes | None, body: bytes) -> FirstPassRole | None:
    """The role of the command in a message; None where there is none that can be read."""
    try:
        command = parse(decode(body, md))
    except QPubSubError:
        return None
    if isinstance(command, DeletePublication):
        return FirstPassRole.CONTROL
    retains = isinstance(command, Publish) and command.has(PubOpt.RETAIN_PUB)
    return FirstPassRole.RETAINING if retains else FirstPassRole.NONE


def once(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """*rows*, which begin with COLUMNS and are in the order of queue manager and seq: exact copies come once.

    Ticks pass. Raises RepeatedSeqError.
    """
    last: tuple[Any, ...] = (None, None, None)
    for row in rows:
        if row[3] == TICK:
            yield row
            continue
        if row[0] == last[0] and row[2] == last[2]:
            if row != last:
                raise RepeatedSeqError.of(row[0], row[2])
        else:
            yield row
        last = row


def with_role(*wanted: FirstPassRole) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does that keeps the messages with one of these roles."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        roles = Roles()
        for batch in batches:
            yield from (found for role, found in roles.split(batch).items() if role in wanted)

    return run


TICK: Final = "(tick)"
"""The queue of a row that is no message but a moment at which things expire (a tick)."""

CHOSEN: Final = "chosen"
"""The column; messages have it where not all are selected."""

Place = tuple[int, str]
"""The seq and the queue manager of a message: its place in the order of a replay."""


def chosen_column(selection: MessageSelection) -> Column:
    """CHOSEN for messages with the columns of CAPTURED, as they were captured. The limit does not count."""
    if not selection.has_conditions:
        return F.lit(True)

    def is_chosen(seq: int, micros: int | None, *others: Any) -> bool:
        time = None if micros is None else EPOCH + timedelta(microseconds=micros)
        return selection.selects(message_of(seq, time, *others))

    # As a datetime it would be in the zone of the machine.
    given = (F.unix_micros(name) if name == "time" else F.col(name) for name in CAPTURED.names)
    return F.udf(is_chosen, BooleanType(), useArrow=False)(*given)


def selected(captured: DataFrame, selection: MessageSelection) -> DataFrame:
    """The messages of *captured*, which has the columns of CAPTURED, that are selected; none that cannot be read."""
    if selection.is_all:
        return captured
    found = captured.where("body is not null").where(chosen_column(selection))
    return found if selection.limit is None else found.orderBy("seq", "qmgr").limit(selection.limit)


def chosen_of(batch: pa.RecordBatch, selection: MessageSelection) -> pa.Array:
    """The same for a batch."""
    if not selection.has_conditions:
        return pa.array([True] * batch.num_rows, pa.bool_())
    return pa.array([selection.selects(message_of(*row)) for row in columns(batch, *CAPTURED.names)], pa.bool_())


def last_place(chosen: DataFrame, limit: int) -> Place | None:
    """The place of the last message that *limit* allows; None where it allows all of them.

    chosen: the columns seq and qmgr of the messages that are selected.
    """
    first = chosen.distinct().orderBy("seq", "qmgr").limit(limit)
    count, last = first.agg(F.count("*"), F.max(F.struct("seq", "qmgr"))).collect()[0]
    return None if count < limit else (last["seq"], last["qmgr"])


def is_up_to(last: Place) -> Column:
    """Whether a message, with the columns seq and qmgr, is at this place or before it."""
    seq, qmgr = last
    return (F.col("seq") < seq) | ((F.col("seq") == seq) & (F.col("qmgr") <= qmgr))


def up_to(batches: Iterable[pa.RecordBatch], last: Place) -> Iterable[pa.RecordBatch]:
    """The messages of *batches*, which are in order, to this place."""
    for batch in batches:
        seq, qmgr = batch.column("seq"), batch.column("qmgr")
        at_last = pc.and_(pc.equal(seq, last[0]), pc.less_equal(qmgr, last[1]))
        left = batch.filter(pc.or_(pc.less(seq, last[0]), at_last))
        if left.num_rows:
            yield left
        if left.num_rows < batch.num_rows:
            return


_CELLS_PER_RANGE: Final = 16
_MOST_CELLS: Final = 100_000
_MESSAGES_PER_RANGE: Final = 100_000

Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Prepared:
    """messages: seq, now, qmgr, queue, user, md, body, and range, counted from 0 in the order of seq; with a selection
    also CHOSEN, and none behind its limit.

    control: those of them that change subscriptions or look at what is retained. retaining: those on stream queues that
    leave something retained if they succeed. starts: the least seq of each range, and behind them where the last one
    ends. count: how many messages there are. expiry: the clocks by which something expires. setting: with what the
    messages add. control_count: how many messages are on the control queue, at least. cores: how many tasks may run at
    a time. fewest: into how many tasks the second pass divides the ranges at least, where neighbouring ones share a
    task.
    """

    messages: DataFrame
    control: DataFrame
    retaining: DataFrame
    starts: tuple[int, ...]
    count: int
    expiry: Expiry
    setting: ReplaySetup
    control_count: int
    cores: int
    fewest: int

    @property
    def ranges(self) -> int:
        """How many ranges there are."""
        return len(self.starts) - 1

    def in_ranges(self, work: Work, schema: StructType) -> DataFrame:
        """What *work* makes of the retaining messages of each range, in order. It takes batches with COLUMNS."""
        in_order = self.retaining.repartitionById(self.ranges, "range").sortWithinPartitions("qmgr", "seq")
        return in_order.select(*COLUMNS).mapInArrow(work, schema)

    def out_of_time(self, work: Work, schema: StructType) -> DataFrame:
        """What *work* makes of messages in the ranges ``Expiry.behind``: those that are later than one after them, and
        all on the control queue, in order and whole ranges. It takes batches with COLUMNS and range."""
        behind = self.expiry.behind
        places = [(qmgr, number, at) for qmgr, found in behind.items() for number, at in found.items()]
        table = self.messages.sparkSession.createDataFrame(places, "qmgr string, range int, following long")
        after = Window.partitionBy("qmgr", "range").orderBy(F.desc("seq")).rowsBetween(Window.unboundedPreceding, -1)
        there = self.messages.join(F.broadcast(table), ["qmgr", "range"]).select(*COLUMNS, "range", "following")
        moment = F.unix_micros("now")
        earlier = there.withColumn("earlier", F.least("following", F.min(moment).over(after)))
        found = earlier.where((moment > F.col("earlier")) | (F.col("queue") == CONTROL_QUEUE))
        in_order = found.repartition("range").sortWithinPartitions("range", "qmgr", "seq")
        return in_order.select(*COLUMNS, "range").mapInArrow(work, schema)

    def fetched(self, places: DataFrame) -> DataFrame:
        """*places*, which name a retaining message by qmgr and seq, with that message: the columns COLUMNS."""
        return self.retaining.select(*COLUMNS).join(places, ["qmgr", "seq"])


def cores_of(spark: SparkSession) -> int:
    """How many tasks may run at a time: as many as the cluster may grow to, where it grows and shrinks.

    A session says what its settings say, through Spark Connect too; where these say nothing, Spark is asked into how
    many partitions it divides rows.
    """

    def setting(name: str) -> str:
        return str(spark.conf.get(name, "") or "")

    most, each = setting("spark.dynamicAllocation.maxExecutors"), setting("spark.executor.cores") or "1"
    if setting("spark.dynamicAllocation.enabled") == "true" and most.isdigit() and each.isdigit():
        return max(1, int(most) * int(each))
    local = re.fullmatch(r"local\[(\d+)(,.*)?\]", setting("spark.master"))
    if local is not None and not setting("spark.default.parallelism"):
        return int(local[1])
    return max(1, spark.range(_MOST_CELLS).select(F.spark_partition_id().alias("at")).distinct().count())


def prepared(
    captured: DataFrame,
    setting: ReplaySetup,
    ranges: int | None = None,
    selection: MessageSelection | str = EVERYTHING,
    cores: int | None = None,
) -> Prepared:
    """Make *captured*, which has the columns of CAPTURED, ready; rows without a body are problems, and left out.

    ranges: how many; None for one for each 100,000 messages, and as many as there are cores at least. selection: of
    which messages the results are kept, also as a text (``--where``). cores: as ``cores_of`` says, where it is
    None. Raises SchemaError; SelectionError; QPubSubError for a number below 1.
    """
    check_columns(captured.schema, CAPTURED, "the capture")
    for name, number in (("ranges", ranges), ("tasks", cores)):
        if number is not None and number < 1:
            raise QPubSubError(f"{name} must be at least 1, not {number}")
    if isinstance(selection, str):
        selection = MessageSelection(where=compile_where(selection))
    messages = captured.select(*CAPTURED.names).where("body is not null and seq is not null")
    if not selection.is_all:
        messages = messages.withColumn(CHOSEN, chosen_column(selection))
    messages = messages.withColumn("qmgr", F.when(F.col("qmgr") == "", None).otherwise(F.col("qmgr")))
    messages = messages.fillna({"qmgr": DEFAULT_QMGR, "queue": ""})
    flags = (F.col("time").isNull(), F.col("queue") == CONTROL_QUEUE)
    totals = messages.agg(F.min("seq"), F.max("seq"), F.count("*"), *map(F.count_if, flags)).collect()[0]
    least, most, count, timeless, controlling = totals
    cores = cores or cores_of(captured.sparkSession)
    wanted = ranges or max(cores, -(-count // _MESSAGES_PER_RANGE))
    if count == 0:
        moments = moments_of(messages.withColumn("range", F.lit(0)), {}, 1)
        return Prepared(moments, moments, moments, (0, 1), 0, Expiry(), setting, 0, cores, 1)
    ranged, starts = _ranged(messages, least, most, count, wanted)
    expiring = _expiring(ranged, setting)
    clocks = _clocks(ranged) if timeless or expiring or setting.monotonic_clock else {}
    goes_back = setting.monotonic_clock and any(map(steps_back, clocks.values()))
    if setting.monotonic_clock:
        clocks = monotonic(clocks)
    if timeless or goes_back:
        moments = moments_of(ranged, clocks, len(starts) - 1, monotonic_clock=goes_back)
    else:
        moments = ranged.withColumnRenamed("time", "now")
    if setting.expires:
        firsts = moments.groupBy("qmgr").agg(F.min_by(F.unix_micros("now"), "seq")).collect()
        setting = setting.beginning({row[0]: row[1] for row in firsts})
    read = moments.drop(CHOSEN).where(F.col("queue").isin(CONTROL_QUEUE, *setting.stream_queues))
    control = read.mapInArrow(with_role(FirstPassRole.CONTROL), read.schema)
    retaining = read.mapInArrow(with_role(FirstPassRole.RETAINING), read.schema)
    if selection.limit is not None and (last := last_place(moments.where(CHOSEN), selection.limit)) is not None:
        moments = moments.where(is_up_to(last))
    expiry = expiry_of(expiring, clocks, len(starts) - 1)
    return Prepared(
        moments, control, retaining, starts, count, expiry, setting, controlling, cores, fewest=ranges or cores
    )


def _ranged(messages: DataFrame, least: int, most: int, count: int, ranges: int) -> tuple[DataFrame, tuple[int, ...]]:
    """*messages* with their range: their cell in a histogram of seq, and the range which that cell is given.

    With where each range begins; the last one is where the last range ends.
    """
    cells = min(_MOST_CELLS, _CELLS_PER_RANGE * ranges, most - least + 1)
    width = -(-(most - least + 1) // cells)
    cell = F.expr(f"cast((seq - {least}L) div {width}L as int)")
    held = dict.fromkeys(range(cells), 0)
    for row in messages.groupBy(cell.alias("cell")).count().collect():
        held[row["cell"]] = row["count"]
    given: list[int] = []
    starts: list[int] = []
    before = 0
    for number in range(cells):
        # No range is left out, so that each has a beginning.
        at = min(before * ranges // count, len(starts))
        if at == len(starts):
            starts.append(least + number * width)
        given.append(at)
        before += held[number]
    return messages.withColumn("range", F.element_at(F.lit(given), cell + 1)), (*starts, most + 1)


def _expiring(messages: DataFrame, setting: ReplaySetup) -> tuple[str, ...]:
    """The queue managers on which something expires: a subscription, or what is retained.

    Of other publications only the subscribers' copies expire. 0xFFFFFFFF is unlimited in either byte order.
    """
    if setting.expires:
        return tuple(row["qmgr"] for row in messages.select("qmgr").distinct().collect())
    queues = [CONTROL_QUEUE, *setting.stream_queues]
    # Positions count from 1 here.
    limited = F.hex(F.substring("md", EXPIRY.start + 1, EXPIRY.stop - EXPIRY.start)) != UNLIMITED.hex().upper()
    found = messages.where(F.col("queue").isin(queues) & limited).select("qmgr", "queue", "md", "body")
    lasting = found.mapInArrow(with_role(FirstPassRole.CONTROL, FirstPassRole.RETAINING), found.schema)
    return tuple(row["qmgr"] for row in lasting.select("qmgr").distinct().collect())


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of one queue manager in one range, in microseconds since 1970. back: how often it goes back there."""

    least: int
    most: int
    last: int
    back: int


Clocks = dict[str, dict[int, Clock]]
"""By queue manager and range."""


NEVER: Final = 2**63 - 1
"""A moment behind all, in microseconds since 1970."""


@dataclass(frozen=True)
class Expiry:
    """The clocks of the queue managers on which something expires; moments in microseconds since 1970.

    back: how often one goes back, where it does. begins: by range, a moment that no message from there on is before;
    what expires by then is gone. behind: by range in which a message may be later than one after it, the least moment
    after the range.
    """

    back: Mapping[str, int] = field(default_factory=dict)
    begins: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    behind: Mapping[str, Mapping[int, int]] = field(default_factory=dict)


def _clocks(messages: DataFrame) -> Clocks:
    """By queue manager and range."""
    before = Window.partitionBy("qmgr", "range").orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    timed = messages.where("time is not null").select("qmgr", "range", "seq", F.unix_micros("time").alias("at"))
    timed = timed.withColumn("back", F.coalesce(F.col("at") < F.max("at").over(before), F.lit(False)))
    by_range = timed.groupBy("qmgr", "range").agg(F.min("at"), F.max("at"), F.max_by("at", "seq"), F.count_if("back"))
    clocks: Clocks = {}
    for qmgr, number, *values in by_range.collect():
        clocks.setdefault(qmgr, {})[number] = Clock(*values)
    return clocks


def expiry_of(expiring: Iterable[str], clocks: Clocks, ranges: int) -> Expiry:
    """By what the clocks show. expiring: queue managers on which something expires."""
    theirs = {qmgr: clocks.get(qmgr, {}) for qmgr in sorted(expiring)}
    last, begins, behind = begins_of(theirs, ranges), dict[str, dict[int, int]](), dict[str, dict[int, int]]()
    for qmgr, by_range in theirs.items():
        least = NEVER
        for number in reversed(range(ranges)):
            clock = by_range.get(number)
            if clock is not None:
                if clock.back or clock.most > least:
                    behind.setdefault(qmgr, {})[number] = least
                least = min(least, clock.least)
            # A message without a time may come at the last one's.
            if number in last[qmgr]:
                begins.setdefault(qmgr, {})[number] = min(least, last[qmgr][number])
    return Expiry({qmgr: steps for qmgr, found in theirs.items() if (steps := steps_back(found))}, begins, behind)


def steps_back(clocks: dict[int, Clock]) -> int:
    """How often the clock of a queue manager, given by range, goes back; between two ranges it counts as once."""
    latest: int | None = None
    steps = 0
    for _, clock in sorted(clocks.items()):
        steps += clock.back or (latest is not None and clock.least < latest)
        latest = clock.most if latest is None else max(latest, clock.most)
    return steps


def monotonic(clocks: Clocks) -> Clocks:
    """*clocks* of which each shows the latest moment so far."""
    found: Clocks = {}
    for qmgr, by_range in clocks.items():
        latest: int | None = None
        for number, clock in sorted(by_range.items()):
            least = clock.least if latest is None else max(latest, clock.least)
            latest = max(least, clock.most)
            found.setdefault(qmgr, {})[number] = Clock(least, latest, latest, 0)
    return found


def moments_of(messages: DataFrame, clocks: Clocks, ranges: int, *, monotonic_clock: bool = False) -> DataFrame:
    """*messages* with ``now`` for ``time``: never null, the same moment as the last one before where time is.

    monotonic_clock: also where it would be earlier than the last one; *clocks* are monotonic.
    """
    if not clocks:
        return messages.drop("time").withColumn("now", F.timestamp_micros(F.lit(0)))
    begins = [(qmgr, number, at) for qmgr, found in begins_of(clocks, ranges).items() for number, at in found.items()]
    table = messages.sparkSession.createDataFrame(begins, "qmgr string, range int, begin long")
    so_far = Window.partitionBy("qmgr", "range").orderBy("seq")
    last = (F.max("time") if monotonic_clock else F.last("time", ignorenulls=True)).over(so_far)
    begin = F.timestamp_micros(F.coalesce("begin", F.lit(0)))
    now = F.greatest(last, F.timestamp_micros("begin")) if monotonic_clock else last
    joined = messages.join(F.broadcast(table), ["qmgr", "range"], "left")
    return joined.withColumn("now", F.coalesce(now, begin)).drop("time", "begin")


def begins_of(clocks: Clocks, ranges: int) -> dict[str, dict[int, int]]:
    """By queue manager and range, the last moment before it, where there is one."""
    return {qmgr: dict(_begins(by_range, ranges)) for qmgr, by_range in clocks.items()}


def _begins(clocks: dict[int, Clock], ranges: int) -> Iterator[tuple[int, int]]:
    """Each range with the last moment before it, where there is one."""
    last: int | None = None
    for number in range(ranges):
        if last is not None:
            yield number, last
        if number in clocks:
            last = clocks[number].last
