"""What a queue manager writes in the place of MQCCSI_Q_MGR and MQCCSI_INHERIT when a message is put."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from rfh2.ccsid import ByteOrder
from rfh2.dlh import Dlh
from rfh2.message import Message, decode, encode, is_resolved, kept_descriptor, put_descriptor, resolved, resolved_body
from rfh2.mqmd import Mqmd
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2

INHERIT = -2

CASES = [
    ("the-queue-managers", (0,), (1208,)),
    ("inherit-in-a-descriptor-is-the-queue-managers", (-2,), (1208,)),
    ("embedded-stays", (-1,), (-1,)),
    ("given-stays", (819,), (819,)),
    ("a-header-as-its-own-characters", (819, -2), (819, 819)),
    ("a-header-as-the-queue-managers", (0, -2), (1208, 1208)),
    ("each-as-the-one-before", (819, -2, -2), (819, 819, 819)),
    ("behind-one-that-says-another", (819, 1208, -2), (819, 1208, 1208)),
    ("the-first-of-two", (819, -2, 500), (819, 819, 500)),
    ("undefined-stays-and-counts-as-what-precedes", (819, 0, -2), (819, 0, 819)),
]


def message(ccsids: tuple[int, ...]) -> Message:
    own, *others = ccsids
    headers: list[Rfh1 | Rfh2 | Dlh] = [Rfh2(coded_char_set_id=ccsid, format="MQHRF2") for ccsid in others]
    if headers:
        headers[-1] = replace(headers[-1], format="MQSTR")
    return Message(Mqmd(format="MQHRF2" if headers else "MQSTR", coded_char_set_id=own), tuple(headers), b"data")


def ccsids_of(made: Message) -> tuple[int, ...]:
    return (made.mqmd.coded_char_set_id, *(header.coded_char_set_id for header in made.headers))


@pytest.mark.rule("HDR-15")
@pytest.mark.parametrize(("before", "after"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_becomes_of_ccsids(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    made = message(before)

    assert ccsids_of(resolved(made)) == after
    assert is_resolved(made) is (before == after)
    assert is_resolved(resolved(made))


@pytest.mark.parametrize(("before", "after"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_bytes_become_what_messages_become(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    made = message(before)
    kept = resolved(made)
    assert resolved_body(encode(made), kept.mqmd.encode()) == encode(kept)


def test_what_cannot_be_decoded_stays() -> None:
    body = encode(message((819, -2)))[:30]
    assert resolved_body(body, Mqmd(format="MQHRF2", coded_char_set_id=819).encode()) == body


@pytest.mark.parametrize(("ascii_fields", "own"), [("latin-1", 1208), ("cp500", 500)])
def test_a_descriptor_in_ebcdic_is_of_a_queue_manager_of_ebcdic(ascii_fields: str, own: int) -> None:
    assert resolved(Message(Mqmd(charset=ascii_fields))).mqmd.coded_char_set_id == own


@given(st.lists(st.sampled_from([-2, 0, 819, 1208, 500]), min_size=1, max_size=5), st.sampled_from(["little", "big"]))
def test_nothing_but_ccsids_changes(ccsids: list[int], order: str) -> None:
    made = message(tuple(ccsids))
    made = replace(made, headers=tuple(replace(header, order=order) for header in made.headers))  # type: ignore[type-var]
    kept = resolved(made)
    again = decode(encode(kept), kept.mqmd)
    assert again.body == made.body
    assert [header.length for header in again.headers] == [header.length for header in made.headers]
    assert INHERIT not in ccsids_of(again)
    assert again.body_ccsid == (made.body_ccsid if made.body_ccsid not in (0, INHERIT) else 1208)


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize(
    ("ccsid", "string", "kept"),
    [(0, "Zürich", 819), (-2, "Zürich", 819), (0, "Zurich", 1208), (1208, "Zürich", 1208), (850, "Zürich", 850)],
)
def test_an_mqrfh_that_is_no_utf_8_is_in_a_ccsid_of_bytes(order: ByteOrder, ccsid: int, string: str, kept: int) -> None:
    header = Rfh1(f"MQPSCommand Publish MQPSTopic {string}".encode("latin-1"), order=order, format="MQSTR")
    given_md = Mqmd(format="MQHRF", coded_char_set_id=ccsid, order=order)
    made = Message(given_md, (header,), b"data")
    assert resolved(made).mqmd.coded_char_set_id == kept
    as_put = given_md.encode() if ccsid not in (0, -2) else replace(given_md, coded_char_set_id=1208).encode()
    assert put_descriptor(as_put, encode(made), given_md.encode()) == resolved(made).mqmd.encode()


@given(
    st.lists(st.sampled_from([-2, 0, 819, 1208, 500]), min_size=1, max_size=4),
    st.sampled_from(["little", "big"]),
    st.sampled_from(["little", "big"]),
    st.sampled_from(["latin-1", "cp500"]),
    st.booleans(),
)
def test_a_descriptor_kept_before_decoding_gives_the_same(
    ccsids: list[int], order: ByteOrder, md_order: ByteOrder, charset: str, is_mqrfh: bool
) -> None:
    made = message(tuple(ccsids))
    headers: tuple[Rfh1 | Rfh2, ...] = tuple(replace(header, order=order) for header in made.headers)  # type: ignore[type-var]
    if is_mqrfh:
        headers = (Rfh1(b"MQPSTopic Z\xfcrich", order=order, coded_char_set_id=819, format="MQSTR"),)
    fmt = headers[0].own_format if headers else "MQSTR"
    given_md = replace(made.mqmd, format=fmt, order=md_order, charset=charset)
    body = encode(replace(made, headers=headers))
    kept = decode(body, kept_descriptor(given_md.encode(), body))
    assert resolved(kept) == resolved(decode(body, given_md))
    is_quick = bool(headers) and not is_mqrfh and charset == "latin-1"
    assert (kept.mqmd.coded_char_set_id == 1208) is (ccsids[0] == 1208 or (is_quick and ccsids[0] in (0, -2)))
