"""The journal of applying a plan: what was confirmed, a line each, so that a run that was killed goes on.

The first line says which plan and which queue manager it is about. A line is written after the queue manager has
confirmed; what was done without being confirmed is found by looking at the queue manager. A last line that was cut off
is what was being written when the run ended: it is left out.

The steps of applying a plan, in the order of the checklist: files of ``--out``, and what a person has to confirm.

    compat         ALTER QMGR PSMODE(COMPAT)
    stopped        a person: applications and the old broker are stopped, the queue manager is backed up
    queues         1-queues.mqsc
    objects        2-objects.mqsc
    authorities    3-authorities.mqsc
    security       a person: the security commands of migmbbrk were reviewed and run
    upgraded       a person: a Message Broker that goes on with its message flows is upgraded
    enabled        ALTER QMGR PSMODE(ENABLED)
    retained-NN    4-retained-NN.qload, then wait until its queue is empty
    subscriptions  5-subscriptions.mqsc
    registrations  6-registrations.qload, then wait until the control queue is empty
    record         7-enable.mqsc

The initial phase of migmbbrk has compat, queues, objects, authorities and record.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from io import FileIO
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import ValidationError

from commands.disk.files import directory_to_disk, private, put_in_place
from migrate.acl import FILE_NAME as SECURITY_COMMANDS
from migrate.contents import disk
from migrate.legacy_state import Frozen
from migrate.plan import AUTHORITIES, ENABLE, OBJECTS, QUEUES, REGISTRATIONS, SUBSCRIPTIONS, Tool
from migrate.planned_state import Kind, PlannedHeading
from rfh2.errors import MigrationError, system_words

try:
    import fcntl
except ImportError:  # Windows, where another run is not noticed
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True

JOURNAL: Final = "apply.journal"
"""Its name in the directory of the plan, unless another one is given."""
FORMAT: Final = "qpubsub-apply-journal"
Did = Literal["sending", "made", "changed", "there", "began", "done", "undone"]


class JournalHeading(Frozen):
    """Which plan, on which queue manager."""

    format: Literal["qpubsub-apply-journal"] = FORMAT
    fingerprint: str
    made: str
    qmgr: str
    where: str


class Entry(Frozen):
    """One deed, confirmed unless it is ``sending``. statement: its number in the script, 0 for the whole checkpoint.

    digest: of the statement's text: a script that was corrected has other statements under the same numbers.

    sent: the statement as it was sent, MQSC; "" in a journal of an earlier release. undo: what takes it back, MQSC; ""
    if nothing can or nothing needs to. left: why it cannot be taken back. before: of a load, what was there before it:
    SUBIDs, or topic strings with something retained. dead: how many messages were on the dead-letter queue then. of:
    what ``undone`` is about. added: of an earlier release, the names that were added to a namelist.
    """

    checkpoint: str
    did: Did
    statement: int = 0
    digest: str = ""
    sent: str = ""
    undo: str = ""
    added: tuple[str, ...] = ()
    left: str = ""
    before: tuple[str, ...] = ()
    dead: int = 0
    of: Did | None = None


@dataclass(slots=True)
class Journal:
    """The journal at *path*, open for one run. Raises MigrationError."""

    path: Path
    entries: list[Entry]
    _file: FileIO

    @classmethod
    def open(cls, path: Path, heading: PlannedHeading, where: str) -> Self:
        """The journal of this plan and queue manager, begun if it is not there.

        Raises MigrationError if it is another plan's or queue manager's, is damaged, or another run has it open.
        """
        wanted = JournalHeading(
            fingerprint=heading.fingerprint, made=heading.made.isoformat(), qmgr=heading.qmgr, where=where
        )
        with disk(f"journal {path}", "; nothing was changed"):
            file = FileIO(path, "a", opener=private)
        try:
            directory_to_disk(path.parent)
            _lock(file, path)
            entries = _read(path, wanted, file)
        except BaseException:
            file.close()
            raise
        return cls(path, entries, file)

    def note(self, entry: Entry) -> None:
        """Write one entry. Raises MigrationError where the disk does not take it."""
        self.entries.append(entry)
        _write(self._file, entry.model_dump_json(exclude_defaults=True), self.path)

    def sync(self) -> None:
        """Everything is on the disk when this returns. Raises MigrationError."""
        with disk(f"journal {self.path}"):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let another run have it."""
        self._file.close()

    def set_aside(self) -> None:
        """Give the journal another name: everything in it was taken back, and the next run begins anew."""
        number = 1
        while (undone := self.path.with_name(f"{self.path.name}.undone{number}")).exists():
            number += 1
        put_in_place(self.path, undone)

    def is_done(self, checkpoint: str) -> bool:
        """Whether the checkpoint is complete."""
        return any(e.checkpoint == checkpoint and e.did == "done" for e in self.live())

    def statements(self, checkpoint: str) -> set[tuple[int, str]]:
        """Number and digest of the statements that were confirmed."""
        found = (e for e in self.live() if e.checkpoint == checkpoint and e.statement and e.did != "sending")
        return {(e.statement, e.digest) for e in found}

    def sending(self, checkpoint: str) -> dict[tuple[int, str], Entry]:
        """The statements that were about to be sent, by number and digest, whether they were confirmed or not."""
        found = (e for e in self.live() if e.checkpoint == checkpoint and e.did == "sending")
        return {(e.statement, e.digest): e for e in found}

    def began(self, checkpoint: str) -> Entry | None:
        """What was noted when a load began."""
        return next((e for e in self.live() if e.checkpoint == checkpoint and e.did == "began"), None)

    def live(self) -> Iterator[Entry]:
        """The deeds that have not been undone, in order."""
        return still_there(self.entries)


def still_there(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Those of *entries* that have not been undone, in order."""
    undone = {(e.checkpoint, e.statement, e.digest, e.of) for e in entries if e.did == "undone"}
    return (e for e in entries if e.did != "undone" and (e.checkpoint, e.statement, e.digest, e.did) not in undone)


def entries_in(path: Path) -> list[Entry] | None:
    """The entries of the journal at *path*, which another run may have open; None if there is none.

    A last line that was cut off is left out. Raises MigrationError if the journal is damaged.
    """
    try:
        lines = _whole(path.read_bytes()).splitlines()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MigrationError(f"journal {path}: {system_words(error)}") from error
    return _parsed(path, [line.decode("utf-8", "replace") for line in lines])[1]


def _parsed(path: Path, lines: Sequence[str]) -> tuple[JournalHeading | None, list[Entry]]:
    """The heading, None in an empty journal, and the entries. Raises MigrationError."""
    if not lines:
        return None, []
    try:
        heading = JournalHeading.model_validate_json(lines[0])
        return heading, [Entry.model_validate_json(line) for line in lines[1:]]
    except ValidationError as error:
        raise MigrationError(f"journal {path} is damaged: {error.errors()[0]['msg']}; nothing was changed") from error


def _whole(data: bytes) -> bytes:
    """The lines that were written whole. A power cut leaves NUL for what was not synced, and lines after it."""
    lines, end, _ = data.partition(b"\0")[0].rpartition(b"\n")
    return lines + end


def _read(path: Path, wanted: JournalHeading, file: FileIO) -> list[Entry]:
    data = path.read_bytes()
    whole = _whole(data)
    if len(whole) < len(data):
        with disk(f"journal {path}"):
            file.truncate(len(whole))
    heading, entries = _parsed(path, whole.decode("utf-8", "replace").splitlines())
    if heading is None or (not entries and heading != wanted):
        # Nothing was confirmed: a run that reached no queue manager has left it.
        with disk(f"journal {path}"):
            file.truncate(0)
            _write(file, wanted.model_dump_json(), path)
            os.fsync(file.fileno())
        return []
    for name, mine, other in _differing(wanted, heading):
        raise MigrationError(
            f"journal {path} is that of another {name}: {other}, not {mine}. Nothing was changed; name another journal "
            "with --journal, or the directory of that plan"
        )
    return entries


def _differing(wanted: JournalHeading, found: JournalHeading) -> Iterator[tuple[str, str, str]]:
    for field, name in (
        ("qmgr", "queue manager"),
        ("where", "queue manager"),
        ("fingerprint", "plan"),
        ("made", "plan"),
    ):
        mine, other = getattr(wanted, field), getattr(found, field)
        if mine != other:
            yield name, mine, other


def _write(file: FileIO, line: str, path: Path) -> None:
    with disk(f"journal {path}"):
        # In one call, unless the disk is full: a killed run leaves a whole line or a cut one.
        rest = line.encode() + b"\n"
        while rest:
            rest = rest[file.write(rest) or 0 :]


def _lock(file: FileIO, path: Path) -> None:
    if not _HAS_LOCKS:
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise MigrationError(f"journal {path} is in use by another qpubsub apply; nothing was changed") from error


class Action(StrEnum):
    """MQSC: run a script. LOAD: put the messages of a file on a queue and wait. PERSON: somebody confirms it."""

    MQSC = "mqsc"
    LOAD = "load"
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One step. script: MQSC itself, else it is that of *file*. queue: of a load. kinds: what has to be read before it.

    asks: what a person has to do and confirm.
    """

    name: str
    action: Action
    file: str = ""
    script: str = ""
    queue: str = ""
    kinds: tuple[Kind, ...] = ()
    asks: str = ""

    @property
    def is_script(self) -> bool:
        """Whether it runs MQSC."""
        return self.action is Action.MQSC

    def text(self, directory: Path) -> str:
        """The MQSC. Raises OSError."""
        return self.script or (directory / self.file).read_text(encoding="utf-8")


def checkpoints(heading: PlannedHeading) -> tuple[Checkpoint, ...]:
    """All steps for the plan."""
    return tuple(_steps(heading))


def _steps(heading: PlannedHeading) -> Iterator[Checkpoint]:
    is_complete, mqsc = heading.is_complete, Action.MQSC
    yield Checkpoint("compat", mqsc, script="ALTER QMGR PSMODE(COMPAT)\n", kinds=("QMGR",))
    if is_complete:
        yield Checkpoint("stopped", Action.PERSON, asks=_stopping(heading))
    yield Checkpoint("queues", mqsc, QUEUES, kinds=("QUEUE",))
    yield Checkpoint("objects", mqsc, OBJECTS, kinds=("QMGR", "TOPIC", "NAMELIST", "AUTHREC"))
    yield Checkpoint("authorities", mqsc, AUTHORITIES, kinds=("AUTHREC",))
    if is_complete:
        if heading.tool == Tool.MIGMBBRK:
            asks = f"run the commands of {SECURITY_COMMANDS} that a person has reviewed and found right"
            yield Checkpoint("security", Action.PERSON, asks=asks)
            yield Checkpoint("upgraded", Action.PERSON, asks=_upgrading(heading))
        yield Checkpoint("enabled", mqsc, script="ALTER QMGR PSMODE(ENABLED)\n", kinds=("QMGR",))
        for file, queue in heading.loads.items():
            if file != REGISTRATIONS:
                name = "retained-" + "".join(c for c in file.removeprefix("4-retained-") if c.isdigit())
                yield Checkpoint(name, Action.LOAD, file, queue=queue, kinds=("RETAINED",))
        yield Checkpoint("subscriptions", mqsc, SUBSCRIPTIONS, kinds=("SUB",))
        if REGISTRATIONS in heading.loads:
            queue = heading.loads[REGISTRATIONS]
            yield Checkpoint("registrations", Action.LOAD, REGISTRATIONS, queue=queue, kinds=("SUB",))
    yield Checkpoint("record", mqsc, ENABLE, kinds=("QMGR", "NAMELIST"))


def _stopping(heading: PlannedHeading) -> str:
    broker = f"endmqbrk -m {heading.qmgr}" if heading.tool == Tool.STRMQBRK else f"mqsistop {heading.broker}"
    return (
        f"stop the publish/subscribe applications, wait until the old broker has processed its queues, stop it "
        f"({broker}), and back the queue manager up"
    )


def _upgrading(heading: PlannedHeading) -> str:
    return (
        "if the broker is a Message Broker, which goes on with its message flows, upgrade it to version 7, run "
        f"mqsimigratecomponents {heading.broker}, and leave it stopped; an Event Broker needs nothing"
    )
