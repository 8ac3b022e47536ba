"""The results service in MQRFH, end to end: the capture gives the golden puts, and they are what they must be."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from commands.cli import main
from tests.commands.results_service import as_lines
from tests.commands.results_service_rfh1 import FIXTURE, GOLDEN, SETUP, capture

CAPTURE = FIXTURE / "capture.jsonl"


def test_the_shipped_capture_is_what_its_program_makes() -> None:
    assert CAPTURE.read_text() == as_lines(capture())


# docs/conformance.md: OLD-18
@pytest.mark.rule("OLD-18")
@pytest.mark.parametrize("semantics", ["v7", "v6"])
def test_replayed_twice_it_equals_the_golden_puts_byte_for_byte(tmp_path: Path, semantics: str) -> None:
    for name in ("once.jsonl", "twice.jsonl"):
        arguments = ["replay", "--semantics", semantics, "--setup", str(SETUP), "--input", str(CAPTURE)]
        result = CliRunner().invoke(main, [*arguments, "--output", str(tmp_path / name)])
        assert result.exit_code == 0, result.output
        assert (tmp_path / name).read_bytes() == GOLDEN[semantics].read_bytes()
