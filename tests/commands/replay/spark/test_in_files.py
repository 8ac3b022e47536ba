"""The replay of files: which ones it takes as they are, how they are read, what the survey finds, the same puts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from pyarrow import parquet
from pyspark.sql import SparkSession

from commands.broker.objects import DEFAULT_STREAM
from commands.broker.times import EPOCH
from commands.headers.registry import parse
from commands.model import DeletePublication, Publish, PubOpt
from commands.replay.divided import is_plain
from commands.replay.spark.capture_scan import _Surveyor, surveyed
from commands.replay.spark.engine import Order, run
from commands.replay.spark.in_order import SCHEMA, FilesInOrder, Group, filled, in_order, with_moments
from commands.replay.spark.prepare import NEVER, Clock, Expiry, FirstPassRole, Prepared, Roles, prepared
from commands.replay.spark.put_files import blocks_of, blocks_with
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.twopass import ticks_of
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError
from rfh2.folders import Folder
from rfh2.message import decode
from rfh2.mqmd import Mqmd
from rfh2.rfh2 import Rfh2
from tests.commands.replay.spark.test_twopass import QUICK, as_rows, difference, frame
from tests.commands.replay.spark.worlds import CONTROL, EXPIRING, SETUP, START, captures, local_puts, messages
from tests.examples import FEW

Rows = list[tuple[Any, ...]]


def rows_of(*seqs: int, qmgr: str | None = None, time: datetime | None = START, queue: str = CONTROL) -> Rows:
    return [(seq, time, qmgr, queue, None, None, b"body") for seq in seqs]


def written(path: Path, rows: Rows, group_rows: int = 1000, schema: pa.Schema = SCHEMA, **options: Any) -> Path:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=schema)
    parquet.write_table(table, path, row_group_size=group_rows, **options)
    return path


def seqs(files: FilesInOrder, start: int, end: int) -> list[tuple[int, str]]:
    return [
        (seq, qmgr)
        for batch in files.batches(start, end)
        for seq, qmgr in zip(batch.column("seq").to_pylist(), batch.column("qmgr").to_pylist(), strict=True)
    ]


FILES: list[Any] = [
    pytest.param([[1, 2], [3, 4]], True, id="files-in-order"),
    pytest.param([[3, 4], [1, 2]], True, id="files-by-any-name"),
    pytest.param([[2, 1], [4, 3]], True, id="rows-within-a-group-in-any-order"),
    pytest.param([[1, 2], [2, 3]], True, id="a-seq-of-two-queue-managers"),
    pytest.param([[1, 3], [2, 4]], False, id="groups-that-overlap"),
    pytest.param([[-1, 2]], False, id="a-seq-below-zero"),
]


@pytest.mark.parametrize(("groups", "taken"), FILES)
def test_which_files_are_taken_as_they_are(tmp_path: Path, groups: list[list[int]], taken: bool) -> None:
    paths = [written(tmp_path / f"{at}.parquet", rows_of(*group)) for at, group in enumerate(groups)]
    found = in_order(paths)
    assert (found is not None) == taken
    if found is not None:
        assert [seq for seq, _ in seqs(found, 0, 100)] == sorted(seq for group in groups for seq in group)


def _changed(**types: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(field.name, types.get(field.name, field.type)) for field in SCHEMA])


SHAPES: list[Any] = [
    pytest.param(rows_of(1, queue=""), SCHEMA, id="no-queue"),
    pytest.param([(1, START, None, None, None, None, b"")], SCHEMA, id="queue-null"),
    pytest.param([(1, START, None, CONTROL, None, None, None)], SCHEMA, id="body-null"),
    pytest.param([(None, START, None, CONTROL, None, None, b"")], SCHEMA, id="seq-null"),
    pytest.param([("1", START, None, CONTROL, None, None, b"")], _changed(seq=pa.string()), id="seq-text"),
    pytest.param(rows_of(1), _changed(time=pa.timestamp("us")), id="time-without-zone"),
]


@pytest.mark.parametrize(("rows", "schema"), SHAPES)
def test_which_files_have_to_be_written_out(tmp_path: Path, rows: Rows, schema: pa.Schema) -> None:
    assert in_order([written(tmp_path / "a.parquet", rows, schema=schema)]) is None


def test_files_that_are_no_parquet_or_lack_a_column(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}")
    assert in_order([tmp_path / "a.jsonl"]) is None
    parquet.write_table(pa.table({"seq": [1], "body": [b""]}), tmp_path / "b.parquet")
    assert in_order([tmp_path / "b.parquet"]) is None


def test_times_as_spark_used_to_write_them(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", rows_of(1), use_deprecated_int96_timestamps=True)
    found = in_order([path])
    assert found is not None
    assert found.timeless  # there are no statistics on them
    ((batch,),) = [list(found.batches(0, 9))]
    assert batch.column("time").to_pylist() == [START]


def test_the_messages_of_one_seq_are_in_the_order_of_queue_managers_wherever_they_are(tmp_path: Path) -> None:
    for at, group in enumerate(["1C 2C 3C", "3A", "3B 3D 4B", "4A 5A"]):
        written(tmp_path / f"{at}.parquet", [rows_of(int(text[0]), qmgr=text[1])[0] for text in group.split()])
    found = in_order(sorted(tmp_path.iterdir()))
    assert found is not None
    assert " ".join(f"{seq}{qmgr}" for seq, qmgr in seqs(found, 0, 9)) == "1C 2C 3A 3B 3C 3D 4A 4B 5A"
    assert " ".join(f"{seq}{qmgr}" for seq, qmgr in seqs(found, 3, 4)) == "3A 3B 3C 3D"


@given(
    groups=st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=5), max_size=4),
    start=st.integers(0, 60),
    length=st.integers(0, 60),
)
def test_any_part_is_read_by_seq(
    tmp_path_factory: pytest.TempPathFactory, groups: list[list[int]], start: int, length: int
) -> None:
    directory = tmp_path_factory.mktemp("parts")
    everything = []
    for at, group in enumerate(groups):
        given_seqs = [at * 13 + seq for seq in group]
        everything += given_seqs
        written(directory / f"{at}.parquet", rows_of(*given_seqs), group_rows=10)
    found = in_order(sorted(directory.iterdir()))
    assert found is not None
    wanted = sorted((seq, "QM1") for seq in everything if start <= seq < start + length)
    assert seqs(found, start, start + length) == wanted


@given(
    groups=st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 500), st.integers(1, 400)), min_size=1, max_size=8),
    wanted=st.integers(1, 20),
)
def test_ranges_cover_everything_once(groups: list[tuple[int, int, int]], wanted: int) -> None:
    at, made = 0, []
    for number, (gap, span, rows) in enumerate(groups):
        made.append(Group("", number, at + gap, at + gap + max(span, 0), rows))
        at += gap + span + 1
    files = FilesInOrder(tuple(made), False)
    starts = files.ranges(wanted)
    assert starts[0] == made[0].least
    assert starts[-1] == made[-1].most + 1
    assert all(before < after for before, after in pairwise(starts))
    assert len(starts) - 1 <= wanted


def test_ranges_are_of_about_the_same_size() -> None:
    files = FilesInOrder(tuple(Group("", n, n * 1000, n * 1000 + 999, 1000) for n in range(100)), False)
    starts = files.ranges(16)
    assert len(starts) == 17
    assert max(after - before for before, after in pairwise(starts)) <= 7000


def test_one_large_row_group_is_cut() -> None:
    files = FilesInOrder((Group("", 0, 10, 1033, 1024),), False)
    assert files.ranges(4) == (10, 266, 522, 778, 1034)


def test_row_groups_that_are_larger_than_a_range_are_cut_where_ranges_of_the_same_size_need_it() -> None:
    sizes = (24_000, 24_000, 12_000)
    groups = (Group("", n, n * 24_000, n * 24_000 + size - 1, size) for n, size in enumerate(sizes))
    sizes_of_ranges = [after - before for before, after in pairwise(FilesInOrder(tuple(groups), False).ranges(11))]
    assert len(sizes_of_ranges) == 11
    assert max(sizes_of_ranges) < 1.15 * min(sizes_of_ranges)


def _batch(rows: Rows) -> pa.RecordBatch:
    columns = [
        pa.array(list(column), field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def test_a_message_without_a_time_comes_when_the_last_one_of_its_queue_manager_came() -> None:
    given_rows = [
        *rows_of(1, qmgr="A", time=None),
        *rows_of(2, qmgr="B", time=None),
        *rows_of(3, qmgr="B", time=START),
        *rows_of(4, qmgr="A", time=None),
        *rows_of(5, qmgr="B", time=None),
    ]
    before = 1_000_000
    (batch,) = with_moments([_batch(given_rows)], {"A": before})
    second = EPOCH + timedelta(seconds=1)
    assert batch.column("now").to_pylist() == [second, EPOCH, START, second, START]
    assert filled(_batch(given_rows), {}).to_pylist() == [None, None, START, None, START]


def _publish(tags: bytes) -> bytes:
    text = b"<psc><Command>Publish</Command>" + tags + b"<Topic>a</Topic></psc>"
    return Rfh2((Folder(text + b" " * (-len(text) % 4)),)).encode()


# (what a Publish says beside its topic, whether its bytes alone show that nothing is retained)
OPTIONS = [
    (b"", True),
    (b"<PubOpt>None</PubOpt>", True),  # as JMS clients put it
    (b"<PubOpt>Local</PubOpt><PubOpt>OtherSubsOnly</PubOpt>", True),
    (b"<UNIQUE_CONNECTION_ID>41</UNIQUE_CONNECTION_ID>", True),
    (b"<PubOpt>RetainPub</PubOpt>", False),
    (b"<PubOpt>2</PubOpt>", False),
    (b"<PubOpt>0002</PubOpt>", False),
    (b"<PubOpt>None</PubOpt><PubOpt>3</PubOpt>", False),
    (b"<x>\xff\xfe</x><PubOpt>2</PubOpt>", False),
    (b"<x>\r\n</x><PubOpt>\r\n2</PubOpt>", False),
    (b"<PubOpt><![CDATA[2]]></PubOpt>", False),
    (b"<PubOpt><!-- -->2</PubOpt>", False),
    (b'<PubOpt dt="string">2</PubOpt>', False),
    (b"<PubOpt\n>2</PubOpt>", False),
    (b"<PubOpt>0</PubOpt>", False),
]


@pytest.mark.parametrize(("tags", "plain"), OPTIONS)
def test_what_is_plain(tags: bytes, plain: bool) -> None:
    body = _publish(tags)
    assert is_plain(body) is plain
    if plain:
        assert Roles().of("SYSTEM.BROKER.DEFAULT.STREAM", None, body) is FirstPassRole.NONE


@FEW
@given(st.lists(messages(None), max_size=3))
def test_what_is_plain_neither_deletes_nor_retains(found: list[list[CapturedMessage]]) -> None:
    every = [message for some in found for message in some if message.queue != CONTROL]
    roles = Roles()
    for message in every:
        role, wanted = roles.of(message.queue, message.md, message.body), _role(message)
        # A message in error may pass for one like it that is not.
        assert wanted is None or role is wanted
        assert not (is_plain(message.body) and role is not FirstPassRole.NONE)


def _role(message: CapturedMessage) -> FirstPassRole | None:
    try:
        command = parse(decode(message.body, message.md))
    except QPubSubError:
        return None
    if isinstance(command, DeletePublication):
        return FirstPassRole.CONTROL
    retains = isinstance(command, Publish) and command.has(PubOpt.RETAIN_PUB)
    return FirstPassRole.RETAINING if retains else FirstPassRole.NONE


@given(times=st.lists(st.lists(st.none() | st.integers(0, 20), min_size=1, max_size=6), min_size=1, max_size=4))
def test_the_clock_is_that_of_every_message(times: list[list[int | None]]) -> None:
    surveyor = _Surveyor(ReplaySetup(), 0, True)
    seq = 0
    for some in times:
        made: Rows = []
        for micros in some:
            seq += 1
            made += rows_of(seq, qmgr="A", time=None if micros is None else EPOCH + timedelta(microseconds=micros))
        surveyor.look(_batch(made))
    given_times = [micros for some in times for micros in some if micros is not None]
    facts = surveyor.facts()
    if not given_times:
        assert facts["clocks"] == {}
    else:
        back = sum(at < max(given_times[:number]) for number, at in enumerate(given_times) if number)
        assert Clock(*facts["clocks"]["A"]) == Clock(min(given_times), max(given_times), given_times[-1], back)
    assert facts["firsts"] == {"A": times[0][0] or 0}


@pytest.mark.nightly
@pytest.mark.parametrize(("setup", "semantics"), [(SETUP, "v7"), (SETUP, "v6"), (EXPIRING, "v7")])
def test_any_capture_in_files(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, setup: str, semantics: str
) -> None:
    """Rows in any order within row groups of any size, in any number of ranges."""

    @QUICK
    @given(capture=captures(6, 14), group_rows=st.integers(1, 40), ranges=st.integers(1, 5), chance=st.randoms())
    def check(capture: list[CapturedMessage], group_rows: int, ranges: int, chance: Any) -> None:
        directory = tmp_path_factory.mktemp("capture")
        source = directory / "in"
        source.mkdir()
        ordered = as_rows(capture)
        for at in range(0, max(len(ordered), 1), group_rows):
            group = ordered[at : at + group_rows]
            chance.shuffle(group)
            written(source / f"{chance.randint(0, 9)}-{at}.parquet", group)
        target = directory / "puts.parquet"
        run(spark, Order(source, "auto", target, setup, semantics, ranges=ranges), lambda _: None, lambda _: None)
        got = [tuple(row.values()) for path in sorted(target.iterdir()) for row in parquet.read_table(path).to_pylist()]
        assert not difference(got, local_puts(capture, setup, semantics))

    check()


def test_the_survey_finds_what_is_prepared(spark: SparkSession, tmp_path: Path) -> None:
    knobs = WorkloadOptions(messages=600, control=0.1, errors=0.03, qmgrs=3, topics=50, expiring=0.3)
    capture = list(Workload(knobs).messages())
    # On one queue manager the clock goes back, on another one some messages have no time.
    capture = [
        m.model_copy(update={"time": START})
        if m.qmgr == "QM2" and m.seq > 500
        else m
        if m.qmgr != "QM3" or m.seq % 3
        else m.model_copy(update={"time": None})
        for m in capture
    ]
    path = written(tmp_path / "a.parquet", as_rows(capture), group_rows=100)
    files = in_order([path])
    assert files is not None
    setting = ReplaySetup(setup_script(knobs) + "DEFINE SUB(SOON) TOPICSTR('#') DEST(AUDIT) EXPIRY(30)\n")
    one = surveyed(spark, files, setting, 4, tmp_path / "survey")
    other = prepared(frame(spark, capture), setting, 4)
    assert (one.count, one.expiry.back, one.setting) == (other.count, other.expiry.back, other.setting)
    assert one.expiry.back == {"QM2": 32}
    assert _now_of(one.messages) == _now_of(other.messages)
    assert _now_of(one.control) == _now_of(other.control)
    assert set(_now_of(one.retaining)) <= set(_now_of(other.retaining))


def test_a_clock_that_goes_back_matters_where_something_here_expires(spark: SparkSession, tmp_path: Path) -> None:
    """Of a publication that is not retained only the subscribers' copies expire."""
    capture = []
    for seq, (qmgr, options) in enumerate([("QM1", ""), ("QM2", "<PubOpt>RetainPub</PubOpt>")] * 2):
        psc = f"<psc><Command>Publish</Command><Topic>a</Topic>{options}</psc>"
        body = Rfh2((Folder.of(psc),), format="MQSTR").encode().hex()
        md_hex = Mqmd(format="MQHRF2", expiry=600).encode().hex()
        time = START - timedelta(seconds=seq)
        capture.append(
            CapturedMessage(seq=seq, time=time, qmgr=qmgr, queue=DEFAULT_STREAM, md_hex=md_hex, body_hex=body)
        )
    files = in_order([written(tmp_path / "a.parquet", as_rows(capture))])
    assert files is not None
    one = surveyed(spark, files, ReplaySetup(""), 1, tmp_path / "survey")
    other = prepared(frame(spark, capture), ReplaySetup(""), 1)
    assert one.expiry == other.expiry == Expiry({"QM2": 1}, {}, {"QM2": {0: NEVER}})
    ticks = [("QM2", 1, capture[1].time, for_retained) for for_retained in (False, True)]
    assert _ticks_of(one) == _ticks_of(other) == ticks


def _ticks_of(ready: Prepared) -> list[tuple[Any, ...]]:
    ticks = ticks_of(ready)
    assert ticks is not None
    return sorted((qmgr, seq, now.astimezone(UTC), for_retained) for qmgr, seq, now, for_retained in ticks.collect())


def _now_of(messages_frame: Any) -> Sequence[tuple[int, datetime, str]]:
    return sorted(tuple(row) for row in messages_frame.select("seq", "now", "qmgr").collect())


@given(first=st.integers(0, 3000), count=st.integers(1, 3000))
def test_blocks_are_the_ranges_that_an_interval_is_needed_in(first: int, count: int) -> None:
    blocks = blocks_of(first, first + count - 1)
    near = range(max(0, first - 2), first + count + 2)
    found = [sum(block in blocks for block in blocks_with(number)) for number in near]
    assert found == [int(first <= number < first + count) for number in near]
    assert len(blocks) <= 2 * count.bit_length()
