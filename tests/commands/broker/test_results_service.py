"""The football results service, end to end: the shipped capture gives the golden puts, however it is run."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from commands.cli import main
from tests.commands.results_service import FIXTURE, as_lines, capture

CAPTURE = FIXTURE / "capture.jsonl"
GOLDEN = FIXTURE / "puts.jsonl"


def test_the_shipped_capture_is_what_its_program_makes() -> None:
    assert CAPTURE.read_text() == as_lines(capture())


def test_replayed_twice_it_equals_the_golden_puts_byte_for_byte(tmp_path: Path) -> None:
    for name in ("once.jsonl", "twice.jsonl"):
        arguments = ["replay", "--engine", "local", "--input", str(CAPTURE), "--output", str(tmp_path / name)]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
        assert (tmp_path / name).read_bytes() == GOLDEN.read_bytes()
