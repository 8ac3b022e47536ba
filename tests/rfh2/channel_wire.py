"""Synthetic packet captures: what a queue manager and its client put on the wire, and what the network makes of it."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import dpkt

from rfh2 import Mqmd
from rfh2.captures import CaptureRecord, read_captures

Order = Literal["big", "little"]

STREAM, CONTROL = "SYSTEM.BROKER.DEFAULT.STREAM", "SYSTEM.BROKER.CONTROL.QUEUE"
START = datetime(2024, 1, 3, 9, 44, 17, tzinfo=UTC)

INITIAL_DATA, MESSAGE_DATA, USERID, HEARTBEAT = 0x01, 0x04, 0x08, 0x09
SOCKET_ACTION, ASYNC_MESSAGE = 0x0C, 0x0D
MQOPEN, MQGET, MQPUT, MQPUT1, SPI = 0x83, 0x85, 0x86, 0x87, 0x8C
MQOPEN_REPLY, MQGET_REPLY, MQPUT_REPLY, SPI_REPLY = 0x93, 0x95, 0x96, 0x9C
FIRST, LAST = 0x10, 0x20

CLIENT, SERVER = (b"\x0a\x00\x00\x01", 50001), (b"\x0a\x00\x00\x02", 1414)


# ---- what a queue manager and its client put on the wire ------------------------------------------------------------


@dataclass(frozen=True)
class Wire:
    """How one side writes: byte order, multiplexed headers or not, EBCDIC or not."""

    order: Order = "little"
    conversation: int | None = None
    ebcdic: bool = False

    def long(self, *values: int) -> bytes:
        return struct.pack((">" if self.order == "big" else "<") + f"{len(values)}i", *values)

    def short(self, value: int) -> bytes:
        return value.to_bytes(2, self.order)

    def text(self, value: str, size: int) -> bytes:
        return value.ljust(size).encode("cp500" if self.ebcdic else "ascii")

    def segment(self, kind: int, payload: bytes, control: int = FIRST | LAST, control2: int = 0) -> bytes:
        multiplexed = self.conversation is not None
        size = (36 if multiplexed else 28) + len(payload)
        head = self.text("TSHM" if multiplexed else "TSH ", 4) + size.to_bytes(4, "big")
        if self.conversation is not None:
            head += self.conversation.to_bytes(4, "big") + bytes(4)
        order = 1 if self.order == "big" else 2
        encoding = 273 if self.order == "big" else 546
        return (
            head
            + bytes([order, kind, control, control2])
            + bytes(8)
            + self.long(encoding)
            + self.short(819)
            + bytes(2)
            + payload
        )

    def socket_action(self) -> bytes:
        """A TSHC, by which a client ends a conversation: a header as that of a TSH, and five numbers."""
        plain = Wire(self.order, ebcdic=self.ebcdic).segment(SOCKET_ACTION, self.long(1, 4, 0, 0, 0))
        return self.text("TSHC", 4) + plain[4:]

    def segments(self, kind: int, payload: bytes, size: int) -> bytes:
        pieces = [payload[at : at + size] for at in range(0, len(payload), size)]
        last = len(pieces) - 1
        return b"".join(
            self.segment(kind, piece, (FIRST if i == 0 else 0) | (LAST if i == last else 0))
            for i, piece in enumerate(pieces)
        )

    def api(self, length: int, comp_code: int = 0, reason: int = 0, handle: int = 0) -> bytes:
        return length.to_bytes(4, "big") + self.long(comp_code, reason, handle)

    def mqod(self, name: str, version: int = 1) -> bytes:
        size = {1: 168, 2: 200, 3: 336, 4: 400}[version]
        return (self.text("OD  ", 4) + self.long(version, 1) + self.text(name, 48)).ljust(size, b"\0")

    def mqpmo(self, version: int = 1, resolved: str = "") -> bytes:
        size = {1: 128, 2: 152, 3: 176}[version]
        head = self.text("PMO ", 4) + self.long(version, 0, -1, 0, 0, 0, 0)
        return (head + self.text(resolved, 48) + self.text("", 48)).ljust(size, b"\0")

    def mqgmo(self, version: int = 1, resolved: str = "") -> bytes:
        size = {1: 72, 2: 80, 3: 100, 4: 112}[version]
        head = self.text("GMO ", 4) + self.long(version, 0, 0, 0, 0)
        return (head + self.text(resolved, 48)).ljust(size, b"\0")

    def mqput(self, md: bytes, body: bytes, handle: int = 2, version: int = 1) -> bytes:
        rest = md + self.mqpmo(version) + self.long(len(body)) + body
        return self.api(16 + len(rest), handle=handle) + rest

    def mqput1(self, name: str, md: bytes, body: bytes, od_version: int = 1, version: int = 1) -> bytes:
        rest = self.mqod(name, od_version) + md + self.mqpmo(version) + self.long(len(body)) + body
        return self.api(16 + len(rest)) + rest

    def mqget_reply(
        self,
        md: bytes,
        body: bytes,
        handle: int = 2,
        version: int = 1,
        resolved: str = "",
        comp_code: int = 0,
        reason: int = 0,
    ) -> bytes:
        rest = md + self.mqgmo(version, resolved) + self.long(len(body)) + body
        return self.api(16 + len(rest), comp_code, reason, handle) + rest

    def mqput_reply(self, md: bytes, comp_code: int = 0, reason: int = 0, resolved: str = "") -> bytes:
        rest = md + self.mqpmo(resolved=resolved)
        return self.api(16 + len(rest), comp_code, reason, 2) + rest

    def mqopen(self, name: str) -> bytes:
        return self.api(188) + self.mqod(name) + self.long(0x2010)

    def mqopen_reply(self, handle: int, name: str = "") -> bytes:
        return self.api(188, handle=handle) + self.mqod(name) + self.long(0x2010)

    def initial_data(self, qmgr: str) -> bytes:
        return self.text("ID  ", 4) + bytes(40) + bytes(4) + self.text(qmgr, 48) + bytes(4)

    def userid(self, user: str, long_user: str = "") -> bytes:
        return self.text("UID ", 4) + self.text(user, 12) + self.text("", 12) + self.text(long_user, 64) + bytes(40)

    def asynchronous(
        self, md: bytes, body: bytes, queue: str, size: int, handle: int = 2, index: int = 7
    ) -> Iterator[bytes]:
        name = self.text(queue, len(queue))
        pad = -(3 + len(name)) % 4
        pieces = [body[at : at + size] for at in range(0, len(body), size)] or [b""]
        for i, piece in enumerate(pieces):
            head = self.long(1, handle, index, index, len(piece)) + self.short(i) + self.short(0)
            if i == 0:
                head += (
                    self.long(0, len(body), len(body))
                    + bytes(16)
                    + self.short(0)
                    + bytes([len(name)])
                    + name
                    + bytes(pad)
                    + md
                )
            yield self.segment(
                ASYNC_MESSAGE, head + piece, (FIRST if i == 0 else 0) | (LAST if piece is pieces[-1] else 0)
            )


def rfh2(topic: str, order: Order = "little", encoding: int = 546) -> bytes:
    folder = f"<psc><Command>Publish</Command><Topic>{topic}</Topic></psc>".encode()
    folder += b" " * (-len(folder) % 4)
    mark = ">" if order == "big" else "<"
    return (
        b"RFH "
        + struct.pack(mark + "iiii", 2, 40 + len(folder), encoding, 1208)
        + b"MQSTR   "
        + struct.pack(mark + "iii", 0, 1208, len(folder))
        + folder
    )


def mqmd(
    number: int = 1, version: int = 1, order: Order = "little", user: str = "", encoding: int | None = None
) -> bytes:
    return Mqmd(
        version=version,
        format="MQHRF2",
        encoding=encoding if encoding is not None else (273 if order == "big" else 546),
        coded_char_set_id=819,
        msg_id=number.to_bytes(24, "big"),
        correl_id=bytes(range(24)),
        accounting_token=bytes(range(32)),
        reply_to_q="REPLY.Q",
        reply_to_qmgr="QM1",
        user_identifier=user,
        put_appl_name="publisher",
        put_appl_type=6,
        report=3,
        feedback=0,
        expiry=600,
        priority=5,
        persistence=1,
        order=order,
    ).encode()


# ---- what the network makes of it -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    time: float
    data: bytes


class Session:
    """One TCP connection; every call appends frames."""

    def __init__(
        self, client=CLIENT, server=SERVER, *, seq: int = 1000, mss: int = 1460, syn: bool = True, vlan: bool = False
    ) -> None:
        self.frames: list[Frame] = []
        self._ends = (client, server)
        self._seq = [seq, 0xFFFFFF00]  # the server's wraps soon
        self._mss, self._vlan = mss, vlan
        if syn:
            self._frame(0, b"", dpkt.tcp.TH_SYN)
            self._frame(1, b"", dpkt.tcp.TH_SYN | dpkt.tcp.TH_ACK)

    def client(self, data: bytes) -> Session:
        return self._send(0, data)

    def server(self, data: bytes) -> Session:
        return self._send(1, data)

    def close(self) -> Session:
        for side in (0, 1):
            self._frame(side, b"", dpkt.tcp.TH_FIN | dpkt.tcp.TH_ACK)
        return self

    def _send(self, side: int, data: bytes) -> Session:
        for at in range(0, len(data), self._mss):
            self._frame(side, data[at : at + self._mss], dpkt.tcp.TH_ACK | dpkt.tcp.TH_PUSH)
        return self

    def _frame(self, side: int, data: bytes, flags: int) -> None:
        (src, sport), (dst, dport) = self._ends[side], self._ends[1 - side]
        tcp = dpkt.tcp.TCP(
            sport=sport, dport=dport, seq=self._seq[side], ack=self._seq[1 - side], flags=flags, data=data
        )
        self._seq[side] = (self._seq[side] + len(data) + bool(flags & (dpkt.tcp.TH_SYN | dpkt.tcp.TH_FIN))) % 2**32
        if len(src) == 16:
            ip = dpkt.ip6.IP6(src=src, dst=dst, nxt=6, hlim=64, plen=len(tcp), data=tcp)
            kind = dpkt.ethernet.ETH_TYPE_IP6
        else:
            ip = dpkt.ip.IP(src=src, dst=dst, p=6, data=tcp)
            ip.len = len(ip)
            kind = dpkt.ethernet.ETH_TYPE_IP
        link = b"\2" * 6 + b"\4" * 6
        link += (b"\x81\0\0\7" if self._vlan else b"") + struct.pack(">H", kind)
        self.frames.append(Frame(START.timestamp() + len(self.frames) / 1000, link + bytes(ip)))


def pcap(frames: Iterable[Frame], order: Order = "little", nano: bool = False, link: int = 1) -> bytes:
    mark = ">" if order == "big" else "<"
    ticks = 10**9 if nano else 10**6
    out = struct.pack(mark + "IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, 262144, link)
    for frame in frames:
        seconds, fraction = divmod(round(frame.time * 10**6), 10**6)
        out += (
            struct.pack(mark + "IIII", seconds, fraction * (ticks // 10**6), len(frame.data), len(frame.data))
            + frame.data
        )
    return out


def block(kind: int, body: bytes, order: Order) -> bytes:
    size = len(body) + -len(body) % 4 + 12
    mark = ">" if order == "big" else "<"
    return struct.pack(mark + "II", kind, size) + body + bytes(-len(body) % 4) + struct.pack(mark + "I", size)


def section(order: Order) -> bytes:
    mark = ">" if order == "big" else "<"
    return block(0x0A0D0D0A, struct.pack(mark + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(order: Order, link: int = 1, resolution: int | None = None) -> bytes:
    mark = ">" if order == "big" else "<"
    options = b"" if resolution is None else struct.pack(mark + "HHB3xHH", 9, 1, resolution, 0, 0)
    return block(1, struct.pack(mark + "HHI", link, 0, 0) + options, order)


def enhanced(frame: Frame, order: Order, number: int = 0, ticks: int = 10**6) -> bytes:
    mark = ">" if order == "big" else "<"
    stamp = round(frame.time * 10**6) * ticks // 10**6
    head = struct.pack(mark + "IIIII", number, stamp >> 32, stamp & 0xFFFFFFFF, len(frame.data), len(frame.data))
    return block(6, head + frame.data, order)


def pcapng(frames: Iterable[Frame], order: Order = "little") -> bytes:
    return section(order) + interface(order) + b"".join(enhanced(frame, order) for frame in frames)


def read(data: bytes) -> list[CaptureRecord]:
    return list(read_captures(io.BytesIO(data), name="net.pcap"))


def messages(data: bytes) -> list[tuple[str, bytes | None, bytes]]:
    records = read(data)
    assert [r.problem for r in records if r.problem] == []
    return [(r.message.queue, r.message.md, r.message.body) for r in records if r.message]


WIRES = [
    Wire("little"),
    Wire("big"),
    Wire("little", conversation=1),
    Wire("big", conversation=0x7FFFFFFF),
    Wire("big", conversation=1, ebcdic=True),
]
WIRE_IDS = ["TSH-le", "TSH-be", "TSHM-le", "TSHM-be", "TSHM-be-ebcdic"]
