"""The JSON form of a decoded message: what ``decode --json`` prints, one object a message, and ``encode`` reads.

Names and shapes are an interface (docs/problems.md has the problem codes). ``captured`` keeps the message as it was
captured, so that ``encode`` sees what was edited; everything else may be edited (see ``rebuild``).
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json

from rfh2.captured import CapturedMessage

FieldValue = int | str
Severity = Literal["error", "warning"]
ByteOrderName = Literal["big", "little"]


Json = dict[str, Any]
"""A form as plain values, before it is checked, or where nothing has to be."""


_EXACT = 1 << 53


def number(value: int) -> int | str:
    """*value* as JSON has it: a string beyond 2^53, for other programs read numbers as floating point."""
    return value if -_EXACT <= value <= _EXACT else str(value)


class _Form(BaseModel):
    model_config = ConfigDict(extra="ignore")


def json_line(form: Json) -> bytes:
    """One line of JSON in UTF-8, without the line's end."""
    return to_json(form)


class Problem(_Form):
    """Something wrong with a message. code: stable. offset: in *part*, from its first byte.

    part: the descriptor, or what follows it, whose first byte is the first header's. reason: what a queue manager
    answers the command with, where that is known.
    """

    model_config = ConfigDict(frozen=True)

    code: str
    severity: Severity
    offset: int
    message: str
    part: Literal["mqmd", "body"] = "body"
    reason: int | None = None


class DecodedFolder(_Form):
    """One NameValueData. offset: of its first byte, from the start of the first header; length: padding included.

    raw: its characters, padding included. values: None where the text is not well formed. hex: only where the bytes are
    not text of the folder's CCSID.
    """

    name: str = ""
    offset: int | None = None
    length: int | None = None
    raw: str | None = None
    values: dict[str, Any] | None = None
    hex: str | None = None


class DecodedHeader(_Form):
    """One header. fields: its fixed part in IBM's names. byte_order, charset: in which that is written.

    folders: of an MQRFH2; pairs, raw: of an MQRFH; mqmd: of an MQXQH; pcf: of an MQEPH; hex: what follows the fixed
    part of an MQEPH and of any other.
    """

    type: str
    offset: int | None = None
    length: int | None = None
    byte_order: ByteOrderName | None = None
    charset: str | None = None
    fields: dict[str, FieldValue] = {}
    folders: list[DecodedFolder] | None = None
    pairs: list[tuple[str, str]] | None = None
    raw: str | None = None
    mqmd: dict[str, FieldValue] | None = None
    pcf: dict[str, Any] | None = None
    hex: str | None = None


class DecodedBody(_Form):
    """What follows the last header that could be decoded. text: None where it is no text, or not of its CCSID.

    pcf: what a body in a PCF format holds.
    """

    offset: int | None = None
    length: int | None = None
    format: str | None = None
    encoding: int | None = None
    ccsid: int | None = None
    text: str | None = None
    hex: str | None = None
    pcf: dict[str, Any] | None = None


class DecodedMessage(_Form):
    """One message. source, index: the file and the record in it. command: the parsed command with its word, or None.
    explain: what it would lead to, if that was asked for. incomplete: whether a part is missing in the capture.

    mqmd: its fields in IBM's names, byte strings as hex, or None where there is none that can be read.
    """

    source: str = ""
    index: int = 0
    mqmd: dict[str, FieldValue] | None = None
    headers: list[DecodedHeader] = []
    command: dict[str, Any] | None = None
    body: DecodedBody | None = None
    problems: list[Problem] = []
    captured: CapturedMessage | None = None
    explain: dict[str, Any] | None = None
    incomplete: bool = False
