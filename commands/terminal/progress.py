"""The line of progress on a terminal: how many are done, how fast, and, where the total is known, how long it takes.

messages replayed: 30,112 of 100,000  [#########                     ]  30%  10,400/s  7 s left
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Final, TextIO

_REDRAW_S: Final = 0.1
_BAR_COLUMNS: Final = 30
_SURE_S: Final = 1.0
"""Before this number of seconds, the rate and the time left have no meaning."""


class Progress:
    """One line that is drawn again and again. total: how many there are. share: what is done, from 0 to 1."""

    def __init__(
        self, stream: TextIO, label: str, total: int | None, share: Callable[[], float | None] | None = None
    ) -> None:
        self._stream, self._label, self._total, self._share = stream, label, total, share
        self._began = time.monotonic()
        self._done, self._drawn, self._shown = 0, 0.0, False

    def advance(self, more: int) -> None:
        """Count more as done. The line is drawn at most ten times a second."""
        self._done += more
        now = time.monotonic()
        if now - self._drawn >= _REDRAW_S:
            self._drawn = now
            columns = shutil.get_terminal_size().columns
            line = progress_line(self._label, self._done, self._total, self._share_done(), now - self._began)
            self._stream.write(f"\r{line[: max(1, columns - 1)]}\x1b[K")
            self._stream.flush()
            self._shown = True

    def wipe(self) -> None:
        """Remove the line: another one is written in its place."""
        if self._shown:
            self._shown = False
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _share_done(self) -> float | None:
        if self._total is not None:
            return self._done / self._total if self._total else None
        return None if self._share is None else self._share()


def progress_line(label: str, done: int, total: int | None, share: float | None, elapsed_s: float) -> str:
    """What the line says. share: what is done, from 0 to 1; None where that is not known."""
    parts = [f"{label}: {done:,}" + ("" if total is None else f" of {total:,}")]
    if share is not None:
        share = min(max(share, 0.0), 1.0)
        parts += [f"[{'#' * int(share * _BAR_COLUMNS):<{_BAR_COLUMNS}}]", f"{share:4.0%}"]
    if elapsed_s >= _SURE_S:
        parts.append(f"{done / elapsed_s:,.0f}/s")
        if share:
            parts.append(f"{_time_left(elapsed_s * (1 - share) / share)} left")
    return "  ".join(parts)


def _time_left(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3_600:.1f} h"
