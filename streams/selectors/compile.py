"""Selection strings as closures, because each one is applied to many messages (guide 2.4.3).

Only a condition that is TRUE selects a message, so UNKNOWN can be compiled away. Each condition is compiled for the
outcome that is *wanted*: "is it TRUE?" or, under a NOT, "is it FALSE?", and each answer is a plain bool:

    NOT c wanted TRUE      ->  c wanted FALSE
    a AND b wanted TRUE    ->  a wanted TRUE and b wanted TRUE
    a AND b wanted FALSE   ->  a wanted FALSE or b wanted FALSE
    p > 5 wanted FALSE     ->  p is neither NULL nor a number greater than 5

No NOT is left at run time, AND and OR stop at the first operand that decides, and a comparison of a property with a
literal is one closure. SQL's three-valued logic (guide 2.4.3):

- A comparison with NULL is UNKNOWN, and NOT leaves it so. So are BETWEEN, IN and LIKE of NULL.
- A comparison of values of different kinds is FALSE (IBM's page "Selection behavior"; JMS 1.1, 3.8.1.2), so that NOT
  makes it TRUE. So is an order of anything but numbers. NOT BETWEEN stands for two comparisons (JMS 3.8.1.1), so it is
  FALSE too. IN and LIKE are for strings (JMS 3.8.1.1): of a value of another kind they are UNKNOWN, so that neither
  they nor NOT IN and NOT LIKE select the message.
- Numbers are compared by value, whether exact or approximate. Strings, booleans and byte strings are equal or not; they
  have no order.
- Arithmetic on anything but numbers is NULL, and so are a division by zero and a result out of range. The quotient of
  two exact numbers is cut off towards zero, as in Java.
- AND is FALSE where one side is, OR is TRUE where one side is; else UNKNOWN wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from math import isfinite
from operator import add, eq, ge, gt, le, lt, mul, sub
from typing import Any, Final

from streams.fragments import Wild, fragments_stand_in, literal_texts, read_fragments, texts_stand_in
from streams.selectors import expressions as tree

# LIKE patterns (guide 2.4.3): ``%`` is any characters, ``_`` exactly one.
#
# streams.fragments matches them. Without ``_``, the time grows with the lengths of value and pattern, not with their
# product. With it, the worst case is one walk along the value, about 0.1 s for each million characters and half a
# second where the pattern is as long as a selection string can be.

_WILD = {"%": Wild.MANY, "_": Wild.ONE}


@lru_cache(maxsize=1024)
def like_pattern(pattern: str, escape: str | None) -> Callable[[str], bool]:
    """A function that says whether a value is like *pattern*. The escape was checked by check_escapes."""
    fragments = read_fragments(_symbols(pattern, escape))
    texts = literal_texts(fragments)
    match texts:
        case ():
            return partial(fragments_stand_in, fragments)
        case (whole,):
            return whole.__eq__
        case _:
            return partial(texts_stand_in, texts)


def _symbols(pattern: str, escape: str | None) -> Iterator[str | Wild]:
    characters = iter(pattern)
    for character in characters:
        yield next(characters) if character == escape else _WILD.get(character, character)


def check_escapes(pattern: str, escape: str | None, at: int) -> None:
    """Raise Refusal where the escape character precedes anything but ``%``, ``_`` or itself, as SQL92 has it.

    at: position of the pattern in the selection string.
    """
    characters = iter(pattern)
    for character in characters:
        if character == escape and next(characters, "") not in ("%", "_", escape):
            raise tree.Refusal(at, f"in the pattern the escape character {escape} has to be followed by %, _ or itself")


Test = Callable[[tree.Lookup], bool]
Getter = Callable[[tree.Lookup], tree.Value | None]

_MIRRORED: Final = {
    tree.Comparison.EQUAL: tree.Comparison.EQUAL,
    tree.Comparison.NOT_EQUAL: tree.Comparison.NOT_EQUAL,
    tree.Comparison.LESS: tree.Comparison.GREATER,
    tree.Comparison.GREATER: tree.Comparison.LESS,
    tree.Comparison.LESS_OR_EQUAL: tree.Comparison.GREATER_OR_EQUAL,
    tree.Comparison.GREATER_OR_EQUAL: tree.Comparison.LESS_OR_EQUAL,
}


def _differs(left: Any, right: Any) -> bool:
    # Unlike !=, not true of NaN
    return bool(left < right or left > right)


_NUMERIC: Final[dict[tree.Comparison, Callable[[Any, Any], bool]]] = {
    tree.Comparison.EQUAL: eq,
    tree.Comparison.NOT_EQUAL: _differs,
    tree.Comparison.LESS: lt,
    tree.Comparison.LESS_OR_EQUAL: le,
    tree.Comparison.GREATER: gt,
    tree.Comparison.GREATER_OR_EQUAL: ge,
}


def compile_condition(condition: tree.Condition, wanted: bool = True) -> Test:
    """A function that says of a message's properties whether *condition* has the outcome *wanted*."""
    match condition:
        case tree.IsTrue(operand):
            return _is_true(_getter(operand)) if wanted else _is_other(_getter(operand))
        case tree.Compare(comparison, left, right):
            return _comparison(comparison, left, right) if wanted else _is_not(comparison, left, right)
        case tree.IsIn(operand, values):
            return _is_in(_getter(operand), values) if wanted else _is_not_in(_getter(operand), values)
        case tree.Like(operand, pattern, escape):
            is_like = like_pattern(pattern, escape)
            return _is_like(_getter(operand), is_like) if wanted else _is_unlike(_getter(operand), is_like)
        case tree.IsNull(operand):
            return _is_null(_getter(operand), wanted)
        case tree.Not(inner):
            return compile_condition(inner, not wanted)
        case tree.AllOf(conditions):
            tests = [compile_condition(one, wanted) for one in conditions]
            return _all(tests) if wanted else _any(tests)
        case tree.AnyOf(conditions):
            tests = [compile_condition(one, wanted) for one in conditions]
            return _any(tests) if wanted else _all(tests)


def _all(tests: list[Test]) -> Test:
    if len(tests) == 2:
        first, second = tests
        return lambda lookup: first(lookup) and second(lookup)

    def every(lookup: tree.Lookup) -> bool:
        for test in tests:  # noqa: SIM110 (a generator costs more than the tests it would drive)
            if not test(lookup):
                return False
        return True

    return every


def _any(tests: list[Test]) -> Test:
    if len(tests) == 2:
        first, second = tests
        return lambda lookup: first(lookup) or second(lookup)

    def some(lookup: tree.Lookup) -> bool:
        for test in tests:  # noqa: SIM110
            if test(lookup):
                return True
        return False

    return some


def _comparison(comparison: tree.Comparison, left: tree.Operand, right: tree.Operand) -> Test:
    if isinstance(left, tree.Literal):
        left, comparison, right = right, _MIRRORED[comparison], left
    if isinstance(right, tree.Literal):
        if isinstance(left, tree.Name):
            return _name_with_literal(left.name, comparison, right.value)
        if isinstance(right.value, int | float):
            return _with_number(_getter(left), comparison, right.value)
    get_left, get_right = _getter(left), _getter(right)
    return lambda lookup: _compare(comparison, get_left(lookup), get_right(lookup)) is True


def _name_with_literal(name: str, comparison: tree.Comparison, literal: tree.Value) -> Test:
    equal = comparison is tree.Comparison.EQUAL
    if isinstance(literal, bool):
        sought = literal is equal
        return lambda lookup: lookup(name) is sought
    if isinstance(literal, str | bytes):
        if equal:
            return lambda lookup: lookup(name) == literal
        kind = type(literal)
        return lambda lookup: isinstance(value := lookup(name), kind) and value != literal
    holds = _NUMERIC[comparison]

    def test(lookup: tree.Lookup) -> bool:
        value = lookup(name)
        kind = type(value)
        if kind is int or kind is float:
            return holds(value, literal)
        return _compare(comparison, value, literal) is True

    return test


def _with_number(get: Getter, comparison: tree.Comparison, literal: float) -> Test:
    holds = _NUMERIC[comparison]

    def test(lookup: tree.Lookup) -> bool:
        value = get(lookup)
        kind = type(value)
        if kind is int or kind is float:
            return holds(value, literal)
        return _compare(comparison, value, literal) is True

    return test


def _is_not(comparison: tree.Comparison, left: tree.Operand, right: tree.Operand) -> Test:
    get_left, get_right = _getter(left), _getter(right)
    return lambda lookup: _compare(comparison, get_left(lookup), get_right(lookup)) is False


def _is_true(get: Getter) -> Test:
    return lambda lookup: get(lookup) is True


def _is_other(get: Getter) -> Test:
    return lambda lookup: (value := get(lookup)) is not True and tree.kind_of(value) is not None


def _is_null(get: Getter, wanted: bool) -> Test:
    return lambda lookup: (get(lookup) is None) is wanted


def _is_like(get: Getter, is_like: Callable[[str], bool]) -> Test:
    return lambda lookup: isinstance(value := get(lookup), str) and is_like(value)


def _is_unlike(get: Getter, is_like: Callable[[str], bool]) -> Test:
    return lambda lookup: isinstance(value := get(lookup), str) and not is_like(value)


def _is_in(get: Getter, values: tuple[tree.Value, ...]) -> Test:
    sought, kind = frozenset(values), tree.kind_of(values[0])
    # True is 1 to a set, so that the kind is looked at as well
    return lambda lookup: tree.kind_of(value := get(lookup)) is kind and value in sought


def _is_not_in(get: Getter, values: tuple[tree.Value, ...]) -> Test:
    sought, kind = frozenset(values), tree.kind_of(values[0])
    return lambda lookup: tree.kind_of(value := get(lookup)) is kind and value not in sought


def _getter(operand: tree.Operand) -> Getter:
    match operand:
        case tree.Literal(_, literal):
            return lambda lookup: literal
        case tree.Name(name=name):
            return lambda lookup: lookup(name)
        case tree.Arithmetic():
            first = _getter(operand.first)
            rest = [(_ARITHMETIC[operator], _getter(term)) for operator, term in operand.rest]

            def work_out(lookup: tree.Lookup) -> tree.Value | None:
                result = first(lookup)
                for function, term in rest:
                    result = _calculate(function, result, term(lookup))
                return result

            return work_out


def _compare(comparison: tree.Comparison, left: tree.Value | None, right: tree.Value | None) -> tree.Truth:
    """TRUE, FALSE or, where either is NULL, UNKNOWN; values that cannot be compared make it FALSE."""
    kind, other = tree.kind_of(left), tree.kind_of(right)
    if kind is None or other is None:
        return None
    if kind is not other or (comparison.is_ordering and kind is not tree.ValueKind.NUMBER):
        return False
    if comparison is tree.Comparison.NOT_EQUAL:
        return left != right
    return _NUMERIC[comparison](left, right)


def _calculate(
    function: Callable[[Any, Any], int | float], left: tree.Value | None, right: tree.Value | None
) -> int | float | None:
    """*function*, one of _ARITHMETIC, of two values; NULL where they are no numbers or the result is out of range."""
    if tree.kind_of(left) is not tree.ValueKind.NUMBER or tree.kind_of(right) is not tree.ValueKind.NUMBER:
        return None
    try:
        result = function(left, right)
    except (ZeroDivisionError, OverflowError):
        return None
    if isinstance(result, int):
        return result if tree.INT64_MIN <= result <= tree.INT64_MAX else None
    return result if isfinite(result) else None


def _quotient(left: int | float, right: int | float) -> int | float:
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) is (right < 0) else -quotient


_ARITHMETIC: Final[dict[tree.Operator, Callable[[Any, Any], int | float]]] = {
    tree.Operator.ADD: add,
    tree.Operator.SUBTRACT: sub,
    tree.Operator.MULTIPLY: mul,
    tree.Operator.DIVIDE: _quotient,
}
