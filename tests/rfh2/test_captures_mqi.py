"""Messages in the MQI calls on a channel (wire formats 6.5)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from rfh2 import Mqmd
from tests.rfh2.channel_wire import (
    ASYNC_MESSAGE,
    CONTROL,
    FIRST,
    HEARTBEAT,
    INITIAL_DATA,
    LAST,
    MESSAGE_DATA,
    MQGET_REPLY,
    MQOPEN,
    MQOPEN_REPLY,
    MQPUT,
    MQPUT1,
    MQPUT_REPLY,
    SPI,
    SPI_REPLY,
    STREAM,
    USERID,
    WIRE_IDS,
    WIRES,
    Session,
    Wire,
    messages,
    mqmd,
    pcap,
    read,
    rfh2,
)


def descriptor(wire: Wire, number: int, version: int = 1) -> bytes:
    plain = Mqmd.decode(mqmd(number, version, wire.order))
    return replace(plain, charset="cp500" if wire.ebcdic else "latin-1").encode()


@pytest.mark.parametrize("wire", WIRES, ids=WIRE_IDS)
@pytest.mark.parametrize("md_version", [1, 2])
def test_every_call_that_holds_a_message(wire: Wire, md_version: int) -> None:
    mds = [descriptor(wire, n, md_version) for n in range(20)]
    body = rfh2("Stock/IBM", wire.order) + b"42.5"
    session = Session()
    session.client(wire.segment(MQOPEN, wire.mqopen(STREAM))).server(wire.segment(MQOPEN_REPLY, wire.mqopen_reply(2)))
    expected = []
    for version in (1, 2, 3):
        session.client(wire.segment(MQPUT, wire.mqput(mds[version], body, version=version)))
        session.server(wire.segment(MQPUT_REPLY, wire.mqput_reply(mds[version])))
        expected.append((STREAM, mds[version], body))
    for od_version in (1, 2, 3, 4):
        md = mds[3 + od_version]
        session.client(wire.segment(MQPUT1, wire.mqput1(CONTROL, md, body, od_version)))
        session.server(wire.segment(MQPUT1 + 0x10, wire.mqput_reply(md)))
        expected.append((CONTROL, md, body))
    for version in (1, 2, 3, 4):
        md = mds[7 + version]
        session.server(wire.segment(MQGET_REPLY, wire.mqget_reply(md, body, version=version, resolved="SUB.Q")))
        expected.append(("SUB.Q", md, body))
    session.server(wire.segment(MQGET_REPLY, wire.mqget_reply(mds[12], body)))
    expected.append((STREAM, mds[12], body))
    session.server(b"".join(wire.asynchronous(mds[13], body, "SUB.Q", 60)))
    expected.append(("SUB.Q", mds[13], body))
    session.client(wire.segment(MQPUT, wire.mqput(mds[14], b"")))
    expected.append((STREAM, mds[14], b""))
    assert messages(pcap(session.frames)) == expected


@pytest.mark.parametrize("wire", WIRES, ids=WIRE_IDS)
def test_calls_span_segments(wire: Wire) -> None:
    body = rfh2("a/b", wire.order) + random.Random(1).randbytes(100_000)
    md = descriptor(wire, 1, 2)
    session = Session(mss=1448)
    session.client(wire.segments(MQPUT, wire.mqput(md, body), 32_766 - 36))
    session.server(wire.segments(MQGET_REPLY, wire.mqget_reply(md, body), 32_766 - 36))
    session.server(b"".join(wire.asynchronous(md, body, "SUB.Q", 32_000)))
    assert messages(pcap(session.frames)) == [("", md, body), ("", md, body), ("SUB.Q", md, body)]


@pytest.mark.parametrize("wire", WIRES, ids=WIRE_IDS)
def test_a_tshc_ends_a_conversation_and_may_stand_between_the_segments_of_a_put(wire: Wire) -> None:
    md, body = descriptor(wire, 1), rfh2("Stock/IBM", wire.order) + b"x" * 900
    put = wire.segments(MQPUT, wire.mqput(md, body), 400)
    first = int.from_bytes(put[4:8], "big")
    session = Session()
    session.client(wire.segment(MQOPEN, wire.mqopen(STREAM))).server(wire.segment(MQOPEN_REPLY, wire.mqopen_reply(2)))
    session.client(put[:first] + wire.socket_action() + put[first:]).client(wire.socket_action())
    session.server(wire.socket_action())
    assert messages(pcap(session.frames)) == [(STREAM, md, body)]


def test_conversations_share_a_connection() -> None:
    one, two = Wire(conversation=1), Wire("big", conversation=2)
    pieces = [[], []]
    for at, wire in enumerate((one, two)):
        call = wire.mqput(mqmd(at + 1), rfh2(f"t/{at}") + bytes([at]) * 3000, handle=7)
        pieces[at] = [
            wire.segment(MQPUT, call[i : i + 1000], (FIRST if i == 0 else 0) | (LAST if i + 1000 >= len(call) else 0))
            for i in range(0, len(call), 1000)
        ]
    session = Session()
    for wire, queue in ((one, "ONE.Q"), (two, "TWO.Q")):
        session.client(wire.segment(MQOPEN, wire.mqopen(queue)))
    for wire in (two, one):
        session.server(wire.segment(MQOPEN_REPLY, wire.mqopen_reply(7)))
    for left, right in zip(*pieces, strict=True):
        session.client(left + right)
    found = messages(pcap(session.close().frames))
    assert [(queue, body[-1]) for queue, _, body in found] == [("ONE.Q", 0), ("TWO.Q", 1)]


def test_names_of_queue_manager_user_and_dynamic_queue() -> None:
    w = Wire()
    session = Session()
    session.client(w.segment(INITIAL_DATA, w.initial_data(""))).server(w.segment(INITIAL_DATA, w.initial_data("QM9")))
    session.client(w.segment(USERID, w.userid("app1")))
    session.client(w.segment(MQOPEN, w.mqopen("SYSTEM.DEFAULT.MODEL.QUEUE")))
    session.server(w.segment(MQOPEN_REPLY, w.mqopen_reply(5, "AMQ.5F0A1B2C20000102")))
    session.client(w.segment(MQPUT, w.mqput(mqmd(1), b"a", handle=5)))
    session.server(w.segment(MQPUT_REPLY, w.mqput_reply(mqmd(1))))
    session.client(w.segment(USERID, w.userid("app2", "a.longer.name")))
    session.client(w.segment(MQPUT, w.mqput(mqmd(2, user="told"), b"b", handle=5)))
    session.server(w.segment(MQPUT_REPLY, w.mqput_reply(mqmd(2), resolved="BEHIND.ALIAS")))
    session.client(w.segment(MQPUT1, w.mqput1("ALIAS", mqmd(3), b"c")))
    session.server(w.segment(MQPUT1 + 0x10, w.mqput_reply(mqmd(3), resolved="BEHIND.ALIAS")))
    found = [r.message for r in read(pcap(session.frames)) if r.message]
    assert [(m.qmgr, m.queue, m.user) for m in found] == [
        ("QM9", "AMQ.5F0A1B2C20000102", "app1"),
        ("QM9", "BEHIND.ALIAS", None),
        ("QM9", "BEHIND.ALIAS", "a.longer.name"),
    ]


def spi(w: Wire, verb: int, *parts: bytes) -> bytes:
    rest = w.long(verb, 1, 0) + b"".join(parts)
    return w.api(16 + len(rest), handle=9) + rest


def test_spi_calls_open_put_and_get() -> None:
    w = Wire("big", conversation=3)
    block = w.long(1, 20)
    body = rfh2("a/b", "big")
    session = Session()
    session.client(w.segment(SPI, spi(w, 12, b"SPOU" + block, b"LPOO" + w.long(1) + bytes(24), w.mqod(STREAM))))
    session.server(w.segment(SPI_REPLY, spi(w, 12, b"LPOO" + w.long(1) + bytes(24), w.mqod(STREAM))))
    put = spi(w, 2, b"SPPU" + block, mqmd(1, 2), w.mqpmo(2), b"SPPI" + w.long(1, 20, 0, len(body)), body)
    session.client(w.segments(SPI, put, 400)).server(w.segment(SPI_REPLY, spi(w, 2, b"SPPU" + block, b"SPPO" + block)))
    got = spi(w, 3, b"SPGU" + block, mqmd(2, 2), w.mqgmo(), b"SPGO" + w.long(1, 20, 0, len(body)), body)
    session.server(w.segment(SPI_REPLY, got))
    assert messages(pcap(session.frames)) == [(STREAM, mqmd(1, 2), body), (STREAM, mqmd(2, 2), body)]


def test_a_sender_channel_passes_messages_on() -> None:
    w = Wire("big")
    body = rfh2("a/b", "big") + b"x" * 5000
    msh = b"MSH " + w.long(1, len(body) + 428, 0, len(body) + 428)
    xqh = b"XQH " + w.long(1) + b"REMOTE.Q".ljust(48) + b"QM2".ljust(48)
    session = Session()
    session.client(w.segments(MESSAGE_DATA, msh + xqh + mqmd(1, order="big") + body, 2000))
    session.client(w.segment(MESSAGE_DATA, msh + xqh + mqmd(2, order="big") + body, control=0))
    found = [r.message for r in read(pcap(session.frames)) if r.message]
    assert [(m.qmgr, m.queue, m.md, m.body) for m in found] == [
        ("QM2", "REMOTE.Q", mqmd(n, order="big"), body) for n in (1, 2)
    ]


def test_asynchronous_messages_without_segment_flags_end_by_their_lengths() -> None:
    w = Wire()
    pieces = b"".join(w.asynchronous(mqmd(1), b"a" * 250, "SUB.Q", 100))
    bare = bytearray(pieces)
    at = 0
    while at < len(bare):
        bare[at + 10] = 0
        at += int.from_bytes(bare[at + 4 : at + 8], "big")
    session = Session().server(bytes(bare)).server(b"".join(w.asynchronous(mqmd(2), b"b", "SUB.Q", 100)))
    assert [(queue, body) for queue, _, body in messages(pcap(session.frames))] == [
        ("SUB.Q", b"a" * 250),
        ("SUB.Q", b"b"),
    ]


NO_MESSAGE = [
    ("2033-no-message", MQGET_REPLY, 2, 2033, None),
    ("2080-stays-on-the-queue", MQGET_REPLY, 1, 2080, None),
    ("2079-truncated", MQGET_REPLY, 1, 2079, "took only the beginning"),
    ("2051-refused", MQPUT_REPLY, 2, 2051, "refused this message with reason 2051"),
]


@pytest.mark.parametrize(
    ("kind", "comp_code", "reason", "why"), [c[1:] for c in NO_MESSAGE], ids=[c[0] for c in NO_MESSAGE]
)
def test_calls_that_came_to_nothing(kind: int, comp_code: int, reason: int, why: str | None) -> None:
    w = Wire()
    session = Session().server(w.segment(HEARTBEAT, b""))
    if kind == MQPUT_REPLY:
        session.client(w.segment(MQPUT, w.mqput(mqmd(1), b"x"))).server(
            w.segment(kind, w.mqput_reply(mqmd(1), comp_code, reason))
        )
    else:
        session.server(w.segment(kind, w.mqget_reply(mqmd(1), b"x", comp_code=comp_code, reason=reason)))
    session.client(w.segment(MQPUT, w.mqput(mqmd(2), b"next")))
    records = read(pcap(session.frames))
    assert [r.message.body for r in records if r.message] == [b"next"]
    assert [why in r.problem.why for r in records if r.problem] == ([] if why is None else [True])


def test_a_converted_message_is_got_with_a_warning() -> None:
    w = Wire()
    session = Session().server(w.segment(MQGET_REPLY, w.mqget_reply(mqmd(1), b"x", comp_code=1, reason=2110)))
    assert [body for _, _, body in messages(pcap(session.frames))] == [b"x"]


def test_a_distribution_list_stands_between_options_and_data() -> None:
    w = Wire()
    md = mqmd(1)
    rest = md + w.mqpmo(2) + bytes(2 * 48) + w.long(4) + b"data"
    session = Session().client(w.segment(MQPUT, w.api(16 + len(rest)) + rest))
    assert [body for _, _, body in messages(pcap(session.frames))] == [b"data"]


BAD_CALLS = [
    ("no-mqmd", MQPUT, lambda w: w.api(20) + b"none", "has no MQMD"),
    ("cut-mqmd", MQPUT, lambda w: w.api(20) + mqmd(1)[:200], "the MQMD is cut"),
    ("no-length", MQPUT, lambda w: w.api(20) + mqmd(1) + w.mqpmo()[:50], "no length of data"),
    ("too-short", MQPUT, lambda w: w.api(20) + mqmd(1) + w.mqpmo() + w.long(9) + b"1234", "4 of 9 bytes"),
    ("async-too-short", ASYNC_MESSAGE, lambda w: bytes(30), "header of an asynchronous message is cut"),
    ("channel-too-short", MESSAGE_DATA, lambda w: b"MSH " + bytes(100), "without its MQXQH"),
]


@pytest.mark.parametrize(
    ("kind", "payload", "why"), [case[1:] for case in BAD_CALLS], ids=[case[0] for case in BAD_CALLS]
)
def test_a_bad_call_is_told_and_the_next_is_read(kind: int, payload: Callable[[Wire], bytes], why: str) -> None:
    w = Wire()
    session = Session().client(w.segment(kind, payload(w))).client(w.segment(MQPUT, w.mqput(mqmd(2), b"next")))
    records = read(pcap(session.frames))
    assert [r.message.body for r in records if r.message] == [b"next"]
    ((problem,),) = ([r.problem for r in records if r.problem],)
    assert why in problem.why
    assert (problem.unit, problem.position) == ("byte", records[0].position)


def test_compression_is_told_once() -> None:
    w = Wire()
    session = Session()
    for _ in range(3):
        session.client(w.segment(MQPUT, b"\x78\x9c", control2=2))
    assert [r.problem.why for r in read(pcap(session.frames)) if r.problem] == ["the channel compresses its messages"]
