"""Mutated messages, and what has to hold of each: it decodes exactly, or is refused inside, and nothing else.

Half of the mutants have the text of a folder, a string or a parameter changed and lengths that fit it, so
that what reads text is reached; the others have their bytes changed, lengths included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from commands.headers.registry import parse
from rfh2 import (
    CommandError,
    DecodeError,
    EncodeError,
    Eph,
    Message,
    Mqmd,
    Rfh1,
    Rfh2,
    decode,
    decode_pcf,
    encode,
)
from rfh2.pcf import FORMATS

BYTES: Final = (0, 1, 2, 3, 4, 9, 10, 13, 0x20, 0x22, 0x26, 0x3B, 0x3C, 0x3E, 0x40, 0x7F, 0x80, 0xC0, 0xD8, 0xED, 0xFF)
LONGS: Final = (
    *(0, 1, 2, 3, 4, 12, 24, 31, 32, 35, 36, 37, 40, 100, 364, -1, -2, -4, 2**31 - 1, -(2**31), 0x7FFF_FFFC, 10**9),
    *(273, 546, 785, 1041, 37, 500, 819, 1047, 1140, 1200, 1208, 1252, 13488, 17584, 4711),
)
TOKENS: Final = (
    *(b"<psc>", b"</psc>", b"<pscr>", b"<usr>", b"<a>", b"</a>", b"<a/>", b"<>", b"</", b"/>", b"<", b">", b"&", b";"),
    *(b"&amp;", b"&lt;", b"&#0;", b"&#xD800;", b"&#x110000;", b"&#13;", b"&boom;", b"&#999999999999;", b"]]>", b"<!"),
    *(b"<![CDATA[x]]>", b"<!--", b"-->", b"<?xml version='1.0'?>", b"<!DOCTYPE a [<!ENTITY b 'c'>]>"),
    *(b" xmlns='urn:x'", b" xmlns:p=''", b" dt='i4'", b" dt='r8'", b" dt='bin.hex'", b" xsi:nil='true'", b"p:", b"="),
    *(b"'", b'"', b'""', b" ", b"\0", b"\t", b"\r\n", b"9" * 30, b"-1", b"1e999", b"nan", b"a" * 70, b"/" * 20, b"+/#"),
    *(b"<Command>Publish</Command>", b"<Command>RegSub</Command>", b"<Topic>a/b</Topic>", b"<Topic></Topic>"),
    *(b"<Topic/>", b"<RegOpt>None</RegOpt>", b"<RegOpt>JoinShared</RegOpt>", b"<PubOpt>RetainPub</PubOpt>"),
    *(b"<DelOpt>Local</DelOpt>", b"<SubName>n</SubName>", b"<SubIdentity>i</SubIdentity>", b"<Filter>a = 1</Filter>"),
    *(b" MQPSCommand ", b" MQPSTopic ", b" MQPSRegOpts 33 ", b" MQPSRegOpts -1 ", b" MQPSIntData x ", b"MQPSCorrelId"),
    *("\u20ac\ufeff\U0001f600".encode(), b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"),
    *(b"RFH \2\0\0\0", b"\xd9\xc6\xc8\x40\0\0\0\2"),
)
NAMES: Final = (
    "MQHRF2  ",
    "MQHRF   ",
    "MQDEAD  ",
    "MQXMIT  ",
    "MQHMDE  ",
    "MQHEPCF ",
    "MQPCF   ",
    "MQSTR   ",
    "MQIMS   ",
)


@dataclass(frozen=True)
class Mutant:
    """A message to try. mqmd: the descriptor as bytes, decoded, or none."""

    body: bytes
    mqmd: bytes | Mqmd | None


def check_message(body: bytes, mqmd: bytes | Mqmd | None) -> str:
    """Decode and parse a message, and say what came of it. Raises AssertionError for a rule that is broken."""
    size = len(body)
    try:
        message = decode(body, mqmd)
    except DecodeError as error:
        in_descriptor = error.header == "MQMD" and isinstance(mqmd, bytes)
        _inside(error, max(size, len(mqmd)) if in_descriptor and isinstance(mqmd, bytes) else size)
        return "not decoded"
    assert encode(message) == body, "encode is not the inverse of decode"
    _read_everything(message, size)
    try:
        parse(message)
    except DecodeError as error:
        _inside(error, size)
        return "no command"
    except CommandError:
        return "command refused"
    return "command"


def _read_everything(message: Message, size: int) -> None:
    asks: list[Callable[[], object]] = []
    for header in message.headers:
        if isinstance(header, Rfh2):
            for folder in header.folders:
                asks += [folder.pairs, folder.values, lambda folder=folder: (folder.name, folder.text)]  # type: ignore[misc]
        elif isinstance(header, Rfh1):
            asks += [header.pairs, header.name_values]
        elif isinstance(header, Eph):
            asks.append(lambda header=header: _pcf(header.data, header.ccsid, header.offset))  # type: ignore[misc]
    if message.body_format in FORMATS:
        asks.append(lambda: _pcf(message.body, message.body_ccsid, message.body_offset))
    for ask in asks:
        try:
            ask()
        except DecodeError as error:
            _inside(error, size)


def _pcf(data: bytes, ccsid: int, offset: int) -> None:
    pcf = decode_pcf(data, ccsid, offset)
    assert pcf.encode() == data, "Pcf.encode is not the inverse of decode_pcf"
    for parameter in pcf.parameters:
        for attribute in ("text", "texts"):
            if hasattr(type(parameter), attribute):
                try:
                    getattr(parameter, attribute)
                except DecodeError as error:
                    _inside(error, offset + len(data))


def _inside(error: DecodeError, size: int) -> None:
    assert 0 <= error.offset <= size, f"offset {error.offset} is outside of {size} bytes: {error}"


def mutate(random: Random, seeds: Sequence[Mutant]) -> Mutant:
    """A mutant of one of *seeds*."""
    seed = random.choice(seeds)
    body, mqmd = seed.body, seed.mqmd
    if random.random() < 0.5:
        body = _with_other_text(random, body, mqmd)
    if random.random() < 0.6 or body == seed.body:
        other = random.choice(seeds).body
        for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
            body = with_other_bytes(random, body, other)
    return Mutant(body, _descriptor(random, mqmd))


def _descriptor(random: Random, mqmd: bytes | Mqmd | None) -> bytes | Mqmd | None:
    chance = random.random()
    if mqmd is None or chance < 0.7:
        return mqmd
    if chance < 0.75:
        return None
    if chance < 0.8:
        return Mqmd(format=random.choice(NAMES).rstrip(), coded_char_set_id=random.choice(LONGS))
    assert isinstance(mqmd, bytes)
    return with_other_bytes(random, mqmd, mqmd)


def _with_other_text(random: Random, body: bytes, mqmd: bytes | Mqmd | None) -> bytes:
    """*body* with other text in one of its headers, or other bytes in its parameters, and lengths that fit."""
    try:
        message = decode(body, mqmd)
    except DecodeError:
        return body
    at = [number for number, header in enumerate(message.headers) if isinstance(header, Rfh2 | Rfh1)]
    if not at:
        return body
    number = random.choice(at)
    header: Any = message.headers[number]
    if isinstance(header, Rfh1):
        header = replace(header, data=_other(random, header.data, header.string_charset))
    elif header.folders:
        folders = list(header.folders)
        chosen = random.randrange(len(folders))
        folder = folders[chosen]
        folders[chosen] = replace(folder, data=_other(random, folder.data, folder.charset))
        header = header.with_folders(tuple(folders))
    try:
        return encode(replace(message, headers=(*message.headers[:number], header, *message.headers[number + 1 :])))
    except EncodeError:
        return body


def _other(random: Random, data: bytes, charset: str) -> bytes:
    for _ in range(random.choice((1, 1, 2, 4))):
        token = random.choice(TOKENS)
        if charset != "utf-8":
            token = token.decode("utf-8", "replace").encode(charset, "replace")
        at, end = _span(random, len(data))
        match random.randrange(5):
            case 0:
                data = data[:at] + token + data[at:]
            case 1:
                data = data[:at] + token + data[end:]
            case 2:
                data = data[:at] + data[end:]
            case 3:
                data = data[:end] + data[at:]
            case _:
                data = with_other_bytes(random, data, token)
    return data


def with_other_bytes(random: Random, data: bytes, other: bytes) -> bytes:
    """*data* with one change: bits, lengths, a cut, a piece twice, a piece of *other*, a name."""
    at, end = _span(random, len(data))
    match random.randrange(10):
        case 0 | 1:
            return data[:at] + bytes((random.choice(BYTES),)) + data[at + 1 :]
        case 2 if data:
            return data[:at] + bytes((data[at % len(data)] ^ 1 << random.randrange(8),)) + data[at + 1 :]
        case 3 | 4:
            long = random.choice((*LONGS, len(data), len(data) - at, random.getrandbits(31)))
            at = at & ~3 if random.random() < 0.9 else at
            return data[:at] + long.to_bytes(4, random.choice(("big", "little")), signed=True) + data[at + 4 :]
        case 5:
            return data[:at]
        case 6:
            return data[:at] + data[end:]
        case 7:
            return data[:end] + data[at:]
        case 8:
            start, stop = _span(random, len(other))
            return data[:at] + other[start:stop] + data[end:]
    name = random.choice(NAMES).encode(random.choice(("ascii", "cp500")))
    return data[:20] + name + data[28:] if random.random() < 0.3 else data[:at] + name[:4] + data[at + 4 :]


def _span(random: Random, size: int) -> tuple[int, int]:
    at = random.randrange(size + 1)
    return at, min(size, at + random.choice((1, 2, 4, 8, 36, 100)))
