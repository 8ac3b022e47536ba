"""The segments of one connection, in and out, and whether the other end still takes them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final

from commands.listener.gate import Signal, give, new_signal
from rfh2.ccsid import ENCODINGS
from rfh2.channel.segments import (
    CONFIRM,
    PREFIX_BYTES,
    WHOLE,
    SegmentHeader,
    SegmentType,
    heartbeat,
    read_header,
    segment_length,
)
from rfh2.errors import DecodeError

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
        self.latest = SegmentHeader(SegmentType.INITIAL_DATA)
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

    async def receive(self, longest: Callable[[], int]) -> tuple[SegmentHeader, bytearray] | None:
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
        header = read_header(data)
        del data[: header.size]
        self.latest, self.heard_s = header, time.time()
        self.received_segments += 1
        self.received_bytes += length
        return header, data

    def _whole(self, longest: Callable[[], int]) -> int:
        """How long the next segment is, if all of it is there; else 0. Raises DecodeError."""
        received = self._received
        if len(received) < PREFIX_BYTES:
            return 0
        length = segment_length(bytes(received[:PREFIX_BYTES]))
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

    async def send_status(self, header: SegmentHeader, flags: int, code: int | None = None) -> None:
        """Send STATUS as the answer to what came with *header*: accepted, or an error *code*."""
        await self.send(status(header, flags, code))

    def ask(self) -> None:
        """Send a heartbeat that the other end is to answer. It waits for nothing."""
        self.write(heartbeat(self.latest, CONFIRM | WHOLE))

    async def answer_heartbeat(self) -> None:
        """Answer a heartbeat of the other end."""
        await self.send(heartbeat(self.latest, WHOLE))

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


def status(header: SegmentHeader, flags: int, code: int | None = None) -> bytes:
    """A STATUS segment that answers what came with *header*."""
    body = b"" if code is None else b"".join(n.to_bytes(4, header.order) for n in (8, code))
    conversation = header.conversation if code is None else None
    answered = header._replace(
        kind=int(SegmentType.STATUS), flags=flags, flags2=0, conversation=conversation, of_connection=False
    )
    return answered._replace(encoding=ENCODINGS[header.order]).write(body)
