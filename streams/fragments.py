"""Text patterns of literal characters, "any one character" and "any characters": what the character-based wildcard
scheme (guide 2.5.1.1.2) and the selectors' LIKE (guide 2.4.3) have in common.

A pattern is cut at each "any characters" into fragments of fixed length. The first must be at the beginning of
the text, and the last at its end. Each fragment between them is taken at the leftmost place after the one before it. No
later place could leave more room for the rest, so no place is tried again.

Cost of a match, for a text of n characters and a pattern of m:

- Without "any one character" each fragment is one search for a string, which Python does in time that grows with
  n + m, not with their product.
- A fragment with it is searched by one of its literal runs. After _TRIES wrong places, the rest of the text is walked
  once, with the fragment's m positions as the bits of one integer (Shift-And, R. Baeza-Yates and
  G. Gonnet 1992): n steps of m / 30 digits each. For 10,240 characters against 10,240 that is about 10 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

# Up to so many wrong places in a row take less time than the start of the walk with a bounded cost.
_TRIES: Final = 8


class Wild(Enum):
    """ONE: any one character. MANY: zero or more characters."""

    ONE = 1
    MANY = 2


@dataclass(frozen=True, slots=True)
class Fragment:
    """A stretch of pattern of fixed length: literal runs at fixed offsets, any character in the gaps.

    length: in characters, gaps included. runs: (offset, literal text), ascending, none empty, a gap between each two.
    """

    length: int
    runs: tuple[tuple[int, str], ...]

    @property
    def is_literal(self) -> bool:
        """Whether there are no gaps."""
        return self.length == sum(len(run) for _, run in self.runs)

    @property
    def text(self) -> str:
        """The literal characters, without the gaps."""
        return "".join(run for _, run in self.runs)

    def stands_at(self, text: str, start: int) -> bool:
        """Whether the fragment fits at *start*; the caller has seen that the text is long enough."""
        return all(text.startswith(run, start + offset) for offset, run in self.runs)

    def find(self, text: str, start: int, end: int) -> int:
        """The leftmost place in text[start:end] where the fragment fits, or -1."""
        last = end - self.length
        if last < start:
            return -1
        if not self.runs:
            return start
        offset, run = self.runs[0]
        for _ in range(_TRIES):
            at = text.find(run, start + offset, last + offset + len(run))
            if at < 0:
                return -1
            start = at - offset
            if self.stands_at(text, start):
                return start
            start += 1
        return self._find_walking(text, start, end)

    def _find_walking(self, text: str, start: int, end: int) -> int:
        """The same, for a text with many wrong places.

        Bit p of *fitting* is set while the last p + 1 characters are what the fragment begins with.
        """
        gaps = (1 << self.length) - 1
        for offset, run in self.runs:
            gaps ^= ((1 << len(run)) - 1) << offset
        places: dict[str, int] = {}
        for offset, run in self.runs:
            for place, character in enumerate(run, offset):
                places[character] = places.get(character, gaps) | 1 << place
        whole = 1 << self.length - 1
        fitting = 0
        for place in range(start, end):
            fitting = (fitting << 1 | 1) & places.get(text[place], gaps)
            if fitting >= whole:
                return place - self.length + 1
        return -1


def read_fragments(symbols: Iterable[str | Wild]) -> tuple[Fragment, ...]:
    """The fragments of a pattern, one more than it has MANY; literal text may come in pieces of any length."""
    fragments: list[Fragment] = []
    runs: list[tuple[int, str]] = []
    pieces: list[str] = []
    length = begin = 0
    for symbol in symbols:
        if isinstance(symbol, str):
            pieces.append(symbol)
            length += len(symbol)
            continue
        if pieces:
            runs.append((begin, "".join(pieces)))
            pieces.clear()
        if symbol is Wild.ONE:
            length += 1
        else:
            fragments.append(Fragment(length, tuple(runs)))
            runs.clear()
            length = 0
        begin = length
    if pieces:
        runs.append((begin, "".join(pieces)))
    return (*fragments, Fragment(length, tuple(runs)))


def literal_texts(fragments: Sequence[Fragment]) -> tuple[str, ...]:
    """What texts_stand_in matches in place of these fragments; () where some "any one character" is among them."""
    return tuple(f.text for f in fragments) if all(f.is_literal for f in fragments) else ()


def texts_stand_in(texts: Sequence[str], text: str) -> bool:
    """Whether *text* begins with the first of *texts* and ends with the last, the others between them in this order.

    texts: at least two, none overlapping another.
    """
    first, last = texts[0], texts[-1]
    if (first and not text.startswith(first)) or (last and not text.endswith(last)):
        return False
    place, end = len(first), len(text) - len(last)
    for run in texts[1:-1]:
        at = text.find(run, place, end)
        if at < 0:
            return False
        place = at + len(run)
    return place <= end


def fragments_stand_in(fragments: Sequence[Fragment], text: str) -> bool:
    """Whether *text* is the fragments in this order, with any characters between each two."""
    first, last = fragments[0], fragments[-1]
    place, end = first.length, len(text) - last.length
    if len(fragments) == 1:
        return end == 0 and first.stands_at(text, 0)
    if place > end or not first.stands_at(text, 0) or not last.stands_at(text, end):
        return False
    for fragment in fragments[1:-1]:
        at = fragment.find(text, place, end)
        if at < 0:
            return False
        place = at + fragment.length
    return True
