"""A bound on the memory and disk that a compressed or abbreviated capture may take beyond the size of its file.

A file of a few hundred kilobytes can hold a hundred megabytes of one character. The size of the file itself needs no
bound, because the user has space for it.
"""

from __future__ import annotations

import os
from typing import Final

from rfh2.errors import CaptureError

VARIABLE: Final = "QPUBSUB_EXPANDED_BYTES"
"""The environment variable that sets another bound than ``DEFAULT_BYTES``."""

DEFAULT_BYTES: Final = 32 << 20
"""A message of 16 MB in hex, four times what a queue takes unless it is altered (MAXMSGL)."""

# What is on disk alone may be more, in proportion to the file: captures of many messages that are alike.
_TIMES: Final = 100


class TooLargeError(OSError):
    """Data that expands beyond the bound. It is an OSError, as whatever else keeps a file from being read further."""


def expanded_bytes() -> int:
    """The bound, in bytes. Raises CaptureError where the environment variable is no whole number above 0."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return DEFAULT_BYTES
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 19 and int(text)):
        raise CaptureError(VARIABLE, None, f"{text!r} is not a number of bytes")
    return int(text)


def beyond(what: str, bound: int, *, packed: bool = False) -> str:
    """The clause that says that *what* is larger than the *bound*, and what to do. packed: in a compressed file."""
    otherwise = "decompress the file first, or set" if packed else "set"
    return f"{what} is more than {bound} bytes; {otherwise} {VARIABLE} to allow more"


class Ration:
    """What may be decompressed until the next record is there: it is all that a reader can be holding.

    bound: in bytes; None for no bound.
    """

    __slots__ = ("_bound", "_fed", "_on_disk", "_taken")

    def __init__(self, bound: int | None) -> None:
        self._bound, self._on_disk = bound, False
        self._fed = self._taken = 0

    def feed(self, size: int) -> None:
        """Count *size* bytes more of the compressed file."""
        self._fed += size

    def take(self, size: int) -> None:
        """Count *size* bytes more that came of them. Raises TooLargeError."""
        self._taken += size
        if self._bound is None or self._taken <= self._bound:
            return
        if not self._on_disk:
            raise TooLargeError(beyond("one record, decompressed,", self._bound, packed=True))
        if self._taken > _TIMES * self._fed:
            raise TooLargeError(beyond("the file, decompressed,", max(self._bound, _TIMES * self._fed), packed=True))

    def renew(self) -> None:
        """A record has been read."""
        self._taken = 0

    def lift(self) -> None:
        """The reader passes over any amount of data without holding it."""
        self._bound = None

    def on_disk(self) -> None:
        """Note that all data goes to disk before any of it is read."""
        self._on_disk = True
