"""Messages on a page of text: what a person copied out of a mail, a ticket, a web page, a terminal or a program.

``SHAPES`` is the registry of what can be found. Each shape looks through the whole page,
in time in proportion to it; where two find something in one place, the earlier one in the registry has it. A message
that is not whole is given as incomplete, never as a shorter message.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import BinaryIO, Final

from rfh2.captured import CapturedMessage
from rfh2.captures.mqi_calls import Channel, SentMessage, Unreadable
from rfh2.captures.mqmd import split_descriptor, split_what_is_there
from rfh2.captures.pasted_dumps import find_dumps, find_listings
from rfh2.captures.pasted_page import (
    Page,
    Piece,
    Shape,
    begins_like_a_message,
    find_arrays,
    find_base64,
    find_digits,
    find_folders,
    find_literals,
    find_strings,
    is_text,
    page_of,
)
from rfh2.captures.record import Incomplete, Item, Numbering, ReadingPosition, TakenFor
from rfh2.captures.tsh import OutOfStep, TshStream, begins_segment
from rfh2.channel.segments import type_name
from rfh2.errors import CaptureError
from rfh2.mqmd import descriptor_length

# The messages in a run of bytes that was found on a page: one message, segments of a channel, or a frame.

_ETHERNET: Final = 1
_IP_TYPES: Final = (b"\x08\x00\x45", b"\x86\xdd\x60")
_LEAST_FRAME: Final = 54  # Ethernet, IPv4 and TCP without data


@dataclass(frozen=True, slots=True)
class Content:
    """One message in a run of bytes, or what is there of it. why: what is wrong, None for a whole message.

    body: None where there is nothing of a message. what: what the bytes are, where they are more than a message.
    """

    body: bytes | None
    md: bytes | None = None
    why: str | None = None
    queue: str = ""
    qmgr: str | None = None
    user: str | None = None
    time: datetime | None = None
    what: str = ""


def contents_of(data: bytes) -> Iterator[Content]:
    """The messages in *data*, in their order; one at least."""
    if begins_segment(data):
        yield from _of_segments(data)
    elif begins_frame(data):
        yield from _of_frame(data)
    else:
        yield _message(data)


def begins_frame(data: bytes) -> bool:
    """Whether *data* begins as a frame of Ethernet that holds IP, and not as a message."""
    return len(data) > _LEAST_FRAME and data[12:15] in _IP_TYPES and not begins_like_a_message(data)


def _message(data: bytes) -> Content:
    try:
        md, body = split_descriptor(data)
    except ValueError as error:
        md, body = split_what_is_there(data)
        return Content(body, md, str(error))
    return Content(body, md)


def _of_segments(data: bytes) -> Iterator[Content]:
    stream, channel = TshStream(from_start=True), Channel()
    kinds: list[str] = []
    found: list[Content] = []
    for item in stream.feed(data, 0):
        if isinstance(item, OutOfStep):
            found.append(Content(None, why="no segment begins where one is due", what="segments of a channel"))
            continue
        kinds.append(type_name(item.kind))
        found += map(_of_call, channel.take(item, 0, None))
    if stream.is_partial:
        found.append(_cut_segment(data))
    found += map(_of_call, channel.finish())
    if not found:
        named = ", ".join(kinds[:6]) + (" ..." if len(kinds) > 6 else "")
        found.append(
            Content(None, why=f"segments of a channel without a message: {named}", what="segments of a channel")
        )
    yield from found


def _of_call(found: SentMessage | Unreadable) -> Content:
    if isinstance(found, Unreadable):
        return Content(None, why=found.why, what="segments of a channel")
    return Content(
        found.found.body, found.found.md, None, found.queue, found.qmgr, found.user, found.time, "segments of a channel"
    )


def _cut_segment(data: bytes) -> Content:
    """What is there of the message in a segment that was cut: its descriptor, where that is whole."""
    why = "the hex ends within a segment"
    for struc_id in (b"MD  ", "MD  ".encode("cp500")):
        at = data.rfind(struc_id)
        length = descriptor_length(data, at) if at >= 0 else None
        if length is not None and at + length <= len(data):
            return Content(b"", data[at : at + length], why, what="a segment of a channel")
    return Content(None, why=why, what="a segment of a channel")


def _of_frame(data: bytes) -> Iterator[Content]:
    """The messages in one frame of Ethernet, read as a packet capture is."""
    from rfh2.captures.pcap import read_pcap  # noqa: PLC0415 - dpkt takes long to load

    capture = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, _ETHERNET)
    capture += struct.pack("<IIII", 0, 0, len(data), len(data)) + data
    nothing = True
    for _, item in read_pcap(io.BytesIO(capture), ReadingPosition("frame", Numbering())):
        nothing = False
        if isinstance(item, CapturedMessage):
            yield Content(item.body, item.md, None, item.queue, item.qmgr, item.user, None, "a frame of a network")
        elif isinstance(item, CaptureError):
            yield Content(None, why=item.why, what="a frame of a network")
    if nothing:
        yield Content(None, why="no message of a channel is in this frame", what="a frame of a network")


MAX_PAGE_BYTES: Final = 4 << 20
"""A longer text is no page that somebody pasted; it is searched up to here."""

SHAPES: Final[tuple[Shape, ...]] = (
    find_listings,
    find_dumps,
    find_arrays,
    find_literals,
    find_digits,
    find_base64,
    find_folders,
    find_strings,
)


def read_pasted(stream: BinaryIO, reading: ReadingPosition) -> Iterator[Item]:
    """Each message on the page, at the line on which it begins. A page without any is a problem."""
    data = stream.read(MAX_PAGE_BYTES + 1)
    page = page_of(data[:MAX_PAGE_BYTES])
    found = False
    for piece in pieces_on(page):
        line = page.number(piece.start)
        for content in _contents(piece):
            found = True
            yield line, TakenFor(_record(content, line, reading), _words(piece, content, page))
    if len(data) > MAX_PAGE_BYTES:
        last = page.numbers[-1]
        yield last, reading.problem(last, f"only the first {MAX_PAGE_BYTES} bytes were searched for messages", "line")
    elif data and not found:
        yield 1, reading.problem(1, "no message was found in this text", "line")


def pieces_on(page: Page) -> list[Piece]:
    """What the shapes find on a page, in the order of the page, without overlaps."""
    taken = bytearray(len(page.text) + 1)
    pieces = []
    for shape in SHAPES:
        for piece in shape(page):
            if taken.find(1, piece.start, piece.end) < 0:
                taken[piece.start : piece.end] = b"\1" * (piece.end - piece.start)
                pieces.append(piece)
    return sorted(pieces, key=lambda piece: piece.start)


def is_pasted(head: bytes) -> bool:
    """Whether *head*, the beginning of a file, is text in which a message, or a part of one, is found."""
    return is_text(head) and bool(pieces_on(page_of(head)))


def messages_found(head: bytes) -> tuple[int, int]:
    """How many whole messages are found in *head*, and how many that are not whole. A dump of other bytes is none."""
    pieces = [piece for piece in pieces_on(page_of(head)) if _is_known(piece)]
    wholes = [content.why is None for piece in pieces for content in _contents(piece)]
    return sum(wholes), len(wholes) - sum(wholes)


def _is_known(piece: Piece) -> bool:
    return piece.md is not None or begins_like_a_message(piece.data) or begins_frame(piece.data)


def _contents(piece: Piece) -> Iterator[Content]:
    if piece.md is not None or not piece.data:
        yield Content(piece.data, piece.md, piece.why, piece.queue)
        return
    for content in contents_of(piece.data):
        yield replace(content, why=content.why or piece.why, queue=content.queue or piece.queue)


def _record(content: Content, line: int, reading: ReadingPosition) -> CapturedMessage | CaptureError | Incomplete:
    if content.body is None:
        return reading.problem(line, content.why or "no message", "line")
    make = reading.message if content.why is None else reading.partial
    message = make(
        content.body, content.md, queue=content.queue, qmgr=content.qmgr, user=content.user, time=content.time
    )
    return message if content.why is None else Incomplete(reading.problem(line, content.why, "line"), message)


def _words(piece: Piece, content: Content, page: Page) -> str:
    """What a message was taken for: ``hex text of segments of a channel (quoted)``."""
    held = f" of {content.what}" if content.what else ""
    dressing = f" ({', '.join(page.dressing)})" if page.dressing else ""
    return f"{piece.shape}{held}{dressing}"
