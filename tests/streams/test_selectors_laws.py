"""The laws of three-valued logic, and generated selection strings against a meaning made beside them: guide 2.4.3."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from hypothesis import given, strategies as st

from streams.selectors import Lookup, Value, compile_selector
from streams.selectors.compile import compile_condition
from streams.selectors.parse import parse

Truth = bool | None
T = TypeVar("T")
NAMES = ("a", "b", "c", "Root.MQMD.Priority")
TEXTS = st.text(alphabet="ab%_!'\n", max_size=4)
INTEGERS = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))
FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    INTEGERS,
    FLOATS,
    st.just(math.nan),
    TEXTS,
    st.binary(min_size=1, max_size=2),
)


def lookup_of(properties: Mapping[str, Value | None]) -> Lookup:
    return lambda name: properties.get(name.removeprefix("usr."))


PROPERTIES = st.fixed_dictionaries(dict.fromkeys(NAMES[:3], VALUES) | {NAMES[3]: st.integers(-1, 9)}).map(lookup_of)


@dataclass(frozen=True)
class Piece(Generic[T]):
    """A part of a selection string, and what it means: made together, so that neither is derived from the other."""

    text: str
    meaning: Callable[[Lookup], T]


def canonical(name: str) -> str:
    return name if "." in name else f"usr.{name}"


def name_piece(name: str) -> Piece[Value | None]:
    return Piece(name, lambda lookup: lookup(canonical(name)))


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def constant(text: str, value: Value) -> Piece[Value | None]:
    return Piece(text, lambda lookup: value)


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def same_kind(left: object, right: object) -> bool:
    if is_number(left) and is_number(right):
        return True
    return type(left) is type(right) and isinstance(left, bool | str | bytes)


names = st.sampled_from(NAMES).map(name_piece)
loose_names = st.sampled_from(NAMES[:3]).map(name_piece)
numbers = st.one_of(
    INTEGERS.filter(lambda value: value > -(2**63)).map(lambda value: constant(str(value), value)),
    FLOATS.map(lambda value: constant(repr(value), value)),
    st.integers(0, 99).map(lambda value: constant(hex(value), value)),
)
strings = TEXTS.map(lambda text: constant(quoted(text), text))
byte_strings = st.binary(min_size=1, max_size=2).map(lambda data: constant(f'"0x{data.hex()}"', data))
booleans = st.booleans().map(lambda value: constant(str(value).upper(), value))


def calculated(left: object, operator: str, right: object) -> int | float | None:
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return None
    if isinstance(left, bool) or isinstance(right, bool) or (operator == "/" and right == 0):
        return None
    exact = isinstance(left, int) and isinstance(right, int)
    try:
        if operator == "/" and exact:
            sign = 1 if (left >= 0) == (right >= 0) else -1
            result = sign * (abs(left) // abs(right))
        else:
            result = {"+": left + right, "-": left - right, "*": left * right}.get(operator) or (
                left / right if operator == "/" else 0
            )
    except OverflowError:
        return None
    if exact:
        return result if -(2**63) <= result < 2**63 else None
    return result if math.isfinite(result) else None


def arithmetic(parts: tuple[Piece[Value | None], str, Piece[Value | None]]) -> Piece[Value | None]:
    left, operator, right = parts
    return Piece(
        f"({left.text} {operator} {right.text})",
        lambda lookup: calculated(left.meaning(lookup), operator, right.meaning(lookup)),
    )


numeric: st.SearchStrategy[Piece[Value | None]] = st.recursive(
    st.one_of(names, numbers),
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(arithmetic),
    max_leaves=4,
)


def is_null(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def compared(left: Value | None, operator: str, right: Value | None) -> Truth:
    if is_null(left) or is_null(right):
        return None
    if not same_kind(left, right):
        return False
    if operator in ("=", "<>"):
        return (left == right) is (operator == "=")
    if not is_number(left):
        return False
    assert isinstance(left, int | float)
    assert isinstance(right, int | float)
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator]


def comparison(parts: tuple[Piece[Value | None], str, Piece[Value | None]]) -> Piece[Truth]:
    left, operator, right = parts
    return Piece(
        f"{left.text}{operator}{right.text}",
        lambda lookup: compared(left.meaning(lookup), operator, right.meaning(lookup)),
    )


def fails(outcome: Truth) -> Truth:
    return None if outcome is None else not outcome


def both(left: Truth, right: Truth) -> Truth:
    if left is False or right is False:
        return False
    return True if left is True and right is True else None


def either(left: Truth, right: Truth) -> Truth:
    return fails(both(fails(left), fails(right)))


def between(parts: tuple[Piece[Value | None], bool, Piece[Value | None], Piece[Value | None]]) -> Piece[Truth]:
    subject, positive, low, high = parts

    def meaning(lookup: Lookup) -> Truth:
        value = subject.meaning(lookup)
        bottom, top = low.meaning(lookup), high.meaning(lookup)
        if positive:
            return both(compared(value, ">=", bottom), compared(value, "<=", top))
        return either(compared(value, "<", bottom), compared(value, ">", top))

    return Piece(f"{subject.text} {'' if positive else 'NOT '}BETWEEN {low.text} AND {high.text}", meaning)


def membership(parts: tuple[Piece[Value | None], bool, list[Piece[Value | None]]]) -> Piece[Truth]:
    subject, positive, elements = parts

    def meaning(lookup: Lookup) -> Truth:
        value, found = subject.meaning(lookup), False
        if not isinstance(value, str):
            return None
        for element in elements:
            found = found or value == element.meaning(lookup)
        return found is positive

    listed = ", ".join(element.text for element in elements)
    return Piece(f"{subject.text} {'' if positive else 'not '}in ({listed})", meaning)


def fits(value: str, pattern: str, escape: str) -> bool:
    """LIKE by recursion over the pattern."""
    if not pattern:
        return not value
    if pattern[0] == escape:
        return bool(value) and value[0] == pattern[1] and fits(value[1:], pattern[2:], escape)
    if pattern[0] == "%":
        return any(fits(value[i:], pattern[1:], escape) for i in range(len(value) + 1))
    return bool(value) and pattern[0] in ("_", value[0]) and fits(value[1:], pattern[1:], escape)


def likeness(parts: tuple[Piece[Value | None], bool, str]) -> Piece[Truth]:
    subject, positive, pattern = parts

    def meaning(lookup: Lookup) -> Truth:
        value = subject.meaning(lookup)
        return fits(value, pattern, "!") is positive if isinstance(value, str) else None

    return Piece(f"{subject.text} {'' if positive else 'NOT '}LIKE {quoted(pattern)} ESCAPE '!'", meaning)


def nullness(parts: tuple[Piece[Value | None], bool]) -> Piece[Truth]:
    subject, positive = parts
    return Piece(
        f"{subject.text} IS {'' if positive else 'NOT '}NULL",
        lambda lookup: (subject.meaning(lookup) is None) is positive,
    )


def alone(subject: Piece[Value | None]) -> Piece[Truth]:
    def meaning(lookup: Lookup) -> Truth:
        value = subject.meaning(lookup)
        return None if is_null(value) else value is True

    return Piece(subject.text, meaning)


patterns = st.lists(st.sampled_from(["a", "b", "'", "\n", "%", "_", "!%", "!_", "!!"]), max_size=5).map("".join)
lists = st.lists(strings, min_size=1, max_size=3)
operators = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
equalities = st.sampled_from(["=", "<>"])
predicates: st.SearchStrategy[Piece[Truth]] = st.one_of(
    st.tuples(numeric, operators, numeric).map(comparison),
    st.tuples(loose_names, equalities, st.one_of(strings, byte_strings, booleans)).map(comparison),
    st.tuples(st.one_of(strings, byte_strings, booleans), equalities, loose_names).map(comparison),
    st.tuples(numeric, st.booleans(), numeric, numeric).map(between),
    st.tuples(loose_names, st.booleans(), lists).map(membership),
    st.tuples(loose_names, st.booleans(), patterns).map(likeness),
    st.tuples(names, st.booleans()).map(nullness),
    loose_names.map(alone),
)


def negation(inner: Piece[Truth]) -> Piece[Truth]:
    return Piece(f"NOT ({inner.text})", lambda lookup: fails(inner.meaning(lookup)))


def chain(parts: tuple[str, list[Piece[Truth]]]) -> Piece[Truth]:
    word, pieces = parts
    join = both if word == "AND" else either

    def meaning(lookup: Lookup) -> Truth:
        outcome = pieces[0].meaning(lookup)
        for piece in pieces[1:]:
            outcome = join(outcome, piece.meaning(lookup))
        return outcome

    return Piece(f" {word} ".join(f"({piece.text})" for piece in pieces), meaning)


conditions: st.SearchStrategy[Piece[Truth]] = st.recursive(
    predicates,
    lambda inner: st.one_of(
        inner.map(negation),
        st.tuples(st.sampled_from(["AND", "OR"]), st.lists(inner, min_size=2, max_size=4)).map(chain),
    ),
    max_leaves=8,
)


@given(conditions, PROPERTIES)
def test_a_generated_selection_string_selects_what_it_means(piece: Piece[Truth], lookup: Lookup) -> None:
    anchored = f"a IS NULL AND a IS NOT NULL OR {piece.text}"
    assert compile_selector(anchored).matches(lookup) is (piece.meaning(lookup) is True)


@given(conditions, PROPERTIES)
def test_a_condition_is_true_false_or_unknown_as_it_means(piece: Piece[Truth], lookup: Lookup) -> None:
    condition, _ = parse(piece.text)
    for wanted in (True, False):
        assert compile_condition(condition, wanted)(lookup) is (piece.meaning(lookup) is wanted)


@given(st.text(alphabet="ab_%\n", max_size=12), patterns)
def test_like_is_what_it_says(value: str, pattern: str) -> None:
    selector = compile_selector(f"a LIKE {quoted(pattern)} ESCAPE '!'")
    assert selector.matches(lambda name: value) is fits(value, pattern, "!")
