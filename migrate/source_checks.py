"""Whether the sources are those of the broker that is migrated, and were read to the end; else nothing is changed.

A migration that was successful enables queued publish/subscribe and is not done again (guide 7.1, 7.4.1). So it must
not be successful with sources that say nothing, that could not be read, or that are another queue manager's or another
broker's. With ``--accept-unread`` and ``--from-qmgr`` an administrator says that they are good nevertheless.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from migrate.assemble import COMMAND_LINE
from migrate.draft import Draft
from migrate.ledger import Severity
from migrate.legacy_state import LegacyState, Principal, Unread
from migrate.log import printable
from migrate.plan import PlanOptions, Tool
from rfh2.errors import MigrationError

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
