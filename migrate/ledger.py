"""The fate of every item: always one of migrated, changed with a reason, or reported to a person.

Planning settles the items one by one. ``close`` fails while an item is unsettled, so that no plan can forget an item:
the number of fates is the number of items.

Every item that was read is in one of four sums: migrated, changed, refused with a reason, or left by choice.

``Fate.result`` says which, for the report of one broker and for an estate. The sums are checked wherever they are made;
so they agree in every report.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import Protocol, Self, overload

from migrate.legacy_state import FIELD_OF_KIND, Frozen, Item, Key, LegacyState, Unread
from rfh2.errors import MigrationError


class Verdict(StrEnum):
    """What becomes of an item. REPORTED: it is not in the new state, and the reasons say why."""

    MIGRATED = "migrated"
    CHANGED = "changed"
    REPORTED = "reported"


class Result(StrEnum):
    """What becomes of an item, in the order in which a change board wants to see it."""

    REFUSED = "refused"
    CHANGED = "changed"
    LEFT = "left"
    MIGRATED = "migrated"


class Severity(StrEnum):
    """INFO: no action is needed. WARNING: a person should look. ERROR: something is lost unless a person acts."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an item is not in the new state as it was. ids: known problems and differences, such as ``P09`` and ``D15``.

    is_refusal: a run is refused for it.
    """

    text: str
    severity: Severity = Severity.INFO
    ids: tuple[str, ...] = ()
    is_refusal: bool = False


def worst(reasons: Iterable[Reason]) -> Severity:
    """The worst severity of *reasons*; INFO where there is none."""
    found = {reason.severity for reason in reasons}
    return next((each for each in (Severity.ERROR, Severity.WARNING) if each in found), Severity.INFO)


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one item. becomes: what it is in the new state, "" for nothing."""

    key: Key
    item: Item
    verdict: Verdict
    becomes: str = ""
    reasons: tuple[Reason, ...] = ()

    @property
    def label(self) -> str:
        """What a person calls the item."""
        return self.item.label

    @property
    def source(self) -> str:
        """Where it was found."""
        return str(self.item.source)

    @property
    def result(self) -> Result:
        """Which sum it is in.

        What is reported is left by choice where version 7 has nothing of its kind, or where it is no state of the
        broker. Other reported items are refused, with a reason that a person should see.
        """
        if self.verdict is not Verdict.REPORTED:
            return Result(self.verdict)
        is_no_state = isinstance(self.item, Unread) and not self.item.is_state
        return Result.LEFT if is_no_state or self.severity is Severity.INFO else Result.REFUSED

    @property
    def severity(self) -> Severity:
        """The worst of its reasons."""
        return worst(self.reasons)


class Made(Protocol):
    """What makes an item's successor, such as a step of a plan; it says what that is when somebody asks."""

    @property
    def becomes(self) -> str: ...


class _Entries:
    """What was decided about the items of one kind, by their numbers.

    In lists, because a broker may have 100,000 items: an object for each would need ten times the memory.
    """

    __slots__ = ("becomes", "changed", "items", "reasons", "reported")

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self.becomes: list[str | Made | None] = [None] * len(items)
        self.reasons: list[tuple[Reason, ...]] = [()] * len(items)
        self.changed = bytearray(len(items))
        self.reported = bytearray(len(items))

    def unsettled(self) -> Iterator[int]:
        """The numbers of the items for which nothing was decided."""
        for number, (becomes, reported) in enumerate(zip(self.becomes, self.reported, strict=True), 1):
            if becomes is None and not reported:
                yield number

    def fate(self, number: int) -> Fate:
        """What became of the item of this number."""
        at = number - 1
        item, reasons = self.items[at], self.reasons[at]
        if self.reported[at]:
            return Fate((item.kind, number), item, Verdict.REPORTED, "", reasons)
        becomes = self.becomes[at]
        text = becomes if isinstance(becomes, str) else "" if becomes is None else becomes.becomes
        return Fate((item.kind, number), item, Verdict.CHANGED if self.changed[at] else Verdict.MIGRATED, text, reasons)


class Ledger:
    """The items of one state, and what was decided about each so far."""

    def __init__(self, state: LegacyState) -> None:
        self._entries = {kind: _Entries(getattr(state, field)) for kind, field in FIELD_OF_KIND.items()}
        # Most items have the same few reasons: those that are equal are one object.
        self._known: dict[tuple[Reason, ...], tuple[Reason, ...]] = {}

    def becomes(self, key: Key, what: str | Made) -> None:
        """The item is *what* in the new state."""
        kind, number = key
        self._entries[kind].becomes[number - 1] = what

    def change(self, key: Key, text: str, *ids: str, severity: Severity = Severity.INFO) -> None:
        """The item changes; ``becomes`` must still be called."""
        kind, number = key
        self._entries[kind].changed[number - 1] = True
        self._add(key, Reason(text, severity, ids))

    def note(self, key: Key, text: str, *ids: str, severity: Severity = Severity.INFO) -> None:
        """A remark about the item; the item does not change."""
        self._add(key, Reason(text, severity, ids))

    def report(self, key: Key, text: str, *ids: str, severity: Severity = Severity.WARNING) -> None:
        """The item is not in the new state."""
        kind, number = key
        self._entries[kind].reported[number - 1] = True
        self._add(key, Reason(text, severity, ids))

    def _add(self, key: Key, reason: Reason) -> None:
        kind, number = key
        all_reasons = self._entries[kind].reasons
        (known,) = self._known.setdefault((reason,), (reason,))
        reasons = (*all_reasons[number - 1], known)
        all_reasons[number - 1] = self._known.setdefault(reasons, reasons)

    def is_reported(self, key: Key) -> bool:
        """Whether the item has been left out."""
        kind, number = key
        return bool(self._entries[kind].reported[number - 1])

    def unsettled(self) -> tuple[Key, ...]:
        """Items for which nothing was decided yet."""
        return tuple((kind, number) for kind, entries in self._entries.items() for number in entries.unsettled())

    def close(self) -> Fates:
        """The fate of every item, which ends the ledger.

        Raises MigrationError if an item has none: an error in planning, never in the data.
        """
        missing = self.unsettled()
        if missing:
            raise MigrationError(f"the plan says nothing of {len(missing)} items, the first is {missing[0]}")
        entries, self._entries, self._known = self._entries, {}, {}
        return Fates(entries)


class Fates(Sequence[Fate]):
    """The fates of all items in the order of the state, each made when it is asked for.

    instead: fates that take the place of those that planning decided.
    """

    __slots__ = ("_ends", "_entries", "_instead")

    def __init__(self, entries: Mapping[str, _Entries], instead: Mapping[Key, Fate] | None = None) -> None:
        self._entries = entries
        self._ends = list(accumulate(len(each.items) for each in entries.values()))
        self._instead = instead or {}

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[Fate]:
        instead = self._instead
        for kind, entries in self._entries.items():
            for number in range(1, len(entries.items) + 1):
                changed = instead.get((kind, number)) if instead else None
                yield entries.fate(number) if changed is None else changed

    @overload
    def __getitem__(self, index: int) -> Fate: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Fate, ...]: ...

    def __getitem__(self, index: int | slice) -> Fate | tuple[Fate, ...]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(len(self))))
        at = range(len(self))[index]
        place = bisect_right(self._ends, at)
        kind = list(self._entries)[place]
        return self.of((kind, at - (self._ends[place - 1] if place else 0) + 1))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fates):
            return NotImplemented
        return len(self) == len(other) and all(mine == its for mine, its in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def of(self, key: Key) -> Fate:
        """The fate of the item with *key*."""
        changed = self._instead.get(key)
        return self._entries[key[0]].fate(key[1]) if changed is None else changed

    def with_changed(self, fates: Iterable[Fate]) -> Fates:
        """These, with *fates* in the place of those of the same keys."""
        return Fates(self._entries, {**self._instead, **{fate.key: fate for fate in fates}})


class Sums(Frozen):
    """items: how many were read."""

    items: int = 0
    migrated: int = 0
    changed: int = 0
    refused: int = 0
    left: int = 0

    @classmethod
    def of(cls, results: Iterable[Result], items: int) -> Self:
        """The sums of *results*. Raises MigrationError if they are not those of *items* items: a fault in planning."""
        counted = Counter(map(str, results))
        made = cls(items=items, **counted)
        made.check()
        return made

    def check(self) -> None:
        """Raises MigrationError if an item is in none of the sums, or in two."""
        if self.items != self.migrated + self.changed + self.refused + self.left:
            raise MigrationError(
                f"{self.items} items were read, but {self.migrated} are migrated, {self.changed} changed, "
                f"{self.refused} refused and {self.left} left by choice: the sums do not agree"
            )

    def __add__(self, other: Sums) -> Sums:
        words = Sums.model_fields
        return Sums(**{word: getattr(self, word) + getattr(other, word) for word in words})

    def each(self) -> Iterator[tuple[Result, int]]:
        """Result and number, losses first."""
        yield from ((result, getattr(self, result)) for result in Result)


def total(sums: Iterable[Sums]) -> Sums:
    """All of them together."""
    result = Sums()
    for one in sums:
        result += one
    return result
