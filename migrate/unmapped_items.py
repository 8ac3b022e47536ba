"""The fate of items that have no equivalent in the topic tree, the order of steps, and the plan that is finished."""

from __future__ import annotations

from collections.abc import Iterable

from commands.broker.objects import AliasQueue, AuthorityRecord, LocalQueue, QueueManager
from migrate.draft import Draft
from migrate.ledger import Severity
from migrate.legacy_state import LegacyState, Product
from migrate.marker import is_marker
from migrate.plan import AddSubscription, KeepRetained, MigrationPlan, Phase, Step, Tool
from migrate.visibility import collisions, known_topics, visibility
from streams.topic_objects import Namelist, TopicObject


def ordered(steps: Iterable[Step]) -> tuple[Step, ...]:
    """*steps* in an order that works: those that others need first; PSMODE and the record of the migration last."""
    return tuple(sorted(steps, key=_rank))


def _rank(step: Step) -> int:
    if isinstance(step, AddSubscription):
        return 4
    if isinstance(step, KeepRetained):
        return 5
    definition = step.definition
    if isinstance(definition, LocalQueue | AliasQueue):
        return 0
    if isinstance(definition, TopicObject):
        # Of several, those that are made anew first: their old topic string may be another one's new one.
        return 1 if step.anew else 2
    if isinstance(definition, AuthorityRecord):
        return 6
    if isinstance(definition, Namelist) and not is_marker(definition):
        return 3
    return 8 if isinstance(definition, QueueManager) else 7


def brokers(draft: Draft) -> None:
    """The broker is the queue manager now."""
    names = {broker.name for broker in draft.state.brokers}
    for number, broker in enumerate(draft.state.brokers, 1):
        key = (broker.kind, number)
        draft.ledger.becomes(key, f"queue manager {draft.qmgr}")
        if broker.qmgr not in ("", draft.state.qmgr):
            why = f"the source is of queue manager {broker.qmgr}, this is {draft.state.qmgr}: check the source"
            draft.ledger.note(key, why, severity=Severity.WARNING)
    if len(names) > 1:
        draft.warn(f"the sources name several brokers: {', '.join(sorted(names))}")


def publishers(draft: Draft) -> None:
    """Registered publishers: version 7 has none (guide 7.5)."""
    for number, publisher in enumerate(draft.state.publishers, 1):
        why = "publishers are not registered in version 7; RegPub is answered with ok and does nothing (guide 7.5)"
        draft.ledger.report((publisher.kind, number), why, "D06", severity=Severity.INFO)
        draft.progress(1)


def foreign_acl(draft: Draft) -> None:
    """Access control lists belong to Message Broker; WebSphere MQ's broker had none."""
    for number, entry in enumerate(draft.state.acl, 1):
        why = "WebSphere MQ's own broker had no access control lists: migrate them with migmbbrk"
        draft.ledger.report((entry.kind, number), why)
        draft.progress(1)


def principals(draft: Draft) -> None:
    """Users and groups belong to the operating system; they were read to distinguish the two."""
    for number, principal in enumerate(draft.state.principals, 1):
        draft.ledger.becomes((principal.kind, number), f"{principal.type} {principal.name} of the operating system")
        draft.progress(1)


def flow_inputs(draft: Draft) -> None:
    """Input queues of message flows: the administrator adds them to the namelist (guide 8.2, step 7)."""
    for number, flow in enumerate(draft.state.flow_inputs, 1):
        why = (
            f"define topic object {flow.queue} with the topic string that its topics are to lie below, then add "
            f"{flow.queue} to SYSTEM.QPUBSUB.QUEUE.NAMELIST, with all names that are there (guide 8.2, step 7)"
        )
        draft.ledger.report((flow.kind, number), why, "P18", "D23")
        draft.progress(1)
    if draft.state.product is Product.WMB and not draft.state.flow_inputs:
        draft.warn("no source names the input queues of message flows: add each to the queue namelist", "P18", "D23")


def unread(draft: Draft) -> None:
    """A person must look at what no reader understood."""
    for number, item in enumerate(draft.state.unread, 1):
        severity = Severity.WARNING if item.is_state or item.warns else Severity.INFO
        ids = (item.problem,) if item.problem else ()
        draft.ledger.report((item.kind, number), item.why, *ids, severity=severity)
        draft.progress(1)


def scopes(draft: Draft) -> None:
    """Report once what a local publication does to global subscriptions (guide 7.5, table 2)."""
    local = any(retained.local for retained in draft.state.retained) or any(
        "Local" in publisher.options for publisher in draft.state.publishers
    )
    if local:
        why = "publications with scope Local are received by global subscriptions of this queue manager too (guide 7.5)"
        draft.warn(why, "D01")


def settle(draft: Draft) -> None:
    """The fates of all of these."""
    for each in (brokers, publishers, principals, flow_inputs, unread, scopes):
        each(draft)


def finished(
    draft: Draft, tool: Tool, phase: Phase, state: LegacyState, print_of: str, kept: Iterable[Step] | None = None
) -> MigrationPlan:
    """The plan. kept: the steps that are carried out, if not all. Raises MigrationError if an item has no fate."""
    # What the ledger held of each item is not needed for what follows, which needs much memory itself.
    fates = draft.ledger.close()
    topics = known_topics(draft)
    return MigrationPlan(
        tool,
        phase,
        draft.qmgr,
        draft.now,
        state,
        draft.options.shown,
        ordered(draft.steps if kept is None else kept),
        fates,
        tuple(draft.warnings),
        visibility(draft, topics),
        collisions(topics),
        tuple(draft.security),
        print_of,
        draft.target.version,
        tuple(draft.grants),
    )
