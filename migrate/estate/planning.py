"""Planning one broker: its sources are read, its plan is made and kept, and nothing else is changed."""

from __future__ import annotations

from datetime import UTC, datetime

from migrate.acl import FILE_NAME as SECURITY_COMMANDS
from migrate.assemble import of_product
from migrate.contents import Content, encoded_lines, packed
from migrate.estate import item_rows
from migrate.estate.jobs import (
    BrokerJob,
    BrokerResult,
    action,
    digest_of_sources,
    inputs_of,
    plan_of,
    target_of,
)
from migrate.estate.records import BEGUN, FATES, SCRIPTS, STATE, TOPICS, BrokerState, Record, Survey
from migrate.ledger import Sums
from migrate.legacy_state import LegacyState, Product
from migrate.marker import marker_of
from migrate.plan import MigrationPlan, Phase, outcome_of
from migrate.plan_files import plan_files
from migrate.planned_state import FILE_NAME as PLANNED, planned_lines
from migrate.readers import read_sources, state_json
from migrate.readers.sources import files_of
from migrate.report import encoded, facts, report_contents
from migrate.target import Target, copied
from rfh2.captured import iso
from rfh2.errors import MigrationError


@action
def plan_broker(job: BrokerJob, record: Record) -> Record | BrokerResult:
    """Read the sources and plan; nothing is done if neither they nor the options have changed, or it was applied."""
    if record.state in BEGUN:
        return BrokerResult(job.qmgr, record)
    if not job.sources:
        why = "it has no source in estate.toml: give it source = [...], or leave it out with --only"
        if job.definition.extract is not None:
            why = "nothing was taken from it yet: run estate extract first"
        return BrokerResult(job.qmgr, record, refused=why)
    sources = digest_of_sources(job)
    inputs = inputs_of(job, sources, record.survey.named)
    is_known = record.plan and record.inputs == inputs and record.state is not BrokerState.UNDONE
    if is_known and not job.again and job.files.plan(record.plan).is_dir():
        return BrokerResult(job.qmgr, record)
    return _planned(job, record, sources)


def _planned(job: BrokerJob, record: Record, sources: str) -> Record:
    """Make the plan and write its files; the record that names it. sources: their digest."""
    target = target_of(job)
    marker = marker_of(target.objects, job.tool)
    if marker is not None and marker.phase is Phase.COMPLETE:
        raise MigrationError(f"it was migrated at {marker.at}, and not with this plan: it needs no plan any more")
    state = _read(job)
    plan = plan_of(job, state, target, Phase.REHEARSE)
    rows = list(item_rows.rows_of(plan))
    survey = _survey(plan, target)
    number = max((record.plan, *job.files.plans())) + 1
    made = Record(
        qmgr=job.qmgr,
        state=BrokerState.PLANNED,
        at=iso(job.now) or "",
        tool=job.tool,
        planned_at=iso(job.now) or "",
        plan=number,
        inputs=inputs_of(job, sources, survey.named),
        fingerprint=plan.fingerprint,
        decided=item_rows.decided(rows),
        outcome=outcome_of(plan),
        until=iso(state.until or _newest(job)) or "",
        sums=Sums.of((row.result for row in rows), sum(1 for _ in state.items())),
        survey=survey,
        said=tuple(reason.text for reason in plan.warnings if reason.is_refusal),
    )
    contents: dict[str, Content] = {
        STATE: state_json.write([state]).encode("utf-8", "surrogatepass"),
        FATES: item_rows.packed(rows),
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


def _newest(job: BrokerJob) -> datetime:
    """When the last of the sources was written: what is known of sources that have no times."""
    return max(datetime.fromtimestamp(file.stat().st_mtime, UTC) for each in job.sources for file in files_of(each))


def _read(job: BrokerJob) -> LegacyState:
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
