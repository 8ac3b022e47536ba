"""How two plans of one broker differ: items that came, items that went, and items with another fate.

An item is recognized by its contents (``item_rows.ItemRow.digest``), wherever it was found. If only its place in the
sources has changed, there is no difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from migrate.estate.item_rows import ItemRow


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """One item. before, after: its rows; None where it is not in that plan."""

    before: ItemRow | None
    after: ItemRow | None

    @property
    def item(self) -> ItemRow:
        """The later of the two."""
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def word(self) -> str:
        """``new``, ``gone`` or ``other``."""
        return "new" if self.before is None else "gone" if self.after is None else "other"

    def line(self) -> str:
        """What a person reads."""
        if self.before is None or self.after is None:
            return f"{self.word}: {self.item.label} ({self.item.result})"
        was, now = self.before, self.after
        if was.result != now.result:
            return f"other: {now.label}: {was.result} before, {now.result} now{_why(now)}"
        if was.becomes != now.becomes:
            return f"other: {now.label}: becomes {now.becomes or 'nothing'}, before {was.becomes or 'nothing'}"
        return f"other: {now.label}: {now.result} for another reason{_why(now)}"

    def as_json(self, qmgr: str) -> dict[str, Any]:
        """As JSON values."""
        return {
            "qmgr": qmgr,
            "difference": self.word,
            "kind": self.item.kind,
            "item": self.item.label,
            "before": None if self.before is None else str(self.before.result),
            "after": None if self.after is None else str(self.after.result),
            "text": self.line(),
        }


def plan_differences(before: Iterable[ItemRow], after: Iterable[ItemRow]) -> list[PlanDifference]:
    """The differences, in the order of the later plan; items that went are at the end."""
    left: dict[tuple[str, str], list[ItemRow]] = defaultdict(list)
    for row in before:
        left[row.kind, row.digest].append(row)
    found: list[PlanDifference] = []
    unmatched: list[ItemRow] = []
    for row in after:
        same = left.get((row.kind, row.digest), [])
        at = next((at for at, other in enumerate(same) if other.decision == row.decision), None)
        if at is not None:
            same.pop(at)
        else:
            unmatched.append(row)
    for row in unmatched:
        same = left.get((row.kind, row.digest), [])
        found.append(PlanDifference(same.pop(0) if same else None, row))
    return found + [PlanDifference(row, None) for rows in left.values() for row in rows]


def _why(row: ItemRow) -> str:
    return f": {row.reasons[0].text}" if row.reasons else ""
