"""The parameters of PCF, one class a structure (wire formats 5.1).

Each begins Type, StrucLength, Parameter. ``tail`` is what StrucLength leaves behind the value, padding to four bytes as
a rule; it is kept as it came. ``of`` makes a parameter with the padding that a program would give it. Strings stay
bytes; ``text`` reads them in their CodedCharSetId, or where that is 0 in that of the message.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from rfh2 import layouts, pcf_names
from rfh2.ccsid import UTF8_CCSID, ByteOrder, text_codec
from rfh2.constants import (
    MQCCSI_DEFAULT,
    MQCCSI_EMBEDDED,
    MQCCSI_INHERIT,
    MQENC_INTEGER_NORMAL,
    MQENC_INTEGER_REVERSED,
    MQRCCF_MSG_LENGTH_ERROR,
)
from rfh2.errors import DecodeError, EncodeError
from rfh2.layouts import Layout

# A list of strings of no length could announce two thousand million of them in 24 bytes.
MAX_EMPTY_STRINGS: Final = 10_000


class Parameter(Protocol):
    """Any parameter: its Type, its number, its length in bytes with group members, and its bytes."""

    @property
    def type(self) -> int: ...
    @property
    def parameter(self) -> int: ...
    @property
    def length(self) -> int: ...
    def encode(self, order: ByteOrder) -> bytes: ...


class Area(NamedTuple):
    """The bytes of a parameter behind its fixed part, where they stand in the message, and how to read them."""

    data: bytes
    offset: int
    order: ByteOrder
    ccsid: int


@dataclass(frozen=True, slots=True)
class Cfin:
    """An integer."""

    parameter: int
    value: int
    tail: bytes = b""

    type = pcf_names.MQCFT_INTEGER

    @property
    def length(self) -> int:
        """StrucLength in bytes."""
        return layouts.MQCFIN.size + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
        """The bytes of this parameter. Raises EncodeError."""
        return layouts.MQCFIN.pack(order, self.type, self.length, self.parameter, self.value) + self.tail


@dataclass(frozen=True, slots=True)
class Cfin64:
    """An integer of 64 bits. reserved: stands before the value."""

    parameter: int
    value: int
    reserved: int = 0
    tail: bytes = b""

    type = pcf_names.MQCFT_INTEGER64

    @property
    def length(self) -> int:
        """StrucLength in bytes."""
        return layouts.MQCFIN64.size + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
        """The bytes of this parameter. Raises EncodeError."""
        own = (self.reserved, self.value)
        return layouts.MQCFIN64.pack(order, self.type, self.length, self.parameter, *own) + self.tail


@dataclass(frozen=True, slots=True)
class Cfil:
    """A list of integers."""

    parameter: int
    values: tuple[int, ...] = ()
    tail: bytes = b""

    type = pcf_names.MQCFT_INTEGER_LIST

    @property
    def length(self) -> int:
        """StrucLength in bytes."""
        return layouts.MQCFIL.size + 4 * len(self.values) + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
        """The bytes of this parameter. Raises EncodeError."""
        fixed = layouts.MQCFIL.pack(order, self.type, self.length, self.parameter, len(self.values))
        return fixed + _numbers(self.values, "i", order) + self.tail


@dataclass(frozen=True, slots=True)
class Cfil64:
    """A list of integers of 64 bits."""

    parameter: int
    values: tuple[int, ...] = ()
    tail: bytes = b""

    type = pcf_names.MQCFT_INTEGER64_LIST

    @property
    def length(self) -> int:
        """StrucLength in bytes."""
        return layouts.MQCFIL64.size + 8 * len(self.values) + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
        """The bytes of this parameter. Raises EncodeError."""
        fixed = layouts.MQCFIL64.pack(order, self.type, self.length, self.parameter, len(self.values))
        return fixed + _numbers(self.values, "q", order) + self.tail


@dataclass(frozen=True, slots=True)
class Cfst:
    """A string. charset: the codec of its CodedCharSetId or the message's, empty where there is none."""

    parameter: int
    data: bytes
    coded_char_set_id: int = MQCCSI_DEFAULT
    charset: str = "ascii"
    tail: bytes = b""
    offset: int = field(default=0, compare=False)

    type = pcf_names.MQCFT_STRING

    @classmethod
    def of(cls, parameter: int, text: str, ccsid: int = UTF8_CCSID) -> Cfst:
        """A string parameter in *ccsid*, padded with nulls to a multiple of four bytes. Raises EncodeError."""
        charset = _charset(ccsid, 0, "little")
        data = _encoded(text, charset)
        return cls(parameter, data, ccsid, charset, bytes(-len(data) % 4))

    @property
    def text(self) -> str:
        """The characters, without nulls at the end. Raises DecodeError."""
        return _text(self.data, self.charset, self.offset)

    @property
    def length(self) -> int:
        """StrucLength in bytes."""
        return layouts.MQCFST.size + len(self.data) + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
        """The bytes of this parameter. Raises EncodeError."""
        own = (self.coded_char_set_id, len(self.data))
        return layouts.MQCFST.pack(order, self.type, self.length, self.parameter, *own) + self.data + self.tail


@dataclass(frozen=True, slots=True)
class Cfsl:
    """A list of strings of one length, in bytes *string_length*. charset: as for a string."""

    parameter: int
    strings: tuple[bytes, ...] = ()
    string_length: int = 0
    coded_char_set_id: int = MQCCSI_DEFAULT
    charset: str = "ascii"
    tail: bytes = b""
    offset: int = field(default=0, compare=False)

    type = pcf_names.MQCFT_STRING_LIST

    @classmethod
    def of(cls, parameter: int, texts: tuple[str, ...], ccsid: int = UTF8_CCSID) -> Cfsl:
        """A list in *ccsid*, its strings filled up with blanks to the length of the longest. Raises EncodeError."""
        charset = _charset(ccsid, 0, "little")
        strings = [_encoded(text, charset) for text in texts]
        size = max(map(len, strings), default=0)
        blank = _encoded(" ", charset)
        filled = tuple(string + blank * ((size - len(string)) // len(blank)) for string in strings)
        return cls(parameter, filled, size, ccsid, charset, bytes(-size * len(filled) % 4))

    @property
    def texts(self) -> tuple[str, ...]:
        """The strings' characters, without the blanks and nulls that fill them up. Raises DecodeError."""
        size = self.string_length
        each = (_text(string, self.charset, self.offset + i * size) for i, string in enumerate(self.strings))
        return tuple(text.rstrip(" ") for text in each)

    @property
    def length(self) -> int:
        """StrucLength in bytes."""
        return layouts.MQCFSL.size + self.string_length * len(self.strings) + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
        """The bytes of this parameter. Raises EncodeError."""
        if any(len(string) != self.string_length for string in self.strings):
            raise EncodeError(f"MQCFSL: a string is not {self.string_length} bytes long")
        own = (self.coded_char_set_id, len(self.strings), self.string_length)
        fixed = layouts.MQCFSL.pack(order, self.type, self.length, self.parameter, *own)
        return b"".join([fixed, *self.strings, self.tail])


@dataclass(frozen=True, slots=True)
class Cfbs:
    """A byte string."""

    parameter: int
    data: bytes
    tail: bytes = b""

    type = pcf_names.MQCFT_BYTE_STRING

    @classmethod
    def of(cls, parameter: int, data: bytes) -> Cfbs:
        """A byte string, padded with nulls to a multiple of four bytes."""
        return cls(parameter, data, bytes(-len(data) % 4))

    @property
    def length(self) -> int:
        """StrucLength in bytes."""
        return layouts.MQCFBS.size + len(self.data) + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
        """The bytes of this parameter. Raises EncodeError."""
        fixed = layouts.MQCFBS.pack(order, self.type, self.length, self.parameter, len(self.data))
        return fixed + self.data + self.tail


@dataclass(frozen=True, slots=True)
class Cfif:
    """A filter on an integer."""

    parameter: int
    operator: int
    value: int
    tail: bytes = b""

    type = pcf_names.MQCFT_INTEGER_FILTER

    @property
    def length(self) -> int:
        """StrucLength in bytes."""
        return layouts.MQCFIF.size + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
        """The bytes of this parameter. Raises EncodeError."""
        own = (self.operator, self.value)
        return layouts.MQCFIF.pack(order, self.type, self.length, self.parameter, *own) + self.tail


@dataclass(frozen=True, slots=True)
class Cfsf:
    """A filter on a string. charset: as for a string."""

    parameter: int
    operator: int
    data: bytes
    coded_char_set_id: int = MQCCSI_DEFAULT
    charset: str = "ascii"
    tail: bytes = b""
    offset: int = field(default=0, compare=False)

    type = pcf_names.MQCFT_STRING_FILTER

    @property
    def text(self) -> str:
        """The characters, without nulls at the end. Raises DecodeError."""
        return _text(self.data, self.charset, self.offset)

    @property
    def length(self) -> int:
        """StrucLength in bytes."""
        return layouts.MQCFSF.size + len(self.data) + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
        """The bytes of this parameter. Raises EncodeError."""
        own = (self.operator, self.coded_char_set_id, len(self.data))
        return layouts.MQCFSF.pack(order, self.type, self.length, self.parameter, *own) + self.data + self.tail


@dataclass(frozen=True, slots=True)
class Cfbf:
    """A filter on a byte string."""

    parameter: int
    operator: int
    data: bytes
    tail: bytes = b""

    type = pcf_names.MQCFT_BYTE_STRING_FILTER

    @property
    def length(self) -> int:
        """StrucLength in bytes."""
        return layouts.MQCFBF.size + len(self.data) + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
        """The bytes of this parameter. Raises EncodeError."""
        own = (self.operator, len(self.data))
        return layouts.MQCFBF.pack(order, self.type, self.length, self.parameter, *own) + self.data + self.tail


@dataclass(frozen=True, slots=True)
class Cfgr:
    """A group: its members stand behind it and count as part of it."""

    parameter: int
    members: tuple[Parameter, ...] = ()
    tail: bytes = b""

    type = pcf_names.MQCFT_GROUP

    @property
    def length(self) -> int:
        """The group with its members in bytes; its StrucLength covers itself alone."""
        return self._own_length + sum(member.length for member in self.members)

    @property
    def _own_length(self) -> int:
        return layouts.MQCFGR.size + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
        """The bytes of this parameter and its members. Raises EncodeError."""
        own = layouts.MQCFGR.pack(order, self.type, self._own_length, self.parameter, len(self.members))
        return b"".join([own, self.tail, *(member.encode(order) for member in self.members)])


@dataclass(frozen=True, slots=True)
class UnknownParameter:
    """A parameter of a Type that is not known here: stepped over and kept."""

    parameter: int
    type: int
    data: bytes

    @property
    def length(self) -> int:
        """StrucLength in bytes."""
        return layouts.PARAMETER.size + len(self.data)

    def encode(self, order: ByteOrder) -> bytes:
        """The bytes of this parameter. Raises EncodeError."""
        return layouts.PARAMETER.pack(order, self.type, self.length, self.parameter) + self.data


def _cfin(number: int, fields: tuple[int, ...], area: Area) -> Cfin:
    return Cfin(number, fields[0], area.data)


def _cfin64(number: int, fields: tuple[int, ...], area: Area) -> Cfin64:
    return Cfin64(number, fields[1], fields[0], area.data)


def _cfil(number: int, fields: tuple[int, ...], area: Area) -> Cfil:
    end = _fits(area, 4, fields[0], "MQCFIL", "Count")
    return Cfil(number, _unpacked(area, fields[0], "i"), area.data[end:])


def _cfil64(number: int, fields: tuple[int, ...], area: Area) -> Cfil64:
    end = _fits(area, 8, fields[0], "MQCFIL64", "Count")
    return Cfil64(number, _unpacked(area, fields[0], "q"), area.data[end:])


def _cfst(number: int, fields: tuple[int, ...], area: Area) -> Cfst:
    ccsid, size = fields
    end = _fits(area, 1, size, "MQCFST", "StringLength")
    charset = _charset(ccsid, area.ccsid, area.order)
    return Cfst(number, area.data[:end], ccsid, charset, area.data[end:], area.offset)


def _cfsl(number: int, fields: tuple[int, ...], area: Area) -> Cfsl:
    ccsid, count, size = fields
    if size < 0:
        raise refused(area.offset, "MQCFSL", f"StringLength {size} is negative", "bad-string-length")
    if size == 0 and count > MAX_EMPTY_STRINGS:
        raise refused(area.offset, "MQCFSL", f"Count {count} of strings of no length", "bad-count")
    end = _fits(area, size, count, "MQCFSL", "Count")
    strings = tuple(area.data[i * size : (i + 1) * size] for i in range(count))
    charset = _charset(ccsid, area.ccsid, area.order)
    return Cfsl(number, strings, size, ccsid, charset, area.data[end:], area.offset)


def _cfbs(number: int, fields: tuple[int, ...], area: Area) -> Cfbs:
    end = _fits(area, 1, fields[0], "MQCFBS", "StringLength")
    return Cfbs(number, area.data[:end], area.data[end:])


def _cfif(number: int, fields: tuple[int, ...], area: Area) -> Cfif:
    return Cfif(number, fields[0], fields[1], area.data)


def _cfsf(number: int, fields: tuple[int, ...], area: Area) -> Cfsf:
    operator, ccsid, size = fields
    end = _fits(area, 1, size, "MQCFSF", "FilterValueLength")
    charset = _charset(ccsid, area.ccsid, area.order)
    return Cfsf(number, operator, area.data[:end], ccsid, charset, area.data[end:], area.offset)


def _cfbf(number: int, fields: tuple[int, ...], area: Area) -> Cfbf:
    operator, size = fields
    end = _fits(area, 1, size, "MQCFBF", "FilterValueLength")
    return Cfbf(number, operator, area.data[:end], area.data[end:])


Decoder = Callable[[int, tuple[int, ...], Area], Parameter]

# Groups are not here: their members are the caller's to find.
DECODERS: Final[dict[int, tuple[Layout, Decoder]]] = {
    Cfin.type: (layouts.MQCFIN, _cfin),
    Cfst.type: (layouts.MQCFST, _cfst),
    Cfil.type: (layouts.MQCFIL, _cfil),
    Cfsl.type: (layouts.MQCFSL, _cfsl),
    Cfbs.type: (layouts.MQCFBS, _cfbs),
    Cfif.type: (layouts.MQCFIF, _cfif),
    Cfsf.type: (layouts.MQCFSF, _cfsf),
    Cfbf.type: (layouts.MQCFBF, _cfbf),
    Cfin64.type: (layouts.MQCFIN64, _cfin64),
    Cfil64.type: (layouts.MQCFIL64, _cfil64),
}


def refused(offset: int, header: str, why: str, code: str, reason: int = MQRCCF_MSG_LENGTH_ERROR) -> DecodeError:
    """The error for malformed PCF."""
    return DecodeError(offset, header, why, code, reason)


def _fits(area: Area, size: int, count: int, header: str, name: str) -> int:
    """Where *count* values of *size* bytes end in *area*. Raises DecodeError where they do not fit it."""
    if count < 0 or count * size > len(area.data):
        why = f"{name} {count} does not fit the {len(area.data)} bytes that StrucLength leaves"
        raise refused(area.offset, header, why, "bad-count" if name == "Count" else "bad-string-length")
    return size * count


def _unpacked(area: Area, count: int, letter: str) -> tuple[int, ...]:
    return struct.unpack_from(f"{'>' if area.order == 'big' else '<'}{count}{letter}", area.data)


def _numbers(values: tuple[int, ...], letter: str, order: ByteOrder) -> bytes:
    try:
        return struct.pack(f"{'>' if order == 'big' else '<'}{len(values)}{letter}", *values)
    except struct.error as error:
        raise EncodeError(f"PCF integer list: {error}") from error


def _charset(own: int, inherited: int, order: ByteOrder) -> str:
    ccsid = inherited if own in (MQCCSI_DEFAULT, MQCCSI_EMBEDDED, MQCCSI_INHERIT) else own
    if ccsid in (MQCCSI_DEFAULT, MQCCSI_INHERIT):
        return "ascii"
    return text_codec(ccsid, MQENC_INTEGER_NORMAL if order == "big" else MQENC_INTEGER_REVERSED) or ""


def _text(data: bytes, charset: str, offset: int) -> str:
    if not charset:
        raise refused(offset, "PCF string", "its CodedCharSetId has no codec here", "bad-character")
    try:
        return data.decode(charset).rstrip("\0")
    except UnicodeDecodeError as error:
        why = f"not {charset}: {error.reason}"
        raise refused(offset + error.start, "PCF string", why, "bad-character") from error


def _encoded(text: str, charset: str) -> bytes:
    try:
        return text.encode(charset)
    except (LookupError, UnicodeEncodeError) as error:
        where = charset or "a CCSID without a codec"
        raise EncodeError(f"PCF string: {text!r} cannot be written in {where}") from error
