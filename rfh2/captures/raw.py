"""A file that is one message's bytes behind its MQMD, and nothing else (wire formats 6.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from rfh2.captured import CapturedMessage
from rfh2.captures.record import MAX_MESSAGE_BYTES, Item, ReadingPosition, Refusal
from rfh2.errors import CaptureError


def read_raw(stream: BinaryIO, reading: ReadingPosition) -> Iterator[Item]:
    """The one message of *stream*, without a descriptor."""
    body = stream.read(MAX_MESSAGE_BYTES + 1)
    if len(body) > MAX_MESSAGE_BYTES:
        yield 0, reading.problem(0, f"more than {MAX_MESSAGE_BYTES} bytes: longer than any message", "byte")
    else:
        yield 0, reading.message(body)


def write_raw(messages: Iterable[CapturedMessage], target: BinaryIO, refused: Refusal) -> int:
    """Write the body of the first message. Refuses a second one, which would run into the first."""
    count = 0
    for message in messages:
        if count:
            refused(message, CaptureError("raw", None, f"message {message.seq}: raw holds one message only"))
            continue
        target.write(message.body)
        count = 1
    return count
