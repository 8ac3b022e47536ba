"""The file of a fixed size that the status is kept in."""

from __future__ import annotations

from pathlib import Path

from commands.running.work_page import FixedFile, read_fixed


def test_a_status_that_is_being_written_is_read_as_it_was_before(tmp_path: Path) -> None:
    path = tmp_path / "file"
    file = FixedFile(path, 1000)
    for n in range(5):
        assert read_fixed(path, 1000) == ({"n": n - 1} if n else {})
        file.write({"n": n})
    torn = bytearray(path.read_bytes())
    torn[1000 * 1 + 26] ^= 1  # the fifth write went to the second place
    path.write_bytes(torn)
    assert read_fixed(path, 1000) == {"n": 3}
    assert FixedFile(path, 1000).write({"n": "x" * 1000}) is False
    assert read_fixed(tmp_path / "none", 1000) == {}
