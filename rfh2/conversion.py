"""A message in the character set and encoding that MQGET asks for (IBM's "Conversion processing").

    MQMD          headers, one after the other                data
    describes the first header  ->  each describes what follows it

Headers are converted from the first to the last, and then the data. What cannot be converted stays as it is, and so
does all behind it; what stands before it is converted, and says in which character set and encoding the rest is. Data
of no Format behind a header is left alone, and that is no error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from rfh2 import constants as mq, mqi_constants as m, pcf
from rfh2.ccsid import (
    ASCII_FIELDS,
    EBCDIC_FIELDS,
    ENCODINGS,
    MQCCSI_OF_THE_QMGR,
    UTF8_CCSID,
    ByteOrder,
    byte_order,
    field_codec,
    is_ebcdic,
    qmgr_ccsid,
    text_codec,
)
from rfh2.dlh import Dlh
from rfh2.errors import DecodeError, EncodeError, QPubSubError
from rfh2.folders import Folder
from rfh2.message import Header, ccsid_behind, describing, encoding_behind, headers_of
from rfh2.mqmd import Mde, Mqmd, Xqh, name_of
from rfh2.pcf import Cfgr, Cfsf, Cfsl, Cfst, Parameter, Pcf, UnknownParameter, decode_pcf
from rfh2.rfh1 import Rfh1, string_codec
from rfh2.rfh2 import Rfh2

# Characters in another character set: exactly, or not at all.

_EBCDIC_NEWLINE: Final = "\x85"


class ConversionError(QPubSubError):
    """Data that cannot be converted. reason: MQRC_*, with which MQGET says so."""

    def __init__(self, reason: int, why: str) -> None:
        super().__init__(reason, why)
        self.reason, self.why = reason, why

    def __str__(self) -> str:
        return f"{self.why} (reason {self.reason})"


@dataclass(frozen=True, slots=True)
class Representation:
    """How data is written. ccsid: of its characters. encoding: of its numbers (MQENC_*)."""

    ccsid: int
    encoding: int

    @property
    def order(self) -> ByteOrder:
        """The byte order of integers. Raises ConversionError."""
        order = byte_order(self.encoding)
        if order is None:
            raise ConversionError(m.MQRC_TARGET_INTEGER_ENC_ERROR, f"encoding {self.encoding} has no order of integers")
        return order

    @property
    def codec(self) -> str | None:
        """Python's codec of the characters; None for a CCSID that is not known here."""
        return text_codec(self.ccsid, self.encoding)


def convert_text(data: bytes, source: Representation, target: Representation) -> bytes:
    """*data* in the character set of *target*. Raises ConversionError: 2111, 2115, 2119.

    A character that *target* lacks is an error: nothing is put in its place. The newline of EBCDIC (X'15') becomes a
    line feed.
    """
    if source.ccsid == target.ccsid and source.codec == target.codec:
        return data
    if source.codec is None:
        raise ConversionError(mq.MQRC_SOURCE_CCSID_ERROR, f"CCSID {source.ccsid} is not known")
    if target.codec is None:
        raise ConversionError(m.MQRC_TARGET_CCSID_ERROR, f"CCSID {target.ccsid} is not known")
    try:
        text = data.decode(source.codec)
        if is_ebcdic(source.ccsid) and not is_ebcdic(target.ccsid):
            text = text.replace(_EBCDIC_NEWLINE, "\n")
        return text.encode(target.codec)
    except UnicodeError as error:
        raise ConversionError(m.MQRC_NOT_CONVERTED, f"from CCSID {source.ccsid} to {target.ccsid}: {error}") from error


# PCF in another character set and encoding.
#
# Strings expand and contract as their characters need; those of a list are filled up with blanks to the length of the
# longest. A string that names its own CCSID names the new one afterwards (IBM's usage notes on PCF structures).

_OF_THE_MESSAGE = (mq.MQCCSI_DEFAULT, mq.MQCCSI_EMBEDDED, mq.MQCCSI_INHERIT)


def convert_pcf(data: bytes, source: Representation, target: Representation) -> bytes:
    """The PCF message *data* as *target* has it. Raises ConversionError: 2110, and as ``convert_text`` does."""
    try:
        pcf = decode_pcf(data, source.ccsid)
    except DecodeError as error:
        raise ConversionError(mq.MQRC_FORMAT_ERROR, str(error)) from error
    if pcf.rest.strip(b"\0 "):
        raise ConversionError(mq.MQRC_FORMAT_ERROR, f"{len(pcf.rest)} bytes follow the last PCF parameter")
    parameters = tuple(_converted(each, pcf, source, target) for each in pcf.parameters)
    return replace(pcf, parameters=parameters, order=target.order).encode()


def _converted(parameter: Parameter, pcf: Pcf, source: Representation, target: Representation) -> Parameter:
    if isinstance(parameter, UnknownParameter):
        raise ConversionError(mq.MQRC_FORMAT_ERROR, f"PCF has a parameter of the unknown type {parameter.type}")
    if isinstance(parameter, Cfgr):
        members = tuple(_converted(member, pcf, source, target) for member in parameter.members)
        return replace(parameter, members=members)
    if isinstance(parameter, (Cfst, Cfsf)):
        ccsid, now, then = _representations(parameter.coded_char_set_id, pcf, source, target)
        string = convert_text(parameter.data, now, then)
        fixed = parameter.length - len(parameter.data) - len(parameter.tail)
        tail = parameter.tail if len(string) == len(parameter.data) else bytes(-(fixed + len(string)) % 4)
        return replace(parameter, data=string, coded_char_set_id=ccsid, tail=tail)
    if isinstance(parameter, Cfsl):
        ccsid, now, then = _representations(parameter.coded_char_set_id, pcf, source, target)
        strings = [convert_text(string, now, then) for string in parameter.strings]
        size = max(map(len, strings), default=parameter.string_length)
        blank = " ".encode(then.codec or "ascii")
        filled = tuple(string + blank * ((size - len(string)) // len(blank)) for string in strings)
        tail = parameter.tail if size == parameter.string_length else bytes(-size * len(filled) % 4)
        return replace(parameter, strings=filled, string_length=size, coded_char_set_id=ccsid, tail=tail)
    return parameter


def _representations(
    own: int, pcf: Pcf, source: Representation, target: Representation
) -> tuple[int, Representation, Representation]:
    """CodedCharSetId of a string afterwards; how it is written, and how it will be."""
    inherits = own in _OF_THE_MESSAGE
    now = Representation(source.ccsid if inherits else own, ENCODINGS[pcf.order])
    stays = not inherits and source.ccsid == target.ccsid
    then = Representation(own if stays else target.ccsid, target.encoding)
    return own if inherits else then.ccsid, now, then


@dataclass(frozen=True, slots=True)
class Converted:
    """A message after its conversion. reason: 0, or why part of it, or all, is as it was (MQRC_*)."""

    mqmd: Mqmd
    body: bytes
    reason: int = 0


def convert(body: bytes, mqmd: Mqmd, ccsid: int, encoding: int) -> Converted:
    """The message of *mqmd* and *body* in *ccsid* and *encoding*, as far as it can be converted.

    ccsid: 0 stands for that of a queue manager.
    """
    target = Representation(_named(ccsid, mqmd), encoding)
    source = Representation(_named(mqmd.coded_char_set_id, mqmd), mqmd.encoding)
    if not body or source == target:
        return Converted(mqmd, body)
    if name_of(mqmd.format) == mq.MQFMT_NONE:
        return Converted(mqmd, body, mq.MQRC_FORMAT_ERROR)
    done: list[Header] = []
    at, fmt, is_converted, reason = 0, mqmd.format, False, 0
    try:
        for header in _headers(body, fmt, source):
            done.append(_converted_header(header, source, target))
            at, fmt = at + header.length, header.format
            behind = encoding_behind(header, source.encoding)
            source = Representation(ccsid_behind(header, source.ccsid), behind)
        data = _converted_data(body[at:], name_of(fmt), source, target)
        is_converted = data is not None
    except ConversionError as error:
        data, reason = None, error.reason
    rest = body[at:] if data is None else data
    last = target if is_converted else source
    chain = [_told(header, target) for header in done[:-1]] + [_told(header, last) for header in done[-1:]]
    described = target if done else last
    return Converted(
        replace(mqmd, coded_char_set_id=described.ccsid, encoding=described.encoding),
        b"".join([*(header.encode() for header in chain), rest]),
        reason,
    )


def _named(ccsid: int, mqmd: Mqmd) -> int:
    return qmgr_ccsid(mqmd.charset == ASCII_FIELDS) if ccsid in MQCCSI_OF_THE_QMGR else ccsid


def _told(header: Header, follows: Representation) -> Header:
    """*header* saying how what follows it is written."""
    return describing(header, {"coded_char_set_id": follows.ccsid, "encoding": follows.encoding})


def _headers(body: bytes, fmt: str, source: Representation) -> Iterator[Header]:
    """The headers one after the other, so that those before a faulty one are there. Raises ConversionError."""
    try:
        for header, _ in headers_of(body, 0, fmt, source.ccsid):
            yield header
    except DecodeError as error:
        reason = error.reason if error.reason == mq.MQRC_SOURCE_CCSID_ERROR else mq.MQRC_FORMAT_ERROR
        raise ConversionError(reason, str(error)) from error


def _converted_header(header: Header, source: Representation, target: Representation) -> Header:
    """*header* itself in *target*; what it says of others is as it was. Raises ConversionError."""
    if source.ccsid == target.ccsid and byte_order(source.encoding) == byte_order(target.encoding):
        return header
    if not isinstance(header, (Rfh2, Rfh1, Dlh, Mde, Xqh)):
        raise ConversionError(mq.MQRC_FORMAT_ERROR, f"{header.kind} is not converted here")
    ebcdic = is_ebcdic(target.ccsid)
    codec = target.codec
    # A character set without one byte for each character of a name, such as UTF-16, cannot be that of a header.
    if codec is None or " ".encode(codec) != " ".encode(EBCDIC_FIELDS if ebcdic else ASCII_FIELDS):
        raise ConversionError(m.MQRC_TARGET_CCSID_ERROR, f"no header can be in CCSID {target.ccsid}")
    charset = field_codec(target.ccsid, ebcdic)
    own: dict[str, Any] = {"order": target.order, "charset": charset}
    if isinstance(header, Xqh):
        own["mqmd"] = replace(header.mqmd, **own)
        _require_exact(header.mqmd, header.charset, source, target)
    elif isinstance(header, Rfh2):
        own["folders"] = _ordered(header, target)
    elif isinstance(header, Rfh1):
        own |= {"data": _name_values(header, target), "string_charset": string_codec(target.ccsid, charset)}
    _require_exact(header, header.charset, source, target)
    converted: Header = replace(header, **own)
    try:
        converted.encode()
    except EncodeError as error:
        raise ConversionError(m.MQRC_NOT_CONVERTED, str(error)) from error
    return converted


def _require_exact(structure: Any, charset: str, source: Representation, target: Representation) -> None:
    """Names outside ASCII need the exact code page on both sides, not one that stands in for it."""
    values = (getattr(structure, field.name) for field in fields(structure))
    if all(value.isascii() for value in values if isinstance(value, str)):
        return
    for which, codec in ((source, charset), (target, field_codec(target.ccsid, is_ebcdic(target.ccsid)))):
        if text_codec(which.ccsid, which.encoding) != codec:
            raise ConversionError(m.MQRC_NOT_CONVERTED, f"a name of {structure!r:.40} in CCSID {which.ccsid}")


def _ordered(header: Rfh2, target: Representation) -> tuple[Folder, ...]:
    """The folders: their characters stay in NameValueCCSID, in the byte order of the header where that is UTF-16."""
    if header.order == target.order or header.name_value_ccsid == UTF8_CCSID:
        return header.folders
    swapped = []
    for folder in header.folders:
        if len(folder.data) % 2:
            raise ConversionError(m.MQRC_NOT_CONVERTED, "a folder in UTF-16 has an odd number of bytes")
        data = bytearray(folder.data)
        data[0::2], data[1::2] = data[1::2], data[0::2]
        swapped.append(replace(folder, data=bytes(data)))
    return tuple(swapped)


def _name_values(header: Rfh1, target: Representation) -> bytes:
    """The NameValueString, padded again to a multiple of four bytes where its length changes."""
    charset = string_codec(target.ccsid, field_codec(target.ccsid, is_ebcdic(target.ccsid)))
    try:
        text = header.data.decode(header.string_charset)
        data = text.encode(charset)
        if len(data) == len(header.data):
            return data
        ends = "\0" if "\0" in text else ""
        data = (text.rstrip("\0 ") + ends).encode(charset)
        return data + (ends or " ").encode(charset) * (-len(data) % 4)
    except UnicodeError as error:
        raise ConversionError(m.MQRC_NOT_CONVERTED, f"NameValueString: {error}") from error


def _converted_data(data: bytes, fmt: str, source: Representation, target: Representation) -> bytes | None:
    """The data behind the headers; None where it is to stay as it is. Raises ConversionError."""
    if not data or fmt == mq.MQFMT_NONE:
        return None
    if fmt == mq.MQFMT_STRING:
        return convert_text(data, source, target)
    if fmt in pcf.FORMATS:
        return convert_pcf(data, source, target)
    raise ConversionError(mq.MQRC_FORMAT_ERROR, f"data of Format {fmt} is not converted here")
