"""Selection strings that no message can meet, and that say so only when they are thought through."""

from __future__ import annotations

import pytest
from hypothesis import given

from streams.selectors import Lookup, compile_selector
from streams.selectors.contradictions import contradiction
from streams.selectors.errors import Refusal
from streams.selectors.parse import parse
from tests.streams.test_selectors_laws import PROPERTIES, Piece, Truth, conditions

# fmt: off
NEVER = [
    ("two-values", "Colour = 'red' AND Colour = 'blue'", "usr.Colour"),
    ("two-values-turned-round", "'red' = Colour AND Colour IN ('blue', 'green')", "usr.Colour"),
    ("two-kinds", "Size = 'x' AND Size > 1", "usr.Size"),
    ("an-empty-range", "Size > 5 AND Size < 3", "usr.Size"),
    ("an-open-range", "Size > 5 AND Size <= 5", "usr.Size"),
    ("between-the-wrong-way-round", "Size BETWEEN 9 AND 1", "usr.Size"),
    ("a-value-outside-the-range", "Size = 1 AND Size >= 2", "usr.Size"),
    ("a-value-that-is-excluded", "Colour = 'red' AND NOT Colour = 'red'", "usr.Colour"),
    ("values-that-are-excluded", "Colour IN ('a', 'b') AND Colour NOT IN ('a', 'b', 'c')", "usr.Colour"),
    ("null-with-a-value", "Colour IS NULL AND Colour = 'red'", "usr.Colour"),
    ("null-and-not-null", "Colour IS NULL AND Colour IS NOT NULL", "usr.Colour"),
    ("a-value-unlike-its-pattern", "Colour = 'red' AND Colour LIKE 'b%'", "usr.Colour"),
    ("every-alternative", "Size = 1 AND Size = 2 OR Colour = 'a' AND Colour = 'b'", "usr.Size"),
    ("within-not", "NOT (Size <> 1 OR Size IS NULL) AND Size IS NULL", "usr.Size"),
    ("a-priority-that-is-none", "Root.MQMD.Priority > 9", "Root.MQMD.Priority"),
    ("a-boolean", "Urgent AND Urgent = FALSE", "usr.Urgent"),
    ("distributed", "Size = 1 AND (Size = 2 OR Size = 3)", "usr.Size"),
]
MAYBE = [
    ("one-value", "Colour = 'red'"),
    ("two-properties", "Colour = 'red' AND Shade = 'blue'"),
    ("one-alternative", "Size = 1 AND Size = 2 OR Size = 3"),
    ("a-range", "Size > 1 AND Size < 3"),
    ("a-point", "Size >= 5 AND Size <= 5"),
    ("not-another", "Colour = 'red' AND Colour <> 'blue'"),
    ("another-kind-is-not-equal", "NOT (Size = 'x') AND Size > 1"),
    ("null", "Colour IS NULL OR Colour = 'red'"),
    ("not-unequal-may-be-another-kind", "NOT (Size <> 1) AND Size > 1"),
    ("calculated", "Size + 1 = 1 AND Size = 7"),
    ("many-alternatives", " AND ".join("(a = 1 OR b = 2)" for _ in range(20))),
    ("blank", "  "),
]
# fmt: on


@pytest.mark.parametrize(("text", "name"), [pytest.param(*rest, id=f"2.4.3-{case}") for case, *rest in NEVER])
def test_no_message_meets_it(text: str, name: str) -> None:
    assert contradiction(text) == name


@pytest.mark.parametrize("text", [pytest.param(text, id=f"2.4.3-{case}") for case, text in MAYBE])
def test_a_message_may_meet_it(text: str) -> None:
    assert contradiction(text) is None


def test_a_text_that_is_no_selection_string() -> None:
    with pytest.raises(Refusal):
        contradiction("Size =")


@given(conditions, PROPERTIES)
def test_what_is_said_to_be_never_true_is_true_of_nothing(piece: Piece[Truth], lookup: Lookup) -> None:
    if not parse(piece.text)[1]:
        return
    if contradiction(piece.text) is not None:
        assert not compile_selector(piece.text).matches(lookup)
