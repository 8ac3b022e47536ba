"""Planning strmqbrk: the state of a version 6 broker into the queue manager it ran on (guide 7.1, 7.4.1).

Wildcards of subscriptions from WebSphere MQ version 6: character-based, with any header.

Guide 2.5.1.1: "Subscriptions that were created before WebSphere MQ Version 7.0 always use the character based wildcard
scheme." The message brokers had the topic-based scheme for MQRFH2 (guide 8.1, Wildcard subscriptions), so only
strmqbrk uses this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from commands.broker.identity import NAME_SEPARATOR
from commands.broker.objects import DEFAULT_STREAM
from migrate import source_checks as unmapped_items
from migrate.acl import plan_authorities
from migrate.attributes import check_parent, migrated_attributes, plan_relations, planned_parent
from migrate.ledger import Severity
from migrate.legacy_state import LegacyState, fingerprint
from migrate.plan import Marker, MigrationPlan, Phase, PlanOptions, Tool, marker_of, moment
from migrate.retained_plan import plan_retained
from migrate.source_checks import plan_sources
from migrate.stream_topics import plan_streams, plan_sub_points
from migrate.subscription_plan import plan_subscriptions
from migrate.target import Draft, Target
from streams.patterns import is_read_alike
from streams.subscriptions import PublicationFormat, WildcardScheme


def by_characters(state: LegacyState) -> LegacyState:
    """*state* with the wildcards that version 6 had in every subscription; that of a later version as it is."""
    if state.is_modern or all(subscription.scheme is WildcardScheme.CHAR for subscription in state.subscriptions):
        return state
    changed = tuple(replace(s, scheme=WildcardScheme.CHAR) for s in state.subscriptions)
    return state.model_copy(update={"subscriptions": changed})


def note_schemes(draft: Draft, sources: LegacyState) -> None:
    """Report where a source has another scheme, and where a program gets another one when it registers again.

    sources: the state as the sources have it.
    """
    if sources.is_modern:
        return
    for number, legacy in enumerate(sources.subscriptions, 1):
        key = (legacy.kind, number)
        if is_read_alike(legacy.topic):
            continue
        if legacy.scheme is WildcardScheme.TOPIC:
            why = "its source has topic-based wildcards; version 6 knew character-based ones alone (guide 2.5.1.1)"
            draft.ledger.change(key, why, "D14", severity=Severity.WARNING)
        if legacy.format is PublicationFormat.RFH2 and "format" not in legacy.unknown:
            why = (
                "it keeps the wildcards * and ? that version 6 had, where # and + are ordinary characters; a program "
                "that deregisters it and registers it again with MQRFH2 gets the topic-based # and + (guide 2.5.1.1)"
            )
            draft.ledger.note(key, why, "D14", severity=Severity.WARNING)


def is_migrated(target: Target) -> bool:
    """Whether the queue manager has already been migrated: then no action is taken (guide 7.1)."""
    return marker_of(target.objects, Tool.STRMQBRK) is not None


def plan(
    state: LegacyState,
    target: Target,
    options: PlanOptions,
    now: datetime,
    *,
    rehearse: bool = False,
    progress: Callable[[int], None] | None = None,
) -> MigrationPlan:
    """What strmqbrk will do. now: UTC. progress: called with how many more items are settled.

    Raises MigrationError where -p names another parent than the recorded one, and, unless this is a rehearsal, where
    the sources are not all of this broker's (``source_checks``): nothing is migrated then.
    """
    print_of = fingerprint(state)
    draft = Draft.of(by_characters(state), target, options, now, progress)
    check_parent(draft)
    plan_sources(draft, Tool.STRMQBRK, rehearse=rehearse)
    note_schemes(draft, state)
    plan_streams(draft)
    plan_sub_points(draft)
    plan_subscriptions(draft)
    plan_retained(draft)
    plan_authorities(draft)
    plan_relations(draft)
    unmapped_items.settle(draft)
    unmapped_items.foreign_acl(draft)
    qmgr = migrated_attributes(state, draft.objects.qmgr, draft.ledger)
    draft.define(Marker(Tool.STRMQBRK, Phase.COMPLETE, moment(now), print_of, state.broker_name).namelist())
    # Queued publish/subscribe starts when everything is there (guide 7.4.1, step 4).
    draft.define(replace(qmgr, parent=planned_parent(draft), psmode="ENABLED"))
    if options.separator != NAME_SEPARATOR and any(s.name and s.stream != DEFAULT_STREAM for s in state.subscriptions):
        why = f"queued programs find their names on streams with {NAME_SEPARATOR} alone, not with {options.separator}"
        draft.warn(why, "D15")
    if not draft.objects.qmgr.deadq:
        draft.warn("the queue manager has no dead-letter queue", "P30")
    phase = Phase.REHEARSE if rehearse else Phase.COMPLETE
    return unmapped_items.finished(draft, Tool.STRMQBRK, phase, draft.state, print_of)
