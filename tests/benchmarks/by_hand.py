"""The least that hand-written code could do with the wire: struct and slices, lxml for folders, pydantic for a command.

It is the floor of the codec's benchmarks: what a program would have that knows its own messages. Nothing is checked but
what pydantic checks, nothing survives that the program does not know, one byte order, one code page, no errors with
offsets.

The messages: (a) an MQRFH2 with one psc folder; (b) psc, mcd and usr folders and 1 KiB of data.
"""

from __future__ import annotations

import struct
import time
import timeit
from collections.abc import Callable, Sequence
from enum import StrEnum
from xml.sax.saxutils import escape

import pytest
from lxml import etree
from pydantic import BaseModel

from rfh2 import Folder, Message, Mqmd, Rfh2

DESCRIPTOR = struct.Struct("<4siiiiiii8sii24s24si48s48s12s32s32si28s8s8s4s")
TEXTS = (8, 14, 15, 16, 18, 20, 21, 22, 23)
FIXED = struct.Struct("<4siiii8sii")
LONG = struct.Struct("<i")

PAIRS = (
    ("Command", "Publish"),
    ("PubOpt", "RetainPub"),
    ("Topic", "Stock/NYSE/IBM/Price"),
    ("QMgrName", "QM1"),
    ("QName", "PRICES"),
)
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

Unpacked = tuple[tuple[object, ...], list[bytes], bytes]


def unpack_descriptor(md: bytes) -> list[object]:
    fields: list[object] = list(DESCRIPTOR.unpack(md))
    for i in TEXTS:
        fields[i] = str(fields[i], "latin-1").rstrip()  # type: ignore[call-overload]
    return fields


def unpack(data: bytes) -> Unpacked:
    """The fixed part, the folders, the body."""
    fixed = FIXED.unpack_from(data)
    folders, at, end = [], FIXED.size, fixed[2]
    while at < end:
        (size,) = LONG.unpack_from(data, at)
        folders.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return fixed, folders, data[end:]


def pack(unpacked: Unpacked) -> bytes:
    fixed, folders, body = unpacked
    parts = [FIXED.pack(*fixed)]
    for folder in folders:
        parts += (LONG.pack(len(folder)), folder)
    return b"".join([*parts, body])


class Option(StrEnum):
    RETAIN = "RetainPub"
    LOCAL = "Local"


class Published(BaseModel):
    """A Publish command as the program that reads these messages would have it."""

    topics: tuple[str, ...]
    options: tuple[Option, ...] = ()
    q_name: str | None = None
    qmgr_name: str | None = None


_FIELDS = {"QName": "q_name", "QMgrName": "qmgr_name"}
_LISTS = {"Topic": "topics", "PubOpt": "options"}


def command(data: bytes) -> Published:
    """Bytes to typed command: the psc folder with lxml, the others left alone."""
    found: dict[str, object] = {}
    for folder in unpack(data)[1]:
        if not folder.startswith(b"<psc>"):
            continue
        for child in etree.fromstring(folder):
            if (name := _FIELDS.get(str(child.tag))) is not None:
                found[name] = child.text
            elif (name := _LISTS.get(str(child.tag))) is not None:
                found.setdefault(name, []).append(child.text)  # type: ignore[attr-defined]
    return Published.model_validate(found)


def fields(folder: bytes) -> dict[str, str | None]:
    """A folder string parsed into fields."""
    return {str(child.tag): child.text for child in etree.fromstring(folder.rstrip())}


def written(name: str, pairs: Sequence[tuple[str, str]]) -> bytes:
    """A folder by string building, for text that needs no escape."""
    text = f"<{name}>{''.join([f'<{tag}>{value}</{tag}>' for tag, value in pairs])}</{name}>".encode()
    return text + b" " * (-len(text) % 4)


def escaped(name: str, pairs: Sequence[tuple[str, str]]) -> bytes:
    """A folder by string building, for any text."""
    text = f"<{name}>{''.join([f'<{tag}>{escape(value)}</{tag}>' for tag, value in pairs])}</{name}>".encode()
    return text + b" " * (-len(text) % 4)


Work = Callable[[], object]


def compare(stage: str, ours: Work, floor: Work, what: str) -> None:
    """Print the rates of both and their ratio: the best of some rounds, taken in turns, in processor time."""
    works = (timeit.Timer(ours, timer=time.process_time), timeit.Timer(floor, timer=time.process_time))
    numbers = [_calls_in_20_ms(work) for work in works]
    rounds = [[work.timeit(number) / number for work, number in zip(works, numbers, strict=True)] for _ in range(9)]
    our_s, floor_s = (min(times) for times in zip(*rounds, strict=True))
    print(
        f"\n{stage:<26}{1 / our_s:>10,.0f} /s   floor {1 / floor_s:>10,.0f} /s   ratio {floor_s / our_s:.2f}   ({what})"
    )


def _calls_in_20_ms(work: timeit.Timer) -> int:
    number = 1
    while work.timeit(number) < 0.02:
        number *= 2
    return number
