"""An MQMD put together from fields that a program printed as text, as dmpmqmsg and amqsbcg do.

Such text has lost the descriptor's own byte order and character set; what comes back is little-endian and ASCII.
"""

from __future__ import annotations

from dataclasses import replace

from rfh2.ccsid import ASCII_FIELDS
from rfh2.constants import MQCCSI_DEFAULT
from rfh2.errors import DecodeError
from rfh2.layouts import MQMD1, MQMD2
from rfh2.mqmd import Mqmd, decode_mqmd

SPANS: dict[str, tuple[int, int]] = {name: (offset, length) for name, offset, length in MQMD2.spans()}
"""IBM's name of each field to its (offset, length) in bytes."""

CHARACTERS = frozenset(
    {
        "StrucId",
        "Format",
        "ReplyToQ",
        "ReplyToQMgr",
        "UserIdentifier",
        "ApplIdentityData",
        "PutApplName",
        "PutDate",
        "PutTime",
        "ApplOriginData",
    }
)
BYTES = frozenset({"MsgId", "CorrelId", "AccountingToken", "GroupId"})
NUMBERS = frozenset(SPANS) - CHARACTERS - BYTES


class PrintedDescriptor:
    """Takes fields in any order; those that are never given keep the defaults of MQMD_DEFAULT, version 2."""

    def __init__(self) -> None:
        default = Mqmd(version=2, coded_char_set_id=MQCCSI_DEFAULT)
        self._data = bytearray(default.encode())
        for name in CHARACTERS - {"StrucId", "Format"}:
            offset, length = SPANS[name]
            self._data[offset : offset + length] = bytes(length)
        self._given: set[str] = set()

    def set(self, name: str, value: bytes) -> None:
        """Set the field *name* to a number, hex digits or characters, as its type has it. Raises ValueError."""
        if name in NUMBERS:
            self.set_number(name, value)
        elif name in BYTES:
            self.set_bytes(name, value)
        elif name in CHARACTERS:
            self.set_characters(name, value)
        else:
            raise ValueError(f"{name} is not a field of a message descriptor")

    def set_number(self, name: str, text: bytes) -> None:
        """Set the MQLONG *name* to the decimal *text*. Raises ValueError."""
        try:
            value = int(text).to_bytes(4, "little", signed=True)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{name} is not a 32-bit number") from error
        self._put(name, value)

    def set_bytes(self, name: str, digits: bytes) -> None:
        """Set the first bytes of *name* to the hex *digits*, the others to zero. Raises ValueError."""
        try:
            value = bytes.fromhex(digits.decode("ascii"))
        except ValueError as error:
            raise ValueError(f"{name} is not hex") from error
        self._put(name, value.ljust(SPANS[name][1], b"\0"))

    def set_characters(self, name: str, text: bytes) -> None:
        """Set *name* to *text*, padded with blanks. Raises ValueError."""
        self._put(name, text.ljust(SPANS[name][1], b" "))

    def _put(self, name: str, value: bytes) -> None:
        offset, length = SPANS[name]
        if len(value) != length:
            raise ValueError(f"{name} is longer than {length} bytes")
        self._data[offset : offset + length] = value
        self._given.add(name)

    def missing(self) -> tuple[str, ...]:
        """The fields of this version that were not given."""
        end = MQMD1.size if self._version == 1 else MQMD2.size
        return tuple(name for name, (offset, _) in SPANS.items() if offset < end and name not in self._given)

    def finish(self) -> bytes:
        """The descriptor's bytes: 364, or 324 for version 1. Raises ValueError for another version."""
        version = self._version
        if version not in (1, 2):
            raise ValueError(f"Version is {version}, neither 1 nor 2")
        if version == 1:
            return bytes(self._data[: MQMD1.size])
        return bytes(self._data)

    def so_far(self) -> bytes | None:
        """The descriptor with the defaults in place of what is missing; None where nothing was given."""
        try:
            return self.finish() if self._given else None
        except ValueError:
            return None

    @property
    def _version(self) -> int:
        return int.from_bytes(self._data[4:8], "little", signed=True)


def printable(md: bytes) -> bytes:
    """*md* in the form that text can carry: little-endian, ASCII. Raises DecodeError where it is no MQMD."""
    mqmd, length = decode_mqmd(md)
    if length != len(md):
        raise DecodeError(length, "MQMD", f"{len(md) - length} bytes follow it")
    if (mqmd.order, mqmd.charset) == ("little", ASCII_FIELDS):
        return md
    return replace(mqmd, order="little", charset=ASCII_FIELDS).encode()
