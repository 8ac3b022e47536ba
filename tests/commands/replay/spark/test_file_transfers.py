"""transfers, transfer_items, agents: the rows of the local analysis, and the replay's puts, on Spark."""

from __future__ import annotations

import csv
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession

from commands.options import replays
from commands.replay.file_transfer import TABLES, rows_of
from commands.replay.file_transfer.rows import values_of
from commands.replay.spark import CAPTURED, SchemaError, agents, replayed, transfer_items, transfers
from commands.replay.spark.file_transfers import schema_of, write_tables
from commands.replay.spark.schemas import columns
from tests.commands.cli_runs import run
from tests.commands.file_transfers import FIXTURE, SETUP, capture

FUNCTIONS = {"transfers": transfers, "items": transfer_items, "agents": agents}


def frame(spark: SparkSession) -> DataFrame:
    rows = [(m.seq, m.time, m.qmgr, m.queue, m.user, m.md, m.body) for m in capture()]
    return spark.createDataFrame(rows, CAPTURED).repartition(3)


def local(table: str) -> list[tuple[Any, ...]]:
    return [values_of(row) for message in capture() for row in getattr(rows_of(message), table)]


@pytest.mark.parametrize("table", TABLES)
def test_the_rows_are_the_local_ones(spark: SparkSession, table: str) -> None:
    found = FUNCTIONS[table](frame(spark))
    assert found.schema == schema_of(table)
    (batch,) = found.toArrow().combine_chunks().to_batches()
    assert sorted(
        columns(batch, *batch.schema.names), key=lambda row: row[:2] if table == "items" else row[0]
    ) == local(table)


def test_a_frame_without_the_columns_is_refused(spark: SparkSession) -> None:
    with pytest.raises(SchemaError, match="lacks the column"):
        transfers(frame(spark).drop("md"))


def test_the_tables_are_written_as_directories(spark: SparkSession, tmp_path: Path) -> None:
    assert write_tables(frame(spark), tmp_path / "out", "parquet") == ({"transfers": 8, "items": 5, "agents": 4}, 2)
    assert parquet.read_table(tmp_path / "out" / "items.parquet").num_rows == 5
    assert {path.name for path in tmp_path.iterdir()} == {"out"}


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_analyse_on_spark_writes_what_the_local_engine_writes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(replays, "spark_session", lambda _options: nullcontext(spark))
    words = ("--input", str(FIXTURE / "capture.jsonl"), "--setup", str(SETUP), "--file-transfers-as", form)
    said = {}
    for engine in ("local", "spark"):
        ran = run("analyse", "--engine", engine, *words, "--file-transfers", str(tmp_path / engine))
        assert ran.code == 1
        said[engine] = ran.talk.splitlines()[-1].replace(str(tmp_path / engine), "")
    assert said["spark"] == said["local"]
    for table in TABLES:
        here = read(tmp_path / "local" / f"{table}.{form}")
        parts = sorted((tmp_path / "spark" / f"{table}.{form}").glob("part-*"))
        # JSON of Spark leaves out what is null.
        assert [row for part in parts for row in read(part)] == [
            {key: value for key, value in row.items() if form == "csv" or value is not None} for row in here
        ]


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of one file."""
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_replay_on_spark_gives_the_golden_puts(spark: SparkSession, tmp_path: Path) -> None:
    puts = replayed(frame(spark), SETUP.read_text())
    puts.coalesce(1).sortWithinPartitions("seq", "n").write.format("qpubsub").mode("append").save(
        str(tmp_path / "puts")
    )
    (written,) = (tmp_path / "puts").glob("*.jsonl")
    assert written.read_bytes() == (FIXTURE / "puts.jsonl").read_bytes()
