"""What can be read of a message with a fault: fields, folders before and behind it, headers and data behind it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from commands.explain.equivalents.records import MessageView, view
from commands.explain.problems import explained, readable_command
from rfh2 import CapturedMessage, DecodeError, Dlh, Folder, Message, Mqmd, Rfh2, decode, encode
from rfh2.explain.reading import MOST_FAULTS, Located, PartialMessage, Salvaged, read_message, salvage
from rfh2.rfh1 import Rfh1
from tests.rfh2.explained import damaged

PSC = "<psc><Command>RegSub</Command><Topic>Sport/Soccer</Topic></psc>"
USR = "<usr><test>1</test></usr>"
MCD = "<mcd><Msd>jms_text</Msd></mcd>"
FOLDERS = tuple(map(Folder.of, (PSC, USR, MCD)))
HEADER = Rfh2(FOLDERS, format="MQSTR", coded_char_set_id=1208)
WHOLE = encode(Message(Mqmd(), (HEADER,), b"hello"))
LENGTHS = {"psc": 36, "usr": 36 + 4 + len(FOLDERS[0].data), "mcd": 36 + 8 + len(FOLDERS[0].data) + len(FOLDERS[1].data)}


def partial(body: bytes, fmt: str = "MQHRF2") -> PartialMessage:
    md = Mqmd(format=fmt, coded_char_set_id=1208).encode().hex()
    return read_message(CapturedMessage(seq=1, queue="", md_hex=md, body_hex=body.hex()))


def patched(offset: int, data: bytes, body: bytes = WHOLE) -> bytes:
    return body[:offset] + data + body[offset + len(data) :]


def names(found: Salvaged | Located) -> list[str]:
    header = found.header if isinstance(found, Located) else found
    return [folder.name for folder in getattr(header, "folders", ())]


FAULTS = [
    # case, body, folders found, data found, a word of why
    ("a-length-too-large", patched(LENGTHS["usr"], b"\xff\xff\0\0"), ["psc", "usr", "mcd"], b"hello", "65535"),
    ("a-negative-length", patched(LENGTHS["usr"], b"\xff\xff\xff\xff"), ["psc", "usr", "mcd"], b"hello", "-1"),
    ("a-length-that-is-text", patched(LENGTHS["usr"], b"test"), ["psc", "usr", "mcd"], b"hello", '"test"'),
    ("the-first-length", patched(LENGTHS["psc"], b"\xff\xff\0\0"), ["psc", "usr", "mcd"], b"hello", "65535"),
    ("the-last-length", patched(LENGTHS["mcd"], b"\xff\xff\0\0"), ["psc", "usr", "mcd"], b"hello", "65535"),
    (
        "a-length-in-the-other-byte-order",
        patched(LENGTHS["usr"], len(FOLDERS[1].data).to_bytes(4, "big")),
        ["psc", "usr", "mcd"],
        b"hello",
        "in the other byte order",
    ),
    (
        "a-length-is-missing",
        patched(8, (len(WHOLE) - 9).to_bytes(4, "little"), WHOLE[: LENGTHS["usr"]] + WHOLE[LENGTHS["usr"] + 4 :]),
        ["psc", "usr", "mcd"],
        b"hello",
        "",
    ),
    ("no-name-value-ccsid", patched(32, b"\x33\3\0\0"), ["psc", "usr", "mcd"], b"hello", ""),
    ("a-short-struc-length", patched(8, b"\1\0\0\0"), ["psc", "usr", "mcd"], b"hello", ""),
    ("cut-in-a-folder", WHOLE[: LENGTHS["usr"] + 10], ["psc", "usr"], b"", "28, 6 bytes"),
    ("cut-between-folders", WHOLE[: LENGTHS["usr"]], ["psc"], b"", ""),
    ("cut-in-the-fixed-part", WHOLE[:20], [], b"", ""),
]


@pytest.mark.parametrize(("body", "folders", "data", "why"), [c[1:] for c in FAULTS], ids=[c[0] for c in FAULTS])
def test_an_mqrfh2_with_a_fault(body: bytes, folders: list[str], data: bytes, why: str) -> None:
    found = salvage(partial(body))
    (part, *_) = found.parts
    assert isinstance(part, Salvaged)
    assert names(part) == folders
    assert found.message is not None
    assert found.message.body == data
    assert why in " ".join(unread.why for unread in part.unread)


def test_the_command_before_a_fault_is_known_and_is_none_for_a_broker() -> None:
    body = patched(LENGTHS["usr"], b"\xff\xff\0\0")
    command = readable_command(partial(body))
    assert command is not None
    assert command.topics == ("Sport/Soccer",)
    with pytest.raises(DecodeError, match="NameValueLength 65535 does not fit"):
        decode(body)


def test_a_length_that_is_text_is_said_to_be() -> None:
    with pytest.raises(DecodeError, match=r'NameValueLength 1014261107 \("<tes"\) does not fit'):
        decode(encode(Message(Mqmd(), (replace(HEADER, order="big"),)))[: LENGTHS["usr"]] + b"<tes" + bytes(64))


def test_headers_behind_a_fault_are_read() -> None:
    letter = Dlh(2053, "SUB.Q", "QM1", format="MQHRF2", coded_char_set_id=1208)
    faulty = patched(LENGTHS["usr"], b"\xff\xff\0\0", replace(HEADER, format="MQDEAD").encode())
    found = salvage(partial(faulty + letter.encode() + WHOLE))
    kinds = [part.kind if isinstance(part, Salvaged) else part.header.kind for part in found.parts]
    assert kinds == ["MQRFH2", "MQDLH", "MQRFH2"]
    assert found.message is not None
    assert found.message.body == b"hello"


def test_where_no_header_begins_the_next_one_is_looked_for() -> None:
    found = salvage(partial(b"rubbish!" + WHOLE))
    first, second = found.parts
    assert isinstance(first, Salvaged)
    assert first.unread[0].data == b"rubbish!"
    assert names(second) == ["psc", "usr", "mcd"]
    assert found.message is not None
    assert found.message.body == b"hello"


@pytest.mark.parametrize("size", [4, 11, 12, 80, 171])
def test_the_whole_fields_of_a_dead_letter_header_are_shown(size: int) -> None:
    letter = Dlh(2053, "SUB.Q", "QM1").encode()[:size]
    (form,) = explained(partial(letter, "MQDEAD").captured).form("x", 0)["salvaged"]["headers"]
    whole = {"StrucId": 4, "Version": 8, "Reason": 12, "DestQName": 60, "DestQMgrName": 108}
    for name, end in whole.items():
        assert (name in form["fields"]) is (end <= size), name


def test_the_string_of_an_mqrfh_that_was_cut() -> None:
    body = Rfh1(b"MQPSCommand RegSub MQPSTopic Sport MQPSQName Q \0").encode()[:-14]
    found = salvage(partial(body, "MQHRF"))
    (part,) = found.parts
    assert isinstance(part, Salvaged)
    assert part.rfh1 is not None
    assert part.rfh1.pairs() == [("MQPSCommand", "RegSub"), ("MQPSTopic", "Sport")]


def test_a_message_without_a_fault_has_nothing_to_be_salvaged() -> None:
    assert salvage(partial(WHOLE)).parts == ()
    assert "salvaged" not in explained(partial(WHOLE).captured).form("x", 0)


def test_only_so_many_faults_are_looked_behind() -> None:
    assert len(salvage(partial((b"XXXX" + b"RFH \2\0\0\0") * 100)).parts) <= 2 * MOST_FAULTS


@given(damaged())
def test_whatever_is_damaged_can_be_shown(captured: CapturedMessage) -> None:
    found = explained(captured)
    assert found.form("x", 0)["captured"] is captured
    assert list(view(found.partial, "x", found.command, found.problems, MessageView(lambda _role, text: text)))
    for part in salvage(found.partial).parts:
        if isinstance(part, Salvaged):
            assert captured.body[part.offset : part.offset + len(part.data)] == part.data


@given(st.binary(max_size=80), st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)))
def test_any_bytes_in_place_of_some_can_be_shown(data: bytes, start: int, end: int) -> None:
    body = WHOLE[:start] + data + WHOLE[end:]
    found = explained(partial(body).captured)
    assert list(view(found.partial, "x", found.command, found.problems, MessageView(lambda _role, text: text)))
