"""One structure in the bytes of a segment or a call, its fields read and written by IBM's names."""

from __future__ import annotations

from functools import cache
from struct import Struct
from typing import Any

from rfh2.ccsid import ASCII_FIELDS, ByteOrder
from rfh2.errors import DecodeError
from rfh2.layouts import Layout
from rfh2.mqmd import characters, name_of


class Structure:
    """*layout* at offset *at* of *data*: reads and writes there. Raises DecodeError where *data* ends before it does.

    order: of its numbers. charset: the codec of its character fields.
    """

    __slots__ = ("at", "charset", "data", "layout", "order")

    def __init__(
        self, layout: Layout, data: bytearray, at: int = 0, order: ByteOrder = "little", charset: str = ASCII_FIELDS
    ) -> None:
        if at < 0 or len(data) < at + layout.size:
            missing = f"{max(0, len(data) - at)} of {layout.size} bytes are there"
            raise DecodeError(max(0, min(at, len(data))), layout.name, missing)
        self.layout, self.data, self.at, self.order, self.charset = layout, data, at, order, charset

    @classmethod
    def new(cls, layout: Layout, order: ByteOrder, charset: str = ASCII_FIELDS) -> Structure:
        """One of zeros, by itself."""
        return cls(layout, bytearray(layout.size), 0, order, charset)

    @property
    def end(self) -> int:
        """Where the structure ends in ``data``."""
        return self.at + self.layout.size

    def __getitem__(self, name: str) -> Any:
        offset, reader = _field(self.layout, self.order, name)
        return reader.unpack_from(self.data, self.at + offset)[0]

    def __setitem__(self, name: str, value: Any) -> None:
        offset, writer = _field(self.layout, self.order, name)
        writer.pack_into(self.data, self.at + offset, value)

    def text(self, name: str) -> str:
        """The name in a character field."""
        return name_of(str(self[name], self.charset, "replace"))

    def put_text(self, name: str, value: str) -> None:
        """Write *value*, padded with blanks. Raises EncodeError where it is too long or cannot be written."""
        _, writer = _field(self.layout, self.order, name)
        self[name] = characters(value, writer.size, self.charset, name)

    def __bytes__(self) -> bytes:
        return bytes(self.data[self.at : self.end])


@cache
def _field(layout: Layout, order: ByteOrder, name: str) -> tuple[int, Struct]:
    """Offset of the field, and what reads and writes it."""
    offset = layout.offset(name)
    part = _parts(layout.fast[order].format[1:])[layout.names.index(name)]
    return offset, Struct((">" if order == "big" else "<") + part)


def _parts(kinds: str) -> list[str]:
    out, count = [], ""
    for character in kinds:
        if character.isdigit():
            count += character
        else:
            out.append(count + character)
            count = ""
    return out
