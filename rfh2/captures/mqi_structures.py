"""Where the message is in the bytes of one MQI call on a channel (wire formats 6.5).

A call is one or more segments; its first begins with an API header (ReplyLength, always big-endian, CompCode, Reason,
ObjectHandle), the others are bare bytes. Messages are in these:

    MQPUT          MQMD  MQPMO  DataLength  data
    MQPUT1         MQOD  MQMD  MQPMO  DataLength  data
    MQGET_REPLY    MQMD  MQGMO  DataLength  data
    SPI            verb, version, size; MQMD, options; SPPI or SPGO, which ends in the length; data
    ASYNC_MESSAGE  a header of its own instead of the API header; MQMD  data
    MESSAGE_DATA   between queue managers: MQMSH  MQXQH with MQMD version 1  data
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from rfh2.captures.descriptors import descriptor_length
from rfh2.captures.tsh import Segment
from rfh2.ccsid import ASCII_FIELDS, EBCDIC_FIELDS, ByteOrder
from rfh2.mqmd import name_of

INITIAL_DATA, MESSAGE_DATA, USERID, ASYNC_MESSAGE = 0x01, 0x04, 0x08, 0x0D
MQOPEN, MQPUT, MQPUT1, SPI = 0x83, 0x86, 0x87, 0x8C
MQOPEN_REPLY, MQGET_REPLY, SPI_REPLY = 0x93, 0x95, 0x9C

API_HEADER_BYTES = 16
# What may stand between the API header and the data: distribution lists, structures of versions yet unknown.
OPTIONS_BYTES = 65_536

_PUTS = frozenset({MQPUT, MQPUT1})
_NOT_CALLS = frozenset({MESSAGE_DATA, ASYNC_MESSAGE})
# Lengths by Version, on the wire, where pointers have four bytes, and as in 64-bit memory.
_MQPMO_BYTES: dict[int, tuple[int, ...]] = {1: (128,), 2: (152, 160), 3: (176, 184)}
_MQGMO_BYTES: dict[int, tuple[int, ...]] = {1: (72,), 2: (80,), 3: (100,), 4: (112,)}
_MQOD_OBJECT_NAME, _MQPMO_RESOLVED_Q, _MQGMO_RESOLVED_Q = 12, 32, 24
_MSH_BYTES, _XQH_BYTES = 20, 104
_ASYNC_FIXED_BYTES, _ASYNC_CONTINUED_BYTES = 55, 24


def _struc_ids(*names: str) -> tuple[bytes, ...]:
    return tuple(name.encode(charset) for name in names for charset in (ASCII_FIELDS, EBCDIC_FIELDS))


_MQMD_ID = re.compile(b"|".join(map(re.escape, _struc_ids("MD  "))))
_MSH_IDS, _MQOD_IDS, _MQPMO_IDS = _struc_ids("MSH "), _struc_ids("OD  "), _struc_ids("PMO ")
_SPI_IDS = _struc_ids("SPPI", "SPGO")


@dataclass(slots=True)
class MqiCallBytes:
    """The segments of a call so far. time: when the last of them was completed."""

    first: Segment
    data: bytearray
    time: datetime | None = None

    @classmethod
    def begun(cls, segment: Segment) -> MqiCallBytes:
        """The call that *segment* begins."""
        return cls(segment, bytearray(segment.payload))

    def add(self, segment: Segment) -> None:
        """Take the next segment."""
        self.data += segment.payload[_ASYNC_CONTINUED_BYTES if segment.kind == ASYNC_MESSAGE else 0 :]

    def long(self, at: int) -> int:
        """The MQLONG at *at*."""
        return int.from_bytes(self.data[at : at + 4], self.first.order, signed=True)

    def name(self, at: int, length: int = 48) -> str:
        """The name in the character field at *at*."""
        return name_of(str(self.data[at : at + length], EBCDIC_FIELDS if self.first.is_ebcdic else ASCII_FIELDS))


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message in a call. queue: as the call names it, or nothing."""

    md: bytes
    body: bytes
    queue: str = ""
    qmgr: str | None = None


def begins(segment: Segment) -> bool:
    """Whether *segment* is the first of its call; those of asynchronous messages are numbered besides."""
    if segment.kind == ASYNC_MESSAGE:
        return int.from_bytes(segment.payload[20:22], segment.order) == 0
    return segment.is_first or (segment.kind == MESSAGE_DATA and segment.payload[:4] in _MSH_IDS)


def ends(segment: Segment, call: MqiCallBytes) -> bool:
    """Whether *call* is complete with *segment*."""
    if segment.is_last or segment.kind not in _NOT_CALLS or call.first.is_first:
        return segment.is_last
    if segment.kind == MESSAGE_DATA:
        return True
    # Without flags the lengths say whether all is there.
    at = _async_descriptor_at(call.data)
    return at is None or len(call.data) >= at + (descriptor_length(call.data, at) or 0) + _async_length(call)


def put_message(call: MqiCallBytes) -> FoundMessage:
    """The message in an MQPUT, MQPUT1 or SPI request. Raises ValueError."""
    found, _ = _message(call)
    return found


def got_message(call: MqiCallBytes) -> FoundMessage:
    """The message in an MQGET or SPI reply, with the queue that its MQGMO resolved to. Raises ValueError."""
    found, options_at = _message(call)
    queue = call.name(options_at + _MQGMO_RESOLVED_Q) if call.first.kind == MQGET_REPLY else ""
    return FoundMessage(found.md, found.body, queue)


def holds_spi_message(call: MqiCallBytes) -> bool:
    """Whether an SPI call is one that puts or gets."""
    return _descriptor_at(call.data) is not None and any(name in call.data for name in _SPI_IDS)


def object_name(call: MqiCallBytes) -> str:
    """ObjectName of the MQOD in *call*, or nothing."""
    at = _structure_at(call, _MQOD_IDS)
    return "" if at is None else call.name(at + _MQOD_OBJECT_NAME)


def resolved_queue(reply: MqiCallBytes) -> str:
    """ResolvedQName of the MQPMO in *reply*, or nothing."""
    at = _structure_at(reply, _MQPMO_IDS)
    return "" if at is None else reply.name(at + _MQPMO_RESOLVED_Q)


def transmitted_message(call: MqiCallBytes) -> FoundMessage:
    """The message that a sender channel passes on, with where it is to go. Raises ValueError."""
    at = _MSH_BYTES + _XQH_BYTES
    length = descriptor_length(call.data, at)
    if length is None or len(call.data) < at + length:
        raise ValueError("a message between queue managers without its MQXQH and MQMD")
    data = bytes(call.data)
    queue, qmgr = call.name(_MSH_BYTES + 8), call.name(_MSH_BYTES + 56)
    return FoundMessage(data[at : at + length], data[at + length :], queue, qmgr or None)


def async_handle_and_reason(call: MqiCallBytes) -> tuple[int, int]:
    """ObjectHandle and Reason of an asynchronous message."""
    return call.long(4), call.long(24)


def async_message(call: MqiCallBytes) -> FoundMessage | None:
    """The asynchronous message in *call*, or None where it only says that there is none. Raises ValueError."""
    if len(call.data) < _ASYNC_FIXED_BYTES:
        raise ValueError("the header of an asynchronous message is cut")
    at = _async_descriptor_at(call.data)
    if at is None:
        if call.long(24) != 0:
            return None
        raise ValueError("an asynchronous message without an MQMD")
    data = bytes(call.data)
    body_at = at + (descriptor_length(data, at) or 0)
    length = _async_length(call)
    # Whether the lengths count the MQMD is not known; what is too short either way is not whole.
    if len(data) - at < length or len(data) < body_at:
        raise ValueError(f"only {max(0, len(data) - body_at)} of {length} bytes of data were sent")
    padding = len(data) - body_at - length
    body = data[body_at : body_at + length] if 0 < padding < 4 else data[body_at:]
    return FoundMessage(data[at:body_at], body, call.name(_ASYNC_FIXED_BYTES, data[_ASYNC_FIXED_BYTES - 1]))


def _message(call: MqiCallBytes) -> tuple[FoundMessage, int]:
    """The message in *call*, and where the structure behind its MQMD begins. Raises ValueError."""
    data, order = bytes(call.data), call.first.order
    at = _descriptor_at(data)
    if at is None:
        raise ValueError("a call that should hold a message has no MQMD")
    options_at = at + (descriptor_length(data, at) or 0)
    if len(data) < options_at:
        raise ValueError("the MQMD is cut")
    if call.first.kind in (SPI, SPI_REPLY):
        start, length = _spi_data(data, options_at, order)
    else:
        lengths = _MQPMO_BYTES if call.first.kind in _PUTS else _MQGMO_BYTES
        version = call.long(options_at + 4) if len(data) >= options_at + 8 else 0
        start, length = _data(data, options_at, order, lengths.get(version, ()))
    if length < 0 or len(data) - start < length:
        raise ValueError(f"{max(0, len(data) - start)} of {length} bytes of data are there")
    return FoundMessage(data[at:options_at], data[start : start + length]), options_at


def _data(data: bytes, options_at: int, order: ByteOrder, known: tuple[int, ...]) -> tuple[int, int]:
    """(offset, length) of the data behind the options structure at *options_at*, of one of the *known* lengths."""
    for length_at in (options_at + size for size in known):
        behind = len(data) - length_at - 4
        if behind >= 0 and 0 <= behind - _long(data, length_at, order) < 4:  # padded to a word
            return length_at + 4, _long(data, length_at, order)
    # With the records of a distribution list, or in a version yet unknown, the length is further on: it is the one that
    # reaches to the end of the call.
    for length_at in range(options_at + min(known, default=8), min(len(data) - 3, options_at + OPTIONS_BYTES), 4):
        if _long(data, length_at, order) == len(data) - length_at - 4:
            return length_at + 4, len(data) - length_at - 4
    if not known or options_at + known[0] + 4 > len(data):
        raise ValueError("no length of data behind the options")
    return options_at + known[0] + 4, _long(data, options_at + known[0], order)


def _spi_data(data: bytes, options_at: int, order: ByteOrder) -> tuple[int, int]:
    for struc_id in _SPI_IDS:
        at = data.find(struc_id, options_at, options_at + OPTIONS_BYTES)
        if at >= 0 and at + 20 <= len(data):
            return at + 20, _long(data, at + 16, order)
    raise ValueError("an SPI call without its length of data")


def _descriptor_at(data: bytes | bytearray) -> int | None:
    candidates = _MQMD_ID.finditer(data, API_HEADER_BYTES, API_HEADER_BYTES + OPTIONS_BYTES)
    return next((found.start() for found in candidates if descriptor_length(data, found.start())), None)


def _structure_at(call: MqiCallBytes, struc_ids: tuple[bytes, ...]) -> int | None:
    found = (call.data.find(struc_id, API_HEADER_BYTES, API_HEADER_BYTES + 4096) for struc_id in struc_ids)
    return next((at for at in found if at >= 0), None)


def _async_descriptor_at(data: bytes | bytearray) -> int | None:
    """Offset of the MQMD behind the header of an asynchronous message: sources disagree on the padding of its name."""
    if len(data) < _ASYNC_FIXED_BYTES:
        return None
    end = _ASYNC_FIXED_BYTES + data[_ASYNC_FIXED_BYTES - 1]
    return next((at for at in range(end, end + 5) if descriptor_length(data, at)), None)


def _async_length(call: MqiCallBytes) -> int:
    # TotalMsgLength and ActualMsgLength; they differ where the beginning only was sent.
    return max(call.long(28), call.long(32))


def _long(data: bytes, at: int, order: ByteOrder) -> int:
    return int.from_bytes(data[at : at + 4], order, signed=True)
