"""Taking what a plan is made from out of live queue managers: the broker's state, and the objects that are there.

extract by metatopics    a version 6 broker answers questions about itself
extract by display       what DISPLAY shows of a queue manager of version 7 or later, which is migrated to another
a live queue manager     its objects, which the plan counts with; a version 6 broker has no topic objects
"""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO

from commands.terminal.counted import counted
from migrate.estate.jobs import BrokerJob, BrokerResult, current, measured, with_extracted
from migrate.estate.reaching import queue_manager, source_queue_manager
from migrate.estate.records import ANSWERS, BEGUN, LIVE_STATE, OBJECTS, Record
from migrate.extract import REPLY_QUEUE
from migrate.live.interrogation import Interrogation
from migrate.live.objects_script import KINDS, script_of
from migrate.live.opening import LiveQueueManager
from migrate.live.retained_copies import retained_copies
from migrate.live.snapshot import read_live
from migrate.live.state_of import state_of
from migrate.readers import state_json
from rfh2.captured import iso
from rfh2.captures import write_captures
from rfh2.errors import MigrationError

_WORK = "extract.work"


def extract_broker(job: BrokerJob) -> BrokerResult:
    """Read the queue managers; nothing if that was done, unless the job says so again. Nothing is changed there.

    Answers of a version 6 broker are kept until all are there: after an interruption only what is missing is asked.
    """
    with measured() as with_figures:
        record = current(job)
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
        made = with_figures(_with(current(with_extracted(job)), job, said))
    job.files.write_record(made)
    return BrokerResult(job.qmgr, made, acted=True, said=said)


def _wanted(job: BrokerJob) -> list[str]:
    """The files that there have to be; the source comes first."""
    extract = job.definition.extract
    source = [] if extract is None else [ANSWERS if extract.by == "metatopics" else LIVE_STATE]
    is_version_6 = extract is not None and not extract.is_elsewhere
    return [*source, OBJECTS] if job.is_live and not is_version_6 else source


def _with(record: Record, job: BrokerJob, said: tuple[str, ...]) -> Record:
    """A plan that was made keeps its own remarks."""
    return record if record.plan else record.model_copy(update={"at": iso(job.now), "said": said})


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
    answers = BytesIO()
    write_captures(asking.ask(()), answers, "jsonl")
    job.files.write_extracted(ANSWERS, answers.getvalue())
    asking.forget()
    return ()


def _displayed(job: BrokerJob, live: LiveQueueManager) -> tuple[str, ...]:
    copies = None if live.connection is None else retained_copies(live.connection)
    state = state_of(live.administrator, job.now, None, copies)
    job.files.write_extracted(LIVE_STATE, state_json.write([state]).encode("utf-8", "surrogatepass"))
    without = sum(each.body_hex is None for each in state.retained)
    said = [f"{counted(without, 'retained publication')}: only the topics are known, not the contents"] * bool(without)
    return (*said, *(f"{item.text}: {item.why}" for item in state.unread if item.warns))
