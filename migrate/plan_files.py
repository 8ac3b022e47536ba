"""A plan as files for a queue manager of IBM MQ 9.x: scripts in the order in which they are run, messages, a checklist.

    1-queues.mqsc         local queues; one that exists already is refused with AMQ8150, and is not changed
    2-objects.mqsc        topic objects, namelists, the queue manager's attributes
    3-authorities.mqsc    SET AUTHREC, and the same as setmqaut in 3-authorities.sh; before anybody publishes
    4-retained-NN.qload   retained publications, a file for each stream's queue, while nobody subscribes
    5-subscriptions.mqsc  DEFINE SUB for the subscriptions that it can define exactly
    6-registrations.qload Register Subscriber commands for the others
    7-enable.mqsc         PSMODE, and the namelist that records the migration
    not-carried.jsonl     retained publications that nothing above carries, as captured messages
    checklist.md          what a person does, in order
    planned.jsonl         what has to be there afterwards, for ``qpubsub apply`` and ``qpubsub verify``

``subscription_files`` decides what DEFINE SUB can define. Each command is tried in memory before it is written
(``Trial``): if it does not make what was planned, a person must act. Everything here runs on the embedded queue manager
too, and gives the same state.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from commands.broker.objects import (
    CONTROL_QUEUE,
    AliasQueue,
    AuthorityRecord,
    Definition,
    LocalQueue,
    QueueManager,
    kind_of,
)
from commands.broker.times import tenths_until
from commands.mqsc import attributes as mqsc_kinds
from commands.mqsc.export import authority_lines, changed
from commands.mqsc.families import FAMILIES
from commands.mqsc.script import NoMqscFormError, comment, quoted, statement
from migrate import plan as plans
from migrate.acl import FILE_NAME
from migrate.checklist import checklist
from migrate.contents import Content, Spool, encoded_lines
from migrate.ledger import Fate, Reason, Severity, Verdict
from migrate.legacy_state import Key
from migrate.planned_state import FILE_NAME as PLANNED, planned_lines
from migrate.retained_plan import is_retain_command, published_again
from migrate.subscription_files import Defined, FileNote, Keyed, Trial, subscriptions
from migrate.target import Target
from rfh2.captured import CapturedMessage
from rfh2.captures import write_captures
from rfh2.constants import MQEI_UNLIMITED
from rfh2.errors import CaptureError, QPubSubError
from rfh2.message import Message, encode
from streams.topic_objects import Namelist, TopicObject


@dataclass(frozen=True, slots=True)
class PlanFiles:
    """Name and content of every file, and what none of them does."""

    contents: dict[str, str | Content]
    notes: tuple[FileNote, ...]

    def reported(self, plan: plans.MigrationPlan) -> plans.MigrationPlan:
        """*plan* with the fates that its items have if these files alone carry it out."""
        concerned = {note.key: note for note in self.notes if note.key is not None}
        changed = [_reported(plan.fates.of(key), note) for key, note in concerned.items()]
        return replace(plan, fates=plan.fates.with_changed(changed))


def _reported(fate: Fate, note: FileNote) -> Fate:
    if fate.verdict is Verdict.REPORTED:
        return fate
    if note.is_lost:
        reasons = (*fate.reasons, Reason(f"no file carries it: {note.text}", Severity.ERROR))
        return replace(fate, verdict=Verdict.REPORTED, becomes="", reasons=reasons)
    return replace(fate, verdict=Verdict.CHANGED, reasons=(*fate.reasons, Reason(note.text, Severity.WARNING)))


def plan_files(plan: plans.MigrationPlan, target: Target) -> PlanFiles:
    """Every file, and what none of them does. target: the queue manager as it was before."""
    notes: list[FileNote] = []
    before = target.objects.qmgr
    trial = Trial(plan, target)
    published, not_carried = _publications(plan, trial, notes)
    # What DEFINE SUB makes is known when the commands for the others have been written.
    defined = Defined()
    commands = _unload(subscriptions(plan, target, trial, notes, defined), not_carried, notes)
    files: dict[str, str | Content] = {
        plans.QUEUES: _script(plan, _definitions(plan, target, notes, LocalQueue, AliasQueue)),
        plans.OBJECTS: _script(
            plan,
            [
                *_definitions(plan, target, notes, TopicObject),
                *_definitions(plan, target, notes, Namelist),
                *_qmgr(plan, before, only_mode=False),
            ],
        ),
        plans.AUTHORITIES: _script(plan, _authrec(plan, notes)),
        plans.AUTHORITY_COMMANDS: "".join(f"{line}\n" for line in _setmqaut(plan)),
        plans.SUBSCRIPTIONS: _script(plan, defined.lines),
        plans.REGISTRATIONS: commands,
        plans.ENABLE: _script(plan, [*_qmgr(plan, before, only_mode=True), *_marker(plan, target)]),
    }
    unloads: dict[str, str] = {}
    for number, queue in enumerate(dict.fromkeys(step.stream for _, step in published), 1):
        name = plans.RETAINED.format(number)
        own = ((step.key, _publication(plan, step, seq)) for seq, step in published if step.stream == queue)
        files[name] = _unload(own, not_carried, notes)
        unloads[name] = queue
    loads = unloads if commands.is_empty else unloads | {plans.REGISTRATIONS: CONTROL_QUEUE}
    if commands.is_empty:
        del files[plans.REGISTRATIONS]
    files[PLANNED] = lambda: encoded_lines(f"{line}\n" for line in planned_lines(plan, target, loads))
    files[plans.CHECKLIST] = checklist(
        plan, [note.text for note in notes], unloads, defined.kept_back, has_registrations=not commands.is_empty
    )
    if not_carried:
        files[plans.NOT_CARRIED] = "".join(message.model_dump_json() + "\n" for message in not_carried)
    if plan.tool is plans.Tool.MIGMBBRK:
        files[FILE_NAME] = "".join(f"{line}\n" for line in plan.security)
    return PlanFiles(files, tuple(notes))


def _defined(definition: Definition) -> list[str]:
    """DEFINE of a queue, topic object or namelist with all that differs from the defaults."""
    family = FAMILIES[kind_of(definition).upper()]
    given = changed(family.kind.attributes, definition, family.make(definition.name), always="TOPICSTR")
    return statement(f"DEFINE {family.kind.word}({quoted(definition.name)})", given)


def _altered(before: Definition, after: Definition) -> list[str]:
    """ALTER of the same with what has changed; nothing where nothing has."""
    kind = FAMILIES[kind_of(after).upper()].kind
    given = list(changed(kind.attributes, after, before))
    return statement(f"ALTER {kind.word}({quoted(after.name)})", given) if given else []


def _script(plan: plans.MigrationPlan, lines: Iterable[str]) -> str:
    heading = [
        comment(f"{plan.tool}: broker {plan.state.broker_name} to queue manager {plan.qmgr}"),
        comment(f"Made {plan.now:%Y-%m-%d %H:%M:%S} UTC from state {plan.fingerprint}"),
    ]
    return "".join(f"{line}\n" for line in (*heading, *lines))


def _definitions(plan: plans.MigrationPlan, target: Target, notes: list[FileNote], *kinds: type) -> Iterator[str]:
    """What defines the objects of these kinds, the namelist that remembers the migration apart."""
    before = target.definitions
    for step in plan.steps:
        if (
            isinstance(step, plans.Store)
            and isinstance(step.definition, kinds)
            and not plans.is_marker(step.definition)
        ):
            try:
                yield from _stored(step, before.get((kind_of(step.definition), step.definition.name)))
            except NoMqscFormError as error:
                yield comment(f"{step.definition.name}: {error}")
                notes.append(FileNote(f"Define {kind_of(step.definition)} {step.definition.name} by hand: {error}"))


def _stored(step: plans.Store, before: Definition | None) -> list[str]:
    if before is None:
        return _defined(step.definition)
    if step.anew:
        return [f"DELETE TOPIC({quoted(step.definition.name)})", *_defined(step.definition)]
    lines = _altered(before, step.definition)
    if lines and isinstance(step.definition, Namelist) and not plans.is_marker(step.definition):
        return [*map(comment, _overwrites(step.definition.name)), *lines]
    return lines


def _overwrites(name: str) -> Iterator[str]:
    """MQSC cannot add to a namelist (guide 6.5.4), and a script cannot look: what a person has to know."""
    yield f"ATTENTION: the next command replaces all names of {name}."
    yield "It has the names that the list had when the plan was made: those of --existing, or of a new queue manager."
    yield f"Before you run it: DISPLAY NAMELIST({name}) NAMES. Add each name that is there and not here"
    yield "(SYSTEM.FTE, for example): what is not in the list is not a stream or subscription point any more."
    yield "qpubsub apply reads the list, and sends it with the names that it has."


def _marker(plan: plans.MigrationPlan, target: Target) -> Iterator[str]:
    for step in plan.steps:
        if isinstance(step, plans.Store) and plans.is_marker(step.definition):
            yield from _stored(step, target.objects.namelists.get(step.definition.name))


def _qmgr(plan: plans.MigrationPlan, before: QueueManager, *, only_mode: bool) -> Iterator[str]:
    """ALTER QMGR: PSMODE, which comes last, or everything else."""
    for step in plan.steps:
        if isinstance(step, plans.Store) and isinstance(step.definition, QueueManager):
            settings = changed(mqsc_kinds.QMGR.attributes, step.definition, before)
            given = [(word, value) for word, value in settings if (word == "PSMODE") == only_mode]
            if given:
                yield from statement("ALTER QMGR", given)


def _records(plan: plans.MigrationPlan) -> Iterator[AuthorityRecord]:
    for step in plan.steps:
        if isinstance(step, plans.Store) and isinstance(step.definition, AuthorityRecord):
            yield step.definition


def _authrec(plan: plans.MigrationPlan, notes: list[FileNote]) -> Iterator[str]:
    for record in _records(plan):
        if not record.authorities:
            continue
        try:
            yield from authority_lines(record)
        except NoMqscFormError as error:
            yield comment(f"{record.name}: {error}")
            notes.append(FileNote(f"Set authority record {record.name} by hand: {error}"))


def _setmqaut(plan: plans.MigrationPlan) -> Iterator[str]:
    yield f"# Authorities for queue manager {plan.qmgr}; the same as {plans.AUTHORITIES}: run one of the two."
    for record in _records(plan):
        if not record.authorities or not (record.entity + record.profile).isprintable():
            continue
        name = [] if record.object_type == "QMGR" else ["-n", shlex.quote(record.profile)]
        form = "-p" if record.entity_type == "PRINCIPAL" else "-g"
        rights = " ".join(f"+{word.lower()}" for word in record.authorities)
        words = ["setmqaut", "-m", shlex.quote(plan.qmgr), "-t", record.object_type.lower(), *name]
        yield " ".join([*words, form, shlex.quote(record.entity), rights])


def _publications(
    plan: plans.MigrationPlan, trial: Trial, notes: list[FileNote]
) -> tuple[list[tuple[int, plans.KeepRetained]], list[CapturedMessage]]:
    """What commands publish again, each with the seq of its command; and messages that cannot be made to.

    The commands are made once more when they are written: all of them at once would need much memory.
    """
    carried: list[tuple[int, plans.KeepRetained]] = []
    left: list[CapturedMessage] = []
    for seq, step in enumerate(plan.retained, 1):
        try:
            trial.publish(_publication(plan, step, seq), step.retained.topic_string)
            carried.append((seq, step))
        except QPubSubError as error:
            text = f"Publish {step.retained.topic_string!r} by hand ({plans.NOT_CARRIED}): {error}"
            notes.append(FileNote(text, step.key))
            left.append(_captured(plan, step, step.retained.publication.message, seq))
    return carried, left


def _publication(plan: plans.MigrationPlan, step: plans.KeepRetained, seq: int) -> CapturedMessage:
    publication = step.retained.publication
    legacy = plan.state.retained[step.number - 1]
    message = publication.message
    if not is_retain_command(message, legacy.topic):
        message = published_again(message, legacy.topic, step.sub_point, local=publication.local)
    return _captured(plan, step, message, seq)


def _captured(plan: plans.MigrationPlan, step: plans.KeepRetained, message: Message, seq: int) -> CapturedMessage:
    publication = step.retained.publication
    left = tenths_until(publication.expires_at, plan.now)
    mqmd = replace(message.mqmd, expiry=MQEI_UNLIMITED if left is None else left)
    return CapturedMessage(
        seq=seq,
        time=publication.published_at,
        qmgr=plan.qmgr,
        queue=step.stream,
        user=mqmd.user_identifier or None,
        md_hex=mqmd.encode().hex(),
        body_hex=encode(message).hex(),
    )


def _unload(messages: Iterable[Keyed], left: list[CapturedMessage], notes: list[FileNote]) -> Spool:
    """A queue unload; a message that it cannot hold goes to *left*, and *notes* say so."""
    current: list[Key] = []

    def each() -> Iterator[CapturedMessage]:
        for key, message in messages:
            current[:] = [key]
            yield message

    def refused(message: CapturedMessage, error: CaptureError) -> None:
        left.append(message)
        text = f"Put message {message.seq} for {message.queue} by hand ({plans.NOT_CARRIED}): {error}"
        notes.append(FileNote(text, current[0]))

    spool = Spool()
    write_captures(each(), spool.file, "qload", refused=refused)
    return spool
