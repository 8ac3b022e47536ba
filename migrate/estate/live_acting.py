"""Rehearsing, applying, verifying and undoing the plan of one broker on a queue manager over the network.

The plan is sent as ``qpubsub apply`` sends it: one checkpoint at a time, with the journal beside its scripts. A process
that is killed leaves each statement and each message sent or not sent, and the journal says which; the next call goes
on. The journal is that of ``qpubsub apply``, which can go on with it too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from commands.disk.permissions import make_directory
from migrate.estate.acting import remember, tried, why_not
from migrate.estate.jobs import BrokerJob, BrokerResult, acted_on, current, measured
from migrate.estate.progress import reached
from migrate.estate.reaching import queue_manager
from migrate.estate.records import BEGUN, DONE, SCRIPTS, BrokerState, Record
from migrate.live.advancing import advance, wanted_checkpoints, would_stop
from migrate.live.applying import Applier
from migrate.live.checkpoints import checkpoints
from migrate.live.differences import compare
from migrate.live.journal import JOURNAL, Journal
from migrate.live.opening import LiveQueueManager
from migrate.live.snapshot import read_live
from migrate.live.undoing import Undoing
from migrate.log import taken_back
from migrate.planned_state import FILE_NAME, PlannedHeading, PlannedObject, by_kind, read_heading, read_planned
from rfh2.captured import iso


def rehearse_broker(job: BrokerJob) -> BrokerResult:
    """Look where the live queue manager would refuse the plan; carry it out on an embedded copy, and take it back."""
    with measured() as with_figures:
        record = current(job)
        if record.state in DONE:
            return BrokerResult(job.qmgr, record)
        if record.state not in BEGUN and (refused := why_not(job, record)):
            return BrokerResult(job.qmgr, record, refused=refused)
        heading, planned = read_planned(_scripts(job, record) / FILE_NAME)
        with queue_manager(job) as live:
            said = tuple(would_stop(_applier(job, record, live, heading, planned), None))
        if record.state in BEGUN:
            return BrokerResult(job.qmgr, record, acted=True, said=said)
        make_directory(job.files.directory)
        with tempfile.TemporaryDirectory(prefix=".rehearsal-", dir=job.files.directory) as place:
            said += tuple(tried(job, record, Path(place)))
        state = BrokerState.PLANNED if said else BrokerState.REHEARSED
        made = with_figures(record.model_copy(update={"state": state, "at": iso(job.now), "said": said}))
    return acted_on(job, made)


def apply_broker(job: BrokerJob) -> BrokerResult:
    """Carry out the next checkpoint of the plan, or those that the job names."""
    with measured() as with_figures:
        record = current(job)
        if record.state in DONE:
            remember(job, record)
            return BrokerResult(job.qmgr, record)
        if job.initial:
            why = "--initial is for embedded queue managers; here the checkpoints before security are the initial phase"
            return BrokerResult(job.qmgr, record, refused=why)
        # What has begun goes on with the plan that it began with.
        if record.state not in BEGUN and (refused := why_not(job, record)):
            return BrokerResult(job.qmgr, record, refused=refused)
        with _begun(job, record) as (applier, journal):
            remaining = applier.remaining(journal)
            wanted = wanted_checkpoints(remaining, every=job.every, until=job.until)
            found = advance(applier, journal, wanted)
        after = reached(record, _scripts(job, record))
        stopped = () if found.stopped is None else (str(found.stopped),)
        if not found.has_changed and after.state == record.state:
            return BrokerResult(job.qmgr, record, refused="".join(stopped))
        made = with_figures(after.model_copy(update={"at": iso(job.now), "said": stopped}))
    return acted_on(job, made)


def verify_broker(job: BrokerJob) -> BrokerResult:
    """Compare the queue manager with what was planned; every difference has a line."""
    with measured() as with_figures:
        record = current(job)
        if record.state not in DONE:
            follows = f", and checkpoint {record.checkpoint} follows" if record.checkpoint else ""
            return BrokerResult(job.qmgr, record, refused=f"it is {record.state}{follows}: there is nothing to compare")
        heading, planned = read_planned(_scripts(job, record) / FILE_NAME)
        with queue_manager(job) as live:
            state = read_live(live.administrator, ("QMGR", *by_kind(planned)))
        said = tuple(map(str, compare(heading, planned, state, job.now).differences))
        reached_state = BrokerState.APPLIED if said else BrokerState.VERIFIED
        made = with_figures(record.model_copy(update={"state": reached_state, "at": iso(job.now), "said": said}))
    return acted_on(job, made)


def undo_broker(job: BrokerJob) -> BrokerResult:
    """Take back what the journal has, the last first; nothing if nothing was applied."""
    with measured() as with_figures:
        record = current(job)
        scripts = _scripts(job, record)
        if not record.plan or not (scripts / JOURNAL).exists():
            if job.files.record() is not None:
                remember(job, record)
            return BrokerResult(job.qmgr, record)
        heading, planned = read_planned(scripts / FILE_NAME)
        with queue_manager(job) as live:
            undoing = Undoing(live.administrator, heading, planned)
            with closing(Journal.open(scripts / JOURNAL, heading, live.administrator.where)) as journal:
                undoing.carry_out(journal)
                journal.set_aside()
        left = (*undoing.left, *map(taken_back, undoing.others))
        update = {"state": BrokerState.UNDONE, "at": iso(job.now), "said": left, "checkpoint": ""}
        made = with_figures(record.model_copy(update=update))
    return acted_on(job, made)


def checkpoints_of(job: BrokerJob, record: Record) -> list[str]:
    """The names of all checkpoints of its plan."""
    return [each.name for each in checkpoints(read_heading(_scripts(job, record) / FILE_NAME))]


@contextmanager
def _begun(job: BrokerJob, record: Record) -> Iterator[tuple[Applier, Journal]]:
    scripts = _scripts(job, record)
    heading, planned = read_planned(scripts / FILE_NAME)
    with queue_manager(job) as live:
        applier = _applier(job, record, live, heading, planned)
        with closing(Journal.open(scripts / JOURNAL, heading, live.administrator.where)) as journal:
            yield applier, journal


def _applier(
    job: BrokerJob, record: Record, live: LiveQueueManager, heading: PlannedHeading, planned: list[PlannedObject]
) -> Applier:
    directory = _scripts(job, record)
    return Applier(live.administrator, live.messages, directory, heading, planned, job.wait_s, job.confirmed)


def _scripts(job: BrokerJob, record: Record) -> Path:
    return job.files.plan(record.plan) / SCRIPTS
