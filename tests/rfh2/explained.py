"""Messages for the tests of ``rfh2.explain``: made by hand, and drawn by hypothesis."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from rfh2 import CapturedMessage, Dlh, Folder, Message, Mqmd, Rfh2, encode
from rfh2.captures import read_captures
from rfh2.ccsid import ByteOrder
from rfh2.message import Header
from rfh2.mqmd import Mde, Xqh
from rfh2.rfh1 import Rfh1

FIXTURES = Path(__file__).parents[2] / "fixtures"
ENCODINGS: dict[ByteOrder, int] = {"big": 273, "little": 546}


def captured(body: bytes, md: bytes | None = None, queue: str = "Q") -> CapturedMessage:
    return CapturedMessage(seq=7, queue=queue, md_hex=None if md is None else md.hex(), body_hex=body.hex())


def message(
    *folders: str | bytes, data: bytes = b"", ccsid: int = 1208, fmt: str = "", **md: object
) -> CapturedMessage:
    """A captured message with one MQRFH2: folders as text, padded, or as the bytes of their NameValueData."""
    datas = tuple(Folder(f) if isinstance(f, bytes) else Folder.of(f) for f in folders)
    header = Rfh2(datas, coded_char_set_id=ccsid, format=fmt or ("MQSTR" if data else ""))
    mqmd = replace(Mqmd(format="MQHRF2", coded_char_set_id=819), **md)  # type: ignore[arg-type]
    return captured(encode(Message(mqmd, (header,), data)), mqmd.encode())


def fixture_messages() -> list[tuple[str, CapturedMessage]]:
    """Every message of every capture among the fixtures, with where it is from."""
    found = []
    for path in sorted((FIXTURES / "captures").rglob("*")) + sorted(FIXTURES.rglob("*.jsonl")):
        if not path.is_file() or path.suffix == ".md":
            continue
        for record in read_captures(path):
            if record.message is not None:
                found.append((f"{path.relative_to(FIXTURES)}#{record.index}", record.message))
    return found


_TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="<>&"), max_size=8)
_TAGS = st.sampled_from(["Command", "Topic", "RegOpt", "a", "b", "xsi:x"])
_ATTRIBUTES = st.sampled_from(["", " dt='i4'", ' dt="boolean"', " dt='bin.hex'", " xsi:nil='true'", " copy='all'"])
_NAMES = st.sampled_from(["psc", "pscr", "mcd", "usr", "mq_usr", "own"])
_PADDING = st.sampled_from([b"", b" ", b"   ", b"\0", b" \0\0", b"\0\0\0\0\0\0\0"])
_CODE_PAGES = st.sampled_from(["latin-1", "cp500"])
_FORMATS = st.sampled_from(["", "MQSTR", "MQSTR\0\0\0", "OWN", "MQADMIN"])
_NUMBERS = st.integers(-(1 << 31), (1 << 31) - 1)


@st.composite
def _folder_texts(draw: st.DrawFn) -> str:
    name = draw(_NAMES)
    leaves = draw(st.lists(st.tuples(_TAGS, _ATTRIBUTES, _TEXT), max_size=4))
    text = "".join(f"<{tag}{attributes}>{value}</{tag}>" for tag, attributes, value in leaves)
    return draw(
        st.sampled_from([f"<{name}>{text}</{name}>", f"<{name}>{text}<{name}>", f" <{name}/><x/>", "a & b", ""])
    )


@st.composite
def _rfh2(draw: st.DrawFn) -> Rfh2:
    order: ByteOrder = draw(st.sampled_from(["big", "little"]))
    ccsid, charset = draw(st.sampled_from([(1208, "utf-8"), (1200, f"utf-16-{order[0]}e")]))
    texts = draw(st.lists(_folder_texts(), max_size=3))
    datas = [text.encode(charset) + draw(_PADDING) for text in texts] + draw(
        st.lists(st.binary(max_size=6), max_size=1)
    )
    return Rfh2(
        tuple(Folder(data, charset) for data in datas),
        draw(_NUMBERS),
        draw(st.sampled_from([1208, 819, 0, -2, 500])),
        draw(_FORMATS),
        draw(_NUMBERS),
        ccsid,
        order,
        draw(_CODE_PAGES),
    )


@st.composite
def _others(draw: st.DrawFn) -> Header:
    order: ByteOrder = draw(st.sampled_from(["big", "little"]))
    charset = draw(_CODE_PAGES)
    own: dict[str, Any] = {"encoding": ENCODINGS[order], "format": draw(_FORMATS), "order": order, "charset": charset}
    string = st.sampled_from([' MQPSCommand RegSub  MQPSTopic "a ""b"""', "a b c", 'x "y', ""])
    kind = draw(st.sampled_from(["dlh", "mde", "xqh", "rfh1"]))
    if kind == "dlh":
        return Dlh(draw(_NUMBERS), dest_q_name=draw(st.sampled_from(["Q", "Q\0old", ""])), **own)
    if kind == "mde":
        return Mde(msg_flags=draw(_NUMBERS), **own)
    if kind == "xqh":
        return Xqh(Mqmd(format=own["format"], order=order), "Q", order=order, charset=charset)
    data = draw(string).encode(charset) + draw(_PADDING)
    return Rfh1(data, string_charset=charset, **own)


@st.composite
def messages(draw: st.DrawFn) -> CapturedMessage:
    """A message of up to three headers of any kind, each announced by what is before it."""
    headers = draw(st.lists(st.one_of(_rfh2(), _others()), max_size=3))
    linked = list(headers)
    for at, header in enumerate(headers[:-1]):
        fmt = headers[at + 1].own_format
        if isinstance(header, Xqh):
            linked[at] = replace(header, mqmd=replace(header.mqmd, format=fmt))
        else:
            linked[at] = replace(header, format=fmt)  # type: ignore[type-var]
    mqmd = Mqmd(
        version=draw(st.sampled_from([1, 2])),
        format=headers[0].own_format if headers else draw(_FORMATS),
        encoding=draw(st.sampled_from([273, 546, 785, 0])),
        coded_char_set_id=draw(st.sampled_from([0, 819, 1208, 500, 4711])),
        reply_to_q=draw(st.sampled_from(["", "Q", "Q\0rest"])),
        order=draw(st.sampled_from(["big", "little"])),
        charset=draw(_CODE_PAGES),
    )
    body = encode(Message(mqmd, tuple(linked), draw(st.one_of(st.binary(max_size=20), st.just(b"hello\0\0")))))
    md = draw(st.sampled_from([None, mqmd.encode(), mqmd.encode() + b"more", mqmd.encode()[:100]]))
    return captured(body, md)


@st.composite
def damaged(draw: st.DrawFn) -> CapturedMessage:
    """A message with some of its bytes lost or changed."""
    whole = draw(messages())
    body = bytearray(whole.body)
    for _ in range(draw(st.integers(0, 3))):
        if body:
            body[draw(st.integers(0, len(body) - 1))] = draw(st.integers(0, 255))
    end = draw(st.integers(0, len(body)))
    return captured(bytes(body[:end]) if draw(st.booleans()) else bytes(body), whole.md)
