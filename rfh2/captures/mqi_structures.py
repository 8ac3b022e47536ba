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

from rfh2.captures.tsh import Segment
from rfh2.ccsid import ASCII_FIELDS, EBCDIC_FIELDS, ByteOrder
from rfh2.channel.layouts import (
    API_HEADER,
    ASYNC_CONTINUED_BYTES,
    ASYNC_MESSAGE,
    ID_BEGIN,
    ID_MORE,
    MQGMO,
    MQMSH,
    MQOD,
    MQPMO,
    SPI_DATA,
    UID,
    UID_LONG,
)
from rfh2.channel.segments import REPLY, SegmentType
from rfh2.layouts import MQXQH
from rfh2.mqmd import descriptor_length, name_of

API_HEADER_BYTES = API_HEADER.size
# What may stand between the API header and the data: distribution lists, structures of versions yet unknown.
OPTIONS_BYTES = 65_536

# As plain numbers: these are compared several times for each segment, and an enumeration's take five times as long.
MESSAGE_DATA, ASYNC_MESSAGE_TYPE = SegmentType.MESSAGE_DATA.value, SegmentType.ASYNC_MESSAGE.value
MQOPEN, MQPUT, MQPUT1, SPI_CALL = (
    each.value for each in (SegmentType.MQOPEN, SegmentType.MQPUT, SegmentType.MQPUT1, SegmentType.SPI)
)
MQOPEN_REPLY, MQGET_REPLY, SPI_REPLY = MQOPEN + REPLY, SegmentType.MQGET.value + REPLY, SPI_CALL + REPLY
PUTS = frozenset({MQPUT, MQPUT1})
_NOT_CALLS = frozenset({MESSAGE_DATA, ASYNC_MESSAGE_TYPE})
# Lengths by Version, on the wire, where pointers have four bytes, and as in 64-bit memory, where the two have eight.
_MQPMO_BYTES = {version: (pmo.size, pmo.size + 8)[: min(version, 2)] for version, pmo in MQPMO.items()}
_MQGMO_BYTES = {version: (gmo.size,) for version, gmo in MQGMO.items()}
_NAME_BYTES, _LONG_USER_BYTES, _USER_BYTES = 48, 64, 12
_MQOD_OBJECT_NAME = MQOD[1].offset("ObjectName")
_MQPMO_RESOLVED_Q, _MQGMO_RESOLVED_Q = MQPMO[1].offset("ResolvedQName"), MQGMO[1].offset("ResolvedQName")
_COMP_CODE, _REASON, _HANDLE = (API_HEADER.offset(name) for name in ("CompCode", "Reason", "ObjectHandle"))
_REMOTE_Q, _REMOTE_QMGR = (MQMSH.size + MQXQH.offset(name) for name in ("RemoteQName", "RemoteQMgrName"))
_QMGR_NAME = ID_BEGIN.size + ID_MORE.offset("QMgrName")
_USER, _LONG_USER = UID.offset("UserIdentifier"), UID_LONG.offset("LongUserIdentifier")
_ASYNC_HANDLE, _ASYNC_REASON = ASYNC_MESSAGE.offset("ObjectHandle"), ASYNC_MESSAGE.offset("Reason")
_ASYNC_TOTAL, _ASYNC_ACTUAL = ASYNC_MESSAGE.offset("TotalMsgLength"), ASYNC_MESSAGE.offset("ActualMsgLength")
_SEGMENT_INDEX = slice(ASYNC_MESSAGE.offset("SegmentIndex"), ASYNC_MESSAGE.offset("SelectionIndex"))
_SPI_LENGTH = SPI_DATA.offset("DataLength")


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
        self.data += segment.payload[ASYNC_CONTINUED_BYTES if segment.kind == ASYNC_MESSAGE_TYPE else 0 :]

    @property
    def comp_code(self) -> int:
        """CompCode of its API header."""
        return self.long(_COMP_CODE)

    @property
    def reason(self) -> int:
        """Reason of its API header."""
        return self.long(_REASON)

    @property
    def handle(self) -> int:
        """ObjectHandle of its API header."""
        return self.long(_HANDLE)

    def long(self, at: int) -> int:
        """The MQLONG at *at*."""
        return int.from_bytes(self.data[at : at + 4], self.first.order, signed=True)

    def name(self, at: int, length: int = _NAME_BYTES) -> str:
        """The name in the character field at *at*."""
        return name_of(str(self.data[at : at + length], self.first.header.charset))


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message in a call. queue: as the call names it, or nothing."""

    md: bytes
    body: bytes
    queue: str = ""
    qmgr: str | None = None


def begins(segment: Segment) -> bool:
    """Whether *segment* is the first of its call; those of asynchronous messages are numbered besides."""
    if segment.kind == ASYNC_MESSAGE_TYPE:
        return int.from_bytes(segment.payload[_SEGMENT_INDEX], segment.order) == 0
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


def qmgr_of(call: MqiCallBytes) -> str:
    """The queue manager that an INITIAL_DATA names, or nothing."""
    return call.name(_QMGR_NAME)


def user_of(call: MqiCallBytes) -> str:
    """The user that a USERID names: by the long identifier, which older clients do not send, or the short one."""
    return call.name(_LONG_USER, _LONG_USER_BYTES) or call.name(_USER, _USER_BYTES)


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
    at = MQMSH.size + MQXQH.size
    length = descriptor_length(call.data, at)
    if length is None or len(call.data) < at + length:
        raise ValueError("a message between queue managers without its MQXQH and MQMD")
    data = bytes(call.data)
    queue, qmgr = call.name(_REMOTE_Q), call.name(_REMOTE_QMGR)
    return FoundMessage(data[at : at + length], data[at + length :], queue, qmgr or None)


def async_handle_and_reason(call: MqiCallBytes) -> tuple[int, int]:
    """ObjectHandle and Reason of an asynchronous message."""
    return call.long(_ASYNC_HANDLE), call.long(_ASYNC_REASON)


def async_message(call: MqiCallBytes) -> FoundMessage | None:
    """The asynchronous message in *call*, or None where it only says that there is none. Raises ValueError."""
    if len(call.data) < ASYNC_MESSAGE.size:
        raise ValueError("the header of an asynchronous message is cut")
    at = _async_descriptor_at(call.data)
    if at is None:
        if call.long(_ASYNC_REASON) != 0:
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
    return FoundMessage(data[at:body_at], body, call.name(ASYNC_MESSAGE.size, data[ASYNC_MESSAGE.size - 1]))


def _message(call: MqiCallBytes) -> tuple[FoundMessage, int]:
    """The message in *call*, and where the structure behind its MQMD begins. Raises ValueError."""
    data, order = bytes(call.data), call.first.order
    at = _descriptor_at(data)
    if at is None:
        raise ValueError("a call that should hold a message has no MQMD")
    options_at = at + (descriptor_length(data, at) or 0)
    if len(data) < options_at:
        raise ValueError("the MQMD is cut")
    if call.first.kind in (SPI_CALL, SPI_REPLY):
        start, length = _spi_data(data, options_at, order)
    else:
        lengths = _MQPMO_BYTES if call.first.kind in PUTS else _MQGMO_BYTES
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
        raise ValueError("no length of data after the options")
    return options_at + known[0] + 4, _long(data, options_at + known[0], order)


def _spi_data(data: bytes, options_at: int, order: ByteOrder) -> tuple[int, int]:
    for struc_id in _SPI_IDS:
        at = data.find(struc_id, options_at, options_at + OPTIONS_BYTES)
        if at >= 0 and at + SPI_DATA.size <= len(data):
            return at + SPI_DATA.size, _long(data, at + _SPI_LENGTH, order)
    raise ValueError("an SPI call without its length of data")


def _descriptor_at(data: bytes | bytearray) -> int | None:
    candidates = _MQMD_ID.finditer(data, API_HEADER_BYTES, API_HEADER_BYTES + OPTIONS_BYTES)
    return next((found.start() for found in candidates if descriptor_length(data, found.start())), None)


def _structure_at(call: MqiCallBytes, struc_ids: tuple[bytes, ...]) -> int | None:
    found = (call.data.find(struc_id, API_HEADER_BYTES, API_HEADER_BYTES + 4096) for struc_id in struc_ids)
    return next((at for at in found if at >= 0), None)


def _async_descriptor_at(data: bytes | bytearray) -> int | None:
    """Offset of the MQMD behind the header of an asynchronous message: sources disagree on the padding of its name."""
    if len(data) < ASYNC_MESSAGE.size:
        return None
    end = ASYNC_MESSAGE.size + data[ASYNC_MESSAGE.size - 1]
    return next((at for at in range(end, end + 5) if descriptor_length(data, at)), None)


def _async_length(call: MqiCallBytes) -> int:
    # TotalMsgLength and ActualMsgLength; they differ where the beginning only was sent.
    return max(call.long(_ASYNC_TOTAL), call.long(_ASYNC_ACTUAL))


def _long(data: bytes, at: int, order: ByteOrder) -> int:
    return int.from_bytes(data[at : at + 4], order, signed=True)
