"""The JSON form of a decoded message: what ``decode --json`` prints, one object a message, and ``encode`` reads.

Names and shapes are an interface (docs/problems.md has the problem codes). ``captured`` keeps the message as it was
captured, so that ``encode`` sees what was edited; everything else may be edited (see ``rebuild``).
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json

FieldValue = int | str
Severity = Literal["error", "warning"]
ByteOrderName = Literal["big", "little"]


Json = dict[str, Any]
"""A form as plain values, before it is checked, or where nothing has to be."""


_EXACT = 1 << 53


def number(value: int) -> int | str:
    """*value* as JSON has it: a string beyond 2^53, for other programs read numbers as floating point."""
    return value if -_EXACT <= value <= _EXACT else str(value)


def json_line(form: Json) -> bytes:
    """One line of JSON in UTF-8, without the line's end."""
    return to_json(form)


class Problem(BaseModel):
    """Something wrong with a message. code: stable. offset: in *part*, from its first byte.

    part: the descriptor, or what follows it, whose first byte is the first header's. reason: what a queue manager
    answers the command with, where that is known.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    code: str
    severity: Severity
    offset: int
    message: str
    part: Literal["mqmd", "body"] = "body"
    reason: int | None = None
