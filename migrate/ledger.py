"""The fate of every item: always one of migrated, changed with a reason, or reported to a person.

Planning settles the items one by one. ``close`` fails while an item is unsettled, so that no plan can forget an item:
the number of fates is the number of items.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from migrate.legacy_state import Item, Key, LegacyState
from rfh2.errors import MigrationError


class Verdict(StrEnum):
    """What becomes of an item. REPORTED: it is not in the new state, and the reasons say why."""

    MIGRATED = "migrated"
    CHANGED = "changed"
    REPORTED = "reported"


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
    def severity(self) -> Severity:
        """The worst of its reasons."""
        worst = [s for s in (Severity.ERROR, Severity.WARNING) if any(r.severity is s for r in self.reasons)]
        return worst[0] if worst else Severity.INFO


@dataclass(slots=True)
class _LedgerEntry:
    key: Key
    item: Item
    becomes: str | None = None
    reported: bool = False
    changed: bool = False
    reasons: tuple[Reason, ...] = ()


class Ledger:
    """The items of one state, and what was decided about each so far."""

    def __init__(self, state: LegacyState) -> None:
        self._entries: dict[Key, _LedgerEntry] = {key: _LedgerEntry(key, item) for key, item in state.items()}
        # Most items have the same few reasons: those that are equal are one object.
        self._known: dict[tuple[Reason, ...], tuple[Reason, ...]] = {}

    def becomes(self, key: Key, what: str) -> None:
        """The item is *what* in the new state."""
        self._entries[key].becomes = what

    def change(self, key: Key, text: str, *ids: str, severity: Severity = Severity.INFO) -> None:
        """The item changes; ``becomes`` must still be called."""
        self._entries[key].changed = True
        self._add(key, Reason(text, severity, ids))

    def note(self, key: Key, text: str, *ids: str, severity: Severity = Severity.INFO) -> None:
        """A remark about the item; the item does not change."""
        self._add(key, Reason(text, severity, ids))

    def report(self, key: Key, text: str, *ids: str, severity: Severity = Severity.WARNING) -> None:
        """The item is not in the new state."""
        self._entries[key].reported = True
        self._add(key, Reason(text, severity, ids))

    def _add(self, key: Key, reason: Reason) -> None:
        entry = self._entries[key]
        (known,) = self._known.setdefault((reason,), (reason,))
        reasons = (*entry.reasons, known)
        entry.reasons = self._known.setdefault(reasons, reasons)

    def is_reported(self, key: Key) -> bool:
        """Whether the item has been left out."""
        return self._entries[key].reported

    def unsettled(self) -> tuple[Key, ...]:
        """Items for which nothing was decided yet."""
        return tuple(key for key, e in self._entries.items() if e.becomes is None and not e.reported)

    def close(self) -> tuple[Fate, ...]:
        """The fate of every item, which ends the ledger.

        Raises MigrationError if an item has none: an error in planning, never in the data.
        """
        missing = self.unsettled()
        if missing:
            raise MigrationError(f"the plan says nothing of {len(missing)} items, the first is {missing[0]}")
        entries, self._entries, self._known = self._entries, {}, {}
        return tuple(_fate(key, entry) for key, entry in entries.items())

    def own_key(self, key: Key) -> Key:
        """*key* as the ledger has it: steps that refer to items share it."""
        return self._entries[key].key


def left_by_choice(fates: Iterable[Fate]) -> int:
    """How many of the reported items need nobody: version 7 has nothing of their kind, or they are no state.

    The other reported items are refused, with a reason that a person should see.
    """
    return sum(fate.verdict is Verdict.REPORTED and fate.severity is Severity.INFO for fate in fates)


def count(fates: Iterable[Fate]) -> dict[Verdict, int]:
    """How many items have each verdict."""
    counts = dict.fromkeys(Verdict, 0)
    for fate in fates:
        counts[fate.verdict] += 1
    return counts


def _fate(key: Key, entry: _LedgerEntry) -> Fate:
    verdict = Verdict.REPORTED if entry.reported else Verdict.CHANGED if entry.changed else Verdict.MIGRATED
    becomes = "" if entry.reported else entry.becomes or ""
    return Fate(key, entry.item, verdict, becomes, entry.reasons)
