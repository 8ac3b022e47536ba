"""The segments of one connection, from bytes to what they say, without a socket.

``receive`` takes bytes as they come, and gives what is complete: the reply to a call, a message, a notification. A
heartbeat is answered into ``outgoing``. What nobody asked for is refused: so a queue manager that sends on and on, or
more than it said, ends the connection, and nothing grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from commands.client.errors import ProtocolError
from rfh2.channel.heartbeats import heartbeat
from rfh2.channel.layouts import API_HEADER, ASYNC_CONTINUED_BYTES, ASYNC_MESSAGE, NOTIFICATION
from rfh2.channel.segments import (
    CONFIRM,
    FIRST,
    LAST,
    PREFIX_BYTES,
    REPLY,
    WHOLE,
    SegmentHeader,
    SegmentType,
    Structure,
    read_header,
    segment_length,
    type_name,
)
from rfh2.layouts import MQMD1, MQMD2

_MARGIN_BYTES: Final = 65_536
"""A reply may be so much longer than the longest message: structures, strings."""
_FIRST_REPLY: Final = SegmentType.MQCONN + REPLY
_CONTROL: Final = frozenset({SegmentType.INITIAL_DATA, SegmentType.SOCKET_ACTION, SegmentType.STATUS})


class Control(NamedTuple):
    """INITIAL_DATA, SOCKET_ACTION or STATUS."""

    header: SegmentHeader
    payload: bytes


class Reply(NamedTuple):
    """What a call gives. body: behind the API header."""

    header: SegmentHeader
    comp_code: int
    reason: int
    handle: int
    body: bytes


class Streamed(NamedTuple):
    """A message, or the reason why there is none. length: of all of its data.

    number: which one it is, of those of the connection.
    """

    header: SegmentHeader
    handle: int
    reason: int
    md: bytes
    body: bytes
    length: int
    token: bytes
    number: int
    queue: str


class Notified(NamedTuple):
    """A NOTIFICATION."""

    header: SegmentHeader
    handle: int
    code: int
    value: int


Event = Control | Reply | Streamed | Notified


@dataclass(slots=True)
class _Parts:
    """A call or message of which a part came. whole: its length, as the first segment says; None: not known."""

    header: SegmentHeader
    data: bytearray
    first: Structure | None = None
    md: bytes = b""
    queue: str = ""
    index: int = 0


class Flow:
    """What comes on one connection. longest: bytes of a message."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self.outgoing = bytearray()
        self.latest = SegmentHeader(SegmentType.INITIAL_DATA)
        self._received = bytearray()
        self._parts: dict[tuple[int | None, bool], _Parts] = {}
        # The types of what each conversation waits for; and how many messages it may be sent.
        self._awaited: dict[int | None, int] = {}
        self._wanted: dict[int | None, int] = {}

    def ask(self, conversation: int | None, kind: int) -> None:
        """A call of this type was sent: its reply may come."""
        self._awaited[conversation] = kind + REPLY

    def want(self, conversation: int | None) -> None:
        """A message was asked for: it may come."""
        self._wanted[conversation] = self._wanted.get(conversation, 0) + 1

    def unwant(self, conversation: int | None) -> None:
        """What was asked for is answered, otherwise than by a message."""
        self._wanted.pop(conversation, None)

    def forget(self, conversation: int | None) -> None:
        """The conversation has ended."""
        self._awaited.pop(conversation, None)
        self._wanted.pop(conversation, None)
        for is_call in (True, False):
            self._parts.pop((conversation, is_call), None)

    def receive(self, data: bytes) -> list[Event]:
        """What is complete with *data*. Raises DecodeError, ProtocolError: the connection is of no use then."""
        received = self._received
        received += data
        events: list[Event] = []
        at = 0
        while len(received) - at >= PREFIX_BYTES:
            length = segment_length(bytes(received[at : at + PREFIX_BYTES]))
            if len(received) - at < length:
                break
            segment = bytes(received[at : at + length])
            at += length
            header = read_header(segment)
            self.latest = header
            event = self._event(header, segment[header.size :])
            if event is not None:
                events.append(event)
        del received[:at]
        return events

    def _event(self, header: SegmentHeader, payload: bytes) -> Event | None:
        kind = header.kind
        if kind >= _FIRST_REPLY:
            return self._reply(header, payload)
        if kind == SegmentType.ASYNC_MESSAGE:
            return self._message(header, payload)
        if kind == SegmentType.HEARTBEAT:
            if header.flags & CONFIRM:
                self.outgoing += heartbeat(header, WHOLE)
            return None
        if kind == SegmentType.NOTIFICATION:
            fields = Structure(NOTIFICATION, bytearray(payload), 0, header.order)
            return Notified(header, fields["ObjectHandle"], fields["Code"], fields["Value"])
        if kind in _CONTROL:
            return Control(header, payload)
        raise ProtocolError(f"the queue manager sends a segment of {type_name(kind)}, which no client gets")

    def _reply(self, header: SegmentHeader, payload: bytes) -> Reply | None:
        conversation = header.conversation
        if self._awaited.get(conversation) != header.kind:
            raise ProtocolError(f"the queue manager sends {type_name(header.kind)}, which was not asked for")
        key = (conversation, True)
        parts = self._parts.get(key)
        if bool(header.flags & FIRST) is (parts is not None):
            raise ProtocolError(f"the segments of {type_name(header.kind)} are out of order")
        if parts is not None:
            payload = self._joined(parts, payload, header.flags)
            if not header.flags & LAST:
                return None
            del self._parts[key]
        elif not header.flags & LAST:
            self._parts[key] = _Parts(header, bytearray(payload))
            return None
        del self._awaited[conversation]
        api = Structure(API_HEADER, bytearray(payload[: API_HEADER.size]), 0, header.order)
        end = int.from_bytes(api["ReplyLength"], "big") - 28
        # A segment of a shared connection is filled up to a multiple of 4.
        body = payload[API_HEADER.size : end if len(payload) - 4 < end <= len(payload) else None]
        return Reply(header, api["CompCode"], api["Reason"], api["ObjectHandle"], body)

    def _joined(self, parts: _Parts, payload: bytes, flags: int) -> bytes:
        if len(parts.data) + len(payload) > self.longest + _MARGIN_BYTES:
            raise ProtocolError(f"the queue manager sends a reply of more than {self.longest + _MARGIN_BYTES} bytes")
        parts.data += payload
        return bytes(parts.data) if flags & LAST else b""

    def _message(self, header: SegmentHeader, payload: bytes) -> Streamed | None:
        conversation = header.conversation
        if not self._wanted.get(conversation):
            raise ProtocolError("the queue manager sends a message that was not asked for")
        key = (conversation, False)
        parts = self._parts.get(key)
        if header.flags & FIRST:
            if parts is not None:
                raise ProtocolError("the queue manager begins a message before the end of another one")
            parts = self._parts[key] = self._begun(header, payload)
        elif parts is None:
            raise ProtocolError("the queue manager sends the middle of a message that it has not begun")
        else:
            self._continued(parts, header, payload)
        first = parts.first
        assert first is not None
        if not header.flags & LAST:
            return None
        del self._parts[key]
        if len(parts.data) != first["TotalMsgLength"]:
            raise ProtocolError(f"a message has {len(parts.data)} bytes, not {first['TotalMsgLength']}")
        self._wanted[conversation] -= 1
        return Streamed(
            parts.header,
            first["ObjectHandle"],
            first["Reason"],
            parts.md,
            bytes(parts.data),
            first["ActualMsgLength"],
            first["MsgToken"],
            first["GlobalMessageIndex"],
            parts.queue,
        )

    def _begun(self, header: SegmentHeader, payload: bytes) -> _Parts:
        fields = Structure(ASYNC_MESSAGE, bytearray(payload), 0, header.order, header.charset)
        length = fields["NameLength"]
        at = fields.end + length
        at += -at % 4
        if not 0 <= fields["TotalMsgLength"] <= self.longest:
            raise ProtocolError(f"the queue manager announces a message of {fields['TotalMsgLength']} bytes")
        queue = payload[fields.end : fields.end + length].decode(header.charset, "replace").rstrip(" \0")
        size = MQMD1.size if payload[at + 4 : at + 8] == (1).to_bytes(4, header.order) else MQMD2.size
        count = fields["SegmentDataLength"]
        if count < 0 or len(payload) < at + size + count:
            raise ProtocolError("a message ends before its data")
        first = Structure(ASYNC_MESSAGE, bytearray(bytes(fields)), 0, header.order)
        md = payload[at : at + size]
        return _Parts(header, bytearray(payload[at + size : at + size + count]), first, md, queue)

    def _continued(self, parts: _Parts, header: SegmentHeader, payload: bytes) -> None:
        fields = Structure(
            ASYNC_MESSAGE, bytearray(payload[:ASYNC_CONTINUED_BYTES].ljust(ASYNC_MESSAGE.size, b"\0")), 0, header.order
        )
        data = payload[ASYNC_CONTINUED_BYTES : ASYNC_CONTINUED_BYTES + max(0, fields["SegmentDataLength"])]
        parts.index += 1
        assert parts.first is not None
        if fields["SegmentIndex"] != parts.index & 0xFFFF or len(data) != fields["SegmentDataLength"]:
            raise ProtocolError("the segments of a message are out of order")
        if len(parts.data) + len(data) > parts.first["TotalMsgLength"]:
            raise ProtocolError("a message is longer than its first segment says")
        parts.data += data
