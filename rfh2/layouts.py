"""The fixed structures of the wire, each declared once with construct (wire formats, sections 1 to 5).

A ``Layout`` holds the declaration for both byte orders, and what is derived from it: a ``struct.Struct`` for each
order, which is what the hot path runs. ``tests/rfh2/test_layouts.py`` proves that the two read and write alike.

The eight fields with which most headers begin, and the headers of which no more is read (wire formats, section 5).

    0        4        8            12        16              20      28     32
    StrucId  Version  StrucLength  Encoding  CodedCharSetId  Format  Flags  whatever the header is for

These fields are enough to step over any header: StrucLength says where it ends, and Encoding, CodedCharSetId and
Format describe what follows. Publish/subscribe does not use CICS, IMS, reference, work and distribution headers;
they are stepped over and kept unchanged.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple, Protocol

import construct as c

from rfh2.ccsid import ASCII_FIELDS, EBCDIC_FIELDS, ByteOrder, field_codec
from rfh2.constants import MQCCSI_INHERIT, MQENC_NATIVE, MQRC_HEADER_ERROR
from rfh2.errors import DecodeError, EncodeError

Fields = Callable[[Any], tuple[Any, ...]]


class Layout:
    """A fixed structure: its IBM name, its fields in IBM's names, its size in bytes."""

    def __init__(self, name: str, fields: Fields) -> None:
        self.name = name
        self.declared: dict[ByteOrder, Any] = {
            "big": c.Struct(*fields(c.Int32sb)),
            "little": c.Struct(*fields(c.Int32sl)),
        }
        self.fast: dict[ByteOrder, struct.Struct] = {
            "big": struct.Struct(">" + self._format()),
            "little": struct.Struct("<" + self._format()),
        }
        self.size: int = self.declared["big"].sizeof()
        self.names: tuple[str, ...] = tuple(field.name for field in self.declared["big"].subcons)

    def _format(self) -> str:
        parts = []
        for field in self.declared["big"].subcons:
            kind = field.subcon
            parts.append(kind.fmtstr[-1] if isinstance(kind, c.FormatField) else f"{kind.sizeof()}s")
        return "".join(parts)

    def pack(self, order: ByteOrder, *values: Any) -> bytes:
        """The bytes of *values*, one a field. Raises EncodeError for a number that does not fit its field.

        Byte fields must have their exact length already: struct would cut or fill them without an error.
        """
        try:
            return self.fast[order].pack(*values)
        except struct.error as error:
            raise EncodeError(f"{self.name}: {error}") from error

    def offset(self, name: str) -> int:
        """Where the field begins, in bytes from the start. Raises KeyError where there is no such field."""
        for found, offset, _ in self.spans():
            if found == name:
                return offset
        raise KeyError(f"{self.name} has no field {name}")

    def spans(self) -> list[tuple[str, int, int]]:
        """(name, offset, length) of each field, in order."""
        out, offset = [], 0
        for field in self.declared["big"].subcons:
            size = field.sizeof()
            out.append((field.name, offset, size))
            offset += size
        return out

    def slices(self) -> dict[str, slice]:
        """Where each field is in the bytes of the structure, by its name."""
        return {name: slice(offset, offset + size) for name, offset, size in self.spans()}


def _mqmd1(long: Any) -> tuple[Any, ...]:
    return (
        "StrucId" / c.Bytes(4),
        "Version" / long,
        "Report" / long,
        "MsgType" / long,
        "Expiry" / long,
        "Feedback" / long,
        "Encoding" / long,
        "CodedCharSetId" / long,
        "Format" / c.Bytes(8),
        "Priority" / long,
        "Persistence" / long,
        "MsgId" / c.Bytes(24),
        "CorrelId" / c.Bytes(24),
        "BackoutCount" / long,
        "ReplyToQ" / c.Bytes(48),
        "ReplyToQMgr" / c.Bytes(48),
        "UserIdentifier" / c.Bytes(12),
        "AccountingToken" / c.Bytes(32),
        "ApplIdentityData" / c.Bytes(32),
        "PutApplType" / long,
        "PutApplName" / c.Bytes(28),
        "PutDate" / c.Bytes(8),
        "PutTime" / c.Bytes(8),
        "ApplOriginData" / c.Bytes(4),
    )


def _mqmd2(long: Any) -> tuple[Any, ...]:
    return (
        *_mqmd1(long),
        "GroupId" / c.Bytes(24),
        "MsgSeqNumber" / long,
        "Offset" / long,
        "MsgFlags" / long,
        "OriginalLength" / long,
    )


def _rfh(long: Any) -> tuple[Any, ...]:
    return (
        "StrucId" / c.Bytes(4),
        "Version" / long,
        "StrucLength" / long,
        "Encoding" / long,
        "CodedCharSetId" / long,
        "Format" / c.Bytes(8),
        "Flags" / long,
    )


def _rfh2(long: Any) -> tuple[Any, ...]:
    return (*_rfh(long), "NameValueCCSID" / long)


def _dlh(long: Any) -> tuple[Any, ...]:
    return (
        "StrucId" / c.Bytes(4),
        "Version" / long,
        "Reason" / long,
        "DestQName" / c.Bytes(48),
        "DestQMgrName" / c.Bytes(48),
        "Encoding" / long,
        "CodedCharSetId" / long,
        "Format" / c.Bytes(8),
        "PutApplType" / long,
        "PutApplName" / c.Bytes(28),
        "PutDate" / c.Bytes(8),
        "PutTime" / c.Bytes(8),
    )


def _xqh(long: Any) -> tuple[Any, ...]:
    return (
        "StrucId" / c.Bytes(4),
        "Version" / long,
        "RemoteQName" / c.Bytes(48),
        "RemoteQMgrName" / c.Bytes(48),
    )


def _mde(long: Any) -> tuple[Any, ...]:
    return (
        *_rfh(long),
        "GroupId" / c.Bytes(24),
        "MsgSeqNumber" / long,
        "Offset" / long,
        "MsgFlags" / long,
        "OriginalLength" / long,
    )


def _parameter(long: Any) -> tuple[Any, ...]:
    return ("Type" / long, "StrucLength" / long, "Parameter" / long)


def _cfh(long: Any) -> tuple[Any, ...]:
    names = ("Type", "StrucLength", "Version", "Command", "MsgSeqNumber", "Control", "CompCode", "Reason")
    return (*(name / long for name in names), "ParameterCount" / long)


def _cf(*names: str) -> Fields:
    return lambda long: (*_parameter(long), *(name / long for name in names))


def _cfin64(long: Any) -> tuple[Any, ...]:
    return (*_parameter(long), "Reserved" / long, "Value" / (c.Int64sb if long is c.Int32sb else c.Int64sl))


MQMD1 = Layout("MQMD", _mqmd1)
MQMD2 = Layout("MQMD", _mqmd2)
MQRFH = Layout("MQRFH", _rfh)
MQRFH2 = Layout("MQRFH2", _rfh2)
MQDLH = Layout("MQDLH", _dlh)
MQXQH = Layout("MQXQH", _xqh)  # an MQMD of version 1 follows
MQMDE = Layout("MQMDE", _mde)

# PCF: strings, lists and group members follow the fixed part of their parameter.
MQCFH = Layout("MQCFH", _cfh)
PARAMETER = Layout("PCF parameter", _parameter)
MQCFIN = Layout("MQCFIN", _cf("Value"))
MQCFST = Layout("MQCFST", _cf("CodedCharSetId", "StringLength"))
MQCFIL = Layout("MQCFIL", _cf("Count"))
MQCFSL = Layout("MQCFSL", _cf("CodedCharSetId", "Count", "StringLength"))
MQCFBS = Layout("MQCFBS", _cf("StringLength"))
MQCFIF = Layout("MQCFIF", _cf("Operator", "FilterValue"))
MQCFSF = Layout("MQCFSF", _cf("Operator", "CodedCharSetId", "FilterValueLength"))
MQCFBF = Layout("MQCFBF", _cf("Operator", "FilterValueLength"))
MQCFGR = Layout("MQCFGR", _cf("ParameterCount"))
MQCFIN64 = Layout("MQCFIN64", _cfin64)
MQCFIL64 = Layout("MQCFIL64", _cf("Count"))

ALL: tuple[Layout, ...] = (
    MQMD1,
    MQMD2,
    MQRFH,
    MQRFH2,
    MQDLH,
    MQXQH,
    MQMDE,
    MQCFH,
    PARAMETER,
    MQCFIN,
    MQCFST,
    MQCFIL,
    MQCFSL,
    MQCFBS,
    MQCFIF,
    MQCFSF,
    MQCFBF,
    MQCFGR,
    MQCFIN64,
    MQCFIL64,
)


@lru_cache(maxsize=4096)
def characters(value: str, size: int, charset: str, field: str) -> bytes:
    """*value* as a fixed character field of *size* bytes, padded with blanks. Raises EncodeError.

    The names in descriptors are few and come again and again, so the fields are kept.
    """
    try:
        data = value.encode(charset)
    except UnicodeEncodeError as error:
        raise EncodeError(f"{field}: {value!r} cannot be written in {charset}") from error
    if len(data) > size:
        raise EncodeError(f"{field}: {value!r} is longer than {size} bytes")
    return data.ljust(size, b" " if charset == ASCII_FIELDS else " ".encode(charset))


LENGTH: Final = MQRFH.size


@dataclass(frozen=True)
class HeaderKind:
    """A header by its IBM name. sizes: the least StrucLength of each version, in bytes. reason: for a malformed one."""

    name: str
    struc_id: str
    format: str
    sizes: dict[int, int]
    reason: int = MQRC_HEADER_ERROR

    @cached_property
    def families(self) -> dict[bytes, bool]:
        """StrucId as it is in ASCII and in EBCDIC, to whether it is EBCDIC."""
        return {self.struc_id.encode(ASCII_FIELDS): False, self.struc_id.encode(EBCDIC_FIELDS): True}

    @cached_property
    def versions(self) -> dict[bytes, tuple[int, ByteOrder]]:
        """The bytes of Version in either byte order, to the version and the order."""
        orders: tuple[ByteOrder, ...] = ("big", "little")
        return {version.to_bytes(4, order): (version, order) for version in self.sizes for order in orders}


class Prologued(Protocol):
    """A header that begins with the prologue."""

    @property
    def version(self) -> int: ...
    @property
    def length(self) -> int: ...
    @property
    def encoding(self) -> int: ...
    @property
    def coded_char_set_id(self) -> int: ...
    @property
    def format(self) -> str: ...
    @property
    def flags(self) -> int: ...
    @property
    def order(self) -> ByteOrder: ...
    @property
    def charset(self) -> str: ...


class Prologue(NamedTuple):
    """The eight fields as read, and how: in which byte order, with which codec."""

    version: int
    length: int
    encoding: int
    coded_char_set_id: int
    format: str
    flags: int
    order: ByteOrder
    charset: str


STEPPED_OVER: Final = (
    HeaderKind("MQCIH", "CIH ", "MQCICS", {1: 164, 2: 180}),
    HeaderKind("MQDH", "DH  ", "MQHDIST", {1: 48}),
    HeaderKind("MQIIH", "IIH ", "MQIMS", {1: 84}),
    HeaderKind("MQRMH", "RMH ", "MQHREF", {1: 108}),
    HeaderKind("MQWIH", "WIH ", "MQHWIH", {1: 120}),
)
_BY_NAME: Final = {kind.name: kind for kind in STEPPED_OVER}


@dataclass(frozen=True, slots=True)
class SteppedHeader:
    """A header of which the prologue is read and the rest kept. kind: one of ``STEPPED_OVER``, such as ``MQIIH``.

    rest: the bytes behind the prologue, up to StrucLength.
    """

    kind: str
    rest: bytes
    version: int = 1
    encoding: int = MQENC_NATIVE
    coded_char_set_id: int = MQCCSI_INHERIT
    format: str = ""
    flags: int = 0
    order: ByteOrder = "little"
    charset: str = ASCII_FIELDS

    @property
    def own_format(self) -> str:
        """The Format that announces this kind of header."""
        return _BY_NAME[self.kind].format

    @property
    def length(self) -> int:
        """StrucLength: the whole header in bytes."""
        return LENGTH + len(self.rest)

    def encode(self) -> bytes:
        """The bytes of this header. Raises EncodeError."""
        kind = _BY_NAME[self.kind]
        fields = prologue_fields(kind, self)
        if self.length < kind.sizes[self.version]:
            raise EncodeError(f"{self.kind}: {self.length} bytes, of {kind.sizes[self.version]} at least")
        return MQRFH.pack(self.order, *fields) + self.rest


def decode_prologue(kind: HeaderKind, data: bytes, offset: int, ccsid: int) -> Prologue:
    """The prologue of a header of that kind at *offset* in *data*, all of which, to StrucLength, is there.

    ccsid: CodedCharSetId of the *preceding* header. The byte order is read off Version. Raises DecodeError.
    """

    def refused(at: int, why: str, code: str) -> DecodeError:
        return DecodeError(at, kind.name, why, code, kind.reason)

    struc_id = data[offset : offset + 4]
    ebcdic = kind.families.get(struc_id)
    if ebcdic is None:
        raise refused(offset, f"StrucId is {struc_id!r}, not {kind.struc_id!r}", "bad-struc-id")
    found = kind.versions.get(data[offset + 4 : offset + 8])
    if found is None:
        versions = " or ".join(map(str, kind.sizes))
        raise refused(offset + 4, f"Version is not {versions} in either byte order", "unknown-version")
    version, order = found
    there, least = len(data) - offset, kind.sizes[version]
    if there < least:
        raise refused(len(data), f"{least} bytes are needed for the fixed part, {there} are there", "short-header")
    _, _, length, encoding, next_ccsid, fmt, flags = MQRFH.fast[order].unpack_from(data, offset)
    if not least <= length <= there:
        why = f"StrucLength {length} is not between {least} and the {there} bytes that are there"
        raise refused(offset + 8, why, "bad-struc-length")
    charset = field_codec(ccsid, ebcdic)
    return Prologue(version, length, encoding, next_ccsid, str(fmt, charset).rstrip(" "), flags, order, charset)


def prologue_fields(kind: HeaderKind, header: Prologued) -> tuple[bytes | int, ...]:
    """The values of the fields with which *header* begins, ready to be packed. Raises EncodeError."""
    if header.version not in kind.sizes:
        raise EncodeError(f"{kind.name}: there is no version {header.version}")
    return (
        kind.struc_id.encode(header.charset),
        header.version,
        header.length,
        header.encoding,
        header.coded_char_set_id,
        characters(header.format, 8, header.charset, "Format"),
        header.flags,
    )


def decode_stepped(kind: HeaderKind, data: bytes, offset: int, ccsid: int) -> SteppedHeader:
    """The header of that kind at *offset* in *data*; ccsid: of the *preceding* header. Raises DecodeError."""
    p = decode_prologue(kind, data, offset, ccsid)
    return SteppedHeader(
        kind=kind.name,
        rest=data[offset + LENGTH : offset + p.length],
        version=p.version,
        encoding=p.encoding,
        coded_char_set_id=p.coded_char_set_id,
        format=p.format,
        flags=p.flags,
        order=p.order,
        charset=p.charset,
    )
