"""The fate of every item: migrated, changed with a reason, or reported to a person; one of them, always.

Planning settles items as it goes. ``close`` refuses to end while an item is unsettled, so that a plan that forgets one
cannot exist: what goes in is what comes out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from migrate.legacy_state import Item, Key, LegacyState
from rfh2.errors import MigrationError


class Verdict(StrEnum):
    """What becomes of an item. REPORTED: it is not in the new state, and the reasons say why."""

    MIGRATED = "migrated"
    CHANGED = "changed"
    REPORTED = "reported"


class Severity(StrEnum):
    """INFO: nothing needs doing. WARNING: somebody should look. ERROR: something would be lost without a person."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an item is not simply there as it was. ids: known problems and differences, such as ``P09`` and ``D15``.

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
    label: str
    source: str
    verdict: Verdict
    becomes: str = ""
    reasons: tuple[Reason, ...] = ()

    @property
    def severity(self) -> Severity:
        """The worst of its reasons."""
        worst = [s for s in (Severity.ERROR, Severity.WARNING) if any(r.severity is s for r in self.reasons)]
        return worst[0] if worst else Severity.INFO


@dataclass(slots=True)
class _LedgerEntry:
    item: Item
    becomes: str | None = None
    reported: bool = False
    changed: bool = False
    reasons: list[Reason] = field(default_factory=list)


class Ledger:
    """The items of one state, and what has been said of each so far."""

    def __init__(self, state: LegacyState) -> None:
        self._entries: dict[Key, _LedgerEntry] = {key: _LedgerEntry(item) for key, item in state.items()}

    def becomes(self, key: Key, what: str) -> None:
        """The item is *what* in the new state."""
        self._entries[key].becomes = what

    def change(self, key: Key, text: str, *ids: str, severity: Severity = Severity.INFO) -> None:
        """The item is not quite what it was; it still has to become something."""
        entry = self._entries[key]
        entry.changed = True
        entry.reasons.append(Reason(text, severity, ids))

    def note(self, key: Key, text: str, *ids: str, severity: Severity = Severity.INFO) -> None:
        """Something to know about the item that changes nothing about it."""
        self._entries[key].reasons.append(Reason(text, severity, ids))

    def report(self, key: Key, text: str, *ids: str, severity: Severity = Severity.WARNING) -> None:
        """The item is not in the new state."""
        entry = self._entries[key]
        entry.reported = True
        entry.reasons.append(Reason(text, severity, ids))

    def is_reported(self, key: Key) -> bool:
        """Whether the item has been left out."""
        return self._entries[key].reported

    def unsettled(self) -> tuple[Key, ...]:
        """Items of which nothing has been said that settles them."""
        return tuple(key for key, e in self._entries.items() if e.becomes is None and not e.reported)

    def close(self) -> tuple[Fate, ...]:
        """The fate of every item. Raises MigrationError where one has none: a fault in planning, never in the data."""
        missing = self.unsettled()
        if missing:
            raise MigrationError(f"the plan says nothing of {len(missing)} items, the first is {missing[0]}")
        return tuple(_fate(key, entry) for key, entry in self._entries.items())


def count(fates: Iterable[Fate]) -> dict[Verdict, int]:
    """How many items have each verdict."""
    counts = dict.fromkeys(Verdict, 0)
    for fate in fates:
        counts[fate.verdict] += 1
    return counts


def _fate(key: Key, entry: _LedgerEntry) -> Fate:
    verdict = Verdict.REPORTED if entry.reported else Verdict.CHANGED if entry.changed else Verdict.MIGRATED
    becomes = "" if entry.reported else entry.becomes or ""
    return Fate(key, entry.item.label, str(entry.item.source), verdict, becomes, tuple(entry.reasons))
