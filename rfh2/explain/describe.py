"""From what could be decoded of a message to its JSON form."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rfh2.constants import MQFMT_STRING
from rfh2.eph import Eph
from rfh2.errors import CaptureError, DecodeError
from rfh2.explain.fields import descriptor_layout, layout_of, read_fields
from rfh2.explain.form import DecodedBody, DecodedFolder, DecodedHeader, DecodedMessage, FieldValue, Problem
from rfh2.explain.pcf_form import body_pcf, describe_pcf, embedded_pcf
from rfh2.explain.reading import Located, PartialMessage
from rfh2.folders import Folder, Value
from rfh2.mqmd import Mqmd
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2
from rfh2.xqh import Xqh

# Text may hold these; data that holds others is shown as hex unless its Format says that it is text.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def describe(
    partial: PartialMessage,
    source: str = "",
    index: int = 0,
    command: dict[str, Any] | None = None,
    problems: Iterable[Problem] = (),
) -> DecodedMessage:
    """The JSON form of one message. command: the parsed command as JSON; problems: what there is to report."""
    return DecodedMessage(
        source=source,
        index=index,
        mqmd=descriptor_fields(partial.mqmd, partial.captured.md),
        headers=[describe_header(located, partial.captured.body) for located in partial.headers],
        command=command,
        body=_body(partial),
        problems=list(problems),
        captured=partial.captured,
    )


def describe_unreadable(source: str, index: int, position: int, problem: CaptureError) -> DecodedMessage:
    """The JSON form of a record of a capture that could not be read; it has no message."""
    found = Problem(code="unreadable-record", severity="error", offset=position, message=str(problem))
    return DecodedMessage(
        source=source, index=index, mqmd=None, headers=[], command=None, body=None, problems=[found], captured=None
    )


def descriptor_fields(mqmd: Mqmd | None, md: bytes | None) -> dict[str, FieldValue] | None:
    """The fields of a descriptor in IBM's names; None where there is none that can be read."""
    if mqmd is None or md is None:
        return None
    return read_fields(descriptor_layout(mqmd.version), md, mqmd.order, mqmd.charset)


def describe_header(located: Located, body: bytes) -> DecodedHeader:
    """The JSON form of one header; *body*: all bytes from the first header on."""
    header, offset = located.header, located.offset
    data = body[offset : offset + header.length]
    layout = layout_of(header.kind)
    order, charset = getattr(header, "order", None), getattr(header, "charset", None)
    common: dict[str, Any] = {"type": header.kind, "offset": offset, "length": header.length}
    if layout is None or order is None or charset is None:
        return DecodedHeader(**common, fields={}, hex=data.hex())
    common |= {"byte_order": order, "charset": charset, "fields": read_fields(layout, data, order, charset)}
    if isinstance(header, Rfh2):
        return DecodedHeader(**common, folders=[describe_folder(folder) for folder in header.folders])
    if isinstance(header, Rfh1):
        return DecodedHeader(**common, pairs=_pairs(header), raw=_raw(header.data, header.string_charset))
    if isinstance(header, Xqh):
        mqmd = header.mqmd
        fields = read_fields(descriptor_layout(mqmd.version), data[layout.size :], mqmd.order, mqmd.charset)
        return DecodedHeader(**common, mqmd=fields)
    if isinstance(header, Eph):
        pcf = embedded_pcf(header)
        common["pcf"] = None if pcf is None else describe_pcf(pcf)
    if len(data) == layout.size:
        return DecodedHeader(**common)
    return DecodedHeader(**common, hex=data[layout.size :].hex())


def describe_folder(folder: Folder) -> DecodedFolder:
    """The JSON form of one folder."""
    values: dict[str, Any] | None
    try:
        values = {tag: as_json(value) for tag, value in folder.values().items()}
    except DecodeError:
        values = None
    common: dict[str, Any] = {"name": folder.name, "offset": folder.offset, "length": len(folder.data)}
    raw = _raw(folder.data, folder.charset)
    if raw is None:
        return DecodedFolder(**common, raw=None, values=values, hex=folder.data.hex())
    return DecodedFolder(**common, raw=raw, values=values)


def as_json(value: Value) -> Any:
    """A folder's value as JSON has it: bytes as hex."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {tag: as_json(item) for tag, item in value.items()}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return value


def body_text(partial: PartialMessage) -> str | None:
    """The body as text; None where it is not in its CCSID, or holds control characters and no Format calls it text."""
    message = partial.message
    text = message.body_text
    if text is None or (message.body_format != MQFMT_STRING and _CONTROL.search(text)):
        return None
    return text


def _body(partial: PartialMessage) -> DecodedBody:
    message, pcf = partial.message, body_pcf(partial)
    return DecodedBody(
        offset=partial.rest_offset,
        length=len(partial.rest),
        format=message.body_format,
        encoding=message.body_encoding,
        ccsid=message.body_ccsid,
        text=None if partial.fault is not None else body_text(partial),
        hex=partial.rest.hex(),
        **({} if pcf is None else {"pcf": describe_pcf(pcf)}),
    )


def _pairs(header: Rfh1) -> list[tuple[str, str]] | None:
    try:
        return header.pairs()
    except DecodeError:
        return None


def _raw(data: bytes, charset: str) -> str | None:
    try:
        return data.decode(charset)
    except UnicodeDecodeError:
        return None
