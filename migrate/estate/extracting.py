"""Taking what a plan is made from out of a live queue manager: the broker's state, and the objects that are there.

extract = "metatopics"   a version 6 broker answers questions about itself; it has no topic objects of its own
extract = "state"        what DISPLAY shows of a queue manager of version 7 or later, and its objects
without                  its objects alone; estate.toml names the sources of the state
"""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO

from migrate.estate.jobs import BrokerJob, BrokerResult, current, measured, with_extracted
from migrate.estate.reaching import queue_manager
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
    """Read the queue manager; nothing if that was done, unless the job says so again. Nothing is changed there.

    Answers of a version 6 broker are kept until all are there: after an interruption only what is missing is asked.
    """
    with measured() as with_figures:
        record = current(job)
        if not job.is_live or record.state in BEGUN or (_is_done(job) and not job.again):
            return BrokerResult(job.qmgr, record)
        with queue_manager(job) as live:
            said = _asked(job, live) if job.definition.extract == "metatopics" else _displayed(job, live)
        found = current(with_extracted(job))
        made = with_figures(_with(found, job, said))
    job.files.write_record(made)
    return BrokerResult(job.qmgr, made, acted=True, said=said)


def _with(record: Record, job: BrokerJob, said: tuple[str, ...]) -> Record:
    """A plan that was made keeps its own remarks."""
    return record if record.plan else record.model_copy(update={"at": iso(job.now), "said": said})


def _is_done(job: BrokerJob) -> bool:
    wanted = {"metatopics": [ANSWERS], "state": [LIVE_STATE, OBJECTS], None: [OBJECTS]}[job.definition.extract]
    return all(job.files.extracted(name).is_file() for name in wanted)


def _asked(job: BrokerJob, live: LiveQueueManager) -> tuple[str, ...]:
    if live.messages is None:
        raise MigrationError('extract = "metatopics" puts commands on queues: give it queues = "ibmmq://..."')
    work = job.files.directory / _WORK
    asking = Interrogation(
        live.messages, job.qmgr, REPLY_QUEUE, work, job.wait_s, lambda: datetime.now(UTC), lambda _what: None
    )
    answers = BytesIO()
    write_captures(asking.ask(()), answers, "jsonl")
    job.files.write_extracted(ANSWERS, answers.getvalue())
    asking.forget()
    return ()


def _displayed(job: BrokerJob, live: LiveQueueManager) -> tuple[str, ...]:
    said: tuple[str, ...] = ()
    if job.definition.extract == "state":
        copies = None if live.connection is None else retained_copies(live.connection)
        state = state_of(live.administrator, job.now, None, copies)
        said = tuple(f"{item.text}: {item.why}" for item in state.unread if item.warns)
        job.files.write_extracted(LIVE_STATE, state_json.write([state]).encode("utf-8", "surrogatepass"))
    script = script_of(read_live(live.administrator, KINDS), job.qmgr)
    job.files.write_extracted(OBJECTS, "".join(f"{line}\n" for line in script).encode("utf-8", "surrogatepass"))
    return said
