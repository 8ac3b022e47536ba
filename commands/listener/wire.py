"""The segments of one connection, in and out, and whether the other end still takes them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any, Final

from rfh2.ccsid import ENCODINGS
from rfh2.channel.segments import (
    CONFIRM,
    PREFIX_BYTES,
    WHOLE,
    SegmentHeader,
    SegmentType,
    read_segment,
    segment_length,
)
from rfh2.errors import DecodeError

_log: Final = logging.getLogger("qpubsub.listener")

# Segments of one message or reply that are sent in one turn: at most 1 MiB.
_TOGETHER: Final = 32
# Codes of STATUS.
NO_SUCH_CHANNEL, WRONG_CHANNEL_TYPE, TERMINATING, BAD_SEGMENT, CHANNEL_UNAVAILABLE = 0x01, 0x02, 0x05, 0x0D, 0x16


class Wire:
    """send_s: how long the other end may take nothing of what was sent, before the connection is broken."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, send_s: float) -> None:
        self._reader, self._writer, self._send_s = reader, writer, send_s
        peer = writer.get_extra_info("peername")
        self.address, self.port = (str(peer[0]), int(peer[1])) if peer else ("", 0)
        self.trace = f"{peer[0]}:{peer[1]}" if peer else "connection"
        cipher = writer.get_extra_info("cipher")
        self.cipher: tuple[str, str] | None = None if cipher is None else (cipher[0], cipher[1])
        self.certificate: dict[str, Any] = writer.get_extra_info("peercert") or {}
        self.latest = SegmentHeader(SegmentType.INITIAL_DATA)
        self.started_s = self.heard_s = time.time()
        self.received_segments = self.received_bytes = self.sent_segments = self.sent_bytes = 0

    async def receive(self, longest: Callable[[], int]) -> tuple[SegmentHeader, bytes] | None:
        """The next segment, of at most *longest* bytes when it comes; None where the client has ended.

        Raises DecodeError, ConnectionError, asyncio.IncompleteReadError.
        """
        prefix = await self._reader.read(1)
        if not prefix:
            return None
        prefix += await self._reader.readexactly(PREFIX_BYTES - 1)
        length = segment_length(prefix)
        if length > (most := longest()):
            raise DecodeError(4, "TSH", f"SegmentLength is {length}, and no more than {most} is taken yet")
        rest = await self._reader.readexactly(length - PREFIX_BYTES)
        header, payload = read_segment(prefix + rest)
        self.latest, self.heard_s = header, time.time()
        self.received_segments += 1
        self.received_bytes += length
        return header, payload

    async def send(self, *segments: bytes) -> None:
        """Send *segments*. Raises ConnectionError."""
        self.write(b"".join(segments), len(segments))
        if not self._writer.transport.get_write_buffer_size():
            return
        try:
            async with asyncio.timeout(self._send_s):
                await self._writer.drain()
        except TimeoutError:
            self.break_off(f"it took nothing of what was sent to it in {self._send_s:g} s")

    async def send_long(self, segments: Iterable[bytes]) -> None:
        """The same for what may be many segments: others have their turn between them. Raises ConnectionError."""
        left = iter(segments)
        while together := tuple(islice(left, _TOGETHER)):
            await self.send(*together)
            if len(together) == _TOGETHER:
                await asyncio.sleep(0)

    def write(self, data: bytes, segments: int = 1) -> None:
        """Send *data* without waiting until the other end takes it."""
        self.sent_segments += segments
        self.sent_bytes += len(data)
        self._writer.write(data)

    async def send_status(self, header: SegmentHeader, flags: int, code: int | None = None) -> None:
        """Send STATUS as the answer to what came with *header*: accepted, or an error *code*."""
        with suppress(ConnectionError):
            await self.send(status(header, flags, code))

    def ask(self) -> None:
        """Send a heartbeat that the other end is to answer. It waits for nothing."""
        self.write(heartbeat(self.latest, CONFIRM | WHOLE))

    async def answer_heartbeat(self) -> None:
        """Answer a heartbeat of the other end. Raises ConnectionError."""
        await self.send(heartbeat(self.latest, WHOLE))

    def close(self) -> None:
        """End the connection when what was written is sent."""
        self._writer.close()

    def break_off(self, why: str) -> None:
        """End the connection at once; *why* goes to the log."""
        _log.warning("%s: %s; the connection is closed", self.trace, why)
        self.abort()

    def abort(self) -> None:
        """End the connection at once, whatever is not sent."""
        self._writer.transport.abort()


def heartbeat(latest: SegmentHeader, flags: int) -> bytes:
    """A HEARTBEAT segment; it belongs to the connection, in the byte order of the client's *latest* segment."""
    is_shared = latest.of_connection or latest.conversation is not None
    order = latest.order
    header = SegmentHeader(
        SegmentType.HEARTBEAT, flags, order=order, encoding=ENCODINGS[order], of_connection=is_shared
    )
    return header.write(b"")


def status(header: SegmentHeader, flags: int, code: int | None = None) -> bytes:
    """A STATUS segment that answers what came with *header*."""
    body = b"" if code is None else b"".join(n.to_bytes(4, header.order) for n in (8, code))
    conversation = header.conversation if code is None else None
    answered = header._replace(
        kind=int(SegmentType.STATUS), flags=flags, flags2=0, conversation=conversation, of_connection=False
    )
    return answered._replace(encoding=ENCODINGS[header.order]).write(body)


# Heartbeats: whether the other end of a connection that is quiet is still there (HBINT).
#
# A client that shares its connection reads at any time, and is asked when it has sent nothing for the interval. One
# that does not share it reads only while it waits for a reply: it is asked while a call of its waits for a message. A
# client that is asked and sends nothing, as long again or a minute, is taken for gone.
#
#     quiet for HBINT: ask ──> anything received: begin anew
#                        └──> nothing for HBINT, at most 60 s more: gone

_LONGEST_PATIENCE_S: Final = 60.0


class Beat(Enum):
    """What is due."""

    NOTHING = "nothing"
    ASK = "ask"
    GONE = "gone"


@dataclass(slots=True)
class Pulse:
    """One connection's. interval_s: HBINT, above 0. heard_s: the clock when the client last sent something."""

    interval_s: float
    heard_s: float
    asked_s: float | None = None

    @property
    def patience_s(self) -> float:
        """How long a client that was asked may send nothing."""
        return min(self.interval_s, _LONGEST_PATIENCE_S)

    def hear(self, now_s: float) -> None:
        """The client has sent something."""
        self.heard_s, self.asked_s = now_s, None

    def beat(self, now_s: float, reads: bool) -> tuple[Beat, float]:
        """What is due, and when to look again. reads: whether the client would read a heartbeat now."""
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
