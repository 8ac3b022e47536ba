"""Packet captures of MQ channels, pcap or pcapng: packets to flows to segments to calls to messages. Only read.

What is put and what is got is given, in the order in which it was completed; a capture that holds both a put and the
get of the same message gives it twice. Encrypted channels give nothing but a problem.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from datetime import datetime
from ipaddress import ip_address
from typing import BinaryIO

from rfh2.captures.mqi_calls import Channel, SentMessage, Unreadable
from rfh2.captures.pcap_packets import Damage, Endpoint, Flow, Gap, TcpSegment, UnknownLinkError, packets, tcp_segment
from rfh2.captures.record import Item, ReadingPosition
from rfh2.captures.tsh import OutOfStep, TshStream

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
