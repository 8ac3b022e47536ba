"""The Delta table of a continuous replay has each put once, whenever the program is killed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet
from pyspark.sql import SparkSession

from commands.replay.spark import following as following_module
from commands.replay.spark.following import PROBLEM_FILE, BatchSink, FollowError, Following, PutsTable
from commands.replay.spark.schemas import PUTS, STREAMED, arrow_schema
from commands.replay.spark.streaming import PROBLEM
from tests.commands.replay.spark.test_following import CAPTURE, SETUP as WORKLOAD_SETUP, following
from tests.commands.replay.spark.worlds import local_puts

__all__ = ["following"]

SCHEMA = arrow_schema(PUTS)


def _file(directory: Path, batch: int, *seqs: int) -> Path:
    """The puts of a batch, in place."""
    path = directory / f"batch={batch:010}" / "puts.parquet"
    path.parent.mkdir(parents=True)
    rows = [{"seq": seq, "n": 0, "kind": "publication", "queue": "Q", "md": b"", "body": b"x"} for seq in seqs]
    parquet.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)
    return path


def _seqs(directory: Path) -> list[int]:
    return sorted(row["seq"] for row in DeltaTable(directory).to_pyarrow_table().to_pylist())


def test_a_batch_is_added_once(tmp_path: Path) -> None:
    first, second = _file(tmp_path, 0, 1, 2), _file(tmp_path, 3, 5)
    for _ in range(2):
        PutsTable(tmp_path, "app").add(0, first)
    assert (_seqs(tmp_path), DeltaTable(tmp_path).version()) == ([1, 2], 0)
    for _ in range(2):
        PutsTable(tmp_path, "app").add(3, second)
    assert (_seqs(tmp_path), DeltaTable(tmp_path).version()) == ([1, 2, 5], 1)
    PutsTable(tmp_path, "app").add(0, first)
    assert _seqs(tmp_path) == [1, 2, 5]
    assert DeltaTable(tmp_path).transaction_version("app") == 3


def test_other_programs_may_add_to_the_table(tmp_path: Path) -> None:
    PutsTable(tmp_path, "app").add(0, _file(tmp_path, 0, 1))
    write_deltalake(tmp_path, DeltaTable(tmp_path).to_pyarrow_table(), mode="append")
    DeltaTable(tmp_path).optimize.compact()
    PutsTable(tmp_path, "app").add(1, _file(tmp_path, 1, 2))
    assert _seqs(tmp_path) == [1, 1, 2]


def test_the_note_on_the_last_batch_outlives_the_log(tmp_path: Path) -> None:
    """A checkpoint of the table takes the place of its older commits."""
    for batch in range(3):
        PutsTable(tmp_path, "app").add(batch, _file(tmp_path, batch, batch))
    DeltaTable(tmp_path).create_checkpoint()
    for path in (tmp_path / "_delta_log").glob("*.json"):
        if int(path.stem) < 2:
            path.unlink()
    PutsTable(tmp_path, "app").add(1, tmp_path / "batch=0000000001" / "puts.parquet")
    assert _seqs(tmp_path) == [0, 1, 2]


def test_statistics(tmp_path: Path) -> None:
    PutsTable(tmp_path, "app").add(0, _file(tmp_path, 0, 4, 9))
    (added,) = pa.table(DeltaTable(tmp_path).get_add_actions(flatten=True)).to_pylist()
    assert (added["num_records"], added["min.seq"], added["max.seq"]) == (2, 4, 9)


def test_without_deltalake(following: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following_module, "find_spec", lambda _: None)
    with pytest.raises(FollowError, match=r"the package deltalake: .* -m pip install '\.\[delta\]'"):
        replace(following, target=following.target.with_suffix(".delta")).check()


class KilledError(Exception):
    """The program ends here."""


@pytest.mark.parametrize("when", ["before-the-commit", "after-it"])
def test_each_put_once_when_killed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Spark tries a batch again that it has no note on."""
    puts = local_puts(CAPTURE[:200], WORKLOAD_SETUP)
    rows = [(*put, None, None, None) for put in puts]
    batches = [spark.createDataFrame(part, STREAMED) for part in (rows[:100], rows[100:])]
    sink = BatchSink(tmp_path, "parquet", PutsTable(tmp_path, "app"))
    sink.put(batches[0], 0)
    real = PutsTable.add

    def killed(table: PutsTable, batch: int, file: Path) -> None:
        if when == "after-it":
            real(table, batch, file)
        raise KilledError

    monkeypatch.setattr(PutsTable, "add", killed)
    with pytest.raises(KilledError):
        sink.put(batches[1], 1)
    monkeypatch.undo()
    assert (tmp_path / "batch=0000000001").is_dir()
    sink.put(batches[1], 1)
    found = (
        DeltaTable(tmp_path).to_pyarrow_table().select(PUTS.names).sort_by([("seq", "ascending"), ("n", "ascending")])
    )
    assert [tuple(row.values()) for row in found.to_pylist()] == puts
    assert DeltaTable(tmp_path).version() == 1


def test_a_batch_without_puts_makes_no_version(spark: SparkSession, tmp_path: Path) -> None:
    problem = (1, 0, PROBLEM, "QM1", *[None] * 9, "no JSON")
    BatchSink(tmp_path, "parquet", PutsTable(tmp_path, "app")).put(spark.createDataFrame([problem], STREAMED), 0)
    assert (tmp_path / "batch=0000000000" / PROBLEM_FILE).exists()
    assert not DeltaTable.is_deltatable(str(tmp_path))
