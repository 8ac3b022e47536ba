"""Retained publications (guide 2.3.2, 4.8.2): one a topic, found under both wildcard schemes, gone when expired."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from streams.operations import Publication, RetainedPublication
from streams.patterns import parse_pattern
from streams.retained import RetainedPublications
from streams.subscriptions import WildcardScheme
from streams.topic_strings import BlockSet

Publish = Callable[..., Publication]
Reaches = Callable[[str, WildcardScheme, str, Collection[str]], bool]

T, C = WildcardScheme.TOPIC, WildcardScheme.CHAR


def filled(publication: Publish, *topics: str) -> RetainedPublications:
    held = RetainedPublications()
    for topic in topics:
        held.store(RetainedPublication(topic, publication(topic)))
    return held


def topics(found: Collection[RetainedPublication]) -> list[str]:
    return [retained.topic_string for retained in found]


def joined(*alphabet: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(alphabet), min_size=1, max_size=5).map("/".join).filter(bool)


PATTERNS = st.one_of(
    st.tuples(joined("a", "b", "bc", "", "+", "#"), st.just(T)),
    st.tuples(st.text(alphabet="abc/*?", min_size=1, max_size=8), st.just(C)),
)


HELD = [
    "Sports",
    "Sports/Football",
    "Sports/Football/Arsenal",
    "Sports/Rugby/Leeds",
    "Sports//Leeds",
    "/Leeds",
    "Leeds",
]

FOUND = [
    pytest.param("Sports/#", T, HELD[:5], id="2.5.1.1.1-multi-last"),
    pytest.param("#/Leeds", T, HELD[3:], id="2.5.1.1.1-multi-first"),
    pytest.param("Sports/#/Leeds", T, HELD[3:5], id="2.5.1.1.1-multi-middle"),
    pytest.param("Sports/#/Football/#", T, HELD[1:3], id="2.5.1.1.1-multi-twice"),
    pytest.param("#/+/Leeds", T, HELD[3:6], id="2.5.1.1.1-multi-then-single"),
    pytest.param("+/Football", T, HELD[1:2], id="2.5.1.1.1-single-first"),
    pytest.param("Sports/+", T, HELD[1:2], id="2.5.1.1.1-single-last"),
    pytest.param("+", T, [HELD[0], HELD[6]], id="2.5.1.1.1-single-alone"),
    pytest.param("/#", T, HELD[5:6], id="2.5.1.1.1-empty-level"),
    pytest.param("#", T, HELD, id="2.5.1.1.1-everything"),
    pytest.param("*", C, HELD, id="2.5.1.1.2-everything"),
    pytest.param("Sports*", C, HELD[:5], id="2.5.1.1.2-first-level"),
    pytest.param("Sports/F*", C, HELD[1:3], id="2.5.1.1.2-part-of-a-level"),
    pytest.param("Sports/Football/*", C, HELD[2:3], id="2.5.1.1.2-whole-levels"),
    pytest.param("*Leeds", C, HELD[3:], id="2.5.1.1.2-ending"),
    pytest.param("Tennis/*", C, [], id="2.5.1.1.2-no-such-level"),
    pytest.param("Leeds", C, HELD[6:], id="2.5.1.1.2-no-wildcard"),
]


@pytest.mark.parametrize(("pattern", "scheme", "expected"), FOUND)
def test_what_a_pattern_finds(
    pattern: str, scheme: WildcardScheme, expected: list[str], publication: Publish, now: datetime
) -> None:
    held = filled(publication, *reversed(HELD))
    assert topics(held.match(parse_pattern(pattern, scheme), now)) == sorted(expected)


@given(
    stored=st.lists(joined("a", "b", "bc", ""), max_size=15),
    cleared=st.lists(joined("a", "b", "bc", ""), max_size=5),
    pattern=PATTERNS,
    blocking=st.frozensets(joined("a", "b"), max_size=2),
)
def test_a_look_up_finds_what_the_guides_words_find(
    reaches: Reaches,
    publication: Publish,
    now: datetime,
    stored: list[str],
    cleared: list[str],
    pattern: tuple[str, WildcardScheme],
    blocking: frozenset[str],
) -> None:
    held = filled(publication, *stored)
    still = set(stored)
    for topic in cleared:
        assert held.clear(topic) is (topic in still)
        still.discard(topic)
    left = sorted(still)
    assert topics(list(held)) == left
    found = held.match(parse_pattern(*pattern), now, BlockSet(blocking))
    assert topics(found) == [topic for topic in left if reaches(*pattern, topic, blocking)]


def test_a_topic_keeps_one_publication(publication: Publish, now: datetime) -> None:
    """2.3.2: "The queue manager can retain only one publication for each topic"."""
    held = filled(publication, "a")
    second = RetainedPublication("a", publication("second"))
    held.store(second)
    assert (len(held), held.get("a", now)) == (1, second)


def test_an_empty_publication_is_retained_like_any_other(publication: Publish, now: datetime) -> None:
    """Unlike MQTT's, it does not delete what was retained."""
    held = filled(publication, "a")
    held.store(RetainedPublication("a", publication("")))
    assert topics(held.match(parse_pattern("a", T), now)) == ["a"]


def test_an_expired_one_is_gone_at_once_and_said_to_be_when_asked(publication: Publish, now: datetime) -> None:
    held = RetainedPublications()
    later = now + timedelta(seconds=10)
    held.store(RetainedPublication("a/1", publication(expires_at=later)))
    held.store(RetainedPublication("a/2", publication()))
    just_before = later - timedelta(microseconds=1)
    assert topics(held.match(parse_pattern("a/#", T), just_before)) == ["a/1", "a/2"]
    assert held.expire(just_before) == []
    assert topics(held.match(parse_pattern("a/#", T), later)) == ["a/2"]
    assert held.get("a/1", later) is None
    assert held.expire(later) == ["a/1"]
    assert held.expire(later) == []
    assert topics(list(held)) == ["a/2"]


def test_the_expiry_of_a_publication_since_replaced_takes_nothing_out(publication: Publish, now: datetime) -> None:
    held = RetainedPublications()
    soon, late = now + timedelta(seconds=1), now + timedelta(seconds=100)
    for expires_at in (soon, late, None):
        held.store(RetainedPublication("a", publication(expires_at=expires_at)))
    assert held.expire(late) == []
    held.store(RetainedPublication("a", publication(expires_at=late)))
    assert held.expire(soon) == []
    assert held.expire(late) == ["a"]


def test_publishing_again_and_again_with_an_expiry_does_not_grow(publication: Publish, now: datetime) -> None:
    held = RetainedPublications()
    for second in range(1000):
        held.store(RetainedPublication("a", publication(expires_at=now + timedelta(seconds=second))))
    assert len(held._expiries) < 100
    assert held.expire(now + timedelta(seconds=998)) == []
    assert held.expire(now + timedelta(seconds=999)) == ["a"]


def test_a_cleared_topic_leaves_no_node_behind(publication: Publish) -> None:
    held = filled(publication, "a/b/c", "a/b", "a/x/y/z")
    assert held.clear("a/x/y/z")
    assert held.clear("a/b")
    assert not held.clear("a/b")
    assert list(held._root.children["a"].children) == ["b"]
    assert held.clear("a/b/c")
    assert held._root.children == {}


def test_a_topic_of_very_many_levels(publication: Publish, now: datetime) -> None:
    deep = "/" * 10_000
    held = filled(publication, deep)
    assert topics(held.match(parse_pattern("#", T), now)) == [deep]
    assert topics(held.match(parse_pattern("/+/#", T), now)) == [deep]
    assert topics(held.match(parse_pattern("/*", C), now)) == [deep]
    assert held.clear(deep)


def test_a_look_up_walks_only_where_the_pattern_leads(publication: Publish, now: datetime) -> None:
    """The cost grows with what the pattern can lead to, not with all that is retained: siblings are not visited."""
    held = filled(publication, *(f"{n}/{m}" for n in range(50) for m in range(50)), "x/1", "x/2")
    for node in held._root.children:
        if node != "x":
            held._root.children[node] = None  # type: ignore[assignment]
    assert topics(held.match(parse_pattern("x/+", T), now)) == ["x/1", "x/2"]
    assert topics(held.match(parse_pattern("x/#", T), now)) == ["x/1", "x/2"]
    assert topics(held.match(parse_pattern("x*", C), now)) == ["x/1", "x/2"]
    assert topics(held.match(parse_pattern("x/?", C), now)) == ["x/1", "x/2"]


def test_a_deep_topic_and_patterns_of_many_wildcards(publication: Publish, now: datetime) -> None:
    deep, many = "/".join(["a"] * 5_000), "/".join(["#", "a"] * 1_000)
    held = filled(publication, deep)
    for pattern in [many, "a/#/a", "+/#/+", "#/" + "/".join(["+"] * 4_000)]:
        assert [kept.topic_string for kept in held.match(parse_pattern(pattern, T), now)] == [deep]
    assert not held.match(parse_pattern(many + "/b", T), now)
    assert [kept.topic_string for kept in held.match(parse_pattern("*/a?a*", C), now)] == [deep]
    assert held.clear(deep)
    assert not list(held)
