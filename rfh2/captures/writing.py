"""Write captured messages in any format that has a writer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

from rfh2.captured import CapturedMessage
from rfh2.captures.formats import FORMATS
from rfh2.captures.record import Refusal
from rfh2.errors import CaptureError


def write_captures(
    messages: Iterable[CapturedMessage],
    target: BinaryIO,
    format: str,  # noqa: A002 - the word that users know from the command line
    *,
    refused: Refusal | None = None,
) -> int:
    """Write *messages* to *target* in *format*, a name in ``FORMATS``, and return how many were written.

    refused: called for a message that the format cannot hold, which is then left out; without it that is an error.
    Raises CaptureError for an unknown format or one that is only read, for a missing library, and for such a message.
    """
    chosen = FORMATS.get(format)
    if chosen is None or chosen.writer is None:
        able = ", ".join(entry.name for entry in FORMATS.values() if entry.writer is not None)
        why = "is only read" if chosen is not None else "is not a format"
        raise CaptureError(format, None, f"{why}; captures are written as {able}")
    return chosen.writer(messages, target, refused or _stop)


def _stop(_message: CapturedMessage, error: CaptureError) -> None:
    raise error
