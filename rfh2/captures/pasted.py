"""Messages on a page of text: what a person copied out of a mail, a ticket, a web page, a terminal or a program.

``SHAPES`` is the registry of what can be found, each in a module of its own. Each shape looks through the whole page,
in time in proportion to it; where two find something in one place, the earlier one in the registry has it. A message
that is not whole is given as incomplete, never as a shorter message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO, Final

from rfh2.captured import CapturedMessage
from rfh2.captures.pasted_arrays import find_arrays
from rfh2.captures.pasted_base64 import find_base64
from rfh2.captures.pasted_contents import Content, begins_frame, contents_of
from rfh2.captures.pasted_digits import find_digits
from rfh2.captures.pasted_dump import find_dumps
from rfh2.captures.pasted_listing import find_listings
from rfh2.captures.pasted_literals import find_literals
from rfh2.captures.pasted_page import Page, is_text, page_of
from rfh2.captures.pasted_piece import Piece, Shape, begins_like_a_message
from rfh2.captures.pasted_text import find_folders, find_strings
from rfh2.captures.record import Incomplete, Item, ReadingPosition, TakenFor
from rfh2.errors import CaptureError

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
