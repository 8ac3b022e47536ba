"""PCF edited in the JSON form, in a body and in an MQEPH (wire formats 5.1); numbers that a float cannot hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, strategies as st

from rfh2 import CapturedMessage, EncodeError, Eph, Message, Mqmd, Pcf, decode_pcf, encode
from rfh2.ccsid import BYTE_ORDERS, ByteOrder
from rfh2.explain.describe import describe_pcf, described
from rfh2.explain.form import json_line
from rfh2.explain.reading import read_message
from rfh2.explain.rebuild import rebuild
from rfh2.explain.rebuild_header import DecodedMessage
from rfh2.explain.rebuild_pcf import rebuild_pcf
from rfh2.pcf import Cfbs, Cfgr, Cfif, Cfil, Cfin, Cfin64, Cfsl, Cfst, Parameter, UnknownParameter
from tests.rfh2.explained import captured, message

Json = dict[str, Any]

PARAMETERS: tuple[Parameter, ...] = (
    Cfst(3031, b"a/b\0\0", 819, "latin-1", b"old"),
    Cfin(1082, 2),
    Cfst.of(3031, "c", 500),
    Cfin64(7, 1 << 60, reserved=5),
    Cfil(8, (1, 2)),
    Cfsl.of(9, ("one", "three")),
    Cfbs.of(10, b"\1\2\3"),
    Cfgr(11, (Cfin(1, 5), Cfst.of(2, "in"))),
    Cfif(12, 1, 3),
    UnknownParameter(13, 99, b"what"),
)


def pcf(order: ByteOrder = "little") -> Pcf:
    return Pcf(63, PARAMETERS, order=order, rest=b"data of the publisher")


def in_body(order: ByteOrder = "little") -> CapturedMessage:
    mqmd = Mqmd(format="MQPCF", encoding=273 if order == "big" else 546, coded_char_set_id=819, order=order)
    return captured(pcf(order).encode(), mqmd.encode())


def shown(given: CapturedMessage) -> Json:
    form: Json = json.loads(json_line(described(read_message(given))))
    return form


def back(form: Json, **how: Any) -> CapturedMessage:
    return rebuild(DecodedMessage.model_validate(json.loads(json.dumps(form), **how)))


EDITS: list[tuple[str, Callable[[Json], object], int, Parameter]] = [
    ("string", lambda p: p[0].update(value="x/y/z"), 0, Cfst(3031, b"x/y/z", 819, "latin-1", bytes(3))),
    ("string-in-its-own-ccsid", lambda p: p[2].update(value="é"), 2, Cfst.of(3031, "é", 500)),
    ("integer", lambda p: p[1].update(value=3), 1, Cfin(1082, 3)),
    ("integer-64", lambda p: p[3].update(value="1152921504606846977"), 3, Cfin64(7, (1 << 60) + 1, reserved=5)),
    ("integers", lambda p: p[4].update(value=[4]), 4, Cfil(8, (4,))),
    ("strings", lambda p: p[5].update(value=["one", "fourteen"]), 5, Cfsl.of(9, ("one", "fourteen"))),
    ("bytes", lambda p: p[6].update(value="0405"), 6, Cfbs.of(10, b"\4\5")),
    ("member", lambda p: p[7]["value"][0].update(value=6), 7, Cfgr(11, (Cfin(1, 6), Cfst.of(2, "in")))),
    ("gone", lambda p: p.pop(1), 1, PARAMETERS[2]),
    ("other-order", lambda p: p.insert(0, p.pop(2)), 0, PARAMETERS[2]),
    ("new-integer", lambda p: p.insert(0, {"Parameter": 1, "value": 4}), 0, Cfin(1, 4)),
    ("new-great-integer", lambda p: p.insert(0, {"Parameter": 1, "value": 1 << 40}), 0, Cfin64(1, 1 << 40)),
    ("new-string", lambda p: p.insert(0, {"Parameter": 3031, "value": "new"}), 0, Cfst.of(3031, "new")),
    ("new-integers", lambda p: p.insert(0, {"Parameter": 1, "value": [4, 5]}), 0, Cfil(1, (4, 5))),
    ("new-strings", lambda p: p.insert(0, {"Parameter": 1, "value": ["a"]}), 0, Cfsl.of(1, ("a",))),
    ("new-bytes", lambda p: p.insert(0, {"Parameter": 1, "Type": 9, "value": "01"}), 0, Cfbs.of(1, b"\1")),
    (
        "new-group",
        lambda p: p.insert(0, {"Parameter": 1, "value": [{"Parameter": 2, "value": 3}]}),
        0,
        Cfgr(1, (Cfin(2, 3),)),
    ),
]


@pytest.mark.parametrize("order", BYTE_ORDERS)
@pytest.mark.parametrize(("edit", "at", "expected"), [pytest.param(*rest, id=name) for name, *rest in EDITS])
def test_a_parameter_is_edited(edit: Callable[[Any], object], at: int, expected: Parameter, order: ByteOrder) -> None:
    form = shown(in_body(order))
    edit(form["body"]["pcf"]["parameters"])
    made = decode_pcf(back(form).body, 819)
    assert made.parameters[at] == expected
    assert made.parameters[-2:] == PARAMETERS[-2:]
    assert (made.order, made.rest, made.command) == (order, b"data of the publisher", 63)


def test_what_was_not_edited_keeps_its_bytes() -> None:
    form = shown(in_body())
    form["body"]["pcf"]["Reason"] = 3007
    made = decode_pcf(back(form).body, 819)
    assert (made.reason, made.parameters) == (3007, pcf().parameters)


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        pytest.param(lambda p: p[1].update(value="two"), "1082: 'two' is not a number", id="no-number"),
        pytest.param(lambda p: p[1].update(value=1 << 31), "MQCFIN", id="too-great"),
        pytest.param(lambda p: p[0].update(value=1), "3031: 1 is not text", id="no-text"),
        pytest.param(lambda p: p[0].update(value="中"), "cannot be written in latin-1", id="ccsid"),
        pytest.param(lambda p: p[6].update(value="x"), "'x' is not hex", id="no-hex"),
        pytest.param(lambda p: p[7].update(value="x"), "11: 'x' is not a list", id="no-list"),
        pytest.param(lambda p: p[8].update(value="00"), "12 of Type 13 cannot be edited", id="filter"),
        pytest.param(lambda p: p.append({"Parameter": 1, "value": None}), "cannot be edited", id="no-type"),
        pytest.param(lambda p: p.append({"value": 1}), "None is not a number", id="no-number-of-its-own"),
    ],
)
def test_what_cannot_be_written_is_refused(edit: Callable[[Any], object], why: str) -> None:
    form = shown(in_body())
    edit(form["body"]["pcf"]["parameters"])
    with pytest.raises(EncodeError, match=why):
        back(form)


_ANY = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["Parameter", "Type", "value", "name"]), inner, max_size=4),
    ),
    max_leaves=8,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("Type", "Command", "CompCode", "parameters"), _ANY)), _ANY)
def test_any_edit_gives_bytes_or_is_refused(form: Json, parameter: Any) -> None:
    whole = describe_pcf(pcf()) | form
    for edit in (form, whole, whole | {"parameters": [parameter]}):
        for was in (None, pcf()):
            with suppress(EncodeError):
                rebuild_pcf(edit, was).encode()


def test_pcf_and_hex_must_not_differ() -> None:
    form = shown(in_body())
    form["body"]["pcf"]["parameters"][1]["value"] = 3
    wanted = back(form).body
    form["body"]["hex"] = wanted.hex()
    assert back(form).body == wanted
    form["body"]["hex"] = "00"
    with pytest.raises(EncodeError, match="both edited"):
        back(form)


def test_a_command_is_made_from_nothing_but_what_it_says() -> None:
    body = {"format": "MQPCF", "pcf": {"Command": 63, "parameters": [{"Parameter": 3031, "value": "a/b"}]}}
    made = back({"mqmd": {"CodedCharSetId": 1208}, "body": body})
    assert made.decode().body_format == "MQPCF"
    assert decode_pcf(made.body, 1208) == Pcf(63, (Cfst.of(3031, "a/b"),))


@pytest.mark.parametrize("order", BYTE_ORDERS)
def test_an_mqeph_is_edited(order: ByteOrder) -> None:
    header = Eph(pcf(order).encode(), format="MQSTR", order=order, ccsid=819)
    mqmd = Mqmd(format="MQHEPCF", coded_char_set_id=819, order=order)
    form = shown(captured(encode(Message(mqmd, (header,), b"hello")), mqmd.encode()))
    form["headers"][0]["pcf"]["parameters"][1]["value"] = 3
    made = back(form).decode()
    assert isinstance(made.headers[0], Eph)
    assert made.headers[0].pcf().parameters[1] == Cfin(1082, 3)
    assert made.body == b"hello"


# Numbers beyond 2^53: many programs read a JSON number as floating point.


def test_great_numbers_survive_programs_that_read_numbers_as_floating_point() -> None:
    for whole in (message("<usr><n dt='i8'>9007199254740993</n><m dt='i4'>7</m></usr>"), in_body()):
        assert back(shown(whole), parse_int=float) == whole


def test_a_great_number_is_edited_as_a_string() -> None:
    form = shown(message("<usr><n dt='i8'>9007199254740993</n></usr>"))
    values = form["headers"][0]["folders"][0]["values"]
    assert values == {"n": "9007199254740993"}
    values["n"] = "9007199254740995"
    assert b"<n dt='i8'>9007199254740995</n>" in back(form).body
    values["n"] = 1 << 55
    assert b"<n dt='i8'>36028797018963968</n>" in back(form).body
