"""The annotated view of a message: every field with its offset, its bytes, its value and what that means.

``annotate`` gives lines of four columns with their roles. ``layout_lines`` arranges them, and its caller can colour
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import chain as join
from typing import Final, NamedTuple

from rfh2.ccsid import ByteOrder
from rfh2.constants import reason_text
from rfh2.elements import elements
from rfh2.errors import DecodeError
from rfh2.explain.describe import body_pcf, describe_parameter, embedded_pcf
from rfh2.explain.fields import descriptor_layout, layout_of, read_fields, spans_of
from rfh2.explain.form import FieldValue
from rfh2.explain.meanings import (
    FORMATS,
    PCF_OPTIONS,
    ccsid_text,
    encoding_text,
    meaning,
    options_text,
    tag_meaning,
    time_text,
)
from rfh2.explain.reading import Located, PartialMessage, Salvage, Salvaged, salvage, whole_fields
from rfh2.folders import Folder
from rfh2.layouts import MQCFH, Layout
from rfh2.message import Message, body_text
from rfh2.mqmd import name_of
from rfh2.pcf import Cfgr, Eph, Parameter, Pcf
from rfh2.pcf_names import COMMAND_NAMES, PARAMETER_NAMES, TYPE_NAMES
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import FIXED_LENGTH, Rfh2
from rfh2.terminal_escape import visible


class TextRole(StrEnum):
    """The kind of a piece of the view, so that the caller can colour it."""

    TITLE = "title"
    OFFSET = "offset"
    BYTES = "bytes"
    FIELD = "field"
    VALUE = "value"
    MEANING = "meaning"
    ERROR = "error"
    WARNING = "warning"


Paint = Callable[[TextRole, str], str]


def plain(_role: TextRole, text: str) -> str:
    """Paint of no colour."""
    return text


class AnnotatedLine(NamedTuple):
    """One line of the view."""

    offset: int | None = None  # None where the line has none
    data: bytes = b""
    field: str = ""
    value: str = ""
    meaning: str = ""
    heading: str = ""  # stands alone, with nothing else in the line


_SHOWN_BYTES: Final = 12
_BYTES_WIDTH: Final = 2 * _SHOWN_BYTES + 1
_FIELD_BYTES: Final = 256
_NO_OFFSET: Final = " " * 6
_NO_BYTES: Final = " " * _BYTES_WIDTH

_ROW: Final = 16
_TEXT_LINES: Final = 40


def annotate(partial: PartialMessage, limit: int | None = 256) -> list[AnnotatedLine]:
    """The lines of one message: descriptor, headers, body. limit: bytes of the body that are shown, None for all."""
    lines: list[AnnotatedLine] = []
    if partial.mqmd is not None and partial.captured.md is not None:
        mqmd = partial.mqmd
        code = f"{mqmd.order}-endian, {mqmd.charset}"
        lines.append(AnnotatedLine(heading=f"MQMD version {mqmd.version}: {partial.mqmd_length} bytes, {code}"))
        lines += _fixed(descriptor_layout(mqmd.version), partial.captured.md, 0, mqmd.order, mqmd.charset)
    for located in partial.headers:
        lines += _header(located, partial.captured.body)
    lines += _body(partial, limit)
    return lines


def chain(partial: PartialMessage) -> str:
    """The chain of headers as a picture: ``MQMD 324 -> MQRFH2 96 -> MQSTR 42 bytes``; as is, it may hold anything."""
    parts = [] if partial.captured.md is None else [f"MQMD {partial.mqmd_length or len(partial.captured.md)}"]
    parts += [f"{located.header.kind} {located.header.length}" for located in partial.headers]
    if partial.fault is not None:
        parts.append(f"{len(partial.rest)} bytes that could not be decoded as {partial.fault.header}")
    else:
        message = partial.message
        parts.append(f"{message.body_format or 'data'} {len(message.body)} bytes" if message.body else "no data")
    return " -> ".join(parts)


def layout_lines(lines: Iterable[AnnotatedLine], paint: Paint) -> list[str]:
    """The lines as text, in columns."""
    shown: list[str] = []
    for line in lines:
        if line.heading:
            shown += "", paint(TextRole.TITLE, visible(line.heading))
        elif paint is plain:
            data = line.data
            shown.append(_plain_field(line) if data and len(data) <= _FIELD_BYTES else _plain_line(line))
        else:
            shown.append(_painted_line(line, paint))
    return shown


def _painted_line(line: AnnotatedLine, paint: Paint) -> str:
    offset = "" if line.offset is None else f"{line.offset:6}"
    columns = [
        paint(TextRole.OFFSET, f"{offset:6}"),
        paint(TextRole.BYTES, f"{_shown_bytes(line.data):{_BYTES_WIDTH}}"),
        paint(TextRole.FIELD, f"{visible(line.field):18}"),
        paint(TextRole.VALUE, visible(line.value)),
    ]
    if line.meaning:
        columns.append(paint(TextRole.MEANING, f"[{visible(line.meaning)}]"))
    return " ".join(columns).rstrip()


def _plain_line(line: AnnotatedLine) -> str:
    offset, data = line.offset, line.data
    front = _NO_OFFSET if offset is None else f"{offset:6}"
    shown = _NO_BYTES if not data else f"{_shown_bytes(data):{_BYTES_WIDTH}}"
    text = f"{front} {shown} {line.field:18} {line.value}"
    if line.meaning:
        text = f"{text} [{line.meaning}]"
    return text.rstrip() if text.isprintable() else _painted_line(line, plain)


_plain_field = lru_cache(maxsize=4096)(_plain_line)
"""The same of a field; most are those of the last message."""


def _shown_bytes(data: bytes) -> str:
    return data.hex() if len(data) <= _SHOWN_BYTES else f"{data[:_SHOWN_BYTES].hex()}…"


def _fixed(layout: Layout, data: bytes, offset: int, order: ByteOrder, charset: str) -> Iterator[AnnotatedLine]:
    """The lines of the fixed part at the start of *data*. offset: of its first byte."""
    fields = read_fields(layout, data, order, charset)
    for name, at, size, is_text in spans_of(layout):
        put_time = str(fields["PutTime"]) if name == "PutDate" else ""
        yield _field(offset + at, data[at : at + size], name, fields[name], is_text, put_time)


# Most fields say in each message of a program what they said in its last one.
@lru_cache(maxsize=4096)
def _field(offset: int, data: bytes, name: str, value: FieldValue, is_text: bool, put_time: str) -> AnnotatedLine:
    """The line of one field. put_time: the field beside a PutDate, which makes a moment of it."""
    known = time_text(str(value), put_time) if put_time else meaning(name, value)
    return AnnotatedLine(offset, data, name, f"'{value}'" if is_text else str(value), known)


def _header(located: Located, body: bytes) -> list[AnnotatedLine]:
    header, offset = located.header, located.offset
    order, charset = getattr(header, "order", None), getattr(header, "charset", None)
    code = f", {order}-endian, {charset}" if order and charset else ""
    lines = [AnnotatedLine(heading=f"{header.kind} at {offset}: {header.length} bytes{code}")]
    data = body[offset : offset + header.length]
    layout = layout_of(header.kind)
    if layout is None or order is None or charset is None:
        lines += _dump(data, offset)
        return lines
    lines += _fixed(layout, data, offset, order, charset)
    if isinstance(header, Rfh2):
        at = offset + FIXED_LENGTH
        for folder in header.folders:
            lines.append(AnnotatedLine(at, body[at : at + 4], "NameValueLength", str(len(folder.data))))
            lines += _folder(folder)
            at += 4 + len(folder.data)
    elif isinstance(header, Rfh1):
        lines += _name_values(header)
    elif isinstance(header, Eph) and (pcf := embedded_pcf(header)) is not None:
        lines += _pcf(pcf, header.offset)
    else:
        lines += _dump(data[layout.size :], offset + layout.size)
    return lines


def _folder(folder: Folder) -> list[AnnotatedLine]:
    try:
        found = elements(folder)
    except DecodeError as error:
        raw = folder.data.decode(folder.charset, "backslashreplace").rstrip(" \0")
        return [AnnotatedLine(folder.offset, folder.data, "NameValueData", raw, f"cannot be read: {error.why}")]
    lines: list[AnnotatedLine] = []
    root = ""
    for element in found:
        field, text = element.tag, element.text
        if element.depth == 0:
            root = field
        else:
            field = "  " * element.depth + field
        if element.attributes:
            kind = element.attribute("dt")
            others = "".join([f" {key}={value!r}" for key, value in element.attributes if key != "dt"])
            field = f"{field}{f' ({kind})' if kind else ''}{others}"
        known = "" if text is None else tag_meaning(root, element.tag, text)
        lines.append(AnnotatedLine(element.offset, b"", field, text or "", known))
    content = folder.data.decode(folder.charset).rstrip(" \0")
    padding = len(folder.data) - len(content.encode(folder.charset))
    if padding:
        at = folder.offset + len(folder.data) - padding
        what = f"padding of {padding} byte{'s' if padding > 1 else ''}"
        lines.append(AnnotatedLine(at, folder.data[-padding:], meaning=what))
    return lines


def _name_values(header: Rfh1) -> Iterator[AnnotatedLine]:
    try:
        found = header.name_values()
    except DecodeError as error:
        raw = header.data.decode(header.string_charset, "backslashreplace").rstrip(" \0")
        yield AnnotatedLine(header.offset, header.data, "NameValueString", raw, f"cannot be read: {error.why}")
        return
    for name, value, position in found:
        yield AnnotatedLine(header.offset + position, b"", name, value, tag_meaning("MQRFH", name, value))


def _body(partial: PartialMessage, limit: int | None) -> Iterator[AnnotatedLine]:
    message, offset = partial.message, partial.rest_offset
    if partial.fault is not None:
        yield from _salvage(salvage(partial), partial, limit)
        return
    yield from _data(message, offset, limit, body_pcf(partial))


def _salvage(found: Salvage, partial: PartialMessage, limit: int | None) -> Iterator[AnnotatedLine]:
    """What can be read behind the fault at which decoding stopped."""
    body = partial.captured.body
    end = partial.rest_offset
    for part in found.parts:
        if isinstance(part, Located):
            yield from _header(part, body)
            end = part.offset + part.header.length
        else:
            yield from _with_fault(part, limit)
            end = part.offset + len(part.data)
    if found.message is not None and found.body_offset < len(body):
        yield from _data(found.message, found.body_offset, limit)
    elif end < len(body):
        yield AnnotatedLine(heading=f"not decoded, at {end}: {len(body) - end} bytes")
        yield from _dump(body[end:], end, limit)


def _with_fault(part: Salvaged, limit: int | None) -> Iterator[AnnotatedLine]:
    what = f"{part.kind} at {part.offset}, as far as it can be read: {len(part.data)} bytes"
    yield AnnotatedLine(heading=what if part.layout is not None else f"not decoded, at {part.offset}")
    size = whole_fields(part)
    shown: list[tuple[int, Iterable[AnnotatedLine]]] = []
    if part.layout is not None:
        filled = part.fixed[:size].ljust(part.layout.size, b"\0")
        fields = _fixed(part.layout, filled, part.offset, part.order, part.charset)
        yield from (line for line in fields if (line.offset or 0) < part.offset + size)
    for folder in part.folders:
        shown.append((folder.offset, _folder(folder)))
    for unread in part.unread:
        why = AnnotatedLine(unread.offset, unread.data[:4], "not read", f"{len(unread.data)} bytes", unread.why)
        rest = _dump(unread.data, unread.offset, limit) if len(unread.data) > 4 else ()
        shown.append((unread.offset, join([why], rest)))
    for _, lines in sorted(shown, key=lambda each: each[0]):
        yield from lines
    if (string := part.rfh1) is not None:
        yield from _name_values(string)
    elif part.rfh2 is None and part.layout is not None and size < len(part.data):
        yield from _dump(part.data[size:], part.offset + size, limit)


def _data(message: Message, offset: int, limit: int | None, pcf: Pcf | None = None) -> Iterator[AnnotatedLine]:
    """The lines of the data of *message*. offset: of its first byte. limit: see ``annotate``. pcf: what the data is."""
    rest = message.body
    if not rest:
        return
    fmt = name_of(message.body_format)
    what = f"{fmt or 'no Format'}, {encoding_text(message.body_encoding)}"
    yield AnnotatedLine(heading=f"data at {offset}: {len(rest)} bytes, {what}, CCSID {_ccsid(message.body_ccsid)}")
    if pcf is not None:
        yield from _pcf(pcf, offset)
        yield from _dump(pcf.rest, offset + pcf.length - len(pcf.rest), limit)
        return
    text = body_text(message)
    if text is None:
        known = FORMATS.get(fmt, "")
        if known:
            yield AnnotatedLine(offset, b"", "", "", known)
        yield from _dump(rest, offset, limit)
        return
    shown = text if limit is None else text[:limit]
    for line in shown.splitlines()[: None if limit is None else _TEXT_LINES]:
        yield AnnotatedLine(None, b"", "", line)
    if shown != text:
        yield AnnotatedLine(None, b"", "", f"… {len(text) - len(shown)} more characters")


def _pcf(pcf: Pcf, offset: int) -> Iterator[AnnotatedLine]:
    kind = TYPE_NAMES.get(pcf.type, "")
    yield AnnotatedLine(offset, b"", "Type", str(pcf.type), kind)
    yield AnnotatedLine(offset + 12, b"", "Command", str(pcf.command), COMMAND_NAMES.get(pcf.command, ""))
    if pcf.comp_code or pcf.reason:
        yield AnnotatedLine(offset + 28, b"", "Reason", str(pcf.reason), reason_text(pcf.reason))
    yield from _parameters(pcf.parameters, offset + MQCFH.size, 1)


def _parameters(parameters: Sequence[Parameter], at: int, depth: int) -> Iterator[AnnotatedLine]:
    for parameter in parameters:
        number = parameter.parameter
        field = f"{'  ' * depth}{PARAMETER_NAMES.get(number, number)}"
        if isinstance(parameter, Cfgr):
            yield AnnotatedLine(at, b"", field)
            inner = sum(member.length for member in parameter.members)
            yield from _parameters(parameter.members, at + parameter.length - inner, depth + 1)
        else:
            value = describe_parameter(parameter)["value"]
            options = PCF_OPTIONS.get(number)
            known = options_text(options, str(value)) if options is not None else ""
            yield AnnotatedLine(at, b"", field, str(value), known)
        at += parameter.length


def _ccsid(ccsid: int) -> str:
    return f"{ccsid} ({ccsid_text(ccsid)})"


def _dump(data: bytes, offset: int, limit: int | None = None) -> Iterator[AnnotatedLine]:
    shown = data if limit is None else data[:limit]
    for at in range(0, len(shown), _ROW):
        row = shown[at : at + _ROW]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield AnnotatedLine(offset + at, b"", f"{row.hex(' ', 4):35}", text)
    if len(shown) < len(data):
        yield AnnotatedLine(None, b"", "", f"… {len(data) - len(shown)} more bytes")
