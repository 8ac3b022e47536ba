"""From packets to the bytes that each side of a TCP connection sent, in order.

Segments come out of order, twice, overlapping, and sometimes not at all. A flow gives its bytes as soon as they are
contiguous, and a ``Gap`` where some are missing for good: when the other side has acknowledged them and enough has come
since, when too much waits behind them, or when the connection or the capture ends. Without the SYN a flow begins at the
lowest of its first few segments, or where the other side's acknowledgement shows that they are all there.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import dpkt

from rfh2.captures.pcap_packets import CapturedPacket

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
