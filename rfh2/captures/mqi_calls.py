"""Messages in the MQI calls that a client and a queue manager exchange over a channel (wire formats 6.5).

A call is one or more segments; its first begins with an API header (ReplyLength, always big-endian, CompCode, Reason,
ObjectHandle), the others are bare bytes. Messages are in these:

    MQPUT          MQMD  MQPMO  DataLength  data
    MQPUT1         MQOD  MQMD  MQPMO  DataLength  data
    MQGET_REPLY    MQMD  MQGMO  DataLength  data
    SPI            verb, version, size; MQMD, options; SPPI or SPGO, which ends in the length; data
    ASYNC_MESSAGE  a header of its own instead of the API header; MQMD  data
    MESSAGE_DATA   between queue managers: MQMSH  MQXQH with MQMD version 1  data

What was put is known to be a message when the reply says so: a put is held until its reply, the next call of the same
conversation, or the end; but where the other side was not captured, nothing is waited for. Its queue is that of the
MQOPEN whose reply gave the ObjectHandle, or what the reply's MQPMO says it resolved to. The queue manager's name is in
the INITIAL_DATA, the user in the USERID segment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rfh2.captures.descriptors import descriptor_length
from rfh2.captures.record import MAX_MESSAGE_BYTES
from rfh2.captures.tsh import HEADER_COMPRESSED, MESSAGE_COMPRESSED, Segment
from rfh2.ccsid import ASCII_FIELDS, EBCDIC_FIELDS, ByteOrder
from rfh2.mqmd import name_of

_INITIAL_DATA, _MESSAGE_DATA, _USERID, _ASYNC_MESSAGE = 0x01, 0x04, 0x08, 0x0D
_MQOPEN, _MQPUT, _MQPUT1, _SPI = 0x83, 0x86, 0x87, 0x8C
_REPLY = 0x10  # more than the request's type
_MQOPEN_REPLY, _MQGET_REPLY, _SPI_REPLY = 0x93, 0x95, 0x9C
_CALLS = range(0x80, 0xA0)
_SPANNING = frozenset({_MESSAGE_DATA, _ASYNC_MESSAGE})

_MQCC_WARNING, _MQCC_FAILED = 1, 2
_MQRC_TRUNCATED_MSG_ACCEPTED, _MQRC_TRUNCATED_MSG_FAILED = 2079, 2080

_API_HEADER_BYTES = 16
# Lengths by Version, on the wire, where pointers have four bytes, and as in 64-bit memory.
_MQPMO_BYTES = {1: (128,), 2: (152, 160), 3: (176, 184)}
_MQGMO_BYTES = {1: (72,), 2: (80,), 3: (100,), 4: (112,)}
_MQOD_NAME = slice(12, 60)
_OPTIONS_SEARCH_BYTES = 65_536  # distribution lists, and structures of versions yet unknown
_XQH_BYTES = 104
_MSH_BYTES = 20
_MAX_CALL_BYTES = MAX_MESSAGE_BYTES + _OPTIONS_SEARCH_BYTES + 4096


@dataclass(frozen=True, slots=True)
class Sent:
    """A message on its way. position: of the packet in which its call begins. time: of the one that completes it."""

    position: int
    time: datetime | None
    md: bytes
    body: bytes
    queue: str
    qmgr: str | None
    user: str | None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A call that holds a message which cannot be given, and why."""

    position: int
    why: str


@dataclass(slots=True)
class _Call:
    """The segments of a call so far."""

    first: Segment
    data: bytearray
    time: datetime | None = None


@dataclass(slots=True)
class _Put:
    """A put whose reply has not come."""

    call: _Call
    md: bytes
    body: bytes
    queue: str


@dataclass(slots=True)
class _Conversation:
    """What a conversation's earlier calls say of its later ones."""

    queues: dict[int, str] = field(default_factory=dict)  # by ObjectHandle
    opening: str = ""
    put: _Put | None = None


class Channel:
    """Both directions of one connection; gives the messages in the segments, as these come."""

    def __init__(self) -> None:
        self._qmgr: str | None = None
        self._user: str | None = None
        self._conversations: dict[int, _Conversation] = {}
        self._calls: dict[tuple[int, int, bool], _Call] = {}
        self._heard: set[int] = set()
        self._said_compressed = False

    def take(self, segment: Segment, direction: int, time: datetime | None) -> Iterator[Sent | Unreadable]:
        """Take the next segment of *direction* (0 or 1), completed at *time*."""
        self._heard.add(direction)
        if segment.control2 & (HEADER_COMPRESSED | MESSAGE_COMPRESSED):
            if not self._said_compressed:
                self._said_compressed = True
                yield Unreadable(segment.position, "the channel compresses its messages")
            return
        if segment.kind not in _CALLS and segment.kind not in _SPANNING:
            self._learn(segment)
            return
        key = (direction, segment.conversation, segment.kind == _ASYNC_MESSAGE)
        call = self._calls.get(key)
        if _begins(segment):
            if call is not None:
                yield Unreadable(call.first.position, "another call begins before the last segment of this one")
            call = self._calls[key] = _Call(segment, bytearray(segment.payload))
        elif call is None:
            return  # its beginning was before the capture, or in the bytes whose loss was reported
        else:
            call.data += segment.payload[_ASYNC_CONTINUED_BYTES if segment.kind == _ASYNC_MESSAGE else 0 :]
        call.time = time
        if len(call.data) > _MAX_CALL_BYTES:
            del self._calls[key]
            yield Unreadable(call.first.position, "a call longer than any message can be")
        elif _ends(segment, call):
            del self._calls[key]
            yield from self._completed(call, is_answered=1 - direction in self._heard)

    def lose(self, direction: int) -> bool:
        """Bytes of *direction* are missing: forget what was begun there. Returns whether something was."""
        lost = [key for key in self._calls if key[0] == direction]
        for key in lost:
            del self._calls[key]
        return bool(lost)

    def finish(self) -> Iterator[Sent | Unreadable]:
        """Nothing more comes: give the puts whose replies were not captured, and what was begun."""
        for conversation in self._conversations.values():
            yield from self._settled(conversation)
        for call in self._calls.values():
            yield Unreadable(call.first.position, "the capture ends before the last segment of this call")
        self._calls.clear()

    def _learn(self, segment: Segment) -> None:
        """Note names out of segments that hold no message."""
        data = segment.payload
        if segment.kind == _INITIAL_DATA and len(data) >= 96:
            self._qmgr = _name(data[48:96], segment) or self._qmgr
        elif segment.kind == _USERID and len(data) >= 28:
            long_name = _name(data[28:92], segment) if len(data) >= 92 else ""
            self._user = long_name or _name(data[4:16], segment) or self._user

    def _completed(self, call: _Call, *, is_answered: bool) -> Iterator[Sent | Unreadable]:
        kind = call.first.kind
        conversation = self._conversations.setdefault(call.first.conversation, _Conversation())
        if kind == _MESSAGE_DATA:
            yield _transmitted(call)
            return
        if kind == _ASYNC_MESSAGE:
            yield from self._asynchronous(call, conversation)
            return
        if len(call.data) < _API_HEADER_BYTES:
            return
        order = call.first.order
        comp_code, reason, handle = (_long(call.data, at, order) for at in (4, 8, 12))
        if conversation.put is not None and kind == conversation.put.call.first.kind + _REPLY:
            yield from self._settled(conversation, call, comp_code, reason)
        else:
            yield from self._settled(conversation)
        if kind in (_MQPUT, _MQPUT1, _SPI):
            yield from self._put(call, conversation, handle)
            if not is_answered:
                yield from self._settled(conversation)
        elif kind in (_MQOPEN_REPLY, _SPI_REPLY) and comp_code != _MQCC_FAILED and conversation.opening:
            conversation.queues[handle] = _object_name(call) or conversation.opening
            conversation.opening = ""
        elif kind in (_MQGET_REPLY, _SPI_REPLY) and comp_code != _MQCC_FAILED:
            yield from self._got(call, conversation, reason, handle)
        if kind in (_MQOPEN, _SPI):
            conversation.opening = _object_name(call)

    def _put(self, call: _Call, conversation: _Conversation, handle: int) -> Iterator[Unreadable]:
        if call.first.kind == _SPI and not _holds_spi_message(call):
            return
        try:
            md, body, _ = _message(call, _MQPMO_BYTES)
        except ValueError as error:
            yield Unreadable(call.first.position, str(error))
            return
        queue = _object_name(call) if call.first.kind == _MQPUT1 else conversation.queues.get(handle, "")
        conversation.put = _Put(call, md, body, queue)

    def _settled(
        self, conversation: _Conversation, reply: _Call | None = None, comp_code: int = 0, reason: int = 0
    ) -> Iterator[Sent | Unreadable]:
        put, conversation.put = conversation.put, None
        if put is None:
            return
        if comp_code == _MQCC_FAILED:
            yield Unreadable(put.call.first.position, f"the queue manager refused this message with reason {reason}")
            return
        queue = (_resolved_queue(reply) if reply is not None else "") or put.queue
        blank = not _name(put.md[196:208], put.call.first)
        user = self._user if blank else None
        yield Sent(put.call.first.position, put.call.time, put.md, put.body, queue, self._qmgr, user)

    def _got(self, call: _Call, conversation: _Conversation, reason: int, handle: int) -> Iterator[Sent | Unreadable]:
        if reason == _MQRC_TRUNCATED_MSG_FAILED or (call.first.kind == _SPI_REPLY and not _holds_spi_message(call)):
            return
        if reason == _MQRC_TRUNCATED_MSG_ACCEPTED:
            yield Unreadable(call.first.position, "the application took only the beginning of this message (2079)")
            return
        try:
            md, body, options = _message(call, _MQGMO_BYTES)
        except ValueError as error:
            yield Unreadable(call.first.position, str(error))
            return
        queue = _name(options[24:72], call.first) if len(options) >= 72 else ""
        queue = queue or conversation.queues.get(handle, "")
        yield Sent(call.first.position, call.time, md, body, queue, self._qmgr, None)

    def _asynchronous(self, call: _Call, conversation: _Conversation) -> Iterator[Sent | Unreadable]:
        data, order, first = bytes(call.data), call.first.order, call.first
        if len(data) < _ASYNC_FIXED_BYTES:
            yield Unreadable(first.position, "the header of an asynchronous message is cut")
            return
        handle, reason = _long(data, 4, order), _long(data, 24, order)
        name_end = _ASYNC_FIXED_BYTES + data[_ASYNC_FIXED_BYTES - 1]
        at = _async_descriptor_at(data)
        if reason == _MQRC_TRUNCATED_MSG_FAILED or (at is None and reason != 0):
            return  # the queue keeps the message, or there is none
        if at is None:
            yield Unreadable(first.position, "an asynchronous message without an MQMD")
            return
        body_at = at + (descriptor_length(data, at) or 0)
        length = max(_long(data, 28, order), _long(data, 32, order))
        if reason == _MQRC_TRUNCATED_MSG_ACCEPTED or len(data) - at < length or len(data) < body_at:
            yield Unreadable(first.position, f"only {max(0, len(data) - body_at)} of {length} bytes of data were sent")
            return
        body = data[body_at:]
        if 0 < len(body) - length < 4:
            body = body[:length]  # padded to a word
        queue = _name(data[_ASYNC_FIXED_BYTES:name_end], first) or conversation.queues.get(handle, "")
        yield Sent(first.position, call.time, data[at:body_at], body, queue, self._qmgr, None)


_ASYNC_FIXED_BYTES = 55
_ASYNC_CONTINUED_BYTES = 24
_SPI_LENGTHS = tuple(name.encode(charset) for name in ("SPPI", "SPGO") for charset in ("ascii", EBCDIC_FIELDS))
_DESCRIPTOR_ID = re.compile(b"MD  |" + re.escape("MD  ".encode(EBCDIC_FIELDS)))
_MESSAGE_HEADER_IDS = (b"MSH ", "MSH ".encode(EBCDIC_FIELDS))
_OBJECT_IDS = (b"OD  ", "OD  ".encode(EBCDIC_FIELDS))
_PUT_OPTIONS_IDS = (b"PMO ", "PMO ".encode(EBCDIC_FIELDS))


def _begins(segment: Segment) -> bool:
    """Whether *segment* is the first of its call; those of asynchronous messages are numbered besides."""
    if segment.kind == _ASYNC_MESSAGE:
        return int.from_bytes(segment.payload[20:22], segment.order) == 0
    return segment.is_first or (segment.kind == _MESSAGE_DATA and segment.payload[:4] in _MESSAGE_HEADER_IDS)


def _ends(segment: Segment, call: _Call) -> bool:
    if segment.is_last or segment.kind not in _SPANNING or call.first.is_first:
        return segment.is_last
    if segment.kind == _MESSAGE_DATA:
        return True
    # Without flags the lengths say whether all is there.
    at = _async_descriptor_at(call.data)
    if at is None:
        return True
    length = max(_long(call.data, 28, segment.order), _long(call.data, 32, segment.order))
    return len(call.data) >= at + (descriptor_length(call.data, at) or 0) + length


def _async_descriptor_at(data: bytes | bytearray) -> int | None:
    """Offset of the MQMD behind the header of an asynchronous message: sources disagree on the padding of its name."""
    if len(data) < _ASYNC_FIXED_BYTES:
        return None
    end = _ASYNC_FIXED_BYTES + data[_ASYNC_FIXED_BYTES - 1]
    return next((at for at in range(end, end + 5) if descriptor_length(data, at)), None)


def _message(call: _Call, lengths: Mapping[int, tuple[int, ...]]) -> tuple[bytes, bytes, bytes]:
    """(MQMD, data, options structure) of a call that holds a message. Raises ValueError."""
    data, order = bytes(call.data), call.first.order
    at = _descriptor_at(data)
    if at is None:
        raise ValueError("a call that should hold a message has no MQMD")
    options_at = at + (descriptor_length(data, at) or 0)
    if len(data) < options_at:
        raise ValueError("the MQMD is cut")
    md = data[at:options_at]
    start, length = (
        _spi_data(data, options_at, order)
        if call.first.kind in (_SPI, _SPI_REPLY)
        else _data(data, options_at, order, lengths)
    )
    if length < 0 or len(data) - start < length:
        raise ValueError(f"{max(0, len(data) - start)} of {length} bytes of data are there")
    return md, data[start : start + length], data[options_at:start]


def _data(data: bytes, options_at: int, order: ByteOrder, lengths: Mapping[int, tuple[int, ...]]) -> tuple[int, int]:
    """(offset, length) of the data behind the options structure at *options_at*."""
    version = _long(data, options_at + 4, order) if len(data) >= options_at + 8 else 0
    known = lengths.get(version, ())
    for length_at in (options_at + size for size in known):
        behind = len(data) - length_at - 4
        if behind >= 0 and 0 <= behind - _long(data, length_at, order) < 4:  # padded to a word
            return length_at + 4, _long(data, length_at, order)
    # With the records of a distribution list, or in a version yet unknown, the length is further on: it is the one that
    # reaches to the end of the call.
    for length_at in range(
        options_at + min(known, default=8), min(len(data) - 3, options_at + _OPTIONS_SEARCH_BYTES), 4
    ):
        if _long(data, length_at, order) == len(data) - length_at - 4:
            return length_at + 4, len(data) - length_at - 4
    if not known or options_at + known[0] + 4 > len(data):
        raise ValueError("no length of data behind the options")
    length_at = options_at + known[0]
    return length_at + 4, _long(data, length_at, order)


def _spi_data(data: bytes, options_at: int, order: ByteOrder) -> tuple[int, int]:
    for struc_id in _SPI_LENGTHS:
        at = data.find(struc_id, options_at, options_at + _OPTIONS_SEARCH_BYTES)
        if at >= 0 and at + 20 <= len(data):
            return at + 20, _long(data, at + 16, order)
    raise ValueError("an SPI call without its length of data")


def _holds_spi_message(call: _Call) -> bool:
    return _descriptor_at(bytes(call.data)) is not None and any(name in call.data for name in _SPI_LENGTHS)


def _descriptor_at(data: bytes) -> int | None:
    end = _API_HEADER_BYTES + _OPTIONS_SEARCH_BYTES
    return next(
        (
            m.start()
            for m in _DESCRIPTOR_ID.finditer(data, _API_HEADER_BYTES, end)
            if descriptor_length(data, m.start())
        ),
        None,
    )


def _transmitted(call: _Call) -> Sent | Unreadable:
    """The message that a sender channel passes on."""
    data, first = bytes(call.data), call.first
    at = _MSH_BYTES + _XQH_BYTES
    length = descriptor_length(data, at)
    if length is None or len(data) < at + length:
        return Unreadable(first.position, "a message between queue managers without its MQXQH and MQMD")
    body_at = at + length
    names = data[_MSH_BYTES + 8 : at]
    queue, qmgr = _name(names[:48], first), _name(names[48:96], first) or None
    return Sent(first.position, call.time, data[at:body_at], data[body_at:], queue, qmgr, None)


def _object_name(call: _Call) -> str:
    """ObjectName of the MQOD in *call*, or nothing."""
    data = bytes(call.data[: _API_HEADER_BYTES + 4096])
    for struc_id in _OBJECT_IDS:
        at = data.find(struc_id, _API_HEADER_BYTES)
        if at >= 0:
            return _name(data[at:][_MQOD_NAME], call.first)
    return ""


def _resolved_queue(reply: _Call) -> str:
    """ResolvedQName of the MQPMO in *reply*, or nothing."""
    data = bytes(reply.data[: _API_HEADER_BYTES + 4096])
    for struc_id in _PUT_OPTIONS_IDS:
        at = data.find(struc_id, _API_HEADER_BYTES)
        if at >= 0:
            return _name(data[at + 32 : at + 80], reply.first)
    return ""


def _name(data: bytes, segment: Segment) -> str:
    return name_of(data.decode(EBCDIC_FIELDS if segment.is_ebcdic else ASCII_FIELDS))


def _long(data: bytes | bytearray, at: int, order: ByteOrder) -> int:
    return int.from_bytes(data[at : at + 4], order, signed=True)
