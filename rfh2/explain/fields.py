"""The fixed part of any header, by its declared layout: bytes to IBM's field names and back.

Names end at their first null, as they do for a queue manager; data of an application, which has no such rule, loses
only the blanks and nulls at its end. What is left out of the value is still in the bytes: writing changes only the
fields that it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from rfh2 import pcf
from rfh2.ccsid import ByteOrder
from rfh2.errors import EncodeError
from rfh2.explain.form import FieldValue
from rfh2.layouts import ALL, MQMD1, MQMD2, MQRFH, MQRFH2, STEPPED_OVER, Layout, characters
from rfh2.mqmd import identifier, name_of

BYTE_STRINGS: Final = frozenset({"MsgId", "CorrelId", "GroupId", "AccountingToken"})
"""Fields of bytes that are no characters; shown as hex."""

# What the length and the kind of a header follow from; a header with others would be another header.
COMPUTED: Final = frozenset({"StrucId", "Version", "StrucLength"})

_APPLICATION_DATA = frozenset({"ApplIdentityData", "ApplOriginData"})
# Of headers that are stepped over only the prologue is known; an MQRFH is a prologue and a string.
_BY_KIND: dict[str, Layout] = {layout.name: layout for layout in ALL if layout is not MQMD2} | {
    kind.name: MQRFH for kind in (*STEPPED_OVER, pcf.EPH_KIND)
}


class Span(NamedTuple):
    """One field of a layout: where it is, in bytes, and whether it holds characters."""

    name: str
    offset: int
    size: int
    is_text: bool


@cache
def spans_of(layout: Layout) -> tuple[Span, ...]:
    """The fields of *layout*, in order."""
    values = layout.fast["big"].unpack(bytes(layout.size))
    return tuple(
        Span(*span, isinstance(value, bytes) and span[0] not in BYTE_STRINGS)
        for span, value in zip(layout.spans(), values, strict=True)
    )


@cache
def offsets_of(layout: Layout) -> Mapping[str, int]:
    """Where each field of *layout* is, in bytes."""
    return {span.name: span.offset for span in spans_of(layout)}


@cache
def texts_of(layout: Layout) -> tuple[Span, ...]:
    """The fields of *layout* that hold characters, in order."""
    return tuple([span for span in spans_of(layout) if span.is_text])


@cache
def _byte_strings_of(layout: Layout) -> tuple[str, ...]:
    return tuple([name for name in layout.names if name in BYTE_STRINGS])


def layout_of(kind: str) -> Layout | None:
    """The layout of the fixed part of a header of that kind; None where none is declared."""
    return _BY_KIND.get(kind)


def descriptor_layout(version: int) -> Layout:
    """The layout of an MQMD of that version."""
    return MQMD1 if version == 1 else MQMD2


def read_fields(layout: Layout, data: bytes, order: ByteOrder, charset: str) -> dict[str, FieldValue]:
    """The fields of the fixed part at the start of *data*, in order."""
    fixed = data[: layout.size]
    if len(fixed) > _SHORT:
        return _read_fields(layout, fixed, order, charset)
    return _of_header(layout, fixed, order, charset).copy()


def _read_fields(layout: Layout, data: bytes, order: ByteOrder, charset: str) -> dict[str, FieldValue]:
    fields: dict[str, Any] = dict(zip(layout.names, layout.fast[order].unpack_from(data), strict=True))
    for name in _byte_strings_of(layout):
        fields[name] = fields[name].hex()
    for name, _, _, _ in texts_of(layout):
        fields[name] = _shown(name, fields[name], charset)
    return fields


# Unlike a descriptor, the header of a message is for the most part that of the last one.
_of_header = lru_cache(maxsize=1024)(_read_fields)
_SHORT: Final = MQRFH2.size


def write_fields(
    layout: Layout, data: bytes, order: ByteOrder, charset: str, changes: Mapping[str, FieldValue]
) -> bytes:
    """The fixed part at the start of *data* with some fields changed, all other bytes as they are.

    Raises EncodeError for a field that the layout lacks, and a value that does not fit its field.
    """
    if not changes:
        return data[: layout.size]
    unknown = [name for name in changes if name not in layout.names]
    if unknown:
        raise EncodeError(f"{layout.name} has no field {unknown[0]}")
    values = list(layout.fast[order].unpack_from(data))
    for at, (name, _, size, _) in enumerate(spans_of(layout)):
        if name not in changes:
            continue
        label = f"{layout.name} {name}"
        if isinstance(values[at], int):
            values[at] = _number(changes[name], label)
        elif name in BYTE_STRINGS:
            values[at] = _byte_string(changes[name], size, label)
        else:
            values[at] = characters(_text(changes[name], label), size, charset, label)
    return layout.pack(order, *values)


# There are few names, and they are used often.
@lru_cache(maxsize=4096)
def _shown(name: str, value: bytes, charset: str) -> str:
    text = value.decode(charset)
    if name == "StrucId":
        return text
    return text.rstrip(" \0") if name in _APPLICATION_DATA else name_of(text)


def _number(value: FieldValue, label: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise EncodeError(f"{label}: {value!r} is not a number")
    return value


def _text(value: FieldValue, label: str) -> str:
    if not isinstance(value, str):
        raise EncodeError(f"{label}: {value!r} is not text")
    return value


def _byte_string(value: FieldValue, size: int, label: str) -> bytes:
    try:
        data = bytes.fromhex(_text(value, label))
    except ValueError as error:
        raise EncodeError(f"{label}: {value!r} is not hex") from error
    return identifier(data, size, label)
