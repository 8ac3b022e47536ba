"""Read as much of a message as can be read: where ``rfh2.decode`` refuses, this keeps what came before the fault.

A header that cannot be decoded ends the chain of headers, and everything from there on counts as the body.

What can be read of a message behind the fault at which decoding stops: for ``decode`` only, never for a broker.

A header that could not be decoded is read field by field, and an MQRFH2 folder by folder, up to the fault and, where
the text shows where the next folder begins, behind it. Where StrucLength says where the header ends, the headers and
the body behind it are read too; where no header begins as it should, the next StrucId is looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from rfh2 import pcf_names
from rfh2.captured import CapturedMessage
from rfh2.ccsid import (
    ASCII_FIELDS,
    EBCDIC_FIELDS,
    ENCODINGS,
    NAME_VALUE_CCSIDS,
    UTF8_CCSID,
    ByteOrder,
    name_value_codec,
)
from rfh2.errors import DecodeError
from rfh2.explain.fields import layout_of, offsets_of
from rfh2.folders import Folder
from rfh2.layouts import MQCFH, MQRFH, MQRFH2, Layout
from rfh2.message import Header, Message, headers_of, sniffed
from rfh2.mqmd import Mqmd, decode_mqmd, name_of
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import FIXED_LENGTH, MAX_FOLDERS, Rfh2

_COMPLETIONS: Final = (-1, 0, 1, 2)


@dataclass(frozen=True, slots=True)
class Located:
    """One header, and the offset of its first byte, counted from the start of the first header."""

    header: Header
    offset: int


@dataclass(frozen=True, slots=True)
class PartialMessage:
    """What could be decoded of one message.

    mqmd: None where there is none, or none that can be read; ``assumed`` then stands in for it. mqmd_length: its bytes.
    message: all that was decoded, and the rest as its body. mqmd_fault, fault: why the descriptor, or a header, could
    not be; the offset of the first counts in the descriptor, of the second from the first header.
    """

    captured: CapturedMessage
    mqmd: Mqmd | None
    assumed: Mqmd
    mqmd_length: int
    headers: tuple[Located, ...]
    message: Message
    mqmd_fault: DecodeError | None = None
    fault: DecodeError | None = None

    @property
    def rest(self) -> bytes:
        """The body, or what begins with the header that could not be decoded."""
        return self.message.body

    @property
    def rest_offset(self) -> int:
        """Where *rest* begins, from the start of the first header."""
        return len(self.captured.body) - len(self.rest)


def read_message(captured: CapturedMessage) -> PartialMessage:
    """Everything of *captured* that can be decoded; never an error for bad bytes."""
    mqmd, length, mqmd_fault = None, 0, None
    if captured.md is not None:
        try:
            mqmd, length = decode_mqmd(captured.md)
        except DecodeError as error:
            mqmd_fault = error
    assumed = mqmd if mqmd is not None else _assumed(captured.body)
    headers, at, fault = read_chain(captured.body, 0, assumed.format, assumed.coded_char_set_id)
    message = Message(assumed, tuple([located.header for located in headers]), captured.body[at:])
    return PartialMessage(captured, mqmd, assumed, length, headers, message, mqmd_fault, fault)


def _assumed(body: bytes) -> Mqmd:
    found = sniffed(body) or pcf_described(body)
    if found is None:
        return Mqmd()
    return replace(Mqmd(), format=found[0], encoding=found[1], coded_char_set_id=found[2])


def pcf_described(body: bytes) -> tuple[str, int, int] | None:
    """(Format, Encoding, CodedCharSetId) that a lost MQMD must have had where *body* begins as PCF does; else None.

    A broker does not guess so: without a descriptor, PCF is data to it.
    """
    if len(body) < MQCFH.size:
        return None
    for order, encoding in ENCODINGS.items():
        kind, length, version, command, _, control, comp_code, _, count = MQCFH.fast[order].unpack_from(body)
        is_pcf = kind in pcf_names.MESSAGE_TYPES and length == MQCFH.size and version in (1, 2, 3)
        if is_pcf and command >= 0 and control in (0, 1) and comp_code in _COMPLETIONS and 0 <= count <= len(body):
            is_ours = pcf_names.MQCMD_DELETE_PUBLICATION <= command <= pcf_names.MQCMD_BROKER_INTERNAL
            return "MQEVENT" if kind == pcf_names.MQCFT_EVENT else "MQPCF" if is_ours else "MQADMIN", encoding, 0
    return None


def read_chain(data: bytes, at: int, fmt: str, ccsid: int) -> tuple[tuple[Located, ...], int, DecodeError | None]:
    """The headers from *at* on, where they end, and the fault that ends them, if one does.

    fmt, ccsid: Format and CodedCharSetId of what stands before them.
    """
    headers: list[Located] = []
    end, fault = at, None
    try:
        for header, offset in headers_of(data, at, fmt, ccsid):
            headers.append(Located(header, offset))
            end = offset + header.length
    except DecodeError as error:
        fault = error
    return tuple(headers), end, fault


MOST_FAULTS: Final = 16
"""Headers with faults that are read of one message; a message of 100 MB could hold a million."""

_STRUC_IDS: Final = ("RFH ", "DLH ", "XQH ", "MDE ")
_STRUCTURE: Final = re.compile(
    b"(?:"
    + b"|".join(re.escape(name.encode(charset)) for charset in (ASCII_FIELDS, EBCDIC_FIELDS) for name in _STRUC_IDS)
    + rb")(?:[\1\2]\0\0\0|\0\0\0[\1\2])"
)
_KIND_OF_STRUC_ID: Final = {"DLH ": "MQDLH", "XQH ": "MQXQH", "MDE ": "MQMDE"}
_TAG_NAME: Final = re.compile(r"<([A-Za-z_$][\w.:$-]{0,200})")
_CHARACTERS: Final = 4096  # of a folder, in which its name is looked for


@dataclass(frozen=True, slots=True)
class Unread:
    """Bytes of a header that could not be read, and why. offset: from the start of the first header."""

    offset: int
    data: bytes
    why: str


@dataclass(frozen=True, slots=True)
class Salvaged:
    """One header with a fault, as far as it can be read.

    data: its bytes, up to its end or that of the message. layout: of its fixed part; only fields that are whole can be
    read. folders: of an MQRFH2, from before and behind the fault. fault: what decoding stopped at.
    """

    kind: str
    offset: int
    data: bytes
    layout: Layout | None
    order: ByteOrder
    charset: str
    fault: DecodeError
    folders: tuple[Folder, ...] = ()
    unread: tuple[Unread, ...] = ()

    @property
    def fixed(self) -> bytes:
        """The bytes of the fixed part, perhaps too few."""
        return self.data[: self.layout.size] if self.layout is not None else b""

    @property
    def rfh1(self) -> Rfh1 | None:
        """An MQRFH with all that is there as its string; None for another header, or where its fixed part was cut."""
        if self.kind != "MQRFH" or len(self.data) < MQRFH.size:
            return None
        values = MQRFH.fast[self.order].unpack_from(self.data)
        fmt = str(values[5], self.charset, "replace").rstrip(" ")
        described = (values[3], values[4], fmt, values[6])
        return Rfh1(
            self.data[MQRFH.size :], *described, self.order, self.charset, self.charset, self.offset + MQRFH.size
        )

    @property
    def rfh2(self) -> Rfh2 | None:
        """An MQRFH2 with the folders that were found; None for another header, or where its fixed part was cut."""
        if self.layout is not MQRFH2 or len(self.data) < FIXED_LENGTH:
            return None
        values = self.layout.fast[self.order].unpack_from(self.data)
        fmt = str(values[5], self.charset, "replace").rstrip(" ")
        ccsid = values[7] if values[7] in NAME_VALUE_CCSIDS else UTF8_CCSID
        return Rfh2(self.folders, values[3], values[4], fmt, values[6], ccsid, self.order, self.charset)


@dataclass(frozen=True, slots=True)
class Salvage:
    """Everything that can be read from the fault on: headers in their order, then the body.

    message: the descriptor, all headers that could be read, and the body behind them. body_offset: where that begins.
    """

    parts: tuple[Salvaged | Located, ...] = ()
    message: Message | None = None
    body_offset: int = 0


def salvage(partial: PartialMessage) -> Salvage:
    """What can be read behind the fault of *partial*; nothing where it has none."""
    if partial.fault is None:
        return Salvage()
    data, at = partial.captured.body, partial.rest_offset
    parts: list[Salvaged | Located] = []
    headers: list[Header] = [located.header for located in partial.headers]
    fault: DecodeError | None = partial.fault
    body: int | None = None
    while fault is not None and len(parts) < MOST_FAULTS:
        part, end = _salvaged(data, at, fault)
        parts.append(part)
        found = part.rfh2 or part.rfh1
        if found is not None:
            headers.append(found)
        if end is None or end >= len(data):
            break
        fmt, ccsid = _behind(part, data, end)
        more, at, fault = read_chain(data, end, fmt, ccsid)
        parts += more
        headers += [located.header for located in more]
        body = at if fault is None else None
    message = Message(partial.assumed, tuple(headers), b"" if body is None else data[body:])
    return Salvage(tuple(parts), message, len(data) if body is None else body)


def _behind(part: Salvaged, data: bytes, end: int) -> tuple[str, int]:
    """Format and CCSID of what stands behind a header with a fault: by its own fields, else by what stands there."""
    header = part.rfh2
    if header is not None:
        return name_of(header.format), header.coded_char_set_id
    seen = sniffed(data[end : end + 8])
    return (seen[0], seen[2]) if seen is not None else ("", 0)


def _salvaged(data: bytes, at: int, fault: DecodeError) -> tuple[Salvaged, int | None]:
    """The header at *at*, and where the next one or the body begins; None where that is not known."""
    struc_id = data[at : at + 4]
    charset = next((each for each in (ASCII_FIELDS, EBCDIC_FIELDS) if _is_struc_id(struc_id, each)), None)
    if charset is None:
        next_at = _STRUCTURE.search(data, at + 1)
        end = None if next_at is None else next_at.start()
        skipped = data[at:end]
        unread = Unread(at, skipped, "no header begins here" + ("" if end is None else "; the next one does after it"))
        return Salvaged(fault.header, at, skipped, None, "little", ASCII_FIELDS, fault, (), (unread,)), end
    kind = _kind(struc_id.decode(charset), data[at + 4 : at + 8])
    layout = layout_of(kind)
    order = _order(data, at)
    plain = Salvaged(kind, at, data[at:], layout, order, charset, fault)
    if kind != "MQRFH2" or len(data) - at < FIXED_LENGTH:
        return plain, None
    return _folders(plain, data)


def _is_struc_id(struc_id: bytes, charset: str) -> bool:
    return struc_id in [name.encode(charset) for name in _STRUC_IDS]


def _kind(struc_id: str, version: bytes) -> str:
    if struc_id == "RFH ":
        return "MQRFH" if version in (b"\1\0\0\0", b"\0\0\0\1") else "MQRFH2"
    return _KIND_OF_STRUC_ID[struc_id]


def _order(data: bytes, at: int) -> ByteOrder:
    """The byte order of a header: that of its Version, or that in which its StrucLength is the smaller number."""
    version = data[at + 4 : at + 8]
    if version[:1] != b"\0" and version[1:] == bytes(3):
        return "little"
    if version[-1:] != b"\0" and version[:3] == bytes(3):
        return "big"
    length = data[at + 8 : at + 12]
    return "little" if int.from_bytes(length, "little") <= int.from_bytes(length, "big") else "big"


def _folders(plain: Salvaged, data: bytes) -> tuple[Salvaged, int | None]:
    at, order = plain.offset, plain.order
    length = int.from_bytes(data[at + 8 : at + 12], order, signed=True)
    is_known = FIXED_LENGTH <= length <= len(data) - at
    end = at + length if is_known else len(data)
    ccsid = int.from_bytes(data[at + 32 : at + 36], order, signed=True)
    codec = name_value_codec(ccsid, order) if ccsid in NAME_VALUE_CCSIDS else _codec(data[at + 40 : at + 48])
    folders: list[Folder] = []
    unread: list[Unread] = []
    stop = at + FIXED_LENGTH
    for found in _walk(data, stop, end, order, codec or "utf-8", is_known):
        if isinstance(found, Folder):
            folders.append(found)
            stop = found.offset + len(found.data)
        else:
            unread.append(found)
            stop = found.offset + len(found.data)
    whole = end if is_known else stop
    header = replace(plain, data=data[at:whole], folders=tuple(folders), unread=tuple(unread))
    return header, whole if is_known or (length < FIXED_LENGTH and whole < len(data)) else None


def _codec(text: bytes) -> str:
    """The codec of folders whose CCSID is not known, by their first characters."""
    if b"<" not in text:
        return "utf-8"
    at = text.index(b"<")
    return "utf-16-le" if text[at + 1 : at + 2] == b"\0" else "utf-16-be" if at and text[at - 1] == 0 else "utf-8"


def _walk(data: bytes, at: int, end: int, order: ByteOrder, codec: str, is_known: bool) -> Iterator[Folder | Unread]:
    """The folders from *at* to *end*, and the bytes between them that are none."""
    opening = "<".encode(codec)
    count = 0
    while end - at >= 4 and count < MAX_FOLDERS:
        count += 1
        size = int.from_bytes(data[at : at + 4], order, signed=True)
        start = at + 4
        if 0 <= size <= end - start and (is_known or data.startswith(opening, start)):
            yield Folder(data[start : start + size], codec, start)
            at = start + size
            continue
        if not is_known and not data.startswith(opening, start) and not data.startswith(opening, at):
            return  # the body, or what else stands behind a header whose length is wrong
        # The length may have been overwritten, or be missing; in the latter case the folder stands in its place.
        is_missing = data.startswith(opening, at) and not data.startswith(opening, start)
        begins = at if is_missing else data.find(opening, start, end)
        if begins < 0:
            break
        if begins > at:
            yield Unread(at, data[at:begins], _length_in_words(data[at:start], order, end - start))
        stop = _end_of_folder(data, begins, end, codec)
        yield Folder(data[begins:stop], codec, begins)
        at = stop
    if at < end and is_known:
        yield Unread(at, data[at:end], "no folder begins here")


def _end_of_folder(data: bytes, start: int, end: int, codec: str) -> int:
    """Where the folder that begins at *start* ends, with its padding, by the tag that closes it."""
    name = _TAG_NAME.match(data[start : min(end, start + _CHARACTERS)].decode(codec, "replace"))
    if name is None:
        return end
    closing = f"</{name[1]}>".encode(codec)
    found = data.find(closing, start, end)
    if found < 0:
        return end
    stop = found + len(closing)
    padding = -(stop - start) % 4
    filled = data[stop : min(stop + padding, end)]
    return stop + len(filled) if not filled.strip(b" \0") else stop


def _length_in_words(data: bytes, order: ByteOrder, there: int) -> str:
    """What four bytes say that should be a NameValueLength: the number, and what it is instead.

    there: how many bytes follow.
    """
    number = int.from_bytes(data, order, signed=True)
    if all(0x20 <= byte < 0x7F for byte in data):
        return f'NameValueLength {number} is "{data.decode("ascii")}"'
    other: ByteOrder = "big" if order == "little" else "little"
    swapped = int.from_bytes(data, other, signed=True)
    if 0 <= swapped < 1 << 16 and not 0 <= number < 1 << 16:
        return f"NameValueLength {number} is {swapped} in the other byte order"
    return f"NameValueLength is {number}, {there} bytes are there"


def whole_fields(part: Salvaged) -> int:
    """How many bytes of the fixed part are fields that are whole."""
    if part.layout is None:
        return 0
    there = len(part.fixed)
    at = offsets_of(part.layout)
    ends = [*list(at.values())[1:], part.layout.size]
    return max((end for end in ends if end <= there), default=0)
