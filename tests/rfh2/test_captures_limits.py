"""Small files that come to much: compressed data, repeated lines. Each is an error that says what to do."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from rfh2.captured import CapturedMessage
from rfh2.captures import CaptureRecord, read_captures, write_captures
from rfh2.captures.record import DEFAULT_BYTES, VARIABLE
from rfh2.errors import CaptureError

PACKED: list[Callable[[bytes], bytes]] = [gzip.compress, bz2.compress, lzma.compress]
FORMATS = Path(__file__).parents[2] / "fixtures" / "captures" / "formats"
BOUND = 100_000


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(BOUND))


def message(size: int, seq: int = 1) -> CapturedMessage:
    return CapturedMessage(seq=seq, queue="Q", body_hex="ab" * size)


def written(form: str, *sizes: int) -> bytes:
    target = io.BytesIO()
    write_captures([message(size, seq) for seq, size in enumerate(sizes, 1)], target, form)
    return target.getvalue()


def read(data: bytes, form: str = "auto") -> list[CaptureRecord]:
    return list(read_captures(io.BytesIO(data), form, name="capture"))


def problems(records: list[CaptureRecord]) -> list[str]:
    return [str(record.problem) for record in records if record.problem is not None]


@pytest.mark.usefixtures("bound")
@pytest.mark.parametrize("pack", PACKED, ids=["gz", "bz2", "xz"])
@pytest.mark.parametrize("form", ["jsonl", "mqmd", "hex", "qload", "raw"])
def test_one_record_of_a_compressed_file_is_bounded(form: str, pack: Callable[[bytes], bytes]) -> None:
    data = written(form, 2 * BOUND)
    assert problems(read(data, form)) == [], "what is not compressed is as large as its file"
    (problem,) = problems(read(pack(data)))
    assert problem == (
        f"capture: cannot be read further: one record, decompressed, is more than {BOUND} bytes; "
        f"decompress the file first, or set {VARIABLE} to allow more"
    )


# The reader of mqmd reads a megabyte ahead, which counts.
@pytest.mark.parametrize(
    ("form", "allowed"), [("jsonl", BOUND), ("mqmd", 30 * BOUND), ("hex", BOUND), ("qload", BOUND)]
)
def test_any_number_of_records_below_the_bound_is_read(
    form: str, allowed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(allowed))
    records = read(gzip.compress(written(form, *[allowed // 20] * 30)))
    assert (problems(records), len(records)) == ([], 30)


@pytest.mark.usefixtures("bound")
def test_packets_that_are_no_messages_are_passed_over() -> None:
    """A capture of everything on a network: of a thousand packets perhaps one is a message's."""
    capture = (FORMATS / "stock.pcap").read_bytes()
    header, packets = capture[:24], capture[24:]
    other = b"\0" * 8 + (1400).to_bytes(4, "little") * 2 + b"\0" * 1400
    assert problems(read(gzip.compress(header + other * (5 * BOUND // 1400) + packets))) == []


def test_the_bound_lets_an_ordinary_large_message_pass() -> None:
    records = read(gzip.compress(written("jsonl", 8 << 20)))
    assert (problems(records), len(records)) == ([], 1)


@pytest.mark.parametrize("text", ["0", "-1", "", "10 MB", "1e6", "٣", "9" * 30])
def test_a_bound_that_is_no_number_is_an_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(CaptureError, match="not a number of bytes"):
        read(b"")


@pytest.mark.usefixtures("bound")
def test_parquet_in_a_compressed_file_takes_no_more_of_the_disk() -> None:
    data = written("parquet", *[1000] * 3)
    assert problems(read(gzip.compress(data))) == []
    bomb = gzip.compress(b"PAR1" + bytes(300 * BOUND) + data)
    (problem,) = problems(read(bomb))
    assert "the file, decompressed, is more than" in problem
    assert VARIABLE in problem


DUMP = """00000000  41 42 43 44 45 46 47 48  49 4a 4b 4c 4d 4e 4f 50  |ABCDEFGHIJKLMNOP|
*
{:08x}
"""


@pytest.mark.usefixtures("bound")
def test_repeated_lines_of_a_dump_are_bounded() -> None:
    (record,) = read(DUMP.format(BOUND // 16 * 16).encode())
    assert record.message is not None
    assert len(record.message.body) == BOUND // 16 * 16
    (problem,) = problems(read(DUMP.format(2 * BOUND // 16 * 16).encode()))
    told = f"capture, line 3: the data that * repeats is more than {BOUND} bytes; set {VARIABLE} to allow more"
    assert problem == told


@pytest.mark.usefixtures("bound")
def test_they_are_bounded_together() -> None:
    half = BOUND // 32 * 16 + 16
    line = "41 42 43 44 45 46 47 48  49 4a 4b 4c 4d 4e 4f 50"
    dump = f"00000000  {line}\n*\n{half:08x}  {line}\n*\n{3 * half:08x}\n"
    assert len(problems(read(dump.encode()))) == 1


# Parquet


def with_a_list_of(claimed: int) -> bytes:
    """A capture whose footer says of its list of columns that there are so many."""
    data = (FORMATS / "stock.parquet").read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:-8]
    # Thrift's compact form of a list: its length and the kind of its elements, a structure, in a byte; from 15 on the
    # length is in the bytes that follow, seven bits in each.
    at = footer.index(b"\x8c")
    sevens = [claimed >> shift & 0x7F for shift in range(0, claimed.bit_length(), 7)]
    length = bytes(seven | 0x80 for seven in sevens[:-1]) + bytes(sevens[-1:])
    footer = footer[:at] + b"\xfc" + length + footer[at + 1 :]
    return data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def test_a_list_in_the_footer_that_is_longer_than_the_footer() -> None:
    (problem,) = problems(read(with_a_list_of(990_000)))
    assert problem.startswith("capture: not readable as Parquet: Couldn't deserialize thrift")


def test_a_file_with_many_columns_and_row_groups_is_read() -> None:
    """Lists in its footer are as long as they are in any file that is sound."""
    rows = {"body": [b"data"] * 120} | {f"c{n}": [n] * 120 for n in range(120)}
    target = io.BytesIO()
    parquet.write_table(pa.table(rows), target, row_group_size=1)
    records = read(target.getvalue())
    assert (problems(records), len(records)) == ([], 120)


@pytest.mark.parametrize("codec", ["zstd", "gzip", "brotli"])
def test_a_row_group_that_comes_to_far_more_than_the_file_is_left_out(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(BOUND))
    target = io.BytesIO()
    schema = pa.schema([("body", pa.binary())])
    with parquet.ParquetWriter(target, schema, compression=codec, use_dictionary=False) as writer:
        for size in (10, 20 * BOUND, 20):
            writer.write_table(pa.table({"body": [b"\0" * size]}, schema))
    records = read(target.getvalue())
    assert [len(record.message.body) for record in records if record.message is not None] == [10, 20]
    (problem,) = problems(records)
    assert "rows up to 1 are not read: their data, expanded, is more than" in problem
    monkeypatch.setenv(VARIABLE, str(20 * BOUND))
    assert problems(read(target.getvalue())) == []


# Memory, in a process of its own: what came before would hide what is measured.
MEASURE = """
import resource, sys
from pathlib import Path
from rfh2.captures import read_captures
list(read_captures(Path(sys.argv[1])))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = [record.problem is not None for record in read_captures(Path(sys.argv[2]))]
print(sum(found), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def bombs() -> Iterator[tuple[str, str, bytes]]:
    line = b'{"seq":1,"queue":"Q","body_hex":"' + b"00" * (95 << 20) + b'"}\n'
    yield "json-line", "stock.jsonl", gzip.compress(line, 9)
    yield "raw", "stock.jsonl", gzip.compress(b"MQ" + bytes(95 << 20), 9)
    yield "dump", "stock-xxd.hex", DUMP.format(95 << 20).encode()
    yield "parquet", "stock.parquet", with_a_list_of(990_000)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["json-line", "raw", "dump", "parquet"])
def test_memory_is_bounded(name: str, tmp_path: Path) -> None:
    ((small, data),) = [(small, data) for each, small, data in bombs() if each == name]
    path = tmp_path / "bomb"
    path.write_bytes(data)
    assert len(data) < 300_000
    program = [sys.executable, "-c", MEASURE, str(FORMATS / small), str(path)]
    bad, kilobytes = subprocess.run(program, capture_output=True, text=True, check=True).stdout.split()
    assert int(bad) == 1
    assert int(kilobytes) << 10 < 4 * DEFAULT_BYTES
