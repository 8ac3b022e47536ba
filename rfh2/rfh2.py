"""The MQRFH2 header: a fixed part of 36 bytes, then pairs of NameValueLength and NameValueData (guide 6.6.1).

    0        4        8            12        16              20      28     32              36
    StrucId  Version  StrucLength  Encoding  CodedCharSetId  Format  Flags  NameValueCCSID  (Length Data)*

Integers and characters of the fixed part, and every NameValueLength, are in the Encoding and CCSID of the *preceding*
header; NameValueData is in NameValueCCSID; this header's own Encoding, CodedCharSetId and Format describe what follows.
The byte order is read off Version, which is 2 in exactly one of them: captures whose MQMD says otherwise are common.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from rfh2.ccsid import (
    ASCII_FIELDS,
    BYTE_ORDERS,
    EBCDIC_FIELDS,
    NAME_VALUE_CCSIDS,
    UTF8_CCSID,
    ByteOrder,
    field_codec,
    name_value_codec,
)
from rfh2.constants import MQCCSI_INHERIT, MQENC_NATIVE, MQFMT_RF_HEADER_2, MQRC_SOURCE_CCSID_ERROR
from rfh2.errors import DecodeError, EncodeError
from rfh2.folders import Folder, repeated
from rfh2.layouts import MQRFH2, characters

STRUC_ID = b"RFH "
STRUC_ID_EBCDIC = STRUC_ID.decode("ascii").encode(EBCDIC_FIELDS)
FIXED_LENGTH = MQRFH2.size

# StrucId and Version, as they begin a header, to its byte order and whether it is EBCDIC.
_FRONTS: dict[bytes, tuple[ByteOrder, bool]] = {
    struc_id + (2).to_bytes(4, order): (order, struc_id == STRUC_ID_EBCDIC)
    for struc_id in (STRUC_ID, STRUC_ID_EBCDIC)
    for order in BYTE_ORDERS
}
_FRONT, _LENGTH_AT = 8, 8
_DESCRIPTION = slice(12, FIXED_LENGTH)
_LONG: dict[ByteOrder, struct.Struct] = {"big": struct.Struct(">i"), "little": struct.Struct("<i")}
_PACKERS = {order: (MQRFH2.fast[order].pack, _LONG[order].pack) for order in BYTE_ORDERS}

# Real headers have a handful. Without a bound a header of nulls would be a folder of no bytes for each four of its own.
MAX_FOLDERS = 10_000


@dataclass(slots=True, unsafe_hash=True)
class Rfh2:
    """One MQRFH2. ``order`` and ``charset`` are those of its own fixed part; the other fields are IBM's.

    Format is without its trailing blanks, but with whatever nulls it had.
    """

    folders: tuple[Folder, ...] = ()
    encoding: int = MQENC_NATIVE
    coded_char_set_id: int = MQCCSI_INHERIT
    format: str = ""
    flags: int = 0
    name_value_ccsid: int = UTF8_CCSID
    order: ByteOrder = "little"
    charset: str = ASCII_FIELDS

    kind = "MQRFH2"
    own_format = MQFMT_RF_HEADER_2

    @property
    def length(self) -> int:
        """StrucLength: the whole header in bytes, folders included."""
        folders = self.folders
        length = FIXED_LENGTH + 4 * len(folders)
        for folder in folders:
            length += len(folder.data)
        return length

    def folder(self, name: str) -> Folder | None:
        """The first folder of that name."""
        for folder in self.folders:
            if folder.name == name:
                return folder
        return None

    def with_folders(self, folders: tuple[Folder, ...]) -> Rfh2:
        """This header with other folders."""
        described = (self.encoding, self.coded_char_set_id, self.format, self.flags)
        return Rfh2(folders, *described, self.name_value_ccsid, self.order, self.charset)

    def encode(self) -> bytes:
        """The bytes of this header. Raises EncodeError."""
        if self.name_value_ccsid not in NAME_VALUE_CCSIDS:
            raise EncodeError(f"NameValueCCSID {self.name_value_ccsid} is not one of {NAME_VALUE_CCSIDS}")
        order, charset = self.order, self.charset
        pack, packed = _PACKERS[order]
        length = FIXED_LENGTH
        parts = [b""]
        for folder in self.folders:
            data = folder.data
            size = len(data)
            length += 4 + size
            parts += packed(size), data
        struc_id = STRUC_ID if charset == ASCII_FIELDS else "RFH ".encode(charset)
        fmt = characters(self.format, 8, charset, "Format")
        encoding, ccsid, nv_ccsid = self.encoding, self.coded_char_set_id, self.name_value_ccsid
        try:
            parts[0] = pack(struc_id, 2, length, encoding, ccsid, fmt, self.flags, nv_ccsid)
        except struct.error as error:
            raise EncodeError(f"MQRFH2: {error}") from error
        return b"".join(parts)


def decode_rfh2(data: bytes, offset: int, ccsid: int) -> Rfh2:
    """The MQRFH2 at *offset* in *data*; ccsid: CodedCharSetId of the *preceding* header.

    A declared length is a fence: nothing is read past it, and nothing inside is left over. Raises DecodeError.
    """
    fixed = data[offset : offset + FIXED_LENGTH]
    found = _fixed_part(fixed[:_FRONT], fixed[_DESCRIPTION], ccsid)
    if found is None:
        raise _not_an_rfh2(data, offset)
    there = len(data) - offset
    if there < FIXED_LENGTH:
        raise DecodeError(
            len(data),
            "MQRFH2",
            f"{FIXED_LENGTH} bytes are needed for the fixed part, {there} are there",
            "short-header",
        )
    codec, described, long_at = found
    (length,) = long_at(fixed, _LENGTH_AT)
    if length < FIXED_LENGTH or length > there:
        why = (
            f"StrucLength {length} is less than {FIXED_LENGTH}"
            if length < FIXED_LENGTH
            else (f"StrucLength {length} is more than the {there} bytes that are there")
        )
        raise DecodeError(offset + 8, "MQRFH2", why, "bad-struc-length")
    if codec is None:
        why = f"NameValueCCSID {described[4]} is not one of 1208, 1200, 13488, 17584"
        raise DecodeError(offset + 32, "MQRFH2", why, "bad-name-value-ccsid", MQRC_SOURCE_CCSID_ERROR)
    return Rfh2(_folders(data, offset + FIXED_LENGTH, offset + length, long_at, codec), *described)


_Described = tuple[int, int, str, int, int, ByteOrder, str]
"""The fields of an Rfh2 after its folders, in order."""


# What is in the fixed part beside StrucLength: few of them come again and again.
@lru_cache(maxsize=4096)
def _fixed_part(
    front: bytes, description: bytes, ccsid: int
) -> tuple[str | None, _Described, Callable[[bytes, int], tuple[int]]] | None:
    """The codec of NameValueCCSID, the fields, and what reads a number; None for what does not begin an MQRFH2."""
    known = _FRONTS.get(front)
    if known is None:
        return None
    order, ebcdic = known
    values = MQRFH2.fast[order].unpack((front + bytes(4) + description).ljust(FIXED_LENGTH, b"\0"))
    _, _, _, encoding, next_ccsid, fmt, flags, nv_ccsid = values
    charset = field_codec(ccsid, ebcdic)
    described = (encoding, next_ccsid, str(fmt, charset).rstrip(" "), flags, nv_ccsid, order, charset)
    return name_value_codec(nv_ccsid, order), described, _LONG[order].unpack_from


def _not_an_rfh2(data: bytes, offset: int) -> DecodeError:
    struc_id = data[offset : offset + 4]
    if struc_id not in (STRUC_ID, STRUC_ID_EBCDIC):
        return DecodeError(offset, "MQRFH2", f"StrucId is {struc_id!r}, not {STRUC_ID!r}", "bad-struc-id")
    if len(data) < offset + 8:
        why = f"{FIXED_LENGTH} bytes are needed for the fixed part, {len(data) - offset} are there"
        return DecodeError(len(data), "MQRFH2", why, "short-header")
    return DecodeError(offset + 4, "MQRFH2", "Version is not 2 in either byte order", "unknown-version")


def _folders(
    data: bytes, at: int, end: int, length_at: Callable[[bytes, int], tuple[int]], codec: str
) -> tuple[Folder, ...]:
    folders: list[Folder] = []
    while at < end:
        start = at + 4
        if start > end:
            raise DecodeError(at, "MQRFH2", f"{end - at} bytes are left over after the last folder", "stray-bytes")
        if len(folders) == MAX_FOLDERS:
            raise DecodeError(at, "MQRFH2", f"there are more than {MAX_FOLDERS} folders", "too-many-folders")
        (size,) = length_at(data, at)
        at = start + size
        if size < 0 or at > end:
            text = data[start - 4 : start]
            shown = f' ("{text.decode("ascii")}")' if all(0x20 <= byte < 0x7F for byte in text) else ""
            why = f"NameValueLength {size}{shown} does not fit the {end - start} bytes that StrucLength leaves"
            raise DecodeError(start - 4, "MQRFH2", why, "bad-name-value-length")
        folders.append(Folder(data[start:at], codec, start))
    return tuple(folders)


# Several folders in one NameValueData: taking them apart without touching their bytes.
#
# An MQRFH2 has one folder in each NameValueData (guide 6.6.2); some programs put ``<mcd>...</mcd><psc>...</psc>``
# into one. Only where each begins and ends is found here. ``folders.parse`` checks the text.

# A tag without its end matches too, and no quantifier gives back what it took (``++``, ``*+``): the search goes on
# where the tag broke off, and looks at each character once. Backtracking takes the square of the length of "<aaa...".
_REST = repeated(r"""(?:/(?!>)|"[^"]*+"|'[^']*+')[^<>/"']*+""")
_TAG = re.compile(rf"""<(/?)([^\s<>/&"'=]++)[^<>/"']*+{_REST}(/?>)?""")


def split_roots(folder: Folder) -> tuple[Folder, ...]:
    """One folder for each root element of *folder*; *folder* itself where it has one, or is no sequence of elements.

    Each keeps its text and its offset in the message; blanks between two belong to the first.
    """
    try:
        text = folder.text
    except DecodeError:
        return (folder,)
    starts: list[int] = []
    open_tags: list[str] = []
    for tag in _TAG.finditer(text):
        closing, name, end = tag.groups()
        if end is None:
            continue
        if closing:
            if not open_tags or open_tags.pop() != name:
                return (folder,)
            continue
        if not open_tags:
            starts.append(tag.start())
        if end == ">":
            open_tags.append(name)
    if open_tags or len(starts) < 2:
        return (folder,)
    starts[0] = 0
    parts = [text[at:end] for at, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    split: list[Folder] = []
    offset = folder.offset
    for part in parts:
        split.append(Folder(Folder.of(part, folder.charset).data, folder.charset, offset))
        offset += len(part.encode(folder.charset))
    return tuple(split)
