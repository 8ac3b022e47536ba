"""The topic-based wildcard scheme (guide 2.5.1.1.1)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from rfh2.errors import CommandError
from streams.patterns import check_publication_topic, has_topic_wildcards, parse_topic_pattern
from streams.subscriptions import WildcardScheme

Selects = Callable[[str, WildcardScheme, str], bool]

CASES = [
    # id, pattern, selected, not selected
    (
        "2.5.1.1.1-results",
        "IBM/+/Results",
        ["IBM/Software/Results", "IBM//Results"],
        ["IBM/Results", "IBM/a/b/Results"],
    ),
    ("2.5.1.1.1-alaska", "USA/Alaska/#", ["USA/Alaska", "USA/Alaska/Juneau"], ["USA", "USA/Alaskan"]),
    ("2.5.1.1.1-zero-levels", "USA/#", ["USA", "USA/", "USA/Alaska/Juneau"], ["USAF", "/USA", "U"]),
    ("2.5.1.1.1-multi-alone", "#", ["USA", "/", "USA/Alaska", "//"], []),
    ("2.5.1.1.1-multi-mixed", "USA#", ["USA#"], ["USA", "USA/Alaska", "USAF"]),
    ("2.5.1.1.1-single", "USA/+", ["USA/Alabama", "USA/"], ["USA", "USA/Alabama/Auburn"]),
    ("2.5.1.1.1-single-alone", "+", ["USA"], ["USA/Alabama", "/"]),
    ("2.5.1.1.1-single-mixed", "USA+", ["USA+"], ["USA", "USAF"]),
    ("2.5.1.1.1-single-first", "+/Alabama", ["USA/Alabama", "/Alabama"], ["Alabama", "a/b/Alabama"]),
    ("2.5.1.1.1-both", "+/Alabama/#", ["USA/Alabama", "USA/Alabama/Auburn"], ["Alabama", "USA"]),
    ("2.5.1.1.1-multi-first", "#/Results", ["Results", "IBM/Results", "IBM/Software/Results"], ["Results/IBM"]),
    (
        "2.5.4-multi-middle",
        "Sports/#/Arsenal",
        ["Sports/Arsenal", "Sports/a/b/Arsenal"],
        ["Arsenal", "Sports/Arsenal/a"],
    ),
    ("2.5.1.1.1-multi-twice", "#/b/#", ["b", "a/b", "b/c", "a/b/c"], ["a", "a/c"]),
    ("2.5.1.1.1-multi-in-a-row", "a/#/#/#/b", ["a/b", "a/x/b", "a/x/y/z/b"], ["a", "ab", "b"]),
    ("2.5.1.1.1-multi-then-single", "a/#/+", ["a/b", "a/b/c"], ["a"]),
    ("2.5.1.1.1-empty-then-multi", "/#", ["/", "/a", "//a"], ["a", "a/"]),
    ("2.5.1.1.1-trailing-empty", "a/#/", ["a/", "a/b/"], ["a", "a/b"]),
    (
        "2.5.1.1.1-not-wild",
        "level0/level1/#+/level4/level#",
        ["level0/level1/#+/level4/level#"],
        ["level0/level1/x/level4/y"],
    ),
    ("2.5.1.1.1-themselves", "##/++", ["##/++"], ["#/+", "a/b"]),
    ("2.5.1.1.1-no-escape", "%#/*", ["%#/*"], ["#/*", "a/b"]),
    ("2.5.1.1.1-no-wildcard", "USA/Alabama", ["USA/Alabama"], ["usa/alabama", "USA/Alabama/", "USA//Alabama"]),
]


@pytest.mark.parametrize(("pattern", "selected", "others"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_a_pattern_selects(selects: Selects, pattern: str, selected: list[str], others: list[str]) -> None:
    parsed = parse_topic_pattern(pattern)
    assert [topic for topic in selected + others if parsed.matches(topic)] == selected
    assert [topic for topic in selected + others if selects(pattern, WildcardScheme.TOPIC, topic)] == selected


LITERAL_LEVELS = [
    ("Sports/#", 1, "Sports", 7),
    ("Sports/+/Arsenal", 1, "Sports", 7),
    ("Sports/Football/#", 2, "Sports/Football", 16),
    ("#", 0, "", 0),
    ("/#", 1, "", 1),
    ("Sports/Football", 2, "Sports/Football", 15),
]


@pytest.mark.parametrize(("pattern", "depth", "topic", "length"), LITERAL_LEVELS)
def test_what_stands_before_the_first_wildcard(pattern: str, depth: int, topic: str, length: int) -> None:
    parsed = parse_topic_pattern(pattern)
    assert (parsed.literal_depth, parsed.literal_topic, parsed.literal_length) == (depth, topic, length)


PUBLISHABLE = [
    pytest.param("level0/level1/#+/level4/level#", True, id="2.5.1.1.1-mixed-in-a-level"),
    pytest.param("level0/level1/+/level4/#", False, id="2.5.1.1.1-alone-in-a-level"),
    pytest.param("IBM/Business Area#/Results", True, id="2.5.1-example"),
    pytest.param("#", False, id="multi-alone"),
    pytest.param("a/+", False, id="single-last"),
    pytest.param("a*b?c%", True, id="other-scheme"),
]


@pytest.mark.parametrize(("topic_string", "publishable"), PUBLISHABLE)
def test_publications_may_not_be_to_wildcards(topic_string: str, publishable: bool) -> None:
    assert has_topic_wildcards(topic_string) is not publishable
    if publishable:
        assert check_publication_topic(topic_string) == topic_string
    else:
        with pytest.raises(CommandError) as caught:
            check_publication_topic(topic_string)
        assert caught.value.reason == 3072


def levels(*alphabet: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(alphabet), min_size=1, max_size=6).map("/".join).filter(bool)


@given(pattern=levels("a", "b", "", "+", "#", "a+"), topic=levels("a", "b", "", "a+"))
def test_agrees_with_the_guides_words(selects: Selects, pattern: str, topic: str) -> None:
    assert parse_topic_pattern(pattern).matches(topic) is selects(pattern, WildcardScheme.TOPIC, topic)


@st.composite
def patterns_and_topics(draw: st.DrawFn) -> tuple[str, str]:
    """A pattern, and a topic made of it with a level too few or too many here and there."""
    pattern = draw(levels("a", "b", "", "+", "#", "a", "b"))
    topic: list[str] = []
    for level in pattern.split("/"):
        stands_for = {"#": [[], ["a"], ["b", "a"]], "+": [["a"], ["b"], []]}.get(level, [[level], [level], [], ["a"]])
        topic += draw(st.sampled_from(stands_for))
    return pattern, "/".join(topic) or "a"


@given(patterns_and_topics())
def test_agrees_with_the_guides_words_on_topics_that_nearly_fit(selects: Selects, both: tuple[str, str]) -> None:
    pattern, topic = both
    assert parse_topic_pattern(pattern).matches(topic) is selects(pattern, WildcardScheme.TOPIC, topic)


@given(pattern=levels("a", "+", "#"), topic=levels("a", "b"))
def test_several_multi_levels_have_the_effect_of_one(pattern: str, topic: str) -> None:
    doubled = pattern.replace("#", "#/#")
    assert parse_topic_pattern(doubled).matches(topic) is parse_topic_pattern(pattern).matches(topic)


def test_a_pattern_of_many_wildcards_is_matched_in_reasonable_time() -> None:
    pattern = parse_topic_pattern("/".join(["#", "a"] * 60))
    assert not pattern.matches("/".join(["a"] * 300 + ["b"]))
