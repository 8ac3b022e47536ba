"""The codec beside the least that hand-written code could do: struct, slices and, for folders, lxml.

Messages: (a) MQMD and an MQRFH2 with one psc folder; (b) psc, mcd and usr folders and 1 KiB of data. ``read`` is
decoding and reading the tags of every folder. Floors are measured in the same run. Shown with
``--benchmark-enable -s``.
"""

from __future__ import annotations

import struct
import timeit
from collections.abc import Callable

import pytest
from lxml import etree
from pytest_benchmark.fixture import BenchmarkFixture

from rfh2 import Folder, Message, Mqmd, Rfh1, Rfh2, decode, encode

DESCRIPTOR = struct.Struct("<4siiiiiii8sii24s24si48s48s12s32s32si28s8s8s4s")
TEXTS = (8, 14, 15, 16, 18, 20, 21, 22, 23)
FIXED = struct.Struct("<4siiii8sii")
LONG = struct.Struct("<i")

PSC = Folder.of(
    "<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>Stock/NYSE/IBM/Price</Topic>"
    "<QMgrName>QM1</QMgrName><QName>PRICES</QName></psc>"
)
MCD = Folder.of("<mcd><Msd>xmlnsc</Msd></mcd>")
USR = Folder.of("<usr><colour>blue</colour><size dt='i4'>7</size></usr>")
MD = Mqmd(
    format="MQHRF2",
    coded_char_set_id=1208,
    msg_id=bytes(range(24)),
    reply_to_q="REPLY.Q",
    reply_to_qmgr="QM1",
    user_identifier="app1",
    put_appl_name="amqspub",
    put_date="20090128",
    put_time="11435418",
)
A = Message(MD, (Rfh2((PSC,), coded_char_set_id=1208, format="MQSTR"),), b"42.5")
B = Message(MD, (Rfh2((PSC, MCD, USR), coded_char_set_id=1208, format="MQSTR"),), b"x" * 1024)
MESSAGES = [pytest.param(A, id="a-psc"), pytest.param(B, id="b-psc-mcd-usr-1KiB")]

Unpacked = tuple[list[object], tuple[object, ...], list[bytes], bytes]


def unpack(md: bytes, data: bytes) -> Unpacked:
    """What a program that knows its messages would write: nothing checked, nothing named."""
    fields: list[object] = list(DESCRIPTOR.unpack(md))
    for i in TEXTS:
        fields[i] = str(fields[i], "latin-1").rstrip()  # type: ignore[call-overload]
    fixed = FIXED.unpack_from(data)
    folders, at, end = [], FIXED.size, fixed[2]
    while at < end:
        (size,) = LONG.unpack_from(data, at)
        folders.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return fields, fixed, folders, data[end:]


def pack(unpacked: Unpacked) -> tuple[bytes, bytes]:
    fields, fixed, folders, body = unpacked
    values = [field.encode("latin-1") if isinstance(field, str) else field for field in fields]
    parts = [FIXED.pack(*fixed)]
    for folder in folders:
        parts += (LONG.pack(len(folder)), folder)
    return DESCRIPTOR.pack(*values), b"".join([*parts, body])


def rate(work: Callable[[], object]) -> float:
    timer = timeit.Timer(work)
    number, _ = timer.autorange()
    return max(number / seconds for seconds in timer.repeat(3, number))


def say(stage: str, ours: float, floor: float, what: str) -> None:
    print(f"\n{stage:<12}{ours:>10,.0f} /s   floor {floor:>10,.0f} /s   ratio {ours / floor:.2f}   ({what})")


@pytest.mark.parametrize("message", MESSAGES)
def test_decode(benchmark: BenchmarkFixture, message: Message) -> None:
    md, data = message.mqmd.encode(), encode(message)
    if benchmark.enabled:
        say("decode", rate(lambda: decode(data, md)), rate(lambda: unpack(md, data)), "floor: struct")
    assert benchmark(decode, data, md) == message


@pytest.mark.parametrize("message", MESSAGES)
def test_read(benchmark: BenchmarkFixture, message: Message) -> None:
    md, data = message.mqmd.encode(), encode(message)

    def ours() -> list[dict[str, object]]:
        header = decode(data, md).headers[0]
        assert isinstance(header, Rfh2)
        return [dict(folder.pairs()) for folder in header.folders]

    def floor() -> list[dict[str, object]]:
        folders = unpack(md, data)[2]
        return [{str(child.tag): child.text for child in etree.fromstring(folder.rstrip())} for folder in folders]

    if benchmark.enabled:
        say("read", rate(ours), rate(floor), "floor: struct and lxml")
    assert benchmark(ours) == floor()


@pytest.mark.parametrize("message", MESSAGES)
def test_encode(benchmark: BenchmarkFixture, message: Message) -> None:
    unpacked = unpack(message.mqmd.encode(), encode(message))

    def ours() -> bytes:
        return message.mqmd.encode() + encode(message)

    if benchmark.enabled:
        say("encode", rate(ours), rate(lambda: pack(unpacked)), "floor: struct")
    assert len(benchmark(ours)) == sum(map(len, pack(unpacked)))


def test_read_mqrfh(benchmark: BenchmarkFixture) -> None:
    string = b"MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic Stock/NYSE/IBM/Price\0\0\0\0"
    data = Rfh1(string, format="MQSTR").encode() + b"42.5"
    descriptor = Mqmd(format="MQHRF")

    def ours() -> dict[str, str]:
        header = decode(data, descriptor).headers[0]
        assert isinstance(header, Rfh1)
        return dict(header.pairs())

    def floor() -> dict[str, str]:
        tokens = data[32 : FIXED.unpack_from(data)[2]].rstrip(b"\0").decode().split()
        return dict(zip(tokens[::2], tokens[1::2], strict=True))

    if benchmark.enabled:
        say("read MQRFH", rate(ours), rate(floor), "floor: split, quotes not understood")
    assert benchmark(ours) == floor()
