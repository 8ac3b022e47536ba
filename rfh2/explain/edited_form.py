"""The JSON form of a decoded message as it is read back: perhaps with changes, so every value in it is checked.

Only ``encode`` needs these models. ``decode`` writes the form without them, and starts faster.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from rfh2.captured import CapturedMessage
from rfh2.explain.describe import described, folder_form
from rfh2.explain.form import ByteOrderName, FieldValue, Problem
from rfh2.explain.reading import PartialMessage
from rfh2.folders import Folder


class _Form(BaseModel):
    model_config = ConfigDict(extra="ignore")


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


def describe(partial: PartialMessage) -> DecodedMessage:
    """The form of a message without changes."""
    return DecodedMessage.model_validate(described(partial))


def describe_folder(folder: Folder) -> DecodedFolder:
    """The form of a folder without changes."""
    return DecodedFolder.model_validate(folder_form(folder))
