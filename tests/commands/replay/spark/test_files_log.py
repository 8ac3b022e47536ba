"""The log of files that a stream has read: the offsets that Spark keeps are numbers, however many files there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commands.replay.spark.source import FilesLog

START: dict[str, Any] = {"files": {}, "next": 1}


def _filled(directory: Path, count: int, start: dict[str, Any]) -> dict[str, Any]:
    """The offset after so many batches of two files."""
    log, offset = FilesLog(directory), start
    for batch in range(count):
        offset = {"log": log.add(offset, {f"{batch}a": batch, f"{batch}b": batch}), "next": 1}
        log.forget(offset)
    return offset


@pytest.mark.parametrize("count", [1, 99, 100, 101, 350])
@pytest.mark.parametrize("earlier", [{}, {"old": 7}], ids=["begun-with-it", "begun-without"])
def test_a_new_process_knows_what_was_read(tmp_path: Path, count: int, earlier: dict[str, int]) -> None:
    end = _filled(tmp_path, count, {"files": earlier, "next": 1})
    every = {f"{batch}{name}": batch for batch in range(count) for name in "ab"}
    assert FilesLog(tmp_path).up_to(end) == earlier | every
    before = {"log": count - 1} if count > 1 else START
    assert FilesLog(tmp_path).between(before, end) == {f"{count - 1}a": count - 1, f"{count - 1}b": count - 1}
    assert len(list(tmp_path.iterdir())) <= 200


def test_an_offset_that_spark_has_not_recorded_is_made_again(tmp_path: Path) -> None:
    start = _filled(tmp_path, 3, START)
    log = FilesLog(tmp_path)
    assert log.add(start, {"lost": 1}) == 4
    assert log.add(start, {"found": 1, "more": 1}) == 4
    assert "lost" not in log.up_to({"log": 4})
    assert FilesLog(tmp_path).between(start, {"log": 4}) == {"found": 1, "more": 1}
