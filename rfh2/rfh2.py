"""The MQRFH2 header: a fixed part of 36 bytes, then pairs of NameValueLength and NameValueData (guide 6.6.1).

    0        4        8            12        16              20      28     32              36
    StrucId  Version  StrucLength  Encoding  CodedCharSetId  Format  Flags  NameValueCCSID  (Length Data)*

Integers and characters of the fixed part, and every NameValueLength, are in the Encoding and CCSID of the *preceding*
header; NameValueData is in NameValueCCSID; this header's own Encoding, CodedCharSetId and Format describe what follows.
The byte order is read off Version, which is 2 in exactly one of them: captures whose MQMD says otherwise are common.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rfh2.ccsid import ASCII_FIELDS, EBCDIC_FIELDS, NAME_VALUE_CCSIDS, ByteOrder, field_codec, name_value_codec
from rfh2.constants import MQCCSI_INHERIT, MQENC_NATIVE, MQFMT_RF_HEADER_2, MQRC_SOURCE_CCSID_ERROR
from rfh2.errors import DecodeError, EncodeError
from rfh2.folders import Folder
from rfh2.frozen import maker
from rfh2.layouts import MQRFH2
from rfh2.mqmd import characters

STRUC_ID = b"RFH "
STRUC_ID_EBCDIC = STRUC_ID.decode("ascii").encode(EBCDIC_FIELDS)
VERSION_ORDERS: dict[bytes, tuple[int, ByteOrder]] = {
    b"\0\0\0\1": (1, "big"),
    b"\1\0\0\0": (1, "little"),
    b"\0\0\0\2": (2, "big"),
    b"\2\0\0\0": (2, "little"),
}
FIXED_LENGTH = MQRFH2.size

# Real headers have a handful. Without a bound a header of nulls would be a folder of no bytes for each four of its own.
MAX_FOLDERS = 10_000


@dataclass(frozen=True, slots=True)
class Rfh2:
    """One MQRFH2. ``order`` and ``charset`` are those of its own fixed part; the other fields are IBM's.

    Format is without its trailing blanks, but with whatever nulls it had.
    """

    folders: tuple[Folder, ...] = ()
    encoding: int = MQENC_NATIVE
    coded_char_set_id: int = MQCCSI_INHERIT
    format: str = ""
    flags: int = 0
    name_value_ccsid: int = 1208
    order: ByteOrder = "little"
    charset: str = ASCII_FIELDS

    kind = "MQRFH2"
    own_format = MQFMT_RF_HEADER_2

    @property
    def length(self) -> int:
        """StrucLength: the whole header in bytes, folders included."""
        return FIXED_LENGTH + sum(4 + len(folder.data) for folder in self.folders)

    def folder(self, name: str) -> Folder | None:
        """The first folder of that name."""
        for folder in self.folders:
            if folder.name == name:
                return folder
        return None

    def with_folders(self, folders: tuple[Folder, ...]) -> Rfh2:
        """This header with other folders."""
        return replace(self, folders=folders)

    def encode(self) -> bytes:
        """The bytes of this header. Raises EncodeError."""
        if self.name_value_ccsid not in NAME_VALUE_CCSIDS:
            raise EncodeError(f"NameValueCCSID {self.name_value_ccsid} is not one of {NAME_VALUE_CCSIDS}")
        fixed = MQRFH2.pack(
            self.order,
            "RFH ".encode(self.charset),
            2,
            self.length,
            self.encoding,
            self.coded_char_set_id,
            characters(self.format, 8, self.charset, "Format"),
            self.flags,
            self.name_value_ccsid,
        )
        parts = [fixed]
        for folder in self.folders:
            parts += (len(folder.data).to_bytes(4, self.order), folder.data)
        return b"".join(parts)


_make = maker(Rfh2)
_make_folder = maker(Folder)


def decode_rfh2(data: bytes, offset: int, ccsid: int) -> Rfh2:
    """The MQRFH2 at *offset* in *data*; ccsid: CodedCharSetId of the *preceding* header.

    A declared length is a fence: nothing is read past it, and nothing inside is left over. Raises DecodeError.
    """
    struc_id = data[offset : offset + 4]
    if struc_id == STRUC_ID:
        ebcdic = False
    elif struc_id == STRUC_ID_EBCDIC:
        ebcdic = True
    else:
        raise DecodeError(offset, "MQRFH2", f"StrucId is {struc_id!r}, not {STRUC_ID!r}", "bad-struc-id")
    found = VERSION_ORDERS.get(data[offset + 4 : offset + 8])
    if found is None or found[0] != 2:
        raise DecodeError(offset + 4, "MQRFH2", "Version is not 2 in either byte order", "unknown-version")
    order = found[1]
    there = len(data) - offset
    if there < FIXED_LENGTH:
        raise DecodeError(
            len(data),
            "MQRFH2",
            f"{FIXED_LENGTH} bytes are needed for the fixed part, {there} are there",
            "short-header",
        )
    _, _, length, encoding, next_ccsid, fmt, flags, nv_ccsid = MQRFH2.fast[order].unpack_from(data, offset)
    if length < FIXED_LENGTH or length > there:
        why = (
            f"StrucLength {length} is less than {FIXED_LENGTH}"
            if length < FIXED_LENGTH
            else (f"StrucLength {length} is more than the {there} bytes that are there")
        )
        raise DecodeError(offset + 8, "MQRFH2", why, "bad-struc-length")
    codec = name_value_codec(nv_ccsid, order)
    if codec is None:
        why = f"NameValueCCSID {nv_ccsid} is not one of 1208, 1200, 13488, 17584"
        raise DecodeError(offset + 32, "MQRFH2", why, "bad-name-value-ccsid", MQRC_SOURCE_CCSID_ERROR)
    charset = field_codec(ccsid, ebcdic)
    folders = _folders(data, offset + FIXED_LENGTH, offset + length, order, codec)
    return _make(folders, encoding, next_ccsid, str(fmt, charset).rstrip(" "), flags, nv_ccsid, order, charset)


def _folders(data: bytes, at: int, end: int, order: ByteOrder, codec: str) -> tuple[Folder, ...]:
    folders: list[Folder] = []
    while at < end:
        if len(folders) == MAX_FOLDERS:
            raise DecodeError(at, "MQRFH2", f"there are more than {MAX_FOLDERS} folders", "too-many-folders")
        if end - at < 4:
            raise DecodeError(at, "MQRFH2", f"{end - at} bytes are left over after the last folder", "stray-bytes")
        size = int.from_bytes(data[at : at + 4], order, signed=True)
        if size < 0 or size > end - at - 4:
            why = f"NameValueLength {size} does not fit the {end - at - 4} bytes that StrucLength leaves"
            raise DecodeError(at, "MQRFH2", why, "bad-name-value-length")
        at += 4
        folders.append(_make_folder(data[at : at + size], codec, at))
        at += size
    return tuple(folders)
