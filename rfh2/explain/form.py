"""The JSON form of a decoded message: what ``decode --json`` prints, one object a message, and ``encode`` reads.

Names and shapes are an interface (docs/problems.md has the problem codes). ``captured`` keeps the message as it was
captured, so that ``encode`` sees what was edited; everything else may be edited (see ``rebuild``).
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel
from pydantic_core import to_json

FieldValue = int | str
Severity = Literal["error", "warning"]
ByteOrderName = Literal["big", "little"]


Json = dict[str, Any]
"""A form as plain values, before it is checked, or where nothing has to be."""


def json_line(form: Json) -> bytes:
    """One line of JSON in UTF-8, without the line's end."""
    return to_json(form)


class Problem(BaseModel, frozen=True, extra="ignore", defer_build=True):
    """Something wrong with a message. code: stable. offset: in *part*, from its first byte.

    part: the descriptor, or what follows it, whose first byte is the first header's. reason: what a queue manager
    answers the command with, where that is known.
    """

    code: str
    severity: Severity
    offset: int
    message: str
    part: Literal["mqmd", "body"] = "body"
    reason: int | None = None


# The codes of problems: stable names, each of one severity. docs/problems.md has a row for each.

# An error is what makes a queue manager refuse the message, or its next reader fail; a warning is what the
# field is full of and somebody debugging wants to know.
CODES: Final[dict[str, Severity]] = {
    # The capture
    "unreadable-record": "error",
    # Structures that cannot be decoded
    "bad-struc-id": "error",
    "unknown-version": "error",
    "short-header": "error",
    "bad-struc-length": "error",
    "bad-name-value-ccsid": "error",
    "bad-name-value-length": "error",
    "bad-name-value-string": "error",
    "bad-character": "error",
    "bad-folder": "error",
    "stray-bytes": "error",
    "too-many-folders": "error",
    "malformed-header": "error",
    "bad-parameter-count": "error",
    "bad-string-length": "error",
    "bad-count": "error",
    "too-deep": "error",
    "text-after-folder": "error",
    # Fields
    "bytes-behind-mqmd": "warning",
    "length-not-multiple-of-4": "warning",
    "reserved-flags": "warning",
    "null-in-format": "warning",
    "bytes-behind-null": "warning",
    "unknown-format": "warning",
    "unknown-encoding": "warning",
    "unknown-ccsid": "warning",
    "unknown-msg-type": "warning",
    "unknown-report-option": "warning",
    "unknown-persistence": "warning",
    "unknown-priority": "warning",
    "bad-expiry": "warning",
    "default-ccsid": "warning",
    "inherited-ccsid-from-broker": "warning",
    "encoding-contradicts": "warning",
    "ccsid-contradicts": "warning",
    # Folders and strings
    "null-padding": "warning",
    "empty-folder": "warning",
    "several-roots": "warning",
    "bare-ampersand": "warning",
    "opaque-folder": "warning",
    "xml-not-allowed": "error",
    "folder-name": "warning",
    "repeated-folder": "warning",
    "pscr-in-command": "warning",
    # The body
    "undecodable-text": "error",
    "byte-order-mark-contradicts": "warning",
    "unannounced-header": "warning",
    "unrecognised-data": "warning",
    "lost-header": "warning",
    "assumed-pcf": "warning",
    "bad-pcf": "error",
    # The command
    "second-psc": "error",
    "no-command": "error",
    "unknown-command": "error",
    "missing-command": "error",
    "unknown-tag": "error",
    "misplaced-tag": "error",
    "repeated-tag": "error",
    "missing-tag": "error",
    "unknown-option": "error",
    "misplaced-option": "error",
    "wrong-queue": "error",
    "refused-command": "error",
    "unknown-descriptor": "warning",
    "passed-on-tag": "warning",
    "other-wildcards": "warning",
    "wildcard-in-level": "warning",
    "topic-blanks": "warning",
    "topic-slashes": "warning",
    "topic-case": "warning",
    "filter-never-true": "warning",
    "option-without-effect": "warning",
    "more-refusals": "warning",
}

Part = Literal["mqmd", "body"]


def problem(code: str, offset: int, message: str, part: Part = "body", reason: int | None = None) -> Problem:
    """A problem of a known code."""
    return Problem(code=code, severity=CODES[code], offset=offset, message=message, part=part, reason=reason)
