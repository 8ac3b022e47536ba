"""The segments of one connection, from bytes to what they say, without a socket.

``receive`` takes bytes as they come, and gives what is complete: the reply to a call, a message, a notification. A
heartbeat is answered into ``outgoing``. What nobody asked for is refused: so a queue manager that sends on and on, or
more than it said, ends the connection, and nothing grows.

INITIAL_DATA as a client writes it: what it offers, and what was agreed (docs/wire-formats.md).

The client offers. The queue manager answers with its own values, and marks those that it does not accept; the client
then repeats them, until nothing is marked. A client that shares its connection repeats them in conversation 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from commands.client.errors import ProtocolError
from rfh2.ccsid import ByteOrder
from rfh2.channel import layouts, segments
from rfh2.layouts import MQMD1, MQMD2

_MARGIN_BYTES: Final = 65_536
"""A reply may be so much longer than the longest message: structures, strings."""
_FIRST_REPLY: Final = segments.SegmentType.MQCONN + segments.REPLY
_CONTROL: Final = frozenset(
    {segments.SegmentType.INITIAL_DATA, segments.SegmentType.SOCKET_ACTION, segments.SegmentType.STATUS}
)


class Control(NamedTuple):
    """INITIAL_DATA, SOCKET_ACTION or STATUS."""

    header: segments.SegmentHeader
    payload: bytes


class Reply(NamedTuple):
    """What a call gives. body: behind the API header."""

    header: segments.SegmentHeader
    comp_code: int
    reason: int
    handle: int
    body: bytes


class Streamed(NamedTuple):
    """A message, or the reason why there is none. length: of all of its data.

    number: which one it is, of those of the connection.
    """

    header: segments.SegmentHeader
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

    header: segments.SegmentHeader
    handle: int
    code: int
    value: int


Event = Control | Reply | Streamed | Notified


@dataclass(slots=True)
class _Parts:
    """A call or message of which a part came. whole: its length, as the first segment says; None: not known."""

    header: segments.SegmentHeader
    data: bytearray
    first: segments.Structure | None = None
    md: bytes = b""
    queue: str = ""
    index: int = 0


class Flow:
    """What comes on one connection. longest: bytes of a message."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self.outgoing = bytearray()
        self.latest = segments.SegmentHeader(segments.SegmentType.INITIAL_DATA)
        self._received = bytearray()
        self._parts: dict[tuple[int | None, bool], _Parts] = {}
        # The types of what each conversation waits for; and how many messages it may be sent.
        self._awaited: dict[int | None, int] = {}
        self._wanted: dict[int | None, int] = {}

    def ask(self, conversation: int | None, kind: int) -> None:
        """A call of this type was sent: its reply may come."""
        self._awaited[conversation] = kind + segments.REPLY

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
        while len(received) - at >= segments.PREFIX_BYTES:
            length = segments.segment_length(bytes(received[at : at + segments.PREFIX_BYTES]))
            if len(received) - at < length:
                break
            segment = bytes(received[at : at + length])
            at += length
            header = segments.read_header(segment)
            self.latest = header
            event = self._event(header, segment[header.size :])
            if event is not None:
                events.append(event)
        del received[:at]
        return events

    def _event(self, header: segments.SegmentHeader, payload: bytes) -> Event | None:
        kind = header.kind
        if kind >= _FIRST_REPLY:
            return self._reply(header, payload)
        if kind == segments.SegmentType.ASYNC_MESSAGE:
            return self._message(header, payload)
        if kind == segments.SegmentType.HEARTBEAT:
            if header.flags & segments.CONFIRM:
                self.outgoing += segments.heartbeat(header, segments.WHOLE)
            return None
        if kind == segments.SegmentType.NOTIFICATION:
            fields = segments.Structure(layouts.NOTIFICATION, bytearray(payload), 0, header.order)
            return Notified(header, fields["ObjectHandle"], fields["Code"], fields["Value"])
        if kind in _CONTROL:
            return Control(header, payload)
        raise ProtocolError(f"the queue manager sends a segment of {segments.type_name(kind)}, which no client gets")

    def _reply(self, header: segments.SegmentHeader, payload: bytes) -> Reply | None:
        conversation = header.conversation
        if self._awaited.get(conversation) != header.kind:
            raise ProtocolError(f"the queue manager sends {segments.type_name(header.kind)}, which was not asked for")
        key = (conversation, True)
        parts = self._parts.get(key)
        if bool(header.flags & segments.FIRST) is (parts is not None):
            raise ProtocolError(f"the segments of {segments.type_name(header.kind)} are out of order")
        if parts is not None:
            payload = self._joined(parts, payload, header.flags)
            if not header.flags & segments.LAST:
                return None
            del self._parts[key]
        elif not header.flags & segments.LAST:
            self._parts[key] = _Parts(header, bytearray(payload))
            return None
        del self._awaited[conversation]
        api = segments.Structure(layouts.API_HEADER, bytearray(payload[: layouts.API_HEADER.size]), 0, header.order)
        end = int.from_bytes(api["ReplyLength"], "big") - 28
        # A segment of a shared connection is filled up to a multiple of 4.
        body = payload[layouts.API_HEADER.size : end if len(payload) - 4 < end <= len(payload) else None]
        return Reply(header, api["CompCode"], api["Reason"], api["ObjectHandle"], body)

    def _joined(self, parts: _Parts, payload: bytes, flags: int) -> bytes:
        if len(parts.data) + len(payload) > self.longest + _MARGIN_BYTES:
            raise ProtocolError(f"the queue manager sends a reply of more than {self.longest + _MARGIN_BYTES} bytes")
        parts.data += payload
        return bytes(parts.data) if flags & segments.LAST else b""

    def _message(self, header: segments.SegmentHeader, payload: bytes) -> Streamed | None:
        conversation = header.conversation
        if not self._wanted.get(conversation):
            raise ProtocolError("the queue manager sends a message that was not asked for")
        key = (conversation, False)
        parts = self._parts.get(key)
        if header.flags & segments.FIRST:
            if parts is not None:
                raise ProtocolError("the queue manager begins a message before the end of another one")
            parts = self._parts[key] = self._begun(header, payload)
        elif parts is None:
            raise ProtocolError("the queue manager sends the middle of a message that it has not begun")
        else:
            self._continued(parts, header, payload)
        first = parts.first
        assert first is not None
        if not header.flags & segments.LAST:
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

    def _begun(self, header: segments.SegmentHeader, payload: bytes) -> _Parts:
        fields = segments.Structure(layouts.ASYNC_MESSAGE, bytearray(payload), 0, header.order, header.charset)
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
        first = segments.Structure(layouts.ASYNC_MESSAGE, bytearray(bytes(fields)), 0, header.order)
        md = payload[at : at + size]
        return _Parts(header, bytearray(payload[at + size : at + size + count]), first, md, queue)

    def _continued(self, parts: _Parts, header: segments.SegmentHeader, payload: bytes) -> None:
        fields = segments.Structure(
            layouts.ASYNC_MESSAGE,
            bytearray(payload[: layouts.ASYNC_CONTINUED_BYTES].ljust(layouts.ASYNC_MESSAGE.size, b"\0")),
            0,
            header.order,
        )
        data = payload[
            layouts.ASYNC_CONTINUED_BYTES : layouts.ASYNC_CONTINUED_BYTES + max(0, fields["SegmentDataLength"])
        ]
        parts.index += 1
        assert parts.first is not None
        if fields["SegmentIndex"] != parts.index & 0xFFFF or len(data) != fields["SegmentDataLength"]:
            raise ProtocolError("the segments of a message are out of order")
        if len(parts.data) + len(data) > parts.first["TotalMsgLength"]:
            raise ProtocolError("a message is longer than its first segment says")
        parts.data += data


ROUNDS: Final = 4
"""The most answers before nothing is marked: two are usual."""
_PRODUCT: Final = "MQJB09040000"  # the segments are those of IBM's Java classes
_IDENTIFIER: Final = "CANNED_DATA"
# Of three flags that a Java client offers, a queue manager accepts the first.
_CAPABILITIES3: Final = 0x28
_PASSWORD_PROTECTION: Final = (1, 0, *[0xFFFF] * 8)
_SMALLEST_SEGMENT: Final = 1_024


@dataclass(frozen=True, slots=True)
class Offer:
    """What a client asks for. fap: protocol level. sharing: conversations on a connection, 0 for none.

    heartbeat_s: HBINT. longest_message: bytes. random: 12 bytes. process, thread, trace: numbers for the log of the
    queue manager.
    """

    channel: str
    qmgr: str = ""
    fap: int = segments.HIGHEST_FAP
    sharing: int = 10
    heartbeat_s: int = 300
    longest_message: int = 104_857_600
    product: str = _PRODUCT
    capabilities: int = _CAPABILITIES3
    random: bytes = bytes(12)
    process: int = 1
    thread: int = 1
    trace: int = 1

    def encode(self, order: ByteOrder) -> bytes:
        """The payload of the first INITIAL_DATA. Raises EncodeError for a name that is too long."""
        with_protection = self.fap > segments.FAP_OF_PLAIN_PASSWORDS
        data = bytearray(
            layouts.ID_BEGIN.size
            + layouts.ID_MORE.size
            + layouts.ID_SHARING.size
            + (layouts.ID_PROTECTION.size if with_protection else 0)
        )
        begin = segments.Structure(layouts.ID_BEGIN, data, 0, order)
        begin["StrucId"], begin["FapLevel"], begin["CapabilityFlags1"] = b"ID  ", self.fap, segments.CAPABILITIES1
        begin["MaxTransmissionSize"], begin["MaxMessageSize"] = segments.TRANSMISSION_SIZE, self.longest_message
        begin.put_text("ChannelName", self.channel)
        more = segments.Structure(layouts.ID_MORE, data, begin.end, order)
        more["CapabilityFlags2"], more["CodedCharSetId"] = segments.CAPABILITIES2, segments.CCSID
        more["HeartbeatInterval"], more["LengthOfRest"] = self.heartbeat_s, len(data) - more.end
        more.put_text("QMgrName", self.qmgr or "*")
        shared = segments.Structure(layouts.ID_SHARING, data, more.end, order)
        shared["HeaderCompression"], shared["MessageCompression"] = (
            segments.NO_HEADER_COMPRESSION,
            segments.NO_MESSAGE_COMPRESSION,
        )
        shared["ConversationsPerSocket"], shared["CapabilityFlags3"] = self.sharing, self.capabilities
        shared["ProcessId"], shared["ThreadId"], shared["TraceId"] = self.process, self.thread, self.trace
        shared.put_text("ProductId", self.product)
        shared.put_text("QMgrIdentifier", _IDENTIFIER)
        if with_protection:
            protection = segments.Structure(layouts.ID_PROTECTION, data, shared.end, order)
            protection["PasswordProtection"] = b"".join(n.to_bytes(2, order) for n in _PASSWORD_PROTECTION)
            protection["Random"] = self.random
        return bytes(data)


@dataclass(frozen=True, slots=True)
class Terms:
    """What was agreed. qmgr, identifier: of the queue manager. largest: bytes of a segment. sharing: 0 for none.

    has_spi: whether it offers the calls of type SPI.
    """

    fap: int
    qmgr: str
    identifier: str
    largest: int
    longest_message: int
    heartbeat_s: int
    sharing: int
    has_spi: bool


def agreed(header: segments.SegmentHeader, payload: bytes, offer: Offer) -> Terms:
    """What the answer of a queue manager says. Raises ProtocolError, DecodeError."""
    data = bytearray(payload)
    begin = segments.Structure(layouts.ID_BEGIN, data, 0, header.order, header.charset)
    fap, largest, longest = begin["FapLevel"], begin["MaxTransmissionSize"], begin["MaxMessageSize"]
    if not 1 <= fap <= offer.fap:
        raise ProtocolError(f"the queue manager answers level {fap} to {offer.fap}")
    if not _SMALLEST_SEGMENT <= largest <= segments.LARGEST_SEGMENT:
        raise ProtocolError(f"the queue manager wants segments of {largest} bytes")
    if not 0 < longest <= offer.longest_message:
        raise ProtocolError(f"the queue manager answers {longest} bytes as the longest message")
    qmgr = identifier = ""
    heartbeat_s = sharing = capabilities = 0
    if len(data) >= begin.end + layouts.ID_MORE.size:
        more = segments.Structure(layouts.ID_MORE, data, begin.end, header.order, header.charset)
        qmgr, heartbeat_s, capabilities = more.text("QMgrName"), more["HeartbeatInterval"], more["CapabilityFlags2"]
        if len(data) >= more.end + layouts.ID_SHARING.size:
            shared = segments.Structure(layouts.ID_SHARING, data, more.end, header.order, header.charset)
            sharing, identifier = shared["ConversationsPerSocket"], shared.text("QMgrIdentifier")
    if not 0 <= sharing <= offer.sharing or heartbeat_s < 0:
        raise ProtocolError(f"the queue manager answers {sharing} conversations and a heartbeat of {heartbeat_s} s")
    return Terms(fap, qmgr, identifier, largest, longest, heartbeat_s, sharing, bool(capabilities & segments.HAS_SPI))


def repeated(header: segments.SegmentHeader, payload: bytes, offer: Offer) -> bytes:
    """INITIAL_DATA once more, with the values of the answer, and what is the client's own. Raises DecodeError."""
    data = bytearray(payload)
    order, charset = header.order, header.charset
    begin = segments.Structure(layouts.ID_BEGIN, data, 0, order, charset)
    begin["NotAccepted1"] = begin["ErrorFlags1"] = 0
    if len(data) < begin.end + layouts.ID_MORE.size:
        return bytes(data)
    more = segments.Structure(layouts.ID_MORE, data, begin.end, order, charset)
    more["NotAccepted2"], more["LengthOfRest"] = 0, len(data) - more.end
    more.put_text("QMgrName", offer.qmgr or "*")
    if len(data) < more.end + layouts.ID_SHARING.size:
        return bytes(data)
    shared = segments.Structure(layouts.ID_SHARING, data, more.end, order, charset)
    shared["ErrorFlags2"] = shared["NotAccepted3"] = 0
    shared["ProcessId"], shared["ThreadId"], shared["TraceId"] = offer.process, offer.thread, offer.trace
    shared.put_text("ProductId", offer.product)
    if len(data) >= shared.end + layouts.ID_PROTECTION.size:
        segments.Structure(layouts.ID_PROTECTION, data, shared.end, order)["Random"] = offer.random
    return bytes(data)
