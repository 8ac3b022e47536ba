"""Finding the character-based wildcard patterns that match a topic, among many thousands (guide 2.5.1.1.2).

Strategy: a topic that matches a pattern contains each literal stretch of the pattern. The index files each pattern
under something that such a topic must have, of three kinds:

    begin   how the topic begins, cut to 3, 6, 12, 24 ... characters   IBM/Soft*      IBM/So
    end     how it ends, likewise                                      *ware/Results  ware/Results
    pair    two stretches that it contains, or one                     *Soft*ware*    Soft, ware

A match looks up the topic's few beginnings and endings. It finds the stretches in the topic by the topic's pieces of
three characters. The index files each distinct stretch, however many patterns have it, under the piece of the stretch
that the fewest stretches have. The match searches the topic for the few stretches that are filed under one of its
pieces, and looks up each pair of those that it contains. A pattern too short to be filed (``*``, ``?a*``) is always
tried. The index files a pattern in the first way that leads to few other patterns, otherwise in the way that leads to
the fewest.

Each pattern that is found is tried: first, whether its two longest stretches are in the topic; then, whether it
matches. Nothing is compiled or rebuilt, so the cost of adding and removing is proportional to the length of the
pattern. The order in which patterns are added affects speed only, never the result.

The worst cost of a match, for any patterns and topic: each piece of the topic is looked up once, each stretch that has
it is looked for once, and each pattern is tried at most once. So a topic costs no more than trying its patterns one by
one: 600 of 1,200 characters each, the worst possible without a ``?``, and a topic of 10,000 take about 50 ms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

from streams.patterns import CharPattern
from streams.subscriptions import Several, Subscription, with_added, with_removed

# Three characters, one by one: tuples that zip makes are cheaper than strings that slicing makes.
_Piece = tuple[str, str, str]

_PIECE_LENGTH: Final = 3
# With so many patterns in one place, to try them takes less time than to look for a better place.
_FEW: Final = 4
# How many places are looked at: a pattern of thousands of characters has millions.
_PLACES: Final = 256
# A topic of at most so many characters has few repeated pieces, and to find them takes longer than it saves.
_SHORT: Final = 64
# Marks both ends of the topic. For a topic that contains a null, the worst case is one useless try of a pattern.
_MARK: Final = "\0"


@dataclass(frozen=True, slots=True)
class _Edge:
    """How the topic begins, or how it ends. at: the characters from its beginning, or, negative, from its end."""

    at: int
    text: str


@dataclass(frozen=True, slots=True)
class _Pair:
    first: str
    second: str


_Filing = _Edge | _Pair


class _Entry:
    """One distinct pattern. longest, next_longest: of its stretches, "" where it has no more."""

    __slots__ = ("filing", "holding", "longest", "matches", "next_longest")

    def __init__(
        self, pattern: CharPattern, filing: _Filing | None, stretches: list[str], holding: Subscription | Several
    ) -> None:
        self.matches = pattern.matcher()
        self.filing = filing
        self.holding = holding
        self.longest, self.next_longest = (*sorted(stretches, key=len, reverse=True)[:2], "", "")[:2]


_Bucket = list[_Entry]


class _Stretch:
    """A literal stretch that some pattern is filed under. uses: in how many places of filings it stands."""

    __slots__ = ("piece", "seconds", "text", "uses")

    def __init__(self, text: str, piece: _Piece) -> None:
        self.text, self.piece = text, piece
        self.seconds: dict[str, _Bucket] = {}
        self.uses = 0


K = TypeVar("K")


class CharIndex:
    """Wildcard subscriptions of the character-based scheme; by_text has one entry for each distinct pattern."""

    __slots__ = ("_always", "_common", "_edges", "_pieces", "_stretches", "by_text")

    def __init__(self) -> None:
        self.by_text: dict[str, _Entry] = {}
        # By place, then by text.
        self._edges: dict[int, dict[str, _Bucket]] = {}
        self._stretches: dict[str, _Stretch] = {}
        self._pieces: dict[_Piece, list[_Stretch]] = {}
        # How many stretches have each piece.
        self._common: Counter[_Piece] = Counter()
        self._always: dict[str, _Entry] = {}

    def add(self, pattern: CharPattern, subscription: Subscription) -> None:
        """Add a subscription under its wildcard pattern; one of the same sub_id and pattern is replaced."""
        entry = self.by_text.get(pattern.text)
        if entry is None:
            self.by_text[pattern.text] = self._file(pattern, subscription)
        else:
            entry.holding = with_added(entry.holding, subscription)

    def remove(self, pattern: CharPattern, sub_id: bytes) -> None:
        """Remove a subscription. Raises KeyError where it is not under this pattern."""
        entry = self.by_text[pattern.text]
        left = with_removed(entry.holding, sub_id)
        if left is None:
            del self.by_text[pattern.text]
            self._unfile(pattern.text, entry)
        else:
            entry.holding = left

    def match(self, topic_string: str) -> list[Subscription | Several]:
        """The subscriptions of every pattern that selects *topic_string*, each pattern once, in no particular order."""
        # This is what a publication on a new topic costs, hence the loops that run in C.
        text = _MARK + topic_string + _MARK
        matches = (
            [entry.holding for entry in self._always.values() if entry.matches(topic_string)] if self._always else []
        )
        for at, table in self._edges.items():
            bucket = table.get(topic_string[:at] if at > 0 else topic_string[at:])
            if bucket is not None:
                for entry in bucket:
                    if entry.longest in text and entry.next_longest in text and entry.matches(topic_string):
                        matches.append(entry.holding)
        if self._pieces:
            present: dict[str, _Stretch] = {}
            pieces: Iterable[_Piece] = zip(text, text[1:], text[2:], strict=False)
            if len(text) > _SHORT:
                pieces = set(pieces)
            for stretches in filter(None, map(self._pieces.get, pieces)):
                for stretch in stretches:
                    if stretch.text in text:
                        present[stretch.text] = stretch
            for stretch in present.values():
                seconds = stretch.seconds
                few, many = (seconds, present) if len(seconds) < len(present) else (present, seconds)
                for second in few:
                    if second in many:
                        for entry in seconds[second]:
                            if entry.matches(topic_string):
                                matches.append(entry.holding)
        return matches

    def _file(self, pattern: CharPattern, subscription: Subscription) -> _Entry:
        stretches = _stretches(pattern)
        filing = self._best_filing(pattern, stretches)
        entry = _Entry(pattern, filing, stretches, subscription)
        match filing:
            case _Edge(at, text):
                self._edges.setdefault(at, {}).setdefault(text, []).append(entry)
            case _Pair(first, second):
                self._use(first).seconds.setdefault(second, []).append(entry)
                self._use(second)
            case None:
                self._always[pattern.text] = entry
        return entry

    def _unfile(self, text: str, entry: _Entry) -> None:
        match entry.filing:
            case _Edge(at, edge):
                _take_from(self._edges[at], edge, entry)
                if not self._edges[at]:
                    del self._edges[at]
            case _Pair(first, second):
                _take_from(self._stretches[first].seconds, second, entry)
                self._disuse(first)
                self._disuse(second)
            case None:
                del self._always[text]

    def _use(self, text: str) -> _Stretch:
        stretch = self._stretches.get(text)
        if stretch is None:
            pieces = _pieces(text)
            self._common.update(pieces)
            piece = min(pieces, key=self._common.__getitem__)
            stretch = self._stretches[text] = _Stretch(text, piece)
            self._pieces.setdefault(piece, []).append(stretch)
        stretch.uses += 1
        return stretch

    def _disuse(self, text: str) -> None:
        stretch = self._stretches[text]
        stretch.uses -= 1
        if not stretch.uses:
            del self._stretches[text]
            for piece in _pieces(text):
                self._common[piece] -= 1
                if not self._common[piece]:
                    del self._common[piece]
            self._pieces[stretch.piece].remove(stretch)
            if not self._pieces[stretch.piece]:
                del self._pieces[stretch.piece]

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
            case _Edge(at, text):
                return len(self._edges.get(at, {}).get(text, ()))
            case _Pair(first, second):
                stretch = self._stretches.get(first)
                return len(stretch.seconds.get(second, ())) if stretch is not None else 0


def _take_from(table: dict[K, _Bucket], key: K, entry: _Entry) -> None:
    bucket = table[key]
    bucket.remove(entry)
    if not bucket:
        del table[key]


def _filings(pattern: CharPattern, stretches: list[str]) -> Iterator[_Filing]:
    """The ways to file a pattern, which has these literal stretches; those first that tend to lead to few others."""
    begin, end = pattern.literal_prefix, _literal_suffix(pattern)
    if len(begin) >= _PIECE_LENGTH:
        at = _rounded(len(begin))
        yield _Edge(at, begin[:at])
    if len(end) >= _PIECE_LENGTH:
        at = -_rounded(len(end))
        yield _Edge(at, end[at:])
    by_length = sorted((s for s in stretches if len(s) >= _PIECE_LENGTH), key=len, reverse=True)
    for place, first in enumerate(by_length):
        for second in by_length[place + 1 :]:
            yield _Pair(first, second)
    for only in by_length:
        yield _Pair(only, only)


def _pieces(text: str) -> list[_Piece]:
    return list(islice(zip(text, text[1:], text[2:], strict=False), _PLACES))


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
