"""A selection string as a tree: operands, which have a value, and conditions, which are true, false or unknown.

Chains are flat (``a AND b AND c`` is one node), so the depth of a tree is bounded by the nesting of its parentheses
and prefix operators, which the parser limits. NOT IN, NOT LIKE and IS NOT NULL are a Not around the plain form; BETWEEN
and NOT BETWEEN are the pairs of comparisons that JMS defines them to be. *at* is the position in the selection string,
from 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from streams.selectors.values import Value, ValueKind


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
