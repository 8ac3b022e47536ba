"""From the JSON form back to bytes: the same where nothing was edited, what was edited where something was."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from rfh2 import CapturedMessage, Dlh, EncodeError, Folder, Message, Mqmd, Rfh2, decode, encode
from rfh2.explain.describe import described
from rfh2.explain.form import json_line
from rfh2.explain.reading import read_message
from rfh2.explain.rebuild import rebuild
from rfh2.explain.rebuild_header import DecodedMessage
from rfh2.mqmd import Xqh
from rfh2.rfh1 import Rfh1
from tests.rfh2.explained import captured, damaged, fixture_messages, message, messages

Json = dict[str, Any]

PSC = "<psc><Command>Publish</Command><Topic>a/b</Topic></psc>"
USR = "<usr><Size dt='i4'>3</Size><Colour>red</Colour><On dt=\"boolean\">1</On><No xsi:nil='true'></No></usr>"


def shown(given: CapturedMessage) -> Json:
    loaded: Json = json.loads(json_line(described(read_message(given))))
    return loaded


def back(form: Json) -> CapturedMessage:
    return rebuild(DecodedMessage.model_validate_json(json.dumps(form)))


def edited(given: CapturedMessage, edit: Callable[[Json], object]) -> Message:
    """*given*, through JSON and an edit, decoded again."""
    form = shown(given)
    edit(form)
    return back(form).decode()


def test_every_fixture_comes_back() -> None:
    assert [source for source, given in fixture_messages() if back(shown(given)) != given] == []


@given(messages())
def test_any_message_comes_back(given: CapturedMessage) -> None:
    assert back(shown(given)) == given


@given(damaged())
def test_a_message_that_cannot_be_decoded_comes_back_too(given: CapturedMessage) -> None:
    assert back(shown(given)) == given


def test_uppercase_hex_is_kept_as_it_was() -> None:
    given = CapturedMessage(seq=1, queue="Q", md_hex=None, body_hex="ABCD")
    assert back(shown(given)).body_hex == "ABCD"


MADE = Rfh2((Folder.of(PSC), Folder.of(USR)))

EDITS: list[tuple[str, Callable[[Json], object], Callable[[Message], object], object]] = [
    ("mqmd-number", lambda f: f["mqmd"].update(MsgType=1), lambda m: m.mqmd.msg_type, 1),
    ("mqmd-name", lambda f: f["mqmd"].update(ReplyToQ="R.Q"), lambda m: m.mqmd.reply_to_q, "R.Q"),
    ("mqmd-bytes", lambda f: f["mqmd"].update(CorrelId="01" * 24), lambda m: m.mqmd.correl_id, b"\1" * 24),
    ("mqmd-version", lambda f: f["mqmd"].update(Version=2), lambda m: (m.mqmd.version, m.mqmd.format), (2, "MQHRF2")),
    ("mqmd-gone", lambda f: f.update(mqmd=None), lambda m: (m.mqmd.reply_to_q, m.mqmd.format), ("", "MQHRF2")),
    ("field", lambda f: f["headers"][0]["fields"].update(Flags=5), lambda m: first(m).flags, 5),
    ("field-ccsid", lambda f: f["headers"][0]["fields"].update(CodedCharSetId=819), lambda m: m.body_ccsid, 819),
    (
        "big-endian",
        lambda f: f["headers"][0].update(byte_order="big"),
        lambda m: (first(m).order, first(m).length),
        ("big", MADE.length),
    ),
    (
        "utf-16",
        lambda f: f["headers"][0]["fields"].update(NameValueCCSID=1200),
        lambda m: (first(m).folders[0].charset, first(m).folders[0].text),
        ("utf-16-le", PSC),
    ),
    ("value", lambda f: values(f, 0).update(Topic="x"), lambda m: pairs(m, 0)[1:], [("Topic", "x")]),
    (
        "repeated",
        lambda f: values(f, 0).update(Topic=["x", "y&z"]),
        lambda m: pairs(m, 0)[1:],
        [("Topic", "x"), ("Topic", "y&z")],
    ),
    ("new-tag", lambda f: values(f, 0).update(SubPoint="s"), lambda m: pairs(m, 0)[2:], [("SubPoint", "s")]),
    ("no-tag", lambda f: values(f, 0).pop("Topic"), lambda m: pairs(m, 0), [("Command", "Publish")]),
    ("number-in-psc", lambda f: values(f, 0).update(SeqNum=4), lambda m: pairs(m, 0)[2:], [("SeqNum", "4")]),
    (
        "typed",
        lambda f: values(f, 1).update(Size=4),
        lambda m: first(m).folders[1].text,
        USR.replace("3", "4").replace('"', "'"),
    ),
    (
        "raw",
        lambda f: folder(f, 0).update(raw="<psc><Topic>z</Topic></psc>"),
        lambda m: first(m).folders[0].data,
        b"<psc><Topic>z</Topic></psc> ",
    ),
    ("name", lambda f: folder(f, 1).update(name="mq_usr"), lambda m: first(m).folders[1].name, "mq_usr"),
    ("folder-gone", lambda f: f["headers"][0]["folders"].pop(0), lambda m: [x.name for x in first(m).folders], ["usr"]),
    (
        "folder-new",
        lambda f: f["headers"][0]["folders"].append({"name": "mcd", "values": {"Msd": "none"}}),
        lambda m: first(m).folders[-1].text,
        "<mcd><Msd>none</Msd></mcd>",
    ),
    (
        "folders-moved",
        lambda f: f["headers"][0]["folders"].reverse(),
        lambda m: [x.name for x in first(m).folders],
        ["usr", "psc"],
    ),
    ("folder-as-hex", lambda f: folder(f, 0).update(hex="3c612f3e"), lambda m: first(m).folders[0].data, b"<a/>"),
    ("text", lambda f: f["body"].update(text="grüß"), lambda m: m.body, "grüß".encode()),
    ("hex", lambda f: f["body"].update(hex="ff00"), lambda m: m.body, b"\xff\0"),
    ("body-format", lambda f: f["body"].update(format=""), lambda m: (m.body_format, m.mqmd.format), ("", "MQHRF2")),
    ("body-ccsid-relabels", lambda f: f["body"].update(ccsid=850), lambda m: (m.body_ccsid, m.body), (850, b"hello")),
    (
        "body-ccsid-and-text",
        lambda f: f["body"].update(ccsid=500, text="hello"),
        lambda m: (m.body_ccsid, m.body),
        (500, b"hello"),
    ),
    (
        "body-new-ccsid-new-text",
        lambda f: f["body"].update(ccsid=500, text="Hi"),
        lambda m: m.body,
        "Hi".encode("cp500"),
    ),
    (
        "header-gone",
        lambda f: f["headers"].pop(0),
        lambda m: (m.headers, m.mqmd.format, m.body),
        ((), "MQSTR", b"hello"),
    ),
    (
        "header-new",
        lambda f: f["headers"].insert(0, {"type": "MQDLH", "fields": {"Reason": 2053}}),
        lambda m: ([h.kind for h in m.headers], m.mqmd.format, m.body_format),
        (["MQDLH", "MQRFH2"], "MQDEAD", "MQSTR"),
    ),
]


def first(message: Message) -> Rfh2:
    assert message.rfh2 is not None
    return message.rfh2


def pairs(message: Message, at: int) -> list[tuple[str, str]]:
    return first(message).folders[at].pairs()


def folder(form: Json, at: int) -> Json:
    found: Json = form["headers"][0]["folders"][at]
    return found


def values(form: Json, at: int) -> Json:
    found: Json = folder(form, at)["values"]
    return found


@pytest.mark.parametrize(("edit", "read", "expected"), [pytest.param(*rest, id=name) for name, *rest in EDITS])
def test_what_was_edited_wins(
    edit: Callable[[Json], object], read: Callable[[Message], object], expected: object
) -> None:
    given = message(PSC, USR, data=b"hello", reply_to_q="OLD")
    assert read(edited(given, edit)) == expected
    assert edited(given, edit) != given.decode()


def test_an_edit_leaves_everything_else_as_it_was() -> None:
    header = Rfh2(
        (Folder(b"<psc><Topic>a & b</Topic></psc>\0\0\0"), Folder(b"junk ")), 785, 0, "MQSTR\0\0\0", 9, order="big"
    )
    mqmd = Mqmd(reply_to_q="Q\0rest", encoding=785, format="MQHRF2\0\0", order="big", charset="cp500", version=2)
    given = captured(encode(Message(mqmd, (header,), b"x\0\0")), mqmd.encode() + b"behind")
    form = shown(given)
    form["mqmd"]["MsgType"] = 1
    form["body"]["text"] = "yz"
    made = back(form)
    assert made.md == replace(mqmd, msg_type=1).encode() + b"behind"
    assert made.body == encode(Message(mqmd, (header,), b"yz\0\0"))


def test_the_queue_and_all_that_surrounds_a_message_is_edited_under_captured() -> None:
    form = shown(message(PSC))
    form["captured"].update(queue="OTHER.Q", user="u", seq=9)
    made = back(form)
    assert (made.queue, made.user, made.seq) == ("OTHER.Q", "u", 9)


@pytest.mark.parametrize(
    ("data", "pairs", "expected"),
    [
        pytest.param(b"MQPSCommand RegSub\0\0", [["MQPSCommand", "x y"]], b'MQPSCommand "x y"\0\0\0', id="2.2-quoted"),
        pytest.param(b"a b", [["a", "b"], ["c", ""]], b'a b c ""\0\0\0\0', id="2.2-empty-token"),
    ],
)
def test_an_mqrfh_is_edited_by_its_pairs(data: bytes, pairs: list[list[str]], expected: bytes) -> None:
    mqmd = Mqmd(format="MQHRF")
    given = captured(encode(Message(mqmd, (Rfh1(data, format="MQSTR"),), b"data")), mqmd.encode())
    made = edited(given, lambda f: f["headers"][0].update(pairs=pairs))
    assert isinstance(made.headers[0], Rfh1)
    assert (made.headers[0].data, made.body) == (expected, b"data")


def test_a_message_is_made_from_nothing_but_what_it_says() -> None:
    form = {
        "mqmd": {"MsgType": 1, "ReplyToQ": "SUB.Q", "CodedCharSetId": 819},
        "headers": [
            {"type": "MQRFH2", "folders": [{"name": "psc", "values": {"Command": "RegSub", "Topic": ["a", "b"]}}]}
        ],
        "body": {"text": "42.5", "format": "MQSTR", "ccsid": 1208},
    }
    made = back(form).decode()
    assert (made.mqmd.msg_type, made.mqmd.reply_to_q, made.mqmd.format) == (1, "SUB.Q", "MQHRF2")
    assert first(made).folders[0].pairs() == [("Command", "RegSub"), ("Topic", "a"), ("Topic", "b")]
    assert (made.body, made.body_format, made.body_ccsid) == (b"42.5", "MQSTR", 1208)


def test_without_captured_the_values_and_the_text_count() -> None:
    form = shown(message(PSC, data=b"hello"))
    del form["captured"]
    form["headers"][0]["folders"][0]["values"]["Topic"] = "z"
    form["body"]["text"] = "bye"
    made = back(form).decode()
    assert (pairs(made, 0)[1], made.body) == (("Topic", "z"), b"bye")


def test_without_captured_and_without_an_edit_the_bytes_are_the_same() -> None:
    given = message(PSC, USR, data=b"hello", reply_to_q="Q")
    form = shown(given)
    del form["captured"]
    made = back(form)
    assert (made.md, made.body) == (given.md, given.body)


BAD: list[tuple[str, Callable[[Json], object], str]] = [
    (
        "raw-and-values",
        lambda f: folder(f, 0).update(raw="<psc></psc>", values={"Topic": "x"}),
        "raw and values were both",
    ),
    ("text-and-hex", lambda f: f["body"].update(text="a", hex="62"), "text and hex were both"),
    ("not-hex", lambda f: f["body"].update(hex="x"), "not hex"),
    ("unknown-field", lambda f: f["headers"][0]["fields"].update(Colour=1), "has no field Colour"),
    ("computed-field", lambda f: f["headers"][0]["fields"].update(StrucLength=1), "StrucLength follows from the rest"),
    ("too-long", lambda f: f["mqmd"].update(ReplyToQ="x" * 49), "longer than 48 bytes"),
    ("not-a-number", lambda f: f["mqmd"].update(MsgType="one"), "is not a number"),
    ("too-big", lambda f: f["mqmd"].update(MsgType=1 << 31), "MQMD"),
    ("short-identifier", lambda f: f["mqmd"].update(MsgId="00"), "1 bytes, not 24"),
    ("no-such-ccsid", lambda f: f["headers"][0]["fields"].update(NameValueCCSID=819), "819 is not one"),
    ("no-form-in-ccsid", lambda f: f["body"].update(ccsid=819, text="€"), "cannot be written in CCSID 819"),
    ("unknown-ccsid", lambda f: f["body"].update(ccsid=4711, text="a"), "CCSID 4711 is not known"),
    (
        "field-and-body-differ",
        lambda f: (f["headers"][0]["fields"].update(Format="A"), f["body"].update(format="B")),
        "body format 'B' is not what",
    ),
    ("new-header-unknown", lambda f: f["headers"].insert(0, {"type": "MQCIH"}), "MQCIH"),
    ("control-character", lambda f: values(f, 0).update(Topic="\x01"), "the values have no form"),
    ("version", lambda f: f["mqmd"].update(Version=3), "Version 3"),
]


@pytest.mark.parametrize(("edit", "why"), [pytest.param(*rest, id=name) for name, *rest in BAD])
def test_what_cannot_be_written_is_refused_by_name(edit: Callable[[Json], object], why: str) -> None:
    form = shown(message(PSC, data=b"hello"))
    edit(form)
    with pytest.raises(EncodeError, match=why):
        back(form)


def test_a_record_that_could_not_be_read_has_no_message() -> None:
    with pytest.raises(EncodeError, match="or decode could not read the record"):
        back({"source": "x", "index": 0, "mqmd": None, "headers": [], "body": None, "problems": []})


def test_the_embedded_descriptor_of_a_transmission_queue_header_is_edited() -> None:
    mqmd = Mqmd(format="MQXMIT")
    header = Xqh(Mqmd(format="MQSTR", reply_to_q="A"), "REMOTE.Q", "QM2")
    given = captured(encode(Message(mqmd, (header,), b"data")), mqmd.encode())
    made = edited(given, lambda f: f["headers"][0]["mqmd"].update(ReplyToQ="B"))
    assert made.headers == (replace(header, mqmd=replace(header.mqmd, reply_to_q="B")),)


def test_the_embedded_descriptor_keeps_its_own_byte_order_and_announces_what_follows() -> None:
    own = Mqmd(format="MQDEAD", order="little", charset="cp500")
    dlh = Dlh(2085, format="MQSTR", order="little", charset="cp500")
    given = captured(encode(Message(Mqmd(), (Xqh(own, "Q", order="big"), dlh), b"x")), Mqmd(format="MQXMIT").encode())
    form = shown(given)
    del form["headers"][1]
    (header,) = back(form).decode().headers
    assert header == Xqh(replace(own, format="MQSTR"), "Q", order="big")


def test_a_dead_letter_header_taken_off_leaves_the_message_as_it_was_put() -> None:
    original = message(PSC, data=b"hello")
    inner = decode(original.body, original.md)
    dlh = Dlh(2085, "GONE.Q", "QM1", 546, 819, "MQHRF2")
    mqmd = replace(inner.mqmd, format="MQDEAD")
    dead = captured(encode(Message(mqmd, (dlh, *inner.headers), inner.body)), mqmd.encode())
    form = shown(dead)
    del form["headers"][0]
    assert back(form).body == original.body
    assert back(form).md == original.md
