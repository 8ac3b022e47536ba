"""IBM's Java classes for headers and PCF read what is written here, and what they write is read here.

One Java program answers all questions. Messages are generated: chains of headers in mixed encodings and code pages,
and PCF with every kind of parameter.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from rfh2 import (
    Dlh,
    Folder,
    Header,
    Mde,
    Message,
    Mqmd,
    Pcf,
    Rfh1,
    Rfh2,
    SteppedHeader,
    Xqh,
    ccsid as ccsid_module,
    decode,
    decode_pcf,
    encode,
)
from rfh2.ccsid import ByteOrder, byte_order, field_codec, is_ebcdic, text_codec
from rfh2.layouts import MQDLH, MQMD1, MQMDE, MQRFH, MQRFH2, MQXQH
from rfh2.pcf import (
    Cfbf,
    Cfbs,
    Cfgr,
    Cfif,
    Cfil,
    Cfil64,
    Cfin,
    Cfin64,
    Cfsf,
    Cfsl,
    Cfst,
    Parameter,
)
from tests.ibm_java import compiled, needs_ibm_java
from tests.quick_java import JAVA

pytestmark = [pytest.mark.slow, needs_ibm_java]

Ask = Callable[..., Any]
Representation = tuple[int, int]

generated = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Asks IBM's classes; an error of theirs is the answer's ``error``."""
    made = tmp_path_factory.mktemp("classes")
    command = [*JAVA, "-cp", compiled(Path(__file__).parent / "java", made), "Headers"]
    with subprocess.Popen(command, cwd=made, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as java:
        assert java.stdin is not None
        assert java.stdout is not None

        def asked(what: str, representation: Representation, **more: object) -> Any:
            ccsid, encoding = representation
            question = {"do": what, "ccsid": ccsid, "encoding": encoding, **more}
            assert java.stdin is not None
            assert java.stdout is not None
            java.stdin.write(json.dumps(question) + "\n")
            java.stdin.flush()
            return json.loads(java.stdout.readline())

        yield asked
        java.stdin.close()


# ---- headers --------------------------------------------------------------------------------------------------------

CCSIDS = (37, 273, 437, 500, 819, 850, 1047, 1140, 1208, 1252)
ENCODINGS = (273, 546, 785)
# IBM's classes read what stands in these, but write some of it in the other byte order.
MIXED_ENCODINGS = (0x112, 0x221)


def representations(encodings: tuple[int, ...] = ENCODINGS) -> st.SearchStrategy[Representation]:
    return st.tuples(st.sampled_from(CCSIDS), st.sampled_from(encodings))


NAMES = "ABCXYZabcxyz0189./_%"
INTEGERS = st.integers(-(2**31), 2**31 - 1)


def name(size: int) -> st.SearchStrategy[str]:
    return st.text(NAMES, max_size=size)


def written_in(representation: Representation) -> dict[str, Any]:
    """Byte order and codec of the fields of a header that stands in *representation*."""
    ccsid, encoding = representation
    order: ByteOrder = byte_order(encoding) or "little"
    return {"order": order, "charset": field_codec(ccsid, is_ebcdic(ccsid))}


@st.composite
def folders(draw: st.DrawFn, charset: str) -> tuple[Folder, ...]:
    texts = draw(
        st.lists(st.tuples(st.sampled_from(("psc", "usr", "mcd")), st.text("abc äß€Ω", max_size=5)), max_size=3)
    )
    return tuple(Folder.of(f"<{tag}><a>{text}</a></{tag}>", charset) for tag, text in texts)


@st.composite
def rfh2_headers(draw: st.DrawFn, own: Representation, described: dict[str, Any]) -> Header:
    written = written_in(own)
    nv_ccsid = draw(st.sampled_from((1208, 1200)))
    codec = "utf-8" if nv_ccsid == 1208 else "utf-16-le" if written["order"] == "little" else "utf-16-be"
    return Rfh2(draw(folders(codec)), flags=draw(INTEGERS), name_value_ccsid=nv_ccsid, **described, **written)


@st.composite
def rfh1_headers(draw: st.DrawFn, own: Representation, described: dict[str, Any]) -> Header:
    written = written_in(own)
    pairs = draw(
        st.lists(st.tuples(st.text("abcMQ", min_size=1, max_size=4), st.text("abc/1", min_size=1, max_size=6)))
    )
    empty = Rfh1(flags=draw(INTEGERS), string_charset=written["charset"], **described, **written)
    return empty.with_pairs(pairs, blanks=True)


@st.composite
def dlh_headers(draw: st.DrawFn, own: Representation, described: dict[str, Any]) -> Header:
    put = {"put_date": draw(st.sampled_from(("20240103", "20331231"))), "put_time": "09441700"}
    names = (draw(name(48)), draw(name(48)))
    rest = {"put_appl_type": draw(INTEGERS), "put_appl_name": draw(name(28)), **put}
    return Dlh(draw(INTEGERS), *names, **rest, **described, **written_in(own))


@st.composite
def mde_headers(draw: st.DrawFn, own: Representation, described: dict[str, Any]) -> Header:
    numbers = [draw(INTEGERS) for _ in range(4)]
    group = draw(st.binary(min_size=24, max_size=24))
    return Mde(group, *numbers, **described, flags=draw(INTEGERS), **written_in(own))


@st.composite
def xqh_headers(draw: st.DrawFn, own: Representation, described: dict[str, Any]) -> Header:
    written = written_in(own)
    mqmd = Mqmd(
        report=draw(INTEGERS),
        expiry=draw(INTEGERS),
        msg_id=draw(st.binary(min_size=24, max_size=24)),
        reply_to_q=draw(name(48)),
        user_identifier=draw(name(12)),
        put_appl_name=draw(name(28)),
        put_date="20240103",
        put_time="09441700",
        **described,
        **written,
    )
    return Xqh(mqmd, draw(name(48)), draw(name(48)), **written)


@st.composite
def iih_headers(draw: st.DrawFn, own: Representation, described: dict[str, Any]) -> Header:
    written = written_in(own)
    blank = " ".encode(written["charset"])
    rest = draw(name(8)).encode(written["charset"]).ljust(32, blank) + bytes(16) + blank * 4
    return SteppedHeader("MQIIH", rest, flags=draw(INTEGERS), **described, **written)


@st.composite
def cih_headers(draw: st.DrawFn, own: Representation, described: dict[str, Any]) -> Header:
    written = written_in(own)
    blank, version = " ".encode(written["charset"]), draw(st.sampled_from((1, 2)))
    longs = b"".join(draw(INTEGERS).to_bytes(4, written["order"], signed=True) for _ in range(11))
    rest = longs + bytes(8) + blank * 80 + (bytes(12) + blank * 4 if version == 2 else b"")
    return SteppedHeader("MQCIH", rest, version, flags=draw(INTEGERS), **described, **written)


MAKERS = (rfh2_headers, rfh1_headers, dlh_headers, mde_headers, xqh_headers, iih_headers, cih_headers)


@st.composite
def messages(draw: st.DrawFn, encodings: tuple[int, ...] = ENCODINGS) -> Message:
    """A chain in which each header, and the body, stands in a representation of its own."""
    makers = draw(st.lists(st.sampled_from(MAKERS), min_size=1, max_size=4))
    stands_in = [draw(representations(encodings)) for _ in range(len(makers) + 1)]
    for at, maker in enumerate(makers):
        if maker is iih_headers:
            stands_in[at + 1] = stands_in[at]
    fmt = draw(st.sampled_from(("MQSTR", "", "MYFMT")))
    headers: list[Header] = []
    for at in range(len(makers) - 1, -1, -1):
        ccsid, encoding = stands_in[at + 1]
        if makers[at] is iih_headers:  # what it says of what follows is of no account
            ccsid, encoding = draw(representations(encodings))
        described = {"coded_char_set_id": ccsid, "encoding": encoding, "format": fmt}
        headers.insert(0, draw(makers[at](stands_in[at], described)))
        fmt = headers[0].own_format
    ccsid, encoding = stands_in[0]
    mqmd = Mqmd(format=fmt, coded_char_set_id=ccsid, encoding=encoding)
    return Message(mqmd, tuple(headers), draw(st.binary(max_size=9)))


LAYOUTS = {
    "MQRFH2": MQRFH2,
    "MQRFH": MQRFH,
    "MQDLH": MQDLH,
    "MQMDE": MQMDE,
    "MQXQH": MQXQH,
    "MQCIH": MQRFH,
    "MQIIH": MQRFH,
}


def fields_of(header: Any, kind: str) -> dict[str, Any]:
    """What a header says, by IBM's names, as the Java program shows it; not what every header of its kind has."""
    shown: dict[str, Any] = {}
    for field in (LAYOUTS.get(kind) or MQMD1).names:
        if field in ("StrucId", "Version", "StrucLength"):
            continue
        words = field.replace("QMgr", "Qmgr").replace("QName", "Q_Name").replace("CCSID", "Ccsid")
        value = getattr(header, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", words).lower())
        shown[field] = value.hex() if isinstance(value, bytes) else value
    if kind == "MQXQH":
        shown["MsgDesc"] = fields_of(header.mqmd, "MQMD")
    return shown


def trimmed(shown: dict[str, Any]) -> dict[str, Any]:
    """Names without the blanks that fill their fields."""
    return {
        key: value.rstrip(" ") if isinstance(value, str) else trimmed(value) if isinstance(value, dict) else value
        for key, value in shown.items()
    }


def common(there: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """What is there of the fields that are expected."""
    return {
        key: common(there[key], value) if isinstance(value, dict) else there[key] for key, value in expected.items()
    }


def stands_in(message: Message) -> Representation:
    return message.mqmd.coded_char_set_id, message.mqmd.encoding


@pytest.mark.rule("LSN-32")
@generated
@given(messages(ENCODINGS + MIXED_ENCODINGS))
def test_ibms_classes_read_headers_that_are_written_here(ask: Ask, message: Message) -> None:
    data = encode(message)
    answer = ask("read", stands_in(message), format=message.mqmd.format.ljust(8), hex=data.hex())
    assert "error" not in answer, answer["error"]
    assert [each["type"] for each in answer["headers"]] == [header.kind for header in message.headers]
    for header, shown in zip(message.headers, answer["headers"], strict=True):
        expected = fields_of(header, header.kind)
        there = trimmed(shown["fields"])
        assert common(there, expected) == expected
        assert there.get("StrucLength", header.length) == header.length
        if isinstance(header, Rfh2):
            assert [text.rstrip() for text in shown["folders"]] == [folder.text for folder in header.folders]
        if isinstance(header, Rfh1):
            assert shown["pairs"] == [list(pair) for pair in header.pairs()]
        assert bytes.fromhex(shown["hex"]) == header.encode()
    assert bytes.fromhex(answer["body"]) == message.body


def is_written_again(message: Message) -> bool:
    """Whether MQHeaderList can: not what it has no fields for, and folders only in the byte order in which they are."""
    order = byte_order(message.mqmd.encoding)
    headers = message.headers
    if any(isinstance(each, SteppedHeader) for each in headers):
        return False
    return all(each.order == order for each in headers if isinstance(each, Rfh2) and each.folders)


@generated
@given(messages().filter(is_written_again))
def test_a_list_of_headers_is_written_again_in_one_encoding(ask: Ask, message: Message) -> None:
    """MQHeaderList gives all headers the message's encoding and code page, and says so in each: they mean the same."""
    data = encode(replace(message, body=b""))
    answer = ask("list", stands_in(message), format=message.mqmd.format.ljust(8), hex=data.hex())
    assert "error" not in answer, answer["error"]
    assert answer["types"] == [header.kind for header in message.headers]
    given_back = decode(bytes.fromhex(answer["hex"]), message.mqmd)
    for theirs, ours in zip(given_back.headers, message.headers, strict=True):
        assert without_description(theirs) == without_description(ours)


def without_description(header: Header) -> dict[str, Any]:
    """What a header says of itself; of what follows only the Format."""
    said = fields_of(header, header.kind)
    for fields in (said, said.get("MsgDesc", {})):
        fields.pop("Encoding", None)
        fields.pop("CodedCharSetId", None)
    if isinstance(header, Rfh2):
        said["folders"] = [folder.text.strip() for folder in header.folders]
    if isinstance(header, Rfh1):
        said["pairs"] = header.pairs()
    return said


@pytest.mark.rule("LSN-32")
@generated
@given(messages())
def test_headers_that_ibms_classes_write_are_read_here(ask: Ask, message: Message) -> None:
    """They write new folders in big-endian only, with a byte-order mark in UTF-16, and a null behind the first pair of
    an MQRFH, which ends its string."""
    wanted = []
    for header in message.headers:
        one: dict[str, Any] = {"type": header.kind, "fields": fields_of(header, header.kind)}
        if isinstance(header, Rfh2):
            one["folders"] = [folder.text for folder in header.folders] if header.order == "big" else []
        if isinstance(header, Rfh1):
            one["pairs"] = header.pairs()
        wanted.append(one)
    answer = ask("write", stands_in(message), headers=wanted)
    assert "error" not in answer, answer["error"]
    given_back = decode(bytes.fromhex(answer["hex"]), message.mqmd)
    assert [header.kind for header in given_back.headers] == [header.kind for header in message.headers]
    for theirs, ours, one in zip(given_back.headers, message.headers, wanted, strict=True):
        assert fields_of(theirs, theirs.kind) == fields_of(ours, ours.kind)
        if isinstance(theirs, Rfh2):
            assert [folder.text.strip() for folder in theirs.folders] == one["folders"]
        elif isinstance(theirs, Rfh1):
            assert theirs.pairs() == one["pairs"][:1]
        elif isinstance(theirs, (Dlh, Mde)):
            assert theirs == ours


# ---- where IBM's classes are odd (docs/peers.md) ---------------------------------------------------------------------

LITTLE, BIG = (819, 546), (819, 273)
DESCRIBED = {"Encoding": 546, "CodedCharSetId": 819, "Format": "MQSTR", "Flags": 0}


@pytest.mark.rule("LSN-37")
def test_ibms_mqrfh_knows_no_quotes_and_separates_pairs_by_nulls(ask: Ask) -> None:
    quoted = Rfh1(coded_char_set_id=819).with_pairs([("a", "2 3")]).encode()
    assert "NoSuchElementException" in ask("read", LITTLE, format="MQHRF   ", hex=quoted.hex())["error"]
    pairs = {"type": "MQRFH", "fields": DESCRIBED, "pairs": [["a", "1"], ["b", "2 3"]]}
    assert bytes.fromhex(ask("write", BIG, headers=[pairs])["hex"])[32:] == b"a 1\0b 2 3   "


@pytest.mark.rule("LSN-37")
@pytest.mark.parametrize("described", [LITTLE, BIG], ids=["little", "big"])
def test_ibms_mqrfh2_writes_folders_in_utf_16_big_endian_with_marks(ask: Ask, described: tuple[int, int]) -> None:
    folder = {"type": "MQRFH2", "fields": {**DESCRIBED, "NameValueCCSID": 1200}, "folders": ["<a/>"]}
    mqmd = Mqmd(format="MQHRF2", encoding=described[1])
    (written,) = decode(bytes.fromhex(ask("write", described, headers=[folder])["hex"]), mqmd).headers
    assert isinstance(written, Rfh2)
    assert written.folders[0].data == "\ufeff<a/>\ufeff".encode("utf-16-be")


@pytest.mark.rule("LSN-37")
@pytest.mark.parametrize(
    ("ccsid", "encoding", "parameter", "written"),
    [
        (819, 546, Cfin64(5, 974), bytes(8)),
        (819, 274, Cfil(5, (974,)), (974).to_bytes(4, "big")),
    ],
    ids=["64-bits", "list"],
)
def test_ibms_pcf_writes_wrong_numbers_in_reversed_encodings(
    ask: Ask, ccsid: int, encoding: int, parameter: Parameter, written: bytes
) -> None:
    own = {"type": 1, "command": 1, "sequence": 1, "control": 1}
    answer = ask("write-pcf", (ccsid, encoding), **own, parameters=[shown(parameter)])
    assert bytes.fromhex(answer["hex"])[-len(written) :] == written


# ---- PCF ------------------------------------------------------------------------------------------------------------


def field_is_a_byte(ccsid: int) -> bool:
    """Whether each character of a code page is one byte."""
    codec = text_codec(ccsid, 273) or ""
    return all(len(bytes((byte, 0x41, 0x41)).decode(codec, "replace")) == 3 for byte in range(0x80, 0x100))


def characters(ccsid: int) -> str:
    """Characters of a code page that are not controls, and not changed by Java's and Python's tables alike."""
    if ccsid == 1208:
        return "aZ09 äß€Ω中"
    codec = text_codec(ccsid, 273)
    assert codec is not None
    return "".join(filter(str.isprintable, bytes(range(256)).decode(codec, "ignore")))


def texts(ccsid: int) -> st.SearchStrategy[str]:
    return st.text(characters(ccsid), max_size=9).map(lambda text: text.rstrip(" "))


@st.composite
def parameters(draw: st.DrawFn, ccsid: int, depth: int = 2) -> Parameter:
    number, charset = draw(st.integers(1, 9999)), text_codec(ccsid, 273) or ""
    operator = draw(st.integers(1, 30))
    binary = st.binary(max_size=9)
    own = draw(st.sampled_from((0, ccsid)))
    kinds: list[Callable[[], Parameter]] = [
        lambda: Cfin(number, draw(INTEGERS)),
        lambda: Cfin64(number, draw(st.integers(-(2**63), 2**63 - 1))),
        lambda: Cfil(number, tuple(draw(st.lists(INTEGERS, max_size=4)))),
        lambda: Cfil64(number, tuple(draw(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4)))),
        lambda: string(number, draw(texts(ccsid)), own, charset),
        lambda: strings(number, draw(st.lists(texts(ccsid), min_size=1, max_size=3)), own, charset),
        lambda: Cfbs.of(number, draw(binary)),
        lambda: Cfif(number, operator, draw(INTEGERS)),
        lambda: filtered(number, operator, draw(texts(ccsid)), own, charset),
        lambda: byte_filtered(number, operator, draw(binary)),
    ]
    if depth:
        kinds.append(lambda: Cfgr(number, tuple(draw(st.lists(parameters(ccsid, depth - 1), max_size=3)))))
    return draw(st.sampled_from(kinds))()


def string(number: int, text: str, ccsid: int, charset: str) -> Cfst:
    data = text.encode(charset)
    return Cfst(number, data, ccsid, charset, bytes(-len(data) % 4))


def strings(number: int, listed: list[str], ccsid: int, charset: str) -> Cfsl:
    encoded = [text.encode(charset) for text in listed]
    size = max(map(len, encoded))
    filled = tuple(data.ljust(size, " ".encode(charset)) for data in encoded)
    return Cfsl(number, filled, size, ccsid, charset, bytes(-size * len(filled) % 4))


def filtered(number: int, operator: int, text: str, ccsid: int, charset: str) -> Cfsf:
    data = text.encode(charset)
    return Cfsf(number, operator, data, ccsid, charset, bytes(-len(data) % 4))


def byte_filtered(number: int, operator: int, data: bytes) -> Cfbf:
    return Cfbf(number, operator, data, bytes(-len(data) % 4))


# How many bytes differ: Python has Windows' code page 874, another table of HP's Roman 8, and ASCII in EUC of Japanese.
OTHER_TABLES = {874: 8, 1051: 2, 954: 2, 5050: 2, 33722: 2}
# Two are not known to Java.
CODE_PAGES = [ccsid for ccsid in sorted(ccsid_module._CODECS) if field_is_a_byte(ccsid) and ccsid not in (720, 1168)]


@pytest.mark.rule("LSN-38")
@pytest.mark.parametrize("ccsid", CODE_PAGES)
def test_each_byte_of_a_code_page_is_the_character_that_ibms_classes_read(ask: Ask, ccsid: int) -> None:
    codec = text_codec(ccsid, 273) or ""
    known = {byte: bytes((byte,)).decode(codec, "ignore") for byte in range(0x21, 0xFF) if byte not in (0x40, 0x7F)}
    known = {byte: text for byte, text in known.items() if text and text.isprintable() and text != "\ufffd"}
    data = bytes(known)
    pcf = Pcf(1, (Cfst(1, data, 0, codec, bytes(-len(data) % 4)),), order="big")
    ((_, _, text),) = ask("read-pcf", (ccsid, 273), hex=pcf.encode().hex())["parameters"]
    differing = [
        (hex(byte), ours, theirs)
        for byte, ours, theirs in zip(data, known.values(), text, strict=True)
        if ours != theirs
    ]
    assert len(differing) == OTHER_TABLES.get(ccsid, 0), differing


@st.composite
def pcf_messages(draw: st.DrawFn, encodings: tuple[int, ...] = ENCODINGS) -> tuple[Representation, Pcf]:
    ccsid, encoding = draw(representations(encodings))
    order: ByteOrder = byte_order(encoding) or "little"
    made = tuple(draw(st.lists(parameters(ccsid), max_size=6)))
    control = draw(st.integers(0, 1))
    return (ccsid, encoding), Pcf(draw(INTEGERS), made, 16, 3, draw(st.integers(1, 99)), control, order=order)


def without_lists(parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """Those that are no numbers of 64 bits and no lists of numbers, in groups too."""
    return tuple(
        replace(each, members=without_lists(each.members)) if isinstance(each, Cfgr) else each
        for each in parameters
        if not isinstance(each, (Cfin64, Cfil, Cfil64))
    )


def shown(parameter: Parameter) -> list[Any]:
    """A parameter as the Java program shows it."""
    value: Any
    if isinstance(parameter, Cfgr):
        value = [shown(member) for member in parameter.members]
    elif isinstance(parameter, (Cfst, Cfsf)):
        value = parameter.text
    elif isinstance(parameter, Cfsl):
        value = list(parameter.texts)
    elif isinstance(parameter, (Cfil, Cfil64)):
        value = list(parameter.values)
    elif isinstance(parameter, (Cfbs, Cfbf)):
        value = parameter.data.hex()
    else:
        assert isinstance(parameter, (Cfin, Cfin64, Cfif))
        value = parameter.value
    operator = [parameter.operator] if isinstance(parameter, (Cfif, Cfsf, Cfbf)) else []
    return [parameter.type, parameter.parameter, *operator, value]


def without_padding(theirs: list[Any]) -> list[Any]:
    """IBM's class shows the blanks that fill up the strings of a list."""
    if theirs[0] == Cfsl.type:
        return [*theirs[:2], [text.rstrip(" ") for text in theirs[2]]]
    return [*theirs[:2], [without_padding(each) for each in theirs[2]]] if theirs[0] == Cfgr.type else theirs


@pytest.mark.rule("LSN-33")
@generated
@given(pcf_messages(ENCODINGS + MIXED_ENCODINGS))
def test_ibms_classes_read_pcf_that_is_written_here(ask: Ask, made: tuple[Representation, Pcf]) -> None:
    representation, pcf = made
    answer = ask("read-pcf", representation, hex=pcf.encode().hex())
    assert "error" not in answer, answer["error"]
    header = {key: answer[key] for key in ("type", "command", "version", "sequence", "control", "comp_code", "reason")}
    assert list(header.values()) == [16, pcf.command, 3, pcf.msg_seq_number, pcf.control, 0, 0]
    assert [without_padding(each) for each in answer["parameters"]] == [shown(each) for each in pcf.parameters]
    assert bytes.fromhex(answer["hex"]) == pcf.encode()


@pytest.mark.rule("LSN-33")
@generated
@given(pcf_messages())
def test_pcf_that_ibms_classes_write_is_read_here(ask: Ask, made: tuple[Representation, Pcf]) -> None:
    """In the reversed encoding they write numbers of 64 bits and lists of numbers wrongly: these are left out there."""
    representation, pcf = made
    if pcf.order == "little":
        pcf = replace(pcf, parameters=without_lists(pcf.parameters))
    own = {"type": 16, "command": pcf.command, "sequence": pcf.msg_seq_number, "control": pcf.control}
    answer = ask("write-pcf", representation, **own, parameters=[shown(each) for each in pcf.parameters])
    assert "error" not in answer, answer["error"]
    theirs = decode_pcf(bytes.fromhex(answer["hex"]), representation[0])
    assert (theirs.type, theirs.command, theirs.order) == (16, pcf.command, pcf.order)
    assert (theirs.msg_seq_number, theirs.control) == (pcf.msg_seq_number, pcf.control)
    assert [shown(each) for each in theirs.parameters] == [shown(each) for each in pcf.parameters]
