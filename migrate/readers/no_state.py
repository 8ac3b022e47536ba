"""Messages of a capture that are no state of the broker: an item for each kind, with the number of messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from commands.broker.outcome import Outcome
from migrate.legacy_state import Source, Unread
from rfh2.constants import REASON_NAMES


@dataclass(slots=True)
class Left:
    """Messages that are no state, counted by what they are; the place of the first one represents them."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    places: dict[tuple[str, str], Source] = field(default_factory=dict)

    def add(self, source: Source, what: str, why: str) -> None:
        """One more of a kind."""
        self.counts[what, why] += 1
        self.places.setdefault((what, why), source)

    def items(self) -> Iterator[Unread]:
        """One item for each kind."""
        for (what, why), count in self.counts.items():
            yield Unread(source=self.places[what, why], text=f"{count} {what}", why=why, count=count, is_state=False)


@dataclass(slots=True)
class Foreign:
    """Messages of other queue managers than *qmgr*, counted for each source: one that is mostly theirs is refused."""

    qmgr: str
    totals: Counter[str] = field(default_factory=Counter)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    places: dict[tuple[str, str], Source] = field(default_factory=dict)

    def takes(self, qmgr: str | None, source: Source) -> bool:
        """Count a message captured on *qmgr*; whether it is another queue manager's."""
        self.totals[source.file] += 1
        if qmgr is None or qmgr == self.qmgr:
            return False
        self.add(qmgr, source)
        return True

    def add(self, qmgr: str, source: Source) -> None:
        """Count a message about queue manager *qmgr*."""
        self.counts[source.file, qmgr] += 1
        self.places.setdefault((source.file, qmgr), source)

    def items(self) -> Iterator[Unread]:
        """One item for each source and queue manager."""
        for (file, qmgr), count in self.counts.items():
            yield Unread(
                source=self.places[file, qmgr],
                text=f"{count} of {self.totals[file]} messages are of queue manager {qmgr}",
                why=f"the broker that is migrated is that of {self.qmgr}",
                count=count,
                is_state=False,
                warns=True,
                qmgr=qmgr,
                of_count=self.totals[file],
            )


@dataclass(slots=True)
class RefusedCommands:
    """Commands that version 6 refuses, by source, command and reason; each keeps its position."""

    positions: dict[tuple[str, str, str], list[int]] = field(default_factory=dict)

    def add(self, source: Source, word: str, outcome: Outcome) -> None:
        """One more; *outcome* has the reason."""
        name = REASON_NAMES.get(outcome.reason or 0, "")
        # Before the sentence are the reason code and the topic, which is another one in each command.
        sentence = outcome.why.rpartition("): ")[2]
        reason = f"{outcome.reason}{f' ({name})' if name else ''}{f', {sentence}' if sentence else ''}"
        self.positions.setdefault((source.file, word, reason), []).append(source.position or 0)

    def items(self) -> Iterator[Unread]:
        """One item for each source, command and reason."""
        for (file, word, reason), positions in self.positions.items():
            count = len(positions)
            what = f"{count} {word} commands" if count > 1 else f"{word} command"
            where = f"records {ranges(positions)}" if count > 1 else f"record {positions[0]}"
            yield Unread(
                source=Source(file=file, position=positions[0], unit="record"),
                text=f"{what} ({where})",
                why=f"version 6 refuses {'them' if count > 1 else 'it'} with reason {reason}: nothing was changed",
                count=count,
                is_state=False,
            )


def ranges(numbers: Iterable[int]) -> str:
    """Numbers in ascending order, those in a row as a range.

    >>> ranges([7, 1, 2, 3, 9])
    '1-3, 7, 9'
    """
    runs = groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0])
    ends = [(group[0][1], group[-1][1]) for _, run in runs for group in [list(run)]]
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ends)
