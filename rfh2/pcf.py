"""PCF: programmable command format, a header (MQCFH) and parameters (wire formats 5.1).

    MQCFH      Type  StrucLength  Version  Command  MsgSeqNumber  Control  CompCode  Reason  ParameterCount
    parameter  Type  StrucLength  Parameter  what its type has

PCF is a body (Format MQADMIN, MQPCF, MQEVENT), not a chained header; only an MQEPH embeds one. The byte order is read
off the header's StrucLength, which is 36 in exactly one. A group counts as one parameter; its members follow it and are
counted by its own ParameterCount. Whatever stands between the end of a parameter's value and its StrucLength, and
behind the last parameter, is kept: ``encode`` gives back the bytes that were decoded.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from rfh2 import constants as mq, layouts, pcf_names
from rfh2.ccsid import ASCII_FIELDS, UTF8_CCSID, ByteOrder, text_codec
from rfh2.errors import DecodeError, EncodeError
from rfh2.layouts import LENGTH, MQCFGR, MQCFH, MQRFH, PARAMETER, HeaderKind, Layout, decode_prologue, prologue_fields
from rfh2.pcf_names import MQCFC_LAST, MQCFT_COMMAND, MQRCCF_CFH_LENGTH_ERROR, MQRCCF_CFH_PARM_COUNT_ERROR

# The parameters of PCF, one class a structure (wire formats 5.1).
#
# Each begins Type, StrucLength, Parameter. ``tail`` is what StrucLength leaves behind the value, padding to four bytes
# as a rule; it is kept as it came. ``of`` makes a parameter with the padding that a program would give it. Strings stay
# bytes; ``text`` reads them in their CodedCharSetId, or where that is 0 in that of the message.

# A list of strings of no length could announce two thousand million of them in 24 bytes.
MAX_EMPTY_STRINGS: Final = 10_000


class Parameter(Protocol):
    """Any parameter: its Type and its number, its length in bytes with group members, and its bytes.

    ``encode`` raises EncodeError.
    """

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
        return layouts.MQCFIN.size + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
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
        return layouts.MQCFIN64.size + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
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
        return layouts.MQCFIL.size + 4 * len(self.values) + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
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
        return layouts.MQCFIL64.size + 8 * len(self.values) + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
        fixed = layouts.MQCFIL64.pack(order, self.type, self.length, self.parameter, len(self.values))
        return fixed + _numbers(self.values, "q", order) + self.tail


@dataclass(frozen=True, slots=True)
class Cfst:
    """A string. charset: the codec of its CodedCharSetId or the message's, empty where there is none."""

    parameter: int
    data: bytes
    coded_char_set_id: int = mq.MQCCSI_DEFAULT
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
        return layouts.MQCFST.size + len(self.data) + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
        own = (self.coded_char_set_id, len(self.data))
        return layouts.MQCFST.pack(order, self.type, self.length, self.parameter, *own) + self.data + self.tail


@dataclass(frozen=True, slots=True)
class Cfsl:
    """A list of strings of one length, in bytes *string_length*. charset: as for a string."""

    parameter: int
    strings: tuple[bytes, ...] = ()
    string_length: int = 0
    coded_char_set_id: int = mq.MQCCSI_DEFAULT
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
        return layouts.MQCFSL.size + self.string_length * len(self.strings) + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
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
        return layouts.MQCFBS.size + len(self.data) + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
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
        return layouts.MQCFIF.size + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
        own = (self.operator, self.value)
        return layouts.MQCFIF.pack(order, self.type, self.length, self.parameter, *own) + self.tail


@dataclass(frozen=True, slots=True)
class Cfsf:
    """A filter on a string. charset: as for a string."""

    parameter: int
    operator: int
    data: bytes
    coded_char_set_id: int = mq.MQCCSI_DEFAULT
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
        return layouts.MQCFSF.size + len(self.data) + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
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
        return layouts.MQCFBF.size + len(self.data) + len(self.tail)

    def encode(self, order: ByteOrder) -> bytes:
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
        return layouts.PARAMETER.size + len(self.data)

    def encode(self, order: ByteOrder) -> bytes:
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
        raise malformed(area.offset, "MQCFSL", f"StringLength {size} is negative", "bad-string-length")
    if size == 0 and count > MAX_EMPTY_STRINGS:
        raise malformed(area.offset, "MQCFSL", f"Count {count} of strings of no length", "bad-count")
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


ParameterDecoder = Callable[[int, tuple[int, ...], Area], Parameter]

# Groups are not here: their members are the caller's to find.
PARAMETERS: Final[dict[int, tuple[Layout, ParameterDecoder]]] = {
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


def malformed(offset: int, header: str, why: str, code: str, reason: int = mq.MQRCCF_MSG_LENGTH_ERROR) -> DecodeError:
    """The error for malformed PCF."""
    return DecodeError(offset, header, why, code, reason)


def _fits(area: Area, size: int, count: int, header: str, name: str) -> int:
    """Where *count* values of *size* bytes end in *area*. Raises DecodeError where they do not fit it."""
    if count < 0 or count * size > len(area.data):
        why = f"{name} {count} does not fit the {len(area.data)} bytes that StrucLength leaves"
        raise malformed(area.offset, header, why, "bad-count" if name == "Count" else "bad-string-length")
    return size * count


def _unpacked(area: Area, count: int, letter: str) -> tuple[int, ...]:
    return struct.unpack_from(f"{'>' if area.order == 'big' else '<'}{count}{letter}", area.data)


def _numbers(values: tuple[int, ...], letter: str, order: ByteOrder) -> bytes:
    try:
        return struct.pack(f"{'>' if order == 'big' else '<'}{len(values)}{letter}", *values)
    except struct.error as error:
        raise EncodeError(f"PCF integer list: {error}") from error


def _charset(own: int, inherited: int, order: ByteOrder) -> str:
    ccsid = inherited if own in (mq.MQCCSI_DEFAULT, mq.MQCCSI_EMBEDDED, mq.MQCCSI_INHERIT) else own
    if ccsid in (mq.MQCCSI_DEFAULT, mq.MQCCSI_INHERIT):
        return "ascii"
    return text_codec(ccsid, mq.MQENC_INTEGER_NORMAL if order == "big" else mq.MQENC_INTEGER_REVERSED) or ""


def _text(data: bytes, charset: str, offset: int) -> str:
    if not charset:
        raise malformed(offset, "PCF string", "its CodedCharSetId has no codec here", "bad-character")
    try:
        return data.decode(charset).rstrip("\0")
    except UnicodeDecodeError as error:
        why = f"not {charset}: {error.reason}"
        raise malformed(offset + error.start, "PCF string", why, "bad-character") from error


def _encoded(text: str, charset: str) -> bytes:
    try:
        return text.encode(charset)
    except (LookupError, UnicodeEncodeError) as error:
        where = charset or "a CCSID without a codec"
        raise EncodeError(f"PCF string: {text!r} cannot be written in {where}") from error


FORMATS: Final = ("MQADMIN", "MQPCF", "MQEVENT")

# Real groups are three deep at most; a bound, so that no message can exhaust the stack.
MAX_DEPTH: Final = 32

_ORDERS: Final[dict[bytes, ByteOrder]] = {b"\0\0\0\x24": "big", b"\x24\0\0\0": "little"}


@dataclass(frozen=True, slots=True)
class Pcf:
    """One PCF message: the fields of its MQCFH and its parameters. rest: bytes behind the last parameter."""

    command: int
    parameters: tuple[Parameter, ...] = ()
    type: int = MQCFT_COMMAND
    version: int = 1
    msg_seq_number: int = 1
    control: int = MQCFC_LAST
    comp_code: int = 0
    reason: int = 0
    order: ByteOrder = "little"
    rest: bytes = b""

    @property
    def length(self) -> int:
        """Header, parameters and rest in bytes."""
        return MQCFH.size + sum(parameter.length for parameter in self.parameters) + len(self.rest)

    def first(self, parameter: int) -> Parameter | None:
        """The first parameter of that number, not looking into groups."""
        return next(self.all(parameter), None)

    def all(self, parameter: int) -> Iterator[Parameter]:
        """The parameters of that number in order, not looking into groups."""
        return (found for found in self.parameters if found.parameter == parameter)

    def encode(self) -> bytes:
        """The bytes of this message. Raises EncodeError."""
        own = (self.version, self.command, self.msg_seq_number, self.control, self.comp_code, self.reason)
        header = MQCFH.pack(self.order, self.type, MQCFH.size, *own, len(self.parameters))
        return b"".join([header, *(parameter.encode(self.order) for parameter in self.parameters), self.rest])


def decode_pcf(data: bytes, ccsid: int = 0, offset: int = 0) -> Pcf:
    """The PCF message that *data* is.

    ccsid: CodedCharSetId that describes it; strings whose own is 0 are in it. offset: of *data* in the message that it
    is part of, for the offsets of errors. Raises DecodeError.
    """
    if len(data) < MQCFH.size:
        raise malformed(
            offset + len(data), "MQCFH", f"{MQCFH.size} bytes are needed, {len(data)} are there", "short-header"
        )
    order = _ORDERS.get(data[4:8])
    if order is None:
        why = f"StrucLength is not {MQCFH.size} in either byte order"
        raise malformed(offset + 4, "MQCFH", why, "bad-struc-length", MQRCCF_CFH_LENGTH_ERROR)
    kind, _, version, command, number, control, comp_code, reason, count = MQCFH.fast[order].unpack_from(data)
    if count < 0:
        why = f"ParameterCount {count} is negative"
        raise malformed(offset + 32, "MQCFH", why, "bad-parameter-count", MQRCCF_CFH_PARM_COUNT_ERROR)
    parameters, at = _Reader(data, offset, order, ccsid).parameters(MQCFH.size, count)
    own = (kind, version, number, control, comp_code, reason)
    return Pcf(command, parameters, *own, order, data[at:])


class _Reader(NamedTuple):
    data: bytes
    base: int
    order: ByteOrder
    ccsid: int

    def parameters(self, at: int, count: int, depth: int = MAX_DEPTH) -> tuple[tuple[Parameter, ...], int]:
        """*count* parameters from *at* on, and the offset behind the last one with its members."""
        found: list[Parameter] = []
        for _ in range(count):
            there = len(self.data) - at
            if there < PARAMETER.size:
                why = f"{count} parameters are announced, {len(found)} are there"
                raise malformed(self.base + at, "PCF parameter", why, "bad-parameter-count")
            kind, length, number = PARAMETER.fast[self.order].unpack_from(self.data, at)
            if not PARAMETER.size <= length <= there:
                why = f"StrucLength {length} is not between {PARAMETER.size} and the {there} bytes that are there"
                raise malformed(self.base + at + 4, "PCF parameter", why, "bad-struc-length")
            if kind == Cfgr.type:
                group, at = self.group(at, length, depth)
                found.append(group)
                continue
            known = PARAMETERS.get(kind)
            if known is None:
                found.append(UnknownParameter(number, kind, self.data[at + PARAMETER.size : at + length]))
            else:
                layout, decoder = known
                fields, area = self.split(layout, at, length)
                found.append(decoder(number, fields, area))
            at += length
        return tuple(found), at

    def group(self, at: int, length: int, depth: int) -> tuple[Cfgr, int]:
        """The group at *at*, and the offset behind its members."""
        if depth == 0:
            raise malformed(self.base + at, "MQCFGR", f"groups nested more than {MAX_DEPTH} deep", "too-deep")
        (count,), area = self.split(MQCFGR, at, length)
        if count < 0:
            raise malformed(self.base + at + 12, "MQCFGR", f"ParameterCount {count} is negative", "bad-parameter-count")
        members, behind = self.parameters(at + length, count, depth - 1)
        number = PARAMETER.fast[self.order].unpack_from(self.data, at)[2]
        return Cfgr(number, members, area.data), behind

    def split(self, layout: Layout, at: int, length: int) -> tuple[tuple[int, ...], Area]:
        """The fields behind the three that every parameter has, and the bytes behind those."""
        if length < layout.size:
            why = f"StrucLength {length} is less than {layout.size}"
            raise malformed(self.base + at + 4, layout.name, why, "bad-struc-length")
        start = at + layout.size
        fields = layout.fast[self.order].unpack_from(self.data, at)[3:]
        return fields, Area(self.data[start : at + length], self.base + start, self.order, self.ccsid)


# The embedded PCF header: PCF in front of other data, such as a trace of its route (wire formats, section 5).
#
#     the prologue of 32 bytes, then an MQCFH and its parameters, all within StrucLength
#
# Integers and characters of the PCF are, like those of the prologue, in the Encoding and CCSID of the *preceding*
# header.

EPH_KIND: Final = HeaderKind("MQEPH", "EPH ", "MQHEPCF", {1: LENGTH + MQCFH.size})


@dataclass(frozen=True, slots=True)
class Eph:
    """One MQEPH. data: the PCF as on the wire, read only when somebody asks.

    ccsid: CodedCharSetId of the *preceding* header, in which PCF strings are that name none of their own. offset: where
    *data* stood in the message that it was decoded from; it does not take part in comparison.
    """

    data: bytes
    encoding: int = mq.MQENC_NATIVE
    coded_char_set_id: int = 0
    format: str = ""
    flags: int = 0
    order: ByteOrder = "little"
    charset: str = ASCII_FIELDS
    ccsid: int = 0
    offset: int = field(default=0, compare=False)

    kind = EPH_KIND.name
    own_format = EPH_KIND.format
    version = 1

    @property
    def length(self) -> int:
        """StrucLength: the whole header in bytes, the PCF included."""
        return LENGTH + len(self.data)

    def pcf(self) -> Pcf:
        """The PCF message. Raises DecodeError, with an offset into the message."""
        return decode_pcf(self.data, self.ccsid, self.offset)

    def encode(self) -> bytes:
        """The bytes of this header. Raises EncodeError."""
        if len(self.data) < MQCFH.size:
            raise EncodeError(f"MQEPH: {len(self.data)} bytes are less than an MQCFH has")
        return MQRFH.pack(self.order, *prologue_fields(EPH_KIND, self)) + self.data


def decode_eph(data: bytes, offset: int, ccsid: int) -> Eph:
    """The MQEPH at *offset* in *data*; ccsid: CodedCharSetId of the *preceding* header. Raises DecodeError."""
    p = decode_prologue(EPH_KIND, data, offset, ccsid)
    start, described = offset + LENGTH, (p.encoding, p.coded_char_set_id, p.format, p.flags)
    return Eph(data[start : offset + p.length], *described, p.order, p.charset, ccsid, start)
