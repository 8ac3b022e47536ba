"""Which spelling keeps a subscription from a topic, and which does not."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from commands.explain.why.near import folded, spellings
from commands.explain.why.verdict import Reason
from streams.subscriptions import WildcardScheme
from streams.topic_strings import SEPARATOR

TOPIC, CHAR = WildcardScheme.TOPIC, WildcardScheme.CHAR
CASE, BLANK, SLASH = Reason.CASE, Reason.BLANK, Reason.SLASH

SPELLINGS: list[tuple[str, WildcardScheme, str, tuple[Reason, ...]]] = [
    ("Sport/Soccer", TOPIC, "Sport/soccer", (CASE,)),
    ("SPORT/#", TOPIC, "Sport/Soccer", (CASE,)),
    ("SPORT/*", CHAR, "Sport/Soccer", (CASE,)),
    ("Sport/Soccer ", TOPIC, "Sport/Soccer", (BLANK,)),
    ("Sport / Soccer", TOPIC, "Sport/Soccer", (BLANK,)),
    ("New  York", TOPIC, "New York", (BLANK,)),
    ("Sport/Soccer\0\0", CHAR, "Sport/Soccer", (BLANK,)),
    ("Sport/Soccer\N{NO-BREAK SPACE}", TOPIC, "Sport/Soccer", (BLANK,)),
    ("/Sport/Soccer", TOPIC, "Sport/Soccer", (SLASH,)),
    ("Sport/Soccer", TOPIC, "Sport/Soccer/", (SLASH,)),
    ("Sport//Soccer", CHAR, "Sport/Soccer", (SLASH,)),
    ("/sport/soccer", TOPIC, "Sport/Soccer", (CASE, SLASH)),
    ("/ sport/+", TOPIC, "Sport/Soccer", (CASE, BLANK, SLASH)),
    ("NewYork", TOPIC, "New York", ()),
    ("Sport/Tennis", TOPIC, "Sport/Soccer", ()),
    ("Sport", TOPIC, "Sport/Soccer", ()),
    ("/", TOPIC, "Sport", ()),
    ("100%", CHAR, "100", ()),
]


@pytest.mark.parametrize(("written", "scheme", "topic", "expected"), SPELLINGS)
def test_the_fewest_spellings_that_matter(
    written: str, scheme: WildcardScheme, topic: str, expected: tuple[Reason, ...]
) -> None:
    assert spellings(written, scheme, topic) == expected


@pytest.mark.parametrize(("written", "scheme", "topic", "expected"), SPELLINGS)
def test_what_differs_in_spelling_only_has_the_same_folded_text(
    written: str, scheme: WildcardScheme, topic: str, expected: tuple[Reason, ...]
) -> None:
    if expected and not any(wild in written for wild in "#+*"):
        assert folded(written) == folded(topic)


@given(st.text("aA b/\0", max_size=12))
def test_folding_twice_changes_nothing(text: str) -> None:
    once = folded(text)
    assert folded(once) == once
    assert "" not in once.split(SEPARATOR) or once == ""
