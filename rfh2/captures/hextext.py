"""Hex text: what a person pastes out of a terminal, a ticket or a trace.

One message a block, blank lines between blocks, lines that start with ``#`` ignored. A block is either bare hex, with
or without blanks (``524648 20``), or a dump with offsets, as these write it:

    hexdump -C   00000000  52 46 48 20 02 00 00 00  80 00 00 00 22 02 00 00  |RFH ........"...|
    xxd          00000000: 5246 4820 0200 0000 8000 0000 2202 0000  RFH ........"...
    od -tx1z     0000000 52 46 48 20 02 00 00 00 80 00 00 00 22 02 00 00  >RFH ........"...<
    amqsbcg      00000000:  5246 4820 0200 0000 8000 0000 2202 0000 'RFH ........"...'

Offsets are checked against the bytes read so far, so a line that is lost or cut is found; ``*``, by which hexdump
stands for repeated lines, is filled in. Offsets of seven digits are od's octal ones. A message may begin with its MQMD.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from rfh2.captured import CapturedMessage
from rfh2.captures.mqmd import split_descriptor, split_what_is_there, starts_header
from rfh2.captures.record import (
    DEFAULT_BYTES,
    MAX_DESCRIPTOR_BYTES,
    MAX_MESSAGE_BYTES,
    Incomplete,
    Item,
    ReadingPosition,
    Refusal,
    beyond,
    numbered_lines,
)
from rfh2.errors import CaptureError
from rfh2.mqmd import descriptor_length

_LIMIT_BYTES = MAX_MESSAGE_BYTES + MAX_DESCRIPTOR_BYTES
_LINE_BYTES = 16
_OFFSET = re.compile(rb"\s*([0-9A-Fa-f]{4,16})(:?)\s*(?=[0-9A-Fa-f]|\Z)")
_FIRST_OFFSET = re.compile(rb"\s*(0{4,16})(?::\s*|\s+(?=[0-9A-Fa-f]{2}(?:\s|\Z)))(?=[0-9A-Fa-f]|\Z)")
_HOST_ORDER = re.compile(rb"\s*[0-9A-Fa-f]{7} +[0-9A-Fa-f]{4}(?:\s|\Z)")


def read_hextext(stream: BinaryIO, reading: ReadingPosition) -> Iterator[Item]:
    """Each block's message, at the line on which the block begins."""
    block: _Block | None = None
    for number, line in numbered_lines(stream):
        if line is not None and not line.strip():
            if block is not None:
                yield block.item(reading)
            block = None
        elif line is None or not line.lstrip().startswith(b"#"):
            block = block or _Block(number, reading.expanded_bytes)
            block.add(number, line)
    if block is not None:
        yield block.item(reading)


def write_hextext(messages: Iterable[CapturedMessage], target: BinaryIO, _refused: Refusal) -> int:
    """Write each message, MQMD first where it has one, as xxd does; a blank line between two. Returns how many."""
    count = 0
    for message in messages:
        if count:
            target.write(b"\n")
        data = (message.md or b"") + message.body
        for at in range(0, max(len(data), 1), _LINE_BYTES):
            target.write(_dump_line(at, data[at : at + _LINE_BYTES]))
        count += 1
    return count


def is_hextext(head: bytes) -> bool:
    """Whether *head*, the beginning of a file, reads as hex text of at least eight bytes in its first block."""
    lines = head.splitlines(keepends=True)
    if len(lines) > 1 and not lines[-1].endswith(b"\n"):
        del lines[-1]
    block = _Block(1)
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith(b"#"):
            block.add(number, line[: len(line) // 2 * 2] if len(lines) == 1 else line)
        elif len(block.data):
            break
    return (block.why is None or block.is_beyond) and len(block.data) >= 8


class _Block:
    """The lines of one message as they come in."""

    def __init__(self, start: int, expanded_bytes: int = DEFAULT_BYTES) -> None:
        self.start = start
        self.is_beyond = False
        self._bound = expanded_bytes
        self._expanded = 0
        self.data = bytearray()
        self.why: str | None = None
        self._at = start
        self._has_offsets: bool | None = None
        self._radix = 16
        self._last = b""
        self._repeats = False

    def add(self, number: int, line: bytes | None) -> None:
        """Take one line; the first error of a block stands, and what follows it in the block is not read."""
        if self.why is not None:
            return
        self._at = number
        if line is None or len(self.data) + len(line) // 2 > _LIMIT_BYTES:
            self.why = "the block is longer than any message can be"
            return
        if self._has_offsets is None:
            found = _FIRST_OFFSET.match(line)
            self._has_offsets = found is not None
            self._radix = 8 if found is not None and len(found[1]) == 7 else 16
            if _HOST_ORDER.match(line):
                self.why = "16-bit words in host byte order do not say the order of the bytes; use hexdump -C"
                return
        digits = self._dumped(line) if self._has_offsets else line
        if digits is not None and self.why is None:
            try:
                self._last = bytes.fromhex(digits.decode("ascii"))
            except ValueError:
                self.why = "not hex"
            else:
                self.data += self._last

    def item(self, reading: ReadingPosition) -> Item:
        """The message of the block, or its problem, at the line on which the block begins."""
        if self.why is None and self._repeats:
            self.why = "the dump ends with *; the offset at which the repeated lines end is missing"
        if self.why is not None:
            return self.start, self._incomplete(reading.problem(self._at, self.why, "line"), reading)
        try:
            md, body = split_descriptor(bytes(self.data))
        except ValueError as error:
            return self.start, self._incomplete(reading.problem(self.start, str(error), "line"), reading)
        return self.start, reading.message(body, md)

    def _incomplete(self, problem: CaptureError, reading: ReadingPosition) -> CaptureError | Incomplete:
        """The problem, with what is there of the message, where it is known to be one."""
        if self.is_beyond or (descriptor_length(self.data) is None and not starts_header(self.data)):
            return problem
        md, body = split_what_is_there(bytes(self.data))
        return Incomplete(problem, reading.partial(body, md))

    def _dumped(self, line: bytes) -> bytes | None:
        """The hex column of a line with an offset, or None for ``*``."""
        if line.strip() == b"*" and self._last:
            self._repeats = True
            return None
        found = _OFFSET.match(line)
        if found is None:
            self.why = "not a dump line: no offset"
            return None
        try:
            offset = int(found[1], self._radix)
        except ValueError:
            self.why = "not a dump line: the offset is not octal, as the block's first one is"
            return None
        if self._repeats:
            self._repeat_until(offset)
        if offset != len(self.data):
            self.why = self.why or f"the offset is {offset} where {len(self.data)} is due: a line is missing or cut"
            return None
        return hex_column(line[found.end() :].rstrip(), colon=bool(found[2]))

    def _repeat_until(self, offset: int) -> None:
        self._repeats = False
        times, rest = divmod(offset - len(self.data), len(self._last))
        if rest or times < 0 or offset > _LIMIT_BYTES:
            self.why = f"* repeats lines up to offset {offset}, which is not a whole number of them"
        elif (expanded := self._expanded + times * len(self._last)) > self._bound:
            self.is_beyond = True
            self.why = beyond("the data that * repeats", self._bound)
        else:
            self._expanded = expanded
            self.data += self._last * times


def hex_column(rest: bytes, *, colon: bool) -> bytes:
    """The hex of a line of a dump, without the text beside it; colon: whether the offset ends in one."""
    # One blank will do: what was pasted through a ticket or a mail often has no more.
    for opening, closing in ((b" |", b"|"), (b" >", b"<")):
        if not colon and opening in rest and rest.endswith(closing):
            return rest[: rest.index(opening)]
    # Without bars the text is what stands behind two blanks, or behind amqsbcg's quote.
    ends = [at for at in (rest.find(b"  "), rest.find(b" '")) if at >= 0]
    return rest[: min(ends)] if ends else rest


def _dump_line(offset: int, data: bytes) -> bytes:
    text = bytes(byte if 0x20 <= byte < 0x7F else 0x2E for byte in data)
    return b"%08x: %-39s  %s\n" % (offset, data.hex(" ", -2).encode("ascii"), text) if data else b"00000000:\n"
