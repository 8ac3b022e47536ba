"""The message descriptor: what a queue manager knows of a message beside its bytes (wire formats, section 1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from rfh2.ccsid import ASCII_FIELDS, BYTE_ORDERS, EBCDIC_FIELDS, ByteOrder
from rfh2.constants import (
    MQEI_UNLIMITED,
    MQENC_NATIVE,
    MQMT_DATAGRAM,
    MQOL_UNDEFINED,
    MQPER_PERSISTENCE_AS_Q_DEF,
    MQPRI_PRIORITY_AS_Q_DEF,
    MQRC_HEADER_ERROR,
)
from rfh2.errors import DecodeError, EncodeError
from rfh2.layouts import MQMD1, MQMD2, characters

_STRUC_ID = b"MD  "
STRUC_IDS: Final = (_STRUC_ID, "MD  ".encode(EBCDIC_FIELDS))
VERSION_1: Final = (b"\0\0\0\1", b"\1\0\0\0")
VERSION_2: Final = (b"\0\0\0\2", b"\2\0\0\0")
_STRUC_ID_EBCDIC = _STRUC_ID.decode("ascii").encode(EBCDIC_FIELDS)
_CHARSETS = {_STRUC_ID: ASCII_FIELDS, _STRUC_ID_EBCDIC: EBCDIC_FIELDS}
_LAYOUTS = {1: MQMD1, 2: MQMD2}


def name_of(field: str) -> str:
    """The name in a character field: it ends at the first null, whatever comes after, or at its trailing blanks."""
    return (field.split("\0", 1)[0] if "\0" in field else field).rstrip(" ")


def identifier(value: bytes, size: int, field: str) -> bytes:
    """*value* as a byte field, which has no padding. Raises EncodeError where it is not *size* bytes long."""
    if len(value) != size:
        raise EncodeError(f"{field}: {len(value)} bytes, not {size}")
    return value


@dataclass(slots=True, unsafe_hash=True)
class Mqmd:
    """An MQMD of version 1 or 2; version 1 has the defaults for the fields that it lacks.

    Character fields are without their trailing blanks, and otherwise as they are: a null in a name and what follows it
    are kept (``name_of`` gives the name). ``encoding`` and ``coded_char_set_id`` describe the *body*; ``order`` and
    ``charset`` are the byte order and the codec of the descriptor itself. Expiry is in tenths of a second.
    """

    version: int = 1
    report: int = 0
    msg_type: int = MQMT_DATAGRAM
    expiry: int = MQEI_UNLIMITED
    feedback: int = 0
    encoding: int = MQENC_NATIVE
    coded_char_set_id: int = 0
    format: str = ""
    priority: int = MQPRI_PRIORITY_AS_Q_DEF
    persistence: int = MQPER_PERSISTENCE_AS_Q_DEF
    msg_id: bytes = bytes(24)
    correl_id: bytes = bytes(24)
    backout_count: int = 0
    reply_to_q: str = ""
    reply_to_qmgr: str = ""
    user_identifier: str = ""
    accounting_token: bytes = bytes(32)
    appl_identity_data: str = ""
    put_appl_type: int = 0
    put_appl_name: str = ""
    put_date: str = ""
    put_time: str = ""
    appl_origin_data: str = ""
    group_id: bytes = bytes(24)
    msg_seq_number: int = 1
    offset: int = 0
    msg_flags: int = 0
    original_length: int = MQOL_UNDEFINED
    order: ByteOrder = "little"
    charset: str = ASCII_FIELDS

    @classmethod
    def decode(cls, data: bytes) -> Mqmd:
        """The MQMD at the start of *data*, in either byte order, in ASCII or EBCDIC. Raises DecodeError."""
        return decode_mqmd(data)[0]

    def encode(self) -> bytes:
        """The bytes of this descriptor: 324 for version 1, 364 for version 2. Raises EncodeError."""
        return encode_mqmd(self)


_SLICES = MQMD1.slices()
_REPLY_TO_Q, _REPLY_TO_QMGR = _SLICES["ReplyToQ"], _SLICES["ReplyToQMgr"]
_USER, _IDENTITY, _ORIGIN = _SLICES["UserIdentifier"], _SLICES["ApplIdentityData"], _SLICES["ApplOriginData"]
_FORMAT = _SLICES["Format"]
_PUT_NAME, _PUT_DATE, _PUT_TIME = _SLICES["PutApplName"], _SLICES["PutDate"], _SLICES["PutTime"]
_NO_EXTENSION = (bytes(24), 1, 0, 0, MQOL_UNDEFINED)

# StrucId and Version, as they begin a descriptor, to what they say.
_FRONTS: dict[bytes, tuple[int, ByteOrder, str]] = {
    struc_id + version.to_bytes(4, order): (version, order, charset)
    for struc_id, charset in _CHARSETS.items()
    for version in _LAYOUTS
    for order in BYTE_ORDERS
}


class RawMqmd(NamedTuple):
    """An MQMD in its bytes, *data*, and its fields as they stand there: character fields in *charset*, with blanks.

    What is only passed on is so read in a fifth of the time that it takes to decode it and to encode it again.
    """

    struc_id: bytes
    version: int
    report: int
    msg_type: int
    expiry: int
    feedback: int
    encoding: int
    coded_char_set_id: int
    format: bytes
    priority: int
    persistence: int
    msg_id: bytes
    correl_id: bytes
    backout_count: int
    reply_to_q: bytes
    reply_to_qmgr: bytes
    user_identifier: bytes
    accounting_token: bytes
    appl_identity_data: bytes
    put_appl_type: int
    put_appl_name: bytes
    put_date: bytes
    put_time: bytes
    appl_origin_data: bytes
    group_id: bytes
    msg_seq_number: int
    offset: int
    msg_flags: int
    original_length: int
    order: ByteOrder
    charset: str
    data: bytes

    @property
    def decoded(self) -> Mqmd:
        """The descriptor with its characters."""
        return Mqmd.decode(self.data)

    def name(self, field: bytes) -> str:
        """The name in one of its character fields."""
        return name_of(str(field, self.charset))


def read_mqmd(data: bytes | bytearray, offset: int = 0) -> RawMqmd:
    """The MQMD at *offset* in *data*. Raises DecodeError.

    Every MQMD that is long enough can be read.
    """
    (_, order, charset), size, values = _unpacked(data, offset)
    return RawMqmd._make((*values, order, charset, bytes(data[offset : offset + size])))


def descriptor_length(data: bytes | bytearray, at: int = 0) -> int | None:
    """Length in bytes of the MQMD at *at*, by its StrucId and Version; None where there is none."""
    if data[at : at + 4] not in STRUC_IDS:
        return None
    version = data[at + 4 : at + 8]
    if version in VERSION_1:
        return 324
    return 364 if version in VERSION_2 else None


def decode_mqmd(data: bytes, offset: int = 0) -> tuple[Mqmd, int]:
    """The MQMD at *offset* in *data*, and its length in bytes. Raises DecodeError as ``read_mqmd`` does."""
    (_, order, charset), size, v = _unpacked(data, offset)
    # All characters at once: each of these fields is read for every message.
    text = str(data[offset : offset + size], charset)
    fields: tuple[Any, ...] = (
        *v[1:8],
        text[_FORMAT].rstrip(" "),
        *v[9:14],
        text[_REPLY_TO_Q].rstrip(" "),
        text[_REPLY_TO_QMGR].rstrip(" "),
        text[_USER].rstrip(" "),
        v[17],
        text[_IDENTITY].rstrip(" "),
        v[19],
        text[_PUT_NAME].rstrip(" "),
        text[_PUT_DATE].rstrip(" "),
        text[_PUT_TIME].rstrip(" "),
        text[_ORIGIN].rstrip(" "),
        *v[24:],
        order,
        charset,
    )
    return Mqmd(*fields), size


def _unpacked(data: bytes | bytearray, offset: int) -> tuple[tuple[int, ByteOrder, str], int, tuple[Any, ...]]:
    """What StrucId and Version say, the length, and the fields as they stand there, those of version 2 too."""
    begin = bytes(data[offset : offset + 8])
    front = _FRONTS.get(begin)
    if front is None:
        raise _not_an_mqmd(begin, offset)
    version, order, _ = front
    layout = _LAYOUTS[version]
    if len(data) < offset + layout.size:
        there = max(len(data) - offset, 0)
        raise _refused(offset + there, f"{layout.size} bytes are needed, {there} are there", "short-header")
    values: tuple[Any, ...] = layout.fast[order].unpack_from(data, offset)
    return front, layout.size, values if version == 2 else values + _NO_EXTENSION


def in_form(md: bytes, version: int, order: ByteOrder, charset: str) -> bytes:
    """The descriptor *md* in *version*, and in this byte order and codec. Raises DecodeError, EncodeError.

    One that has this form is passed on as it is.
    """
    size = _LAYOUTS[version].size
    if _FRONTS.get(md[:8]) == (version, order, charset):
        return md[:size]
    return replace(Mqmd.decode(md), version=version, order=order, charset=charset).encode()


def _not_an_mqmd(data: bytes, offset: int) -> DecodeError:
    struc_id = data[:4]
    if struc_id not in _CHARSETS:
        return _refused(offset, f"StrucId is {struc_id!r}, not {_STRUC_ID!r}", "bad-struc-id")
    return _refused(offset + 4, "Version is neither 1 nor 2 in either byte order", "unknown-version")


def encode_mqmd(mqmd: Mqmd) -> bytes:
    """The bytes of *mqmd*. Raises EncodeError for a value that does not fit its field."""
    if mqmd.version not in (1, 2):
        raise EncodeError(f"MQMD: Version is {mqmd.version}, neither 1 nor 2")

    def text(value: str, size: int, field: str) -> bytes:
        return characters(value, size, mqmd.charset, field)

    values: tuple[Any, ...] = (
        _STRUC_ID if mqmd.charset == ASCII_FIELDS else "MD  ".encode(mqmd.charset),
        mqmd.version,
        mqmd.report,
        mqmd.msg_type,
        mqmd.expiry,
        mqmd.feedback,
        mqmd.encoding,
        mqmd.coded_char_set_id,
        text(mqmd.format, 8, "Format"),
        mqmd.priority,
        mqmd.persistence,
        identifier(mqmd.msg_id, 24, "MsgId"),
        identifier(mqmd.correl_id, 24, "CorrelId"),
        mqmd.backout_count,
        text(mqmd.reply_to_q, 48, "ReplyToQ"),
        text(mqmd.reply_to_qmgr, 48, "ReplyToQMgr"),
        text(mqmd.user_identifier, 12, "UserIdentifier"),
        identifier(mqmd.accounting_token, 32, "AccountingToken"),
        text(mqmd.appl_identity_data, 32, "ApplIdentityData"),
        mqmd.put_appl_type,
        text(mqmd.put_appl_name, 28, "PutApplName"),
        text(mqmd.put_date, 8, "PutDate"),
        text(mqmd.put_time, 8, "PutTime"),
        text(mqmd.appl_origin_data, 4, "ApplOriginData"),
    )
    if mqmd.version == 1:
        return MQMD1.pack(mqmd.order, *values)
    group_id = identifier(mqmd.group_id, 24, "GroupId")
    extension = (group_id, mqmd.msg_seq_number, mqmd.offset, mqmd.msg_flags, mqmd.original_length)
    return MQMD2.pack(mqmd.order, *values, *extension)


def _refused(offset: int, why: str, code: str) -> DecodeError:
    return DecodeError(offset, "MQMD", why, code, MQRC_HEADER_ERROR)
