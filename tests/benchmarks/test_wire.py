"""Bytes to a typed command and back, beside hand-written code (``by_hand``) and the classes of ibmmq and pymqi.

A ratio is our rate over that of the floor, both measured in the same run; more is better. Shown with
``pytest tests/benchmarks/test_wire.py --benchmark-enable --benchmark-disable-gc -s``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from commands import Publish, parse
from rfh2 import Folder, Message, Mqmd, Rfh1, Rfh2, decode, encode
from rfh2.folders import write
from tests.benchmarks import by_hand
from tests.benchmarks.by_hand import MD, MESSAGES, PAIRS, compare
from tests.rfh2.peers import PEERS


@pytest.mark.parametrize("message", MESSAGES)
def test_bytes_to_command(benchmark: BenchmarkFixture, message: Message) -> None:
    data, md = encode(message), MD.encode()

    def ours() -> Any:
        return parse(decode(data, MD))

    def floor_with_md() -> object:
        return by_hand.unpack_descriptor(md), by_hand.command(data)

    if benchmark.enabled:
        hand = "struct, lxml, pydantic"
        compare("command", ours, lambda: by_hand.command(data), hand)
        compare("command, MQMD included", lambda: parse(decode(data, md)), floor_with_md, hand)
    command, floor = benchmark(ours), by_hand.command(data)
    assert isinstance(command, Publish)
    assert (command.topics, command.q_name, command.qmgr_name) == (floor.topics, floor.q_name, floor.qmgr_name)
    assert [str(option) for option in command.options] == [str(option) for option in floor.options]


@pytest.mark.parametrize("module", PEERS)
@pytest.mark.parametrize("message", MESSAGES)
def test_peers_unpack_and_parse(benchmark: BenchmarkFixture, message: Message, module: Any) -> None:
    data = encode(message)
    names = [folder.name for folder in _rfh2(message).folders]

    def theirs(wanted: list[str]) -> list[dict[str, str | None]]:
        header = module.RFH2()
        header.unpack(data, 546)
        return [by_hand.fields(header[name]) for name in wanted]

    def ours() -> list[dict[str, Any]]:
        return [folder.values() for folder in _rfh2(decode(data, MD)).folders]

    if benchmark.enabled:
        name = module.__name__
        compare("command", lambda: parse(decode(data, MD)), lambda: theirs(["psc"]), f"{name}, psc parsed")
        compare("all folders into fields", ours, lambda: theirs(names), f"{name}, all folders parsed")
    found = benchmark(ours)
    assert [{tag: str(value) for tag, value in each.items()} for each in found] == theirs(names)


@pytest.mark.parametrize("message", MESSAGES)
def test_encode(benchmark: BenchmarkFixture, message: Message) -> None:
    header, body = _rfh2(message), message.body
    others = header.folders[1:]
    unpacked = by_hand.unpack(encode(message))
    strings = [folder.data for folder in others]

    def ours() -> bytes:
        folders = (Folder.of(write("psc", PAIRS)), *others)
        return encode(Message(MD, (Rfh2(folders, coded_char_set_id=1208, format="MQSTR"),), body))

    def floor(written: Callable[[str, Sequence[tuple[str, str]]], bytes] = by_hand.written) -> bytes:
        parts = []
        for folder in (written("psc", PAIRS), *strings):
            parts += [by_hand.LONG.pack(len(folder)), folder]
        pairs = b"".join(parts)
        return by_hand.FIXED.pack(b"RFH ", 2, 36 + len(pairs), 546, 1208, b"MQSTR   ", 0, 1208) + pairs + body

    if benchmark.enabled:
        compare("encode from tags", ours, floor, "string building and struct, nothing escaped")
        compare("encode from tags", ours, lambda: floor(by_hand.escaped), "string building with escape, and struct")
        compare("encode as decoded", lambda: encode(message), lambda: by_hand.pack(unpacked), "struct")
    assert benchmark(ours) == floor() == encode(message)


@pytest.mark.parametrize("module", PEERS)
@pytest.mark.parametrize("message", MESSAGES)
def test_peers_pack(benchmark: BenchmarkFixture, message: Message, module: Any) -> None:
    header, body = _rfh2(message), message.body
    strings = [folder.data for folder in header.folders]
    fixed = {"Encoding": 546, "CodedCharSetId": 1208, "Format": b"MQSTR   ", "NameValueCCSID": 1208}

    def built() -> Any:
        theirs = module.RFH2(**fixed)
        for string in strings:
            theirs.add_folder(string)
        return theirs

    def ours() -> bytes:
        folders = tuple(Folder(string) for string in strings)
        return encode(Message(MD, (Rfh2(folders, coded_char_set_id=1208, format="MQSTR"),), body))

    if benchmark.enabled:
        name, ready = module.__name__, built()
        compare("build and encode", ours, lambda: built().pack() + body, f"{name}, add_folder and pack")
        compare("encode what is built", lambda: encode(message), lambda: ready.pack() + body, f"{name}, pack")
    assert benchmark(ours) == built().pack() + body


@pytest.mark.parametrize("message", MESSAGES)
def test_decode(benchmark: BenchmarkFixture, message: Message) -> None:
    data, md = encode(message), MD.encode()

    def floor() -> object:
        return by_hand.unpack_descriptor(md), by_hand.unpack(data)

    if benchmark.enabled:
        compare("decode, folders as bytes", lambda: decode(data, MD), lambda: by_hand.unpack(data), "struct")
        compare("decode, MQMD included", lambda: decode(data, md), floor, "struct")
    assert benchmark(decode, data, md) == message


def test_read_mqrfh(benchmark: BenchmarkFixture) -> None:
    string = b"MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic Stock/NYSE/IBM/Price\0\0\0\0"
    data = Rfh1(string, format="MQSTR").encode() + b"42.5"
    descriptor = Mqmd(format="MQHRF")

    def ours() -> dict[str, str]:
        header = decode(data, descriptor).headers[0]
        assert isinstance(header, Rfh1)
        return dict(header.pairs())

    def floor() -> dict[str, str]:
        tokens = data[32 : by_hand.FIXED.unpack_from(data)[2]].rstrip(b"\0").decode().split()
        return dict(zip(tokens[::2], tokens[1::2], strict=True))

    if benchmark.enabled:
        compare("read MQRFH", ours, floor, "split, quotes not understood")
    assert benchmark(ours) == floor()


def _rfh2(message: Message) -> Rfh2:
    assert message.rfh2 is not None
    return message.rfh2
