"""A capture of any size is read and written with the memory that its largest message needs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rfh2 import CapturedMessage, Mqmd
from rfh2.captures import FORMATS, write_captures
from tests.rfh2.channel_wire import MQPUT, Session, Wire, pcap

MESSAGE_BYTES = 50_000
# What one message of this size, its hex, and the buffers of a reader come to; the file is far above it.
LIMIT_BYTES = 24 << 20
FILE_BYTES = 64 << 20

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc"),
]

# A process of its own: peak memory is of a process, and what came before would hide what is measured.
MEASURE = """
import re, sys
from pathlib import Path
from rfh2.captures import read_captures, write_captures
def peak(): return int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
small, large, target = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
def work(path):
    if target == "read":
        return sum(1 for record in read_captures(path) if record.message is not None)
    with open("/dev/null", "wb") as sink:
        return write_captures((r.message for r in read_captures(path)), sink, target)
work(small)
before = peak()
count = work(large)
print(count, peak() - before)
"""


def messages(count: int) -> Iterator[CapturedMessage]:
    md = Mqmd(version=2, format="MQSTR").encode().hex()
    for seq in range(count):
        body = (seq.to_bytes(4, "big") * (MESSAGE_BYTES // 4)).hex()
        yield CapturedMessage(seq=seq, queue="Q", md_hex=md, body_hex=body)


def channel(count: int) -> Iterator[bytes]:
    """A pcap of *count* puts over one connection, in pieces."""
    yield pcap([])
    wire, session = Wire(), Session(mss=8000)
    for message in messages(count):
        assert message.md is not None
        session.client(wire.segments(MQPUT, wire.mqput(message.md, message.body), 32_000))
        yield pcap(session.frames)[24:]
        session.frames.clear()


def listing(count: int) -> Iterator[bytes]:
    """An amqsbcg listing of *count* messages, in pieces."""
    golden = (Path(__file__).parents[2] / "fixtures" / "captures" / "formats" / "stock.bcg").read_bytes()
    start, end = golden.index(b" MQGET of"), golden.index(b"00000000:")
    yield golden[:start]
    for message in messages(count):
        body = message.body
        yield golden[start:end].replace(b"132 of 132", b"%d of %d" % (len(body), len(body)))
        yield b"".join(
            b"%08X:  %s '%s'\n" % (at, body[at : at + 16].hex(" ", -2).upper().encode(), b"." * 16)
            for at in range(0, len(body), 16)
        )


def _make(form: str, path: Path, count: int) -> None:
    with path.open("wb") as target:
        if form == "pcap":
            target.writelines(channel(count))
        elif form == "amqsbcg":
            target.writelines(listing(count))
        else:
            write_captures(messages(count), target, form)


@pytest.mark.parametrize("form", [name for name in FORMATS if name not in ("raw", "pasted")])
def test_reading_needs_the_memory_of_the_largest_message(form: str, tmp_path: Path) -> None:
    # Arrow's allocator keeps what it once had; that does not grow with the file either.
    assert _measured(form, tmp_path, "read") < LIMIT_BYTES + (16 << 20 if form == "parquet" else 0)


@pytest.mark.parametrize("form", ["jsonl", "parquet", "mqmd", "hex", "qload"])
def test_writing_needs_the_memory_of_the_largest_message(form: str, tmp_path: Path) -> None:
    # Parquet holds a row group until it is whole, in Python's objects, in Arrow's, and encoded.
    limit = LIMIT_BYTES + (8 * (16 << 20) if form == "parquet" else 0)
    assert _measured("mqmd", tmp_path, form) < limit


def _measured(form: str, directory: Path, work: str) -> int:
    """By how many bytes the peak grows from a file of four messages to one of FILE_BYTES, once both are worked."""
    _make(form, directory / "small", 4)
    size = (directory / "small").stat().st_size / 4 if form != "parquet" else MESSAGE_BYTES
    expected = int(FILE_BYTES / size)
    _make(form, directory / "large", expected)
    command = [sys.executable, "-c", MEASURE, str(directory / "small"), str(directory / "large"), work]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    count, grown = map(int, out.split())
    assert count == expected
    return grown
