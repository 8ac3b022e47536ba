"""Messages in the MQI calls that a client and a queue manager, or two of these, exchange over a channel.

What was put is known to be a message when the reply says so: a put is held until its reply, the next call of the same
conversation, or the end; but where the other side was not captured, nothing is waited for. Its queue is that of the
MQOPEN whose reply gave the ObjectHandle, or what the reply's MQPMO says it resolved to. The queue manager's name is in
the INITIAL_DATA, the user in the USERID segment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from rfh2.captures.record import MAX_MESSAGE_BYTES
from rfh2.captures.tsh import Segment
from rfh2.ccsid import ASCII_FIELDS, EBCDIC_FIELDS, ByteOrder
from rfh2.channel import layouts
from rfh2.channel.segments import HEADER_COMPRESSED, MESSAGE_COMPRESSED, REPLY, SegmentType
from rfh2.errors import DecodeError
from rfh2.layouts import MQXQH
from rfh2.mqi_constants import MQCC_FAILED, MQRC_TRUNCATED_MSG_ACCEPTED, MQRC_TRUNCATED_MSG_FAILED
from rfh2.mqmd import Mqmd, descriptor_length, name_of

# Where the message is in the bytes of one MQI call on a channel (wire formats 6.5).
#
# A call is one or more segments; its first begins with an API header (ReplyLength, always big-endian, CompCode, Reason,
# ObjectHandle), the others are bare bytes. Messages are in these:
#
#     MQPUT          MQMD  MQPMO  DataLength  data
#     MQPUT1         MQOD  MQMD  MQPMO  DataLength  data
#     MQGET_REPLY    MQMD  MQGMO  DataLength  data
#     SPI            verb, version, size; MQMD, options; SPPI or SPGO, which ends in the length; data
#     ASYNC_MESSAGE  a header of its own instead of the API header; MQMD  data
#     MESSAGE_DATA   between queue managers: MQMSH  MQXQH with MQMD version 1  data

API_HEADER_BYTES = layouts.API_HEADER.size
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
_MQPMO_BYTES = {version: (pmo.size, pmo.size + 8)[: min(version, 2)] for version, pmo in layouts.MQPMO.items()}
_MQGMO_BYTES = {version: (gmo.size,) for version, gmo in layouts.MQGMO.items()}
_NAME_BYTES, _LONG_USER_BYTES, _USER_BYTES = 48, 64, 12
_MQOD_OBJECT_NAME = layouts.MQOD[1].offset("ObjectName")
_MQPMO_RESOLVED_Q, _MQGMO_RESOLVED_Q = (
    layouts.MQPMO[1].offset("ResolvedQName"),
    layouts.MQGMO[1].offset("ResolvedQName"),
)
_COMP_CODE, _REASON, _HANDLE = (layouts.API_HEADER.offset(name) for name in ("CompCode", "Reason", "ObjectHandle"))
_REMOTE_Q, _REMOTE_QMGR = (layouts.MQMSH.size + MQXQH.offset(name) for name in ("RemoteQName", "RemoteQMgrName"))
_QMGR_NAME = layouts.ID_BEGIN.size + layouts.ID_MORE.offset("QMgrName")
_USER, _LONG_USER = layouts.UID.offset("UserIdentifier"), layouts.UID_LONG.offset("LongUserIdentifier")
_ASYNC_HANDLE, _ASYNC_REASON = layouts.ASYNC_MESSAGE.offset("ObjectHandle"), layouts.ASYNC_MESSAGE.offset("Reason")
_ASYNC_TOTAL, _ASYNC_ACTUAL = (
    layouts.ASYNC_MESSAGE.offset("TotalMsgLength"),
    layouts.ASYNC_MESSAGE.offset("ActualMsgLength"),
)
_SEGMENT_INDEX = slice(layouts.ASYNC_MESSAGE.offset("SegmentIndex"), layouts.ASYNC_MESSAGE.offset("SelectionIndex"))
_SPI_LENGTH = layouts.SPI_DATA.offset("DataLength")


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
        self.data += segment.payload[layouts.ASYNC_CONTINUED_BYTES if segment.kind == ASYNC_MESSAGE_TYPE else 0 :]

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
    at = layouts.MQMSH.size + MQXQH.size
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
    if len(call.data) < layouts.ASYNC_MESSAGE.size:
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
    return FoundMessage(
        data[at:body_at], body, call.name(layouts.ASYNC_MESSAGE.size, data[layouts.ASYNC_MESSAGE.size - 1])
    )


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
        if at >= 0 and at + layouts.SPI_DATA.size <= len(data):
            return at + layouts.SPI_DATA.size, _long(data, at + _SPI_LENGTH, order)
    raise ValueError("an SPI call without its length of data")


def _descriptor_at(data: bytes | bytearray) -> int | None:
    candidates = _MQMD_ID.finditer(data, API_HEADER_BYTES, API_HEADER_BYTES + OPTIONS_BYTES)
    return next((found.start() for found in candidates if descriptor_length(data, found.start())), None)


def _structure_at(call: MqiCallBytes, struc_ids: tuple[bytes, ...]) -> int | None:
    found = (call.data.find(struc_id, API_HEADER_BYTES, API_HEADER_BYTES + 4096) for struc_id in struc_ids)
    return next((at for at in found if at >= 0), None)


def _async_descriptor_at(data: bytes | bytearray) -> int | None:
    """Offset of the MQMD behind the header of an asynchronous message: sources disagree on the padding of its name."""
    if len(data) < layouts.ASYNC_MESSAGE.size:
        return None
    end = layouts.ASYNC_MESSAGE.size + data[layouts.ASYNC_MESSAGE.size - 1]
    return next((at for at in range(end, end + 5) if descriptor_length(data, at)), None)


def _async_length(call: MqiCallBytes) -> int:
    # TotalMsgLength and ActualMsgLength; they differ where the beginning only was sent.
    return max(call.long(_ASYNC_TOTAL), call.long(_ASYNC_ACTUAL))


def _long(data: bytes, at: int, order: ByteOrder) -> int:
    return int.from_bytes(data[at : at + 4], order, signed=True)


_CALLS = range(0x80, 0xA0)
_SPANNING = frozenset({*_CALLS, MESSAGE_DATA, ASYNC_MESSAGE_TYPE})
_OPENS = frozenset({MQOPEN, SPI_CALL})
_OPEN_REPLIES = frozenset({MQOPEN_REPLY, SPI_REPLY})
_MAX_CALL_BYTES = MAX_MESSAGE_BYTES + OPTIONS_BYTES + 4096

# Conversation, and whether it is an asynchronous message, which other calls may come between.
_CallKey = tuple[int, bool]
_TRUNCATED = "the application took only the beginning of this message (2079)"


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message on its way. position: of the packet in which its call begins. time: of the one that completes it."""

    position: int
    time: datetime | None
    found: FoundMessage
    queue: str
    qmgr: str | None
    user: str | None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A call with a message that cannot be read, and the reason."""

    position: int
    why: str


@dataclass(slots=True)
class _Conversation:
    """The results of earlier calls of a conversation that later ones need."""

    queues: dict[int, str] = field(default_factory=dict)  # by ObjectHandle
    opening: str = ""
    put: tuple[MqiCallBytes, FoundMessage, str] | None = None  # that waits for its reply, and its queue


class Channel:
    """Both directions of one connection; gives the messages in the segments, as these come."""

    def __init__(self) -> None:
        self._qmgr: str | None = None
        self._user: str | None = None
        self._conversations: dict[int, _Conversation] = {}
        self._calls: tuple[dict[_CallKey, MqiCallBytes], dict[_CallKey, MqiCallBytes]] = (
            {},
            {},
        )  # begun, of each direction
        self._heard: set[int] = set()
        self._said_compressed = False

    def take(self, segment: Segment, direction: int, time: datetime | None) -> Iterator[SentMessage | Unreadable]:
        """Take the next segment of *direction* (0 or 1), completed at *time*."""
        self._heard.add(direction)
        if segment.header.flags2 & (HEADER_COMPRESSED | MESSAGE_COMPRESSED):
            if not self._said_compressed:
                self._said_compressed = True
                yield Unreadable(segment.position, "the channel compresses its messages")
            return
        if segment.kind not in _SPANNING:
            self._learn(MqiCallBytes.begun(segment))
            return
        calls, key = self._calls[direction], (segment.conversation, segment.kind == ASYNC_MESSAGE_TYPE)
        call = calls.get(key)
        if begins(segment):
            if call is not None:
                yield Unreadable(call.first.position, "another call begins before the last segment of this one")
            call = calls[key] = MqiCallBytes.begun(segment)
        elif call is None:
            return  # its beginning was before the capture, or in the bytes whose loss was reported
        else:
            call.add(segment)
        call.time = time
        if len(call.data) > _MAX_CALL_BYTES:
            del calls[key]
            yield Unreadable(call.first.position, "a call longer than any message can be")
        elif ends(segment, call):
            del calls[key]
            yield from self._completed(call, is_answered=1 - direction in self._heard)

    def lose(self, direction: int) -> None:
        """Bytes of *direction* are missing: forget what was begun there."""
        self._calls[direction].clear()

    def finish(self) -> Iterator[SentMessage | Unreadable]:
        """The end of the connection: give the puts whose replies were not captured, and calls that are not complete."""
        for conversation in self._conversations.values():
            yield from self._finished_put(conversation)
        for call in sorted(self._unfinished(), key=lambda call: call.first.position):
            yield Unreadable(call.first.position, "the capture ends before the last segment of this call")

    def _unfinished(self) -> Iterator[MqiCallBytes]:
        for calls in self._calls:
            yield from calls.values()
            calls.clear()

    def _learn(self, call: MqiCallBytes) -> None:
        """Note names out of segments that hold no message."""
        if call.first.kind == SegmentType.INITIAL_DATA:
            self._qmgr = qmgr_of(call) or self._qmgr
        elif call.first.kind == SegmentType.USERID:
            self._user = user_of(call) or self._user

    def _completed(self, call: MqiCallBytes, *, is_answered: bool) -> Iterator[SentMessage | Unreadable]:
        conversation = self._conversations.setdefault(call.first.conversation, _Conversation())
        try:
            if call.first.kind == MESSAGE_DATA:
                message = transmitted_message(call)
                yield SentMessage(call.first.position, call.time, message, message.queue, message.qmgr, None)
            elif call.first.kind == ASYNC_MESSAGE_TYPE:
                yield from self._asynchronous(call, conversation)
            elif len(call.data) >= API_HEADER_BYTES:
                yield from self._called(call, conversation, is_answered=is_answered)
        except ValueError as error:
            yield Unreadable(call.first.position, str(error))

    def _called(
        self, call: MqiCallBytes, conversation: _Conversation, *, is_answered: bool
    ) -> Iterator[SentMessage | Unreadable]:
        kind, handle = call.first.kind, call.handle
        if conversation.put is not None and kind == conversation.put[0].first.kind + REPLY:
            yield from self._finished_put(conversation, call)
        else:
            yield from self._finished_put(conversation)
        if kind in PUTS or (kind == SPI_CALL and holds_spi_message(call)):
            queue = object_name(call) if kind == MQPUT1 else conversation.queues.get(handle, "")
            conversation.put = (call, put_message(call), queue)
            if not is_answered:
                yield from self._finished_put(conversation)
        elif kind in _OPENS:
            conversation.opening = object_name(call)
        elif call.comp_code == MQCC_FAILED:
            conversation.opening = ""
        elif kind in _OPEN_REPLIES and conversation.opening:
            # The reply has the name of a dynamic queue that a model queue became.
            conversation.queues[handle] = object_name(call) or conversation.opening
            conversation.opening = ""
        elif kind == MQGET_REPLY or (kind == SPI_REPLY and holds_spi_message(call)):
            yield from self._got(call, conversation)

    def _finished_put(
        self, conversation: _Conversation, reply: MqiCallBytes | None = None
    ) -> Iterator[SentMessage | Unreadable]:
        """The put that waits in *conversation*, if any, now that its *reply* is there or will not come."""
        if conversation.put is None:
            return
        (call, message, queue), conversation.put = conversation.put, None
        if reply is not None and reply.comp_code == MQCC_FAILED:
            why = f"the queue manager refused this message with reason {reply.reason}"
            yield Unreadable(call.first.position, why)
            return
        resolved = resolved_queue(reply) if reply is not None else ""
        user = None if _names_user(message.md) else self._user
        yield SentMessage(call.first.position, call.time, message, resolved or queue, self._qmgr, user)

    def _got(self, call: MqiCallBytes, conversation: _Conversation) -> Iterator[SentMessage | Unreadable]:
        reason = call.reason
        if reason == MQRC_TRUNCATED_MSG_FAILED:
            return  # the queue keeps the message
        if reason == MQRC_TRUNCATED_MSG_ACCEPTED:
            raise ValueError(_TRUNCATED)
        message = got_message(call)
        queue = message.queue or conversation.queues.get(call.handle, "")
        yield SentMessage(call.first.position, call.time, message, queue, self._qmgr, None)

    def _asynchronous(self, call: MqiCallBytes, conversation: _Conversation) -> Iterator[SentMessage]:
        handle, reason = async_handle_and_reason(call)
        if reason == MQRC_TRUNCATED_MSG_FAILED:
            return
        if reason == MQRC_TRUNCATED_MSG_ACCEPTED:
            raise ValueError(_TRUNCATED)
        message = async_message(call)
        if message is not None:
            queue = message.queue or conversation.queues.get(handle, "")
            yield SentMessage(call.first.position, call.time, message, queue, self._qmgr, None)


def _names_user(md: bytes) -> bool:
    try:
        return bool(name_of(Mqmd.decode(md).user_identifier))
    except DecodeError:
        return False
