"""Whether a selection string asks for what no message can have, such as ``Colour = 'red' AND Colour = 'blue'``.

The condition is taken apart into alternatives, each a list of plain conditions that must all hold. Where the conditions
of an alternative on one property cannot hold together, no message meets it. What cannot be judged counts as possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from streams.selectors.expressions import (
    AllOf,
    AnyOf,
    Compare,
    Comparison,
    Condition,
    IsIn,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Name,
    Not,
)
from streams.selectors.like import like_pattern
from streams.selectors.parse import parse
from streams.selectors.values import Value, ValueKind, kind_of

_MOST_ALTERNATIVES: Final = 64
# With the values by which a program leaves the choice to the queue.
_RANGES: Final = {"Root.MQMD.Priority": (-3, 9), "Root.MQMD.Persistence": (-1, 2)}
_MIRRORED: Final = {
    Comparison.LESS: Comparison.GREATER,
    Comparison.LESS_OR_EQUAL: Comparison.GREATER_OR_EQUAL,
    Comparison.GREATER: Comparison.LESS,
    Comparison.GREATER_OR_EQUAL: Comparison.LESS_OR_EQUAL,
}
_Atom = tuple[Condition, bool]


def contradiction(text: str) -> str | None:
    """The property whose conditions in the selection string *text* no message can meet; None where one may.

    Raises Refusal for a text that is no selection string.
    """
    if not text.strip():
        return None
    condition, _ = parse(text)
    alternatives = _alternatives(condition, True)
    if alternatives is None:
        return None
    blamed = [_impossible(alternative) for alternative in alternatives]
    return None if not blamed or None in blamed else blamed[0]


def _alternatives(condition: Condition, wanted: bool) -> list[list[_Atom]] | None:
    """The alternatives, each a list of plain conditions with their outcomes; None where there are too many."""
    match condition:
        case Not(inner):
            return _alternatives(inner, not wanted)
        case AllOf(parts):
            return _together(parts, wanted) if wanted else _either(parts, wanted)
        case AnyOf(parts):
            return _either(parts, wanted) if wanted else _together(parts, wanted)
        case _:
            return [[(condition, wanted)]]


def _either(parts: Iterable[Condition], wanted: bool) -> list[list[_Atom]] | None:
    found: list[list[_Atom]] = []
    for part in parts:
        more = _alternatives(part, wanted)
        if more is None or len(found) + len(more) > _MOST_ALTERNATIVES:
            return None
        found += more
    return found


def _together(parts: Iterable[Condition], wanted: bool) -> list[list[_Atom]] | None:
    found: list[list[_Atom]] = [[]]
    for part in parts:
        more = _alternatives(part, wanted)
        if more is None or len(found) * len(more) > _MOST_ALTERNATIVES:
            return None
        found = [[*first, *second] for first in found for second in more]
    return found


@dataclass(slots=True)
class _Possible:
    """What one property may still be. equals: the only values, None for any; low, high: each with its strictness."""

    is_null: bool = True
    is_given: bool = True
    kind: ValueKind | None = None
    equals: list[Value] | None = None
    low: tuple[float, bool] = (-inf, False)
    high: tuple[float, bool] = (inf, False)
    unequal: list[Value] = field(default_factory=list)
    likes: list[tuple[Like, bool]] = field(default_factory=list)
    clash: bool = False

    def be(self, kind: ValueKind) -> None:
        self.is_null = False
        self.clash = self.clash or (self.kind is not None and self.kind is not kind)
        self.kind = kind

    def one_of(self, values: Sequence[Value]) -> None:
        kind = kind_of(values[0])
        if kind is not None:
            self.be(kind)
        same = [value for value in values if self.equals is None or any(_same(value, other) for other in self.equals)]
        self.equals = same

    @property
    def is_impossible(self) -> bool:
        if self.clash or not (self.is_null or self.is_given):
            return True
        (low, above), (high, below) = self.low, self.high
        if low > high or (low == high and (above or below)):
            return True
        return self.equals is not None and not any(self._fits(value) for value in self.equals)

    def _fits(self, value: Value) -> bool:
        if any(_same(value, other) for other in self.unequal):
            return False
        if isinstance(value, str):
            return all(like_pattern(like.pattern, like.escape)(value) is wanted for like, wanted in self.likes)
        if isinstance(value, int | float) and not isinstance(value, bool):
            (low, above), (high, below) = self.low, self.high
            return (value > low if above else value >= low) and (value < high if below else value <= high)
        return True


def _same(one: Value, other: Value) -> bool:
    return kind_of(one) is kind_of(other) and one == other


def _impossible(alternative: Sequence[_Atom]) -> str | None:
    """The property of which an alternative asks what cannot be; None where there is none."""
    known: dict[str, _Possible] = {}
    for condition, wanted in alternative:
        _note(condition, wanted, known)
    return next((name for name, possible in known.items() if possible.is_impossible), None)


def _note(condition: Condition, wanted: bool, known: dict[str, _Possible]) -> None:
    match condition:
        case Compare(comparison, Name(_, name), Literal(_, value)):
            _compared(_of(name, known), comparison, value, wanted)
        case Compare(comparison, Literal(_, value), Name(_, name)):
            _compared(_of(name, known), _MIRRORED.get(comparison, comparison), value, wanted)
        case IsIn(Name(_, name), values) if wanted:
            _of(name, known).one_of(values)
        case IsIn(Name(_, name), values):
            possible = _of(name, known)
            if (kind := kind_of(values[0])) is not None:
                possible.be(kind)
            possible.unequal += values
        case IsNull(Name(_, name)):
            possible = _of(name, known)
            possible.is_given, possible.is_null = possible.is_given and not wanted, possible.is_null and wanted
        case IsTrue(Name(_, name)) if wanted:
            _of(name, known).one_of((True,))
        case Like(Name(_, name)) as like:
            possible = _of(name, known)
            possible.likes.append((like, wanted))
            possible.be(ValueKind.STRING)  # of anything else it is unknown, and so is NOT LIKE
        case _:
            pass


def _of(name: str, known: dict[str, _Possible]) -> _Possible:
    if name not in known:
        low, high = _RANGES.get(name, (-inf, inf))
        known[name] = _Possible(low=(low, False), high=(high, False))
    return known[name]


def _compared(possible: _Possible, comparison: Comparison, value: Value, wanted: bool) -> None:
    possible.is_null = False
    if comparison is Comparison.EQUAL:
        if wanted:
            possible.one_of((value,))
        else:
            possible.unequal.append(value)
        return
    kind = kind_of(value)
    if not wanted or kind is None:
        return  # a value of another kind makes a comparison false, so hardly anything follows
    possible.be(kind)
    if comparison is Comparison.NOT_EQUAL:
        possible.unequal.append(value)
    elif isinstance(value, int | float) and comparison in (Comparison.GREATER, Comparison.GREATER_OR_EQUAL):
        possible.low = max(possible.low, (float(value), comparison is Comparison.GREATER))
    elif isinstance(value, int | float):
        strict = comparison is Comparison.LESS
        high, below = possible.high
        possible.high = (float(value), strict) if value < high else (high, below or (strict and value == high))
