"""MQMD and data, one message or several, as RFHUtil and the performance tools write them (wire formats 6.2).

Each message is its MQMD (version 1 or 2, either byte order, ASCII or EBCDIC), its headers and its data; between two
messages stands ``#@#@#``. Those five bytes may occur in data, so they separate only where a message begins behind
them: an MQMD, or a header that is known by its StrucId and Version. RFHUtil can put a block of message properties,
ended by ``$%$%$``, before an MQMD: such a message is refused, for to drop its properties would change it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import BinaryIO

from rfh2.captured import CapturedMessage
from rfh2.captures.record import MAX_DESCRIPTOR_BYTES, MAX_MESSAGE_BYTES, Item, ReadingPosition, Refusal
from rfh2.ccsid import EBCDIC_FIELDS
from rfh2.errors import CaptureError
from rfh2.message import sniffed
from rfh2.mqmd import STRUC_IDS, VERSION_1, VERSION_2, Mqmd, descriptor_length

# Where a message begins in bytes that hold several, and the descriptor that it begins with (wire formats 6.1, 6.2).

START_BYTES = 8
"""A StrucId and a Version: enough of a message to know that it is one."""

_HEADER_IDS = tuple(name.encode(charset) for name in ("RFH ", "DLH ") for charset in ("ascii", EBCDIC_FIELDS))


def starts_header(data: bytes | bytearray, at: int = 0) -> bool:
    """Whether a header (MQRFH2, MQRFH, MQDLH) begins at *at*, by its StrucId and Version."""
    version = data[at + 4 : at + 8]
    return data[at : at + 4] in _HEADER_IDS and (version in (*VERSION_1, *VERSION_2))


def split_descriptor(data: bytes) -> tuple[bytes | None, bytes]:
    """The MQMD at the start of *data*, or None, and what follows it. Raises ValueError for a broken MQMD."""
    length = descriptor_length(data)
    if length is None:
        if data[:4] in STRUC_IDS:
            raise ValueError("the MQMD has a Version that is neither 1 nor 2")
        return None, data
    if len(data) < length:
        raise ValueError(f"the MQMD ends after {len(data)} of {length} bytes")
    return data[:length], data[length:]


def split_what_is_there(data: bytes) -> tuple[bytes | None, bytes]:
    """The same for a message that is not whole: an MQMD that was cut is given as far as it goes."""
    length = descriptor_length(data)
    return (None, data) if length is None else (data[:length], data[length:])


def explicit_descriptor(message: CapturedMessage) -> bytes:
    """The descriptor of *message*, made explicit where it was left out: the defaults, Format from the first header."""
    if message.md is not None:
        return message.md
    found = sniffed(message.body)
    if found is None:
        return Mqmd().encode()
    return replace(Mqmd(), format=found[0], encoding=found[1], coded_char_set_id=found[2]).encode()


# A file that is one message's bytes behind its MQMD, and nothing else (wire formats 6.1).


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
