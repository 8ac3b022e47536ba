"""Plain hex, however it is grouped: ``5246 4820``, ``52:46:48:20``, ``52-46-48-20``, ``\\x52\\x46``, ``X'5246'``.

A run begins where the digits of a StrucId stand, whatever is before them in the line. It goes on over lines that hold
nothing else than hex. Frames of a network, which have no StrucId at their beginning, are known by their EtherType.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rfh2.captures.pasted_page import Page
from rfh2.captures.pasted_piece import BEGINNINGS, Piece

_MARK: Final = r"(?:0[xX]|\\[xX]|%|\\u00)?"
_GAP: Final = r"[ \t,:;_\-]{0,3}+"


def _digits(data: bytes) -> str:
    return _GAP.join(_MARK + "".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in f"{byte:02x}") for byte in data)


_BEGINNING: Final = re.compile(
    rf"(?<![0-9A-Fa-f])(?:{'|'.join(map(_digits, BEGINNINGS))}|"
    rf"(?:[0-9A-Fa-f]{{2}}{_GAP}){{12}}08{_GAP}00{_GAP}45{_GAP}00)"
)
_GROUP: Final = re.compile(rf"[ \t,:;_\-]*+{_MARK}([0-9A-Fa-f]++)(?![G-Zg-z])")
_LINE_END: Final = re.compile(r"[ \t\r\"'+\\,:;&.)\]}|_-]*+(?:\n|\Z)")
_LINE_START: Final = re.compile(r"[ \t\"'+&.(\[{|]*+")
_LEFT_OUT: Final = re.compile(r"[\s,:\-]*+(?:\.{2,}|\[|<|\()(?:\.|snip|cut|trunc|more)?", re.IGNORECASE)
_WHOLE_LINE: Final = 128
"""A line of more digits is a message of its own, not a line of a longer one."""


def find_digits(page: Page) -> Iterator[Piece]:
    """Each run of hex that begins as a message does."""
    text = page.text
    at = 0
    while (found := _BEGINNING.search(text, at)) is not None:
        run = _Run(text, found.start())
        at = max(run.end, found.end())
        if len(run.digits) >= 16:
            yield Piece(found.start(), at, "hex text", bytes.fromhex(run.digits), why=run.why)


class _Run:
    """The digits from *start* on. end: where they end in the text; why: what is missing of them, if something is."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self.end = start
        self.why: str | None = None
        parts: list[str] = []
        first = self._line(start, parts)
        size = len(parts)
        while first is not None and (stop := _LINE_END.match(text, self.end)) is not None and stop.end() < len(text):
            begin = _LINE_START.match(text, stop.end())
            assert begin is not None
            if size and sum(map(len, parts[:size])) > _WHOLE_LINE and _BEGINNING.match(text, begin.end()):
                break
            kept, before = self.end, len(parts)
            if self._line(begin.end(), parts) is None or not self._is_whole_line():
                self.end = kept
                del parts[before:]
                break
        left_out = _LEFT_OUT.match(text, self.end)
        if left_out is not None and (".." in left_out[0] or left_out[0][-1:].isalpha()):
            self.why = "its author left out the rest"
        self.digits = "".join(parts)
        if len(self.digits) % 2:
            self.digits = self.digits[:-1]
            self.why = self.why or "the last byte has one hex digit: some were lost"

    def _is_whole_line(self) -> bool:
        return _LINE_END.match(self._text, self.end) is not None or _LEFT_OUT.match(self._text, self.end) is not None

    def _line(self, at: int, parts: list[str]) -> int | None:
        """The groups of one line, added to *parts*; None where there are none."""
        count = 0
        while (group := _GROUP.match(self._text, at)) is not None:
            parts.append(group[1])
            at = self.end = group.end()
            count += 1
            if len(group[1]) % 2:
                break
        return count or None
