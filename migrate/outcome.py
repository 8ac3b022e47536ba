"""The outcome of a migration in one word, for a script that migrates many brokers.

    refused    a run would be, or was, refused: nothing is changed
    lost       something of the broker's state is not in the new state, or is lost unless a person acts
    changed    everything is there, but something has another meaning: a subscription, a topic, an authority
    warned     everything is there and means the same; a person should read the warnings
    done       there is nothing to read

The first that applies holds.
"""

from __future__ import annotations

from enum import StrEnum

from migrate.ledger import Fate, Severity, Verdict
from migrate.legacy_state import Unread
from migrate.plan import MigrationPlan


class Outcome(StrEnum):
    """See the module."""

    REFUSED = "refused"
    LOST = "lost"
    CHANGED = "changed"
    WARNED = "warned"
    DONE = "done"


def outcome_of(plan: MigrationPlan) -> Outcome:
    """The outcome of *plan* when it is applied."""
    if any(reason.is_refusal for reason in plan.warnings):
        return Outcome.REFUSED
    is_changed = bool(plan.visibility or plan.collisions)
    for fate in plan.fates:
        if fate.severity is Severity.INFO or _is_remark(plan, fate):
            continue
        if fate.verdict is Verdict.REPORTED or fate.severity is Severity.ERROR:
            return Outcome.LOST
        is_changed = is_changed or fate.verdict is Verdict.CHANGED
    if is_changed:
        return Outcome.CHANGED
    return Outcome.WARNED if plan.warning_count else Outcome.DONE


def _is_remark(plan: MigrationPlan, fate: Fate) -> bool:
    """Whether it is about a piece of a source that was no state: nothing is lost with it."""
    kind, number = fate.key
    return kind == Unread.kind and not plan.state.unread[number - 1].is_state
