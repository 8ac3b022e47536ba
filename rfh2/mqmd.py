"""The message descriptor: what a queue manager knows of a message beside its bytes (wire formats, section 1).

Its extension (MQMDE) has what one of version 2 has beyond version 1, the transmission queue header (MQXQH) a whole one
of version 1 (section 5).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from rfh2 import constants as mq
from rfh2.ccsid import ASCII_FIELDS, BYTE_ORDERS, EBCDIC_FIELDS, ENCODINGS, ByteOrder, field_codec
from rfh2.errors import DecodeError, EncodeError
from rfh2.layouts import MQMD1, MQMD2, MQMDE, MQXQH, HeaderKind, characters, decode_prologue, prologue_fields

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
    msg_type: int = mq.MQMT_DATAGRAM
    expiry: int = mq.MQEI_UNLIMITED
    feedback: int = 0
    encoding: int = mq.MQENC_NATIVE
    coded_char_set_id: int = 0
    format: str = ""
    priority: int = mq.MQPRI_PRIORITY_AS_Q_DEF
    persistence: int = mq.MQPER_PERSISTENCE_AS_Q_DEF
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
    original_length: int = mq.MQOL_UNDEFINED
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
_BY_PROGRAM = slice(_SLICES["ReplyToQ"].start, _SLICES["PutApplName"].stop)
_TEXTS_BY_PROGRAM = [
    slice(_SLICES[name].start - _BY_PROGRAM.start, _SLICES[name].stop - _BY_PROGRAM.start)
    for name in ("ReplyToQ", "ReplyToQMgr", "UserIdentifier", "ApplIdentityData", "PutApplName")
]
_NO_EXTENSION = (bytes(24), 1, 0, 0, mq.MQOL_UNDEFINED)

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
    said = data[offset + _BY_PROGRAM.start : offset + _BY_PROGRAM.stop]
    reply_to_q, reply_to_qmgr, user, identity, put_name = _said_by_program(said, charset)
    fields: tuple[Any, ...] = (
        *v[1:8],
        str(v[8], charset).rstrip(" "),
        *v[9:14],
        reply_to_q,
        reply_to_qmgr,
        user,
        v[17],
        identity,
        v[19],
        put_name,
        str(v[21], charset).rstrip(" "),
        str(v[22], charset).rstrip(" "),
        str(v[23], charset).rstrip(" "),
        *v[24:],
        order,
        charset,
    )
    return Mqmd(*fields), size


# A program says the same in each of its messages.
@lru_cache(maxsize=1024)
def _said_by_program(data: bytes, charset: str) -> tuple[str, ...]:
    """ReplyToQ, ReplyToQMgr, UserIdentifier, ApplIdentityData and PutApplName, from the bytes of a descriptor there."""
    text = str(data, charset)
    return tuple([text[each].rstrip(" ") for each in _TEXTS_BY_PROGRAM])


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
    return DecodeError(offset, "MQMD", why, code, mq.MQRC_HEADER_ERROR)


MDE_KIND: Final = HeaderKind("MQMDE", "MDE ", mq.MQFMT_MD_EXTENSION, {2: MQMDE.size})


@dataclass(frozen=True, slots=True)
class Mde:
    """One MQMDE. rest: what StrucLength leaves behind the fields, nothing as a rule."""

    group_id: bytes = bytes(24)
    msg_seq_number: int = 1
    offset: int = 0
    msg_flags: int = 0
    original_length: int = mq.MQOL_UNDEFINED
    encoding: int = mq.MQENC_NATIVE
    coded_char_set_id: int = 0
    format: str = ""
    flags: int = 0
    order: ByteOrder = "little"
    charset: str = ASCII_FIELDS
    rest: bytes = b""

    kind = MDE_KIND.name
    own_format = MDE_KIND.format
    version = 2

    @property
    def length(self) -> int:
        """StrucLength: 72 bytes as a rule."""
        return MQMDE.size + len(self.rest)

    def encode(self) -> bytes:
        """The bytes of this header. Raises EncodeError."""
        own = (self.msg_seq_number, self.offset, self.msg_flags, self.original_length)
        group_id = identifier(self.group_id, 24, "GroupId")
        return MQMDE.pack(self.order, *prologue_fields(MDE_KIND, self), group_id, *own) + self.rest


def decode_mde(data: bytes, offset: int, ccsid: int) -> Mde:
    """The MQMDE at *offset* in *data*; ccsid: CodedCharSetId of the *preceding* header. Raises DecodeError."""
    p = decode_prologue(MDE_KIND, data, offset, ccsid)
    own: tuple[Any, ...] = MQMDE.fast[p.order].unpack_from(data, offset)[7:]
    rest = data[offset + MQMDE.size : offset + p.length]
    fields: list[Any] = [*own, p.encoding, p.coded_char_set_id, p.format, p.flags, p.order, p.charset, rest]
    return Mde(*fields)


_EBCDIC: Final = 500
_FIELDS: Final = ("group_id", "msg_seq_number", "offset", "msg_flags", "original_length")
_DEFAULTS: Final = Mde()


def extended(mqmd: Mqmd, body: bytes) -> tuple[Mqmd, bytes]:
    """*mqmd* as one of version 1, and *body* behind an MQMDE if a field that only version 2 has says anything."""
    own = {name: getattr(mqmd, name) for name in _FIELDS}
    first = replace(mqmd, version=1, **{name: getattr(_DEFAULTS, name) for name in _FIELDS})
    if mqmd.version == 1 or own == {name: getattr(_DEFAULTS, name) for name in _FIELDS}:
        return first, body
    extension = Mde(
        **own,
        encoding=mqmd.encoding,
        coded_char_set_id=mqmd.coded_char_set_id,
        format=mqmd.format,
        order=mqmd.order,
        charset=mqmd.charset,
    )
    ccsid = 0 if mqmd.charset == ASCII_FIELDS else _EBCDIC
    first = replace(first, format=mq.MQFMT_MD_EXTENSION, encoding=ENCODINGS[mqmd.order], coded_char_set_id=ccsid)
    return first, extension.encode() + body


def joined(mqmd: Mqmd, body: bytes) -> tuple[Mqmd, bytes]:
    """The inverse of ``extended``; as they are where *mqmd* is not of version 1, or no MQMDE is behind it."""
    if mqmd.version != 1 or name_of(mqmd.format) != name_of(mq.MQFMT_MD_EXTENSION):
        return mqmd, body
    try:
        extension = decode_mde(body, 0, mqmd.coded_char_set_id)
    except DecodeError:
        return mqmd, body
    own = {name: getattr(extension, name) for name in (*_FIELDS, "encoding", "coded_char_set_id", "format")}
    return replace(mqmd, version=2, **own), body[extension.length :]


# The transmission queue header: a message on its way to another queue manager (wire formats, section 5).
#
#     0        4        8            56              104                       428
#     StrucId  Version  RemoteQName  RemoteQMgrName  MQMD, always of version 1  what that MQMD describes
#
# The descriptor in front of it (Format MQXMIT) describes the header alone; the embedded one is the message's own and
# takes over its role: what follows is described by it. Fields of version 2 follow in an MQMDE.

XQH_KIND: Final = HeaderKind("MQXQH", "XQH ", mq.MQFMT_XMIT_Q_HEADER, {1: MQXQH.size + MQMD1.size})


@dataclass(frozen=True, slots=True)
class Xqh:
    """One MQXQH. mqmd: the embedded descriptor, of version 1; it may differ in byte order and code page."""

    mqmd: Mqmd
    remote_q_name: str = ""
    remote_qmgr_name: str = ""
    order: ByteOrder = "little"
    charset: str = ASCII_FIELDS

    kind = XQH_KIND.name
    own_format = XQH_KIND.format

    @property
    def length(self) -> int:
        """Always 428 bytes."""
        return XQH_KIND.sizes[1]

    @property
    def encoding(self) -> int:
        """Encoding of what follows: the embedded descriptor's."""
        return self.mqmd.encoding

    @property
    def coded_char_set_id(self) -> int:
        """CodedCharSetId of what follows: the embedded descriptor's."""
        return self.mqmd.coded_char_set_id

    @property
    def format(self) -> str:
        """Format of what follows: the embedded descriptor's."""
        return self.mqmd.format

    def encode(self) -> bytes:
        """The bytes of this header. Raises EncodeError."""
        if self.mqmd.version != 1:
            raise EncodeError("MQXQH: the embedded MQMD must be of version 1, with an MQMDE after it")
        fixed = MQXQH.pack(
            self.order,
            XQH_KIND.struc_id.encode(self.charset),
            1,
            characters(self.remote_q_name, 48, self.charset, "RemoteQName"),
            characters(self.remote_qmgr_name, 48, self.charset, "RemoteQMgrName"),
        )
        return fixed + self.mqmd.encode()


def decode_xqh(data: bytes, offset: int, ccsid: int) -> Xqh:
    """The MQXQH at *offset* in *data*; ccsid: CodedCharSetId of the *preceding* header. Raises DecodeError."""
    struc_id = data[offset : offset + 4]
    ebcdic = XQH_KIND.families.get(struc_id)
    if ebcdic is None:
        raise _not_an_xqh(offset, f"StrucId is {struc_id!r}, not {XQH_KIND.struc_id!r}", "bad-struc-id")
    found = XQH_KIND.versions.get(data[offset + 4 : offset + 8])
    if found is None:
        raise _not_an_xqh(offset + 4, "Version is not 1 in either byte order", "unknown-version")
    there = len(data) - offset
    if there < XQH_KIND.sizes[1]:
        raise _not_an_xqh(len(data), f"{XQH_KIND.sizes[1]} bytes are needed, {there} are there", "short-header")
    order, charset = found[1], field_codec(ccsid, ebcdic)
    _, _, queue, qmgr = MQXQH.fast[order].unpack_from(data, offset)
    mqmd, size = decode_mqmd(data, offset + MQXQH.size)
    if size != MQMD1.size:
        why = "the embedded MQMD is of version 2; a transmission queue header has version 1"
        raise _not_an_xqh(offset + MQXQH.size + 4, why, "unknown-version")
    return Xqh(mqmd, str(queue, charset).rstrip(" "), str(qmgr, charset).rstrip(" "), order, charset)


def _not_an_xqh(offset: int, why: str, code: str) -> DecodeError:
    return DecodeError(offset, XQH_KIND.name, why, code, mq.MQRC_HEADER_ERROR)
