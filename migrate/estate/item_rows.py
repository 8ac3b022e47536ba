"""The items of a plan as rows: what became of each, why, and to which application it belongs.

One JSON object a line, compressed: what a comparison of two plans and the pack of a change board are made from. They
are read one by one, so that memory does not grow with the estate.

How two plans of one broker differ: items that came, items that went, and items with another fate.

An item is recognized by its contents (``item_rows.ItemRow.digest``), wherever it was found. If only its place in the
sources has changed, there is no difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from migrate import contents
from migrate.fingerprint import digest
from migrate.ledger import Reason, Result, Severity, worst
from migrate.legacy_state import (
    AclEntry,
    FlowInput,
    Item,
    LegacyAuthority,
    LegacyRetained,
    LegacySubscription,
    Principal,
    Publisher,
)
from migrate.plan import MigrationPlan
from rfh2.errors import DecodeError
from rfh2.mqmd import Mqmd


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose an item is, as far as it says: the queue of the program, its user, its name (PutApplName)."""

    queue: str = ""
    user: str = ""
    program: str = ""


@dataclass(frozen=True, slots=True)
class ItemRow:
    """An item with what became of it. digest: of its contents, the same wherever it was found."""

    kind: str
    number: int
    label: str
    digest: str
    source: str
    result: Result
    becomes: str
    reasons: tuple[Reason, ...]
    owner: Owner

    @property
    def severity(self) -> Severity:
        """The worst of its reasons."""
        return worst(self.reasons)

    @property
    def decision(self) -> tuple[object, ...]:
        """What was decided about it: two plans that say the same have equal decisions."""
        return self.result, self.becomes, self.reasons


def rows_of(plan: MigrationPlan) -> Iterator[ItemRow]:
    """The rows of *plan*, one for each item, in its order."""
    for fate, (_, item) in zip(plan.fates, plan.state.items(), strict=True):
        kind, number = fate.key
        yield ItemRow(
            kind,
            number,
            fate.label,
            digest(item),
            fate.source,
            fate.result,
            fate.becomes,
            fate.reasons,
            owner_of(item),
        )


def owner_of(item: Item) -> Owner:
    """Whose *item* is. Items of the broker itself, such as streams and neighbours, are nobody's."""
    if isinstance(item, LegacySubscription):
        return Owner(item.queue, item.user)
    if isinstance(item, Publisher):
        return Owner(item.queue, item.user)
    if isinstance(item, LegacyRetained):
        try:
            mqmd = Mqmd.decode(bytes.fromhex(item.md_hex or ""))
        except DecodeError:
            return Owner()
        return Owner("", mqmd.user_identifier.rstrip(), mqmd.put_appl_name.rstrip())
    if isinstance(item, AclEntry):
        return Owner("", "" if item.principal_type == "group" else item.principal)
    if isinstance(item, LegacyAuthority):
        queue = item.profile if item.object_type == "QUEUE" else ""
        return Owner(queue, item.entity if item.entity_type == "PRINCIPAL" else "")
    if isinstance(item, Principal):
        return Owner("", item.name if item.type == "user" else "")
    return Owner(item.queue) if isinstance(item, FlowInput) else Owner()


def decided(rows: Iterable[ItemRow]) -> str:
    """40 hexadecimal digits for what was decided about every item, in whatever order."""
    each = sorted(
        sha256(f"{row.kind} {row.digest} {row.result} {row.becomes} {_reasons(row)}".encode()).hexdigest()
        for row in rows
    )
    return sha256("".join(each).encode()).hexdigest()[:40]


def packed(rows: Iterable[ItemRow]) -> bytes:
    """*rows* as they are kept in a file."""
    return contents.packed(map(_as_list, rows))


def unpacked(path: Path) -> Iterator[ItemRow]:
    """The rows in the file at *path*, one by one. Raises MigrationError if it is missing or damaged."""
    for kind, number, label, own, source, result, becomes, reasons, owner in contents.unpacked(path):
        found = tuple(Reason(text, Severity(severity), tuple(ids)) for severity, text, ids in reasons)
        yield ItemRow(kind, number, label, own, source, Result(result), becomes, found, Owner(*owner))


def _as_list(row: ItemRow) -> list[object]:
    owner = [row.owner.queue, row.owner.user, row.owner.program]
    own = [row.kind, row.number, row.label, row.digest, row.source, str(row.result), row.becomes]
    return [*own, _reasons(row), owner]


def _reasons(row: ItemRow) -> list[list[object]]:
    return [[str(reason.severity), reason.text, list(reason.ids)] for reason in row.reasons]


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
