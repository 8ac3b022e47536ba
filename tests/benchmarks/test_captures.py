"""Messages a second out of each capture format, beside the least work that reads the same bytes in the same run.

The floor of a format is what no reader of it can do without: for JSON Lines, json.loads and bytes.fromhex; for Parquet,
pyarrow's rows; for MQMD and data, a split and two slices; for text in hex, bytes.fromhex of the joined digits; for
packets, dpkt's reading of each frame. Shown with ``--benchmark-enable -s``.
"""

from __future__ import annotations

import io
import json
import re
import timeit
from collections.abc import Callable
from pathlib import Path

import dpkt
import pytest
from pyarrow import parquet
from pytest_benchmark.fixture import BenchmarkFixture

from rfh2 import CapturedMessage, Mqmd
from rfh2.captures import read_captures, write_captures
from tests.rfh2.channel_wire import MQPUT, MQPUT_REPLY, Session, Wire, pcap, rfh2

COUNT = 2_000
BODY = rfh2("Stock/NYSE/IBM") + b"x" * 300
MD = Mqmd(version=2, format="MQHRF2").encode()
MESSAGES = [
    CapturedMessage(seq=seq, queue="SYSTEM.BROKER.DEFAULT.STREAM", md_hex=MD.hex(), body_hex=BODY.hex())
    for seq in range(COUNT)
]
GOLDEN = Path(__file__).parents[2] / "fixtures" / "captures" / "formats"


def _written(form: str) -> bytes:
    target = io.BytesIO()
    write_captures(MESSAGES, target, form)
    return target.getvalue()


def _channel() -> bytes:
    wire, session = Wire(), Session()
    for _ in range(COUNT):
        session.client(wire.segment(MQPUT, wire.mqput(MD, BODY)))
        session.server(wire.segment(MQPUT_REPLY, wire.mqput_reply(MD)))
    return pcap(session.frames)


def _listing() -> bytes:
    text = (GOLDEN / "stock.bcg").read_bytes()
    start, end = text.index(b" MQGET of"), text.index(b" \n \n No more")
    return text[:start] + text[start:end] * COUNT


def _floor_jsonl(data: bytes) -> int:
    rows = [json.loads(line) for line in data.splitlines()]
    return sum(len(bytes.fromhex(row["md_hex"])) > 0 and len(bytes.fromhex(row["body_hex"])) > 0 for row in rows)


def _floor_parquet(data: bytes) -> int:
    return len(parquet.ParquetFile(io.BytesIO(data)).read().to_pylist())


def _floor_mqmd(data: bytes) -> int:
    return len([(piece[:364].hex(), piece[364:].hex()) for piece in data.split(b"#@#@#")])


def _floor_hex(data: bytes) -> int:
    blocks = (block.splitlines() for block in data.split(b"\n\n"))
    return len([bytes.fromhex("".join(line[10:49].decode() for line in lines)) for lines in blocks])


def _floor_qload(data: bytes) -> int:
    messages = data.split(b"\n\n")[1:-1]
    return len([bytes.fromhex(b"".join(re.findall(rb"^X (\w+)", text, re.MULTILINE)).decode()) for text in messages])


def _floor_amqsbcg(data: bytes) -> int:
    messages = data.split(b" MQGET of")[1:]
    return len([bytes.fromhex("".join(re.findall(r"^\w{8}: ([ \w]*)", m.decode(), re.MULTILINE))) for m in messages])


def _floor_pcap(data: bytes) -> int:
    frames = (dpkt.ethernet.Ethernet(frame) for _, frame in dpkt.pcap.Reader(io.BytesIO(data)))
    return sum(b"MD  " in frame.ip.tcp.data and frame.ip.tcp.dport == 1414 for frame in frames)


CASES: dict[str, tuple[bytes, Callable[[bytes], int]]] = {
    "jsonl": (_written("jsonl"), _floor_jsonl),
    "parquet": (_written("parquet"), _floor_parquet),
    "mqmd": (_written("mqmd"), _floor_mqmd),
    "hex": (_written("hex"), _floor_hex),
    "qload": (_written("qload"), _floor_qload),
    "amqsbcg": (_listing(), _floor_amqsbcg),
    "pcap": (_channel(), _floor_pcap),
}


@pytest.mark.parametrize("form", list(CASES))
def test_reading(form: str, benchmark: BenchmarkFixture) -> None:
    data, floor = CASES[form]

    def work() -> int:
        return sum(record.message is not None for record in read_captures(io.BytesIO(data), form, name="benchmark"))

    assert benchmark(work) == floor(data) == COUNT
    if benchmark.stats is not None:
        least = min(timeit.repeat(lambda: floor(data), number=1, repeat=5))
        taken = benchmark.stats.stats.min
        rate, size = COUNT / taken, len(data) / taken / 1e6
        print(f"\n{form}: {rate:,.0f} messages/s, {size:.0f} MB/s, {taken / least:.1f} x the floor")
