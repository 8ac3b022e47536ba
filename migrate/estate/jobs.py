"""One broker of an estate: what a process must know to act on it, its plan, and its queue manager.

Sources, options and the estate's file together are the *inputs* of a plan. Their digest tells whether it still holds.
A plan for a live queue manager is made from what ``estate extract`` has read there: planning connects to nothing.

How far a live queue manager is with its plan, by the journal of what it has confirmed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial, wraps
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from commands.broker.objects import QueueManager
from commands.config.home import Home, PostgresqlHome
from commands.disk.files import make_directory, put_in_place
from commands.network.estate_file import Estate, EstateQueueManager
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.opening import directory_of, is_there
from commands.qmgr.store.reading import definitions_in
from migrate import embedded, migmbbrk, strmqbrk
from migrate.contents import disk
from migrate.estate import records
from migrate.legacy_state import LegacyState
from migrate.live.journal import JOURNAL, checkpoints, entries_in, still_there
from migrate.plan import Marker, MigrationPlan, Outcome, Phase, PlanOptions, Tool, name_of, read_marker
from migrate.planned_state import FILE_NAME, read_heading
from migrate.readers import state_json
from migrate.readers.sources import files_of
from migrate.target import Target, existing_target
from rfh2.captured import iso
from rfh2.distribution import VERSION
from rfh2.errors import MigrationError, StoreError, system_words


def reached(record: records.Record, scripts: Path) -> records.Record:
    """*record* as the journal in *scripts* has it. Raises MigrationError if the journal or the plan is damaged.

    A process that was killed before the record was replaced leaves the two different.
    """
    if not record.plan:
        return record
    entries = entries_in(scripts / JOURNAL)
    if entries is None:
        # An undo that is complete gives the journal another name.
        was_undone = record.state in records.BEGUN and any(scripts.glob(f"{JOURNAL}.undone*"))
        return _changed(record, records.BrokerState.UNDONE) if was_undone else record
    there = list(still_there(entries))
    if not there:
        return _changed(record, records.BrokerState.UNDONE) if entries else record
    done = {entry.checkpoint for entry in there if entry.did == "done"}
    left = [each.name for each in checkpoints(read_heading(scripts / FILE_NAME)) if each.name not in done]
    if left:
        return _changed(record, records.BrokerState.APPLYING, left[0])
    return record if record.state in records.DONE else _changed(record, records.BrokerState.APPLIED)


def _changed(record: records.Record, state: records.BrokerState, checkpoint: str = "") -> records.Record:
    if (record.state, record.checkpoint) == (state, checkpoint):
        return record
    return record.model_copy(update={"state": state, "checkpoint": checkpoint, "said": ()})


try:
    import resource
except ImportError:  # Windows has no queue managers either.
    _HAS_USAGE = False
else:
    _HAS_USAGE = True

_HASHED_BYTES: Final = 1 << 20
_NOT_PLANNED: Final = {"wave", "admin", "queues", "config", "extract"}


@dataclass(frozen=True, slots=True)
class BrokerJob:
    """What a process must know to act on one broker."""

    definition: EstateQueueManager
    estate: Path  # the directory of estate.toml
    home: Home  # of the queue managers
    sources: tuple[str, ...]  # paths
    setup: str
    prefixes: dict[str, str]
    separator: str
    now: datetime  # UTC
    again: bool = False  # plan although nothing has changed
    create: bool = False  # make the queue manager if it does not exist
    scripts: bool = False  # write the files for IBM MQ too
    initial: bool = False  # the initial phase of an Event Broker or Message Broker
    config: Path | None = None  # the file with the users of the live queue manager that is migrated to
    source_config: Path | None = None  # of the one that is extracted from
    every: bool = False  # --all of ``qpubsub apply``; the next three are its --through, --confirm and --wait
    until: str | None = None
    confirmed: frozenset[str] = frozenset()
    wait_s: float = 60.0
    within_hours: float = 0  # apply: how old the sources may be; 0 for no bound
    force: bool = False  # with undo: take back also what others have changed since

    @property
    def qmgr(self) -> str:
        """The queue manager's name."""
        return self.definition.name

    @property
    def tool(self) -> Tool:
        """Which migration."""
        return Tool.MIGMBBRK if self.definition.broker else Tool.STRMQBRK

    @property
    def files(self) -> records.BrokerFiles:
        """Where its record and plans are."""
        return records.BrokerFiles(self.estate, self.qmgr)

    @property
    def is_live(self) -> bool:
        """Whether the queue manager is reached over the network."""
        return self.definition.is_live

    @property
    def exists(self) -> bool:
        """Whether the queue manager is an embedded one, in the home."""
        return not self.is_live and is_there(self.home, self.qmgr)


@dataclass(frozen=True, slots=True)
class BrokerResult:
    """What an action did. acted: whether anything was done. refused: why nothing was. said: differences, remarks."""

    qmgr: str
    record: records.Record | None
    acted: bool = False
    refused: str = ""
    said: tuple[str, ...] = ()

    @property
    def needs_a_person(self) -> bool:
        """Whether items were lost or have another meaning, or there are remarks."""
        return bool(self.said) or (
            self.record is not None and self.record.outcome in (Outcome.LOST, Outcome.CHANGED, Outcome.REFUSED)
        )


def job_of(estate: Estate, definition: EstateQueueManager, home: Home, now: datetime, **options: Any) -> BrokerJob:
    """The job for one queue manager of *estate*; options: further fields.

    Raises TableFileError if its setup cannot be read.
    """
    return with_extracted(
        BrokerJob(
            definition,
            estate.directory,
            home,
            estate.sources_of(definition),
            estate.setup_of(definition),
            estate.migration.prefixes,
            estate.migration.name_separator,
            now,
            within_hours=0 if options.pop("accept_old", False) else estate.migration.sources_within_hours,
            config=estate.config_of(definition),
            source_config=estate.source_config_of(definition),
            **options,
        )
    )


def with_extracted(job: BrokerJob) -> BrokerJob:
    """*job* with what was extracted: more sources, and the objects that a live queue manager has."""
    if not job.is_live and job.definition.extract is None:
        return job
    found = (job.files.extracted(name) for name in (records.ANSWERS, records.LIVE_STATE))
    sources = (*job.sources, *(str(path) for path in found if path.is_file() and str(path) not in job.sources))
    if not job.is_live:
        return replace(job, sources=sources)
    try:
        setup = job.files.extracted(records.OBJECTS).read_text(encoding="utf-8", errors="surrogatepass")
    except OSError:
        setup = job.setup
    return replace(job, sources=sources, setup=setup)


def current(job: BrokerJob) -> records.Record:
    """The record, corrected by what the queue manager itself records; one of a new broker if there is none.

    Of a live queue manager the journal says what it has confirmed: nothing is connected to.
    """
    record = job.files.record()
    if record is None or not record.plan:
        state = records.BrokerState.EXTRACTED if _has_sources(job) else records.BrokerState.MISSING
        known = records.Record(qmgr=job.qmgr, state=state, at="", tool=job.tool) if record is None else record
        record = known.model_copy(update={"state": state})
    if job.is_live:
        return reached(record, job.files.plan(record.plan) / records.SCRIPTS)
    if not job.exists:
        return records.settled(record, None)
    with QueueManagerStore.open(job.home, job.qmgr) as store:
        return records.settled(record, recorded(store, job.tool))


def _has_sources(job: BrokerJob) -> bool:
    try:
        return bool(job.sources) and all(files_of(source) for source in job.sources)
    except MigrationError:
        return False


def inputs_of(job: BrokerJob, sources: str, streams: Collection[str]) -> str:
    """A digest of all that a plan is made from: sources, what estate.toml says of them, and this program's version.

    sources: of ``digest_of_sources``. streams: of the broker; topic strings of other streams do not matter to it.
    """
    prefixes = sorted((stream, prefix) for stream, prefix in job.prefixes.items() if stream in streams)
    told = (VERSION, sources, job.definition.model_dump_json(exclude=_NOT_PLANNED), job.setup, prefixes, job.separator)
    return sha256(repr(told).encode()).hexdigest()[:40]


def digest_of_sources(job: BrokerJob) -> str:
    """Of the names and contents of all files. Raises MigrationError if one cannot be read."""
    whole = sha256()
    for source in job.sources:
        for file in files_of(source):
            whole.update(f"{file.relative_to(job.estate) if file.is_relative_to(job.estate) else file}\0".encode())
            with disk(file), file.open("rb") as stream:
                while data := stream.read(_HASHED_BYTES):
                    whole.update(data)
    return whole.hexdigest()


def target_of(job: BrokerJob) -> Target:
    """The queue manager as it is; if there is none, as ``create`` makes it."""
    if not job.exists:
        return _new_target(job)
    with QueueManagerStore.open(job.home, job.qmgr) as store:
        return embedded.load(store)


def kept_state(job: BrokerJob, record: records.Record) -> LegacyState:
    """The state that the plan of *record* was made from. Raises MigrationError if it is not there any more."""
    path = job.files.plan(record.plan) / records.STATE
    with disk(path, "; plan the broker again"):
        states, problems = state_json.read(path.read_text(encoding="utf-8", errors="surrogatepass"), str(path))
    if problems or len(states) != 1:
        raise MigrationError(f"{path}: it is damaged; plan the broker again")
    return states[0]


def plan_of(job: BrokerJob, state: LegacyState, target: Target, phase: Phase) -> MigrationPlan:
    """The plan of the broker's own tool. Raises MigrationError where a run is refused."""
    named = {stream.name for stream in state.streams}
    own = job.definition
    options = PlanOptions(
        separator=job.separator,
        prefixes={stream: prefix for stream, prefix in job.prefixes.items() if stream in named},
        shown=("estate",),
        accept_unread=own.accept_unread,
        from_qmgr=own.from_qmgr,
        accept_changed=own.accept_changed,
    )
    if job.tool is Tool.STRMQBRK:
        return strmqbrk.plan(state, target, options, job.now, rehearse=phase is Phase.REHEARSE)
    return migmbbrk.plan(state, target, options, job.now, phase)


def _fill(home: Home, job: BrokerJob, target: Target) -> None:
    made = QueueManagerStore.create(home, QueueManager(job.qmgr, psmode="COMPAT"))
    with made as store, store.unit_of_work() as unit:
        for definition in definitions_in(target.objects):
            unit.save_definition(definition)
        unit.save_effects(target.effects)


def create(job: BrokerJob, home: Home) -> None:
    """Make the queue manager with its setup, whole or not at all: it gets its name when it is complete."""
    target = _new_target(job)
    if isinstance(home, PostgresqlHome):
        _fill(home, job, target)
        return
    try:
        make_directory(home)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=home) as place:
            _fill(Path(place), job, target)
            put_in_place(directory_of(Path(place), job.qmgr), directory_of(home, job.qmgr))
    except OSError as error:
        raise StoreError(f"{directory_of(home, job.qmgr)}: {system_words(error)}") from error


def recorded(store: QueueManagerStore, tool: Tool) -> Marker | None:
    """What the queue manager records of its migration; nothing else is read."""
    return read_marker(store.find_namelist(name_of(tool)), tool)


def action(
    work: Callable[[BrokerJob, records.Record], records.Record | BrokerResult], *, is_rehearsal: bool = False
) -> Callable[[BrokerJob], BrokerResult]:
    """What is done to one broker, with how long it took, and the memory of this process, in its record.

    work: gets the record, and gives that of what was done, or a result. The record is written if something was done.
    """

    @wraps(work)
    def act(job: BrokerJob) -> BrokerResult:
        began = time.monotonic()
        before = current(job)
        found = work(job, before)
        if isinstance(found, records.Record):
            found = BrokerResult(job.qmgr, found, acted=True, said=found.said)
        if not found.acted or found.record is None or found.record is before:
            return found
        # In KiB on Linux, in bytes on macOS; there a record shows a thousand times as much.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024 if _HAS_USAGE else 0
        figures = {"seconds": round(time.monotonic() - began, 3), "peak_mib": peak}
        figures |= {"rehearsed_seconds": figures["seconds"]} if is_rehearsal else {}
        made = found.record.model_copy(update=figures)
        job.files.write_record(made)
        job.files.shorten_earlier(made.plan)
        return replace(found, record=made)

    return act


rehearsal = partial(action, is_rehearsal=True)


def done(
    job: BrokerJob, record: records.Record, state: records.BrokerState, said: tuple[str, ...] = ()
) -> records.Record:
    """*record* of a broker that has reached *state* now. said: remarks."""
    return record.model_copy(update={"state": state, "at": iso(job.now), "said": said, "checkpoint": ""})


def _new_target(job: BrokerJob) -> Target:
    if not job.setup:
        return Target.fresh(job.qmgr)
    try:
        return existing_target(job.qmgr, job.setup, job.now)
    except MigrationError as error:
        where = job.files.extracted(records.OBJECTS) if job.is_live else job.definition.setup
        raise MigrationError(f"setup {where}: {error}".replace("--existing, ", "")) from error
