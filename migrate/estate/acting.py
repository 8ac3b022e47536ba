"""Rehearsing, applying, verifying and undoing the plan of one broker on an embedded queue manager.

Each function replaces the broker's record at the end. A process that is killed leaves the queue manager before the
action or after it, and the record as it was: the next call finds out which.

Planning one broker: its sources are read, its plan is made and kept, and nothing else is changed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from commands.disk.files import make_directory
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.opening import copy_of
from migrate import embedded
from migrate.acl import FILE_NAME as SECURITY_COMMANDS
from migrate.assemble import of_product
from migrate.contents import Content, encoded_lines, packed
from migrate.estate import jobs, records
from migrate.estate.records import BEGUN, DONE, FATES, SCRIPTS, STATE, TOPICS, BrokerState, Record, Survey
from migrate.ledger import Sums
from migrate.legacy_state import LegacyState, Product
from migrate.live.differences import compare
from migrate.live.opening import EmbeddedAdministrator
from migrate.live.snapshot import read_live
from migrate.log import applying, changed_since, closing, reading
from migrate.plan import MigrationPlan, Outcome, Phase, Tool, marker_of, outcome_of
from migrate.plan_files import plan_files
from migrate.planned_state import FILE_NAME, FILE_NAME as PLANNED, by_kind, planned_lines, read_planned
from migrate.readers import state_json
from migrate.readers.sources import files_of, read_sources
from migrate.report.facts import facts
from migrate.report.outputs import encoded, json_lines, report_contents
from migrate.target import Target, copied, same_state
from rfh2.captured import iso
from rfh2.errors import MigrationError


@jobs.action
def plan_broker(job: jobs.BrokerJob, record: Record) -> Record | jobs.BrokerResult:
    """Read the sources and plan; nothing is done if neither they nor the options have changed, or it was applied."""
    if record.state in BEGUN:
        return jobs.BrokerResult(job.qmgr, record)
    if not job.sources:
        why = "it has no source in estate.toml: give it source = [...], or leave it out with --only"
        if job.definition.extract is not None:
            why = "nothing was taken from it yet: run estate extract first"
        return jobs.BrokerResult(job.qmgr, record, refused=why)
    sources = jobs.digest_of_sources(job)
    inputs = jobs.inputs_of(job, sources, record.survey.named)
    is_known = record.plan and record.inputs == inputs and record.state is not BrokerState.UNDONE
    if is_known and not job.again and job.files.plan(record.plan).is_dir():
        return jobs.BrokerResult(job.qmgr, record)
    return _planned(job, record, sources)


def _planned(job: jobs.BrokerJob, record: Record, sources: str) -> Record:
    """Make the plan and write its files; the record that names it. sources: their digest."""
    target = jobs.target_of(job)
    marker = marker_of(target.objects, job.tool)
    if marker is not None and marker.phase is Phase.COMPLETE:
        raise MigrationError(f"it was migrated at {marker.at}, and not with this plan: it needs no plan any more")
    state = _read(job)
    plan = jobs.plan_of(job, state, target, Phase.REHEARSE)
    rows = list(records.rows_of(plan))
    survey = _survey(plan, target)
    number = max((record.plan, *job.files.plans())) + 1
    made = Record(
        qmgr=job.qmgr,
        state=BrokerState.PLANNED,
        at=iso(job.now) or "",
        tool=job.tool,
        planned_at=iso(job.now) or "",
        plan=number,
        inputs=jobs.inputs_of(job, sources, survey.named),
        fingerprint=plan.fingerprint,
        decided=records.decided(rows),
        outcome=outcome_of(plan),
        until=iso(state.until or _newest(job)) or "",
        sums=Sums.of((row.result for row in rows), sum(1 for _ in state.items())),
        survey=survey,
        said=tuple(reason.text for reason in plan.warnings if reason.is_refusal),
    )
    contents: dict[str, Content] = {
        STATE: state_json.write([state]).encode("utf-8", "surrogatepass"),
        FATES: records.packed(rows),
        PLANNED: lambda: encoded_lines(f"{line}\n" for line in planned_lines(plan, target, {})),
        # To compare with the topic strings of other brokers' streams.
        TOPICS: packed(sorted(set(state.default_topics()))),
        **report_contents(facts(plan, target)),
    }
    if plan.security:
        contents[SECURITY_COMMANDS] = "".join(f"{line}\n" for line in plan.security).encode()
    if job.scripts or job.is_live:
        contents |= {f"{SCRIPTS}/{name}": data for name, data in encoded(plan_files(plan, target), {}).items()}
    job.files.write_plan(number, contents)
    return made


def _newest(job: jobs.BrokerJob) -> datetime:
    """When the last of the sources was written: what is known of sources that have no times."""
    return max(datetime.fromtimestamp(file.stat().st_mtime, UTC) for each in job.sources for file in files_of(each))


def _read(job: jobs.BrokerJob) -> LegacyState:
    whose = job.definition.from_qmgr or job.qmgr
    if not job.definition.broker:
        return read_sources(job.sources, whose)
    return of_product(read_sources(job.sources, whose, Product.WMB), job.definition.broker, Product.WMB)


def _survey(plan: MigrationPlan, target: Target) -> Survey:
    """What the other brokers of the estate must know."""
    objects = copied(target.objects)
    for step in plan.definitions:
        if step.anew:
            objects.delete("topic", step.definition.name)
        objects.put(step.definition)
    state = plan.state
    named = {stream.name for stream in state.streams}
    levels = {topic.split("/", 1)[0] for topic in state.default_topics()}
    return Survey(
        named=tuple(sorted(named)),
        streams={name: found.topic_string for name in sorted(named) if (found := objects.topics.get(name)) is not None},
        objects={each.name: each.topic_string for each in objects.topics if not each.name.startswith("SYSTEM.")},
        points=tuple(sorted({point.name for point in state.sub_points})),
        parents=tuple(each.qmgr for each in state.relations if each.role == "parent"),
        children=tuple(each.qmgr for each in state.relations if each.role == "child"),
        levels=tuple(sorted(levels)),
    )


LOG_NAME: Final = "psmigr.log"


@jobs.rehearsal
def rehearse_broker(job: jobs.BrokerJob, record: Record) -> Record | jobs.BrokerResult:
    """Carry the plan out on a copy of the queue manager, compare, take it back, compare again; discard the copy."""
    if record.state in DONE:
        return jobs.BrokerResult(job.qmgr, record)
    if refused := why_not(job, record):
        return jobs.BrokerResult(job.qmgr, record, refused=refused)
    return rehearsed(job, record)


@jobs.action
def apply_broker(job: jobs.BrokerJob, record: Record) -> Record | jobs.BrokerResult:
    """Carry the plan out on the queue manager, in one transaction; nothing if it has been done."""
    if record.state in DONE:
        remember(job, record)
        return jobs.BrokerResult(job.qmgr, record)
    refused = why_not(job, record) or why_too_old(job, record)
    if not refused and not job.exists and job.create:
        jobs.create(job, job.home)
    if not refused and not job.exists:
        refused = f"there is no queue manager {job.qmgr} in {job.home}: qpubsub create makes it, or --create"
    if refused := refused or _carried_out(job, record):
        return jobs.BrokerResult(job.qmgr, record, refused=refused)
    if job.initial:
        # The topic objects are there now: what was planned without them is planned again.
        return replace(plan_broker(replace(job, again=True)), acted=True)
    return jobs.done(job, record, BrokerState.APPLIED)


@jobs.action
def verify_broker(job: jobs.BrokerJob, record: Record) -> Record | jobs.BrokerResult:
    """Compare the queue manager with what was planned; every difference has a line."""
    if record.state not in DONE:
        return jobs.BrokerResult(job.qmgr, record, refused=f"it is {record.state}: there is nothing to compare")
    with QueueManagerStore.open(job.home, job.qmgr) as store:
        said = tuple(_differences(job, record, store))
    return jobs.done(job, record, BrokerState.APPLIED if said else BrokerState.VERIFIED, said)


@jobs.action
def undo_broker(job: jobs.BrokerJob, record: Record) -> Record | jobs.BrokerResult:
    """Restore what the migration changed, every phase of it; nothing if there was none."""
    left: list[str] = []
    if not job.exists or job.files.record() is None:
        return jobs.BrokerResult(job.qmgr, record)
    with QueueManagerStore.open(job.home, job.qmgr) as store:
        marker = jobs.recorded(store, job.tool)
        if marker is None:
            remember(job, record)
            return jobs.BrokerResult(job.qmgr, record)
        if record.fingerprint != marker.fingerprint:
            why = "it was migrated from another state than was planned here: undo it with its own verb"
            return jobs.BrokerResult(job.qmgr, record, refused=why)
        while jobs.recorded(store, job.tool) is not None:
            undone = embedded.undo(store, job.tool, force=job.force)
            left += (*undone.left, *(changed_since(each, force=job.force) for each in undone.others))
    return jobs.done(job, record, BrokerState.UNDONE, tuple(left))


def _carried_out(job: jobs.BrokerJob, record: Record) -> str:
    """Apply the plan of *record*, or its initial phase; why it was refused, "" if it is done."""
    with QueueManagerStore.open(job.home, job.qmgr) as store:
        target = embedded.load(store)
        if not job.initial and (refused := _why_not_complete(job, target)):
            return refused
        phase = Phase.INITIAL if job.initial else Phase.COMPLETE
        plan = jobs.plan_of(job, jobs.kept_state(job, record), target, phase)
        if not job.initial and (refused := _why_another(job, record, plan)):
            return refused
        # The report in its other forms is beside the plan.
        found = facts(plan, target)
        embedded.apply(
            store, plan, reports={"report.json": lambda: encoded_lines(json_lines(found)), LOG_NAME: lambda: _log(plan)}
        )
    return ""


def _log(plan: MigrationPlan) -> Iterator[bytes]:
    """The lines of the migration log (guide 7.1), as the verbs write them, without their times."""
    return encoded_lines(f"{line}\n" for line in (*reading(plan), *applying(plan), *closing(plan)))


def _tried(job: jobs.BrokerJob, record: Record, place: Path) -> Iterator[str]:
    """What is otherwise than planned when the plan is carried out on a copy and taken back."""
    if job.exists:
        with QueueManagerStore.open(job.home, job.qmgr) as store:
            copy_of(store.database, place, job.qmgr)
    else:
        jobs.create(job, place)
    with QueueManagerStore.open(place, job.qmgr) as copy:
        before = target = embedded.load(copy)
        state = jobs.kept_state(job, record)
        is_initial_done = marker_of(target.objects, job.tool) is not None
        if job.tool is Tool.MIGMBBRK and not is_initial_done:
            embedded.apply(copy, jobs.plan_of(job, state, target, Phase.INITIAL))
            target = embedded.load(copy)
        plan = jobs.plan_of(job, state, target, Phase.COMPLETE)
        if (job.tool is Tool.STRMQBRK or is_initial_done) and (why := _why_another(job, record, plan)):
            yield why
        embedded.apply(copy, plan)
        wanted = embedded.applied(plan, target)
        del plan, state, target
        yield from (f"applied to a copy: {said}" for said in same_state(wanted, embedded.load(copy)))
        del wanted
        while jobs.recorded(copy, job.tool) is not None:
            yield from (f"undone on a copy: {said}" for said in embedded.undo(copy, job.tool).left)
        yield from (f"undone on a copy: {said}" for said in same_state(before, embedded.load(copy)))


def _differences(job: jobs.BrokerJob, record: Record, store: QueueManagerStore) -> Iterator[str]:
    """What the queue manager has otherwise than planned."""
    heading, planned = read_planned(job.files.plan(record.plan) / FILE_NAME)
    # A person enables queued publish/subscribe behind migmbbrk (guide 8.2, step 9).
    heading = heading.model_copy(update={"is_complete": job.tool is Tool.STRMQBRK})
    live = read_live(EmbeddedAdministrator(store), ("QMGR", *by_kind(planned)))
    yield from map(str, compare(heading, planned, live, job.now).differences)


def rehearsed(job: jobs.BrokerJob, record: Record, said: tuple[str, ...] = ()) -> Record:
    """*record* after the plan was carried out on a copy. said: what was found before that."""
    make_directory(job.files.directory)
    with tempfile.TemporaryDirectory(prefix=".rehearsal-", dir=job.files.directory) as place:
        said += tuple(_tried(job, record, Path(place)))
    return jobs.done(job, record, BrokerState.PLANNED if said else BrokerState.REHEARSED, said)


def remember(job: jobs.BrokerJob, record: Record) -> None:
    """Write a record that was corrected, so that it says when."""
    if job.files.record() != record:
        job.files.write_record(record)


def why_not(job: jobs.BrokerJob, record: Record) -> str:
    """Why the plan of *record* cannot be carried out; "" if it can."""
    if not record.plan:
        return "it has no plan: run estate plan first"
    if record.state is BrokerState.UNDONE:
        return "it was undone: run estate plan again"
    if record.outcome is Outcome.REFUSED:
        return "; ".join(record.said) or "its plan is refused: see its report"
    if record.inputs != jobs.inputs_of(job, jobs.digest_of_sources(job), record.survey.named):
        return "its sources or its part of estate.toml have changed since the plan: run estate plan again"
    return ""


def why_too_old(job: jobs.BrokerJob, record: Record) -> str:
    """Why the sources of *record* are too old for the cutover; "" if they are not, or there is no bound."""
    if not job.within_hours or not record.until:
        return ""
    hours = (job.now - datetime.fromisoformat(record.until)).total_seconds() / 3600
    if hours <= job.within_hours:
        return ""
    return (
        f"its sources end at {record.until}, {hours:,.0f} hours ago, and {job.within_hours:g} are allowed: take "
        "them again, plan, and see estate diff; --accept-old applies the plan anyway. sources_within_hours in "
        "estate.toml is the limit"
    )


def _why_not_complete(job: jobs.BrokerJob, target: Target) -> str:
    marker = marker_of(target.objects, job.tool)
    if job.tool is Tool.STRMQBRK:
        return "" if marker is None else f"it was migrated at {marker.at} from another state"
    if marker is None:
        return "its initial phase comes first: run estate apply --initial, and review the security commands"
    return ""


def _why_another(job: jobs.BrokerJob, record: Record, plan: MigrationPlan) -> str:
    """Why *plan* is not the one that was planned, and perhaps approved; "" if it is."""
    if job.definition.accept_changed or records.decided(records.rows_of(plan)) == record.decided:
        return ""
    return (
        f"plan {record.plan} of {record.planned_at} does not hold any more: the queue manager has changed since, or a "
        "subscription has expired. Run estate plan --again, and see estate diff"
    )
