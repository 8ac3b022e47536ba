"""Finding the character-based wildcard patterns that match a topic, among many thousands (guide 2.5.1.1.2).

Strategy: a topic that a pattern matches contains each of the pattern's literal stretches, hence each piece (n-gram) of
them. Every pattern is filed under one of its pieces, the one under which fewest are filed so far, together with a
second piece from as far away as possible. A match cuts the topic into its pieces, looks each up, and puts only those
patterns to the test whose second piece is in the topic as well.

    IBM/*ware*    pieces  ^IBM IBM/ ware        (^ and $ stand for the topic's ends)
    filed under   IBM/, second ware
    IBM/Software  pieces  ^IBM IBM/ BM/S ... ware are$   -> put to the test, matches
    IBM/Paper     has no ware -> not put to the test

Pieces are four characters long; a pattern without so long a stretch goes by two; one without that (``*``, ``?*``,
``*a*``) is tested always. Nothing is compiled, so that adding and removing cost what the pattern is long. The order of
filing decides speed only, never the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from streams.char_wildcards import CharPattern
from streams.holdings import Holding, Several, with_added, with_removed
from streams.subscriptions import Subscription

# Marks both ends of the topic. A topic with a null in it at worst has a pattern tested in vain.
_END: Final = "\0"
_LONG: Final = 4
_SHORT: Final = 2


class _Entry:
    __slots__ = ("first", "holding", "matches", "second")

    def __init__(self, matches: Callable[[str], bool], first: str, second: str) -> None:
        self.matches = matches
        self.first = first
        self.second = second
        self.holding: Holding = None


class CharIndex:
    """Wildcard subscriptions of the character-based scheme."""

    __slots__ = ("_always", "_by_text", "_long", "_short")

    def __init__(self) -> None:
        self._by_text: dict[str, _Entry] = {}
        self._long: dict[str, list[_Entry]] = {}
        self._short: dict[str, list[_Entry]] = {}
        self._always: list[_Entry] = []

    def __bool__(self) -> bool:
        return bool(self._by_text)

    def add(self, pattern: CharPattern, subscription: Subscription) -> None:
        """Add a subscription under its wildcard pattern; one of the same sub_id and pattern is replaced."""
        entry = self._by_text.get(pattern.text)
        if entry is None:
            entry = self._by_text[pattern.text] = self._file(pattern)
        entry.holding = with_added(entry.holding, subscription)

    def remove(self, pattern: CharPattern, sub_id: bytes) -> None:
        """Take a subscription out again. Raises KeyError where it is not under this pattern."""
        entry = self._by_text[pattern.text]
        entry.holding = with_removed(entry.holding, sub_id)
        if entry.holding is None:
            del self._by_text[pattern.text]
            self._unfile(entry)

    def match(self, topic_string: str) -> list[Subscription | Several]:
        """What is held by every pattern that selects *topic_string*, each pattern once, in no particular order."""
        text = _END + topic_string + _END
        candidates = [*self._always]
        for table, size in ((self._long, _LONG), (self._short, _SHORT)):
            if table:
                pieces = {text[i : i + size] for i in range(len(text) - size + 1)}
                for piece in pieces & table.keys():
                    candidates += [entry for entry in table[piece] if entry.second in pieces]
        return [entry.holding for entry in candidates if entry.matches(topic_string) and entry.holding is not None]

    def _file(self, pattern: CharPattern) -> _Entry:
        stretches = _stretches(pattern)
        for table, size in ((self._long, _LONG), (self._short, _SHORT)):
            pieces = [s[i : i + size] for s in stretches for i in range(len(s) - size + 1)]
            if pieces:
                loads = [len(table.get(piece, ())) for piece in pieces]
                place = loads.index(min(loads))
                second = pieces[0] if place >= len(pieces) // 2 else pieces[-1]
                entry = _Entry(pattern.matches, pieces[place], second)
                table.setdefault(entry.first, []).append(entry)
                return entry
        entry = _Entry(pattern.matches, "", "")
        self._always.append(entry)
        return entry

    def _unfile(self, entry: _Entry) -> None:
        if not entry.first:
            self._always.remove(entry)
            return
        table = self._long if len(entry.first) == _LONG else self._short
        filed = table[entry.first]
        filed.remove(entry)
        if not filed:
            del table[entry.first]


def _stretches(pattern: CharPattern) -> list[str]:
    """The literal stretches of a pattern, those at the topic's ends with the mark of the end."""
    stretches: list[str] = []
    last = len(pattern.fragments) - 1
    for place, fragment in enumerate(pattern.fragments):
        for offset, run in fragment.runs:
            at_start = place == 0 and offset == 0
            at_end = place == last and offset + len(run) == fragment.length
            stretches.append(f"{_END if at_start else ''}{run}{_END if at_end else ''}")
    return stretches
