"""Planning strmqbrk: the state of a version 6 broker into the queue manager it ran on (guide 7.1, 7.4.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from commands.broker.objects import DEFAULT_STREAM
from commands.broker.stream_names import NAME_SEPARATOR
from migrate import unmapped_items
from migrate.attributes import migrated_attributes
from migrate.authorities_plan import plan_authorities
from migrate.draft import Draft
from migrate.fingerprint import fingerprint
from migrate.legacy_state import LegacyState
from migrate.marker import Marker, marker_of, moment
from migrate.old_wildcards import by_characters, note_schemes
from migrate.plan import MigrationPlan, Phase, PlanOptions, Tool
from migrate.relations import check_parent, plan_relations, planned_parent
from migrate.retained_plan import plan_retained
from migrate.source_checks import plan_sources
from migrate.stream_topics import plan_streams
from migrate.sub_point_topics import plan_sub_points
from migrate.subscription_plan import plan_subscriptions
from migrate.target import Target
from migrate.visibility import collisions, known_topics, visibility


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
    unmapped_items.brokers(draft)
    unmapped_items.publishers(draft)
    unmapped_items.foreign_acl(draft)
    unmapped_items.principals(draft)
    unmapped_items.flow_inputs(draft)
    unmapped_items.unread(draft)
    unmapped_items.scopes(draft)
    qmgr = migrated_attributes(state, draft.objects.qmgr, draft.ledger)
    draft.define(Marker(Tool.STRMQBRK, Phase.COMPLETE, moment(now), print_of, state.broker_name).namelist())
    # Queued publish/subscribe starts when everything is there (guide 7.4.1, step 4).
    draft.define(replace(qmgr, parent=planned_parent(draft), psmode="ENABLED"))
    if options.separator != NAME_SEPARATOR and any(s.name and s.stream != DEFAULT_STREAM for s in state.subscriptions):
        why = f"queued programs find their names on streams with {NAME_SEPARATOR} alone, not with {options.separator}"
        draft.warn(why, "D15")
    if not draft.objects.qmgr.deadq:
        draft.warn("the queue manager has no dead-letter queue", "P30")
    # What the ledger held of each item is not needed for what follows, which needs much memory itself.
    fates = draft.ledger.close()
    topics = known_topics(draft)
    return MigrationPlan(
        Tool.STRMQBRK,
        Phase.REHEARSE if rehearse else Phase.COMPLETE,
        draft.qmgr,
        now,
        draft.state,
        options.shown,
        unmapped_items.ordered(draft.steps),
        fates,
        tuple(draft.warnings),
        visibility(draft, topics),
        collisions(topics),
        tuple(draft.security),
        print_of,
        target.version,
        tuple(draft.grants),
    )
