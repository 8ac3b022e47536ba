"""What happens to a descriptor on arrival and on leaving a queue; every other byte stays."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commands.broker import descriptor
from commands.broker.descriptor import Arrived, arrive, default_descriptor, leave
from rfh2.bounded_cache import BoundedCache
from rfh2.errors import MessageRefusedError
from rfh2.layouts import MQMD1, MQMD2
from rfh2.mqmd import Mqmd

NOW = datetime(2009, 1, 28, 11, 43, 54, 180_000, tzinfo=UTC)
FULL = Mqmd(
    coded_char_set_id=819,
    priority=4,
    persistence=1,
    msg_id=b"\1" * 24,
    user_identifier="app1",
    put_appl_name="app",
    put_appl_type=11,
    put_date="20081231",
    put_time="23595999",
)


def arrived(md: Mqmd | bytes, **changed: Any) -> Arrived:
    arguments: dict[str, Any] = {
        "queue": "Q",
        "def_priority": 7,
        "def_persistent": True,
        "qmgr": "QM1",
        "unique": 258,
        "time": NOW,
        "user": "caller",
        "application": "the program",
    }
    return arrive(md if isinstance(md, bytes) else md.encode(), **(arguments | changed))


ARRIVALS = [
    ("priority-as-queue", {"priority": -1}, {"priority": 7}),
    ("priority-given", {"priority": 0}, {"priority": 0}),
    ("priority-above-highest-is-kept", {"priority": 12}, {"priority": 12}),
    ("persistence-as-queue", {"persistence": 2}, {"persistence": 1}),
    ("persistence-given", {"persistence": 0}, {"persistence": 0}),
    ("ccsid-embedded-is-the-programs", {"coded_char_set_id": -1}, {"coded_char_set_id": -1}),
    ("ccsid-given", {"coded_char_set_id": 819}, {"coded_char_set_id": 819}),
    ("backout-count-starts-again", {"backout_count": 3}, {"backout_count": 0}),
    ("msgid-made", {"msg_id": bytes(24)}, {"msg_id": b"AMQ QM1         \x80\0\0\0\0\0\1\2"}),
    ("reply-to-own-qmgr", {"reply_to_q": "R"}, {"reply_to_qmgr": "QM1"}),
    ("reply-to-other-qmgr", {"reply_to_q": "R", "reply_to_qmgr": "QM2"}, {"reply_to_qmgr": "QM2"}),
    ("no-reply-to-no-qmgr", {}, {"reply_to_qmgr": ""}),
    ("blank-up-to-a-null", {"reply_to_q": "\0junk"}, {"reply_to_q": "\0junk", "reply_to_qmgr": ""}),
    ("user-of-caller", {"user_identifier": ""}, {"user_identifier": "caller"}),
    ("user-kept", {"user_identifier": "app2"}, {"user_identifier": "app2"}),
    ("application", {"put_appl_name": ""}, {"put_appl_name": "the program"}),
    (
        "application-type-where-none",
        {"put_appl_name": "", "put_appl_type": 0},
        {"put_appl_name": "the program", "put_appl_type": 6},
    ),
    ("date-and-time", {"put_date": "", "put_time": ""}, {"put_date": "20090128", "put_time": "11435418"}),
    ("never-half-a-moment", {"put_time": ""}, {"put_date": "20090128", "put_time": "11435418"}),
]


@pytest.mark.parametrize(
    "layout", [{}, {"version": 2}, {"order": "big"}, {"charset": "cp500", "order": "big"}], ids=str
)
@pytest.mark.parametrize(("given", "expected"), [c[1:] for c in ARRIVALS], ids=[c[0] for c in ARRIVALS])
def test_arrival_completes_the_descriptor(
    given: dict[str, Any], expected: dict[str, Any], layout: dict[str, Any]
) -> None:
    before = replace(FULL, **given, **layout)

    assert Mqmd.decode(arrived(before).md) == replace(before, **expected)


@pytest.mark.rule("HDR-15")
@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize(("charset", "own"), [("latin-1", 1208), ("cp500", 500)])
@pytest.mark.parametrize("ccsid", [0, -2])
def test_ccsids_that_stand_for_the_queue_managers_become_it(ccsid: int, charset: str, own: int, order: Any) -> None:
    """MQCCSI_Q_MGR and MQCCSI_INHERIT; MQGET never returns either."""
    before = replace(FULL, coded_char_set_id=ccsid, charset=charset, order=order)
    assert Mqmd.decode(arrived(before).md) == replace(before, coded_char_set_id=own)


def test_a_complete_descriptor_stays_byte_for_byte() -> None:
    assert arrived(FULL).md == FULL.encode()


def test_what_the_queue_is_told() -> None:
    assert arrived(FULL) == Arrived(FULL.encode(), priority=4, persistent=True, user="caller", lifetime_us=None)


def test_no_message_stands_above_the_highest_priority() -> None:
    assert arrived(replace(FULL, priority=12)).priority == 9


def test_expiry_is_in_tenths_of_a_second() -> None:
    assert arrived(replace(FULL, expiry=25)).lifetime_us == 2_500_000


def test_who_put_it_is_the_descriptors_user_unless_told() -> None:
    assert arrived(FULL, user=None).user == "app1"
    assert arrived(replace(FULL, user_identifier=""), user=None).user is None
    assert arrived(FULL, user="other").user == "other"


def test_long_names_are_cut_to_their_fields() -> None:
    md = replace(FULL, msg_id=bytes(24), user_identifier="", put_appl_name="")

    found = Mqmd.decode(arrived(md, qmgr="A" * 48, user="u" * 50, application="p" * 50).md)

    assert found.msg_id[4:16] == b"A" * 12
    assert (found.user_identifier, found.put_appl_name) == ("u" * 12, "p" * 28)


REFUSED = [
    ("expiry-zero-2013", replace(FULL, expiry=0).encode(), 2013),
    ("expiry-below-unlimited-2013", replace(FULL, expiry=-2).encode(), 2013),
    ("priority-2050", replace(FULL, priority=-2).encode(), 2050),
    ("persistence-2047", replace(FULL, persistence=3).encode(), 2047),
    ("empty-2026", b"", 2026),
    ("short-2026", FULL.encode()[:-1], 2026),
    ("short-for-its-version-2026", replace(FULL, version=2).encode()[:-1], 2026),
    ("no-struc-id-2026", b"RFH " + FULL.encode()[4:], 2026),
    ("version-3-2026", FULL.encode()[:4] + b"\3\0\0\0" + FULL.encode()[8:], 2026),
]


@pytest.mark.parametrize(("md", "reason"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_what_mqput_would_refuse_is_refused(md: bytes, reason: int) -> None:
    with pytest.raises(MessageRefusedError) as refused:
        arrived(md)

    assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("left_us", "expiry"),
    [(None, -1), (1, 1), (100_000, 1), (100_001, 2), (60_000_000, 600)],
    ids=["unlimited", "less-than-a-tenth", "a-tenth", "rounded-up", "a-minute"],
)
@pytest.mark.parametrize("order", ["little", "big"])
def test_leaving_shows_what_is_left(left_us: int | None, expiry: int, order: Any) -> None:
    before = replace(FULL, order=order, expiry=-1 if left_us is None else 5_000)

    assert Mqmd.decode(leave(before.encode(), left_us, 2)) == replace(before, expiry=expiry, backout_count=2)


@pytest.mark.parametrize(
    ("put_with", "left_us", "expiry"),
    [
        (2**31 - 1, (2**31 - 1) * 100_000 + 1, 2**31 - 1),
        (2**31 - 1, 2**62, 2**31 - 1),
        (50, 60_000_000, 50),
        (-1, 2**62, 2**31 - 1),
    ],
    ids=["a-moment-back", "to-1970", "never-more-than-it-was-put-with", "an-end-that-the-descriptor-does-not-tell"],
)
@pytest.mark.parametrize("order", ["little", "big"])
def test_expiry_stays_an_mqlong_when_the_clock_was_set_back(
    put_with: int, left_us: int, expiry: int, order: Any
) -> None:
    assert Mqmd.decode(leave(replace(FULL, order=order, expiry=put_with).encode(), left_us, 0)).expiry == expiry


@given(st.sampled_from([MQMD1.size, MQMD2.size]), st.data())
def test_only_the_named_fields_change(size: int, data: st.DataObject) -> None:
    junk = data.draw(st.binary(min_size=size, max_size=size))
    head = FULL.encode()[:4] + (b"\1" if size == MQMD1.size else b"\2") + b"\0\0\0"
    md = head + junk[8:16] + (600).to_bytes(4, "little") + junk[20:40] + bytes(8) + junk[48:]

    kept = arrived(md).md

    named = {"CodedCharSetId", "MsgId", "BackoutCount", "ReplyToQMgr", "UserIdentifier"}
    named |= {"PutApplType", "PutApplName", "PutDate", "PutTime"}
    for name, offset, length in MQMD1.spans():
        if name not in named:
            assert kept[offset : offset + length] == md[offset : offset + length], name
    assert kept[MQMD1.size :] == md[MQMD1.size :]
    assert arrived(kept).md == kept


PUTS = st.tuples(
    st.fixed_dictionaries(
        {
            "msg_id": st.sampled_from([bytes(24), b"\1" * 24, b"\2" * 24]),
            "correl_id": st.sampled_from([bytes(24), b"\1" * 24]),
            "priority": st.sampled_from([-1, 0, 12]),
            "persistence": st.sampled_from([0, 1, 2]),
            "coded_char_set_id": st.sampled_from([-2, -1, 0, 819]),
            "expiry": st.sampled_from([-1, 5]),
            "user_identifier": st.sampled_from(["", "app"]),
            "put_appl_name": st.sampled_from(["", "app"]),
            "put_date": st.sampled_from(["", "20081231", "\0"]),
            "put_time": st.sampled_from(["", "23595999"]),
            "reply_to_q": st.sampled_from(["", "R"]),
            "version": st.sampled_from([1, 2]),
            "charset": st.sampled_from(["latin-1", "cp500"]),
        }
    ),
    st.fixed_dictionaries({"user": st.sampled_from([None, "", "ann"]), "application": st.sampled_from(["", "p"])}),
)


@given(st.lists(PUTS, max_size=30))
def test_what_is_remembered_is_what_would_be_worked_out(puts: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    made = [(replace(FULL, **fields).encode(), changed) for fields, changed in puts]
    remembered = [arrived(md, **changed) for md, changed in made]
    for (md, changed), found in zip(made, remembered, strict=True):
        descriptor._ACCEPTED.clear()
        descriptor._COMPLETED.clear()
        assert arrived(md, **changed) == found


WITHOUT_TIME = replace(FULL, msg_id=bytes(24), put_date="", put_time="")


@pytest.mark.parametrize(
    ("md", "remembered", "most_bytes"),
    [
        pytest.param(FULL, descriptor._ACCEPTED, descriptor._ACCEPTED_BYTES, id="accepted"),
        pytest.param(WITHOUT_TIME, descriptor._COMPLETED, descriptor._COMPLETED_BYTES, id="completed"),
    ],
)
def test_what_is_remembered_has_a_bound_in_bytes(md: Mqmd, remembered: BoundedCache[Any, Any], most_bytes: int) -> None:
    remembered.clear()
    tracemalloc.start()
    try:
        for number in range(8_000):
            arrived(replace(md, appl_identity_data=f"{number}").encode(), user="u" * 200)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert 500 < len(remembered) < 8_000
    assert peak < most_bytes


def test_a_message_without_a_descriptor_gets_the_defaults_and_the_format_of_its_header() -> None:
    header = b"RFH \0\0\0\2\0\0\0\x24" + b"\0\0\1\x11" + b"\0\0\3\x33" + b"MQSTR   " + b"\0\0\0\0" + b"\0\0\4\xb8"

    found = Mqmd.decode(default_descriptor(header + b"data"))

    assert (found.format, found.encoding) == ("MQHRF2", 273)
    assert Mqmd.decode(default_descriptor(b"data")) == Mqmd()
