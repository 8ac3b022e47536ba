"""Planning migmbbrk: the state of an Event Broker or Message Broker into its queue manager (guide 8).

Three phases. A rehearsal plans everything and changes nothing. The initial phase makes the topic objects that access
control lists need, and suggests security commands. The completion phase makes everything from the definitions as they
are by then; it needs the initial one before it, and says what has changed since.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from migrate import plan as plans, source_checks as unmapped_items
from migrate.acl import FILE_NAME, check_subscribers, plan_acl, plan_authorities
from migrate.attributes import migrated_attributes, plan_relations
from migrate.ledger import Severity
from migrate.legacy_state import LegacyState, ReadingDifference, fingerprint
from migrate.retained_plan import plan_retained
from migrate.source_checks import plan_sources
from migrate.stream_topics import plan_streams, plan_sub_points
from migrate.subscription_plan import plan_subscriptions
from migrate.target import Draft, Target
from rfh2.errors import MigrationError
from streams.patterns import parse_pattern
from streams.subscriptions import PublicationFormat

REPLY_QUEUE = "SYSTEM.TEMP.MIGMBBRK.REPLY.QUEUE"


def last_phase(target: Target) -> plans.Marker | None:
    """The record of the last phase that was done on this queue manager."""
    return plans.marker_of(target.objects, plans.Tool.MIGMBBRK)


def plan(
    state: LegacyState,
    target: Target,
    options: plans.PlanOptions,
    now: datetime,
    phase: plans.Phase,
    *,
    since_initial: ReadingDifference | None = None,
    again: bool = False,
    progress: Callable[[int], None] | None = None,
) -> plans.MigrationPlan:
    """What migmbbrk will do in *phase*. now: UTC. since_initial: what has changed since the initial phase, if known.

    again: -z, run although a run was completed. Raises MigrationError where the completion phase has no initial one
    before it (guide 8), the migration is complete already, and, unless this is a rehearsal, where the sources are not
    all of this broker's (``source_checks``) or not those of the phase before.
    """
    print_of = fingerprint(state)
    _check_phase(target, phase, again)
    draft = Draft.of(state, target, options, now, progress)
    plan_sources(draft, plans.Tool.MIGMBBRK, rehearse=phase is plans.Phase.REHEARSE)
    _check_phase_before(draft, phase, print_of)
    plan_streams(draft)
    plan_sub_points(draft)
    plan_subscriptions(draft)
    plan_acl(draft)
    plan_retained(draft)
    plan_authorities(draft)
    if not state.authorities:
        check_subscribers(draft)
    plan_relations(draft)
    unmapped_items.settle(draft)
    _check_attributes(draft)
    _check_older_header(draft)
    _check_denied_wildcards(draft)
    if since_initial:
        _warn_of_changes(draft, since_initial)
    draft.warn(f"delete queue {REPLY_QUEUE} if it is still there (guide 8.2)", "P20", severity=Severity.INFO)
    if state.acl:
        why = f"review and run the commands of {FILE_NAME} before the completion phase (guide 8.2, step 5)"
        draft.warn(why, "P06", severity=Severity.INFO)
    if draft.objects.qmgr.psmode == "ENABLED":
        why = "PSMODE is ENABLED: run ALTER QMGR PSMODE(COMPAT) first, else it processes commands too (guide 8.2)"
        draft.warn(why)
    done = phase if phase is not plans.Phase.REHEARSE else plans.Phase.COMPLETE
    draft.define(plans.Marker(plans.Tool.MIGMBBRK, done, plans.moment(now), print_of, state.broker_name).namelist())
    kept = _initial(draft) if phase is plans.Phase.INITIAL else None
    return unmapped_items.finished(draft, plans.Tool.MIGMBBRK, phase, state, print_of, kept)


def _check_phase(target: Target, phase: plans.Phase, again: bool) -> None:
    last = last_phase(target)
    if phase is plans.Phase.COMPLETE and last is None:
        raise MigrationError("the initial phase (-t) has to come before the completion phase (-c); nothing was changed")
    if phase is not plans.Phase.REHEARSE and last is not None and last.phase is plans.Phase.COMPLETE and not again:
        raise MigrationError("the migration of this broker was completed; -z runs it again. Nothing was changed")


def _check_phase_before(draft: Draft, phase: plans.Phase, print_of: str) -> None:
    """The broker has to be that of the phase before, and its state too where this phase completes that one.

    The initial phase may be run again after the broker's access control lists were revised (guide 8.2, step 4); what
    the completion phase finds changed, an administrator accepts (guide 8.2, note to step 6).
    """
    last = last_phase(draft.target)
    if last is None:
        return
    before = f"the {last.phase} phase of {last.at}"
    refusal = ""
    if not last.is_of(draft.state.broker_name):
        refusal = (
            f"{before} was that of broker {last.broker}, this is broker {draft.state.broker_name}: "
            "give it the same one, or take the other one back with --undo"
        )
    elif last.fingerprint != print_of:
        differs = f"the state of the broker has fingerprint {print_of}; in {before} it had {last.fingerprint}"
        if phase is plans.Phase.INITIAL or draft.options.accept_changed:
            draft.warn(differs, "P21", severity=Severity.INFO)
        else:
            refusal = f"{differs}: give it the same sources, or accept what has changed with --accept-changed"
    if refusal and phase is not plans.Phase.REHEARSE:
        raise MigrationError(f"{refusal}. Nothing was changed")
    if refusal:
        draft.refuse(refusal, "P21")


def _initial(draft: Draft) -> list[plans.Step]:
    """Only the topic objects that access control lists need, and the record that they were made (guide 8.1)."""
    acl = {key for key, _ in draft.state.items() if key[0] == "acl"}
    stores = (step for step in draft.steps if isinstance(step, plans.Store))
    return [step for step in stores if acl & set(step.keys) or plans.is_marker(step.definition)]


def _check_attributes(draft: Draft) -> None:
    if draft.state.attributes:
        draft.define(migrated_attributes(draft.state, draft.objects.qmgr, draft.ledger))


def _check_older_header(draft: Draft) -> None:
    """Guide 8.7: a warning where something is retained and somebody subscribes with MQRFH."""
    older = any(s.format is PublicationFormat.RFH1 and "format" not in s.unknown for s in draft.state.subscriptions)
    if draft.state.retained and older:
        why = (
            "retained publications in MQRFH format may have lost data: that of MQPSStringData and MQPSIntData is not "
            "migrated where the broker gave them out as MQRFH2 (guide 8.7)"
        )
        draft.warn(why, "P01")


def _check_denied_wildcards(draft: Draft) -> None:
    """Guide 8.1: a wildcard subscription over a topic that is denied fails, or gets what it did not get before."""
    denied = [entry for entry in draft.state.acl if entry.subscribe == "false"]
    if not denied:
        return
    for step in draft.steps:
        if not isinstance(step, plans.AddSubscription):
            continue
        legacy = draft.state.subscriptions[step.number - 1]
        pattern = parse_pattern(legacy.topic, legacy.scheme)
        if not pattern.is_wild:
            continue
        for entry in denied:
            if entry.stream == legacy.stream and entry.topic and pattern.matches(entry.topic):
                why = (
                    f"{entry.principal} may not subscribe to {entry.topic}, which it matches: in MQ it is refused as a "
                    "whole or receives that too (guide 8.1)"
                )
                draft.ledger.note(step.key, why, "P05", "D29", severity=Severity.WARNING)
                break


def _warn_of_changes(draft: Draft, found: ReadingDifference) -> None:
    shown = [f"new: {label}" for label in found.added[:10]] + [f"gone: {label}" for label in found.removed[:10]]
    count = len(found.added) + len(found.removed)
    more = f"; and {count - len(shown)} more" if count > len(shown) else ""
    draft.warn(f"the broker has changed since the initial phase: {'; '.join(shown)}{more}", "P21")
