"""What a selection string means, read off its tree: SQL's three-valued logic (guide 2.4.3).

This is the definition, written to be read; compile.py is the fast form, and a test proves that the two agree.

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

from collections.abc import Callable, Iterable
from math import isfinite
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from typing import Any, Final

from streams.selectors.expressions import (
    AllOf,
    AnyOf,
    Arithmetic,
    Compare,
    Comparison,
    Condition,
    IsIn,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Name,
    Not,
    Operand,
    Operator,
)
from streams.selectors.like import like_pattern
from streams.selectors.values import INT64_MAX, INT64_MIN, Lookup, Truth, Value, ValueKind, kind_of

_COMPARISONS: Final[dict[Comparison, Any]] = {
    Comparison.EQUAL: eq,
    Comparison.NOT_EQUAL: ne,
    Comparison.LESS: lt,
    Comparison.LESS_OR_EQUAL: le,
    Comparison.GREATER: gt,
    Comparison.GREATER_OR_EQUAL: ge,
}


def truth(condition: Condition, lookup: Lookup) -> Truth:
    """TRUE, FALSE or, as None, UNKNOWN."""
    match condition:
        case IsTrue(operand):
            alone = value(operand, lookup)
            return alone if isinstance(alone, bool) else None if kind_of(alone) is None else False
        case Compare(comparison, left, right):
            return compare(comparison, value(left, lookup), value(right, lookup))
        case IsIn(operand, values):
            chosen = value(operand, lookup)
            if kind_of(chosen) is not kind_of(values[0]):
                return None
            return _disjunction(compare(Comparison.EQUAL, chosen, one) for one in values)
        case Like(operand, pattern, escape):
            subject = value(operand, lookup)
            return like_pattern(pattern, escape)(subject) if isinstance(subject, str) else None
        case IsNull(operand):
            return value(operand, lookup) is None
        case Not(inner):
            return negated(truth(inner, lookup))
        case AllOf(conditions):
            return _conjunction(truth(one, lookup) for one in conditions)
        case AnyOf(conditions):
            return _disjunction(truth(one, lookup) for one in conditions)


def value(operand: Operand, lookup: Lookup) -> Value | None:
    """The value of *operand*; None is NULL."""
    match operand:
        case Literal():
            return operand.value
        case Name():
            return lookup(operand.name)
        case Arithmetic():
            result = value(operand.first, lookup)
            for operator, term in operand.rest:
                result = calculate(ARITHMETIC[operator], result, value(term, lookup))
            return result


def compare(comparison: Comparison, left: Value | None, right: Value | None) -> Truth:
    """TRUE, FALSE or, where either is NULL, UNKNOWN; values that cannot be compared make it FALSE."""
    kind, other = kind_of(left), kind_of(right)
    if kind is None or other is None:
        return None
    if kind is not other or (comparison.is_ordering and kind is not ValueKind.NUMBER):
        return False
    holds: bool = _COMPARISONS[comparison](left, right)
    return holds


def calculate(
    function: Callable[[Any, Any], int | float], left: Value | None, right: Value | None
) -> int | float | None:
    """*function*, one of ARITHMETIC, of two values; NULL where they are no numbers or the result is out of range."""
    if kind_of(left) is not ValueKind.NUMBER or kind_of(right) is not ValueKind.NUMBER:
        return None
    try:
        result = function(left, right)
    except (ZeroDivisionError, OverflowError):
        return None
    if isinstance(result, int):
        return result if INT64_MIN <= result <= INT64_MAX else None
    return result if isfinite(result) else None


def negated(outcome: Truth) -> Truth:
    return None if outcome is None else not outcome


def _conjunction(outcomes: Iterable[Truth]) -> Truth:
    seen = set(outcomes)
    return False if False in seen else None if None in seen else True


def _disjunction(outcomes: Iterable[Truth]) -> Truth:
    return negated(_conjunction(map(negated, outcomes)))


def _quotient(left: int | float, right: int | float) -> int | float:
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) is (right < 0) else -quotient


ARITHMETIC: Final[dict[Operator, Callable[[Any, Any], int | float]]] = {
    Operator.ADD: add,
    Operator.SUBTRACT: sub,
    Operator.MULTIPLY: mul,
    Operator.DIVIDE: _quotient,
}
