"""The fixed structures of the wire, each declared once with construct (wire formats, sections 1 to 5).

A ``Layout`` holds the declaration for both byte orders, and what is derived from it: a ``struct.Struct`` for each
order, which is what the hot path runs. ``tests/rfh2/test_layouts.py`` proves that the two read and write alike.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import construct as c

from rfh2.ccsid import ASCII_FIELDS, ByteOrder
from rfh2.errors import EncodeError

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
