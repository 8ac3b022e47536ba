"""The client of the product, a segment and a call at a time: what a test of the listener needs beside its calls.

It writes with ``commands.client.calls``, and looks itself at what it reads: a listener must not only be understood.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from commands.client import calls
from commands.client.calls import Form, Subscribing, Target, Wanted
from commands.client.flow import Offer, Reply
from rfh2.ccsid import ENCODINGS, ByteOrder
from rfh2.channel.layouts import (
    API_HEADER,
    ASYNC_CONTINUED_BYTES,
    ASYNC_MESSAGE,
    LSD,
    MQGMO,
    MQOD,
    MQSD,
    NOTIFICATION,
    SPI,
    SPI_BLOCK,
    TSH,
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
    read_string,
    segment_length,
    split,
)
from rfh2.layouts import MQMD2, Layout
from rfh2.mqi_constants import MQMO_MATCH_MSG_TOKEN, MQSO_MANAGED, MQSO_RESUME
from rfh2.mqmd import Mqmd, decode_mqmd
from rfh2.pcf_admin_names import MQOT_Q, MQOT_TOPIC
from tests.waiting import PATIENCE_S

_OF_SD = {
    "ObjectName": "topic_object",
    "SubUserData": "user_data",
    "SelectionString": "selector",
    "SubCorrelId": "correl_id",
    "SubExpiry": "expiry",
    "PubPriority": "priority",
    "SubLevel": "level",
    "AlternateUserId": "alternate_user",
    "PubAccountingToken": "accounting_token",
    "PubApplIdentityData": "identity_data",
}


class StatusError(Exception):
    """The listener sent STATUS with an error code, and closes the connection."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


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
        # Longer than what is asked of the listener may wait there.
        plain = socket.create_connection(("127.0.0.1", port), 2 * PATIENCE_S)
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

    def offer(self, channel: str, sharing: int) -> bytes:
        # No flag that a listener does not accept: its first answer agrees.
        offer = Offer(channel, "QM1", 13, sharing, self._heartbeat_s, 4_194_304, "MQCC09030500", capabilities=0)
        return offer.encode(self.order)

    def negotiate(self, channel: str, sharing: int) -> bytes:
        """INITIAL_DATA; what the server answered last."""
        offer = self.offer(channel, sharing)
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

    @property
    def form(self) -> Form:
        return Form(self.order, header_bytes=TSH.size)

    def user(self, user: str, password: str = "") -> None:
        self.send(self.header(SegmentType.USERID).write(calls.user_id(self.form, user, password)))

    def connect(self, user: str = "alice", qmgr: str = "QM1", application: str = "test", password: str = "") -> int:
        """USERID and MQCONN; the reason."""
        self.user(user, password)
        body = calls.connect(self.form, 13, qmgr, application)[API_HEADER.size :]
        reply = self.call(SegmentType.MQCONN, body)
        self.connection_id = calls.connection_tag(reply)[0]
        return reply.reason

    # Calls

    def call(self, kind: int, body: bytes | bytearray = b"", handle: int = 0, flags: int = 0) -> Reply:
        """One call and its reply. flags: of an XA call."""
        self.request(kind, body, handle, flags)
        return self.reply(kind)

    def request(self, kind: int, body: bytes | bytearray = b"", handle: int = 0, flags: int = 0) -> None:
        """Send one call."""
        for segment in split(self.header(kind), self.form.call(bytes(body), handle, reason=flags), self.largest):
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
        body = data[API_HEADER.size : length]
        return Reply(header, fields["CompCode"], fields["Reason"], fields["ObjectHandle"], body)

    def long(self, value: int) -> bytes:
        return self.form.long(value)

    def structure(self, layout: Layout, struc_id: str, version: int, **fields: Any) -> Structure:
        return self.form.structure(layout, struc_id, version, **fields)

    def od(self, name: str, kind: int = MQOT_Q, qmgr: str = "", dynamic: str = "AMQ.*") -> bytes:
        return Target(name, kind, qmgr, dynamic, version=2).encode(self.form)

    def open(self, name: str, options: int, kind: int = MQOT_Q, qmgr: str = "") -> Reply:
        return self.call(SegmentType.MQOPEN, self.od(name, kind, qmgr) + self.long(options))

    def opened_with(self, name: str, options: int, selector: str) -> Reply:
        """MQOPEN with a selection string."""
        described = Target(name, selector=selector).encode(self.form)
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
        payload = calls.put(self.form, handle, self.md(**fields), body, options, context=context)
        reply = self.call(SegmentType.MQPUT, payload[API_HEADER.size :], handle)
        return reply.reason, decode_mqmd(reply.body[:364])[0]

    def put1(self, name: str, body: bytes, options: int = 0, kind: int = MQOT_Q, qmgr: str = "") -> int:
        payload = calls.put1(self.form, Target(name, kind, qmgr, version=2), self.md(), body, options)
        return self.call(SegmentType.MQPUT1, payload[API_HEADER.size :]).reason

    def get(
        self, handle: int, options: int = 0, wait_ms: int = 0, longest: int = 1 << 20, match: int = 0, **fields: Any
    ) -> Message:
        """MQGET."""
        self.request_get(handle, options, wait_ms, longest, match, **fields)
        reply = self.reply(SegmentType.MQGET)
        mqmd, end = decode_mqmd(reply.body[:364])
        parts = calls.got(reply)
        return Message(reply.reason, mqmd, reply.body[end + MQGMO[3].size + 4 :], parts.length)

    def request_get(
        self, handle: int, options: int = 0, wait_ms: int = 0, longest: int = 1 << 20, match: int = 0, **fields: Any
    ) -> None:
        """Send MQGET, and do not read its reply."""
        wanted = Wanted(options, wait_ms or None, match=match)
        payload = calls.get(self.form, handle, wanted, self.md(**fields), longest)
        self.request(SegmentType.MQGET, payload[API_HEADER.size :], handle)

    def inquire(self, handle: int, *selectors: int, integers: int = 0, characters: int = 0) -> Reply:
        head = self.long(len(selectors)) + self.long(integers) + self.long(characters)
        return self.call(SegmentType.MQINQ, head + b"".join(map(self.long, selectors)), handle)

    def set(self, handle: int, values: dict[int, int]) -> int:
        """MQSET of integer attributes; the reason."""
        payload = calls.set_attributes(self.form, handle, values)
        return self.call(SegmentType.MQSET, payload[API_HEADER.size :], handle).reason

    def put_unanswered(self, handle: int, body: bytes, options: int) -> None:
        """MQPUT with an option for which the queue manager sends no reply."""
        payload = calls.put(self.form, handle, self.md(), body, options)
        self.request(SegmentType.MQPUT, payload[API_HEADER.size :], handle)

    def status(self, kind: int = 0) -> tuple[int, int, int, int, str]:
        """MQSTAT: its own reason; reason, puts done, puts failed, and object of those without an answer."""
        reply = self.call(SegmentType.MQSTAT, calls.status(self.form, kind)[API_HEADER.size :])
        puts = calls.status_of(reply)
        return reply.reason, puts.reason, puts.done, puts.failed, puts.name

    def request_message(self, handle: int, options: int = 0, wait_ms: int = 0, longest: int = -1, seq: int = 0) -> None:
        """Ask for one message, as Java programs do whose connection is shared. seq: as its token says, 0 for any."""
        match = MQMO_MATCH_MSG_TOKEN if seq else 0
        wanted = Wanted(
            options, wait_ms or None, None if longest < 0 else longest, match, token=seq.to_bytes(16, "big"), ccsid=0
        )
        data = calls.request_message(
            self.form, handle, wanted, received=0, last=0, selection=1, selects=True, checks=False
        )
        self.send(self.header(SegmentType.REQUEST_MSGS)._replace(request=1).write(data))

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
        target = Target(kind=MQOT_TOPIC, topic=topic)
        payload = calls.put1(self.form, target, self.md(**fields), body, options, level=level)
        return self.call(SegmentType.MQPUT1, payload[API_HEADER.size :]).reason

    def subscribe(self, options: int, topic: str = "", name: str = "", queue: int = 0, **fields: Any) -> Subscribed:
        """MQSUB."""
        data = self.long(-1) + self.long(0) + self.sd(options, topic, name, **fields)
        reply = self.call(SegmentType.MQSUB, data, queue)
        made = calls.subscribed(reply)
        return Subscribed(reply.reason, made.hsub, made.hobj, made.descriptor)

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
        named = {_OF_SD[name]: value for name, value in fields.items()}
        return Subscribing(options, topic, name=name, **named).encode(self.form)

    def subscribed(self, options: int, topic: str = "", name: str = "", queue: int = 0, **fields: Any) -> Subscribed:
        """MQSUB, which succeeded."""
        made = self.subscribe(options, topic, name, queue, **fields)
        assert made.reason == 0, made.reason
        return made

    def request_retained(self, hsub: int, action: int = 1) -> tuple[int, int]:
        """MQSUBRQ; the reason, and how many publications were sent."""
        reply = self.call(SegmentType.MQSUBRQ, calls.request_retained(self.form, hsub, action)[API_HEADER.size :], hsub)
        return reply.reason, calls.retained_sent(reply)

    def disconnect(self) -> int:
        return self.call(SegmentType.MQDISC).reason
