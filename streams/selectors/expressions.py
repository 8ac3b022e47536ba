"""A selection string as a tree: operands, which have a value, and conditions, which are true, false or unknown.

Chains are flat (``a AND b AND c`` is one node), so the depth of a tree is bounded by the nesting of its parentheses
and prefix operators, which the parser limits. NOT IN, NOT LIKE and IS NOT NULL are a Not around the plain form; BETWEEN
and NOT BETWEEN are the pairs of comparisons that JMS defines them to be. *at* is the position in the selection string,
from 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rfh2.constants import MQRCCF_FILTER_ERROR
from rfh2.errors import CommandError

# How a selection string is refused: MQRCCF_FILTER_ERROR, with the place (guide 6.7.4, 6.7.8).


class Refusal(Exception):  # noqa: N818 (never leaves this package: compile_selector turns it into a CommandError)
    """Why a selection string is not taken, and where; the text itself is added by compile_selector.

    at: 1-based position of the first character that is to blame.
    """

    def __init__(self, at: int, why: str) -> None:
        super().__init__(at, why)
        self.at, self.why = at, why


def filter_error(text: str, refusal: Refusal) -> CommandError:
    """The refusal as the command's error: reason 3150, the position in words, the Filter as the tag to blame."""
    why = f"selection string, at character {refusal.at}: {refusal.why}"
    return CommandError(MQRCCF_FILTER_ERROR, why=why, tags=(("Filter", text),))


# The values that a property can have in a selection string, and the three truth values (guide 2.4.3).
#
# ``None`` plays both parts that SQL gives to NULL: a property without a value, and the truth value UNKNOWN.

Value = str | int | float | bool | bytes
Lookup = Callable[[str], Value | None]
Truth = bool | None


class ValueKind(StrEnum):
    """Only values of one kind can be compared with each other."""

    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"
    BYTES = "byte string"


# As a constant, because ``int | float`` is worked out anew each time it is met
NUMBER_TYPES: Final = (int, float)
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1


def kind_of(value: Value | None) -> ValueKind | None:
    """The kind of *value*; None for NULL, and for NaN, which equals nothing and stands nowhere in the order."""
    if isinstance(value, bool):
        return ValueKind.BOOLEAN
    if isinstance(value, NUMBER_TYPES):
        return ValueKind.NUMBER if value == value else None  # noqa: PLR0124 (NaN is the one value unequal to itself)
    if isinstance(value, str):
        return ValueKind.STRING
    if isinstance(value, bytes):
        return ValueKind.BYTES
    return None


class Comparison(StrEnum):
    """The comparison operators; all but the first two need numbers on both sides."""

    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="

    @property
    def is_ordering(self) -> bool:
        return self not in (Comparison.EQUAL, Comparison.NOT_EQUAL)


class Operator(StrEnum):
    """The arithmetic operators, which take and give numbers; anything else gives NULL."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"


@dataclass(frozen=True, slots=True)
class Literal:
    at: int
    value: Value


@dataclass(frozen=True, slots=True)
class Name:
    """A property, under its canonical name. kind: of its value; None where each message decides."""

    at: int
    name: str
    kind: ValueKind | None = None


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``first op1 rest1 op2 rest2 ...``, worked from left to right."""

    at: int
    first: Operand
    rest: tuple[tuple[Operator, Operand], ...]


Operand = Literal | Name | Arithmetic


@dataclass(frozen=True, slots=True)
class IsTrue:
    """A boolean property or literal standing alone as a condition."""

    operand: Literal | Name


@dataclass(frozen=True, slots=True)
class Compare:
    comparison: Comparison
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class IsIn:
    """values: at least one, all of one kind."""

    operand: Operand
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """pattern: ``%`` any run of characters, ``_`` any one; escape: the one character that takes that meaning away."""

    operand: Operand
    pattern: str
    escape: str | None


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Operand


@dataclass(frozen=True, slots=True)
class Not:
    condition: Condition


@dataclass(frozen=True, slots=True)
class AllOf:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    conditions: tuple[Condition, ...]


Condition = IsTrue | Compare | IsIn | Like | IsNull | Not | AllOf | AnyOf
