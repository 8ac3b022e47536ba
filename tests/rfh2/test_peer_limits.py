"""What messages the RFH2 classes of ``ibmmq`` and ``pymqi`` can read, and that all of them are read here.

``docs/peers.md`` has the table; each of its rows is one case here, and says what was found (wire formats, section 8).
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from commands.explain.problems import explained
from rfh2 import CapturedMessage, DecodeError, Folder, Mqmd, Rfh1, Rfh2, decode, encode
from rfh2.ccsid import ByteOrder
from rfh2.rfh2 import split_roots
from tests.rfh2.peers import IBMMQ, PYMQI, needs_ibmmq, needs_pymqi

DOCS = Path(__file__).parents[2] / "docs" / "peers.md"
PSC = "<psc><Command>Publish</Command><Topic>a/b</Topic></psc>"
READS, LOSES, FAILS, TAKES, REFUSES = "reads", "loses", "fails", "takes it", "refuses"
FIXED_FIELDS = ("StrucId", "Version", "StrucLength", "Encoding", "CodedCharSetId", "Format", "Flags", "NameValueCCSID")


@dataclass(frozen=True)
class Case:
    """A row of the table. encoding: what the peer is told, None for nothing. fault: offset and code, if it has one.

    here: what is done with it here; ibmmq, pymqi: by them.
    """

    row: str
    data: bytes
    ibmmq: str
    pymqi: str
    folders: tuple[str, ...] = ("psc",)
    encoding: int | None = 546
    fmt: str = "MQHRF2"
    ccsid: int = 1208
    fault: tuple[int, str] | None = None

    @property
    def here(self) -> str:
        return REFUSES if self.fault else READS


def rfh2(
    *folders: str | bytes,
    order: ByteOrder = "little",
    charset: str = "latin-1",
    ccsid: int = 1208,
    codec: str = "utf-8",
) -> bytes:
    made = tuple(Folder.of(each, codec) if isinstance(each, str) else Folder(each) for each in folders)
    return Rfh2(made, 546, 1208, "MQSTR", name_value_ccsid=ccsid, order=order, charset=charset).encode()


def raw(pairs: bytes, length: int | None = None) -> bytes:
    """An MQRFH2 by hand, for lengths that are wrong."""
    stated = 36 + len(pairs) if length is None else length
    return struct.pack("<4siiii8sii", b"RFH ", 2, stated, 546, 1208, b"MQSTR   ", 0, 1208) + pairs


def pair(data: bytes, length: int | None = None) -> bytes:
    return struct.pack("<i", len(data) if length is None else length) + data


BIG = rfh2(PSC, order="big")
PADDED = PSC.encode().ljust(56)
CASES = [
    Case("sound, little-endian", rfh2(PSC), READS, READS),
    Case("sound, big-endian, `Encoding` 273", BIG, READS, READS, encoding=273),
    *(Case(f"big-endian, `Encoding` {each}", BIG, READS, FAILS, encoding=each) for each in (529, 785, 1041)),
    Case("big-endian, `Encoding` not given", BIG, READS, READS, encoding=None),
    Case("fixed part in EBCDIC", rfh2(PSC, charset="cp500", order="big"), LOSES, FAILS, encoding=785, ccsid=500),
    Case("MQRFH version 1", Rfh1(b"MQPSCommand Publish MQPSTopic a/b   ").encode(), FAILS, FAILS, (), fmt="MQHRF"),
    Case("NameValueData in UTF-16", rfh2(PSC, ccsid=1200, codec="utf-16-le"), FAILS, FAILS),
    Case("folder padded with nulls", rfh2(PSC.encode() + bytes(4)), READS, FAILS),
    Case("folder not padded", rfh2(PSC.encode()), READS, READS),
    Case("`xsi:nil` without a declaration", rfh2("<usr><a xsi:nil='true'></a></usr>"), READS, FAILS, ("usr",)),
    Case("an `&` that is not escaped", rfh2("<usr><a>R&D</a></usr>"), READS, FAILS, ("usr",)),
    Case("two folders of one name", rfh2("<usr><a>1</a></usr>", "<usr><b>2</b></usr>"), LOSES, LOSES, ("usr", "usr")),
    Case("folder named like a field", rfh2("<Format><a>1</a></Format>"), LOSES, LOSES, ("Format",)),
    Case("two folders in one NameValueData", rfh2("<mcd><Msd>xml</Msd></mcd>" + PSC), LOSES, FAILS, ("mcd", "psc")),
    Case("NameValueData of no bytes", raw(pair(b"") + pair(PADDED)), FAILS, FAILS, ("", "psc")),
    Case("no folder", rfh2(), READS, READS, ()),
    Case(
        "NameValueLength more than there is",
        raw(pair(PADDED, 9999)),
        TAKES,
        TAKES,
        fault=(36, "bad-name-value-length"),
    ),
    Case("NameValueLength negative", raw(pair(PADDED, -4)), FAILS, FAILS, fault=(36, "bad-name-value-length")),
    Case("StrucLength 20", raw(b"", 20), TAKES, TAKES, fault=(8, "bad-struc-length")),
    Case("StrucLength 5000 of 36 bytes", raw(b"", 5000), TAKES, TAKES, fault=(8, "bad-struc-length")),
    Case("two bytes behind the last folder", raw(pair(PADDED) + b"xy"), FAILS, FAILS, fault=(96, "stray-bytes")),
]
IDS = [case.row for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_here(case: Case) -> None:
    mqmd = Mqmd(format=case.fmt, coded_char_set_id=case.ccsid, encoding=case.encoding or 273)
    if case.fault is not None:
        with pytest.raises(DecodeError) as raised:
            decode(case.data, mqmd)
        assert (raised.value.offset, raised.value.code) == case.fault
        return
    message = decode(case.data, mqmd)
    assert encode(message) == case.data
    assert message.body == b""
    assert message.body_format == ("" if case.fmt == "MQHRF" else "MQSTR")
    found = explained(CapturedMessage(seq=1, queue="", md_hex=mqmd.encode().hex(), body_hex=case.data.hex()))
    if case.folders[:1] == ("psc",) or "MQPSCommand" in case.data.decode("latin-1"):
        assert found.command is not None
        assert found.command.word == "Publish"
    if message.rfh2 is not None:
        roots = [tag for folder in message.rfh2.folders for tag in _roots(folder)]
        assert tuple(roots) == case.folders


def _roots(folder: Folder) -> list[str]:
    return [each.name for each in split_roots(folder)]


@needs_ibmmq
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_ibmmq(case: Case) -> None:
    assert outcome(IBMMQ, case) == case.ibmmq


@needs_pymqi
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_pymqi(case: Case) -> None:
    assert outcome(PYMQI, case) == case.pymqi


def outcome(module: Any, case: Case) -> str:
    """What the peer's RFH2 makes of a case: whether it fails, and whether all that it read comes back."""
    theirs = module.RFH2()
    told = () if case.encoding is None else (case.encoding,)
    try:
        theirs.unpack(case.data, *told)
    except Exception:
        return FAILS
    if case.fault is not None:
        return TAKES
    found = theirs.get()
    complete = {name for name in case.folders if name in found and name not in FIXED_FIELDS}
    sound = found["Format"] == b"MQSTR   " and complete == set(case.folders) and theirs.pack() == case.data
    return READS if sound else LOSES


@needs_ibmmq
def test_another_byte_order_is_written_here_only() -> None:
    theirs = IBMMQ.RFH2()
    theirs.unpack(BIG, 273)
    assert theirs.pack() == BIG
    ours = decode(BIG, Mqmd(format="MQHRF2")).rfh2
    assert ours is not None
    assert replace(ours, order="little").encode() == rfh2(PSC)


@needs_ibmmq
def test_defaults_of_a_new_header() -> None:
    theirs = IBMMQ.RFH2().get()
    assert [theirs[name] for name in ("StrucLength", "CodedCharSetId", "NameValueCCSID")] == [0, 0, 0]
    ours = Rfh2()
    assert (ours.length, ours.coded_char_set_id, ours.name_value_ccsid) == (36, -2, 1208)


@needs_ibmmq
def test_typed_properties_are_read_here_only() -> None:
    data = rfh2("<usr><n dt='i4'>7</n><on dt='boolean'>1</on></usr>")
    theirs = IBMMQ.RFH2()
    theirs.unpack(data, 546)
    assert isinstance(theirs.get()["usr"], bytes)
    header = decode(data, Mqmd(format="MQHRF2")).rfh2
    assert header is not None
    assert header.folders[0].values() == {"n": 7, "on": True}


def test_the_table_in_the_docs_is_this_one() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", DOCS.read_text(encoding="utf-8"), re.M)
    words = {READS, LOSES, FAILS, TAKES, REFUSES}
    table = [row for row in rows if set(row[1:]) <= words]
    assert table == [(case.row, case.here, case.ibmmq, case.pymqi) for case in CASES]
