"""The segments of one connection, in and out, and whether the other end still takes them.

INITIAL_DATA: what the two ends of a client channel agree on (docs/wire-formats.md).

The client offers its values. The server answers with its own, and marks those of the client that it does not accept;
then the client offers again. A server lowers, it never raises, except for the heartbeat interval.

What tasks of the listener wait for: new messages on a queue; and that messages may be sent for an open queue.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeAlias

from commands.qmgr.mqi.attributes import identifier
from rfh2.ccsid import ENCODINGS, ByteOrder
from rfh2.channel import segments as seg
from rfh2.channel.layouts import ID_BEGIN, ID_MORE, ID_PROTECTION, ID_SHARING
from rfh2.errors import DecodeError

Signal: TypeAlias = asyncio.Future[None]
"""What tasks wait for with ``asyncio.wait``, which leaves it to the others when one of them is cancelled."""


def new_signal() -> Signal:
    """One that is not given yet."""
    return asyncio.get_running_loop().create_future()


def give(signal: Signal) -> None:
    """Let all go on who wait for it."""
    if not signal.done():
        signal.set_result(None)


class MessageWaiters:
    """Wakes those who wait for messages."""

    def __init__(self) -> None:
        self._expected: dict[str, Signal] = {}

    def wake(self, queues: Iterable[str] | None) -> None:
        """There may be new messages on *queues*; None for any queue."""
        for name in list(self._expected) if queues is None else queues:
            expected = self._expected.pop(name, None)
            if expected is not None:
                give(expected)

    def expect(self, queue: str) -> Signal:
        """Given when something may next have come to *queue*; all who wait for one queue share it."""
        expected = self._expected.get(queue)
        if expected is None:
            expected = self._expected[queue] = new_signal()
        return expected


class Gate:
    """Whether messages may be sent for one open queue: a consumer is started and stopped, and its queue is closed.

    Open or not, and ended in the end. Who passes is within it until the message that it takes is on its way.
    """

    def __init__(self, is_open: bool) -> None:
        self._is_open, self._is_ended = is_open, False
        self._passing, self._passed = 0, new_signal()
        self._changed = new_signal()

    @property
    def is_ended(self) -> bool:
        """Whether nothing may pass any more."""
        return self._is_ended

    async def set_open(self, is_open: bool) -> None:
        """Open or close it; when it is closed, whoever was passing has passed."""
        self._is_open = is_open
        self._tell()
        if not is_open:
            await self._until_passed()

    async def end(self) -> None:
        """Let nothing pass any more; whoever was passing has passed."""
        self._is_ended = True
        self._tell()
        await self._until_passed()

    async def _until_passed(self) -> None:
        while self._passing:
            await asyncio.wait((self._passed,))

    def _tell(self) -> None:
        changed, self._changed = self._changed, new_signal()
        give(changed)

    def change(self) -> Signal:
        """Given when the gate is next opened, closed or ended."""
        return self._changed

    async def open(self) -> bool:
        """Wait until it is open; False where it has ended."""
        while not (self._is_open or self._is_ended):
            await asyncio.wait((self._changed,))
        return not self._is_ended

    def enter(self) -> bool:
        """Whether it is open; if so, pass until ``leave``."""
        is_open = self._is_open and not self._is_ended
        self._passing += is_open
        return is_open

    def leave(self) -> None:
        """After ``enter``."""
        self._passing -= 1
        if not self._passing:
            passed, self._passed = self._passed, new_signal()
            give(passed)


_log: Final = logging.getLogger("qpubsub.listener")

# Segments of one message or reply that are sent in one turn: at most 1 MiB.
_TOGETHER: Final = 32
# Beyond this, nothing more is read before what came is taken.
_MOST_AHEAD_BYTES: Final = 131_072


class Wire(asyncio.Protocol):
    """send_s: how long the other end may take nothing of what was sent, before the connection is broken."""

    def __init__(self, send_s: float) -> None:
        self._send_s = send_s
        self._received, self._has_ended = bytearray(), False
        self._error: Exception | None = None
        self._arrived: Signal | None = None  # what ``receive`` waits for
        self._drained: Signal | None = None  # given when the other end takes more again
        self.latest = seg.SegmentHeader(seg.SegmentType.INITIAL_DATA)
        self.started_s = self.heard_s = time.time()
        self.received_segments = self.received_bytes = self.sent_segments = self.sent_bytes = 0

    # Of the protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self.address, self.port = (str(peer[0]), int(peer[1])) if peer else ("", 0)
        self.trace = f"{peer[0]}:{peer[1]}" if peer else "connection"
        cipher = transport.get_extra_info("cipher")
        self.cipher: tuple[str, str] | None = None if cipher is None else (cipher[0], cipher[1])
        self.certificate: dict[str, Any] = transport.get_extra_info("peercert") or {}

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) > _MOST_AHEAD_BYTES:
            self._transport.pause_reading()
        self._go_on()

    def eof_received(self) -> bool:
        self._has_ended = True
        self._go_on()
        return self.cipher is None  # what is to be sent still can be, without TLS

    def connection_lost(self, error: Exception | None) -> None:
        self._has_ended, self._error = True, error
        self._go_on()
        self.resume_writing()

    def pause_writing(self) -> None:
        self._drained = new_signal()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None:
            give(drained)

    def _go_on(self) -> None:
        arrived, self._arrived = self._arrived, None
        if arrived is not None:
            give(arrived)

    # Segments

    async def receive(self, longest: Callable[[], int]) -> tuple[seg.SegmentHeader, bytearray] | None:
        """The next segment, of at most *longest* bytes when it comes; None where the client has ended.

        Raises DecodeError, ConnectionError, asyncio.IncompleteReadError.
        """
        while not (length := self._whole(longest)):
            if self._error is not None:
                raise self._error
            if self._has_ended and not self._received:
                return None
            if self._has_ended:
                raise asyncio.IncompleteReadError(bytes(self._received), None)
            self._arrived = new_signal()
            self._transport.resume_reading()
            await self._arrived
        data = self._received[:length]
        del self._received[:length]
        header = seg.read_header(data)
        del data[: header.size]
        self.latest, self.heard_s = header, time.time()
        self.received_segments += 1
        self.received_bytes += length
        return header, data

    def _whole(self, longest: Callable[[], int]) -> int:
        """How long the next segment is, if all of it is there; else 0. Raises DecodeError."""
        received = self._received
        if len(received) < seg.PREFIX_BYTES:
            return 0
        length = seg.segment_length(bytes(received[: seg.PREFIX_BYTES]))
        if length > (most := longest()):
            raise DecodeError(4, "TSH", f"SegmentLength is {length}, and no more than {most} is taken yet")
        return length if len(received) >= length else 0

    async def send(self, *segments: bytes) -> None:
        """Send *segments*; wait where the other end does not take them."""
        self.write(b"".join(segments), len(segments))
        if self._drained is None:
            return
        taken, _ = await asyncio.wait((self._drained,), timeout=self._send_s)
        if not taken:
            self.break_off(f"it took nothing of what was sent to it in {self._send_s:g} s")

    async def send_long(self, segments: Iterable[bytes]) -> None:
        """The same for what may be many segments: others have their turn between them."""
        left = iter(segments)
        while together := tuple(islice(left, _TOGETHER)):
            await self.send(*together)
            if len(together) < _TOGETHER:
                return
            await asyncio.sleep(0)

    def write(self, data: bytes, segments: int = 1) -> None:
        """Send *data* without waiting until the other end takes it."""
        self.sent_segments += segments
        self.sent_bytes += len(data)
        self._transport.write(data)

    async def send_status(self, header: seg.SegmentHeader, flags: int, code: int | None = None) -> None:
        """Send STATUS as the answer to what came with *header*: accepted, or an error *code*."""
        await self.send(status(header, flags, code))

    def ask(self) -> None:
        """Send a heartbeat that the other end is to answer. It waits for nothing."""
        self.write(seg.heartbeat(self.latest, seg.CONFIRM | seg.WHOLE))

    async def answer_heartbeat(self) -> None:
        """Answer a heartbeat of the other end."""
        await self.send(seg.heartbeat(self.latest, seg.WHOLE))

    def close(self) -> None:
        """End the connection when what was written is sent."""
        self._transport.close()

    def break_off(self, why: str) -> None:
        """End the connection at once; *why* goes to the log."""
        _log.warning("%s: %s; the connection is closed", self.trace, why)
        self.abort()

    def abort(self) -> None:
        """End the connection at once, whatever is not sent."""
        self._transport.abort()


def status(header: seg.SegmentHeader, flags: int, code: int | None = None) -> bytes:
    """A STATUS segment that answers what came with *header*."""
    body = b"" if code is None else b"".join(n.to_bytes(4, header.order) for n in (8, code))
    conversation = header.conversation if code is None else None
    answered = header._replace(
        kind=int(seg.SegmentType.STATUS), flags=flags, flags2=0, conversation=conversation, of_connection=False
    )
    return answered._replace(encoding=ENCODINGS[header.order]).write(body)


_PRODUCT: Final = "MQMM09040300"
_PROTECTED, _PLAIN, _UNUSED = 1, 0, 0xFFFF
_CAPABILITIES3: Final = 0x20
# Error flags 2, the list that is refused, and the one in its place.
_COMPRESSION: Final = (
    (0x01, "HeaderCompression", seg.NO_HEADER_COMPRESSION),
    (0x02, "MessageCompression", seg.NO_MESSAGE_COMPRESSION),
)
# Error flags 1.
_BAD_FAP, _BAD_TRANSMISSION_SIZE, _BAD_MESSAGE_SIZE, _BAD_HEARTBEAT = 0x08, 0x04, 0x10, 0x80


@dataclass(frozen=True, slots=True)
class Terms:
    """What was agreed. conversations: on one connection, 0 where it is not shared. largest: bytes of a segment."""

    fap: int
    channel: str
    qmgr: str
    largest: int
    longest_message: int
    heartbeat_s: int
    conversations: int
    product: str
    is_client: bool
    trace_id: int = 0


@dataclass(frozen=True, slots=True)
class NegotiationAnswer:
    """The server's INITIAL_DATA, the control flags of its segment, and the terms if the client accepts them."""

    payload: bytes
    flags: int
    terms: Terms

    @property
    def is_agreed(self) -> bool:
        """Whether the client's offer was accepted as it was."""
        return not self.flags & seg.ERROR


@dataclass(frozen=True, slots=True)
class Most:
    """What the server accepts. sharing: conversations on a connection. fap: protocol level. heartbeat_s: HBINT."""

    sharing: int = 10
    fap: int = seg.HIGHEST_FAP
    longest_message: int = 104_857_600
    heartbeat_s: int = 300


def channel_of(offer: bytes, order: ByteOrder) -> str:
    """The channel that a client names. Raises DecodeError."""
    return seg.Structure(ID_BEGIN, bytearray(offer), 0, order).text("ChannelName")


def answer_to_offer(offer: bytes, order: ByteOrder, qmgr: str, random: bytes, most: Most) -> NegotiationAnswer:
    """The answer to *offer*, in *order*. Raises DecodeError."""
    data = bytearray(offer)
    begin = seg.Structure(ID_BEGIN, data, 0, order)
    fap = min(begin["FapLevel"], most.fap)
    errors = _BAD_FAP if fap < begin["FapLevel"] else 0
    begin["FapLevel"] = fap
    size = min(begin["MaxTransmissionSize"], seg.TRANSMISSION_SIZE)
    longest = min(begin["MaxMessageSize"], most.longest_message)
    errors |= _BAD_TRANSMISSION_SIZE if size < begin["MaxTransmissionSize"] else 0
    errors |= _BAD_MESSAGE_SIZE if longest < begin["MaxMessageSize"] else 0
    begin["MaxTransmissionSize"], begin["MaxMessageSize"] = size, longest
    is_client = bool(begin["CapabilityFlags1"] & seg.IS_CLIENT)
    begin["CapabilityFlags1"], refused = _accepted(begin["CapabilityFlags1"], seg.CAPABILITIES1)
    begin["NotAccepted1"] = refused
    pulse_s, conversations, trace_id, product = 0, 0, 0, ""
    if len(data) >= ID_BEGIN.size + ID_MORE.size:
        more = seg.Structure(ID_MORE, data, ID_BEGIN.size, order)
        more["CapabilityFlags2"], more["NotAccepted2"] = _accepted(more["CapabilityFlags2"], seg.CAPABILITIES2)
        refused |= more["NotAccepted2"]
        more["CodedCharSetId"] = seg.CCSID
        more.put_text("QMgrName", qmgr)
        pulse_s = max(more["HeartbeatInterval"], most.heartbeat_s) if more["HeartbeatInterval"] else 0
        errors |= _BAD_HEARTBEAT if pulse_s != more["HeartbeatInterval"] else 0
        more["HeartbeatInterval"], more["LengthOfRest"] = pulse_s, 0
    if len(data) >= ID_BEGIN.size + ID_MORE.size + ID_SHARING.size:
        shared = seg.Structure(ID_SHARING, data, ID_BEGIN.size + ID_MORE.size, order)
        product = shared.text("ProductId")
        # A client that is not told so compresses, whatever is behind its first choice.
        bad_lists = 0
        for bit, name, nothing in _COMPRESSION:
            bad_lists |= bit if set(shared[name]) - set(nothing) else 0
            shared[name] = nothing
        shared["ErrorFlags2"], refused = bad_lists, refused | bad_lists
        conversations = max(0, min(shared["ConversationsPerSocket"], most.sharing))
        shared["ConversationsPerSocket"] = conversations
        shared["CapabilityFlags3"], shared["NotAccepted3"] = _accepted(shared["CapabilityFlags3"], _CAPABILITIES3)
        refused |= shared["NotAccepted3"]
        shared["ProcessId"], shared["ThreadId"], trace_id = 1, 1, shared["TraceId"]
        shared.put_text("ProductId", _PRODUCT)
        shared.put_text("QMgrIdentifier", identifier(qmgr))
        if len(data) >= shared.end + ID_PROTECTION.size:
            protection = seg.Structure(ID_PROTECTION, data, shared.end, order)
            protection["PasswordProtection"] = b"".join(
                n.to_bytes(2, order) for n in (_PROTECTED, _PLAIN, *[_UNUSED] * 8)
            )
            protection["Random"] = random
    begin["ErrorFlags1"] = errors
    flags = seg.ERROR if errors or refused else 0
    terms = Terms(
        fap, begin.text("ChannelName"), qmgr, size, longest, pulse_s, conversations, product, is_client, trace_id
    )
    return NegotiationAnswer(bytes(data), flags, terms)


def _accepted(offered: int, known: int) -> tuple[int, int]:
    """Of the capabilities offered, those accepted and those not."""
    return offered & known, offered & ~known & 0xFF
