"""Packet captures of MQ channels, pcap or pcapng: packets to flows to segments to calls to messages. Only read.

What is put and what is got is given, in the order in which it was completed; a capture that holds both a put and the
get of the same message gives it twice. Encrypted channels give nothing but a problem.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address
from typing import BinaryIO

import dpkt

from rfh2.captures.mqi_calls import Channel, SentMessage, Unreadable
from rfh2.captures.pcap_packets import CapturedPacket, Damage, packets
from rfh2.captures.record import Item, ReadingPosition
from rfh2.captures.tsh import OutOfStep, TshStream

# From packets to the bytes that each side of a TCP connection sent, in order.
#
# Segments come out of order, twice, overlapping, and sometimes not at all. A flow gives its bytes as soon as they are
# contiguous, and a ``Gap`` where some are missing for good: when the other side has acknowledged them and enough has
# come since, when too much waits behind them, or when the connection or the capture ends. Without the SYN a flow
# begins at the lowest of its first few segments, or where the other side's acknowledgement shows that they are all
# there.

Endpoint = tuple[bytes, int]
"""IP address and port."""

_LINKS = {
    0: dpkt.loopback.Loopback,
    1: dpkt.ethernet.Ethernet,
    108: dpkt.loopback.Loopback,
    113: dpkt.sll.SLL,
    276: dpkt.sll2.SLL2,
}
_RAW_IP = frozenset({12, 14, 101, 228, 229})

# What tcpdump captures of a frame by default. dpkt copies the rest of a frame for each IPv6 extension
# header: without a bound a frame takes the square of its length.
_FRAME_BYTES = 262_144
_SETTLING_SEGMENTS = 4
_GRACE_SEGMENTS = 32  # how far packets of several captured queues or interfaces may be out of order
_WAITING_BYTES = 16 << 20
_WAITING_SEGMENTS = 16_384


@dataclass(frozen=True, slots=True)
class TcpSegment:
    """The fields of one TCP segment that are needed."""

    source: Endpoint
    target: Endpoint
    seq: int
    ack: int | None
    data: bytes
    syn: bool
    fin: bool
    rst: bool


@dataclass(frozen=True, slots=True)
class Gap:
    """A number of bytes of a flow that are not in the capture."""

    size_bytes: int


class UnknownLinkError(Exception):
    """Frames of a link type that is not read here."""


def tcp_segment(packet: CapturedPacket) -> TcpSegment | None:
    """The TCP segment in *packet*, or None for anything else. Raises UnknownLinkError."""
    ip = _network_layer(packet)
    tcp = getattr(ip, "data", None)
    if not isinstance(ip, dpkt.ip.IP | dpkt.ip6.IP6) or not isinstance(tcp, dpkt.tcp.TCP):
        return None
    flags = tcp.flags
    return TcpSegment(
        source=(ip.src, tcp.sport),
        target=(ip.dst, tcp.dport),
        seq=tcp.seq,
        ack=tcp.ack if flags & dpkt.tcp.TH_ACK else None,
        data=bytes(tcp.data),
        syn=bool(flags & dpkt.tcp.TH_SYN),
        fin=bool(flags & dpkt.tcp.TH_FIN),
        rst=bool(flags & dpkt.tcp.TH_RST),
    )


def _network_layer(packet: CapturedPacket) -> object:
    data = packet.data[:_FRAME_BYTES]
    try:
        if packet.link in _RAW_IP:
            return (dpkt.ip6.IP6 if data[:1] >= b"\x60" else dpkt.ip.IP)(data)
        frame = _LINKS.get(packet.link)
        if frame is None:
            raise UnknownLinkError(f"link type {packet.link} is not supported")
        return frame(data).data
    except (dpkt.dpkt.UnpackError, IndexError, ValueError, RecursionError):
        # A frame that is cut, or is no IP, or IP in IP a thousand deep: what is lost shows as a gap in its flow.
        return None


class Flow:
    """The bytes of one direction of a connection."""

    def __init__(self) -> None:
        self.saw_syn = False
        self._next: int | None = None
        self._first: int | None = None
        self._waiting: dict[int, bytes] = {}
        self._order: list[int] = []
        self._waiting_bytes = 0
        self._acknowledged = False
        self._grace = 0
        self._end: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether the FIN and all before it were taken."""
        return self._end is not None and self._next is not None and self._next >= self._end

    def begins_anew(self, seq: int) -> bool:
        """Whether a SYN with *seq* begins another connection between the same ports."""
        if self._first is None:
            return False
        if not self.saw_syn and self._next is None:
            return self._unwrapped(seq + 1) != self._order[0] if self._order else False
        return not self.saw_syn or (seq + 1 - self._first) % 0x100000000 != 0

    def add(self, segment: TcpSegment) -> Iterator[bytes | Gap]:
        """Take a segment of this direction; give what it completes."""
        if segment.syn and not self.saw_syn and self._next is None:
            self.saw_syn = True
            self._first = self._next = self._unwrapped(segment.seq + 1)
        if self._first is None:
            self._first = segment.seq
        at = self._unwrapped(segment.seq + segment.syn)
        if segment.fin:
            self._end = at + len(segment.data)
        if segment.data:
            if at == self._next and not self._waiting:
                self._next = at + len(segment.data)
                yield segment.data
            elif self._next is None or at + len(segment.data) > self._next:
                self._keep(at, segment.data)
        if self._waiting:
            yield from self._released()

    def acknowledged(self, ack: int) -> Iterator[bytes | Gap]:
        """Take the other side's acknowledgement of everything before *ack*."""
        if self._waiting:
            at = self._unwrapped(ack)
            if self._next is None and at > self._order[0]:
                self._next = self._order[0]
            self._acknowledged = self._next is not None and at > self._next
            yield from self._released()

    def finish(self) -> Iterator[bytes | Gap]:
        """The end of the capture: give the bytes that there are."""
        if self._next is None and self._waiting:
            self._next = self._order[0]
        while self._waiting:
            yield from self._contiguous()
            if self._waiting:
                yield self._gap()

    def _keep(self, at: int, data: bytes) -> None:
        held = self._waiting.get(at)
        if held is None:
            heapq.heappush(self._order, at)
        elif len(held) >= len(data):
            return
        self._waiting[at] = data
        self._waiting_bytes += len(data) - len(held or b"")

    def _released(self) -> Iterator[bytes | Gap]:
        if self._next is None:
            if len(self._waiting) < _SETTLING_SEGMENTS:
                return
            self._next = self._order[0]
        yield from self._contiguous()
        if not self._waiting:
            return
        self._grace += self._acknowledged
        too_much = self._waiting_bytes > _WAITING_BYTES or len(self._waiting) > _WAITING_SEGMENTS
        if too_much or self._grace > _GRACE_SEGMENTS:
            yield self._gap()
            yield from self._contiguous()

    def _contiguous(self) -> Iterator[bytes]:
        while self._order and self._next is not None and self._order[0] <= self._next:
            at = heapq.heappop(self._order)
            data = self._waiting.pop(at)
            self._waiting_bytes -= len(data)
            fresh = data[self._next - at :]
            if fresh:
                self._next += len(fresh)
                self._grace, self._acknowledged = 0, False
                yield fresh

    def _gap(self) -> Gap:
        at = self._order[0]
        missing = at - (self._next or 0)
        self._next = at
        self._grace, self._acknowledged = 0, False
        return Gap(missing)

    def _unwrapped(self, seq: int) -> int:
        """*seq* as a number that does not wrap at 2**32, near to where the flow is."""
        near = self._next if self._next is not None else self._first
        if near is None:
            return seq
        return near + (seq - near + 0x80000000) % 0x100000000 - 0x80000000


_MQ_PORT = 1414
_TLS_HANDSHAKE = b"\x16\x03"
# Connections that were never seen to close; the one that was silent longest makes room.
_MAX_CONNECTIONS = 65_536

_Found = SentMessage | Unreadable


def read_pcap(stream: BinaryIO, reading: ReadingPosition) -> Iterator[Item]:
    """Each message that was put or got; positions are byte offsets of the packets in which their calls begin."""
    connections: OrderedDict[frozenset[Endpoint], _Connection] = OrderedDict()
    unknown_links: set[int] = set()
    for packet in packets(stream):
        if isinstance(packet, Damage):
            yield packet.position, reading.problem(packet.position, packet.why, "byte")
            break
        try:
            segment = tcp_segment(packet)
        except UnknownLinkError as error:
            if packet.link not in unknown_links:
                unknown_links.add(packet.link)
                yield packet.position, reading.problem(packet.position, str(error), "byte")
            continue
        if segment is None:
            continue
        key = frozenset((segment.source, segment.target))
        connection = connections.get(key)
        if connection is not None and connection.is_replaced_by(segment):
            yield from _items(connection.finish(), reading)
            connection = None
        if connection is None:
            connection = connections[key] = _Connection(segment.source, segment.target)
        connections.move_to_end(key)
        yield from _items(connection.add(segment, packet.position, packet.time), reading)
        if connection.is_over:
            yield from _items(connection.finish(), reading)
            del connections[key]
        elif len(connections) > _MAX_CONNECTIONS:
            yield from _items(connections.popitem(last=False)[1].finish(), reading)
    for connection in connections.values():
        yield from _items(connection.finish(), reading)


def _items(found: Iterator[_Found], reading: ReadingPosition) -> Iterator[Item]:
    for one in found:
        if isinstance(one, Unreadable):
            yield one.position, reading.problem(one.position, one.why, "byte")
        else:
            md, body = one.found.md, one.found.body
            message = reading.message(body, md, queue=one.queue, qmgr=one.qmgr, user=one.user, time=one.time)
            yield one.position, message


class _Connection:
    """One TCP connection: two flows, a channel."""

    def __init__(self, one: Endpoint, other: Endpoint) -> None:
        self._ends = (one, other)
        self._flows = (Flow(), Flow())
        self._streams: list[TshStream | None] = [None, None]
        self._gaps: list[tuple[int, int] | None] = [
            None,
            None,
        ]  # position, size; to be reported once the flow proves MQ
        self._channel = Channel()
        self._position = 0
        self._time: datetime | None = None
        self._is_reset = False
        self._said_encrypted = False

    @property
    def is_over(self) -> bool:
        """Whether both sides have ended it, or one has broken it off."""
        return self._is_reset or all(flow.is_over for flow in self._flows)

    def is_replaced_by(self, segment: TcpSegment) -> bool:
        """Whether *segment* begins another connection between the same ends."""
        return segment.syn and self._flows[self._direction(segment)].begins_anew(segment.seq)

    def add(self, segment: TcpSegment, position: int, time: datetime | None) -> Iterator[_Found]:
        """Take a segment from the packet at *position*."""
        self._position, self._time = position, time
        direction = self._direction(segment)
        if segment.ack is not None:
            yield from self._pass_on(1 - direction, self._flows[1 - direction].acknowledged(segment.ack))
        stream = self._streams[direction]
        if stream is not None and stream.is_foreign:
            # Nothing of it is wanted, and what a gap would hold back is not worth its memory.
            self._is_reset = self._is_reset or segment.fin or segment.rst
            return
        yield from self._pass_on(direction, self._flows[direction].add(segment))
        self._is_reset = self._is_reset or segment.rst

    def finish(self) -> Iterator[_Found]:
        """Nothing more comes."""
        for direction in (0, 1):
            yield from self._pass_on(direction, self._flows[direction].finish())
            stream = self._streams[direction]
            if stream is not None and stream.is_mq and stream.is_partial:
                self._channel.lose(direction)
                yield Unreadable(stream.position, f"the capture ends within a segment of {self._label(direction)}")
        yield from self._channel.finish()

    def _pass_on(self, direction: int, pieces: Iterator[bytes | Gap]) -> Iterator[_Found]:
        for piece in pieces:
            stream = self._streams[direction]
            if isinstance(piece, Gap):
                begun = stream.position if stream is not None and stream.is_partial else self._position
                self._gaps[direction] = self._gaps[direction] or (begun, piece.size_bytes)
                if stream is not None:
                    if stream.is_mq:
                        yield from self._reported_gap(direction)
                    stream.lose()
                self._channel.lose(direction)
                continue
            if stream is None:
                from_start = self._flows[direction].saw_syn and self._gaps[direction] is None
                stream = self._streams[direction] = TshStream(from_start=from_start)
                yield from self._encryption(direction, piece)
            for found in stream.feed(piece, self._position):
                yield from self._reported_gap(direction)
                if isinstance(found, OutOfStep):
                    self._channel.lose(direction)
                    yield Unreadable(found.position, f"no segment begins where one is due in {self._label(direction)}")
                else:
                    yield from self._channel.take(found, direction, self._time)

    def _reported_gap(self, direction: int) -> Iterator[Unreadable]:
        gap, self._gaps[direction] = self._gaps[direction], None
        if gap is not None:
            yield Unreadable(gap[0], f"{gap[1]} bytes of {self._label(direction)} were not captured")

    def _encryption(self, direction: int, first: bytes) -> Iterator[Unreadable]:
        if first.startswith(_TLS_HANDSHAKE) and not self._said_encrypted and _MQ_PORT in (p for _, p in self._ends):
            self._said_encrypted = True
            yield Unreadable(self._position, f"{self._label(direction)} is encrypted")

    def _direction(self, segment: TcpSegment) -> int:
        return 0 if segment.source == self._ends[0] else 1

    def _label(self, direction: int) -> str:
        source, target = self._ends[direction], self._ends[1 - direction]
        return f"{_endpoint(source)} > {_endpoint(target)}"


def _endpoint(end: Endpoint) -> str:
    address = ip_address(end[0])
    return f"[{address}]:{end[1]}" if address.version == 6 else f"{address}:{end[1]}"
