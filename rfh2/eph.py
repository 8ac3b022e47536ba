"""The embedded PCF header: PCF in front of other data, such as a trace of its route (wire formats, section 5).

    the prologue of 32 bytes, then an MQCFH and its parameters, all within StrucLength

Integers and characters of the PCF are, like those of the prologue, in the Encoding and CCSID of the *preceding* header.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rfh2.ccsid import ASCII_FIELDS, ByteOrder
from rfh2.constants import MQENC_NATIVE
from rfh2.errors import EncodeError
from rfh2.layouts import MQCFH, MQRFH
from rfh2.pcf import Pcf, decode_pcf
from rfh2.prologue import LENGTH, HeaderKind, decode_prologue, prologue_fields

KIND: Final = HeaderKind("MQEPH", "EPH ", "MQHEPCF", {1: LENGTH + MQCFH.size})


@dataclass(frozen=True, slots=True)
class Eph:
    """One MQEPH. data: the PCF as on the wire, read only when somebody asks.

    ccsid: CodedCharSetId of the *preceding* header, in which PCF strings are that name none of their own. offset: where
    *data* stood in the message that it was decoded from; it does not take part in comparison.
    """

    data: bytes
    encoding: int = MQENC_NATIVE
    coded_char_set_id: int = 0
    format: str = ""
    flags: int = 0
    order: ByteOrder = "little"
    charset: str = ASCII_FIELDS
    ccsid: int = 0
    offset: int = field(default=0, compare=False)

    kind = KIND.name
    own_format = KIND.format
    version = 1

    @property
    def length(self) -> int:
        """StrucLength: the whole header in bytes, the PCF included."""
        return LENGTH + len(self.data)

    def pcf(self) -> Pcf:
        """The PCF message. Raises DecodeError, with an offset into the message."""
        return decode_pcf(self.data, self.ccsid, self.offset)

    def encode(self) -> bytes:
        """The bytes of this header. Raises EncodeError."""
        if len(self.data) < MQCFH.size:
            raise EncodeError(f"MQEPH: {len(self.data)} bytes are less than an MQCFH has")
        return MQRFH.pack(self.order, *prologue_fields(KIND, self)) + self.data


def decode_eph(data: bytes, offset: int, ccsid: int) -> Eph:
    """The MQEPH at *offset* in *data*; ccsid: CodedCharSetId of the *preceding* header. Raises DecodeError."""
    p = decode_prologue(KIND, data, offset, ccsid)
    start, described = offset + LENGTH, (p.encoding, p.coded_char_set_id, p.format, p.flags)
    return Eph(data[start : offset + p.length], *described, p.order, p.charset, ccsid, start)
