"""``spark.read.format("qpubsub")``, ``spark.readStream``, ``df.write``: what pieces and files come to in Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from pyspark.errors import PySparkException
from pyspark.sql import (
    DataFrame,
    SparkSession,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.types import StringType, StructField, StructType

from commands.broker.puts import Put
from commands.replay import LocalReplay
from commands.replay.spark import CAPTURED, PUTS, READ, decoded
from commands.replay.spark.source import CaptureDataSource
from commands.replay.workload import Workload, WorkloadOptions
from rfh2.captured import CapturedMessage
from rfh2.captures import FORMATS, read_captures, write_captures
from rfh2.errors import QPubSubError

MESSAGES = list(Workload(WorkloadOptions(messages=90, subscribers=20, qmgrs=2, streams=1, body_bytes=20)).messages())
WRITTEN = [entry.name for entry in FORMATS.values() if entry.writer is not None]
SEVERAL = [form for form in WRITTEN if form != "raw"]
# What a piece of a file comes to is tried without Spark in all formats (``test_pieces``).
IN_THE_GATE = ("jsonl", "parquet")


def some(forms: Iterable[str]) -> list[Any]:
    """*forms*, of which the gate has two."""
    return [form if form in IN_THE_GATE else pytest.param(form, marks=pytest.mark.nightly) for form in forms]


Row = tuple[Any, ...]


def write(path: Path, messages: Iterable[CapturedMessage], form: str = "jsonl") -> Path:
    with path.open("wb") as file:
        write_captures(messages, file, form)
    return path


def load(spark: SparkSession, *paths: Path | str, **options: Any) -> DataFrame:
    reader = spark.read.format("qpubsub").options(**options)
    return reader.load([str(path) for path in paths] if len(paths) > 1 else str(paths[0]))


def as_row(m: CapturedMessage) -> Row:
    return (m.seq, m.time, m.qmgr, m.queue, m.user, m.md, m.body)


def rows(frame: DataFrame) -> list[Row]:
    """The messages, in order of seq."""
    found = [tuple(row) for row in frame.where("problem is null").select(*CAPTURED.names).orderBy("seq").collect()]
    return [(seq, time and time.astimezone(), *rest) for seq, time, *rest in found]


def captured(spark: SparkSession, messages: Iterable[CapturedMessage]) -> DataFrame:
    return spark.createDataFrame([as_row(message) for message in messages], CAPTURED)


# Reading


@pytest.mark.parametrize("form", some(SEVERAL))
def test_a_directory_of_files(spark: SparkSession, tmp_path: Path, form: str) -> None:
    for number in range(3):
        write(tmp_path / f"{number}.{form}", MESSAGES[number * 30 : (number + 1) * 30], form)
    frame = load(spark, tmp_path)
    assert frame.schema == READ
    records = [record.message for record in read_captures(tmp_path)]
    assert rows(frame) == [as_row(message) for message in records if message is not None]
    assert frame.rdd.getNumPartitions() == 3
    by_source = {row["source"]: row["count"] for row in frame.groupBy("source").count().collect()}
    assert by_source == {str(path): 30 for path in tmp_path.iterdir()}


@pytest.mark.nightly
def test_a_large_file_is_several_partitions(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", MESSAGES)
    size = path.stat().st_size
    frame = load(spark, path, pieceBytes=-(-size // 4))
    assert frame.rdd.getNumPartitions() == 4
    assert rows(frame) == [as_row(message) for message in MESSAGES]


def test_conditions_spare_reading(spark: SparkSession, tmp_path: Path) -> None:
    """What Spark does not push down, or what this source does not know, is tested by Spark."""
    path = write(tmp_path / "c.parquet", MESSAGES, "parquet")
    parquet.write_table(parquet.read_table(path), path, row_group_size=10)
    frame = load(spark, path, pieceBytes=1)
    assert frame.rdd.getNumPartitions() == 9
    assert frame.where("seq between 12 and 18").rdd.getNumPartitions() == 1
    assert rows(frame.where("seq between 12 and 18 and user is not null")) == [
        as_row(message) for message in MESSAGES if 12 <= message.seq <= 18 and message.user is not None
    ]


MODES = [("PERMISSIVE", 2), ("dropmalformed", 1), ("FAILFAST", None), ("other", None)]


@pytest.mark.parametrize(("mode", "count"), MODES)
def test_modes(spark: SparkSession, tmp_path: Path, mode: str, count: int | None) -> None:
    path = write(tmp_path / "c.jsonl", MESSAGES[:1])
    path.write_text(path.read_text() + "no message\n")
    if count is not None:
        assert load(spark, tmp_path, mode=mode).count() == count
    else:
        with pytest.raises(PySparkException, match=r"line 2|option mode must be one of"):
            load(spark, tmp_path, mode=mode).collect()


def test_functions_of_sql(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", MESSAGES[:30])
    spark.sql(f"create or replace temporary view seen using qpubsub options (path '{path}')")
    found = spark.sql(
        "select mq_command(body, md), mq_topics(body, md), mq_decode(body, md).command, mq_properties(body, null) "
        "from seen order by seq"
    ).collect()
    wanted = decoded(load(spark, path)).orderBy("seq").select("command", "topics", "command", "properties").collect()
    assert [tuple(row) for row in found] == [tuple(row) for row in wanted]
    assert {row[0] for row in found} >= {"Publish"}


def test_globs_several_paths_and_options(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "a.dat", MESSAGES[:3], "mqmd")
    write(tmp_path / "b.dat", MESSAGES[3:5], "mqmd")
    write(tmp_path / "c.jsonl", MESSAGES[:1])
    assert load(spark, tmp_path / "*.dat", format="mqmd").count() == 5
    assert load(spark, tmp_path / "b.dat", tmp_path / "c.jsonl").count() == 3
    queues = load(spark, tmp_path / "a.dat", defaultQueue="natural").select("queue").collect()
    assert [row["queue"] for row in queues] == [message.queue for message in MESSAGES[:3]]


def test_bad_records_are_rows_with_their_problem(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", MESSAGES[:2])
    path.write_bytes(path.read_bytes() + b"nonsense\n")
    (problem,) = load(spark, path).where("problem is not null").collect()
    assert tuple(problem[name] for name in CAPTURED.names) == (None,) * 7
    assert problem["source"] == str(path)
    assert "line 3" in problem["problem"]
    assert load(spark, path).where("problem is null").count() == 2


@pytest.mark.parametrize(
    ("path", "options", "said"),
    [
        ("missing.jsonl", {}, "no such file or directory"),
        ("*.nothing", {}, "no such file or directory"),
        ("c.jsonl", {"format": "csv"}, "unknown format"),
        (
            "c.jsonl",
            {"formt": "csv"},
            "no option formt: use format, defaultQueue, pieceBytes, mode; did you mean format?",
        ),
        ("c.jsonl", {"default_queue": "Q"}, "did you mean defaultQueue?"),
        (
            "c.jsonl",
            {"maxFilesPerTrigger": "1"},
            "option maxFilesPerTrigger is not for this use of the format: use format, defaultQueue",
        ),
        ("c.jsonl", {"pieceBytes": "64m"}, "option pieceBytes must be a whole number of at least 1, not 64m"),
        ("c.jsonl", {"pieceBytes": "0"}, "at least 1, not 0"),
    ],
    ids=["missing", "glob-of-nothing", "unknown-format", "typo", "snake-case", "of-streams", "no-number", "zero"],
)
def test_what_cannot_be_loaded_is_an_error(tmp_path: Path, path: str, options: dict[str, str], said: str) -> None:
    write(tmp_path / "c.jsonl", MESSAGES[:1])
    with pytest.raises(QPubSubError) as caught:
        CaptureDataSource({"path": str(tmp_path / path), **options}).reader(READ).partitions()
    assert said in str(caught.value)


def test_a_load_without_a_path_is_an_error(spark: SparkSession) -> None:
    """As any that is refused, it is Spark's error with our text."""
    with pytest.raises(PySparkException, match="the path is missing"):
        spark.read.format("qpubsub").load().collect()


# A directory that grows


def batches(path: Path, start: Any = None, **options: str) -> tuple[list[list[tuple[int, bytes]]], Any]:
    """The batches that Spark would ask for, each with the seq and body of its messages; and the offset behind them."""
    reader = CaptureDataSource({"path": str(path), **options}).streamReader(READ)
    offset, found = start or reader.initialOffset(), []
    while (end := reader.latestOffset(offset)) != offset:
        read = (batch for task in reader.partitions(offset, end) for batch in reader.read(task))
        found.append([(row["seq"], row["body"]) for batch in read for row in batch.to_pylist()])  # type: ignore[union-attr]
        offset = json.loads(json.dumps(end))
    return found, offset


def test_each_file_is_read_once_and_messages_without_numbers_are_counted_on(tmp_path: Path) -> None:
    write(tmp_path / "b.mqmd", MESSAGES[:4], "mqmd")
    first, offset = batches(tmp_path)
    write(tmp_path / "a.mqmd", MESSAGES[4:9], "mqmd")  # its name comes before that of what was read
    second, offset = batches(tmp_path, offset)
    numbered = [(number, message.body) for number, message in enumerate(MESSAGES[:9], 1)]
    assert (first, second) == ([numbered[:4]], [numbered[4:]])
    write(tmp_path / "c.parquet", MESSAGES[40:50], "parquet")
    assert batches(tmp_path, offset)[0] == [[(message.seq, message.body) for message in MESSAGES[40:50]]]


@pytest.mark.parametrize(
    ("limit", "sizes"),
    [({}, [15]), ({"maxFilesPerTrigger": "2"}, [6, 6, 3]), ({"maxBytesPerTrigger": "1"}, [3] * 5)],
    ids=["none", "files", "bytes"],
)
def test_a_batch_is_no_larger_than_asked(tmp_path: Path, limit: dict[str, str], sizes: list[int]) -> None:
    (tmp_path / "0.note").write_text("of something else")
    for number in range(5):
        write(tmp_path / f"{number}.jsonl", MESSAGES[number * 3 : (number + 1) * 3])
    found, _ = batches(tmp_path / "*.jsonl", **limit)
    assert [len(batch) for batch in found] == sizes
    assert [seq for batch in found for seq, _ in sorted(batch)] == [message.seq for message in MESSAGES[:15]]


class Growing:
    """A directory, and a query that keeps what comes into it."""

    def __init__(self, spark: SparkSession, place: Path) -> None:
        self._spark, self._place = spark, place
        self.directory = place / "in"
        self.directory.mkdir()
        self.batches: list[int] = []

    def put(self, name: str, messages: Iterable[CapturedMessage], form: str = "jsonl") -> None:
        """Written elsewhere and moved in, as it has to be."""
        write(self._place / name, messages, form).rename(self.directory / name)

    def run(self) -> list[Row]:
        """What has come by now, with what came before; on from the checkpoint."""
        stream = self._spark.readStream.format("qpubsub").load(str(self.directory))
        found: list[int] = []

        def keep(batch: DataFrame, _number: int) -> None:
            found.append(batch.count())
            batch.write.mode("append").parquet(str(self._place / "out"))

        query = (
            stream.writeStream.foreachBatch(keep)
            .option("checkpointLocation", str(self._place / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        self.batches = found
        return rows(self._spark.read.parquet(str(self._place / "out")))


@pytest.fixture
def growing(spark: SparkSession, tmp_path: Path) -> Growing:
    return Growing(spark, tmp_path)


def expected(count: int) -> list[Row]:
    return [as_row(message) for message in MESSAGES[:count]]


@pytest.mark.nightly
def test_each_file_once_whatever_the_restarts(growing: Growing) -> None:
    growing.put("b.jsonl", MESSAGES[:10])
    assert growing.run() == expected(10)
    growing.put("a.jsonl", MESSAGES[10:25])  # its name comes before that of what was read
    growing.put("c.parquet", MESSAGES[25:30], "parquet")
    assert growing.run() == expected(30)
    assert sum(growing.batches) == 20


# Writing


@pytest.mark.parametrize("form", some(WRITTEN))
def test_captures_are_written_in_every_format(spark: SparkSession, tmp_path: Path, form: str) -> None:
    count = 1 if form == "raw" else 20
    frame = captured(spark, MESSAGES[:count]).coalesce(1)
    frame.write.format("qpubsub").option("format", form).mode("append").save(str(tmp_path / "out"))
    (path,) = [path for path in (tmp_path / "out").iterdir() if path.name.startswith("part-")]
    assert path.suffix == f".{form}"
    by_hand = write(tmp_path / f"by-hand.{form}", MESSAGES[:count], form)
    if form == "parquet":
        assert rows(load(spark, path)) == rows(load(spark, by_hand))
    else:
        assert path.read_bytes() == by_hand.read_bytes()


@pytest.fixture
def puts() -> list[Put]:
    return list(LocalReplay().puts(MESSAGES))


def put_row(put: Put) -> Row:
    completion = None if put.completion is None else put.completion.value
    md, body = bytes.fromhex(put.md_hex), bytes.fromhex(put.body_hex)
    return (
        *(put.seq, put.n, put.at_qmgr, put.kind.value, put.qmgr, put.queue, put.topic, put.sub_name),
        *(completion, put.reason, md, body),
    )


def test_puts_are_written_as_the_local_replay_writes_them(spark: SparkSession, tmp_path: Path, puts: list[Put]) -> None:
    frame = spark.createDataFrame([put_row(put) for put in puts], PUTS).coalesce(1)
    frame.write.format("qpubsub").mode("append").save(str(tmp_path / "out"))
    (path,) = (tmp_path / "out").glob("part-*.jsonl")
    assert path.read_text() == "".join(put.model_dump_json() + "\n" for put in puts)
    frame.write.format("qpubsub").option("format", "parquet").mode("append").save(str(tmp_path / "rows"))
    got = spark.read.schema(PUTS).parquet(str(tmp_path / "rows")).orderBy("seq", "n").collect()
    assert [tuple(row) for row in got] == [put_row(put) for put in puts]


def test_append_adds_and_overwrite_replaces(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    write(target / "a.jsonl", MESSAGES[:10])
    for mode, first, end, count in (("append", 10, 20, 20), ("overwrite", 20, 25, 5)):
        captured(spark, MESSAGES[first:end]).write.format("qpubsub").mode(mode).save(str(target))
        assert len(list(read_captures(target))) == count
    assert not [path for path in target.iterdir() if path.name.startswith("_")]


def test_partitions_are_files_in_their_order(spark: SparkSession, tmp_path: Path) -> None:
    frame = captured(spark, MESSAGES).repartitionByRange(3, "seq").sortWithinPartitions("seq")
    frame.write.format("qpubsub").mode("append").save(str(tmp_path / "out"))
    files = sorted((tmp_path / "out").iterdir())
    assert len(files) == 3
    assert [record.message for record in read_captures(tmp_path / "out")] == MESSAGES


def test_a_task_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "out"
    broken = captured(spark, MESSAGES).withColumn(
        "body", F.when(F.col("seq") == 80, F.raise_error(F.lit("a fault"))).otherwise(F.col("body"))
    )
    with pytest.raises(PySparkException, match="a fault"):
        broken.write.format("qpubsub").mode("append").save(str(target))
    assert not target.exists() or list(target.iterdir()) == []


BAD_WRITES: list[tuple[str, StructType, str, str]] = [
    ("no-body", StructType([field for field in CAPTURED if field.name != "body"]), "jsonl", "body"),
    ("other-type", StructType([StructField("seq", StringType()), *list(CAPTURED)[1:]]), "jsonl", "seq"),
    ("only-read", CAPTURED, "amqsbcg", "captures are written as"),
    ("no-format", CAPTURED, "csv", "captures are written as"),
]


@pytest.mark.parametrize(
    ("schema", "form", "said"), [row[1:] for row in BAD_WRITES], ids=[row[0] for row in BAD_WRITES]
)
def test_what_cannot_be_written_is_told(tmp_path: Path, schema: StructType, form: str, said: str) -> None:
    with pytest.raises(QPubSubError, match=said):
        CaptureDataSource({"path": str(tmp_path / "out"), "format": form}).writer(schema, overwrite=False)
    assert not (tmp_path / "out").exists()
