"""Whole messages: ``encode(decode(x)) == x`` on all that decodes, and a DecodeError inside *x* on all that does not.

Chains are generated header by header, each in the byte order and code page that the one before it declares or in
another: captures whose Encoding lies are common, and the byte order is read off Version (wire formats, section 0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from rfh2 import (
    DecodeError,
    Dlh,
    Eph,
    Folder,
    Header,
    Mde,
    Message,
    Mqmd,
    Rfh1,
    Rfh2,
    SteppedHeader,
    Xqh,
    decode,
    encode,
)
from rfh2.ccsid import ByteOrder, byte_order, field_codec, is_ebcdic
from rfh2.layouts import STEPPED_OVER

LONGS = st.integers(-(2**31), 2**31 - 1)
ENCODINGS = st.sampled_from([273, 546, 785, 1041, 529, 0, -1])
CCSIDS = st.sampled_from([0, -2, 37, 500, 1047, 1140, 819, 850, 943, 1252, 1200, 1208, 4711])
NAMES = st.text("ABCXYZ012._/%", max_size=8)
ANYTHING = st.binary(max_size=40)
SPACE = st.sampled_from(["", " ", "\0", "    ", "\0\0\0\0", " \0", "\n"])

FOLDER_TEXTS = st.sampled_from(
    [
        "<psc><Command>Publish</Command><Topic>a/b</Topic></psc>",
        "<psc><Command>RegSub</Command><Topic>Straße €</Topic></psc>",
        "<usr><a dt='i4'>1</a><b xsi:nil='true'/></usr>",
        "<mq_usr><g><h>1</h></g></mq_usr>",
        "<com.ourcompany.xxx>anything</com.ourcompany.xxx>",
        "<psc><Topic>A & B</Topic></psc>",
        "<mcd/><psc/>",
        "<p:psc/>",
        "not xml",
        "",
    ]
)
STRINGS = st.sampled_from(
    [' MQPSCommand Publish MQPSTopic "a ""b"""', "MQPSRegOpts  33", "odd", "OPT_APP_GRP x\0rubbish", 'A "', ""]
)


@st.composite
def folders(draw: st.DrawFn, charset: str) -> Folder:
    data = draw(st.one_of(st.builds(lambda text, pad: (text + pad).encode(charset), FOLDER_TEXTS, SPACE), ANYTHING))
    return Folder(data, charset)


@st.composite
def headers(draw: st.DrawFn, ccsid: int, encoding: int) -> Any:
    """A header whose fixed part is in *ccsid* and *encoding*, or, now and then, is not; its Format is the caller's."""
    order = draw(st.sampled_from([byte_order(encoding) or "big", "big", "little"]))
    ebcdic = draw(st.sampled_from([is_ebcdic(ccsid), is_ebcdic(ccsid), True, False]))
    charset = field_codec(ccsid, ebcdic)
    made: dict[str, Any] = {
        "encoding": draw(ENCODINGS),
        "coded_char_set_id": draw(CCSIDS),
        "order": order,
        "charset": charset,
    }
    kind = draw(st.sampled_from(["MQRFH2"] * 4 + ["MQRFH", "MQDLH", "MQXQH", "MQMDE", "MQEPH", "stepped"]))
    if kind == "MQRFH2":
        nv_ccsid = draw(st.sampled_from([1208, 1200, 13488, 17584]))
        codec = "utf-8" if nv_ccsid == 1208 else "utf-16-be" if order == "big" else "utf-16-le"
        found = tuple(draw(st.lists(folders(codec), max_size=4)))
        return Rfh2(found, name_value_ccsid=nv_ccsid, flags=draw(LONGS), **made)
    if kind == "MQRFH":
        return Rfh1(
            draw(st.one_of(STRINGS.map(lambda text: text.encode(charset)), ANYTHING)), flags=draw(LONGS), **made
        )
    if kind == "MQDLH":
        return Dlh(draw(LONGS), draw(NAMES), draw(NAMES), put_appl_name=draw(NAMES), **made)
    if kind == "MQXQH":
        md_charset = draw(st.sampled_from(["latin-1", "cp500"]))
        md_order: ByteOrder = draw(st.sampled_from(["big", "little"]))
        md = Mqmd(
            encoding=made["encoding"], coded_char_set_id=made["coded_char_set_id"], order=md_order, charset=md_charset
        )
        return Xqh(md, draw(NAMES), draw(NAMES), order, charset)
    if kind == "MQMDE":
        return Mde(draw(st.binary(min_size=24, max_size=24)), draw(LONGS), rest=draw(ANYTHING), **made)
    if kind == "MQEPH":
        return Eph(bytes(36) + draw(ANYTHING), **made)
    each = draw(st.sampled_from(STEPPED_OVER))
    version = draw(st.sampled_from(sorted(each.sizes)))
    return SteppedHeader(each.name, bytes(each.sizes[version] - 32) + draw(ANYTHING), version, **made)


def with_format(header: Any, fmt: str) -> Any:
    return (
        replace(header, mqmd=replace(header.mqmd, format=fmt))
        if isinstance(header, Xqh)
        else replace(header, format=fmt)
    )


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """A message whose headers follow from one another, with every kind of header, and a body."""
    ccsid, encoding = draw(CCSIDS), draw(ENCODINGS)
    in_force = ccsid
    chain: list[Any] = []
    for _ in range(draw(st.integers(0, 5))):
        header = draw(headers(in_force, encoding))
        chain.append(header)
        if header.kind == "MQIIH":
            continue  # its Encoding and CodedCharSetId are reserved
        encoding = header.encoding
        in_force = in_force if header.coded_char_set_id in (0, -2) else header.coded_char_set_id
    body = draw(ANYTHING)
    last = draw(st.sampled_from(["MQSTR", "", "MQADMIN", "OURS"]))
    for i, header in enumerate(chain):
        announced = chain[i + 1].own_format if i + 1 < len(chain) else last
        ends = ["", "\0"] if i + 1 < len(chain) else ["", "\0", "\t"]
        chain[i] = with_format(header, announced + draw(st.sampled_from(ends)))
    fmt = chain[0].own_format if chain else last
    return Message(Mqmd(format=fmt, coded_char_set_id=ccsid), tuple(chain), body)


@given(messages())
def test_valid_chains_are_decoded_to_what_they_were_made_of(message: Message) -> None:
    raw = encode(message)
    again = decode(raw, message.mqmd)
    assert encode(again) == raw
    assert [header.kind for header in again.headers] == [header.kind for header in message.headers]
    assert again.body == message.body
    assert again.body_offset == len(raw) - len(message.body)
    assert [header.encode() for header in again.headers] == [header.encode() for header in message.headers]
    for made, found in zip(message.headers, again.headers, strict=True):
        if isinstance(made, Rfh2):
            assert found == made


@pytest.mark.parametrize(
    "header",
    [Rfh2(), Rfh1(b" MQPSCommand Publish"), Dlh(2085), Xqh(Mqmd()), Mde(), Eph(bytes(36))],
    ids=lambda header: type(header).__name__,
)
def test_format_loses_its_trailing_blanks_and_no_other_white_space(header: Any) -> None:
    """Programs pad Format with blanks; whatever else stands at its end is theirs, and comes back as it was."""
    for end in ("\t", "\n", "\r", "\v", "\f", "\x1c", "\x85", "\xa0", "\0", "\0 \t"):
        fmt = "OURS" + end
        raw = encode(Message(Mqmd(format=header.own_format), (with_format(header, fmt),), b"data"))
        message = decode(raw, Mqmd(format=header.own_format, coded_char_set_id=819))
        (found,) = message.headers
        assert (found.mqmd if isinstance(found, Xqh) else found).format == fmt
        assert encode(message) == raw, repr(end)
        descriptor = Mqmd(format=fmt).encode()
        assert (Mqmd.decode(descriptor).format, Mqmd.decode(descriptor).encode()) == (fmt, descriptor)


@given(message=messages(), part=st.sampled_from(["encoding", "flags", "folders"]))
def test_changing_one_header_leaves_the_others_and_the_body_byte_for_byte(message: Message, part: str) -> None:
    raw = encode(message)
    again = decode(raw, message.mqmd)
    changed = list(again.headers)
    for i, header in enumerate(changed):
        if isinstance(header, Rfh2):
            new: Any = {"encoding": 546, "flags": 7, "folders": (*header.folders, Folder.of("<usr/>", "utf-8"))}[part]
            changed[i] = replace(header, **{part: new})
            break
    else:
        return
    parts = [header.encode() for header in again.headers]
    parts[i] = changed[i].encode()
    assert encode(replace(again, headers=tuple(changed))) == b"".join(parts) + message.body


def _decodes_exactly_or_refuses(raw: bytes, mqmd: Mqmd | bytes | None) -> None:
    there = len(raw) if not isinstance(mqmd, bytes) else max(len(raw), len(mqmd))
    offset: object = 0
    again = raw
    try:
        message = decode(raw, mqmd)
    except DecodeError as error:
        offset = error.offset
    else:
        again = encode(message)
        _read_everything(message, len(raw))
    assert isinstance(offset, int)
    assert 0 <= offset <= there
    assert again == raw


def _read_everything(message: Message, length: int) -> None:
    """All that is read only when somebody asks: a value, or a DecodeError inside the message."""
    asks: list[Callable[[], object]] = [lambda: message.body_text]
    for header in message.headers:
        if isinstance(header, Rfh2):
            for folder in header.folders:
                asks += [folder.pairs, folder.values, lambda folder=folder: (folder.name, folder.text)]  # type: ignore[misc]
        elif isinstance(header, Rfh1):
            asks += [header.pairs, header.name_values, lambda header=header: header.text]  # type: ignore[misc]
        elif isinstance(header, Eph):
            asks.append(header.pcf)
    for ask in asks:
        offset: object = 0
        try:
            ask()
        except DecodeError as error:
            offset = error.offset
        assert isinstance(offset, int)
        assert 0 <= offset <= length


@given(message=messages(), data=st.data())
def test_mutated_messages_decode_exactly_or_are_refused_inside(message: Message, data: st.DataObject) -> None:
    raw = bytearray(encode(message))
    for _ in range(data.draw(st.integers(1, 4)) if raw else 0):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] = data.draw(st.sampled_from([0, 1, 2, 3, 32, 36, 64, 127, 128, 255]) | st.integers(0, 255))
    cut = data.draw(st.sampled_from([None, None]) | st.integers(0, len(raw)))
    _decodes_exactly_or_refuses(bytes(raw[:cut]), data.draw(st.sampled_from([message.mqmd, None])))


FORMATS = [
    "MQHRF2",
    "MQHRF",
    "MQDEAD",
    "MQXMIT",
    "MQHMDE",
    "MQHEPCF",
    "MQRFH2",
    *(kind.format for kind in STEPPED_OVER),
]
FRONTS = ["RFH ", "DLH ", "XQH ", "MDE ", "EPH ", *(kind.struc_id for kind in STEPPED_OVER)]


@st.composite
def lookalikes(draw: st.DrawFn) -> bytes:
    """Bytes that begin like a header and go on with anything."""
    struc_id = draw(st.sampled_from(FRONTS)).encode(draw(st.sampled_from(["ascii", "cp500"])))
    order: ByteOrder = draw(st.sampled_from(["big", "little"]))
    longs = [draw(st.integers(0, 3)), draw(st.sampled_from([0, 32, 36, 40, 72, 100, -1, 2**31 - 1]))]
    return struc_id + b"".join(n.to_bytes(4, order, signed=True) for n in longs) + draw(st.binary(max_size=500))


@given(raw=st.binary(max_size=600) | lookalikes(), fmt=st.sampled_from(FORMATS), ccsid=CCSIDS)
@example(raw=b"RFH \2\0\0\0", fmt="MQHRF2", ccsid=0)
def test_arbitrary_bytes_decode_exactly_or_are_refused_inside(raw: bytes, fmt: str, ccsid: int) -> None:
    _decodes_exactly_or_refuses(raw, None)
    _decodes_exactly_or_refuses(raw, Mqmd(format=fmt, coded_char_set_id=ccsid))


@given(
    raw=st.binary(max_size=40), md=st.binary(max_size=400) | st.binary(min_size=356).map(lambda b: b"MD  \1\0\0\0" + b)
)
def test_arbitrary_descriptors_are_decoded_or_refused(raw: bytes, md: bytes) -> None:
    _decodes_exactly_or_refuses(raw, md)


def test_every_header_is_a_header() -> None:
    made: list[Header] = [Rfh2(), Rfh1(), Dlh(0), Mde(), Xqh(Mqmd()), Eph(bytes(36)), SteppedHeader("MQIIH", bytes(52))]
    for header in made:
        assert len(header.encode()) == header.length
        assert decode(header.encode()).headers[0].kind == header.kind
