"""Packet captures: pcap and pcapng, links, and TCP as networks deliver it (wire formats 6.5)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

import dpkt
import pytest
from hypothesis import given, strategies as st

from rfh2.captures import detect
from tests.rfh2.channel_wire import (
    CLIENT,
    FIRST,
    MQPUT,
    MQPUT_REPLY,
    SERVER,
    START,
    Frame,
    Order,
    Session,
    Wire,
    block,
    enhanced,
    interface,
    messages,
    mqmd,
    pcap,
    pcapng,
    read,
    rfh2,
    section,
)

# ---- TCP -----------------------------------------------------------------------------------------------------------


def puts(count: int, size: int = 0, **more) -> tuple[Session, list[bytes]]:
    w = Wire(conversation=1)
    session, bodies = Session(**more), []
    for number in range(count):
        bodies.append(rfh2(f"t/{number}") + bytes([number % 256]) * size)
        session.client(w.segment(MQPUT, w.mqput(mqmd(number), bodies[-1])))
    return session, bodies


def found_bodies(frames: Iterable[Frame]) -> list[bytes]:
    return [body for _, _, body in messages(pcap(frames))]


@given(st.data(), st.sampled_from([0, 1, 0xFFFFFF00, 0x7FFFFFFF]), st.booleans())
def test_packets_come_late_twice_and_cut_differently(data: st.DataObject, seq: int, syn: bool) -> None:
    session, bodies = puts(12, 700, seq=seq, mss=500, syn=syn)
    frames = list(session.frames)
    again, _ = puts(12, 700, seq=seq, mss=data.draw(st.integers(90, 1200)), syn=syn)
    # Without the handshake the first frame is where the stream begins: only what is behind it can be late.
    first = 2 if syn else 1
    order = list(range(first, len(frames)))
    for _ in range(data.draw(st.integers(0, 12))):
        at = data.draw(st.integers(0, len(order) - 1))
        order.insert(max(0, at - data.draw(st.integers(1, 4))), order.pop(at))
    shuffled = frames[:first] + [frames[at] for at in order]
    for _ in range(data.draw(st.integers(0, 10))):
        extra = again.frames[data.draw(st.integers(first, len(again.frames) - 1))]
        shuffled.insert(data.draw(st.integers(len(shuffled) // 2, len(shuffled))), extra)
    assert found_bodies(shuffled) == bodies


def test_a_keepalive_is_no_data() -> None:
    session, bodies = puts(2)
    probe = dpkt.ethernet.Ethernet(session.frames[-1].data)
    probe.ip.tcp.seq = (probe.ip.tcp.seq + len(probe.ip.tcp.data) - 1) % 2**32
    probe.ip.tcp.data = b"\0"
    probe.ip.len = 41
    assert found_bodies([*session.frames, Frame(session.frames[-1].time, bytes(probe))]) == bodies


def test_a_capture_may_begin_in_the_middle() -> None:
    session, bodies = puts(6, 3000, mss=1000)
    records = read(pcap(session.frames[4:]))
    assert [r.message.body for r in records if r.message] == bodies[1:]
    assert [r.problem for r in records if r.problem] == []


def test_the_same_ports_may_connect_again() -> None:
    first, one = puts(2, seq=5)
    second, two = puts(3, seq=900_000)
    assert found_bodies([*first.frames, *second.frames]) == one + two


def test_a_lost_packet_costs_its_message_only() -> None:
    session, bodies = puts(60, 3000, mss=1000)
    lost = 2 + 4 * 5 + 1  # the second packet of the sixth message
    records = read(pcap([f for i, f in enumerate(session.frames) if i != lost]))
    assert [r.message.body for r in records if r.message] == bodies[:5] + bodies[6:]
    (problem,) = [r.problem for r in records if r.problem]
    assert problem.why == "1000 bytes of 10.0.0.1:50001 > 10.0.0.2:1414 were not captured"


def test_a_lost_packet_is_given_up_soon_where_the_other_side_has_it() -> None:
    w = Wire()
    session = Session()
    for number in range(60):
        session.client(w.segment(MQPUT, w.mqput(mqmd(number), b"%d" % number)))
        session.server(w.segment(MQPUT_REPLY, w.mqput_reply(mqmd(number))))
    frames = [f for i, f in enumerate(session.frames) if i != 2]
    records = list(read(pcap(frames)))
    assert records[0].problem is not None
    assert [r.message.body for r in records if r.message] == [b"%d" % n for n in range(1, 60)]
    # The others were not held back to the end of the file.
    assert records[1].message is not None
    assert [r.index for r in records] == list(range(60))


def test_a_cut_packet_costs_its_message_only() -> None:
    session, bodies = puts(3, 3000, mss=1000)
    cut = [Frame(f.time, f.data[:400]) if i == 3 else f for i, f in enumerate(session.frames)]
    records = read(pcap(cut))
    assert [r.message.body for r in records if r.message] == bodies[1:]
    assert ["were not captured" in r.problem.why for r in records if r.problem] == [True]


def test_a_capture_that_ends_in_a_message_says_so() -> None:
    session, bodies = puts(2, 3000, mss=1000)
    records = read(pcap(session.frames[:-1]))
    assert [r.message.body for r in records if r.message] == bodies[:1]
    assert ["ends within a segment" in r.problem.why for r in records if r.problem] == [True]
    w = Wire()
    session = Session().client(w.segment(MQPUT, w.mqput(mqmd(1), b"12345")[:300], FIRST))
    assert ["before the last segment" in r.problem.why for r in read(pcap(session.frames)) if r.problem] == [True]


def test_garbage_between_segments_is_told_and_passed_over() -> None:
    w = Wire()
    put = w.segment(MQPUT, w.mqput(mqmd(1), b"x"))
    session = Session().client(put).client(b"garbage TSH and TSHM more").client(put)
    records = read(pcap(session.frames))
    assert [r.message.body for r in records if r.message] == [b"x", b"x"]
    assert "no segment begins" in next(r.problem.why for r in records if r.problem)


def test_frames_that_hold_frames_without_end_are_passed_over() -> None:
    tunnels = (b"\x45\0\xff\xff\0\0\0\0\x40\4\0\0" + bytes(8)) * 2000
    extensions = struct.pack(">IHBB", 6 << 28, 0, 0, 64) + bytes(32 + 400_000)
    ethernet = b"\2" * 6 + b"\4" * 6
    session, bodies = puts(2)
    strange = [Frame(0.0, ethernet + b"\x08\0" + tunnels), Frame(0.0, ethernet + b"\x86\xdd" + extensions)]
    assert found_bodies([*strange, *session.frames]) == bodies


def test_other_connections_are_passed_over() -> None:
    http = Session(client=(b"\x0a\0\0\3", 40000), server=(b"\x0a\0\0\4", 80)).client(b"GET / HTTP/1.1\r\n\r\n" * 100)
    middle = Session(client=(b"\x0a\0\0\3", 40001), server=(b"\x0a\0\0\4", 80), syn=False).client(b"TSH TSHM" * 1000)
    session, bodies = puts(2)
    frames = [f for pair in zip(http.frames, session.frames, strict=False) for f in pair] + middle.frames
    assert found_bodies(frames) == bodies


def test_a_connection_of_mq_may_follow_another_one_on_its_ports() -> None:
    http = Session(seq=77).client(b"GET / HTTP/1.1\r\n\r\n").client(b"more").close()
    unended = Session(seq=99).client(b"GET / HTTP/1.1\r\n\r\n").client(b"more")
    session, bodies = puts(2)
    assert found_bodies([*http.frames, *unended.frames, *session.frames]) == bodies


def test_tls_on_the_port_of_mq_is_told_once() -> None:
    hello = b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(32)
    session = Session().client(hello).server(hello).client(hello)
    assert [r.problem.why for r in read(pcap(session.frames)) if r.problem] == [
        "10.0.0.1:50001 > 10.0.0.2:1414 is encrypted"
    ]
    elsewhere = Session(server=(b"\x0a\0\0\2", 443)).client(hello)
    assert read(pcap(elsewhere.frames)) == []


# ---- files and links -----------------------------------------------------------------------------------------------


def relinked(frames: Iterable[Frame], header: bytes) -> list[Frame]:
    return [Frame(f.time, header + f.data[14:]) for f in frames]


V6 = ((bytes(15) + b"\1", 50001), (bytes(15) + b"\2", 1414))
LINKS = [
    ("ethernet", 1, lambda s: s.frames),
    ("raw-ip", 101, lambda s: relinked(s.frames, b"")),
    ("raw-ip-bsd", 12, lambda s: relinked(s.frames, b"")),
    ("ipv4", 228, lambda s: relinked(s.frames, b"")),
    ("loopback-le", 0, lambda s: relinked(s.frames, b"\2\0\0\0")),
    ("loopback-be", 108, lambda s: relinked(s.frames, b"\0\0\0\2")),
    ("linux-cooked", 113, lambda s: relinked(s.frames, b"\0\0\0\1\0\6\0\1\2\3\4\5\0\0\x08\0")),
    ("linux-cooked-2", 276, lambda s: relinked(s.frames, b"\x08\0\0\0\0\0\0\1\0\1\0\6\0\1\2\3\4\5\0\0")),
]


@pytest.mark.parametrize(("link", "frames"), [case[1:] for case in LINKS], ids=[case[0] for case in LINKS])
def test_links(link: int, frames: Callable[[Session], list[Frame]]) -> None:
    session, bodies = puts(2)
    assert [body for _, _, body in messages(pcap(frames(session), link=link))] == bodies


@pytest.mark.parametrize("vlan", [False, True])
@pytest.mark.parametrize("ends", [(CLIENT, SERVER), V6], ids=["ipv4", "ipv6"])
def test_addresses_and_vlans(ends: tuple, vlan: bool) -> None:  # type: ignore[type-arg]
    session, bodies = puts(2, client=ends[0], server=ends[1], vlan=vlan)
    assert found_bodies(session.frames) == bodies


def test_an_unknown_link_is_told_once() -> None:
    session, _ = puts(3)
    assert [r.problem.why for r in read(pcap(session.frames, link=147)) if r.problem] == [
        "link type 147 is not supported"
    ]


ORDERS: list[Order] = ["little", "big"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("nano", [False, True])
def test_pcap_orders_and_clocks(order: Order, nano: bool) -> None:
    session, bodies = puts(2)
    data = pcap(session.frames, order, nano)
    assert detect(data) == "pcap"
    found = [r.message for r in read(data) if r.message]
    assert [(m.body, m.time) for m in found] == [
        (body, START.replace(microsecond=2000 + 1000 * i)) for i, body in enumerate(bodies)
    ]


def test_pcap_of_patched_tools_has_longer_headers() -> None:
    session, bodies = puts(1)
    out = bytearray(pcap([]))
    out[:4] = b"\x34\xcd\xb2\xa1"
    for frame in session.frames:
        out += struct.pack("<IIII", 1, 2, len(frame.data), len(frame.data)) + bytes(8) + frame.data
    assert [body for _, _, body in messages(bytes(out))] == bodies


@pytest.mark.parametrize("order", ORDERS)
def test_pcapng(order: Order) -> None:
    session, bodies = puts(3)
    unknown = block(0x0BAD, b"vendor", order) + block(5, bytes(12), order)
    one, two, *rest = session.frames
    data = section(order) + unknown + interface(order) + enhanced(one, order) + unknown + enhanced(two, order)
    data += b"".join(enhanced(frame, order) for frame in rest)
    assert [body for _, _, body in messages(data)] == bodies


def test_pcapng_interfaces_have_their_own_links_and_clocks() -> None:
    session, bodies = puts(3)
    data = section("little") + interface("little") + interface("little", link=101, resolution=9)
    data += interface("little", resolution=0x80 | 10)
    raw = relinked(session.frames, b"")
    for i, frame in enumerate(session.frames):
        number = i % 3
        ticks = (10**6, 10**9, 1024)[number]
        data += enhanced(raw[i] if number == 1 else frame, "little", number, ticks)
    found = [r.message for r in read(data) if r.message]
    assert [m.body for m in found] == bodies
    assert [round((m.time - START).total_seconds(), 3) for m in found if m.time] == [0.002, 0.003, 0.004]


def test_pcapng_sections_may_differ_in_byte_order() -> None:
    session, bodies = puts(4)
    half = len(session.frames) // 2
    data = pcapng(session.frames[:half], "little") + pcapng(session.frames[half:], "big")
    assert [body for _, _, body in messages(data)] == bodies


def test_pcapng_simple_and_obsolete_packets() -> None:
    session, bodies = puts(2)
    data = section("little") + interface("little")
    for i, frame in enumerate(session.frames):
        size = len(frame.data)
        if i % 2:
            data += block(3, struct.pack("<I", size) + frame.data, "little")
        else:
            data += block(2, struct.pack("<HHIIII", 0, 0, 0, 0, size, size) + frame.data, "little")
    assert [body for _, _, body in messages(data)] == bodies


DAMAGED = [
    ("pcap-within-a-packet", lambda f: pcap(f)[:-5], "ends within a packet"),
    ("pcap-within-a-header", lambda f: pcap(f) + b"\1\2\3", "ends within a packet"),
    ("pcap-length", lambda f: pcap(f) + struct.pack("<IIII", 0, 0, 2**31, 2**31), "a length of"),
    ("pcapng-within-a-block", lambda f: pcapng(f)[:-6], "ends within a packet"),
    ("pcapng-block-length", lambda f: pcapng(f) + struct.pack("<II", 6, 13), "a block of 13 bytes"),
    ("pcapng-interface", lambda f: pcapng(f) + enhanced(f[0], "little", 7), "interface 7, which was not described"),
    (
        "pcapng-packet-length",
        lambda f: pcapng(f) + block(6, struct.pack("<5I", 0, 0, 0, 99, 99), "little"),
        "longer than its block",
    ),
    ("pcapng-packet-too-short", lambda f: pcapng(f) + block(6, b"1234", "little"), "too short"),
    ("pcapng-byte-order", lambda f: pcapng(f) + struct.pack("<II4s", 0x0A0D0D0A, 28, b"????"), "unknown byte order"),
]


@pytest.mark.parametrize(("make", "why"), [case[1:] for case in DAMAGED], ids=[case[0] for case in DAMAGED])
def test_a_damaged_file_gives_what_precedes_the_damage(make: Callable[[list[Frame]], bytes], why: str) -> None:
    session, bodies = puts(3)
    records = read(make([*session.frames, session.frames[-1]]))
    assert [r.message.body for r in records if r.message] == bodies
    (problem,) = [r.problem for r in records if r.problem]
    assert why in problem.why
