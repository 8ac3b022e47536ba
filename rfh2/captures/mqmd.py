"""MQMD and data, one message or several, as RFHUtil and the performance tools write them (wire formats 6.2).

Each message is its MQMD (version 1 or 2, either byte order, ASCII or EBCDIC), its headers and its data; between two
messages stands ``#@#@#``. Those five bytes may occur in data, so they separate only where a message begins behind
them: an MQMD, or a header that is known by its StrucId and Version. RFHUtil can put a block of message properties,
ended by ``$%$%$``, before an MQMD: such a message is refused, for to drop its properties would change it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from rfh2.captured import CapturedMessage
from rfh2.captures.descriptors import (
    START_BYTES,
    descriptor_length,
    explicit_descriptor,
    split_descriptor,
    starts_header,
)
from rfh2.captures.record import MAX_DESCRIPTOR_BYTES, MAX_MESSAGE_BYTES, Item, ReadingPosition, Refusal
from rfh2.errors import CaptureError

SEPARATOR = b"#@#@#"
PROPERTIES_END = b"$%$%$"

# Properties are names and short values; a block that is longer than this is not one.
_PROPERTIES_BYTES = 65_536
_CHUNK_BYTES = 1 << 20
_LIMIT_BYTES = MAX_MESSAGE_BYTES + MAX_DESCRIPTOR_BYTES + _PROPERTIES_BYTES


def read_mqmd(stream: BinaryIO, reading: ReadingPosition) -> Iterator[Item]:
    """Each message of *stream*; one without an MQMD is taken as it is."""
    for offset, data in _split(stream):
        if data is None:
            yield offset, reading.problem(offset, f"longer than any message ({MAX_MESSAGE_BYTES} bytes)", "byte")
        elif properties_length(data, 0) is not None:
            yield offset, reading.problem(offset, "message properties before the MQMD are not supported", "byte")
        else:
            try:
                md, body = split_descriptor(data)
            except ValueError as error:
                yield offset, reading.problem(offset, str(error), "byte")
            else:
                yield offset, reading.message(body, md)


def write_mqmd(messages: Iterable[CapturedMessage], target: BinaryIO, refused: Refusal) -> int:
    """Write MQMD and data of each message and return how many; an MQMD that was left out is written out.

    Refuses a message that holds a separator with the start of a message behind it.
    """
    count = 0
    for message in messages:
        data = explicit_descriptor(message) + message.body
        if any(_begins_message(data, at + len(SEPARATOR)) for at in _occurrences(data)):
            why = f"message {message.seq} holds a separator; use jsonl, parquet or qload"
            refused(message, CaptureError("mqmd", None, why))
            continue
        target.write((SEPARATOR if count else b"") + data)
        count += 1
    return count


def properties_length(data: bytes | bytearray, at: int) -> int | None:
    """Length of the block of message properties at *at*, with its end mark; None where no MQMD follows one."""
    if descriptor_length(data, at) is not None:
        return None
    next_separator = data.find(SEPARATOR, at, at + _PROPERTIES_BYTES)
    end = data.find(PROPERTIES_END, at, next_separator if next_separator >= 0 else at + _PROPERTIES_BYTES)
    if end < 0 or descriptor_length(data, end + len(PROPERTIES_END)) is None:
        return None
    return end + len(PROPERTIES_END) - at


def _split(stream: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """(offset, bytes) of each message, None where it is too long; holds one message and a chunk in memory."""
    held = bytearray(stream.read(_CHUNK_BYTES))
    origin = start = scan = 0  # offsets in the file of held[0] and of the message; where in held to look on
    ended, too_long = not held, False
    if ended:
        return
    while True:
        at = held.find(SEPARATOR, scan)
        if at >= 0 and (ended or len(held) >= at + len(SEPARATOR) + _PROPERTIES_BYTES + START_BYTES):
            scan = at + 1
            if _begins_message(held, at + len(SEPARATOR)):
                yield start, None if too_long or at > _LIMIT_BYTES else bytes(held[:at])
                del held[: at + len(SEPARATOR)]
                origin += at + len(SEPARATOR)
                start, scan, too_long = origin, 0, False
        elif ended:
            yield start, None if too_long or len(held) > _LIMIT_BYTES else bytes(held)
            return
        else:
            scan = max(0, len(held) - len(SEPARATOR) + 1) if at < 0 else at
            too_long = too_long or scan > _LIMIT_BYTES
            if too_long:
                del held[:scan]
                origin, scan = origin + scan, 0
            chunk = stream.read(_CHUNK_BYTES)
            ended = not chunk
            held += chunk


def _begins_message(data: bytes | bytearray, at: int) -> bool:
    return descriptor_length(data, at) is not None or starts_header(data, at) or properties_length(data, at) is not None


def _occurrences(data: bytes) -> Iterator[int]:
    at = data.find(SEPARATOR)
    while at >= 0:
        yield at
        at = data.find(SEPARATOR, at + 1)
