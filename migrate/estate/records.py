"""What is kept of each broker beside estate.toml, and how it is written: whole or not at all.

    migration/QM1/record.json      how far the broker is; replaced last, so that it never names what is not there
    migration/QM1/plans/0002/      the plan that the record names: the state that was read, the report, every item
    migration/QM1/plans/0001/      an earlier plan; its items are kept, for comparison
    migration/QM1/extracted/       what ``estate extract`` has taken from a live queue manager

The record is not the truth about the queue manager: that is the namelist that a migration leaves there, in the same
transaction, or the journal of what a live queue manager has confirmed. ``settled`` and ``progress`` correct a record
that was not written because its process was killed.

The items of a plan as rows: what became of each, why, and to which application it belongs.

One JSON object a line, compressed: what a comparison of two plans and the pack of a change board are made from. They
are read one by one, so that memory does not grow with the estate.

How two plans of one broker differ: items that came, items that went, and items with another fate.

An item is recognized by its contents (``item_rows.ItemRow.digest``), wherever it was found. If only its place in the
sources has changed, there is no difference.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from commands.disk.files import directory_to_disk, make_directory, put_in_place
from commands.qmgr.store.opening import directory_of
from migrate import contents
from migrate.contents import SUMS, Content, disk, write_synced
from migrate.ledger import Reason, Result, Severity, Sums, worst
from migrate.legacy_state import (
    AclEntry,
    FlowInput,
    Frozen,
    Item,
    LegacyAuthority,
    LegacyRetained,
    LegacySubscription,
    Principal,
    Publisher,
    digest,
)
from migrate.live.journal import JOURNAL
from migrate.plan import Marker, MigrationPlan, Outcome, Phase, Tool
from rfh2.errors import DecodeError, MigrationError
from rfh2.mqmd import Mqmd

WORK: Final = "migration"
RECORD: Final = "record.json"
PLANS: Final = "plans"
STATE: Final = "state.json"
FATES: Final = "fates.jsonl.gz"
SCRIPTS: Final = "scripts"
TOPICS: Final = "topics.txt.gz"
EXTRACTED: Final = "extracted"
ANSWERS: Final = "metatopics.jsonl"
LIVE_STATE: Final = "state.json"
OBJECTS: Final = "objects.mqsc"
KEPT_OF_EARLIER: Final = frozenset({FATES})


class BrokerState(StrEnum):
    """How far a broker is. MISSING: it has no sources. EXTRACTED: it has sources, and no plan.

    APPLYING: a live queue manager has some of the checkpoints of its plan.
    """

    MISSING = "missing"
    EXTRACTED = "extracted"
    PLANNED = "planned"
    REHEARSED = "rehearsed"
    APPLYING = "applying"
    APPLIED = "applied"
    VERIFIED = "verified"
    UNDONE = "undone"


DONE: Final = frozenset({BrokerState.APPLIED, BrokerState.VERIFIED})
"""The states of a broker whose plan is in its queue manager."""

BEGUN: Final = DONE | {BrokerState.APPLYING}
"""The states of a broker of whose plan something is in its queue manager."""


class Survey(Frozen):
    """What other brokers must know of a broker. streams: each with the topic string that it gets.

    named: all its streams, also those that get no topic string. objects: topic objects with their topic strings.
    parents, children: recorded neighbours. levels: the first levels of topics on the default stream. points:
    subscription points.
    """

    streams: dict[str, str] = {}
    named: tuple[str, ...] = ()
    objects: dict[str, str] = {}
    points: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()


class Record(Frozen):
    """The record of one broker.

    at: when this state was reached, ISO 8601. plan: the number of its plan, 0 for none. inputs: a digest of sources and
    options. fingerprint: of the broker's state. decided: a digest of the fates of all items. said: remarks, of
    differences or refusals. seconds, peak_mib: what the last action took; rehearsed_seconds: what the
    rehearsal took. checkpoint: of a live queue manager that is being applied to, the one that follows. until: the time
    of the last record in its sources, or of the newest file where they have no times.
    """

    qmgr: str
    state: BrokerState
    at: str
    tool: Tool = Tool.STRMQBRK
    plan: int = 0
    planned_at: str = ""
    inputs: str = ""
    fingerprint: str = ""
    decided: str = ""
    outcome: Outcome = Outcome.DONE
    sums: Sums = Sums()
    survey: Survey = Survey()
    said: tuple[str, ...] = ()
    seconds: float = 0.0
    peak_mib: int = 0
    checkpoint: str = ""
    until: str = ""
    rehearsed_seconds: float = 0.0


def settled(record: Record, marker: Marker | None) -> Record:
    """*record* as the queue manager's own record of its migration has it. marker: None if the queue manager has none.

    A process that was killed after its transaction and before the record was replaced leaves the two different.
    """
    is_complete = marker is not None and marker.phase is Phase.COMPLETE
    if record.state in DONE:
        return record if is_complete else record.model_copy(update={"state": BrokerState.UNDONE, "said": ()})
    if marker is not None and is_complete and record.plan and marker.fingerprint == record.fingerprint:
        return record.model_copy(update={"state": BrokerState.APPLIED, "at": marker.at, "said": ()})
    return record


class BrokerFiles:
    """The directory of one broker. Raises MigrationError where the disk refuses."""

    def __init__(self, estate: Path, qmgr: str) -> None:
        self.qmgr = qmgr
        self.directory = directory_of(estate / WORK, qmgr)

    def plan(self, number: int) -> Path:
        """The directory of a plan."""
        return self.directory / PLANS / f"{number:04}"

    def plans(self) -> tuple[int, ...]:
        """The numbers of the plans that are there, in order."""
        try:
            names = [entry.name for entry in (self.directory / PLANS).iterdir()]
        except FileNotFoundError:
            return ()
        return tuple(sorted(int(name) for name in names if name.isdecimal()))

    def record(self) -> Record | None:
        """The record; None where there is none yet. Raises MigrationError if it is damaged."""
        path = self.directory / RECORD
        try:
            return Record.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            raise MigrationError(
                f"{path}: cannot be read ({type(error).__name__}): restore it, or remove it and plan the broker again"
            ) from error

    def write_record(self, record: Record) -> None:
        """Replace the record; it is on the disk when this returns."""
        with disk(self.directory):
            make_directory(self.directory)
            self._replace(self.directory / RECORD, (record.model_dump_json(indent=1) + "\n").encode())

    def extracted(self, name: str) -> Path:
        """The file *name* of what was taken from the live queue manager."""
        return self.directory / EXTRACTED / name

    def write_extracted(self, name: str, content: Content) -> None:
        """Write a file of what was taken from the live queue manager; it appears when it is complete."""
        path = self.extracted(name)
        with disk(path):
            make_directory(self.directory)
            make_directory(path.parent)
            self._replace(path, content)

    def write_plan(self, number: int, contents: Mapping[str, Content]) -> None:
        """Write the files of a plan. What a killed process left under this number is replaced."""
        target = self.plan(number)
        with disk(target, "; nothing was changed"):
            make_directory(self.directory)
            make_directory(target.parent)
            for left in target.parent.glob(".writing-*"):
                shutil.rmtree(left, ignore_errors=True)
            staged = Path(tempfile.mkdtemp(prefix=".writing-", dir=target.parent))
            try:
                sums = []
                for name, content in contents.items():
                    path = staged / name
                    make_directory(path.parent)
                    digest = write_synced(path, content)
                    if name.startswith(f"{SCRIPTS}/"):
                        sums.append(f"{digest}  {name.removeprefix(f'{SCRIPTS}/')}\n")
                if sums:
                    write_synced(staged / SCRIPTS / SUMS, "".join(sums).encode())
                shutil.rmtree(target, ignore_errors=True)
                for made in (staged, *{(staged / name).parent for name in contents} - {staged}):
                    directory_to_disk(made)
                put_in_place(staged, target)
            except BaseException:
                shutil.rmtree(staged, ignore_errors=True)
                raise

    def _replace(self, path: Path, content: Content) -> None:
        partial = path.with_name(f"{path.name}.partial")
        write_synced(partial, content)
        put_in_place(partial, path)

    def shorten_earlier(self, number: int) -> None:
        """Remove from the plans before *number* what only the latest one needs.

        A journal that was not undone stays with its scripts: it alone knows how to take them back.
        """
        for earlier in self.plans():
            if earlier < number:
                kept = KEPT_OF_EARLIER | ({SCRIPTS} if (self.plan(earlier) / SCRIPTS / JOURNAL).exists() else set())
                for path in self.plan(earlier).iterdir():
                    if path.name not in kept:
                        shutil.rmtree(path) if path.is_dir() else path.unlink()


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
