"""Finding the character-based wildcard patterns that match a topic, among many thousands (guide 2.5.1.1.2).

Strategy: a topic that a pattern matches contains each of the pattern's literal stretches. So each pattern is filed
under something that such a topic must have, of three kinds:

    begin   how the topic begins, cut to 3, 6, 12, 24 ... characters   IBM/Soft*      IBM/So
    end     how it ends, likewise                                      *ware/Results  ware/Results
    pair    two pieces of three characters that it contains            *Soft*ware*    Sof, are

and a match looks up the topic's few beginnings and endings, and those of its pieces that any pattern is filed under.
A pattern too short to be filed (``*``, ``?a*``) is always tried. Of the ways to file a pattern the first that leads to
few other patterns is taken, else the one that leads to the fewest.

What is found is tried in two steps: is the longest stretch of the pattern in the topic; then, does the pattern match.
Nothing is compiled or rebuilt, so that adding and removing cost what the pattern is long. The order in which patterns
come decides speed only, never the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

from streams.char_wildcards import CharPattern
from streams.holdings import Holding, Several, with_added, with_removed
from streams.subscriptions import Subscription

# Three characters, one by one: tuples that zip makes are cheaper than strings that slicing makes.
_Piece = tuple[str, str, str]

_PIECE_LENGTH: Final = 3
# So many patterns in one place cost less than looking for a better place.
_FEW: Final = 4
# How many places are looked at: a pattern of thousands of characters has millions.
_PLACES: Final = 256
# Marks both ends of the topic. A topic with a null in it at worst has a pattern tried in vain.
_MARK: Final = "\0"


@dataclass(frozen=True, slots=True)
class _Begin:
    text: str


@dataclass(frozen=True, slots=True)
class _End:
    text: str


@dataclass(frozen=True, slots=True)
class _Pair:
    first: _Piece
    second: _Piece


_Filing = _Begin | _End | _Pair


class _Entry:
    __slots__ = ("filing", "holding", "matches", "stretch")

    def __init__(self, matches: Callable[[str], bool], filing: _Filing | None, stretch: str) -> None:
        self.matches = matches
        self.filing = filing
        self.stretch = stretch
        self.holding: Holding = None


_Bucket = list[_Entry]
K = TypeVar("K")
L = TypeVar("L")


class CharIndex:
    """Wildcard subscriptions of the character-based scheme; by_text has one entry for each distinct pattern."""

    __slots__ = ("_always", "_begins", "_ends", "_pairs", "_pieces", "by_text")

    def __init__(self) -> None:
        self.by_text: dict[str, _Entry] = {}
        # By length, then by text.
        self._begins: dict[int, dict[str, _Bucket]] = {}
        self._ends: dict[int, dict[str, _Bucket]] = {}
        self._pairs: dict[_Piece, dict[_Piece, _Bucket]] = {}
        # How many pairs each piece is in, as the first or the second.
        self._pieces: Counter[_Piece] = Counter()
        self._always: dict[str, _Entry] = {}

    def add(self, pattern: CharPattern, subscription: Subscription) -> None:
        """Add a subscription under its wildcard pattern; one of the same sub_id and pattern is replaced."""
        entry = self.by_text.get(pattern.text)
        if entry is None:
            entry = self.by_text[pattern.text] = self._file(pattern)
        entry.holding = with_added(entry.holding, subscription)

    def remove(self, pattern: CharPattern, sub_id: bytes) -> None:
        """Take a subscription out again. Raises KeyError where it is not under this pattern."""
        entry = self.by_text[pattern.text]
        entry.holding = with_removed(entry.holding, sub_id)
        if entry.holding is None:
            del self.by_text[pattern.text]
            self._unfile(pattern.text, entry)

    def match(self, topic_string: str) -> list[Subscription | Several]:
        """What is held by every pattern that selects *topic_string*, each pattern once, in no particular order."""
        # This is what a publication on a new topic costs, hence the loops that run in C.
        buckets = [bucket for n, table in self._begins.items() if (bucket := table.get(topic_string[:n]))]
        buckets += [bucket for n, table in self._ends.items() if (bucket := table.get(topic_string[-n:]))]
        text = _MARK + topic_string + _MARK
        if self._pieces:
            pieces = {*filter(self._pieces.__contains__, zip(text, text[1:], text[2:], strict=False))}
            for seconds in filter(None, map(self._pairs.get, pieces)):
                if len(seconds) <= _FEW:
                    for piece, bucket in seconds.items():
                        if piece in pieces:
                            buckets.append(bucket)
                else:
                    buckets += [seconds[piece] for piece in seconds.keys() & pieces]
        found = [entry.holding for entry in self._always.values() if entry.matches(topic_string)]
        for bucket in buckets:
            for entry in bucket:
                if entry.stretch in text and entry.matches(topic_string):
                    found.append(entry.holding)
        return [holding for holding in found if holding is not None]

    def _file(self, pattern: CharPattern) -> _Entry:
        stretches = _stretches(pattern)
        filing = self._best_filing(pattern, stretches)
        entry = _Entry(pattern.matches, filing, max(stretches, key=len, default=""))
        match filing:
            case _Begin(text):
                self._begins.setdefault(len(text), {}).setdefault(text, []).append(entry)
            case _End(text):
                self._ends.setdefault(len(text), {}).setdefault(text, []).append(entry)
            case _Pair(first, second):
                self._pairs.setdefault(first, {}).setdefault(second, []).append(entry)
                self._pieces.update((first, second))
            case None:
                self._always[pattern.text] = entry
        return entry

    def _unfile(self, text: str, entry: _Entry) -> None:
        match entry.filing:
            case _Begin(begin):
                _take_out(self._begins, len(begin), begin, entry)
            case _End(end):
                _take_out(self._ends, len(end), end, entry)
            case _Pair(first, second):
                _take_out(self._pairs, first, second, entry)
                for piece in (first, second):
                    self._pieces[piece] -= 1
                    if not self._pieces[piece]:
                        del self._pieces[piece]
            case None:
                del self._always[text]

    def _best_filing(self, pattern: CharPattern, stretches: list[str]) -> _Filing | None:
        best: _Filing | None = None
        least = 0
        for filing in islice(_filings(pattern, stretches), _PLACES):
            load = self._load(filing)
            if best is None or load < least:
                best, least = filing, load
            if least < _FEW:
                break
        return best

    def _load(self, filing: _Filing) -> int:
        match filing:
            case _Begin(text):
                return len(self._begins.get(len(text), {}).get(text, ()))
            case _End(text):
                return len(self._ends.get(len(text), {}).get(text, ()))
            case _Pair(first, second):
                return len(self._pairs.get(first, {}).get(second, ()))


def _take_out(tables: dict[K, dict[L, _Bucket]], outer: K, inner: L, entry: _Entry) -> None:
    table = tables[outer]
    bucket = table[inner]
    bucket.remove(entry)
    if not bucket:
        del table[inner]
        if not table:
            del tables[outer]


def _filings(pattern: CharPattern, stretches: list[str]) -> Iterator[_Filing]:
    """The ways to file a pattern, which has these literal stretches; those first that tend to lead to few others."""
    begin, end = pattern.literal_prefix, _literal_suffix(pattern)
    if len(begin) >= _PIECE_LENGTH:
        yield _Begin(begin[: _rounded(len(begin))])
    if len(end) >= _PIECE_LENGTH:
        yield _End(end[-_rounded(len(end)) :])
    by_length = sorted((s for s in stretches if len(s) >= _PIECE_LENGTH), key=len, reverse=True)
    for stretch in by_length:
        for other in by_length:
            if other is not stretch or len(by_length) == 1:
                yield _Pair(_piece(stretch, 0), _piece(other, len(other) - _PIECE_LENGTH))
    pieces = [_piece(s, i) for s in by_length for i in range(len(s) - _PIECE_LENGTH + 1)]
    for place, first in enumerate(pieces):
        for second in pieces[place:]:
            yield _Pair(first, second)


def _piece(stretch: str, start: int) -> _Piece:
    return (stretch[start], stretch[start + 1], stretch[start + 2])


def _rounded(length: int) -> int:
    """The greatest of 3, 6, 12, 24 ... that is not above *length*, so that topics are cut at few places."""
    return _PIECE_LENGTH << (length // _PIECE_LENGTH).bit_length() - 1


def _literal_suffix(pattern: CharPattern) -> str:
    """The characters after the last wildcard."""
    last = pattern.fragments[-1]
    offset, run = last.runs[-1] if last.runs else (0, "")
    return run if offset + len(run) == last.length else ""


def _stretches(pattern: CharPattern) -> list[str]:
    """The literal stretches of a pattern, those at the topic's ends with the mark of the end."""
    stretches: list[str] = []
    last = len(pattern.fragments) - 1
    for place, fragment in enumerate(pattern.fragments):
        for offset, run in fragment.runs:
            at_start = place == 0 and offset == 0
            at_end = place == last and offset + len(run) == fragment.length
            stretches.append(f"{_MARK if at_start else ''}{run}{_MARK if at_end else ''}")
    return stretches
