"""The files of ``capture``: complete, hidden until then, and the same after any end of the program."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from commands.running.capture_files import CaptureFiles
from rfh2.captured import CapturedMessage
from rfh2.captures import read_captures
from rfh2.errors import StoreError
from rfh2.mqmd import Mqmd


def message(data: str, backout_count: int = 0) -> CapturedMessage:
    md = Mqmd(backout_count=backout_count, msg_id=data.encode().ljust(24)).encode()
    return CapturedMessage(seq=0, queue="S", md_hex=md.hex(), body_hex=data.encode().hex())


def there(directory: Path) -> list[tuple[int, str]]:
    """What a verb reads of the directory."""
    records = [record.message for record in read_captures(directory)]
    return [(each.seq, each.body.decode()) for each in records if each is not None]


def test_a_file_is_hidden_until_it_is_complete(tmp_path: Path) -> None:
    with CaptureFiles(tmp_path, "jsonl", 2) as files:
        files.add([message("1")])
        files.roll()
        assert there(tmp_path) == []
        files.add([message("2")])
        files.roll()
        assert there(tmp_path) == [(1, "1"), (2, "2")]
        files.add([message("3")])
        files.finish()
    assert there(tmp_path) == [(1, "1"), (2, "2"), (3, "3")]
    assert sorted(path.name for path in tmp_path.glob("capture*")) == ["capture-000001.jsonl", "capture-000002.jsonl"]


@pytest.mark.parametrize("cut", range(3))
def test_an_interrupted_file_goes_on_where_its_last_line_was_cut(tmp_path: Path, cut: int) -> None:
    with CaptureFiles(tmp_path, "jsonl", 10) as files:
        files.add([message("1"), message("2")])
    (partial,) = tmp_path.glob(".capture*")
    whole = partial.read_bytes()
    partial.write_bytes(whole[: len(whole) - cut])
    with CaptureFiles(tmp_path, "jsonl", 10) as files:
        # Nothing was committed: all come again, with another BackoutCount, and a new one.
        assert files.add([message("1", 1), message("2", 1), message("3")]) == (1 if cut == 0 else 2)
        files.finish()
    assert there(tmp_path) == [(1, "1"), (2, "2"), (3, "3")]


def test_only_what_is_in_doubt_is_known_again(tmp_path: Path) -> None:
    with CaptureFiles(tmp_path, "jsonl", 10) as files:
        assert files.add([message("1")]) == 1
        assert files.add([message("1")]) == 1  # the same message put twice
        files.once.doubt()
        assert files.once.knows([message("1", 1)])
        assert files.add([message("1", 1), message("1")]) == 1
        files.finish()
    assert [data for _, data in there(tmp_path)] == ["1", "1", "1"]


def test_a_file_that_was_being_converted_is_not_read_twice(tmp_path: Path) -> None:
    with CaptureFiles(tmp_path, "jsonl", 10) as files:
        files.add([message("1")])
    (partial,) = tmp_path.glob(".capture*partial")
    left = partial.read_bytes()
    with CaptureFiles(tmp_path, "parquet", 10) as files:
        files.finish()
    partial.write_bytes(left)  # ended after the new file had its name
    with CaptureFiles(tmp_path, "parquet", 10) as files:
        assert files.add([message("1", 1), message("2")]) == 1
        files.finish()
    assert there(tmp_path) == [(1, "1"), (2, "2")]


class _Full:
    """A file on a disk that has room for 20 bytes more."""

    def __init__(self, file: Any) -> None:
        self._file, self.left = file, 20

    def write(self, data: bytes) -> int:
        if not self.left:
            raise OSError(28, "No space left on device")
        self.left = 0
        return int(self._file.write(data[:20]))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def test_a_full_disk_leaves_nothing_of_what_is_refused(tmp_path: Path) -> None:
    with CaptureFiles(tmp_path, "jsonl", 10) as files:
        files.add([message("1")])
        file = files._file
        files._file = cast(Any, _Full(file))
        with pytest.raises(OSError, match=r"No space.*partial"):
            files.add([message("2"), message("3")])
        files._file = file
        assert files.add([message("2")]) == 1
        files.finish()
    assert there(tmp_path) == [(1, "1"), (2, "2")]


def test_two_captures_do_not_share_a_directory(tmp_path: Path) -> None:
    with CaptureFiles(tmp_path, "jsonl", 10), pytest.raises(StoreError, match="is in use"):
        CaptureFiles(tmp_path, "jsonl", 10)
