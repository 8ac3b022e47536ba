"""The eight fields with which most headers begin, and the headers of which no more is read (wire formats, section 5).

    0        4        8            12        16              20      28     32
    StrucId  Version  StrucLength  Encoding  CodedCharSetId  Format  Flags  whatever the header is for

These fields are enough to step over any header: StrucLength says where it ends, and Encoding, CodedCharSetId and
Format describe what follows. Publish/subscribe does not use CICS, IMS, reference, work and distribution headers;
they are stepped over and kept unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Protocol

from rfh2.ccsid import ASCII_FIELDS, EBCDIC_FIELDS, ByteOrder, field_codec
from rfh2.constants import MQCCSI_INHERIT, MQENC_NATIVE, MQRC_HEADER_ERROR
from rfh2.errors import DecodeError, EncodeError
from rfh2.layouts import MQRFH, characters

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
