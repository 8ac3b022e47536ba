"""Messages with one thing wrong each, as a capture; run this file to write it again.

Each line is a captured message with two keys more, which readers of captures ignore: ``case``, and ``expect``: the
problem code, the byte offset (in the descriptor where ``part`` is ``mqmd``, else from the start of the first header),
and the reason code with which a queue manager that may not answer sets the message aside.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from rfh2.mqmd import Mqmd

FIXTURE = Path(__file__).parents[2] / "fixtures" / "broken" / "broken.jsonl"
PSC = b"<psc><Command>Publish</Command><Topic>a</Topic></psc>   "
MD = Mqmd(format="MQHRF2", coded_char_set_id=819, msg_id=b"BROKEN".ljust(24, b"\0"), user_identifier="app1")
ENTITIES = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "boom"}">' for n in range(9))


@dataclass(frozen=True)
class Broken:
    """One broken message. code, offset, reason: what is to be said of it; part: where *offset* counts."""

    case: str
    body: bytes
    code: str
    offset: int
    reason: int
    md: str | None = MD.encode().hex()
    part: str = "body"
    queue: str = DEFAULT_STREAM


def rfh2(
    *folders: bytes,
    version: int = 2,
    length: int | None = None,
    nv_ccsid: int = 1208,
    nv_length: int | None = None,
    tail: bytes = b"",
    struc_id: bytes = b"RFH ",
    order: str = "<",
) -> bytes:
    """An MQRFH2 in which any field may lie; *tail* stands inside it, behind the last folder."""
    parts = b"".join(
        struct.pack(order + "i", len(folder) if nv_length is None else nv_length) + folder for folder in folders
    )
    size = 36 + len(parts) + len(tail) if length is None else length
    encoding = 546 if order == "<" else 273
    fixed = struct.pack(order + "4siiii8sii", struc_id, version, size, encoding, 819, b"MQSTR   ", 0, nv_ccsid)
    return fixed + parts + tail


def psc(text: str) -> bytes:
    """A psc folder of a Publish with *text* in it, padded."""
    data = f"<psc><Command>Publish</Command>{text}</psc>".encode()
    return data + b" " * (-len(data) % 4)


def broken() -> Iterator[Broken]:
    """All cases. A fault in psc is at 40, behind the fixed part and NameValueLength, plus its place in the text."""
    whole = rfh2(PSC) + b"data"
    yield Broken("nothing", b"", "bad-struc-id", 0, 2334)
    yield Broken("not-an-rfh2", b"hello, world", "bad-struc-id", 0, 2334)
    yield Broken("header-cut-in-its-first-field", whole[:3], "bad-struc-id", 0, 2334)
    yield Broken("header-cut-in-its-fixed-part", whole[:35], "short-header", 35, 2334)
    yield Broken("header-cut-in-a-folder", whole[:60], "bad-struc-length", 8, 2334)
    yield Broken("wrong-version", rfh2(PSC, version=3), "unknown-version", 4, 2334)
    yield Broken("version-1-under-the-format-of-2", rfh2(PSC, version=1), "unknown-version", 4, 2334)
    yield Broken("version-in-neither-byte-order", rfh2(PSC, version=0x0200_0002), "unknown-version", 4, 2334)
    yield Broken("StrucLength-too-long", rfh2(PSC, length=10_000), "bad-struc-length", 8, 2334)
    yield Broken("StrucLength-less-than-the-fixed-part", rfh2(PSC, length=32), "bad-struc-length", 8, 2334)
    yield Broken("StrucLength-negative", rfh2(PSC, length=-1), "bad-struc-length", 8, 2334)
    yield Broken("StrucLength-ends-within-a-folder", rfh2(PSC, length=60), "bad-name-value-length", 36, 2334)
    yield Broken("StrucLength-ends-within-a-length", rfh2(PSC, length=38), "stray-bytes", 36, 2334)
    for n in (1, 2, 3):
        yield Broken(f"{n}-stray-bytes", rfh2(PSC, tail=b"\0" * n), "stray-bytes", 40 + len(PSC), 2334)
    yield Broken("NameValueLength-too-long", rfh2(PSC, nv_length=len(PSC) + 4), "bad-name-value-length", 36, 2334)
    yield Broken("NameValueLength-negative", rfh2(PSC, nv_length=-4), "bad-name-value-length", 36, 2334)
    second = 40 + len(PSC)
    lying = rfh2(PSC, tail=struct.pack("<i", 0x7FFF_FFFF) + b"<usr/> ")
    yield Broken("NameValueLength-of-the-second-folder", lying, "bad-name-value-length", second, 2334)
    swapped = rfh2(PSC, nv_length=int.from_bytes(struct.pack(">i", len(PSC)), "little", signed=True))
    yield Broken("NameValueLength-in-the-other-byte-order", swapped, "bad-name-value-length", 36, 2334)
    for ccsid in (0, 819, 500, 1209):
        yield Broken(f"NameValueCCSID-{ccsid}", rfh2(PSC, nv_ccsid=ccsid), "bad-name-value-ccsid", 32, 2111)
    yield Broken("psc-unclosed", rfh2(b"<psc><Command>Publish   "), "bad-folder", 40 + 21, 2421)
    yield Broken("psc-cut-off", rfh2(b"<psc><Command>Publish</Command><Top "), "bad-folder", 40 + 31, 2421)
    yield Broken("psc-wrong-end-tag", rfh2(psc("<Topic>a</Tropic>")), "bad-folder", 40 + 39, 2421)
    yield Broken("psc-less-than-in-a-topic", rfh2(psc("<Topic>a < b</Topic>")), "bad-folder", 40 + 40, 2421)
    yield Broken("psc-text-before-it", rfh2(b"so: " + PSC), "bad-folder", 40, 2421)
    yield Broken("psc-stray-text", rfh2(PSC.rstrip() + b" and so on "), "bad-folder", 40 + 53, 2421)
    yield Broken("dtd", rfh2(b"<!DOCTYPE psc>" + PSC), "bad-folder", 40, 2421)
    bomb = f"<!DOCTYPE psc [{ENTITIES}]>".encode() + psc("<Topic>&e8;</Topic>")
    yield Broken("entity-bomb", rfh2(bomb + b" " * (-len(bomb) % 4)), "bad-folder", 40, 2421)
    file = b'<!DOCTYPE psc [<!ENTITY f SYSTEM "file:///etc/passwd">]>' + psc("<Topic>&f;</Topic>")
    yield Broken("entity-from-a-file", rfh2(file), "bad-folder", 40, 2421)
    yield Broken("entity-that-nobody-declared", rfh2(psc("<Topic>&nbsp;</Topic>")), "bad-folder", 40 + 38, 2421)
    yield Broken("processing-instruction", rfh2(psc("<?php x?><Topic>a</Topic>")), "bad-folder", 40 + 31, 2421)
    yield Broken("comment", rfh2(psc("<!-- x --><Topic>a</Topic>")), "bad-folder", 40 + 31, 2421)
    yield Broken("cdata", rfh2(psc("<Topic><![CDATA[a]]></Topic>")), "bad-folder", 40 + 38, 2421)
    yield Broken("control-character", rfh2(psc("<Topic>a\x01b</Topic>")), "bad-folder", 40 + 39, 2421)
    yield Broken("null-within-a-topic", rfh2(psc("<Topic>a\0b</Topic>")), "bad-folder", 40 + 39, 2421)
    yield Broken("nested-too-deep", rfh2(psc("<Topic>" * 100 + "</Topic>" * 100)), "bad-folder", 40 + 31 + 63 * 7, 2421)
    latin = PSC.replace(b">a<", b">\xe4<")
    yield Broken("bad-utf-8", rfh2(latin), "bad-character", 40 + 38, 2421)
    cut = PSC.replace(b">a<", b">\xe2\x82<")
    yield Broken("utf-8-cut-within-a-character", rfh2(cut), "bad-character", 40 + 38, 2421)
    utf16 = "<psc><Command>Publish".encode("utf-16-le") + b"\0\xd8" + "x</Command></psc>".encode("utf-16-le")
    yield Broken("utf-16-half-a-pair", rfh2(utf16, nv_ccsid=1200), "bad-character", 40 + 42, 2421)
    yield Broken(
        "utf-16-odd-length",
        rfh2(PSC.decode().encode("utf-16-le") + b"x", nv_ccsid=1200),
        "bad-character",
        40 + 112,
        2421,
    )
    yield Broken(
        "md-that-is-no-mqmd", whole, "bad-struc-id", 0, 2142, md=(b"XX  " + MD.encode()[4:]).hex(), part="mqmd"
    )
    yield Broken("md-of-version-9", whole, "unknown-version", 4, 2142, md=_version(9), part="mqmd")
    yield Broken("md-cut-off", whole, "short-header", 323, 2142, md=MD.encode()[:323].hex(), part="mqmd")
    yield Broken("md-of-version-2-with-the-length-of-1", whole, "short-header", 324, 2142, md=_version(2), part="mqmd")
    second_header = rfh2(PSC)[:20] + b"MQHRF2  " + rfh2(PSC)[28:] + rfh2(b"<usr/>  ", length=1000)
    yield Broken("second-header", second_header, "bad-struc-length", len(rfh2(PSC)) + 8, 2334)
    yield Broken("on-the-control-queue", whole[:35], "short-header", 35, 2334, queue=CONTROL_QUEUE)
    yield Broken("no-descriptor", whole[:35], "short-header", 35, 2334, md=None)


def _version(number: int) -> str:
    md = MD.encode()
    return (md[:4] + number.to_bytes(4, "little") + md[8:]).hex()


# Lines that are no captured message at all: they have no bytes to speak of.
UNREADABLE: list[tuple[str, dict[str, Any]]] = [
    ("md_hex-is-no-hex", {"md_hex": "4d4420zz", "body_hex": ""}),
    ("body_hex-of-odd-length", {"md_hex": None, "body_hex": "524"}),
    ("no-body_hex", {"md_hex": None}),
]


def lines() -> Iterator[dict[str, Any]]:
    """The lines of the capture."""
    seq = 0
    for seq, each in enumerate(broken(), 1):
        yield {
            "seq": seq,
            "time": f"2009-01-28T11:{seq // 60:02}:{seq % 60:02}.000Z",
            "qmgr": "QM1",
            "queue": each.queue,
            "user": "app1",
            "md_hex": each.md,
            "body_hex": each.body.hex(),
            "case": each.case,
            "expect": {"code": each.code, "offset": each.offset, "part": each.part, "reason": each.reason},
        }
    for case, rest in UNREADABLE:
        seq += 1
        common: dict[str, Any] = {"seq": seq, "time": None, "qmgr": "QM1", "queue": DEFAULT_STREAM, "user": "app1"}
        expect = {"code": "unreadable-record", "offset": None, "part": "record", "reason": None}
        yield {**common, **rest, "case": case, "expect": expect}


def as_lines() -> bytes:
    """The file."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines())


if __name__ == "__main__":
    FIXTURE.write_bytes(as_lines())
