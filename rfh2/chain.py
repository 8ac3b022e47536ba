"""Header chains: each header's Format names the next; what remains is the body (wire formats, section 0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rfh2.ccsid import EBCDIC_FIELDS
from rfh2.constants import (
    MQCCSI_DEFAULT,
    MQCCSI_INHERIT,
    MQFMT_DEAD_LETTER_HEADER,
    MQFMT_RF_HEADER_1,
    MQFMT_RF_HEADER_2,
)
from rfh2.dlh import decode_dlh
from rfh2.mqmd import name_of
from rfh2.rfh1 import decode_rfh1
from rfh2.rfh2 import STRUC_ID, STRUC_ID_EBCDIC, VERSION_ORDERS, decode_rfh2


class Header(Protocol):
    """What every header in a chain has: the description of what follows it, its length in bytes, and its bytes."""

    @property
    def kind(self) -> str:
        """IBM's name of the structure, such as ``MQRFH2``."""

    @property
    def own_format(self) -> str:
        """The Format by which the preceding header announces this one."""

    @property
    def encoding(self) -> int: ...
    @property
    def coded_char_set_id(self) -> int: ...
    @property
    def format(self) -> str: ...
    @property
    def length(self) -> int: ...
    def encode(self) -> bytes: ...


Decoder = Callable[[bytes, int, int], Header]

DECODERS: dict[str, Decoder] = {
    MQFMT_RF_HEADER_1: decode_rfh1,
    MQFMT_RF_HEADER_2: decode_rfh2,
    "MQRFH2": decode_rfh2,  # what the guide prints for MQFMT_RF_HEADER_2 (6.6.1), and programs may have taken from it
    MQFMT_DEAD_LETTER_HEADER: decode_dlh,
}

# A message of 100 MB could chain a million headers of 100 bytes; real ones have three or four.
MAX_HEADERS = 1000


def decode_chain(data: bytes, fmt: str, ccsid: int) -> tuple[tuple[Header, ...], int]:
    """The headers at the start of *data*, and the offset at which the body begins.

    fmt, ccsid: Format and CodedCharSetId of the descriptor before them. Raises DecodeError.
    """
    headers: list[Header] = []
    at = 0
    while (decoder := DECODERS.get(name_of(fmt))) is not None and len(headers) < MAX_HEADERS:
        if headers and at == len(data):
            break  # a Format with nothing behind it: an empty body, as real queue managers leave it
        header = decoder(data, at, ccsid)
        headers.append(header)
        at += header.length
        fmt = header.format
        if header.coded_char_set_id not in (MQCCSI_INHERIT, MQCCSI_DEFAULT):
            ccsid = header.coded_char_set_id
    return tuple(headers), at


def sniffed(data: bytes) -> tuple[str, int, int] | None:
    """(Format, Encoding, CodedCharSetId) that a lost MQMD must have had, by the first header's StrucId and Version."""
    struc_id = data[:4]
    if struc_id in (STRUC_ID, STRUC_ID_EBCDIC):
        found = VERSION_ORDERS.get(data[4:8])
        version, order = found if found else (2, "little")
        fmt = "MQHRF2" if version == 2 else "MQHRF"
        return fmt, 273 if order == "big" else 546, 500 if struc_id == STRUC_ID_EBCDIC else 0
    if struc_id in (b"DLH ", "DLH ".encode(EBCDIC_FIELDS)):
        order = "big" if data[4:8] == b"\0\0\0\1" else "little"
        return MQFMT_DEAD_LETTER_HEADER, 273 if order == "big" else 546, 0 if struc_id == b"DLH " else 500
    return None
