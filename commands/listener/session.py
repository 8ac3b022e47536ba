"""One connection of a client: its segments, what both ends agree on, and its conversations.

    INITIAL_DATA ... USERID  CONAUTH_INFO  MQCONN  calls  MQDISC        in the one conversation of a connection
    SOCKET_ACTION                                                       begins and ends further ones, where it is shared

The calls of one conversation are answered one after the other, those of several as they are done.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from commands.listener import calls, spi, streaming
from commands.listener.conversation import Conversation, Manager
from commands.listener.gate import Gate
from commands.listener.negotiation import FAP_OF_PLAIN_PASSWORDS, HIGHEST_FAP, Terms, answer, turned
from commands.listener.request import Request
from commands.listener.security import Identity
from commands.qmgr.mqi.errors import MqiError
from commands.qmgr.store.errors import QueueError
from rfh2.ccsid import ByteOrder
from rfh2.channel.layouts import API_HEADER, CAUT, NOTIFICATION, SOCKET_ACTION, UID, UID_LONG
from rfh2.channel.segments import (
    ACCEPTED,
    CLOSE,
    CONFIRM,
    ERROR,
    FIRST,
    LAST,
    PREFIX_BYTES,
    SegmentHeader,
    SegmentType,
    read_segment,
    segment_length,
    split,
)
from rfh2.channel.structure import Structure
from rfh2.errors import DecodeError, QPubSubError
from rfh2.mqi_constants import MQCC_FAILED

_log: Final = logging.getLogger("qpubsub.listener")
_FIRST_CALL: Final = 0x80
_START, _STARTED, _END = 1, 8, 2
_NO_SUCH_CHANNEL, _WRONG_CHANNEL_TYPE, _BAD_SEGMENT, _NO_CONVERSATION = 0x01, 0x02, 0x0D, 0x16
_MARGIN_BYTES: Final = 65_536
_CAUT_NEW_BYTES: Final = 8
# A program waits for the reply before its next call, except where it asks for messages.
_MOST_WAITING: Final = 64


class ProtocolError(QPubSubError):
    """The other end does what the protocol does not allow. code: for the STATUS segment that says so."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(code, why)
        self.code, self.why = code, why

    def __str__(self) -> str:
        return self.why


@dataclass(slots=True)
class _Line:
    """A conversation on this connection, what is half received for it, and the calls that wait for their turn."""

    conversation: Conversation
    requests: asyncio.Queue[Request] = field(default_factory=lambda: asyncio.Queue(_MOST_WAITING))
    streams: dict[int, streaming.Stream] = field(default_factory=dict)
    partial: Request | None = None
    task: asyncio.Task[None] | None = None
    pulls: set[asyncio.Task[None]] = field(default_factory=set)
    is_started: bool = False


class Session:
    """A connection. sharing: the most conversations on it. first_s: to agree. random: gives that many random bytes."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        manager: Manager,
        sharing: int,
        first_s: float,
        random: Callable[[int], bytes],
    ) -> None:
        self._reader, self._writer, self._manager = reader, writer, manager
        self._sharing, self._first_s, self._random = sharing, first_s, random
        peer = writer.get_extra_info("peername")
        self._address = str(peer[0]) if peer else ""
        self._trace = f"{peer[0]}:{peer[1]}" if peer else "connection"
        self._identity = Identity("", self._address)
        self._terms: Terms | None = None
        self._lines: dict[int | None, _Line] = {}
        self._latest = SegmentHeader(SegmentType.INITIAL_DATA)

    async def run(self) -> None:
        """Serve the client until it goes. Nothing of it is left afterwards."""
        try:
            await asyncio.wait_for(self._agree(), self._first_s)
            while (received := await self._receive()) is not None:
                if not await self._take(*received):
                    break
        except (DecodeError, ProtocolError) as error:
            _log.warning("%s: %s; the connection is closed", self._trace, error)
            code = error.code if isinstance(error, ProtocolError) else _BAD_SEGMENT
            await self._send_status(self._latest, ERROR | CLOSE, code)
        except TimeoutError:
            _log.warning("%s: nothing was agreed in %g s; the connection is closed", self._trace, self._first_s)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError) as error:
            _log.info("%s: the connection broke: %s", self._trace, error)
        finally:
            await self._end()

    async def _end(self) -> None:
        for line in list(self._lines.values()):
            await self._end_line(line)
        self._lines.clear()
        self._writer.close()

    async def _end_line(self, line: _Line) -> None:
        tasks = [task for task in (line.task, *line.pulls) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            await line.conversation.disconnect(commit=False)
        except QPubSubError as error:
            _log.warning("%s: %s", self._trace, error)

    # Segments

    async def _receive(self) -> tuple[SegmentHeader, bytes] | None:
        """The next segment; None where the client has ended. Raises DecodeError."""
        prefix = await self._reader.read(1)
        if not prefix:
            return None
        prefix += await self._reader.readexactly(PREFIX_BYTES - 1)
        rest = await self._reader.readexactly(segment_length(prefix) - PREFIX_BYTES)
        header, payload = read_segment(prefix + rest)
        self._latest = header
        return header, payload

    async def _send(self, *segments: bytes) -> None:
        self._writer.write(b"".join(segments))
        await self._writer.drain()

    async def _send_status(self, header: SegmentHeader, flags: int, code: int | None = None) -> None:
        body = b"" if code is None else b"".join(n.to_bytes(4, header.order) for n in (8, code))
        encoding = 0x222 if header.order == "little" else 0x111
        conversation = header.conversation if code is None else None
        answered = replace(
            header, kind=int(SegmentType.STATUS), flags=flags, flags2=0, encoding=encoding, conversation=conversation
        )
        with suppress(ConnectionError):
            await self._send(answered.write(body))

    # Negotiation

    async def _agree(self) -> None:
        highest = FAP_OF_PLAIN_PASSWORDS if self._manager.security.reads_passwords else HIGHEST_FAP
        while self._terms is None:
            received = await self._receive()
            if received is None:
                raise ConnectionError("it ended before the first segment")
            header, payload = received
            if header.kind != SegmentType.INITIAL_DATA:
                raise ProtocolError(_BAD_SEGMENT, f"segment type {header.kind:#04x} came before INITIAL_DATA")
            order: ByteOrder = "little"
            offer = turned(payload, header.order, order)
            reply = answer(offer, order, self._manager.name, self._sharing, self._random(12), highest)
            if not reply.terms.is_client:
                raise ProtocolError(_WRONG_CHANNEL_TYPE, "the other end is a queue manager's channel, not a client")
            sent = SegmentHeader(
                *(header.kind, reply.flags, 0, order, 0x222 if order == "little" else 0x111, 819, header.conversation)
            )
            if reply.flags & ERROR:
                sent = replace(sent, encoding=0x111)
            await self._send(sent.write(reply.payload))
            if reply.is_agreed:
                self._terms = reply.terms
        self._identity = replace(self._identity, channel=self._terms.channel)
        first = 1 if self._terms.conversations else None
        self._begin_line(first)

    def _begin_line(self, number: int | None) -> _Line:
        line = self._lines[number] = _Line(Conversation(self._manager, self._identity, self._trace))
        line.task = asyncio.create_task(self._serve(line))
        return line

    # Conversations

    async def _take(self, header: SegmentHeader, payload: bytes) -> bool:
        """Take one segment; whether more may come. Raises DecodeError, ProtocolError."""
        kind = header.kind
        if kind == SegmentType.SOCKET_ACTION:
            return await self._socket_action(header, payload)
        if kind == SegmentType.HEARTBEAT:
            if header.flags & CONFIRM:
                await self._send(replace(header, flags=ACCEPTED).write(b""))
            return True
        line = self._lines.get(header.conversation)
        if line is None:
            raise ProtocolError(_BAD_SEGMENT, f"there is no conversation {header.conversation}")
        if kind == SegmentType.USERID:
            self._identity = _user(self._identity, payload, header)
            line.conversation.identity = self._identity
        elif kind == SegmentType.CONAUTH_INFO:
            line.conversation.identity = _credentials(self._identity, payload, header)
            await self._send_status(header, ACCEPTED)
        elif kind == SegmentType.STATUS:
            return not header.flags & CLOSE
        elif kind == SegmentType.NOTIFICATION:
            await self._notified(line, header, payload)
        elif kind == SegmentType.REQUEST_MSGS:
            self._pull(line, Request(header, bytearray(payload)))
        elif kind >= _FIRST_CALL:
            self._collect(line, header, payload)
        else:
            raise ProtocolError(_BAD_SEGMENT, f"segment type {kind:#04x} has no place on a client channel")
        return True

    def _collect(self, line: _Line, header: SegmentHeader, payload: bytes) -> None:
        if header.flags & FIRST:
            line.partial = Request(header, bytearray(payload))
        elif line.partial is None or line.partial.header.kind != header.kind:
            raise ProtocolError(_BAD_SEGMENT, "a call goes on that did not begin")
        else:
            line.partial.data.extend(payload)
        assert line.partial is not None
        assert self._terms is not None
        if len(line.partial.data) > self._terms.longest_message + _MARGIN_BYTES:
            raise ProtocolError(_BAD_SEGMENT, "a call is longer than the longest message")
        if header.flags & LAST:
            request, line.partial = line.partial, None
            if len(request.data) < API_HEADER.size:
                raise DecodeError(len(request.data), "API header", "it is cut")
            if line.requests.full():
                raise ProtocolError(_BAD_SEGMENT, f"more than {_MOST_WAITING} calls of one conversation wait")
            line.requests.put_nowait(request)

    async def _socket_action(self, header: SegmentHeader, payload: bytes) -> bool:
        action = Structure(SOCKET_ACTION, bytearray(payload), 0, header.order)
        number, kind = action["ConversationId"] & 0xFFFF_FFFF, action["Type"]  # a number without a sign, as in TSHM
        assert self._terms is not None
        if kind == _END:
            line = self._lines.pop(number, None)
            if line is not None:
                await self._end_line(line)
            return not header.flags & CLOSE
        if kind != _START or number in self._lines or len(self._lines) >= self._terms.conversations:
            await self._send_status(replace(header, conversation=number), ERROR, _NO_CONVERSATION)
            return True
        self._begin_line(number)
        action["Type"] = _STARTED
        started = SegmentHeader(
            *(header.kind, 0, 0, header.order, 0x222 if header.order == "little" else 0x111, header.ccsid, number)
        )
        await self._send(started.write(bytes(action)))
        return True

    async def _serve(self, line: _Line) -> None:
        """Answer the calls of one conversation, one after the other."""
        while True:
            request = await line.requests.get()
            await self._answer(line, request)

    async def _answer(self, line: _Line, request: Request) -> None:
        assert self._terms is not None
        stream = line.streams.pop(request.handle, None) if request.header.kind == SegmentType.MQCLOSE else None
        if stream is not None:
            await stream.consumer.end()
            await stream.call.end()
        try:
            if request.header.kind == SegmentType.SPI:
                payload = await spi.answered(line.conversation, request)
            else:
                payload = await calls.answered(line.conversation, request)
        except (MqiError, QueueError) as error:
            line.conversation.debug(f"SPI: {error}")
            payload = request.reply(request.data[API_HEADER.size :], MQCC_FAILED, error.reason)
        except DecodeError as error:
            _log.warning("%s: %s; the connection is closed", self._trace, error)
            await self._send_status(request.header, ERROR | CLOSE, _BAD_SEGMENT)
            self._writer.close()
            return
        if stream is not None:
            payload = request.reply(handle=request.handle)
        await self._send(*split(request.reply_header(), payload, self._terms.largest))

    async def _notified(self, line: _Line, header: SegmentHeader, payload: bytes) -> None:
        fields = Structure(NOTIFICATION, bytearray(payload), 0, header.order)
        code, value = fields["Code"], fields["Value"]
        if code == streaming.CONN_STATE:
            line.is_started = bool(value)
            for stream in line.streams.values():
                await stream.consumer.set_open(line.is_started)
        if header.request != 1 and code in (streaming.CONN_STATE, streaming.Q_STATE):
            await self._send(streaming.notification(header, fields["ObjectHandle"], code + 1, value))

    def _pull(self, line: _Line, request: Request) -> None:
        wanted = streaming.read_request(request)
        stream = line.streams.get(wanted.handle)
        if stream is None:
            stream = streaming.Stream(streaming.Selection(), Gate(line.is_started), Gate(True))
            line.streams[wanted.handle] = stream
        if len(line.pulls) >= _MOST_WAITING:
            raise ProtocolError(_BAD_SEGMENT, f"more than {_MOST_WAITING} requests of one conversation wait")
        if wanted.selection is not None:
            stream.selection = wanted.selection
        task = asyncio.create_task(self._send_message(line, request, wanted, stream))
        line.pulls.add(task)
        task.add_done_callback(line.pulls.discard)

    async def _send_message(
        self, line: _Line, request: Request, wanted: streaming.Wanted, stream: streaming.Stream
    ) -> None:
        assert self._terms is not None
        await self._send(*await streaming.sent_message(line.conversation, request, wanted, stream, self._terms.largest))


def _user(identity: Identity, payload: bytes, header: SegmentHeader) -> Identity:
    data = bytearray(payload)
    layout = UID_LONG if len(data) >= UID_LONG.size else UID
    fields = Structure(layout, data, 0, header.order, header.charset)
    user = fields.text("LongUserIdentifier") if layout is UID_LONG else ""
    password = fields.text("Password")
    return replace(identity, user=user or fields.text("UserIdentifier"), password=password or None)


def _credentials(identity: Identity, payload: bytes, header: SegmentHeader) -> Identity:
    data = bytearray(payload)
    fields = Structure(CAUT, data, 0, header.order, header.charset)
    user_length, password_length = fields["UserLength"], fields["PasswordLength"]
    if user_length < 0 or password_length < 0 or fields.end + user_length + password_length > len(data):
        raise DecodeError(fields.at, "CAUT", "the user or the password ends behind the segment")
    # Newer clients have two more numbers before the user: their segment is so much longer than the lengths need.
    at = fields.end
    if len(data) - at - -(-(user_length + password_length) // 4) * 4 >= _CAUT_NEW_BYTES:
        at += _CAUT_NEW_BYTES
    user = bytes(data[at : at + user_length]).decode(header.charset, "replace")
    password = bytes(data[at + user_length : at + user_length + password_length]).decode(header.charset, "replace")
    return replace(identity, user=user, password=password)
