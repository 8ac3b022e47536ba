"""``--output puts.parquet``: the same puts as in JSON Lines, in the columns of both engines."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("pyarrow")

from pyarrow import parquet

from commands.cli import main
from commands.replay import put_columns
from commands.replay.put_columns import SCHEMA
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from commands.terminal.console import ExitCode
from rfh2.captures import write_captures

KNOBS = WorkloadOptions(messages=700, control=0.1, errors=0.05, topics=40, subscribers=30)


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    with (tmp_path / "c.jsonl").open("wb") as file:
        write_captures(Workload(KNOBS).messages(), file, "jsonl")
    (tmp_path / "s.mqsc").write_text(setup_script(KNOBS))
    return ["replay", "--input", str(tmp_path / "c.jsonl"), "--setup", str(tmp_path / "s.mqsc"), "--output"]


def test_the_rows_are_the_lines(tmp_path: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(put_columns, "_BATCH_ROWS", 200)
    monkeypatch.setattr(put_columns, "_GROUP_BYTES", 100_000)
    for name in ("p.jsonl", "p.parquet"):
        assert CliRunner().invoke(main, [*arguments, str(tmp_path / name)]).exit_code == ExitCode.PROBLEMS
    file = parquet.ParquetFile(tmp_path / "p.parquet")
    assert file.schema_arrow.equals(SCHEMA)
    assert file.num_row_groups > 1
    rows = file.read().to_pylist()
    for row in rows:
        row["md_hex"], row["body_hex"] = row.pop("md").hex(), row.pop("body").hex()
    assert rows == [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]


def test_messages_in_any_order(tmp_path: Path, arguments: list[str]) -> None:
    assert CliRunner().invoke(main, [*arguments, str(tmp_path / "p.parquet")]).exit_code == ExitCode.PROBLEMS
    capture = tmp_path / "c.jsonl"
    capture.write_text("".join(capture.read_text().splitlines(keepends=True)[::-1]))
    assert CliRunner().invoke(main, [*arguments, str(tmp_path / "again.parquet")]).exit_code == ExitCode.PROBLEMS
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "p.parquet").read_bytes()


def test_without_pyarrow_it_says_what_to_install(
    tmp_path: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "commands.replay.put_columns", None)
    result = CliRunner().invoke(main, [*arguments, str(tmp_path / "p.parquet")])
    assert result.exit_code not in (ExitCode.DONE, ExitCode.PROBLEMS)
    assert "pip install '.[parquet]'" in result.output
    assert not (tmp_path / "p.parquet").exists()


def test_another_name_is_refused(tmp_path: Path, arguments: list[str]) -> None:
    result = CliRunner().invoke(main, [*arguments, str(tmp_path / "p.csv")])
    assert result.exit_code == ExitCode.USAGE
    assert ".jsonl or .parquet" in result.output


def test_the_columns_are_those_of_spark() -> None:
    pytest.importorskip("pyspark")
    from commands.replay.spark.schemas import PUTS, arrow_schema

    assert arrow_schema(PUTS).equals(SCHEMA)
