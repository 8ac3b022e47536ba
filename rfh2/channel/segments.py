"""Transmission segments of a client channel: their headers, written and read, and long calls split into several.

SegmentLength, ConversationId and RequestId are big-endian always; all else is in the order that the header names. A
segment belongs to a conversation where the two ends share their connection (``TSHM``), or to the shared connection
itself (``TSHC``); where it is not shared, to none (``TSH ``).

Heartbeats: whether the other end of a connection that is quiet is still there (HBINT).

A listener asks a client that shares its connection, and so reads at any time, when that was quiet for the interval. A
client that does not share it reads only while it waits for a reply: it is asked while a call waits for a message. A
client asks its queue manager in the same way. Who is asked and sends nothing, as long again or a minute, is taken for
gone.

    quiet for HBINT: ask ──> anything received: begin anew
                       └──> nothing for HBINT, at most 60 s more: gone
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import cache
from struct import Struct
from typing import Any, Final, NamedTuple

from rfh2 import mqi_constants as m
from rfh2.ccsid import ASCII_FIELDS, EBCDIC_FIELDS, ENCODINGS, UTF8_CCSID, ByteOrder, text_codec
from rfh2.channel.layouts import ID_BEGIN, ID_MORE, ID_SHARING, TSH, TSHM, XID
from rfh2.errors import DecodeError
from rfh2.layouts import Layout, characters
from rfh2.mqmd import name_of

# One structure in the bytes of a segment or a call, its fields read and written by IBM's names.


class Structure:
    """*layout* at offset *at* of *data*: reads and writes there. Raises DecodeError where *data* ends before it does.

    order: of its numbers. charset: the codec of its character fields.
    """

    __slots__ = ("at", "charset", "data", "layout", "order")

    def __init__(
        self, layout: Layout, data: bytearray, at: int = 0, order: ByteOrder = "little", charset: str = ASCII_FIELDS
    ) -> None:
        if at < 0 or len(data) < at + layout.size:
            missing = f"{max(0, len(data) - at)} of {layout.size} bytes are there"
            raise DecodeError(max(0, min(at, len(data))), layout.name, missing)
        self.layout, self.data, self.at, self.order, self.charset = layout, data, at, order, charset

    @classmethod
    def new(cls, layout: Layout, order: ByteOrder, charset: str = ASCII_FIELDS) -> Structure:
        """One of zeros, by itself."""
        return cls(layout, bytearray(layout.size), 0, order, charset)

    @property
    def end(self) -> int:
        """Where the structure ends in ``data``."""
        return self.at + self.layout.size

    def __getitem__(self, name: str) -> Any:
        offset, reader = _field(self.layout, self.order, name)
        return reader.unpack_from(self.data, self.at + offset)[0]

    def __setitem__(self, name: str, value: Any) -> None:
        offset, writer = _field(self.layout, self.order, name)
        writer.pack_into(self.data, self.at + offset, value)

    def values(self) -> tuple[Any, ...]:
        """All fields, in order."""
        return self.layout.fast[self.order].unpack_from(self.data, self.at)

    def text(self, name: str) -> str:
        """The name in a character field."""
        return name_of(str(self[name], self.charset, "replace"))

    def put_text(self, name: str, value: str) -> None:
        """Write *value*, padded with blanks. Raises EncodeError where it is too long or cannot be written."""
        _, writer = _field(self.layout, self.order, name)
        self[name] = characters(value, writer.size, self.charset, name)

    def __bytes__(self) -> bytes:
        return bytes(self.data[self.at : self.end])


@cache
def _field(layout: Layout, order: ByteOrder, name: str) -> tuple[int, Struct]:
    """Offset of the field, and what reads and writes it."""
    offset = layout.offset(name)
    part = _parts(layout.fast[order].format[1:])[layout.names.index(name)]
    return offset, Struct((">" if order == "big" else "<") + part)


def _parts(kinds: str) -> list[str]:
    out, count = [], ""
    for character in kinds:
        if character.isdigit():
            count += character
        else:
            out.append(count + character)
            count = ""
    return out


CONFIRM, ERROR, REQUEST_CLOSE, CLOSE, FIRST, LAST, ACCEPTED = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40
WHOLE: Final = FIRST | LAST
HEADER_COMPRESSED, MESSAGE_COMPRESSED = 0x01, 0x02
"""Of the second flags."""
LARGEST_SEGMENT: Final = 32_768
REPLY: Final = 0x10
"""More than the type of the request."""


class SegmentType(IntEnum):
    """What a segment is."""

    INITIAL_DATA = 0x01
    RESYNC_DATA = 0x02
    MESSAGE_DATA = 0x04
    STATUS = 0x05
    USERID = 0x08
    HEARTBEAT = 0x09
    CONAUTH_INFO = 0x0A
    SOCKET_ACTION = 0x0C
    ASYNC_MESSAGE = 0x0D
    REQUEST_MSGS = 0x0E
    NOTIFICATION = 0x0F
    MQCONN = 0x81
    MQDISC = 0x82
    MQOPEN = 0x83
    MQCLOSE = 0x84
    MQGET = 0x85
    MQPUT = 0x86
    MQPUT1 = 0x87
    MQSET = 0x88
    MQINQ = 0x89
    MQCMIT = 0x8A
    MQBACK = 0x8B
    SPI = 0x8C
    MQSTAT = 0x8D
    MQSUB = 0x8E
    MQSUBRQ = 0x8F
    XA_START = 0xA1
    XA_END = 0xA2
    XA_OPEN = 0xA3
    XA_CLOSE = 0xA4
    XA_PREPARE = 0xA5
    XA_COMMIT = 0xA6
    XA_ROLLBACK = 0xA7
    XA_FORGET = 0xA8
    XA_RECOVER = 0xA9
    XA_COMPLETE = 0xAA


_TYPES: Final = frozenset(SegmentType)


def type_name(kind: int) -> str:
    """The name of a type of segments, for people: ``MQPUT``, ``MQPUT reply``, or its number."""
    for number, suffix in ((kind, ""), (kind - REPLY, " reply")):
        if number in _TYPES and (suffix == "" or number >= SegmentType.MQCONN):
            return SegmentType(number).name + suffix
    return f"type 0x{kind:02X}"


class _Form(NamedTuple):
    """How a header with one StrucId is laid out, and in which codec its characters are."""

    layout: Layout
    charset: str
    order_at: int
    of_connection: bool


_UNSHARED, _SHARED, _CONNECTION = "TSH ", "TSHM", "TSHC"
_FORMS: Final = {
    name.encode(charset): _Form(layout, charset, layout.offset("ByteOrder"), name == _CONNECTION)
    for name, layout in ((_UNSHARED, TSH), (_CONNECTION, TSH), (_SHARED, TSHM))
    for charset in (ASCII_FIELDS, EBCDIC_FIELDS)
}
HEADER_BYTES: Final = {struc_id: form.layout.size for struc_id, form in _FORMS.items()}
"""The length of a header by its StrucId, in ASCII or EBCDIC."""
_ORDERS: Final[dict[int, ByteOrder]] = {1: "big", 2: "little"}
PREFIX_BYTES: Final = 8
"""StrucId and SegmentLength: enough to know how many bytes follow."""


class SegmentHeader(NamedTuple):
    """What a header says. conversation: None where the segment belongs to none. charset: of its character fields.

    of_connection: whether it belongs to a shared connection itself.
    """

    kind: int
    flags: int = WHOLE
    flags2: int = 0
    order: ByteOrder = "little"
    encoding: int = 0x222
    ccsid: int = 819
    conversation: int | None = None
    request: int = 0
    charset: str = ASCII_FIELDS
    of_connection: bool = False

    @property
    def size(self) -> int:
        """Bytes of the header."""
        return TSH.size if self.conversation is None else TSHM.size

    def write(self, payload: bytes | bytearray) -> bytes:
        """The segment with this header. Raises struct.error for a number that does not fit its field."""
        length = (self.size + len(payload)).to_bytes(4, "big")
        rest = (1 if self.order == "big" else 2, self.kind, self.flags, self.flags2, bytes(8), self.encoding)
        if self.conversation is None:
            name = _CONNECTION if self.of_connection else _UNSHARED
            header = TSH.fast[self.order].pack(name.encode(self.charset), length, *rest, self.ccsid, 0)
        else:
            own = (self.conversation.to_bytes(4, "big"), self.request.to_bytes(4, "big"))
            header = TSHM.fast[self.order].pack(_SHARED.encode(self.charset), length, *own, *rest, self.ccsid, 0)
        return header + payload


def segment_length(prefix: bytes) -> int:
    """How many bytes the segment has that begins with *prefix*. Raises DecodeError where none begins so."""
    if prefix[:4] not in HEADER_BYTES:
        raise DecodeError(0, "TSH", f"StrucId is {prefix[:4].hex()}: this is not a transmission segment")
    length = int.from_bytes(prefix[4:8], "big")
    if not TSH.size <= length <= LARGEST_SEGMENT:
        raise DecodeError(4, "TSH", f"SegmentLength is {length}, not {TSH.size} to {LARGEST_SEGMENT}")
    return length


def read_header(data: bytes | bytearray) -> SegmentHeader:
    """The header at the start of *data*. Raises DecodeError."""
    struc_id = bytes(data[:4])
    form = _FORMS.get(struc_id)
    if form is None:
        raise DecodeError(0, "TSH", f"StrucId is {struc_id.hex()}: this is not a transmission segment")
    layout, charset, order_at, of_connection = form
    if len(data) < layout.size:
        raise DecodeError(len(data), "TSH", f"{len(data)} of {layout.size} bytes are there")
    order = _ORDERS.get(data[order_at])
    if order is None:
        raise DecodeError(order_at, "TSH", f"ByteOrder is {data[order_at]}, not 1 or 2")
    *own, _, kind, flags, flags2, _, encoding, ccsid, _ = layout.fast[order].unpack_from(data)
    conversation = request = None
    if layout is TSHM:
        conversation, request = int.from_bytes(own[2], "big"), int.from_bytes(own[3], "big")
    return SegmentHeader(
        kind, flags, flags2, order, encoding, ccsid, conversation, request or 0, charset, of_connection
    )


def read_segment(data: bytes) -> tuple[SegmentHeader, bytes]:
    """The header of a whole segment, and its payload. Raises DecodeError."""
    header = read_header(data)
    return header, data[header.size :]


def padded(header: SegmentHeader, payload: bytes | bytearray) -> bytes:
    """A segment that ends a call or a message.

    Where the connection is shared, it is as long as a multiple of 4. Java clients read several segments into one
    buffer, and look for the fields of a structure at multiples of 4 of that: behind any other length they read amiss.
    """
    return header.write(payload if header.conversation is None else payload + bytes(-len(payload) % 4))


def split(header: SegmentHeader, payload: bytes | bytearray, largest: int) -> Iterator[bytes]:
    """The segments of a call or a reply: none is longer than *largest* bytes, and one that fits is one."""
    room = largest - header.size & ~3
    if len(payload) <= room:
        yield padded(header, payload)
        return
    for at in range(0, len(payload), room):
        flags = (FIRST if at == 0 else 0) | (LAST if at + room >= len(payload) else 0)
        yield padded(header._replace(flags=flags), payload[at : at + room])


# INITIAL_DATA: what both ends of a client channel know of it (docs/wire-formats.md).

CCSID: Final = 819
HIGHEST_FAP: Final = 17
FAP_OF_PLAIN_PASSWORDS: Final = 12
"""The highest level at which clients send passwords as they are: above it they protect them in a way not known here."""
TRANSMISSION_SIZE: Final = 0x7FEC
# Capability flags 1: the end is a client. Flags 2: distribution lists, fast messages, dual units of work, SPI.
IS_CLIENT: Final = 0x20
HAS_SPI: Final = 0x40
CAPABILITIES1: Final = 0x26
CAPABILITIES2: Final = 0x51
NO_HEADER_COMPRESSION: Final = b"\0\xff"
NO_MESSAGE_COMPRESSION: Final = b"\0" + b"\xff" * 15


def turned(offer: bytes, order: ByteOrder, wanted: ByteOrder) -> bytes:
    """*offer*, whose numbers are in *order*, with its numbers in *wanted*. Raises DecodeError."""
    if order == wanted:
        return offer
    before, after, at = bytearray(offer), bytearray(offer), 0
    for layout in (ID_BEGIN, ID_MORE, ID_SHARING):
        if at > 0 and len(offer) < at + layout.size:
            break
        read, written = Structure(layout, before, at, order), Structure(layout, after, at, wanted)
        for name in layout.names:
            written[name] = read[name]
        at += layout.size
    return bytes(after)


# The error codes of STATUS, by which a queue manager ends a channel (docs/wire-formats.md).

NO_SUCH_CHANNEL, WRONG_CHANNEL_TYPE, TERMINATING, BAD_SEGMENT, CHANNEL_UNAVAILABLE = 0x01, 0x02, 0x05, 0x0D, 0x16

STATUS_CODES: Final[dict[int, tuple[int, str]]] = {
    NO_SUCH_CHANNEL: (2540, "there is no such channel"),
    WRONG_CHANNEL_TYPE: (2539, "the channel is not a server-connection channel"),
    0x03: (2059, "the queue manager is not available"),
    TERMINATING: (2161, "the queue manager is ending"),
    0x07: (2009, "the channel was stopped"),
    **dict.fromkeys((*range(10, 17), 29, 31), (2009, "the queue manager does not understand the client")),
    0x14: (2035, "security refuses the connection"),
    CHANNEL_UNAVAILABLE: (2537, "the channel is stopped, or has all its instances"),
    0x17: (2537, "a channel exit closed the channel"),
    0x18: (2393, "the channel requires TLS, or another cipher"),
    0x19: (2398, "the channel requires a certificate with another name"),
    0x1A: (2393, "the channel requires a certificate"),
    0x1E: (2009, "the conversation is not known"),
    0x20: (2059, "the queue manager is a standby instance"),
    **dict.fromkeys((0xF0, 0xF1, 0xF2, 0xF3), (2539, "the negotiation failed")),
}
"""By code: the reason that a program gets, and what it means."""


# The flags of REQUEST_MSGS and the codes of NOTIFICATION (docs/wire-formats.md).

HAS_SELECTION: Final = 0x10
CHECKS: Final = 0x02
"""The program asks for what there is now, and waits for the notification behind it."""
CONSUMER: Final = 0x01
"""A consumer has taken all that came, and waits for a message."""
CALL: Final = 0x08
"""A call waits for the message. Without either, the program has room to read ahead more."""
STREAM_REQUEST: Final = 1
"""The request id of messages that are streamed."""
IDENTIFIERS: Final = (
    (m.MQMO_MATCH_MSG_ID, "msg_id", 24),
    (m.MQMO_MATCH_CORREL_ID, "correl_id", 24),
    (m.MQMO_MATCH_GROUP_ID, "group_id", 24),
    (m.MQMO_MATCH_MSG_TOKEN, "token", 16),
)
"""What a selection matches by, in this order: match option, name, bytes."""
CONN_STATE, CONN_STATE_REPLY, Q_STATE, Q_STATE_REPLY, QUIESCING, CHECK_MSG, FAILURE = 3, 4, 5, 6, 7, 11, 14


# Strings of any length that stand behind a descriptor (MQCHARV), as MQOD and MQSD have them.


def span(fields: Structure, name: str) -> tuple[int, int] | None:
    """Where string *name* of a descriptor begins and ends; None where there is none. Raises DecodeError."""
    offset, length = fields[f"{name}Offset"], fields[f"{name}Length"]
    if offset < fields.layout.size or length <= 0:
        return None
    start = fields.at + offset
    if start + length > len(fields.data):
        raise DecodeError(fields.at, fields.layout.name, f"{name} ends after the call")
    return start, start + length


def read_string(fields: Structure, name: str) -> str:
    """String *name*; "" where there is none. Raises DecodeError."""
    found = span(fields, name)
    if found is None:
        return ""
    codec = text_codec(fields[f"{name}CodedCharSetId"], 0) or fields.charset
    return bytes(fields.data[found[0] : found[1]]).decode(codec, "replace")


def write_strings(fields: Structure, strings: Mapping[str, str], always: Collection[str] = ()) -> bytes:
    """The descriptor *fields* and *strings* behind it, in UTF-8.

    A string for which the program has no room, or not enough, has only its length written. always: those that the
    program gave itself, and gets back.
    """
    data = b""
    for name, value in strings.items():
        text = value.encode("utf-8")
        fields[f"{name}CodedCharSetId"], fields[f"{name}Length"] = UTF8_CCSID, len(text)
        fields[f"{name}Offset"] = fields.layout.size + len(data)
        if name in always or len(text) <= fields[f"{name}BufferSize"]:
            data += text + bytes(-len(text) % 4)
    return bytes(fields) + data


_LONGEST_PATIENCE_S: Final = 60.0


class Beat(Enum):
    """What is due."""

    NOTHING = "nothing"
    ASK = "ask"
    GONE = "gone"


@dataclass(slots=True)
class Pulse:
    """One connection's. interval_s: HBINT, above 0. heard_s: the clock when the other end last sent something."""

    interval_s: float
    heard_s: float
    asked_s: float | None = None

    @property
    def patience_s(self) -> float:
        """How long the other end, once asked, may send nothing."""
        return min(self.interval_s, _LONGEST_PATIENCE_S)

    def hear(self, now_s: float) -> None:
        """The other end has sent something."""
        self.heard_s, self.asked_s = now_s, None

    def beat(self, now_s: float, reads: bool) -> tuple[Beat, float]:
        """What is due, and when to look again. reads: whether the other end would read a heartbeat now."""
        if self.asked_s is not None:
            gone_s = self.asked_s + self.patience_s
            return (Beat.GONE, gone_s) if now_s >= gone_s else (Beat.NOTHING, gone_s)
        due_s = self.heard_s + self.interval_s
        if now_s < due_s:
            return Beat.NOTHING, due_s
        if not reads:
            return Beat.NOTHING, now_s + self.interval_s / 2
        self.asked_s = now_s
        return Beat.ASK, now_s + self.patience_s


def heartbeat(latest: SegmentHeader, flags: int) -> bytes:
    """A HEARTBEAT segment; it belongs to the connection, in the byte order of the *latest* segment that came."""
    is_shared = latest.of_connection or latest.conversation is not None
    order = latest.order
    header = SegmentHeader(
        SegmentType.HEARTBEAT, flags, order=order, encoding=ENCODINGS[order], of_connection=is_shared
    )
    return header.write(b"")


# Global transactions on a client channel: their identifiers, and the return values and flags of X/Open's XA.

XA_OK, XA_RDONLY, XA_RBROLLBACK = 0, 3, 100
XAER_RMERR, XAER_NOTA, XAER_INVAL, XAER_PROTO, XAER_RMFAIL, XAER_DUPID, XAER_OUTSIDE = -3, -4, -5, -6, -7, -8, -9
TMNOFLAGS, TMJOIN, TMENDRSCAN, TMSTARTRSCAN, TMSUSPEND, TMSUCCESS, TMRESUME, TMFAIL, TMONEPHASE = (
    0,
    0x200000,
    0x800000,
    0x1000000,
    0x2000000,
    0x4000000,
    0x8000000,
    0x20000000,
    0x40000000,
)
_LONGEST: Final = 64


class Xid(NamedTuple):
    """The identifier of a branch of a global transaction."""

    format: int
    transaction: bytes
    branch: bytes

    @classmethod
    def read(cls, data: bytearray, at: int, order: ByteOrder) -> Xid:
        """The one at *at*. Raises DecodeError."""
        fields = Structure(XID, data, at, order)
        lengths = fields["GlobalLength"], fields["BranchLength"]
        end = fields.end + sum(lengths)
        if max(lengths) > _LONGEST or end > len(data):
            raise DecodeError(at, "XID", f"its identifiers have {lengths[0]} and {lengths[1]} bytes")
        middle = fields.end + lengths[0]
        return cls(fields["FormatId"], bytes(data[fields.end : middle]), bytes(data[middle:end]))

    def __str__(self) -> str:
        """As DISPLAY CONN shows it (EXTURID)."""
        transaction, branch = self.transaction.hex().upper(), self.branch.hex().upper()
        return f"XA_FORMATID[{self.format & 0xFFFF_FFFF:08X}] XA_GTRID[{transaction}] XA_BQUAL[{branch}]"

    def write(self, order: ByteOrder) -> bytes:
        """As ``read`` reads it, with zeros up to a multiple of 4."""
        fields = Structure.new(XID, order)
        fields["FormatId"] = self.format
        fields["GlobalLength"], fields["BranchLength"] = len(self.transaction), len(self.branch)
        made = bytes(fields) + self.transaction + self.branch
        return made + bytes(-len(made) % 4)
