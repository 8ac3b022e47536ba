"""Whether the sources are those of the broker that is migrated, and were read to the end; else nothing is changed.

A migration that was successful enables queued publish/subscribe and is not done again (guide 7.1, 7.4.1). So it must
not be successful with sources that say nothing, that could not be read, or that are another queue manager's or another
broker's. With ``--accept-unread`` and ``--from-qmgr`` an administrator says that they are good nevertheless.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from commands.broker.objects import AliasQueue, AuthorityRecord, LocalQueue, QueueManager
from migrate.assemble import COMMAND_LINE
from migrate.draft import Draft
from migrate.ledger import Severity
from migrate.legacy_state import LegacyState, Principal, Product, Unread
from migrate.plan import AddSubscription, KeepRetained, MigrationPlan, Phase, PlanOptions, Step, Tool, is_marker
from migrate.visibility import collisions, known_topics, visibility
from rfh2.errors import MigrationError
from rfh2.terminal_escape import printable
from streams.topic_objects import Namelist, TopicObject

_SHOWN: Final = 3
_NO_STATE: Final = (Unread.kind, Principal.kind)


def check_sources(state: LegacyState, options: PlanOptions, tool: Tool) -> None:
    """Raises MigrationError where a migration from *state* would lose state, or be that of another broker."""
    found = list(_refusals(state, options, tool))
    if found:
        raise MigrationError(f"{'; '.join(found)}. Nothing was changed")


def plan_sources(draft: Draft, tool: Tool, *, rehearse: bool) -> None:
    """Say what a run refuses, and what an administrator accepted. Raises MigrationError in a run that is refused."""
    if not rehearse:
        check_sources(draft.state, draft.options, tool)
    for refusal in _refusals(draft.state, draft.options, tool):
        draft.refuse(refusal)
    accepted = _unread(draft.state)
    if draft.options.accept_unread and accepted:
        why = f"--accept-unread: {_shown(accepted)}. If it was state of the broker, it is lost"
        draft.warn(why, severity=Severity.ERROR)
    asked = draft.options.from_qmgr
    if asked is not None and asked != draft.qmgr:
        why = f"--from-qmgr {asked}: what belongs to queue manager {asked} is migrated to {draft.qmgr}"
        draft.warn(why, severity=Severity.INFO)
    for note in (*draft.state.notes, *draft.target.passed_over):
        draft.warn(note, severity=Severity.INFO)
    _check_subscribers(draft)


def _refusals(state: LegacyState, options: PlanOptions, tool: Tool) -> Iterator[str]:
    """The reasons why nothing may be changed, each with what to do; none if the sources are good."""
    if options.from_qmgr is None:
        yield from _foreign(state)
    if tool is Tool.MIGMBBRK:
        yield from _other_broker(state)
    if not options.accept_unread and (unread := _unread(state)):
        yield f"{_shown(unread)}. Correct the sources, or migrate the rest with --accept-unread"
    streams = {stream.name for stream in state.streams}
    for name in sorted(options.prefixes.keys() - streams):
        yield f"--prefix {name}={options.prefixes[name]}: the sources have no stream {name}"
    if not any(item.kind not in _NO_STATE and item.source.file != COMMAND_LINE for _, item in state.items()):
        yield "the sources hold no state of the broker at all: nothing could be migrated"


def _unread(state: LegacyState) -> list[Unread]:
    return [item for item in state.unread if item.is_state]


def _shown(unread: list[Unread]) -> str:
    some = "; ".join(f"{item.source}: {printable(item.why)}" for item in unread[:_SHOWN])
    more = f"; and {len(unread) - _SHOWN} more" if len(unread) > _SHOWN else ""
    pieces = "1 piece" if len(unread) == 1 else f"{len(unread)} pieces"
    return f"{pieces} of the sources could not be read and may be state ({some}{more})"


def _foreign(state: LegacyState) -> Iterator[str]:
    """Sources more than half of which are other queue managers'."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    totals: dict[str, int] = {}
    for item in state.unread:
        if item.qmgr and item.of_count:
            counts[item.source.file][item.qmgr] += item.count
            totals[item.source.file] = item.of_count
    for file, theirs in counts.items():
        if 2 * theirs.total() > totals[file]:
            whose = ", ".join(f"{count} of queue manager {qmgr}" for qmgr, count in theirs.most_common(_SHOWN))
            yield (
                f"{file} is mostly that of another queue manager than {state.qmgr}: {whose}, of {totals[file]} in all. "
                f"--from-qmgr NAME says which one is migrated; --from-qmgr {state.qmgr} leaves the others out"
            )


def _other_broker(state: LegacyState) -> Iterator[str]:
    """Sources that name brokers, and not the one that -b names."""
    named = [broker for broker in state.brokers if broker.source.file != COMMAND_LINE]
    asked = [broker.name for broker in state.brokers if broker.source.file == COMMAND_LINE]
    if named and asked and asked[0] not in {broker.name for broker in named}:
        yield f"-b {asked[0]}: {named[0].source.file} is that of broker {named[0].name}"


def _check_subscribers(draft: Draft) -> None:
    """Most subscribers on one other queue manager: that may be the old name of this one."""
    elsewhere = Counter(s.qmgr for s in draft.state.subscriptions if s.qmgr != draft.state.qmgr)
    for qmgr, count in elsewhere.most_common(1):
        if 2 * count > len(draft.state.subscriptions):
            why = (
                f"{count} of {len(draft.state.subscriptions)} subscriptions have their queues on queue manager {qmgr}, "
                f"not on {draft.qmgr}: if that is the name that this queue manager had, run with --from-qmgr {qmgr}"
            )
            draft.warn(why, "P29")


# The fate of items that have no equivalent in the topic tree, the order of steps, and the plan that is finished.


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
