"""Against codecs that this project did not write: the pure Python structures of ``ibmmq`` and ``pymqi``."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given, strategies as st

from rfh2 import (
    Dlh,
    Folder,
    Mde,
    Mqmd,
    Rfh2,
    SteppedHeader,
    Xqh,
    constants,
    decode,
    decode_pcf,
    encode,
    options,
    pcf_names,
)
from rfh2.ccsid import ByteOrder, byte_order
from rfh2.mqmd import name_of
from rfh2.pcf_parameters import Cfbf, Cfbs, Cfgr, Cfif, Cfil, Cfil64, Cfin, Cfin64, Cfsf, Cfsl, Cfst
from tests.rfh2.peers import IBMMQ, PEERS, needs_ibmmq

LONGS = st.integers(-(2**31), 2**31 - 1)
LONGLONGS = st.integers(-(2**63), 2**63 - 1)
NATIVE: ByteOrder = sys.byteorder


TEXTS = st.text("ABCXYZ./_%019", max_size=8)


def binary(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


PROLOGUE: dict[str, st.SearchStrategy[Any]] = {
    "Encoding": LONGS,
    "CodedCharSetId": LONGS,
    "Format": TEXTS,
    "Flags": LONGS,
}
PUT: dict[str, st.SearchStrategy[Any]] = {
    "PutApplType": LONGS,
    "PutApplName": TEXTS,
    "PutDate": TEXTS,
    "PutTime": TEXTS,
}
EXTENSION: dict[str, st.SearchStrategy[Any]] = {
    "GroupId": binary(24),
    "MsgSeqNumber": LONGS,
    "Offset": LONGS,
    "MsgFlags": LONGS,
    "OriginalLength": LONGS,
}
DESCRIPTOR: dict[str, st.SearchStrategy[Any]] = {
    "Report": LONGS,
    "MsgType": LONGS,
    "Expiry": LONGS,
    "Feedback": LONGS,
    "Encoding": LONGS,
    "CodedCharSetId": LONGS,
    "Format": TEXTS,
    "Priority": LONGS,
    "Persistence": LONGS,
    "MsgId": binary(24),
    "CorrelId": binary(24),
    "BackoutCount": LONGS,
    "ReplyToQ": TEXTS,
    "ReplyToQMgr": TEXTS,
    "UserIdentifier": TEXTS,
    "AccountingToken": binary(32),
    "ApplIdentityData": TEXTS,
    **PUT,
}
DEAD_LETTER: dict[str, st.SearchStrategy[Any]] = {
    "Reason": LONGS,
    "DestQName": TEXTS,
    "DestQMgrName": TEXTS,
    "Encoding": LONGS,
    "CodedCharSetId": LONGS,
    "Format": TEXTS,
    **PUT,
}


def fill(structure: Any, fields: dict[str, st.SearchStrategy[Any]], data: st.DataObject) -> dict[str, Any]:
    """The peer's structure with values drawn for *fields*; the values."""
    values = {name: data.draw(strategy, name) for name, strategy in fields.items()}
    structure.set(**values)
    return values


def agree(ours: object, theirs: dict[str, Any]) -> None:
    """Our fields hold their values; they fill text up with nulls, so it is names that are compared."""
    for name, value in theirs.items():
        # ReplyToQMgr is reply_to_qmgr here, ReplyToQ reply_to_q
        words = name.replace("QMgr", "Qmgr")
        found = getattr(ours, "".join(f"_{c.lower()}" if c.isupper() else c for c in words).lstrip("_"))
        assert (name_of(found) if isinstance(found, str) else found) == value, name


@needs_ibmmq
@given(data=st.data())
def test_descriptors(data: st.DataObject) -> None:
    theirs = IBMMQ.MD()
    values = fill(theirs, DESCRIPTOR | EXTENSION, data)
    raw = theirs.pack()
    ours = Mqmd.decode(raw)
    agree(ours, values)
    assert (ours.version, ours.order, ours.encode()) == (2, NATIVE, raw)


STRUCTURES = [
    pytest.param("DLH", DEAD_LETTER, "MQDEAD", Dlh, id="MQDLH"),
    pytest.param("MDE", PROLOGUE | EXTENSION, "MQHMDE", Mde, id="MQMDE"),
    pytest.param("IIH", PROLOGUE, "MQIMS", SteppedHeader, id="MQIIH"),
    pytest.param("CIH", PROLOGUE, "MQCICS", SteppedHeader, id="MQCIH"),
]


@needs_ibmmq
@pytest.mark.parametrize(("name", "fields", "fmt", "kind"), STRUCTURES)
@given(data=st.data())
def test_headers(
    name: str, fields: dict[str, st.SearchStrategy[Any]], fmt: str, kind: type, data: st.DataObject
) -> None:
    theirs = getattr(IBMMQ, name)()
    values = fill(theirs, fields | {"Format": TEXTS.map(lambda text: text.lower())}, data)
    raw = theirs.pack()
    message = decode(raw + b"body", Mqmd(format=fmt))
    (ours,) = message.headers
    assert isinstance(ours, kind)
    agree(ours, values)
    assert (message.body, encode(message)) == (b"body", raw + b"body")


@needs_ibmmq
@given(data=st.data())
def test_transmission_queue_headers(data: st.DataObject) -> None:
    header, descriptor = IBMMQ.XQH(), IBMMQ.MD(Version=1)
    values = fill(header, {"RemoteQName": TEXTS, "RemoteQMgrName": TEXTS}, data)
    inner = fill(descriptor, DESCRIPTOR, data)
    raw = header.pack() + descriptor.pack()[:324]
    ours = decode(raw, Mqmd(format="MQXMIT")).headers[0]
    assert isinstance(ours, Xqh)
    agree(ours, values)
    agree(ours.mqmd, inner)
    assert ours.encode() == raw
    assert IBMMQ.XQH().get_header(ours.encode())["RemoteQName"] == values["RemoteQName"].encode().ljust(48, b"\0")
    assert IBMMQ.XQH().get_embedded_md(ours.encode())["MsgId"] == inner["MsgId"]


FOLDERS = st.lists(
    st.tuples(st.sampled_from(["psc", "usr", "mcd", "jms", "com.ours"]), st.text("abc/# é", max_size=12)),
    unique_by=lambda pair: pair[0],
    max_size=4,
)


@pytest.mark.parametrize("module", PEERS)
@given(folders=FOLDERS, encoding=LONGS, ccsid=LONGS, flags=LONGS)
def test_their_mqrfh2_is_ours(
    module: Any, folders: list[tuple[str, str]], encoding: int, ccsid: int, flags: int
) -> None:
    theirs = module.RFH2(
        Encoding=encoding,
        CodedCharSetId=ccsid,
        Format=b"MQSTR   ",
        Flags=flags,
        NameValueCCSID=1208,
        StrucLength=36,
    )
    for name, text in folders:
        theirs.add_folder(f"<{name}><Topic>{text}</Topic></{name}>".encode())
    raw = theirs.pack()
    message = decode(raw + b"body", Mqmd(format="MQHRF2"))
    ours = message.rfh2
    assert ours is not None
    assert (ours.encoding, ours.coded_char_set_id, ours.format, ours.flags) == (encoding, ccsid, "MQSTR", flags)
    assert [(folder.name, folder.pairs()) for folder in ours.folders] == [(n, [("Topic", text)]) for n, text in folders]
    assert encode(message) == raw + b"body"


@pytest.mark.parametrize("encoding", [273, 546])
@pytest.mark.parametrize("module", PEERS)
@given(folders=FOLDERS, flags=LONGS)
def test_our_mqrfh2_is_theirs(module: Any, encoding: int, folders: list[tuple[str, str]], flags: int) -> None:
    order = byte_order(encoding)
    assert order is not None
    written = tuple(Folder.of(f"<{name}><Topic>{text}</Topic></{name}>") for name, text in folders)
    ours = Rfh2(written, encoding=546, coded_char_set_id=1208, format="MQSTR", flags=flags, order=order)
    theirs = module.RFH2()
    theirs.unpack(ours.encode() + b"body", encoding)
    found = theirs.get()
    assert (found["StrucLength"], found["Flags"], found["NameValueCCSID"]) == (ours.length, flags, 1208)
    assert [found[name] for name, _ in folders] == [folder.data for folder in written]


@needs_ibmmq
@given(data=st.data())
def test_pcf_parameters(data: st.DataObject) -> None:
    number, value, other = data.draw(LONGS), data.draw(LONGS), data.draw(LONGS)
    longs = data.draw(st.lists(LONGS, max_size=4))
    longlongs = data.draw(st.lists(LONGLONGS, min_size=1, max_size=4))
    raw_bytes = data.draw(st.binary(min_size=1, max_size=9))
    texts = data.draw(st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=3))
    text = texts[0].encode()
    pad = bytes(-len(raw_bytes) % 4)
    text_pad = bytes(-len(text) % 4)
    size = max(len(each) for each in texts)
    size += -size % 4
    strings = tuple(each.encode().ljust(size, b"\0") for each in texts)
    pairs = [
        (IBMMQ.CFIN(Parameter=number, Value=value), Cfin(number, value)),
        (IBMMQ.CFIN64(Parameter=number, Value=longlongs[0]), Cfin64(number, longlongs[0])),
        (IBMMQ.CFIL(Parameter=number, Values=longs), Cfil(number, tuple(longs))),
        (IBMMQ.CFIL64(Parameter=number, Values=longlongs), Cfil64(number, tuple(longlongs))),
        (
            IBMMQ.CFST(Parameter=number, CodedCharSetId=819, String=text),
            Cfst(number, text, 819, "latin-1", text_pad),
        ),
        (
            IBMMQ.CFSL(Parameter=number, CodedCharSetId=819, Strings=[each.encode() for each in texts]),
            Cfsl(number, strings, size, 819, "latin-1"),
        ),
        (IBMMQ.CFBS(Parameter=number, String=raw_bytes), Cfbs(number, raw_bytes, pad)),
        (IBMMQ.CFIF(Parameter=number, Operator=value, FilterValue=other), Cfif(number, value, other)),
        (
            IBMMQ.CFSF(Parameter=number, Operator=value, CodedCharSetId=819, FilterValue=text),
            Cfsf(number, value, text, 819, "latin-1", text_pad),
        ),
        (IBMMQ.CFBF(Parameter=number, Operator=value, FilterValue=raw_bytes), Cfbf(number, value, raw_bytes, pad)),
        (IBMMQ.CFGR(Parameter=number), Cfgr(number)),
    ]
    chosen = data.draw(st.lists(st.sampled_from(range(len(pairs))), max_size=6))
    command = data.draw(LONGS)
    header = IBMMQ.CFH(Command=command, ParameterCount=len(chosen), Reason=other).pack()
    raw = b"".join([header, *(pairs[i][0].pack() for i in chosen)])
    pcf = decode_pcf(raw)
    assert (pcf.command, pcf.reason, pcf.version, pcf.order) == (command, other, 3, NATIVE)
    assert list(pcf.parameters) == [pairs[i][1] for i in chosen]
    assert pcf.encode() == raw


@needs_ibmmq
def test_constants_are_theirs() -> None:
    ours = {name: value for module in (constants, pcf_names) for name, value in vars(module).items()}
    for each in (options.REGISTRATION, options.PUBLICATION, options.DELETE):
        ours |= {each.constant(word): bit for word, (bit, _) in each.bits.items()}
    theirs = vars(IBMMQ.CMQC) | vars(IBMMQ.CMQCFC)
    numbers = {name: value for name, value in ours.items() if name.startswith("MQ") and isinstance(value, int)}
    # The native encoding is the machine's; the guide's limit (6.7.4) is not the header file's.
    elsewhere = {"MQENC_NATIVE", "MQ_SUB_IDENTITY_LENGTH"}
    assert len(numbers) > 150
    assert {name: theirs.get(name) for name in numbers.keys() - elsewhere} == {
        name: numbers[name] for name in numbers.keys() - elsewhere
    }
