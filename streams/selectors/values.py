"""The values that a property can have in a selection string, and the three truth values (guide 2.4.3).

``None`` plays both parts that SQL gives to NULL: a property without a value, and the truth value UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

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
