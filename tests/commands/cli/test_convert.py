"""``qpubsub convert``: any capture format in, any that can be written out."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from commands.cli import main
from commands.terminal.console import Console, ExitCode
from rfh2.captures import FORMATS, read_captures

GOLDEN = Path(__file__).parents[3] / "fixtures" / "captures" / "formats"
STREAM = "SYSTEM.BROKER.DEFAULT.STREAM"


class Run:
    """What one run wrote."""

    def __init__(self, *args: str | Path, stdin: bytes = b"") -> None:
        class Standard(Console):
            @property
            def stdin(self) -> io.BytesIO:
                return io.BytesIO(stdin)

        out, err = io.BytesIO(), io.StringIO()
        with pytest.raises(SystemExit) as ended:
            main.main(["convert", *map(str, args)], "qpubsub", obj=Standard(out, err))
        self.code, self.out, self.err = ended.value.code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("form", [name for name, entry in FORMATS.items() if entry.writer is not None])
def test_to_every_format_and_back(form: str, tmp_path: Path) -> None:
    there = Run("--to", form, "-o", tmp_path / "there", GOLDEN / "stock.qload")
    assert (there.code, there.out) == (ExitCode.DONE, b"")
    back = Run(tmp_path / "there")
    assert back.code == ExitCode.DONE
    (line,) = map(json.loads, back.out.splitlines())
    assert line["body_hex"] == (GOLDEN / "stock.raw").read_bytes().hex()


def test_stdin_to_stdout() -> None:
    run = Run("--to", "hex", stdin=(GOLDEN / "stock.mqmd").read_bytes())
    assert run.code == ExitCode.DONE
    assert run.out == (GOLDEN / "stock-xxd.hex").read_bytes()
    assert run.err == "1 message converted to hex\n"


def test_numbers_go_on_from_file_to_file() -> None:
    run = Run(GOLDEN / "stock.raw", GOLDEN / "stock.bcg", "-", stdin=b'{"body_hex":"00"}')
    assert [json.loads(line)["seq"] for line in run.out.splitlines()] == [1, 2, 3]


def test_a_queue_for_those_that_have_none() -> None:
    run = Run("--queue", "Q1", GOLDEN / "stock.raw", GOLDEN / "stock.bcg")
    assert [json.loads(line)["queue"] for line in run.out.splitlines()] == ["Q1", STREAM]


def test_what_is_bad_is_told_and_the_rest_converted(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b'nonsense\n{"body_hex":"00"}\n')
    run = Run(tmp_path / "in.jsonl")
    assert run.code == ExitCode.PROBLEMS
    assert len(run.out.splitlines()) == 1
    assert f"{tmp_path / 'in.jsonl'}, line 1: " in run.err


def test_what_the_target_cannot_hold_is_told_and_the_rest_converted() -> None:
    run = Run("--to", "raw", GOLDEN / "stock.raw", GOLDEN / "stock.bcg")
    assert (run.code, run.out) == (ExitCode.PROBLEMS, (GOLDEN / "stock.raw").read_bytes())
    assert "message 2: raw holds one message only" in run.err


def test_what_the_target_has_no_place_for_is_told() -> None:
    run = Run("--to", "mqmd", GOLDEN / "stock.qload", GOLDEN / "stock.pcap")
    assert run.code == ExitCode.DONE
    assert "mqmd cannot hold: qmgr of 2 messages, queue of 2 messages, time of 1 message\n" in run.err


def test_a_directory_may_be_converted_into_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.raw").write_bytes((GOLDEN / "stock.raw").read_bytes())
    run = Run("--to", "qload", "-o", tmp_path / "all.qload", tmp_path)
    assert run.code == ExitCode.DONE
    assert len(list(read_captures(tmp_path / "all.qload"))) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.raw", "all.qload"]


MISSING = [
    ("file", ["nowhere"], "nowhere: no such file or directory"),
    ("format-only-read", ["--to", "pcap"], "'pcap' is not one of"),
    ("unknown-format", ["--format", "csv"], "'csv' is not one of"),
]


@pytest.mark.parametrize(("args", "why"), [case[1:] for case in MISSING], ids=[case[0] for case in MISSING])
def test_usage(args: list[str], why: str) -> None:
    run = Run(*args)
    assert (run.code, run.out) == (ExitCode.USAGE, b"")
    assert why in run.err
    assert "Traceback" not in run.err


def test_no_file_is_left_of_a_run_that_failed(tmp_path: Path) -> None:
    (tmp_path / "old.jsonl").write_bytes(b"kept")
    run = Run("-o", tmp_path / "old.jsonl", tmp_path / "old.jsonl", tmp_path / "missing")
    assert run.code == ExitCode.USAGE
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("old.jsonl", b"kept")]
