"""What is kept of each broker beside estate.toml, and how it is written: whole or not at all.

    migration/QM1/record.json      how far the broker is; replaced last, so that it never names what is not there
    migration/QM1/plans/0002/      the plan that the record names: the state that was read, the report, every item
    migration/QM1/plans/0001/      an earlier plan; its items are kept, for comparison
    migration/QM1/extracted/       what ``estate extract`` has taken from a live queue manager

The record is not the truth about the queue manager: that is the namelist that a migration leaves there, in the same
transaction, or the journal of what a live queue manager has confirmed. ``settled`` and ``progress`` correct a record
that was not written because its process was killed.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from commands.disk.files import directory_to_disk, make_directory, put_in_place
from commands.qmgr.store.opening import directory_of
from migrate.contents import SUMS, Content, disk, write_synced
from migrate.ledger import Sums
from migrate.legacy_state import Frozen
from migrate.live.journal import JOURNAL
from migrate.plan import Marker, Outcome, Phase, Tool
from rfh2.errors import MigrationError

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
