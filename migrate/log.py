"""The migration log: what was read, item by item, then what was done (guide 8.4).

Every line is ``YYYY-MM-DD HH:MM:SS.mmm: text``; options and details are indented by four blanks. In order: where from,
where to, the options; streams and subscription points; subscriptions with their numbers; topics with access control
entries; retained publications; what concerns the whole; then what is applied, and the end. Subscriptions are identified
by their number, because a topic string may be 10,240 characters long and have characters that cannot be printed.

A line that the example of guide 8.4 has is printed as there, letter for letter ("mqrh2", "publicatons"): monitors of
logs look for it. What the example has no line for follows as a detail, or in a line of the same manner.

The lines are made here without their time: it is added when they are written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TextIO

from commands.broker.objects import LocalQueue, QueueManager
from commands.terminal.counted import counted
from migrate.assemble import broker_topic
from migrate.ledger import Fate, Reason, Severity, Verdict
from migrate.legacy_state import AclEntry, Key, LegacyState, LegacySubscription, Product, fingerprint
from migrate.plan import AddSubscription, KeepRetained, MigrationPlan, Phase, Step, Store, Tool, is_marker
from rfh2.terminal_escape import one_line, printable
from streams.subscriptions import PublicationFormat
from streams.topic_objects import DEFAULT_STREAM, Namelist, TopicObject

_FORMATS = {PublicationFormat.RFH2: "mqrh2", PublicationFormat.RFH1: "mqrfh", PublicationFormat.PCF: "pcf"}


class LogWriter:
    """Stamps lines with the time and writes them. clock: UTC."""

    def __init__(self, stream: TextIO, clock: Callable[[], datetime]) -> None:
        self._stream, self._clock = stream, clock
        self.lines = 0

    def write(self, text: str) -> None:
        """One line."""
        now = self._clock()
        self._stream.write(f"{now:%Y-%m-%d %H:%M:%S}.{now.microsecond // 1000:03}: {one_line(text)}\n")
        self.lines += 1

    def write_all(self, lines: Iterable[str]) -> None:
        """Several lines."""
        for line in lines:
            self.write(line)

    def sync(self) -> None:
        """All lines so far are handed to the disk. Raises OSError."""
        self._stream.flush()


def opening(tool: Tool, broker: str, qmgr: str, options: Iterable[str]) -> Iterator[str]:
    """Where from, where to, with which options."""
    product = "Websphere Message Broker" if tool is Tool.MIGMBBRK else "WebSphere MQ version 6"
    yield f"Migrating Pub/Sub state from {product}: {broker}"
    yield f"Into queue manager: {qmgr}"
    yield "Command switches:"
    for option in options:
        yield f"    {option}"


def retrieved(state: LegacyState, how: str = "the sources") -> Iterator[str]:
    """Whose state was read, and what could not be read, which may be why a run is refused. how: from where."""
    yield f"State of queue manager {state.qmgr} read from {how}: fingerprint {fingerprint(state)}"
    for item in state.unread:
        if item.is_state:
            yield one_line(f"    Not read: {item.source}: {printable(item.why)}")
        elif item.qmgr:
            yield one_line(f"    Not read: {item.source}: {printable(item.text)}")


def reading(plan: MigrationPlan) -> Iterator[str]:
    """What was found, and what is to become of it."""
    return map(one_line, _reading(plan))


def applying(plan: MigrationPlan) -> Iterator[str]:
    """What is done, step by step; topic objects for access control lists from the last to the first, as guide 8.4."""
    return map(one_line, _applying(plan))


def _reading(plan: MigrationPlan) -> Iterator[str]:
    yield from _places(plan)
    yield from _subscriptions(plan)
    if plan.tool is Tool.MIGMBBRK or plan.state.acl:
        yield from _topics(plan)
    yield from _retained(plan)
    yield from _others(plan)
    for reason in plan.warnings:
        yield _said(reason)
    yield "All Pub/Sub data has been retrieved from the broker."


def _applying(plan: MigrationPlan) -> Iterator[str]:
    if plan.phase is Phase.REHEARSE:
        yield "Rehearsal: nothing is changed; these are the steps of a real run"
    else:
        yield "Applying changes to queue manager Pub/Sub state."
    made = [step for step in plan.steps if isinstance(step, Store) and isinstance(step.definition, TopicObject)]
    for step in plan.steps:
        if isinstance(step, Store) and isinstance(step.definition, LocalQueue):
            yield from step_lines(step)
    for topic in reversed(made):
        yield from step_lines(topic)
    for step in plan.steps:
        if not isinstance(step, Store) or not isinstance(step.definition, TopicObject | LocalQueue):
            yield from step_lines(step)


def closing(plan: MigrationPlan, seconds: float | None = None) -> Iterator[str]:
    """How it ended."""
    sums = plan.sums
    reported = sums.refused + sums.left
    yield f"{counted(sums.items, 'item')}: {sums.migrated} migrated, {sums.changed} changed, {reported} reported"
    if reported:
        yield f"Reported: {sums.refused} refused, each with its reason, {sums.left} left by choice"
    took = "" if seconds is None else f" in {seconds:.1f} s"
    end = "Rehearsal done" if plan.phase is Phase.REHEARSE else "Done"
    yield f"{end}{took}, {plan.warning_count} warnings"


def step_lines(step: Step) -> Iterator[str]:
    """The lines for one step."""
    if isinstance(step, AddSubscription):
        instead = "" if step.replaces is None else ", which replaces one of the same name"
        yield f"Defining subscription [{step.number}]{instead}"
    elif isinstance(step, KeepRetained):
        yield f"Retained publication on {printable(step.retained.topic_string)}: kept"
    else:
        definition = step.definition
        done = "Replaced" if step.replaces else "Created"
        if isinstance(definition, TopicObject):
            yield f"{done} topic object: {definition.name}"
            yield f"    Topic string: {printable(definition.topic_string)}"
        elif isinstance(definition, LocalQueue):
            yield f"{done} queue: {definition.name}"
        elif isinstance(definition, QueueManager):
            yield "Queue manager altered: " + " ".join(_attributes(definition))
        elif isinstance(definition, Namelist):
            if is_marker(definition):
                yield "Migration completion message written."
                yield f"    Namelist: {definition.name}"
            else:
                yield f"Namelist {definition.name} has {len(definition.names)} names"
        else:
            yield f"Authority record: {definition.name}"


def changed_since(line: str, *, rehearse: bool = False, force: bool = False) -> str:
    """That an undo keeps what *line* says, which others have changed, or takes it back. rehearse: that it would."""
    does = "taken back" if force else "kept"
    return f"changed since the migration, and {'would be ' if rehearse else ''}{does}: {line}"


def _places(plan: MigrationPlan) -> Iterator[str]:
    for field, word in (("streams", "streams"), ("sub_points", "subscription points")):
        items = getattr(plan.state, field)
        if not items:
            continue
        yield f"Starting to parse {word} ..."
        for number, item in enumerate(items, 1):
            yield f"{item.label[:1].upper()}{item.label[1:]}"
            yield from _fate_lines(plan.fates.of((item.kind, number)))
        yield f"... finished parsing {word}"


def _subscriptions(plan: MigrationPlan) -> Iterator[str]:
    items = plan.state.subscriptions
    yield "Starting to parse subscriptions ..."
    before: str | None = None
    for number, item in enumerate(items, 1):
        topic = broker_topic(item.stream, item.topic, plan.state.product)
        if topic != before:
            yield f"Migrating subscriptions for topic string {printable(topic)}"
        before = topic
        yield f"[{number}] Migrating subscription for:"
        yield from _details(item, plan.state.product)
        yield from _fate_lines(plan.fates.of((item.kind, number)))
    yield "... finished parsing subscriptions"


def _details(item: LegacySubscription, product: Product) -> Iterator[str]:
    if item.client_id:
        yield f"    Client: {printable(item.client_id)}, which has no queue"
        return
    known = "" if "format" not in item.unknown else " (not known)"
    yield f"    Format: {_FORMATS.get(item.format, item.format)}{known}"
    yield f"    Queue Manager: {item.qmgr}"
    yield f"    Queue: {item.queue}"
    if item.stream != DEFAULT_STREAM and product is Product.MQ:
        yield f"    Stream: {item.stream}"
    if item.sub_point:
        yield f"    Subscription point: {item.sub_point}"
    if item.name:
        yield f"    Name: {printable(item.name)}"


def _topics(plan: MigrationPlan) -> Iterator[str]:
    """Every topic that has a list or a subscription, the root first, as a broker lists its topics."""
    product = plan.state.product
    entries: dict[str, list[tuple[Key, AclEntry]]] = defaultdict(list)
    for number, entry in enumerate(plan.state.acl, 1):
        entries[broker_topic(entry.stream, entry.topic, product)].append(((entry.kind, number), entry))
    order = {"": None} if "" in entries else {}
    order |= dict.fromkeys(broker_topic(s.stream, s.topic, product) for s in plan.state.subscriptions)
    order |= dict.fromkeys(entries)
    yield "Starting to parse topics ..."
    for topic in order:
        yield f"Migrating ACLs for topic string {printable(topic)}".rstrip()
        if topic not in entries:
            yield "    None found."
        for key, entry in entries.get(topic, ()):
            whose = "" if entry.principal_type == "unknown" else f" ({entry.principal_type})"
            yield f"    {entry.principal}{whose}: publish={entry.publish}, subscribe={entry.subscribe}"
            yield from _fate_lines(plan.fates.of(key))
    yield "... finished parsing topics"


def _retained(plan: MigrationPlan) -> Iterator[str]:
    items = plan.state.retained
    yield "Starting to parse retained publications ..."
    before: str | None = None
    for number, item in enumerate(items, 1):
        topic = broker_topic(item.stream, item.topic, plan.state.product)
        if topic != before:
            yield f"Migrating retained publications for topic string {printable(topic)}"
        before = topic
        point = f"subscription point {item.sub_point}" if item.sub_point else "default subscription point"
        yield f"Migrating retained publication for {point}."
        yield from _fate_lines(plan.fates.of((item.kind, number)))
    yield "... finished parsing retained publicatons"


def _others(plan: MigrationPlan) -> Iterator[str]:
    listed = {"stream", "sub_point", "subscription", "retained", "acl"}
    if plan.tool is Tool.STRMQBRK and not plan.state.acl:
        listed.discard("acl")
    rest = [fate for fate in plan.fates if fate.key[0] not in listed]
    if not rest:
        return
    yield "Starting to parse other items ..."
    for fate in rest:
        yield f"{printable(fate.label[:1].upper() + fate.label[1:])}"
        yield from _fate_lines(fate)
    yield "... finished parsing other items"


def _fate_lines(fate: Fate) -> Iterator[str]:
    if fate.verdict is Verdict.REPORTED:
        yield f"    Not migrated ({fate.source})"
    elif fate.key[0] != "subscription" and fate.becomes:
        yield f"    Becomes {printable(fate.becomes)}"
    for reason in fate.reasons:
        yield f"    {_said(reason)}"


def _said(reason: Reason) -> str:
    word = {Severity.INFO: "Note", Severity.WARNING: "Warning", Severity.ERROR: "Error"}[reason.severity]
    ids = f" [{' '.join(reason.ids)}]" if reason.ids else ""
    return f"{word}: {printable(reason.text)}{ids}"


def _attributes(qmgr: QueueManager) -> Iterator[str]:
    yield f"PSRTYCNT({qmgr.psrtycnt})"
    yield f"PSNPMSG({qmgr.psnpmsg})"
    yield f"PSNPRES({qmgr.psnpres})"
    yield f"PSSYNCPT({qmgr.pssyncpt})"
    yield f"PARENT({qmgr.parent})"
    yield f"PSMODE({qmgr.psmode})"
