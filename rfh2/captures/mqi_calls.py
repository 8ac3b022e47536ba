"""Messages in the MQI calls that a client and a queue manager, or two of these, exchange over a channel.

What was put is known to be a message when the reply says so: a put is held until its reply, the next call of the same
conversation, or the end; but where the other side was not captured, nothing is waited for. Its queue is that of the
MQOPEN whose reply gave the ObjectHandle, or what the reply's MQPMO says it resolved to. The queue manager's name is in
the INITIAL_DATA, the user in the USERID segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from rfh2.captures.mqi_structures import (
    API_HEADER_BYTES,
    ASYNC_MESSAGE_TYPE,
    MESSAGE_DATA,
    MQGET_REPLY,
    MQOPEN,
    MQOPEN_REPLY,
    MQPUT1,
    OPTIONS_BYTES,
    PUTS,
    SPI_CALL,
    SPI_REPLY,
    FoundMessage,
    MqiCallBytes,
    async_handle_and_reason,
    async_message,
    begins,
    ends,
    got_message,
    holds_spi_message,
    object_name,
    put_message,
    qmgr_of,
    resolved_queue,
    transmitted_message,
    user_of,
)
from rfh2.captures.record import MAX_MESSAGE_BYTES
from rfh2.captures.tsh import Segment
from rfh2.channel.segments import HEADER_COMPRESSED, MESSAGE_COMPRESSED, REPLY, SegmentType
from rfh2.errors import DecodeError
from rfh2.mqi_constants import MQCC_FAILED, MQRC_TRUNCATED_MSG_ACCEPTED, MQRC_TRUNCATED_MSG_FAILED
from rfh2.mqmd import Mqmd, name_of

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
