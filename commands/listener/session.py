"""One connection of a client: its segments, what both ends agree on, and its conversations.

    INITIAL_DATA ... USERID  CONAUTH_INFO  MQCONN  calls  MQDISC        in the one conversation of a connection
    SOCKET_ACTION                                                       begins and ends further ones, where it is shared

The calls of one conversation are answered one after the other, those of several as they are done. A program that is not
connected yet can send MQCONN, in one short segment, and nothing that takes memory of those that are. The first wrong
password ends the connection.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from commands.broker.channel_authentication import distinguished_name
from commands.broker.channel_objects import SVRCONN, ServerChannel
from commands.listener import calls, spi, streaming
from commands.listener.conversation import Attempts, Conversation, Shared
from commands.listener.request import Held, Memory, Request
from commands.listener.security import Credentials, Identity, tls_refusal
from commands.listener.streaming import MOST_WAITING, Line
from commands.listener.wire import Gate, Most, Terms, Wire, answer_to_offer, channel_of, status
from commands.qmgr.event_numbers import ADDRESS_BLOCKED, CHANNEL_DISABLED, NO_CHANNEL, TOO_MANY_INSTANCES
from commands.qmgr.mqi.refusals import MqiError
from rfh2.ccsid import ENCODINGS, ByteOrder
from rfh2.channel import segments as seg
from rfh2.channel.layouts import API_HEADER, CAUT, NOTIFICATION, SOCKET_ACTION, UID, UID_LONG
from rfh2.errors import DecodeError, QPubSubError, QueueError
from rfh2.mqi_constants import MQCC_FAILED

_log: Final = logging.getLogger("qpubsub.listener")
_FIRST_CALL: Final = 0x80
_START, _STARTED, _END = 1, 8, 2
_MARGIN_BYTES: Final = 65_536
_CAUT_NEW_BYTES: Final = 8
# Before a program is connected: MQCONN has less than 500 bytes.
_SHORT_BYTES: Final = 4_096
# After a wrong password, until the connection is closed.
_LINGER_S: Final = 0.5
NO_LIMITS: Final = ServerChannel("", SVRCONN)
_OF_STRANGERS: Final = frozenset({seg.SegmentType.MQCONN, seg.SegmentType.MQDISC})


class ProtocolError(QPubSubError):
    """The other end does what the protocol does not allow. code: for the STATUS segment that says so.

    number: of IBM MQ's message for it, 0 for none.
    """

    def __init__(self, code: int, why: str, number: int = 0) -> None:
        super().__init__(code, why, number)
        self.code, self.why, self.number = code, why, number

    def __str__(self) -> str:
        return self.why


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one connection may have. sharing: the most conversations (SHARECNV). longest_message: bytes (MAXMSGL).

    heartbeat_s: HBINT; the longer one, ours or the client's, is agreed. first_s: until a program is connected. send_s:
    how long the other end may take nothing of what was sent.
    """

    sharing: int = 10
    longest_message: int = 104_857_600
    heartbeat_s: int = 300
    first_s: float = 30.0
    send_s: float = 300.0


class Session:
    """A connection. random: gives that many random bytes."""

    def __init__(self, wire: Wire, shared: Shared, bounds: Bounds, random: Callable[[int], bytes]) -> None:
        self._wire, self._shared, self._bounds, self._random = wire, shared, bounds, random
        subject, issuer = (distinguished_name(wire.certificate.get(which, ())) for which in ("subject", "issuer"))
        self._identity = Identity("", wire.address, subject=subject, issuer=issuer)
        self._terms: Terms | None = None
        self._instance: str | None = None
        self._lines: dict[int | None, Line] = {}
        self.calls = 0
        self._pulse: seg.Pulse | None = None
        self._had_program = False
        self._attempts = Attempts()
        self._clock = asyncio.get_running_loop().time
        self._timers: list[asyncio.TimerHandle] = []

    async def run(self) -> None:
        """Serve the client until it goes. Nothing of it is left afterwards."""
        loop = asyncio.get_running_loop()
        self._timers.append(loop.call_later(self._bounds.first_s, self._require_a_program))
        try:
            await self._agree()
            while (received := await self._wire.receive(self._longest)) is not None:
                if self._pulse is not None:
                    self._pulse.hear(self._clock())
                if not await self._take(*received):
                    break
        except (DecodeError, ProtocolError, MqiError) as error:
            code = error.code if isinstance(error, ProtocolError) else seg.BAD_SEGMENT
            number = error.number if isinstance(error, ProtocolError) else 0
            numbers = (number,) if number else ()
            level, text = logging.ERROR if numbers else logging.WARNING, "%s: %s; the connection is closed"
            _log.log(level, text, self._wire.trace, error, extra={"numbers": numbers})
            await self._wire.send_status(self._wire.latest, seg.ERROR | seg.CLOSE, code)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError) as error:
            _log.info("%s: the connection broke: %s", self._wire.trace, error)
        finally:
            await self._end()

    @property
    def wire(self) -> Wire:
        """The segments, in and out."""
        return self._wire

    @property
    def terms(self) -> Terms | None:
        """What was agreed; None before that."""
        return self._terms

    @property
    def done(self) -> tuple[int, int]:
        """How many messages all its programs have put and got."""
        programs = [program for each in self.conversations if (program := each.program) is not None]
        puts, gets = sum(program.puts for program in programs), sum(program.gets for program in programs)
        return self._attempts.puts + puts, self._attempts.gets + gets

    @property
    def conversations(self) -> list[Conversation]:
        """Those whose programs are connected."""
        return [line.conversation for line in self._lines.values() if line.conversation.is_connected]

    def terminate(self) -> None:
        """Tell the client that the queue manager ends, without waiting for a client that reads nothing."""
        self._wire.write(status(self._wire.latest, seg.ERROR | seg.CLOSE, seg.TERMINATING))

    # Whether the client is there

    @property
    def _has_had_a_program(self) -> bool:
        if not self._had_program:
            self._had_program = any(line.conversation.was_connected for line in self._lines.values())
        return self._had_program

    def _longest(self) -> int:
        """The most bytes that the next segment may have."""
        return seg.LARGEST_SEGMENT if self._has_had_a_program else _SHORT_BYTES

    def _require_a_program(self) -> None:
        if not self._has_had_a_program:
            self._wire.break_off(f"no program connected within {self._bounds.first_s:g} s")

    def _begin_heartbeats(self, interval_s: int) -> None:
        if interval_s > 0:
            self._pulse = seg.Pulse(interval_s, self._clock())
            self._look()

    def _look(self) -> None:
        """Ask whether the client is there, or end the connection, where that is due; and look again later."""
        assert self._pulse is not None
        assert self._terms is not None
        waits = any(line.conversation.waits for line in self._lines.values())
        beat, next_s = self._pulse.beat(self._clock(), reads=waits or self._terms.conversations > 0)
        if beat is seg.Beat.GONE:
            self._wire.break_off(f"no answer to a heartbeat in {self._pulse.patience_s:g} s")
            return
        if beat is seg.Beat.ASK:
            self._wire.ask()
        self._timers[1:] = [asyncio.get_running_loop().call_at(next_s, self._look)]

    async def _end(self) -> None:
        for timer in self._timers:
            timer.cancel()
        try:
            for line in list(self._lines.values()):
                await self._end_line(line)
        finally:
            self._lines.clear()
            if self._instance is not None:
                self._shared.instances.end(self._instance, self._wire.address)
            self._wire.close()

    async def _end_line(self, line: Line) -> None:
        tasks = [task for task in (line.task, *line.pulls) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        line.release()
        try:
            await line.conversation.disconnect(commit=False)
        except QPubSubError as error:
            _log.warning("%s: %s", self._wire.trace, error)

    # Negotiation

    async def _agree(self) -> None:
        rules = await self._shared.rules()
        blocking = rules.blocking(self._wire.address)
        if blocking is not None and not blocking.warns:
            raise ProtocolError(seg.CHANNEL_UNAVAILABLE, "its address is blocked (BLOCKADDR)", ADDRESS_BLOCKED)
        highest = seg.FAP_OF_PLAIN_PASSWORDS if self._shared.security.reads_passwords(rules) else seg.HIGHEST_FAP
        while self._terms is None:
            received = await self._wire.receive(self._longest)
            if received is None:
                raise ConnectionError("it ended before the first segment")
            header, payload = received
            if header.kind != seg.SegmentType.INITIAL_DATA:
                raise ProtocolError(seg.BAD_SEGMENT, f"segment type {header.kind:#04x} came before INITIAL_DATA")
            order: ByteOrder = "little"
            offer = seg.turned(bytes(payload), header.order, order)
            name = channel_of(offer, order)
            channel = rules.channel(name, self._wire.address) or NO_LIMITS
            most = self._most(channel, highest)
            reply = answer_to_offer(offer, order, self._shared.name, self._random(12), most)
            if not reply.terms.is_client:
                raise ProtocolError(seg.WRONG_CHANNEL_TYPE, "the other end is a queue manager's channel, not a client")
            if channel is NO_LIMITS:
                raise ProtocolError(seg.NO_SUCH_CHANNEL, f"there is no channel {name!r}", NO_CHANNEL)
            if name in self._shared.stopped:
                raise ProtocolError(seg.CHANNEL_UNAVAILABLE, f"channel {name} was stopped", CHANNEL_DISABLED)
            if why := tls_refusal(channel, self._wire.cipher, self._identity.subject):
                raise ProtocolError(seg.CHANNEL_UNAVAILABLE, f"channel {name}: {why}")
            if reply.is_agreed:
                self._begin_instance(channel, name)
            encoding = ENCODINGS["big" if reply.flags & seg.ERROR else order]
            sent = seg.SegmentHeader(header.kind, reply.flags, 0, order, encoding, seg.CCSID, header.conversation)
            await self._wire.send(sent.write(reply.payload))
            if reply.is_agreed:
                self._terms = reply.terms
        self._identity = replace(self._identity, channel=self._terms.channel)
        first = 1 if self._terms.conversations else None
        self._begin_line(first)
        self._begin_heartbeats(self._terms.heartbeat_s)

    def _most(self, channel: ServerChannel, fap: int) -> Most:
        """What *channel* and the configuration allow; the configuration's heartbeat where HBINT has its default."""
        bounds = self._bounds
        longest = min(bounds.longest_message, channel.max_message_length)
        heartbeat = bounds.heartbeat_s if channel.heartbeat == NO_LIMITS.heartbeat else channel.heartbeat
        return Most(min(bounds.sharing, channel.sharing), fap, longest, heartbeat)

    def _begin_instance(self, channel: ServerChannel, name: str) -> None:
        address = self._wire.address
        if not self._shared.instances.begin(name, address, channel.instances, channel.instances_of_client):
            why = f"channel {name} has as many connections as it may have"
            raise ProtocolError(seg.CHANNEL_UNAVAILABLE, why, TOO_MANY_INSTANCES)
        self._instance = name

    def _begin_line(self, number: int | None) -> Line:
        line = self._lines[number] = Line(Conversation(self._shared, self._identity, self._wire.trace, self._attempts))
        line.task = asyncio.create_task(self._serve(line))
        line.task.add_done_callback(self._look_for_fault)
        return line

    def _look_for_fault(self, task: asyncio.Task[None]) -> None:
        """A client whose call nobody answers any more would wait for ever."""
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, ConnectionError):
            _log.error("%s: a fault; the connection is closed", self._wire.trace, exc_info=error)
            self._wire.close()

    # Conversations

    async def _take(self, header: seg.SegmentHeader, payload: bytearray) -> bool:
        """Take one segment; whether more may come. Raises DecodeError, ProtocolError."""
        kind = header.kind
        if kind == seg.SegmentType.SOCKET_ACTION:
            return await self._socket_action(header, payload)
        if kind == seg.SegmentType.HEARTBEAT:
            if header.flags & seg.CONFIRM:
                await self._wire.answer_heartbeat()
            return True
        line = self._lines.get(header.conversation)
        if line is None:
            raise ProtocolError(seg.BAD_SEGMENT, f"there is no conversation {header.conversation}")
        if kind == seg.SegmentType.USERID:
            self._identity = _user(self._identity, payload, header)
            line.identify(self._identity)
        elif kind == seg.SegmentType.CONAUTH_INFO:
            line.credentials = _credentials(payload, header)
            line.identify(self._identity)
            await self._wire.send_status(header, seg.ACCEPTED)
        elif kind == seg.SegmentType.STATUS:
            return not header.flags & seg.CLOSE
        elif not line.conversation.was_connected:
            self.calls += 1
            self._collect_first(line, header, payload)
        elif kind == seg.SegmentType.NOTIFICATION:
            await self._notified(line, header, payload)
        elif kind == seg.SegmentType.REQUEST_MSGS:
            self.calls += 1
            self._pull(line, Request(header, payload, Held(self._shared.memory)))
        elif kind >= _FIRST_CALL:
            self._collect(line, header, payload)
            await self._catch_up(line)
        else:
            raise ProtocolError(seg.BAD_SEGMENT, f"segment type {kind:#04x} has no place on a client channel")
        return True

    @staticmethod
    def _collect_first(line: Line, header: seg.SegmentHeader, payload: bytearray) -> None:
        """Take what a program sends that is not connected yet. Raises ProtocolError for anything but MQCONN."""
        if header.kind not in _OF_STRANGERS or not header.flags & seg.FIRST or not header.flags & seg.LAST:
            raise ProtocolError(seg.BAD_SEGMENT, f"segment type {header.kind:#04x}: the program is not connected")
        if len(payload) > _SHORT_BYTES or line.requests:
            raise ProtocolError(seg.BAD_SEGMENT, "the program is not connected, and sends more than it may")
        line.add(Request(header, payload, Held(Memory(_SHORT_BYTES))))

    def _collect(self, line: Line, header: seg.SegmentHeader, payload: bytearray) -> None:
        if header.flags & seg.FIRST:
            if line.partial is not None:
                raise ProtocolError(seg.BAD_SEGMENT, "a call begins within another one")
            line.partial = Request(header, payload, Held(self._shared.memory))
        elif line.partial is None or line.partial.header.kind != header.kind:
            raise ProtocolError(seg.BAD_SEGMENT, "a segment continues a call that did not begin")
        else:
            line.partial.data.extend(payload)
        assert line.partial is not None
        assert self._terms is not None
        line.partial.held.add(len(payload))
        if len(line.partial.data) > self._terms.longest_message + _MARGIN_BYTES:
            raise ProtocolError(seg.BAD_SEGMENT, "a call is longer than the longest message")
        if header.flags & seg.LAST:
            self.calls += 1
            request, line.partial = line.partial, None
            line.add(request)

    async def _catch_up(self, line: Line) -> None:
        """Read nothing more while too much of *line* waits: its program puts without waiting for answers."""
        while line.is_behind and line.task is not None and not line.task.done():
            await line.catch_up()
            # It may have answered a heartbeat, which is not read yet.
            if self._pulse is not None:
                self._pulse.hear(self._clock())

    async def _socket_action(self, header: seg.SegmentHeader, payload: bytearray) -> bool:
        action = seg.Structure(SOCKET_ACTION, payload, 0, header.order)
        number, kind = action["ConversationId"] & 0xFFFF_FFFF, action["Type"]  # a number without a sign, as in TSHM
        assert self._terms is not None
        if kind == _END:
            line = self._lines.pop(number, None)
            if line is not None:
                self._had_program |= line.conversation.was_connected
                await self._end_line(line)
            return not header.flags & seg.CLOSE
        if kind != _START or number in self._lines or len(self._lines) >= self._terms.conversations:
            await self._wire.send_status(header._replace(conversation=number), seg.ERROR, seg.CHANNEL_UNAVAILABLE)
            return True
        self._begin_line(number)
        action["Type"] = _STARTED
        started = seg.SegmentHeader(header.kind, 0, 0, header.order, ENCODINGS[header.order], header.ccsid, number)
        await self._wire.send(started.write(bytes(action)))
        return True

    async def _serve(self, line: Line) -> None:
        """Answer the calls of one conversation, one after the other."""
        while True:
            request = await line.next()
            try:
                await self._answer(line, request)
            finally:
                request.held.release()

    async def _answer(self, line: Line, request: Request) -> None:
        assert self._terms is not None
        stream = line.streams.pop(request.handle, None) if request.header.kind == seg.SegmentType.MQCLOSE else None
        if stream is not None:
            await stream.consumer.end()
            await stream.call.end()
        try:
            if request.header.kind == seg.SegmentType.SPI:
                payload = await spi.answered(line.conversation, request)
            elif request.header.kind in calls.XA_CALLS:
                payload = await calls.xa_answered(line.conversation, request)
            else:
                payload = await calls.answered(line.conversation, request)
        except (MqiError, QueueError) as error:
            line.conversation.debug(f"SPI: {error}")
            payload = request.reply(request.data[API_HEADER.size :], MQCC_FAILED, error.reason)
        except DecodeError as error:
            _log.warning("%s: %s; the connection is closed", self._wire.trace, error)
            await self._wire.send_status(request.header, seg.ERROR | seg.CLOSE, seg.BAD_SEGMENT)
            self._wire.close()
            return
        if payload == calls.NO_REPLY:
            return
        if stream is not None:
            payload = request.reply(handle=request.handle)
        await self._send(line, seg.split(request.reply_header(), payload, self._terms.largest))
        if self._attempts.has_failed:
            # Not at once: a client whose next segment nobody reads may lose the reply, and see 2009 instead of 2035.
            asyncio.get_running_loop().call_later(_LINGER_S, self._wire.close)

    async def _send(self, line: Line, segments: Iterable[bytes]) -> None:
        async with line.sending:
            await self._wire.send_long(segments)

    async def _notified(self, line: Line, header: seg.SegmentHeader, payload: bytearray) -> None:
        fields = seg.Structure(NOTIFICATION, payload, 0, header.order)
        code, value = fields["Code"], fields["Value"]
        if code == seg.CONN_STATE:
            line.is_started = bool(value)
            for stream in line.streams.values():
                await stream.consumer.set_open(line.is_started)
        if header.request != 1 and code in (seg.CONN_STATE, seg.Q_STATE):
            await self._send(line, (streaming.notification(header, fields["ObjectHandle"], code + 1, value),))

    def _pull(self, line: Line, request: Request) -> None:
        wanted = streaming.read_request(request)
        stream = line.streams.get(wanted.handle)
        if stream is None:
            stream = streaming.Stream(streaming.Selection(), Gate(line.is_started), Gate(True))
            line.streams[wanted.handle] = stream
        if len(line.pulls) >= MOST_WAITING:
            raise ProtocolError(seg.BAD_SEGMENT, f"more than {MOST_WAITING} requests of one conversation wait")
        if wanted.selection is not None:
            stream.selection = wanted.selection
        task = asyncio.create_task(self._send_message(line, request, wanted, stream))
        line.pulls.add(task)
        task.add_done_callback(partial(self._pulled, line))

    def _pulled(self, line: Line, task: asyncio.Task[None]) -> None:
        line.pulls.discard(task)
        self._look_for_fault(task)

    async def _send_message(
        self, line: Line, request: Request, wanted: streaming.Wanted, stream: streaming.Stream
    ) -> None:
        assert self._terms is not None
        largest = self._terms.largest
        try:
            await self._send(line, await streaming.sent_message(line.conversation, request, wanted, stream, largest))
        finally:
            request.held.release()


def _user(identity: Identity, payload: bytearray, header: seg.SegmentHeader) -> Identity:
    layout = UID_LONG if len(payload) >= UID_LONG.size else UID
    fields = seg.Structure(layout, payload, 0, header.order, header.charset)
    user = fields.text("LongUserIdentifier") if layout is UID_LONG else ""
    user, password = user or fields.text("UserIdentifier"), fields.text("Password")
    return replace(identity, user=user, credentials=Credentials(user, password) if password else None)


def _credentials(payload: bytearray, header: seg.SegmentHeader) -> Credentials:
    fields = seg.Structure(CAUT, payload, 0, header.order, header.charset)
    user_length, password_length = fields["UserLength"], fields["PasswordLength"]
    if user_length < 0 or password_length < 0 or fields.end + user_length + password_length > len(payload):
        raise DecodeError(fields.at, "CAUT", "the user or the password ends after the segment")
    # Newer clients have two more numbers before the user: their segment is so much longer than the lengths need.
    at = fields.end
    if len(payload) - at - -(-(user_length + password_length) // 4) * 4 >= _CAUT_NEW_BYTES:
        at += _CAUT_NEW_BYTES
    user = bytes(payload[at : at + user_length]).decode(header.charset, "replace")
    password = bytes(payload[at + user_length : at + user_length + password_length]).decode(header.charset, "replace")
    return Credentials(user, password)
