"""Strings of any length that stand behind a descriptor (MQCHARV), as MQOD and MQSD have them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rfh2.ccsid import UTF8_CCSID, text_codec
from rfh2.channel.segments import Structure
from rfh2.errors import DecodeError


def span(fields: Structure, name: str) -> tuple[int, int] | None:
    """Where string *name* of a descriptor begins and ends; None where there is none. Raises DecodeError."""
    offset, length = fields[f"{name}Offset"], fields[f"{name}Length"]
    if offset < fields.layout.size or length <= 0:
        return None
    start = fields.at + offset
    if start + length > len(fields.data):
        raise DecodeError(fields.at, fields.layout.name, f"{name} ends after the call")
    return start, start + length


def read_string(fields: Structure, name: str) -> str:
    """String *name*; "" where there is none. Raises DecodeError."""
    found = span(fields, name)
    if found is None:
        return ""
    codec = text_codec(fields[f"{name}CodedCharSetId"], 0) or fields.charset
    return bytes(fields.data[found[0] : found[1]]).decode(codec, "replace")


def write_strings(fields: Structure, strings: Mapping[str, str], always: Collection[str] = ()) -> bytes:
    """The descriptor *fields* and *strings* behind it, in UTF-8.

    A string for which the program has no room, or not enough, has only its length written. always: those that the
    program gave itself, and gets back.
    """
    data = b""
    for name, value in strings.items():
        text = value.encode("utf-8")
        fields[f"{name}CodedCharSetId"], fields[f"{name}Length"] = UTF8_CCSID, len(text)
        fields[f"{name}Offset"] = fields.layout.size + len(data)
        if name in always or len(text) <= fields[f"{name}BufferSize"]:
            data += text + bytes(-len(text) % 4)
    return bytes(fields) + data
