"""Headers as Wireshark reads them: every field that both know, on messages of every kind of header that it knows.

528 messages: nine kinds of header and none, both versions of the descriptor, both byte orders under every Encoding that
has them, twelve code pages. What Wireshark 4.0 does not read, docs/peers.md says.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import cycle, product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from commands.explain.reading import explained
from rfh2 import CapturedMessage, Dlh, Folder, Mde, Mqmd, Rfh1, Rfh2, SteppedHeader, Xqh
from rfh2.captures import read_captures
from rfh2.ccsid import BYTE_ORDERS, ByteOrder, field_codec, is_ebcdic
from rfh2.chain import Header
from rfh2.prologue import STEPPED_OVER
from tests.rfh2.channel_wire import MQPUT, Session, Wire, pcapng
from tests.rfh2.test_captures_wireshark import TSHARK_FIELDS, run, same

ENCODINGS: dict[ByteOrder, tuple[int, ...]] = {"big": (273, 785, 529, 1041), "little": (546, 1058, 290)}
CCSIDS = (819, 1208, 437, 850, 1252, 923, 37, 273, 500, 870, 1047, 1140)
PROLOGUE = {
    "mq.head.structid": "StrucId",
    "mq.head.version": "Version",
    "mq.head.length": "StrucLength",
    "mq.head.encoding": "Encoding",
    "mq.head.ccsid": "CodedCharSetId",
    "mq.head.format": "Format",
    "mq.head.flags": "Flags",
}
FIELDS = {
    **dict.fromkeys(("MQRFH", "MQMDE", "MQCIH", "MQIIH", "MQRMH", "MQWIH"), PROLOGUE),
    "MQRFH2": {**PROLOGUE, "mq.rfh.ccsid": "NameValueCCSID"},
    "MQDLH": {
        "mq.dlh.structid": "StrucId",
        "mq.dlh.version": "Version",
        "mq.dlh.reason": "Reason",
        "mq.dlh.destq": "DestQName",
        "mq.dlh.destqmgr": "DestQMgrName",
        "mq.dlh.encoding": "Encoding",
        "mq.dlh.ccsid": "CodedCharSetId",
        "mq.dlh.format": "Format",
        "mq.dlh.putappltype": "PutApplType",
        "mq.dlh.putapplname": "PutApplName",
        "mq.dlh.putdate": "PutDate",
        "mq.dlh.puttime": "PutTime",
    },
    "MQXQH": {
        "mq.xqh.structid": "StrucId",
        "mq.xqh.version": "Version",
        "mq.xqh.remoteq": "RemoteQName",
        "mq.xqh.remoteqmgr": "RemoteQMgrName",
    },
}
FOLDERS = {"mq.rfh.length": "length", "mq.rfh.string": "raw"}
EXTENSION = {f"mq.md.{name}" for name in ("groupid", "msgseqnumber", "offset", "msgflags", "origlength")}


def headers(order: ByteOrder, encoding: int, ccsid: int, draw: Random) -> Iterator[Header]:
    """One of each kind, as a machine of that byte order and code page writes it, with other values each time."""
    charset = field_codec(ccsid, is_ebcdic(ccsid))

    def name(size: int) -> str:
        return "".join(draw.choices("ABCXYZ._%/019", k=draw.randint(0, size)))

    def long() -> int:
        return draw.randint(-(2**31), 2**31 - 1)

    own: dict[str, Any] = {"encoding": encoding, "coded_char_set_id": ccsid, "format": name(8)}
    written: dict[str, Any] = {"order": order, "charset": charset}
    texts = [f"<psc><Command>Publish</Command><Topic>{name(20)}</Topic></psc>", f"<usr><a>{name(9)}</a></usr>"]
    folders = tuple(Folder.of(text) for text in texts[: draw.randint(0, 2)])
    yield Rfh2(folders, **own, flags=long(), **written)
    yield Rfh1("MQPSCommand RegSub  ".encode(charset), **own, flags=long(), **written, string_charset=charset)
    put = {"put_appl_type": long(), "put_appl_name": name(28), "put_date": name(8), "put_time": name(8)}
    yield Dlh(long(), dest_q_name=name(48), dest_qmgr_name=name(48), **own, **put, **written)
    inner = Mqmd(msg_id=draw.randbytes(24), reply_to_q=name(48), report=long(), **own, **written)
    yield Xqh(inner, name(48), name(48), **written)
    group = {"group_id": draw.randbytes(24), "msg_seq_number": long(), "msg_flags": long()}
    yield Mde(**own, flags=long(), **group, **written)
    for kind in STEPPED_OVER:
        for version, size in kind.sizes.items():
            if kind.name != "MQDH":
                yield SteppedHeader(kind.name, bytes(size - 32), version, **own, flags=long(), **written)


def channel() -> tuple[bytes, int]:
    """A packet capture, and how many messages are in it."""
    draw, session, count = Random(1), Session(mss=16_000), 0
    encodings = {order: cycle(values) for order, values in ENCODINGS.items()}
    for order, ccsid, version in product(BYTE_ORDERS, CCSIDS, (1, 2)):
        encoding = next(encodings[order])
        wire = Wire(order, ebcdic=is_ebcdic(ccsid))
        described: dict[str, Any] = {"encoding": encoding, "coded_char_set_id": ccsid}
        for header in [*headers(order, encoding, ccsid, draw), None]:
            count += 1
            mqmd = Mqmd(
                version,
                format="MQSTR" if header is None else header.own_format,
                msg_id=count.to_bytes(24, "big"),
                correl_id=draw.randbytes(24),
                reply_to_q="REPLY.Q",
                reply_to_qmgr="QM1",
                report=draw.randint(0, 2**31 - 1),
                order=order,
                charset="cp500" if is_ebcdic(ccsid) else "latin-1",
                **described,
            )
            body = (b"" if header is None else header.encode()) + b"data"
            session.client(wire.segment(MQPUT, wire.mqput(mqmd.encode(), body)))
    return pcapng(session.frames), count


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_wireshark_agrees_on_every_header(tmp_path: Path) -> None:
    data, count = channel()
    path = tmp_path / "net.pcapng"
    path.write_bytes(data)
    ours = [record.message for record in read_captures(path) if record.message]
    theirs = tshark(path)
    assert count == len(ours) == len(theirs) == 528
    compared: dict[str, int] = {}
    for message, row in zip(ours, theirs, strict=True):
        kind, fields = compare(message, row)
        compared[kind] = compared.get(kind, 0) + fields
    assert compared.keys() == {*FIELDS, "none"}
    assert sum(compared.values()) > 18_000


def compare(message: CapturedMessage, row: dict[str, list[str]]) -> tuple[str, int]:
    """The kind of the message's header, and the number of fields on which both agree."""
    form, decoded = explained(message).form("net", 0), message.decode()
    kind, pairs = "none", []
    described = [decoded.mqmd]
    if decoded.headers:
        (header,), (shown,) = decoded.headers, form["headers"]
        kind = header.kind
        unread = _misread(kind, decoded.mqmd)
        pairs = [(name, row[name][0], shown["fields"][ibm]) for name, ibm in FIELDS[kind].items() if ibm not in unread]
        described += [header.mqmd] if isinstance(header, Xqh) else []
        pairs += _folders(row, shown, decoded.mqmd) if isinstance(header, Rfh2) else []
    extensions = [each for each in [*described, *decoded.headers] if isinstance(each, Mde) or _is_version_2(each)]
    for name, attribute in TSHARK_FIELDS.items():
        holders = extensions if name in EXTENSION else described
        values = [getattr(each, attribute) for each in holders]
        pairs += [(name, theirs, ours) for theirs, ours in zip(row.get(name, []), values, strict=True)]
    for name, theirs, ours in pairs:
        assert same(theirs, ours), (kind, name, theirs, ours)
    assert len(pairs) >= 23 * len(described)
    return kind, len(pairs)


def _misread(kind: str, mqmd: Mqmd) -> set[str]:
    """The fields of a header's fixed part that Wireshark misreads: Flags in the wrong byte order, EBCDIC as ASCII."""
    fields = {"Flags"} if kind in ("MQCIH", "MQIIH", "MQRMH") and mqmd.order == "little" else set()
    known = mqmd.coded_char_set_id in (500, 1047) or not is_ebcdic(mqmd.coded_char_set_id)
    return fields if known or FIELDS[kind].keys().isdisjoint(PROLOGUE) else fields | {"StrucId", "Format"}


def _is_version_2(each: object) -> bool:
    return isinstance(each, Mqmd) and each.version == 2


def _folders(row: dict[str, list[str]], shown: dict[str, Any], mqmd: Mqmd) -> Iterator[tuple[str, str, Any]]:
    for name, key in FOLDERS.items():
        # Text is read in the code page of the fixed part there, whatever NameValueCCSID says.
        if key == "length" or not is_ebcdic(mqmd.coded_char_set_id):
            found = zip(row.get(name, []), shown["folders"], strict=True)
            yield from ((name, theirs, folder[key]) for theirs, folder in found)


def tshark(path: Path) -> list[dict[str, list[str]]]:
    names = [*TSHARK_FIELDS, *FOLDERS, *{name for fields in FIELDS.values() for name in fields}]
    options = [option for name in names for option in ("-e", name)]
    out = run("tshark", "-r", str(path), "-Y", "mq.md.version", "-T", "json", *options)
    return [packet["_source"]["layers"] for packet in json.loads(out)]
