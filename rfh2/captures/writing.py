"""Write captured messages in any format that has a writer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

from rfh2.captured import CapturedMessage
from rfh2.captures.formats import FORMATS
from rfh2.errors import CaptureError


def write_captures(messages: Iterable[CapturedMessage], target: BinaryIO, format: str) -> int:  # noqa: A002
    """Write *messages* to *target* in *format*, a name in ``FORMATS``, and return how many there were.

    Raises CaptureError for an unknown format or one that is only read, and for a message that the format cannot hold.
    """
    chosen = FORMATS.get(format)
    if chosen is None or chosen.writer is None:
        able = ", ".join(entry.name for entry in FORMATS.values() if entry.writer is not None)
        why = "is only read" if chosen is not None else "is not a format"
        raise CaptureError(format, None, f"{why}; captures are written as {able}")
    return chosen.writer(messages, target)
