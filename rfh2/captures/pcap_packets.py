"""Packets out of pcap and pcapng files, one at a time.

The files are read here rather than with dpkt, whose pcapng reader takes the first interface's link type and clock for
all packets, and whose readers do not say that a packet was cut. dpkt reads what is in the packets (``pcap``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import BinaryIO

from rfh2.ccsid import ByteOrder

# magic number as it stands in the file: byte order, ticks a second, length of a packet's header
_PCAP: dict[bytes, tuple[ByteOrder, int, int]] = {
    b"\xa1\xb2\xc3\xd4": ("big", 10**6, 16),
    b"\xd4\xc3\xb2\xa1": ("little", 10**6, 16),
    b"\xa1\xb2\x3c\x4d": ("big", 10**9, 16),
    b"\x4d\x3c\xb2\xa1": ("little", 10**9, 16),
    b"\xa1\xb2\xcd\x34": ("big", 10**6, 24),
    b"\x34\xcd\xb2\xa1": ("little", 10**6, 24),
}
_PCAPNG = b"\x0a\x0d\x0d\x0a"
_ORDER_MAGIC: dict[bytes, ByteOrder] = {b"\x1a\x2b\x3c\x4d": "big", b"\x4d\x3c\x2b\x1a": "little"}

_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _ENHANCED_PACKET = 1, 2, 3, 6
_OPTION_RESOLUTION, _OPTION_OFFSET = 9, 14

# The largest snapshot length that tools accept; what claims more is a damaged file.
_MAX_PACKET_BYTES = 256 << 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class CapturedPacket:
    """One captured frame. position: byte offset of its record in the file. link: LINKTYPE_* of the interface."""

    position: int
    time: datetime | None
    link: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Damage:
    """Where the file cannot be read on, and why; the last thing that a file gives."""

    position: int
    why: str


@dataclass(frozen=True, slots=True)
class _Interface:
    link: int
    snap_length: int
    ticks: int  # a second
    offset: int  # seconds


class _CutError(Exception):
    """The file ends here, or is damaged here."""


def is_pcap(head: bytes) -> bool:
    """Whether *head* is the beginning of a pcap or pcapng file."""
    return head[:4] in _PCAP or (head[:4] == _PCAPNG and head[8:12] in _ORDER_MAGIC)


def packets(stream: BinaryIO) -> Iterator[CapturedPacket | Damage]:
    """Each packet of the pcap or pcapng file *stream*; a ``Damage`` at the end of a file that is cut or broken."""
    source = _Source(stream)
    try:
        magic = source.read(4)
        if magic in _PCAP:
            yield from _pcap(source, *_PCAP[magic])
        elif magic == _PCAPNG:
            yield from _pcapng(source)
        else:
            yield Damage(0, "neither a pcap nor a pcapng file")
    except _CutError as cut:
        yield Damage(source.start, str(cut))


class _Source:
    """Exact reads; ``start`` is where the record that is being read begins."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._at = self.start = 0

    def begin(self) -> None:
        self.start = self._at

    def read(self, size: int) -> bytes:
        data = self.maybe_read(size)
        if size and not data:
            raise _CutError("the file ends within a packet")
        return data

    def maybe_read(self, size: int) -> bytes:
        """*size* bytes, or none at the end of the file."""
        if not 0 <= size <= _MAX_PACKET_BYTES:
            raise _CutError(f"a length of {size} bytes")
        data = self._stream.read(size)
        if 0 < len(data) < size:
            raise _CutError("the file ends within a packet")
        self._at += len(data)
        return data


def _pcap(source: _Source, order: ByteOrder, ticks: int, header_length: int) -> Iterator[CapturedPacket]:
    mark = _mark(order)
    link = struct.unpack(mark + "I", source.read(20)[16:])[0] & 0x0FFFFFFF  # above it: the length of a frame check
    source.begin()
    while header := source.maybe_read(header_length):
        seconds, fraction, captured = struct.unpack_from(mark + "III", header)
        yield CapturedPacket(source.start, _time(seconds * ticks + fraction, ticks), link, source.read(captured))
        source.begin()


def _pcapng(source: _Source) -> Iterator[CapturedPacket]:
    interfaces: list[_Interface] = []
    mark, kind_bytes = "", _PCAPNG
    while kind_bytes:
        head = source.read(4)
        if kind_bytes == _PCAPNG:
            magic = source.read(4)
            if magic not in _ORDER_MAGIC:
                raise _CutError("a section of unknown byte order")
            mark, interfaces = _mark(_ORDER_MAGIC[magic]), []
            source.read(_length(mark, head) - 12)
        else:
            (kind,) = struct.unpack(mark + "I", kind_bytes)
            body = source.read(_length(mark, head) - 8)[:-4]
            if kind == _INTERFACE:
                interfaces.append(_interface(mark, body))
            elif kind in (_ENHANCED_PACKET, _OLD_PACKET, _SIMPLE_PACKET):
                yield _packet(source.start, mark, kind, body, interfaces)
        source.begin()
        kind_bytes = source.maybe_read(4)


def _length(mark: str, head: bytes) -> int:
    (length,) = struct.unpack(mark + "I", head)
    if length < 12 or length % 4:
        raise _CutError(f"a block of {length} bytes")
    return int(length)


def _interface(mark: str, body: bytes) -> _Interface:
    if len(body) < 8:
        raise _CutError("an interface without a link type")
    link, _, snap_length = struct.unpack_from(mark + "HHI", body)
    ticks, offset = 10**6, 0
    at = 8
    while at + 4 <= len(body):
        code, length = struct.unpack_from(mark + "HH", body, at)
        value = body[at + 4 : at + 4 + length]
        if code == 0:
            break
        if code == _OPTION_RESOLUTION and length == 1:
            ticks = 2 ** (value[0] & 0x7F) if value[0] & 0x80 else 10 ** value[0]
        elif code == _OPTION_OFFSET and length == 8:
            (offset,) = struct.unpack(mark + "q", value)
        at += 4 + length + -length % 4
    return _Interface(link, snap_length, ticks, offset)


def _packet(position: int, mark: str, kind: int, body: bytes, interfaces: list[_Interface]) -> CapturedPacket:
    if kind == _SIMPLE_PACKET:
        if len(body) < 4:
            raise _CutError("a packet block that is too short")
        number, ticks, start, captured = 0, None, 4, struct.unpack_from(mark + "I", body)[0]
    else:
        if len(body) < 20:
            raise _CutError("a packet block that is too short")
        form = mark + ("IIII" if kind == _ENHANCED_PACKET else "HxxIII")
        number, high, low, captured = struct.unpack_from(form, body)
        ticks, start = high << 32 | low, 20
    if number >= len(interfaces):
        raise _CutError(f"a packet of interface {number}, which was not described")
    interface = interfaces[number]
    if kind == _SIMPLE_PACKET and interface.snap_length:
        captured = min(captured, interface.snap_length)
    if start + captured > len(body):
        raise _CutError("a packet that is longer than its block")
    time = None if ticks is None else _time(ticks + interface.offset * interface.ticks, interface.ticks)
    return CapturedPacket(position, time, interface.link, body[start : start + captured])


def _time(ticks: int, ticks_a_second: int) -> datetime | None:
    try:
        return _EPOCH + timedelta(microseconds=ticks * 10**6 // ticks_a_second)
    except OverflowError:
        return None


def _mark(order: ByteOrder) -> str:
    return ">" if order == "big" else "<"
