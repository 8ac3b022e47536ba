"""Lines of text captures, with bounded memory, in the encoding of the shell that wrote them."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from typing import BinaryIO

from rfh2.captures.prefixed import prefixed
from rfh2.captures.record import MAX_DESCRIPTOR_BYTES, MAX_MESSAGE_BYTES

# A message of the greatest length in hex, with room for the other keys of a JSON line.
MAX_LINE_BYTES = 2 * (MAX_MESSAGE_BYTES + MAX_DESCRIPTOR_BYTES) + 1_048_576

_SKIP_BYTES = 1 << 20
_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def numbered_lines(
    stream: BinaryIO, limit: int = MAX_LINE_BYTES, *, keep_ends: bool = False
) -> Iterator[tuple[int, bytes | None]]:
    """(line number from 1, line without its end) of each line; None for one of more than *limit* bytes.

    A UTF-8 byte order mark is dropped; UTF-16 with a mark, which PowerShell's ``>`` writes, becomes UTF-8.
    """
    first = stream.readline(limit + 1)
    if first.startswith(_UTF16_BOMS):
        yield from _utf16_lines(first, stream, limit, keep_ends)
        return
    number = 0
    line = first.removeprefix(codecs.BOM_UTF8)
    while line:
        number += 1
        if len(line) > limit and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = stream.readline(_SKIP_BYTES)
            yield number, None
        else:
            yield number, line if keep_ends else line.rstrip(b"\r\n")
        line = stream.readline(limit + 1)


def _utf16_lines(first: bytes, stream: BinaryIO, limit: int, keep_ends: bool) -> Iterator[tuple[int, bytes | None]]:
    number = 0
    text = io.TextIOWrapper(prefixed(first, stream), encoding="utf-16", errors="replace", newline="\n")
    line = text.readline(limit + 1)
    while line:
        number += 1
        if len(line) > limit and not line.endswith("\n"):
            while line and not line.endswith("\n"):
                line = text.readline(_SKIP_BYTES)
            yield number, None
        else:
            yield number, line.encode("utf-8") if keep_ends else line.encode("utf-8").rstrip(b"\r\n")
        line = text.readline(limit + 1)


def as_utf8(head: bytes) -> bytes:
    """*head*, the beginning of a text file, without its byte order mark and in UTF-8."""
    if head.startswith(_UTF16_BOMS):
        order = "utf-16-le" if head.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
        return head[2:].decode(order, errors="replace").encode("utf-8")
    return head.removeprefix(codecs.BOM_UTF8)
