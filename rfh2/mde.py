"""The message descriptor extension: what an MQMD of version 2 has beyond version 1 (wire formats, section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from rfh2.ccsid import ASCII_FIELDS, ByteOrder
from rfh2.constants import MQENC_NATIVE, MQFMT_MD_EXTENSION, MQOL_UNDEFINED
from rfh2.layouts import MQMDE
from rfh2.mqmd import identifier
from rfh2.prologue import HeaderKind, decode_prologue, prologue_fields

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
