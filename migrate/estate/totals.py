"""Every item that was read is in one of four sums: migrated, changed, refused with a reason, or left by choice.

Left by choice is what a fate says (``Fate.is_left``), in an estate as in the report of one broker. The sums are checked
wherever they are made; so they agree in every report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Self

from migrate.ledger import Fate, Verdict
from migrate.legacy_state import Frozen
from rfh2.errors import MigrationError


class Result(StrEnum):
    """What becomes of an item, in the order in which a change board wants to see it."""

    REFUSED = "refused"
    CHANGED = "changed"
    LEFT = "left"
    MIGRATED = "migrated"


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


def result_of(fate: Fate) -> Result:
    """What became of an item, as an estate counts it."""
    if fate.verdict is Verdict.MIGRATED:
        return Result.MIGRATED
    if fate.verdict is Verdict.CHANGED:
        return Result.CHANGED
    return Result.LEFT if fate.is_left else Result.REFUSED
