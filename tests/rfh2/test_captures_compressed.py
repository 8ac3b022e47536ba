"""Compressed captures: read as what they hold, from files and pipes, damaged ones reported."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rfh2.captures import read_captures
from rfh2.captures.compressed import decompressed, is_compressed

FORMATS = Path(__file__).parents[2] / "fixtures" / "captures" / "formats"
PACKED = [
    pytest.param(gzip.compress, id="gz"),
    pytest.param(bz2.compress, id="bz2"),
    pytest.param(lzma.compress, id="xz"),
]
CAPTURES = ["stock.jsonl", "stock.mqmd", "stock.qload", "stock.pcap", "stock.parquet", "stock-xxd.hex", "stock.bcg"]
Pack = Callable[[bytes], bytes]


def bodies(source: Path | io.BytesIO, form: str = "auto") -> list[bytes]:
    records = list(read_captures(source, form))
    assert [record.problem for record in records if record.problem] == []
    return [record.message.body for record in records if record.message is not None]


@pytest.mark.parametrize("pack", PACKED)
@pytest.mark.parametrize("name", CAPTURES)
def test_a_compressed_capture_is_read_as_what_it_holds(name: str, pack: Pack, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.gz"
    path.write_bytes(pack((FORMATS / name).read_bytes()))
    expected = bodies(FORMATS / name)
    assert expected
    assert bodies(path) == bodies(io.BytesIO(path.read_bytes())) == expected


@pytest.mark.parametrize("pack", PACKED)
def test_the_format_may_be_given(pack: Pack) -> None:
    data = (FORMATS / "stock.qload").read_bytes()
    assert bodies(io.BytesIO(pack(data)), "qload") == bodies(FORMATS / "stock.qload")


def test_raw_data_stays_as_it_is() -> None:
    data = gzip.compress(b"data")
    assert bodies(io.BytesIO(data), "raw") == [data]


@pytest.mark.parametrize("pack", PACKED)
def test_from_a_pipe(pack: Pack) -> None:
    reading, writing = os.pipe()
    data = pack((FORMATS / "stock.jsonl").read_bytes())
    with os.fdopen(reading, "rb") as stream:
        writer = threading.Thread(target=lambda: (os.write(writing, data), os.close(writing)))
        writer.start()
        found = [record.message.body for record in read_captures(stream) if record.message is not None]
        writer.join()
    assert found == bodies(FORMATS / "stock.jsonl")


@pytest.mark.parametrize("pack", PACKED)
@pytest.mark.parametrize("form", ["auto", "jsonl"])
def test_what_was_cut_is_reported_behind_what_could_be_read(pack: Pack, form: str) -> None:
    line = (FORMATS / "stock.jsonl").read_bytes().splitlines(keepends=True)[0]
    whole = pack(b"".join([line] * 2000))
    records = list(read_captures(io.BytesIO(whole[:-20]), form))
    assert records[-1].problem is not None
    assert "damaged" in str(records[-1].problem)
    assert all(record.problem is None for record in records[:-1])


def test_compression_within_compression_is_data() -> None:
    inner = gzip.compress(b"data")
    assert bodies(io.BytesIO(gzip.compress(inner))) == [inner]


def test_what_is_not_compressed_is_left_alone() -> None:
    assert not is_compressed(b"\x1f\x8b")
    with pytest.raises(ValueError, match="not compressed"):
        decompressed(b"MD  ", io.BytesIO(b"MD  "))
