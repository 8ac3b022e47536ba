"""Topic strings (guide 2.5.1, 2.5.2): levels, construction, prefixes, validity."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from rfh2.errors import CommandError
from streams.topic_strings import (
    add_prefix,
    check_topic_string,
    construct_topic_string,
    is_within,
    join_levels,
    remove_prefix,
    split_levels,
)

LEVELS = [
    pytest.param("USA", ("USA",), id="2.5.3-root"),
    pytest.param("USA/Alabama/Auburn", ("USA", "Alabama", "Auburn"), id="2.5.3-three-levels"),
    pytest.param("/USA", ("", "USA"), id="2.5.1-leading-empty-level"),
    pytest.param("USA/", ("USA", ""), id="2.5.1-trailing-empty-level"),
    pytest.param("a///b", ("a", "", "", "b"), id="2.5.1-empty-levels"),
    pytest.param("/", ("", ""), id="2.5.1.1.1-separator-alone"),
]


@pytest.mark.parametrize(("topic_string", "levels"), LEVELS)
def test_levels(topic_string: str, levels: tuple[str, ...]) -> None:
    assert split_levels(topic_string) == levels
    assert join_levels(levels) == topic_string


@given(st.text(alphabet="ab/ ", min_size=1))
def test_split_and_join_are_inverse(topic_string: str) -> None:
    assert join_levels(split_levels(topic_string)) == topic_string


CONSTRUCTED = [
    pytest.param("Football/Scores", " ", "Football/Scores", id="2.5.2-topicstr-alone"),
    pytest.param(" ", "Football/Scores", "Football/Scores", id="2.5.2-object-string-alone"),
    pytest.param("Football", "Scores", "Football/Scores", id="2.5.2-separator-added"),
    pytest.param("Football", "/Scores", "Football//Scores", id="2.5.2-empty-node-between"),
    pytest.param("/Football", "Scores", "/Football/Scores", id="2.5.2-empty-node-first"),
    pytest.param("", "Scores", "Scores", id="2.5.2-length-zero"),
    pytest.param("Football", None, "Football", id="2.5.2-no-object-string"),
    pytest.param("Football", "\0Scores", "Football", id="2.5.2-null-first-is-absent"),
    pytest.param("Football", " Scores", "Football", id="2.5.2-blank-first-is-absent"),
    pytest.param("Football ", "Scores", "Football /Scores", id="2.5.2-blank-elsewhere-stays"),
]


@pytest.mark.parametrize(("topicstr", "object_string", "full"), CONSTRUCTED)
def test_construction(topicstr: str | None, object_string: str | None, full: str) -> None:
    assert construct_topic_string(topicstr, object_string) == full


@pytest.mark.parametrize(("topicstr", "object_string"), [("", ""), (None, None), (" ", "\0"), (None, " a")])
def test_construction_from_nothing_is_2425(topicstr: str | None, object_string: str | None) -> None:
    with pytest.raises(CommandError) as caught:
        construct_topic_string(topicstr, object_string)
    assert caught.value.reason == 2425


PREFIXED = [
    pytest.param("xyz", "Soccer/Results", "xyz/Soccer/Results", id="6.1-figure-1"),
    pytest.param("USD", "NYSE/IBM/SPOT", "USD/NYSE/IBM/SPOT", id="6.2-subscription-point"),
    pytest.param("", "Soccer/Results", "Soccer/Results", id="6.1-default-stream"),
    pytest.param("Sport", " x", "Sport/ x", id="6.1-blank-first-is-a-topic"),
    pytest.param("Sport", "/x", "Sport//x", id="6.1-empty-level-first"),
]


@pytest.mark.parametrize(("prefix", "topic_string", "full"), PREFIXED)
def test_prefix(prefix: str, topic_string: str, full: str) -> None:
    assert add_prefix(prefix, topic_string) == full
    assert remove_prefix(prefix, full) == topic_string


@given(prefix=st.text(alphabet="ab/"), topic_string=st.text(alphabet="ab/ ", min_size=1))
def test_a_prefix_comes_off_again(prefix: str, topic_string: str) -> None:
    assert remove_prefix(prefix, add_prefix(prefix, topic_string)) == topic_string


def test_a_prefix_that_is_not_there_stays_off() -> None:
    assert remove_prefix("Sport", "Sports/Soccer") == "Sports/Soccer"
    assert remove_prefix("Sport", "Sport") == ""


WITHIN = [("", "a", True), ("a", "a", True), ("a", "a/b", True), ("a", "ab", False), ("a/b", "a", False)]


@pytest.mark.parametrize(("prefix", "topic_string", "within"), WITHIN)
def test_within_is_by_whole_levels(prefix: str, topic_string: str, within: bool) -> None:
    assert is_within(prefix, topic_string) is within


VALID = ["a", "/", " ", "a" * 10_240, "IBM/Business Area#/Results", "IBM/Diversity/%African American"]


@pytest.mark.parametrize("topic_string", VALID, ids=lambda s: s[:20])
def test_valid(topic_string: str) -> None:
    assert check_topic_string(topic_string) == topic_string


INVALID = [
    pytest.param(None, id="2.5.1.1.1-null"),
    pytest.param("", id="2.5.1.1.1-zero-length"),
    pytest.param("\0abc", id="2.5.2-null-character-first"),
    pytest.param("a" * 10_241, id="6.7.4-over-10240-characters"),
]


@pytest.mark.parametrize("topic_string", INVALID)
def test_invalid_is_3072(topic_string: str | None) -> None:
    with pytest.raises(CommandError) as caught:
        check_topic_string(topic_string)
    assert caught.value.reason == 3072
