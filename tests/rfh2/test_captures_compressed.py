"""Compressed captures: read as what they hold, from files and pipes, damaged ones reported."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from rfh2.captures import read_captures
from rfh2.captures.compressed import decompressed, is_compressed
from rfh2.distribution import how_to_install

FORMATS = Path(__file__).parents[2] / "fixtures" / "captures" / "formats"
PACKED = [
    pytest.param(gzip.compress, id="gz"),
    pytest.param(bz2.compress, id="bz2"),
    pytest.param(lzma.compress, id="xz"),
    pytest.param(lambda data: arrow("zstd", data), id="zst"),
    pytest.param(lambda data: PZSTD + arrow("zstd", data), id="pzstd"),
    pytest.param(lambda data: arrow("lz4", data), id="lz4"),
]
PZSTD = b"\x50\x2a\x4d\x18\4\0\0\0size"
CAPTURES = ["stock.jsonl", "stock.mqmd", "stock.qload", "stock.pcap", "stock.parquet", "stock-xxd.hex", "stock.bcg"]
Pack = Callable[[bytes], bytes]


def arrow(codec: str, data: bytes) -> bytes:
    """*data* compressed by pyarrow; where that is missing, nobody reads it either."""
    packed: bytes = pytest.importorskip("pyarrow").compress(data, codec, asbytes=True)
    return packed


def bodies(source: Path | io.BytesIO, form: str = "auto") -> list[bytes]:
    records = list(read_captures(source, form))
    assert [record.problem for record in records if record.problem] == []
    return [record.message.body for record in records if record.message is not None]


@pytest.mark.parametrize("pack", PACKED)
@pytest.mark.parametrize("name", CAPTURES)
def test_a_compressed_capture_is_read_as_what_it_holds(name: str, pack: Pack, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.zst"
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


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_without_pyarrow_the_problem_says_what_to_install(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = arrow(codec, (FORMATS / "stock.jsonl").read_bytes())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (record,) = read_captures(io.BytesIO(data), name="capture")
    assert str(record.problem) == (
        f"capture: it is compressed with {codec}, and pyarrow, which reads that, is not installed: "
        f"{how_to_install('parquet')}, or decompress the file first"
    )


def test_damage_is_called_so_whatever_library_finds_it() -> None:
    for pack in (gzip.compress, bz2.compress, lzma.compress, lambda data: arrow("lz4", data)):
        data = pack(b"0123456789" * 10_000)
        (record,) = read_captures(io.BytesIO(data[:40] + bytes(40) + data[80:]), "jsonl", name="capture")
        assert "cannot be read further: the compressed data is damaged: " in str(record.problem)


def _tar() -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("capture.jsonl"))
    return target.getvalue()


def _zip() -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.write(FORMATS / "stock.jsonl")
    return target.getvalue()


# (file, its data, what is said)
UNREADABLE = [
    ("c.zip", _zip(), "it is a zip archive: extract the captures first"),
    ("c.tar", _tar(), "it is a tar archive: extract the captures first"),
    ("c.tar.gz", gzip.compress(_tar()), "it is a tar archive: extract the captures first"),
    ("c.jsonl.sz", b"\xff\6\0\0sNaPpY\1", "it is compressed with snappy: decompress the file first"),
    ("c.avro", b"Obj\1\4\x14avro.codec", "it is an Avro file: convert it to Parquet or JSON Lines first"),
    ("c.orc", b"ORC\x3f\0\0\x0a\6\x12", "it is an ORC file: convert it to Parquet or JSON Lines first"),
    ("c.arrow", b"ARROW1\0\0\xff\xff", "it is an Arrow file: convert it to Parquet or JSON Lines first"),
    (
        "c.jsonl.br",
        b"\x0b\x80\xff\3",
        "by its name, it is compressed with brotli, in a form that is not read: decompress the file first",
    ),
    (
        "c.jsonl.LZ4",
        b"\0\0\x12\x34\0\0\1\xff",
        "by its name, it is compressed with lz4, in a form that is not read: decompress the file first",
    ),
]


@pytest.mark.parametrize(("name", "data", "why"), UNREADABLE, ids=[row[0] for row in UNREADABLE])
def test_what_cannot_be_read_is_never_a_message(name: str, data: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    (tmp_path / "d.jsonl").write_bytes((FORMATS / "stock.jsonl").read_bytes())
    first, *others = read_captures(tmp_path)
    assert str(first.problem) == f"{path}: {why}"
    assert [record.problem for record in others] == [None]
    assert bodies(path, "raw") == [data]


@pytest.mark.parametrize("name", ["c.jsonl.br", "orchestra.txt"])
def test_a_name_or_a_word_alone_makes_no_file_unreadable(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    data = (FORMATS / "stock.mqmd").read_bytes() if name.endswith("br") else b"ORCHESTRA in the pit"
    path.write_bytes(data)
    assert bodies(path) == bodies(io.BytesIO(data))
