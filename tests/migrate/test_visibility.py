"""Which subscriptions see other topics than before: compared with plain matching, one topic at a time."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

from hypothesis import given, strategies as st

from migrate import source_checks, strmqbrk
from migrate.embedded import applied
from migrate.legacy_state import LegacyState, LegacySubscription, Publisher, Source, Stream, SubPoint
from migrate.plan import MigrationPlan, PlanOptions
from migrate.target import Target
from streams.patterns import parse_pattern
from streams.subscriptions import PublicationFormat, WildcardScheme
from streams.topic_objects import DEFAULT_STREAM
from tests.migrate.legacy_messages import NOW

MADE = Source(file="made.txt")
LEVELS = ("a", "a-", "b", "Sport", "USD")
topics = st.lists(st.sampled_from(LEVELS), min_size=1, max_size=3).map("/".join)
patterns = st.lists(st.sampled_from((*LEVELS, "*", "a*", "*b", "?")), min_size=1, max_size=3).map("/".join)
places = st.sampled_from(((DEFAULT_STREAM, None), (DEFAULT_STREAM, "USD"), ("Sport", None), ("b", None), ("b", "USD")))


@st.composite
def subscriptions(draw: st.DrawFn) -> LegacySubscription:
    stream, point = draw(places)
    return LegacySubscription(
        source=MADE,
        topic=draw(st.one_of(topics, patterns)),
        queue=draw(st.sampled_from(("A.Q", "B.Q", "C.Q"))),
        stream=stream,
        sub_point=point,
        scheme=WildcardScheme.CHAR,
        format=draw(st.sampled_from(PublicationFormat)) if point is None else PublicationFormat.RFH2,
        user="anne",
    )


states = st.builds(
    LegacyState,
    qmgr=st.just("QM1"),
    streams=st.just((Stream(source=MADE, name="Sport"), Stream(source=MADE, name="b"))),
    sub_points=st.just((SubPoint(source=MADE, name="USD"),)),
    subscriptions=st.lists(subscriptions(), min_size=1, max_size=8).map(tuple),
    publishers=st.lists(
        st.builds(
            Publisher, source=st.just(MADE), topic=topics, stream=st.sampled_from((DEFAULT_STREAM, "Sport", "b"))
        ),
        max_size=8,
    ).map(tuple),
)


def expected(plan: MigrationPlan) -> dict[int, tuple[Counter[str], Counter[str]]]:
    """By number: the topics that a subscription sees now and did not before, and the reverse."""
    blocks = applied(plan, Target.fresh("QM1")).objects.topics.blocks()
    state = plan.state
    known = {(p.stream, "", p.topic) for p in state.publishers}
    for legacy in state.subscriptions:
        pattern = parse_pattern(legacy.topic, legacy.scheme)
        if not pattern.is_wild:
            known.add((legacy.stream, legacy.sub_point or "", pattern.literal))
    found: dict[int, tuple[Counter[str], Counter[str]]] = {}
    for step in plan.subscriptions:
        legacy = state.subscriptions[step.number - 1]
        own = parse_pattern(legacy.topic, legacy.scheme)
        now = parse_pattern(step.subscription.topic_string, step.subscription.wildcard)
        gained: Counter[str] = Counter()
        lost: Counter[str] = Counter()
        for stream, point, topic in known:
            prefix = "" if stream == DEFAULT_STREAM else f"{stream}/"
            whole = f"{prefix}{point}/{topic}" if point else f"{prefix}{topic}"
            saw = (legacy.stream, legacy.sub_point or "") == (stream, point) and own.matches(topic)
            sees = now.matches(whole) and not (now.is_wild and blocks.blocks(whole, now.literal_depth))
            shown = topic if stream == DEFAULT_STREAM else f"{stream}: {topic}"
            gained[shown] += sees and not saw
            lost[shown] += saw and not sees
        if gained.total() or lost.total():
            found[step.number] = (+gained, +lost)
    return found


@given(states, st.sampled_from((1, 2, 1000)))
def test_the_indexes_find_what_trying_one_by_one_finds(state: LegacyState, few: int) -> None:
    with patch.object(source_checks, "_FEW", few):
        plan = strmqbrk.plan(state, Target.fresh("QM1"), PlanOptions(), NOW)
    wanted = expected(plan)
    assert {view.key[1] for view in plan.visibility} == wanted.keys()
    for view in plan.visibility:
        for count, shown, all_topics in zip(
            (view.gained_count, view.lost_count), (view.gained, view.lost), wanted[view.key[1]], strict=True
        ):
            assert count == all_topics.total()
            assert len(shown) == min(count, source_checks.EXAMPLES)
            assert set(shown) <= set(all_topics)
