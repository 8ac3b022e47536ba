"""The character-based wildcard scheme (guide 2.5.1.1.2), and its widening (3.1.3)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from unittest import mock

import pytest
from hypothesis import given, strategies as st

from rfh2.errors import CommandError
from streams.patterns import (
    escape_char_pattern,
    has_char_wildcards,
    parse_char_pattern,
    parse_topic_pattern,
    widen_to_topic_pattern,
)
from streams.subscriptions import WildcardScheme
from tests.streams.nearly_fitting import pattern_and_topic

Selects = Callable[[str, WildcardScheme, str], bool]

CASES = [
    # id, pattern, selected, not selected
    ("2.5.1.1.2-results", "IBM/*/Results", ["IBM/Software/Results", "IBM/Patents/Software/Results"], ["IBM/Results"]),
    (
        "2.5.1.1.2-part-of-a-level",
        "IBM/*ware/Results",
        ["IBM/Software/Results", "IBM/ware/Results"],
        ["IBM/wares/Results"],
    ),
    ("2.5.1.1.2-everything", "*", ["a", "/", "a/b/c"], []),
    ("2.5.1.1.2-one-character", "a?c", ["abc", "a/c", "a?c"], ["ac", "abbc"]),
    ("2.5.1.1.2-one-code-point", "?", ["a", "/", "\u20ac", "\U0001f4c8"], ["ab"]),
    ("2.5.1.1.2-two-ends", "a*a", ["aa", "aba", "a/a"], ["a", "ab"]),
    ("2.5.1.1.2-greedy-or-not", "*ab*ab*b", ["ababb", "xabxabxb"], ["abab", "ababa"]),
    ("2.5.1.1.2-stars-in-a-row", "a**b", ["ab", "axb"], ["a", "b"]),
    ("2.5.1.1.2-at-least-one", "a?*", ["ab", "abc"], ["a"]),
    ("2.5.1.1.2-one-between-stars", "*?a?*", ["bab", "bcac", "aaa"], ["a", "ab", "ba"]),
    ("2.5.1.1.2-second-place-fits", "*a?b*", ["aaaab", "xaxb/"], ["ab", "axxb"]),
    ("2.5.1.1.2-one-at-the-end", "*abc?", ["abcd", "xabcd"], ["abc", "xabc"]),
    ("2.5.1.1.2-one-at-the-start", "?abc*", ["xabc", "/abcd"], ["abc", "abcd"]),
    ("2.5.1.1.2-too-short-for-the-ends", "*/?*/Results", ["/a/Results", "x/yz/Results"], ["/Results", "//Results"]),
    ("2.5.1.1.2-too-short-for-the-end", "*s?*sales", ["sxsales", "sassales"], ["sales", "ssales"]),
    ("2.5.1.1.2-fragments-do-not-overlap", "*ab?*?ba*", ["abxyba", "abxxabxba"], ["abxba", "abba"]),
    ("2.5.1.1.2-escaped-star", "a%*b", ["a*b"], ["ab", "aXb", "a%*b"]),
    ("2.5.1.1.2-escaped-question", "a%?*", ["a?", "a?b"], ["ab"]),
    ("2.5.1.1.2-escaped-escape", "100%%", ["100%"], ["100%%", "100"]),
    ("2.5.1.1.2-other-scheme", "a/#/+", ["a/#/+"], ["a/b/c"]),
    ("2.5.1.1.2-line-end", "a*b", ["a\nb", "a/\n/b"], []),
    ("2.5.1.1.2-no-wildcard", "IBM/Results", ["IBM/Results"], ["ibm/results", "IBM/Results/"]),
]


@pytest.mark.parametrize(("pattern", "selected", "others"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_a_pattern_selects(selects: Selects, pattern: str, selected: list[str], others: list[str]) -> None:
    parsed = parse_char_pattern(pattern)
    assert [topic for topic in selected + others if parsed.matches(topic)] == selected
    assert [topic for topic in selected + others if selects(pattern, WildcardScheme.CHAR, topic)] == selected


BAD = [
    pytest.param("", id="2.5.1.1.1-zero-length"),
    pytest.param("100% sure", id="2.5.1.1.2-escape-before-a-letter"),
    pytest.param("IBM/Diversity/%African American", id="2.5.1-example-of-a-topic-string-only"),
    pytest.param("100%", id="2.5.1.1.2-escape-at-the-end"),
    pytest.param("100%%%", id="2.5.1.1.2-escape-left-over"),
    pytest.param("*" * 10_241, id="over-10240-characters"),
]


@pytest.mark.parametrize("pattern", BAD)
def test_no_pattern_is_3072(pattern: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_char_pattern(pattern)
    assert caught.value.reason == 3072


LITERAL_LEVELS = [
    ("Sports/*", 1, "Sports", 7),
    ("Sports/Foot*", 1, "Sports", 11),
    ("Sports/Football/?", 2, "Sports/Football", 16),
    ("Sports*", 0, "", 6),
    ("*", 0, "", 0),
    ("a%*/b/*", 2, "a*/b", 5),
    ("Sports/Football", 2, "Sports/Football", 15),
]


@pytest.mark.parametrize(("pattern", "depth", "topic", "length"), LITERAL_LEVELS)
def test_what_stands_before_the_first_wildcard(pattern: str, depth: int, topic: str, length: int) -> None:
    parsed = parse_char_pattern(pattern)
    assert (parsed.literal_depth, parsed.literal_topic, parsed.literal_length) == (depth, topic, length)


WIDENED = [
    pytest.param("/aaa/bbb/c*d", "/aaa/bbb/#", id="3.1.3-example"),
    pytest.param("*", "#", id="3.1.3-everything"),
    pytest.param("a*", "#", id="3.1.3-first-level"),
    pytest.param("a/?", "a/#", id="3.1.3-question-mark"),
    pytest.param("a/b*/c/d", "a/#", id="3.1.3-rest-dropped"),
    pytest.param("a%*b/c*", "a*b/#", id="3.1.3-escape-taken-off"),
    pytest.param("a/b", "a/b", id="3.1.3-no-wildcard"),
]


@pytest.mark.parametrize(("pattern", "widened"), WIDENED)
def test_widening(pattern: str, widened: str) -> None:
    assert widen_to_topic_pattern(pattern) == widened


@st.composite
def char_patterns(draw: st.DrawFn) -> str:
    return "".join(draw(st.lists(st.sampled_from([*"ab/*?", "%*", "%?", "%%"]), min_size=1, max_size=12)))


TOPICS = st.text(alphabet="ab/*?%\0", min_size=1, max_size=12).filter(lambda topic: topic[0] != "\0")


@given(pattern=char_patterns(), topic=TOPICS)
def test_agrees_with_the_guides_words(selects: Selects, pattern: str, topic: str) -> None:
    assert parse_char_pattern(pattern).matches(topic) is selects(pattern, WildcardScheme.CHAR, topic)


@pytest.mark.parametrize("tries", [8, 0], ids=["searching", "walking"])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_the_guides_words_on_topics_that_nearly_fit(selects: Selects, seed: int, tries: int) -> None:
    random = Random(seed)
    selected = 0
    with mock.patch("streams.fragments._TRIES", tries):
        for pattern, topic in (pattern_and_topic(random) for _ in range(4000)):
            expected = selects(pattern, WildcardScheme.CHAR, topic)
            assert parse_char_pattern(pattern).matches(topic) is expected, (pattern, topic)
            selected += expected
    assert 1000 < selected < 3000


@given(pattern=char_patterns(), topic=TOPICS)
def test_widening_loses_nothing(pattern: str, topic: str) -> None:
    if parse_char_pattern(pattern).matches(topic):
        assert parse_topic_pattern(widen_to_topic_pattern(pattern)).matches(topic)


@given(topic=TOPICS, other=TOPICS)
def test_an_escaped_topic_selects_itself_alone(topic: str, other: str) -> None:
    pattern = escape_char_pattern(topic)
    assert not has_char_wildcards(pattern)
    assert parse_char_pattern(pattern).matches(topic)
    assert parse_char_pattern(pattern).matches(other) is (other == topic)


def test_a_pattern_of_many_wildcards_is_matched_in_reasonable_time() -> None:
    assert not parse_char_pattern("*a" * 2000 + "b").matches("a" * 10_000)
    assert not parse_char_pattern("*a?a" * 1000 + "b").matches("a" * 10_000)
