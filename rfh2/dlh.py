"""The dead-letter header: why a message could not be processed, and its original destination (wire formats 5)."""

from __future__ import annotations

from dataclasses import dataclass

from rfh2.ccsid import ASCII_FIELDS, EBCDIC_FIELDS, ByteOrder, field_codec
from rfh2.constants import MQENC_NATIVE, MQFMT_DEAD_LETTER_HEADER, MQRC_HEADER_ERROR
from rfh2.errors import DecodeError
from rfh2.layouts import MQDLH, characters

_STRUC_ID = b"DLH "
_STRUC_ID_EBCDIC = "DLH ".encode(EBCDIC_FIELDS)
_ORDERS: dict[bytes, ByteOrder] = {b"\0\0\0\1": "big", b"\1\0\0\0": "little"}


@dataclass(frozen=True, slots=True)
class Dlh:
    """One MQDLH. ``encoding``, ``coded_char_set_id`` and ``format`` describe the message behind it."""

    reason: int
    dest_q_name: str = ""
    dest_qmgr_name: str = ""
    encoding: int = MQENC_NATIVE
    coded_char_set_id: int = 0
    format: str = ""
    put_appl_type: int = 0
    put_appl_name: str = ""
    put_date: str = ""
    put_time: str = ""
    order: ByteOrder = "little"
    charset: str = ASCII_FIELDS

    kind = "MQDLH"
    own_format = MQFMT_DEAD_LETTER_HEADER

    @property
    def length(self) -> int:
        """Always 172 bytes."""
        return MQDLH.size

    def encode(self) -> bytes:
        """The bytes of this header. Raises EncodeError."""

        def text(value: str, size: int, field: str) -> bytes:
            return characters(value, size, self.charset, field)

        return MQDLH.pack(
            self.order,
            "DLH ".encode(self.charset),
            1,
            self.reason,
            text(self.dest_q_name, 48, "DestQName"),
            text(self.dest_qmgr_name, 48, "DestQMgrName"),
            self.encoding,
            self.coded_char_set_id,
            text(self.format, 8, "Format"),
            self.put_appl_type,
            text(self.put_appl_name, 28, "PutApplName"),
            text(self.put_date, 8, "PutDate"),
            text(self.put_time, 8, "PutTime"),
        )


def decode_dlh(data: bytes, offset: int, ccsid: int) -> Dlh:
    """The MQDLH at *offset* in *data*; ccsid: CodedCharSetId of the preceding header. Raises DecodeError."""
    struc_id = data[offset : offset + 4]
    if struc_id not in (_STRUC_ID, _STRUC_ID_EBCDIC):
        raise DecodeError(
            offset, "MQDLH", f"StrucId is {struc_id!r}, not {_STRUC_ID!r}", "bad-struc-id", MQRC_HEADER_ERROR
        )
    order = _ORDERS.get(data[offset + 4 : offset + 8])
    if order is None:
        raise DecodeError(
            offset + 4, "MQDLH", "Version is not 1 in either byte order", "unknown-version", MQRC_HEADER_ERROR
        )
    there = len(data) - offset
    if there < MQDLH.size:
        raise DecodeError(
            len(data), "MQDLH", f"{MQDLH.size} bytes are needed, {there} are there", "short-header", MQRC_HEADER_ERROR
        )
    charset = field_codec(ccsid, struc_id == _STRUC_ID_EBCDIC)
    v = MQDLH.fast[order].unpack_from(data, offset)

    def text(i: int) -> str:
        return str(v[i], charset).rstrip(" ")

    return Dlh(
        reason=v[2],
        dest_q_name=text(3),
        dest_qmgr_name=text(4),
        encoding=v[5],
        coded_char_set_id=v[6],
        format=text(7),
        put_appl_type=v[8],
        put_appl_name=text(9),
        put_date=text(10),
        put_time=text(11),
        order=order,
        charset=charset,
    )
