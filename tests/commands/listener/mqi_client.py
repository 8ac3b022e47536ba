"""A client of a server-connection channel for the tests: it writes what MQ's own clients write, a call at a time."""

from __future__ import annotations

import socket
import ssl
import struct
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from rfh2.ccsid import ENCODINGS, ByteOrder
from rfh2.channel.layouts import (
    API_HEADER,
    ASYNC_CONTINUED_BYTES,
    ASYNC_MESSAGE,
    FCNO,
    ID_BEGIN,
    ID_MORE,
    ID_PROTECTION,
    ID_SHARING,
    LSD,
    MQCONN,
    MQGMO,
    MQOD,
    MQPMO,
    MQSD,
    MQSRO,
    MQSTS,
    NOTIFICATION,
    REQUEST_MSGS,
    SELECTION,
    SPI,
    SPI_BLOCK,
    UID_LONG,
)
from rfh2.channel.segments import (
    FIRST,
    LAST,
    PREFIX_BYTES,
    WHOLE,
    SegmentHeader,
    SegmentType,
    Structure,
    read_segment,
    segment_length,
    split,
)
from rfh2.channel.strings import read_string, write_strings
from rfh2.layouts import MQMD2, Layout
from rfh2.mqi_constants import MQGMO_WAIT, MQMO_MATCH_MSG_TOKEN, MQSO_MANAGED, MQSO_RESUME
from rfh2.mqmd import Mqmd, decode_mqmd
from rfh2.pcf_admin_names import MQOT_Q, MQOT_TOPIC


class StatusError(Exception):
    """The listener sent STATUS with an error code, and closes the connection."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Reply:
    """What a call gives. body: behind the API header."""

    comp_code: int
    reason: int
    handle: int
    body: bytes


@dataclass(frozen=True)
class Message:
    """What MQGET gives. length: of all of the data."""

    reason: int
    mqmd: Mqmd
    body: bytes
    length: int


@dataclass(frozen=True)
class Streamed:
    """What answers REQUEST_MSGS. length: of all of the data. segments: how long each was. notified: code and value."""

    reason: int
    body: bytes
    length: int
    seq: int
    segments: tuple[int, ...]
    notified: tuple[int, int] | None


@dataclass(frozen=True)
class Subscribed:
    """What MQSUB gives: two handles, and the MQSD."""

    reason: int
    hsub: int
    hobj: int
    descriptor: Structure

    def string(self, name: str) -> str:
        return read_string(self.descriptor, name)


class MqiClient:
    """One connection, which is not shared. order: the byte order in which it writes and wants to read."""

    def __init__(
        self,
        port: int,
        order: ByteOrder = "little",
        channel: str = "APP.SVRCONN",
        sharing: int = 0,
        tls: ssl.SSLContext | None = None,
        heartbeat_s: int = 300,
    ) -> None:
        self.order, self.largest, self._heartbeat_s = order, 0x7FEC, heartbeat_s
        self.heartbeats = 0
        self.conversation: int | None = None
        self.connection_id = b""
        plain = socket.create_connection(("127.0.0.1", port), 20)
        self.socket = plain if tls is None else tls.wrap_socket(plain, server_hostname="localhost")
        self.terms = self.negotiate(channel, sharing)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def share_connection(self, number: int = 1) -> None:
        """Go on in conversation *number* of a shared connection, which is begun unless it is the first."""
        if number != 1:
            action = b"".join(map(self.long, (number, 0, 1, 0, 0)))
            self.send(
                self.header(SegmentType.SOCKET_ACTION)._replace(conversation=None, of_connection=True).write(action)
            )
            answered = self.receive()
            assert answered is not None
            assert answered[0].kind == SegmentType.SOCKET_ACTION, answered
        self.conversation = number

    def close(self) -> None:
        """End the connection at once, as a program that is killed does."""
        self.socket.close()

    # Segments

    def header(self, kind: int) -> SegmentHeader:
        return SegmentHeader(kind, order=self.order, encoding=ENCODINGS[self.order], conversation=self.conversation)

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> tuple[SegmentHeader, bytes] | None:
        """The next segment; None where the other end has closed."""
        prefix = self._exactly(PREFIX_BYTES)
        return None if prefix is None else read_segment(prefix + (self._exactly(segment_length(prefix) - 8) or b""))

    def _exactly(self, count: int) -> bytes | None:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                return None
            data += part
        return data

    # The connection

    def offer(self, channel: str, sharing: int) -> bytearray:
        data = bytearray(ID_BEGIN.size + ID_MORE.size + ID_SHARING.size + ID_PROTECTION.size)
        begin = Structure(ID_BEGIN, data, 0, self.order)
        begin["StrucId"], begin["FapLevel"], begin["CapabilityFlags1"] = b"ID  ", 13, 0x26
        begin["MaxTransmissionSize"], begin["MaxMessageSize"] = 0x7FEC, 4_194_304
        begin.put_text("ChannelName", channel)
        more = Structure(ID_MORE, data, ID_BEGIN.size, self.order)
        more["CapabilityFlags2"], more["CodedCharSetId"], more["HeartbeatInterval"] = 0x51, 819, self._heartbeat_s
        more["LengthOfRest"] = 138
        more.put_text("QMgrName", "QM1")
        shared = Structure(ID_SHARING, data, more.end, self.order)
        shared["HeaderCompression"], shared["MessageCompression"] = b"\0\xff", b"\0" + b"\xff" * 15
        shared["ConversationsPerSocket"] = sharing
        shared.put_text("ProductId", "MQCC09030500")
        return data

    def negotiate(self, channel: str, sharing: int) -> bytes:
        """INITIAL_DATA; what the server answered last."""
        offer = bytes(self.offer(channel, sharing))
        while True:
            self.send(self.header(SegmentType.INITIAL_DATA).write(offer))
            received = self.receive()
            assert received is not None
            header, answered = received
            if header.kind == SegmentType.STATUS:
                raise StatusError(int.from_bytes(answered[4:8], header.order))
            assert header.kind == SegmentType.INITIAL_DATA, answered
            if not header.flags & 0x02:
                return answered
            self.order, offer = header.order, answered

    def user(self, user: str, password: str = "") -> None:
        uid = Structure.new(UID_LONG, self.order)
        uid["StrucId"] = b"UID "
        uid.put_text("UserIdentifier", user[:12])
        uid.put_text("Password", password)
        uid.put_text("LongUserIdentifier", user)
        self.send(self.header(SegmentType.USERID).write(bytes(uid)))

    def connect(self, user: str = "alice", qmgr: str = "QM1", application: str = "test", password: str = "") -> int:
        """USERID and MQCONN; the reason."""
        self.user(user, password)
        body = bytearray(MQCONN.size + FCNO.size)
        conn = Structure(MQCONN, body, 0, self.order)
        conn.put_text("QMgrName", qmgr)
        conn.put_text("ApplName", application)
        conn["ApplType"], conn["Options"] = 6, 1
        Structure(FCNO, body, MQCONN.size, self.order)["StrucId"] = b"FCNO"
        reply = self.call(SegmentType.MQCONN, body)
        self.connection_id = Structure(FCNO, bytearray(reply.body), MQCONN.size, self.order)["ConnTag"][:24]
        return reply.reason

    # Calls

    def call(self, kind: int, body: bytes | bytearray = b"", handle: int = 0, flags: int = 0) -> Reply:
        """One call and its reply. flags: of an XA call."""
        self.request(kind, body, handle, flags)
        return self.reply(kind)

    def request(self, kind: int, body: bytes | bytearray = b"", handle: int = 0, flags: int = 0) -> None:
        """Send one call."""
        api = Structure.new(API_HEADER, self.order)
        api["ReplyLength"], api["ObjectHandle"] = (len(body) + 44).to_bytes(4, "big"), handle
        api["Reason"] = flags
        for segment in split(self.header(kind), bytes(api) + bytes(body), self.largest):
            self.send(segment)

    def request_part(self, kind: int, data: bytes, first: bool) -> None:
        """Send a segment of a call, but not its last one."""
        self.send(self.header(kind)._replace(flags=FIRST if first else 0).write(data))

    def reply(self, kind: int) -> Reply:
        """The reply to a call that was sent; heartbeats before it are answered."""
        data, header = b"", self.header(0)
        while not data or not header.flags & LAST:
            received = self.receive()
            assert received is not None, "the connection was closed"
            header, payload = received
            if header.kind == SegmentType.HEARTBEAT:
                self.heartbeats += 1
                self.send(header._replace(flags=WHOLE).write(b""))
                continue
            assert header.kind == kind + 0x10, header
            assert bool(header.flags & FIRST) is not bool(data)
            data += payload
        fields = Structure(API_HEADER, bytearray(data), 0, self.order)
        length = int.from_bytes(fields["ReplyLength"], "big") - 28
        assert len(data) == (length if self.conversation is None else length + -length % 4)
        return Reply(fields["CompCode"], fields["Reason"], fields["ObjectHandle"], data[API_HEADER.size : length])

    def long(self, value: int) -> bytes:
        return struct.pack(">i" if self.order == "big" else "<i", value)

    def structure(self, layout: Layout, struc_id: str, version: int, **fields: Any) -> Structure:
        made = Structure.new(layout, self.order)
        made["StrucId"], made["Version"] = struc_id.encode(), version
        for name, value in fields.items():
            if isinstance(value, str):
                made.put_text(name, value)
            else:
                made[name] = value
        return made

    def od(self, name: str, kind: int = MQOT_Q, qmgr: str = "", dynamic: str = "AMQ.*") -> bytes:
        return bytes(
            self.structure(
                *(MQOD[2], "OD  ", 2), ObjectType=kind, ObjectName=name, ObjectQMgrName=qmgr, DynamicQName=dynamic
            )
        )

    def open(self, name: str, options: int, kind: int = MQOT_Q, qmgr: str = "") -> Reply:
        return self.call(SegmentType.MQOPEN, self.od(name, kind, qmgr) + self.long(options))

    def opened_with(self, name: str, options: int, selector: str) -> Reply:
        """MQOPEN with a selection string."""
        od = self.structure(MQOD[4], "OD  ", 4, ObjectType=MQOT_Q, ObjectName=name, ObjectQMgrName="")
        described = write_strings(od, {"SelectionString": selector}, ["SelectionString"])
        return self.call(SegmentType.MQOPEN, described + self.long(options))

    def opened(self, name: str, options: int, kind: int = MQOT_Q) -> int:
        """The handle; the call succeeded."""
        reply = self.open(name, options, kind)
        assert reply.reason == 0, reply.reason
        return reply.handle

    def opened_name(self, reply: Reply) -> str:
        """ObjectName in the reply to MQOPEN."""
        return Structure(MQOD[2], bytearray(reply.body), 0, self.order).text("ObjectName")

    def md(self, **fields: Any) -> bytes:
        return Mqmd(version=2, order=self.order, **fields).encode()

    def put(self, handle: int, body: bytes, options: int = 0, context: int = 0, **fields: Any) -> tuple[int, Mqmd]:
        """MQPUT; the reason, and the descriptor that came back."""
        pmo = bytes(self.structure(MQPMO[2], "PMO ", 2, Options=options, Context=context))
        reply = self.call(SegmentType.MQPUT, self.md(**fields) + pmo + self.long(len(body)) + body, handle)
        return reply.reason, decode_mqmd(reply.body[:364])[0]

    def put1(self, name: str, body: bytes, options: int = 0, kind: int = MQOT_Q, qmgr: str = "") -> int:
        pmo = bytes(self.structure(MQPMO[2], "PMO ", 2, Options=options))
        data = self.od(name, kind, qmgr) + self.md() + pmo + self.long(len(body)) + body
        return self.call(SegmentType.MQPUT1, data).reason

    def get(
        self, handle: int, options: int = 0, wait_ms: int = 0, longest: int = 1 << 20, match: int = 0, **fields: Any
    ) -> Message:
        """MQGET."""
        self.request_get(handle, options, wait_ms, longest, match, **fields)
        reply = self.reply(SegmentType.MQGET)
        mqmd, end = decode_mqmd(reply.body[:364])
        at = end + MQGMO[2].size
        (length,) = struct.unpack_from(">i" if self.order == "big" else "<i", reply.body, at)
        return Message(reply.reason, mqmd, reply.body[at + 4 :], length)

    def request_get(
        self, handle: int, options: int = 0, wait_ms: int = 0, longest: int = 1 << 20, match: int = 0, **fields: Any
    ) -> None:
        """Send MQGET, and do not read its reply."""
        gmo = self.structure(
            *(MQGMO[2], "GMO ", 2), Options=options | (MQGMO_WAIT if wait_ms else 0), WaitInterval=wait_ms
        )
        gmo["MatchOptions"] = match
        self.request(SegmentType.MQGET, self.md(**fields) + bytes(gmo) + self.long(longest), handle)

    def inquire(self, handle: int, *selectors: int, integers: int = 0, characters: int = 0) -> Reply:
        head = self.long(len(selectors)) + self.long(integers) + self.long(characters)
        return self.call(SegmentType.MQINQ, head + b"".join(map(self.long, selectors)), handle)

    def set(self, handle: int, values: dict[int, int]) -> int:
        """MQSET of integer attributes; the reason."""
        head = self.long(len(values)) + self.long(len(values)) + self.long(0)
        numbers = b"".join(map(self.long, (*values, *values.values())))
        return self.call(SegmentType.MQSET, head + numbers, handle).reason

    def put_unanswered(self, handle: int, body: bytes, options: int) -> None:
        """MQPUT with an option for which the queue manager sends no reply."""
        pmo = bytes(self.structure(MQPMO[2], "PMO ", 2, Options=options))
        self.request(SegmentType.MQPUT, self.md() + pmo + self.long(len(body)) + body, handle)

    def status(self, kind: int = 0) -> tuple[int, int, int, int, str]:
        """MQSTAT: its own reason; reason, puts done, puts failed, and object of those without an answer."""
        reply = self.call(SegmentType.MQSTAT, self.long(kind) + bytes(self.structure(MQSTS, "STAT", 1)))
        sts = Structure(MQSTS, bytearray(reply.body), 4, self.order)
        counts = sts["PutSuccessCount"], sts["PutFailureCount"]
        return reply.reason, sts["Reason"], *counts, sts.text("ObjectName").strip("\0")

    def request_message(self, handle: int, options: int = 0, wait_ms: int = 0, longest: int = -1, seq: int = 0) -> None:
        """Ask for one message, as Java programs do whose connection is shared. seq: as its token says, 0 for any."""
        fields = Structure.new(REQUEST_MSGS, self.order)
        fields["Version"], fields["ObjectHandle"], fields["BytesRequested"], fields["MaxMsgLength"] = (
            1,
            handle,
            1,
            longest,
        )
        fields["Options"], fields["WaitInterval"] = options | (MQGMO_WAIT if wait_ms else 0), wait_ms
        fields["Flags"] = 0x18
        chosen = Structure.new(SELECTION, self.order)
        chosen["SelectionIndex"], chosen["MqmdVersion"], chosen["MatchOptions"] = (
            1,
            2,
            MQMO_MATCH_MSG_TOKEN if seq else 0,
        )
        token = seq.to_bytes(16, "big") if seq else b""
        header = self.header(SegmentType.REQUEST_MSGS)._replace(request=1)
        self.send(header.write(bytes(fields) + bytes(chosen) + token))

    def streamed(self) -> Streamed:
        """What answers it."""
        data, first, lengths = b"", None, []
        while True:
            received = self.receive()
            assert received is not None, "the connection was closed"
            header, payload = received
            lengths.append(header.size + len(payload))
            if header.kind == SegmentType.NOTIFICATION:
                fields = Structure(NOTIFICATION, bytearray(payload), 0, self.order)
                return Streamed(0, b"", 0, 0, tuple(lengths), (fields["Code"], fields["Value"]))
            assert header.kind == SegmentType.ASYNC_MESSAGE, header
            if first is None:
                fields = first = Structure(ASYNC_MESSAGE, bytearray(payload), 0, self.order)
                length = first["NameLength"]
                at = fields.end + length + -(fields.end + length) % 4 + MQMD2.size
            else:
                at = ASYNC_CONTINUED_BYTES
                fields = Structure(
                    ASYNC_MESSAGE, bytearray(payload[:at].ljust(ASYNC_MESSAGE.size, b"\0")), 0, self.order
                )
            data += payload[at : at + fields["SegmentDataLength"]]
            if header.flags & LAST:
                sent, actual = first["TotalMsgLength"], first["ActualMsgLength"]
                seq = int.from_bytes(first["MsgToken"], "big")
                assert sent == len(data)
                return Streamed(first["Reason"], data, actual, seq, tuple(lengths), None)

    def commit(self) -> int:
        return self.call(SegmentType.MQCMIT).reason

    def backout(self) -> int:
        return self.call(SegmentType.MQBACK).reason

    def shut(self, handle: int, options: int = 0) -> int:
        return self.call(SegmentType.MQCLOSE, self.long(options), handle).reason

    # Topics

    def publish(self, topic: str, body: bytes, options: int = 0, level: int = 9, **fields: Any) -> int:
        """MQPUT1 on a topic string; the reason. level: PubLevel."""
        od = self.structure(MQOD[4], "OD  ", 4, ObjectType=MQOT_TOPIC, ObjectName="", ObjectQMgrName="")
        pmo = bytes(self.structure(MQPMO[3], "PMO ", 3, Options=options, PubLevel=level))
        opened = write_strings(od, {"ObjectString": topic}, ["ObjectString"])
        return self.call(SegmentType.MQPUT1, opened + self.md(**fields) + pmo + self.long(len(body)) + body).reason

    def subscribe(self, options: int, topic: str = "", name: str = "", queue: int = 0, **fields: Any) -> Subscribed:
        """MQSUB."""
        data = self.long(-1) + self.long(0) + self.sd(options, topic, name, **fields)
        reply = self.call(SegmentType.MQSUB, data, queue)
        given_back = Structure(MQSD, bytearray(reply.body), 8, self.order)
        hsub = int.from_bytes(reply.body[:4], self.order, signed=True)
        return Subscribed(reply.reason, hsub, reply.handle, given_back)

    def share(self, options: int, topic: str, name: str) -> Subscribed:
        """The SPI call by which JMS programs make a shared subscription."""
        lsd = self.structure(LSD, "LSD ", 1, Options=0x50, QName="", QMgrName="")
        reply = self.spi(7, "SPB", self.long(0) + bytes(lsd) + self.sd(options, topic, name))
        at = SPI.size + 2 * SPI_BLOCK.size
        given_back = Structure(MQSD, bytearray(reply.body), at + 4 + LSD.size, self.order)
        return Subscribed(reply.reason, int.from_bytes(reply.body[at : at + 4], self.order), reply.handle, given_back)

    def join(self, sub_id: bytes) -> Subscribed:
        """The SPI call by which a session gets from a subscription that a program has open."""
        lsd = self.structure(LSD, "LSD ", 1, Options=0x20000, SubId=sub_id, QName="", QMgrName="")
        reply = self.spi(7, "SPB", self.long(0) + bytes(lsd) + self.sd(MQSO_RESUME | MQSO_MANAGED, "", ""))
        at = SPI.size + 2 * SPI_BLOCK.size
        hsub = int.from_bytes(reply.body[at : at + 4], self.order)
        return Subscribed(reply.reason, hsub, reply.handle, Structure(MQSD, bytearray(MQSD.size), 0, self.order))

    def spi(
        self, verb: int, name: str, data: bytes, version: int = 1, handle: int = 0, described: bytes = b""
    ) -> Reply:
        """An SPI call. name: of its blocks, as in SPBU and SPBI. described, data: behind the heads of the two."""
        heads = self.structure(SPI_BLOCK, f"{name}U", 1, StrucLength=SPI_BLOCK.size + len(described))
        block = self.structure(SPI_BLOCK, f"{name}I", version, StrucLength=SPI_BLOCK.size + len(data))
        spi = b"".join(map(self.long, (verb, version, 536)))
        return self.call(SegmentType.SPI, spi + bytes(heads) + described + bytes(block) + data, handle)

    def sd(self, options: int, topic: str, name: str, **fields: Any) -> bytes:
        """An MQSD and its strings."""
        given = ("ObjectString", "SubName", "SubUserData", "SelectionString")
        strings = {each: fields.pop(each, "") for each in given} | {"ObjectString": topic, "SubName": name}
        fields = {"SubExpiry": -1, "PubPriority": -3, "SubLevel": 1, "ObjectName": ""} | fields
        sd = self.structure(MQSD, "SD  ", 1, Options=options, **fields)
        for each in ("SubUserData", "SelectionString", "ResObjectString"):
            sd[f"{each}BufferSize"] = 256
        return write_strings(sd, strings, given)

    def subscribed(self, options: int, topic: str = "", name: str = "", queue: int = 0, **fields: Any) -> Subscribed:
        """MQSUB, which succeeded."""
        made = self.subscribe(options, topic, name, queue, **fields)
        assert made.reason == 0, made.reason
        return made

    def request_retained(self, hsub: int, action: int = 1) -> tuple[int, int]:
        """MQSUBRQ; the reason, and how many publications were sent."""
        sro = self.structure(MQSRO, "SRO ", 1)
        reply = self.call(SegmentType.MQSUBRQ, self.long(action) + bytes(sro), hsub)
        return reply.reason, int(Structure(MQSRO, bytearray(reply.body), 4, self.order)["NumPubs"])

    def disconnect(self) -> int:
        return self.call(SegmentType.MQDISC).reason
