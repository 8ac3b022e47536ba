"""Header chains: each header's Format names the next; what remains is the body (wire formats, section 0)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Protocol

from rfh2 import mde, pcf, rfh1, xqh
from rfh2.ccsid import ASCII_FIELDS, EBCDIC_FIELDS, ENCODINGS
from rfh2.constants import (
    MQCCSI_DEFAULT,
    MQCCSI_INHERIT,
    MQENC_NATIVE,
    MQFMT_DEAD_LETTER_HEADER,
    MQFMT_MD_EXTENSION,
    MQFMT_RF_HEADER_1,
    MQFMT_RF_HEADER_2,
    MQFMT_XMIT_Q_HEADER,
)
from rfh2.dlh import decode_dlh
from rfh2.layouts import MQDLH, STEPPED_OVER, HeaderKind, decode_stepped
from rfh2.mqmd import name_of
from rfh2.rfh2 import FIXED_LENGTH, STRUC_ID, decode_rfh2


class Header(Protocol):
    """Any header in a chain: the description of what follows it, its length in bytes, and its bytes."""

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
    MQFMT_RF_HEADER_1: rfh1.decode_rfh1,
    MQFMT_RF_HEADER_2: decode_rfh2,
    "MQRFH2": decode_rfh2,  # what the guide prints for MQFMT_RF_HEADER_2 (6.6.1), and programs may have taken from it
    MQFMT_DEAD_LETTER_HEADER: decode_dlh,
    MQFMT_XMIT_Q_HEADER: xqh.decode_xqh,
    MQFMT_MD_EXTENSION: mde.decode_mde,
    pcf.EPH_KIND.format: pcf.decode_eph,
}

DECODERS |= {kind.format: partial(decode_stepped, kind) for kind in STEPPED_OVER}

_KINDS = (
    rfh1.KIND,
    HeaderKind("MQRFH2", "RFH ", MQFMT_RF_HEADER_2, {2: FIXED_LENGTH}),
    HeaderKind("MQDLH", "DLH ", MQFMT_DEAD_LETTER_HEADER, {1: MQDLH.size}),
    xqh.KIND,
    mde.KIND,
    pcf.EPH_KIND,
    *STEPPED_OVER,
)
_BY_STRUC_ID: dict[bytes, tuple[HeaderKind, ...]] = {
    each.struc_id.encode(): tuple(kind for kind in _KINDS if kind.struc_id == each.struc_id) for each in _KINDS
}
_EBCDIC_CCSID = 500

_OF_WHAT_PRECEDES = (MQCCSI_INHERIT, MQCCSI_DEFAULT)
# Its Encoding and CodedCharSetId are reserved: what follows is written as the header itself is.
_SAYS_NOTHING = "MQIIH"
# IBM's documentation says the same of this one, but IBM's classes go by the values; 0, the initial value, says nothing.
_MAY_SAY_NOTHING = "MQCIH"
RESERVING = frozenset({_SAYS_NOTHING, _MAY_SAY_NOTHING})
"""Headers that do not always describe what follows them."""

# A message of 100 MB could chain a million headers of 100 bytes; real ones have three or four.
MAX_HEADERS = 1000


def describing(header: Header, described: Mapping[str, Any]) -> Header:
    """*header* with some of encoding, coded_char_set_id and format changed, by which it describes what follows it.

    An MQXQH says these in its embedded descriptor.
    """
    if isinstance(header, xqh.Xqh):
        return replace(header, mqmd=replace(header.mqmd, **described))
    return replace(header, **described)  # type: ignore[type-var]


def ccsid_behind(header: Header, own: int) -> int:
    """CodedCharSetId of what follows *header*, which itself is in *own*."""
    described = header.coded_char_set_id
    return own if described in _OF_WHAT_PRECEDES or header.kind == _SAYS_NOTHING else described


def encoding_behind(header: Header, own: int) -> int:
    """Encoding (MQENC_*) of what follows *header*, which itself is in *own*."""
    kind, encoding = header.kind, header.encoding
    return own if kind == _SAYS_NOTHING or (kind == _MAY_SAY_NOTHING and not encoding) else encoding


@lru_cache(maxsize=256)
def decoder_of(fmt: str) -> Decoder | None:
    """The function that decodes the header which a Format announces; None where the body follows."""
    return DECODERS.get(name_of(fmt))


def decode_chain(data: bytes, fmt: str, ccsid: int) -> tuple[tuple[Header, ...], int]:
    """The headers at the start of *data*, and the offset at which the body begins.

    fmt, ccsid: Format and CodedCharSetId of the descriptor before them. Raises DecodeError.
    """
    headers: list[Header] = []
    at = 0
    while (decoder := decoder_of(fmt)) is not None:
        if headers and (at == len(data) or len(headers) == MAX_HEADERS):
            break  # the body; it is empty where a Format has nothing behind it, as real queue managers leave it
        header = decoder(data, at, ccsid)
        headers.append(header)
        at += header.length
        fmt = header.format
        ccsid = ccsid_behind(header, ccsid)
    return tuple(headers), at


def headers_of(data: bytes, at: int, fmt: str, ccsid: int) -> Iterator[tuple[Header, int]]:
    """The headers from *at* on, one after the other, each with its offset: those before a faulty one are there.

    fmt, ccsid: Format and CodedCharSetId of what stands before them. Raises DecodeError. ``decode_chain`` has the same
    walk as a plain loop, since a generator costs it a quarter of its time.
    """
    begin = at
    for _ in range(MAX_HEADERS):
        decoder = decoder_of(fmt)
        if decoder is None or (at > begin and at == len(data)):
            return
        header = decoder(data, at, ccsid)
        yield header, at
        at += header.length
        fmt = header.format
        ccsid = ccsid_behind(header, ccsid)


def sniffed(data: bytes) -> tuple[str, int, int] | None:
    """(Format, Encoding, CodedCharSetId) that a lost MQMD must have had, by the first header's StrucId and Version.

    ``RFH `` alone makes a rules and formatting header, however damaged; other StrucIds need a Version that they have.
    """
    struc_id = data[:4]
    ebcdic = struc_id not in _BY_STRUC_ID
    if ebcdic:
        struc_id = struc_id.decode(EBCDIC_FIELDS).encode(ASCII_FIELDS, "replace")
    for kind in _BY_STRUC_ID.get(struc_id, ()):
        found = kind.versions.get(data[4:8])
        if found is not None:
            return kind.format, ENCODINGS[found[1]], _EBCDIC_CCSID if ebcdic else 0
    if struc_id == STRUC_ID:
        return MQFMT_RF_HEADER_2, MQENC_NATIVE, _EBCDIC_CCSID if ebcdic else 0
    return None
