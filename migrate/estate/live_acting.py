"""Rehearsing, applying, verifying and undoing the plan of one broker on a queue manager over the network.

The plan is sent as ``qpubsub apply`` sends it: one checkpoint at a time, with the journal beside its scripts. A process
that is killed leaves each statement and each message sent or not sent, and the journal says which; the next call goes
on. The journal is that of ``qpubsub apply``, which can go on with it too.

The live queue managers of a broker of the estate: reached as estate.toml says.

Taking what a plan is made from out of live queue managers: the broker's state, and the objects that are there.

extract by metatopics    a version 6 broker answers questions about itself
extract by display       what DISPLAY shows of a queue manager of version 7 or later, which is migrated to another
a live queue manager     its objects, which the plan counts with; a version 6 broker has no topic objects

Brokers in several processes at once, the largest first; one that fails does not stop the others.

Each broker has a process of its own, forked when its turn comes. So the memory is that of as many brokers as work at
once, and a process that is killed costs one broker, which is then as before or done. A worker ends when its parent
does, however that ends: nothing goes on that nobody waits for. A system that cannot fork does one after the other.

What each verb does to one broker: on an embedded queue manager, or on one that is reached over the network.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final, NoReturn

from commands.config.settings import ConfigError, read_config
from migrate.estate import acting
from migrate.estate.acting import plan_broker, rehearsed, remember, why_not, why_too_old
from migrate.estate.jobs import BrokerJob, BrokerResult, action, current, done, reached, rehearsal, with_extracted
from migrate.estate.records import ANSWERS, BEGUN, DONE, LIVE_STATE, OBJECTS, SCRIPTS, BrokerState, Record
from migrate.extract import REPLY_QUEUE
from migrate.live.applying import Applier, advance, wanted_checkpoints, would_stop
from migrate.live.differences import compare
from migrate.live.journal import JOURNAL, Journal, checkpoints
from migrate.live.opening import LiveQueueManager, open_live
from migrate.live.snapshot import KINDS, read_live, script_of
from migrate.live.state_of import Interrogation, remarks, retained_copies, state_of
from migrate.live.undoing import Undoing
from migrate.log import changed_since
from migrate.planned_state import FILE_NAME, PlannedHeading, PlannedObject, by_kind, read_heading, read_planned
from migrate.readers import state_json
from migrate.readers.sources import files_of
from rfh2.captured import iso
from rfh2.errors import MigrationError, QPubSubError, system_words

_WORK = "extract.work"


@action
def extract_broker(job: BrokerJob, record: Record) -> BrokerResult:
    """Read the queue managers; nothing if that was done, unless the job says so again. Nothing is changed there.

    Answers of a version 6 broker are kept until all are there: after an interruption only what is missing is asked.
    """
    waiting = [name for name in _wanted(job) if job.again or not job.files.extracted(name).is_file()]
    if record.state in BEGUN or not waiting:
        return BrokerResult(job.qmgr, record)
    said: tuple[str, ...] = ()
    if waiting[0] != OBJECTS:
        with source_queue_manager(job) as live:
            said = _asked(job, live) if waiting[0] == ANSWERS else _displayed(job, live)
    if OBJECTS in waiting:
        with queue_manager(job) as live:
            lines = script_of(read_live(live.administrator, KINDS), job.qmgr)
            script = "".join(f"{line}\n" for line in lines)
        job.files.write_extracted(OBJECTS, script.encode("utf-8", "surrogatepass"))
    made = current(with_extracted(job))
    # A plan that was made keeps its own remarks.
    made = made if made.plan else made.model_copy(update={"at": iso(job.now), "said": said})
    return BrokerResult(job.qmgr, made, acted=True, said=said)


def _wanted(job: BrokerJob) -> list[str]:
    """The files that there have to be; the source comes first."""
    extract = job.definition.extract
    source = [] if extract is None else [ANSWERS if extract.by == "metatopics" else LIVE_STATE]
    is_version_6 = extract is not None and not extract.is_elsewhere
    return [*source, OBJECTS] if job.is_live and not is_version_6 else source


def _asked(job: BrokerJob, live: LiveQueueManager) -> tuple[str, ...]:
    if live.messages is None:
        raise MigrationError('extract by metatopics puts commands on queues: give it queues = "ibmmq://..."')
    work = job.files.directory / _WORK
    asking = Interrogation(
        live.messages,
        live.administrator.qmgr,
        REPLY_QUEUE,
        work,
        job.wait_s,
        lambda: datetime.now(UTC),
        lambda _what: None,
    )
    job.files.write_extracted(ANSWERS, asking.lines())
    asking.forget()
    return ()


def _displayed(job: BrokerJob, live: LiveQueueManager) -> tuple[str, ...]:
    copies = None if live.connection is None else retained_copies(live.connection)
    state = state_of(live.administrator, job.now, None, copies)
    job.files.write_extracted(LIVE_STATE, state_json.write([state]).encode("utf-8", "surrogatepass"))
    return remarks(state)


@contextmanager
def queue_manager(job: BrokerJob) -> Iterator[LiveQueueManager]:
    """The queue manager that is migrated to; its connections end with the block.

    Raises ConfigError if estate.toml does not say how it is reached.
    """
    own = job.definition
    with _opened(job, job.qmgr, job.config, own.admin, own.queues, "{} in estate.toml") as live:
        yield live


@contextmanager
def source_queue_manager(job: BrokerJob) -> Iterator[LiveQueueManager]:
    """The queue manager from which the source is extracted. Raises ConfigError."""
    extract = job.definition.extract
    if extract is None or not extract.is_elsewhere:
        with queue_manager(job) as live:
            yield live
        return
    qmgr = job.definition.from_qmgr or job.qmgr
    called = "{} of extract in estate.toml"
    with _opened(job, qmgr, job.source_config, extract.admin, extract.queues, called) as live:
        yield live


@contextmanager
def _opened(
    job: BrokerJob, qmgr: str, config: Path | None, admin: str | None, queues: str | None, called: str
) -> Iterator[LiveQueueManager]:
    settings = read_config(config)
    if not (admin or queues or settings.admin.url or settings.queues.url):
        raise ConfigError(str(config), "it has no url in [admin] or [queues]: give it one, or estate.toml has it")
    names = called.format("admin"), called.format("queues")
    with closing(open_live(job.home, qmgr, settings, admin, queues, names)) as live:
        yield live


@rehearsal
def rehearse_broker(job: BrokerJob, record: Record) -> Record | BrokerResult:
    """Look where the live queue manager would refuse the plan; carry it out on an embedded copy, and take it back."""
    if record.state in DONE:
        return BrokerResult(job.qmgr, record)
    if record.state not in BEGUN and (refused := why_not(job, record)):
        return BrokerResult(job.qmgr, record, refused=refused)
    heading, planned = read_planned(_scripts(job, record) / FILE_NAME)
    with queue_manager(job) as live:
        said = tuple(would_stop(_applier(job, record, live, heading, planned), None))
    if record.state in BEGUN:
        return BrokerResult(job.qmgr, record, acted=True, said=said)
    return rehearsed(job, record, said)


@action
def apply_broker(job: BrokerJob, record: Record) -> Record | BrokerResult:
    """Carry out the next checkpoint of the plan, or those that the job names."""
    if record.state in DONE:
        remember(job, record)
        return BrokerResult(job.qmgr, record)
    if job.initial:
        why = "--initial is for embedded queue managers; here the checkpoints before security are the initial phase"
        return BrokerResult(job.qmgr, record, refused=why)
    # What has begun goes on with the plan that it began with.
    if record.state not in BEGUN and (refused := why_not(job, record) or why_too_old(job, record)):
        return BrokerResult(job.qmgr, record, refused=refused)
    with _begun(job, record) as (applier, journal):
        wanted = wanted_checkpoints(applier.remaining(journal), every=job.every, until=job.until)
        found = advance(applier, journal, wanted)
    after = reached(record, _scripts(job, record))
    stopped = () if found.stopped is None else (str(found.stopped),)
    if not found.has_changed and after.state == record.state:
        return BrokerResult(job.qmgr, record, refused="".join(stopped))
    return after.model_copy(update={"at": iso(job.now), "said": stopped})


@action
def verify_broker(job: BrokerJob, record: Record) -> Record | BrokerResult:
    """Compare the queue manager with what was planned; every difference has a line."""
    if record.state not in DONE:
        follows = f", and checkpoint {record.checkpoint} follows" if record.checkpoint else ""
        return BrokerResult(job.qmgr, record, refused=f"it is {record.state}{follows}: there is nothing to compare")
    heading, planned = read_planned(_scripts(job, record) / FILE_NAME)
    with queue_manager(job) as live:
        state = read_live(live.administrator, ("QMGR", *by_kind(planned)))
    said = tuple(map(str, compare(heading, planned, state, job.now).differences))
    return done(job, record, BrokerState.APPLIED if said else BrokerState.VERIFIED, said)


@action
def undo_broker(job: BrokerJob, record: Record) -> Record | BrokerResult:
    """Take back what the journal has, the last first; nothing if nothing was applied."""
    scripts = _scripts(job, record)
    if not record.plan or not (scripts / JOURNAL).exists():
        if job.files.record() is not None:
            remember(job, record)
        return BrokerResult(job.qmgr, record)
    heading, planned = read_planned(scripts / FILE_NAME)
    with queue_manager(job) as live:
        undoing = Undoing(live.administrator, heading, planned, live.retained_data, job.force)
        with closing(Journal.open(scripts / JOURNAL, heading, live.administrator.where)) as journal:
            undoing.carry_out(journal)
            journal.set_aside()
    left = (*undoing.left, *(changed_since(each, force=job.force) for each in undoing.others))
    return done(job, record, BrokerState.UNDONE, left)


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


Action = Callable[[BrokerJob], BrokerResult]


class WorkerFaultError(Exception):
    """A fault of this program in a worker; its text is the traceback."""


def default_processes() -> int:
    """As many as this process may use processors."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


def results(action: Action, jobs: Sequence[BrokerJob], processes: int) -> Iterator[BrokerResult]:
    """The result of *action* for each job, as they are done; at most *processes* at once.

    A broker whose action fails, or whose process is killed, is refused with the reason. Raises WorkerFaultError.
    """
    ordered = sorted(jobs, key=_size, reverse=True)
    if not hasattr(os, "fork"):
        yield from (_guarded(action, job) for job in ordered)
        return
    forking, waiting = multiprocessing.get_context("fork"), iter(ordered)
    working: dict[Connection, tuple[BrokerJob, BaseProcess]] = {}
    try:
        while True:
            while len(working) < processes and (job := next(waiting, None)) is not None:
                receiving, sending = multiprocessing.Pipe(duplex=False)
                process: BaseProcess = forking.Process(target=_work, args=(action, job, sending))
                process.start()
                sending.close()
                working[receiving] = job, process
            if not working:
                return
            for pipe in wait(working):
                assert isinstance(pipe, Connection)
                yield _ended(pipe, *working.pop(pipe))
    finally:
        for _, process in working.values():
            process.kill()
            process.join()


def _work(action: Action, job: BrokerJob, sending: Connection) -> NoReturn:
    """In the worker: Ctrl-C is the parent's, which then ends this process by its own end."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_end_with_parent, daemon=True).start()
        try:
            answer: BrokerResult | str = _guarded(action, job)
        except Exception:
            answer = traceback.format_exc()
        sending.send(answer)
        status = 0
    finally:
        # Without the clean-up of the parent, whose files and buffers this process has too.
        os._exit(status)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _ended(pipe: Connection, job: BrokerJob, process: BaseProcess) -> BrokerResult:
    with pipe:
        try:
            answer = pipe.recv()
        except EOFError:
            answer = None
    process.join()
    if isinstance(answer, str):
        raise WorkerFaultError(f"broker of {job.qmgr}:\n{answer}")
    if isinstance(answer, BrokerResult):
        return answer
    code = process.exitcode or 0
    how = f"its process was killed (signal {-code})" if code < 0 else "its process ended"
    why = f"{how}; is there enough memory? --jobs 1 needs least. Run the same command again"
    return BrokerResult(job.qmgr, None, refused=why)


def _guarded(action: Action, job: BrokerJob) -> BrokerResult:
    try:
        return action(job)
    except QPubSubError as error:
        return BrokerResult(job.qmgr, None, refused="; ".join([str(error), *getattr(error, "__notes__", ())]))
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return BrokerResult(job.qmgr, None, refused=f"{where}{system_words(error)}")


def _size(job: BrokerJob) -> int:
    """Of its sources, in bytes; -1 where they cannot be looked at, which its action says."""
    try:
        return sum(file.stat().st_size for source in job.sources for file in files_of(source))
    except (MigrationError, OSError):
        return -1


def _either(embedded: Action, live: Action) -> Action:
    def act(job: BrokerJob) -> BrokerResult:
        return live(job) if job.is_live else embedded(job)

    return act


ACTIONS: Final[Mapping[str, Action]] = {
    "extract": extract_broker,
    "plan": plan_broker,
    "rehearse": _either(acting.rehearse_broker, rehearse_broker),
    "apply": _either(acting.apply_broker, apply_broker),
    "verify": _either(acting.verify_broker, verify_broker),
    "undo": _either(acting.undo_broker, undo_broker),
}
