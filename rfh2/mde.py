"""The message descriptor extension: what an MQMD of version 2 has beyond version 1 (wire formats, section 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from rfh2.ccsid import ASCII_FIELDS, ENCODINGS, ByteOrder
from rfh2.constants import MQENC_NATIVE, MQFMT_MD_EXTENSION, MQOL_UNDEFINED
from rfh2.errors import DecodeError
from rfh2.layouts import MQMDE, HeaderKind, decode_prologue, prologue_fields
from rfh2.mqmd import Mqmd, identifier, name_of

KIND: Final = HeaderKind("MQMDE", "MDE ", MQFMT_MD_EXTENSION, {2: MQMDE.size})


@dataclass(frozen=True, slots=True)
class Mde:
    """One MQMDE. rest: what StrucLength leaves behind the fields, nothing as a rule."""

    group_id: bytes = bytes(24)
    msg_seq_number: int = 1
    offset: int = 0
    msg_flags: int = 0
    original_length: int = MQOL_UNDEFINED
    encoding: int = MQENC_NATIVE
    coded_char_set_id: int = 0
    format: str = ""
    flags: int = 0
    order: ByteOrder = "little"
    charset: str = ASCII_FIELDS
    rest: bytes = b""

    kind = KIND.name
    own_format = KIND.format
    version = 2

    @property
    def length(self) -> int:
        """StrucLength: 72 bytes as a rule."""
        return MQMDE.size + len(self.rest)

    def encode(self) -> bytes:
        """The bytes of this header. Raises EncodeError."""
        own = (self.msg_seq_number, self.offset, self.msg_flags, self.original_length)
        group_id = identifier(self.group_id, 24, "GroupId")
        return MQMDE.pack(self.order, *prologue_fields(KIND, self), group_id, *own) + self.rest


def decode_mde(data: bytes, offset: int, ccsid: int) -> Mde:
    """The MQMDE at *offset* in *data*; ccsid: CodedCharSetId of the *preceding* header. Raises DecodeError."""
    p = decode_prologue(KIND, data, offset, ccsid)
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
    first = replace(first, format=MQFMT_MD_EXTENSION, encoding=ENCODINGS[mqmd.order], coded_char_set_id=ccsid)
    return first, extension.encode() + body


def joined(mqmd: Mqmd, body: bytes) -> tuple[Mqmd, bytes]:
    """The inverse of ``extended``; as they are where *mqmd* is not of version 1, or no MQMDE is behind it."""
    if mqmd.version != 1 or name_of(mqmd.format) != name_of(MQFMT_MD_EXTENSION):
        return mqmd, body
    try:
        extension = decode_mde(body, 0, mqmd.coded_char_set_id)
    except DecodeError:
        return mqmd, body
    own = {name: getattr(extension, name) for name in (*_FIELDS, "encoding", "coded_char_set_id", "format")}
    return replace(mqmd, version=2, **own), body[extension.length :]
