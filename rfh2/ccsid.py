"""Coded character sets: from IBM's numbers to Python's codecs, and the characters of fixed fields.

There are two different needs. Text (bodies, NameValueData) needs the exact codec or none: nothing is guessed. Fixed
fields of a header hold names, and must be written again byte for byte: they use a codec in which every byte is one
character and every character one byte (wire formats, section 7).
"""

from __future__ import annotations

import codecs
from functools import lru_cache
from typing import Any, Final, Literal

from rfh2 import constants as mq

ByteOrder = Literal["big", "little"]
BYTE_ORDERS: tuple[ByteOrder, ...] = ("big", "little")
ENCODINGS: dict[ByteOrder, int] = {"big": 273, "little": mq.MQENC_NATIVE}
"""The Encoding of data whose integers are in each order, and whose floating-point numbers are IEEE's."""

QMGR_CCSID: Final = 1208
"""CodedCharSetId of a queue manager here: that of one that was made in a UTF-8 locale."""

EBCDIC_QMGR_CCSID: Final = 500
"""The same for a descriptor in EBCDIC: its queue manager is on z/OS, where this is the default."""

MQCCSI_OF_THE_QMGR: Final = (mq.MQCCSI_DEFAULT, mq.MQCCSI_INHERIT)
"""In a descriptor: the queue manager's own."""


def order_of(structure: bytes) -> ByteOrder:
    """The byte order of a structure that begins with StrucId and a small Version."""
    return "little" if structure[4] else "big"


def _ebcdic_codec(name: str) -> codecs.CodecInfo | None:
    """The EBCDIC code pages that Python lacks: 40 modules, which most programs never need."""
    if not name.startswith("cp"):
        return None
    import ebcdic  # noqa: PLC0415

    try:
        found: codecs.CodecInfo = ebcdic.lookup(name)
    except LookupError:
        return None
    return found


codecs.register(_ebcdic_codec)

_UTF16 = (1200, 13488, 17584)
UTF8_CCSID: Final = 1208
NAME_VALUE_CCSIDS = (UTF8_CCSID, *_UTF16)

_CODECS: dict[int, str] = {
    1208: "utf-8",
    819: "latin-1",
    367: "ascii",
    5348: "cp1252",
    813: "iso8859-7",
    912: "iso8859-2",
    915: "iso8859-5",
    916: "iso8859-8",
    920: "iso8859-9",
    923: "iso8859-15",
    1089: "iso8859-6",
    878: "koi8-r",
    1168: "koi8-u",
    932: "cp932",
    943: "cp932",
    949: "cp949",
    1363: "cp949",
    950: "cp950",
    1386: "gbk",
    1381: "gb2312",
    1383: "gb2312",
    5488: "gb18030",
    1392: "gb18030",
    954: "euc_jp",
    33722: "euc_jp",
    5050: "euc_jp",
    970: "euc_kr",
    1051: "hp_roman8",
}
_PC = (437, 720, 737, 775, 850, 852, 855, 857, 858, *range(860, 867), 869, 874, *range(1250, 1259))
_EBCDIC = (37, 273, 277, 278, 280, 284, 285, 290, 297, 420, 424, 500, 833, 838, 870, 871, 875)
_EBCDIC += (1025, 1026, 1047, 1097, 1112, 1122, 1123, *range(1140, 1150))
_CODECS.update({ccsid: f"cp{ccsid}" for ccsid in _PC})
_CODECS.update({ccsid: f"cp{ccsid:03}" for ccsid in _EBCDIC})
# Where Python's tables are not IBM's: what a byte is in the CCSID.
_CORRECTIONS: dict[int, dict[int, str]] = {273: {0xBC: "\u00af"}, 424: {0xB3: "\u2022", 0xBC: "\u203e"}}
_CORRECTED = {f"ccsid_{ccsid}": (f"cp{ccsid}", table) for ccsid, table in _CORRECTIONS.items()}
_CODECS.update({ccsid: f"ccsid_{ccsid}" for ccsid in _CORRECTIONS})


def _corrected(name: str) -> codecs.CodecInfo | None:
    """Python's codec with the corrections of a CCSID; None for other names."""
    if name not in _CORRECTED:
        return None
    base, corrections = _CORRECTED[name]
    table = "".join(corrections.get(byte, bytes((byte,)).decode(base, "replace")) for byte in range(256))
    # In a table of a codec, this stands for no character.
    table = table.replace("\ufffd", "\ufffe")
    encoding = codecs.charmap_build(table)

    def encode(text: str, errors: str = "strict") -> tuple[bytes, int]:
        return codecs.charmap_encode(text, errors, encoding)

    def decode(data: Any, errors: str = "strict") -> tuple[str, int]:
        return codecs.charmap_decode(data, errors, table)

    return codecs.CodecInfo(encode, decode, name=name)


codecs.register(_corrected)

ASCII_FIELDS = "latin-1"
EBCDIC_FIELDS = "cp500"


def byte_order(encoding: int) -> ByteOrder | None:
    """Byte order of integers under an MQENC_* sum; None where its integer part is undefined.

    Only the integer nibble counts: 273, 785, 1041 and 529 are all big-endian.
    """
    part = encoding & mq.MQENC_INTEGER_MASK
    if part == mq.MQENC_INTEGER_NORMAL:
        return "big"
    return "little" if part == mq.MQENC_INTEGER_REVERSED else None


def is_ebcdic(ccsid: int) -> bool:
    """Whether *ccsid* is one of the EBCDIC code pages."""
    return ccsid in _EBCDIC


def text_codec(ccsid: int, encoding: int) -> str | None:
    """Python's codec for text in *ccsid*, in the byte order of *encoding* for UTF-16; None where there is none."""
    if ccsid in _UTF16:
        return "utf-16-le" if byte_order(encoding) == "little" else "utf-16-be"
    return _CODECS.get(ccsid)


def name_value_codec(ccsid: int, order: ByteOrder) -> str | None:
    """Codec of NameValueData; None for a CCSID that an MQRFH2 may not have (guide 6.6.1)."""
    if ccsid == 1208:
        return "utf-8"
    if ccsid in _UTF16:
        return "utf-16-le" if order == "little" else "utf-16-be"
    return None


@lru_cache(maxsize=256)
def field_codec(ccsid: int, ebcdic: bool) -> str:
    """Codec for the fixed character fields of a header whose StrucId is in ASCII, or in EBCDIC.

    The StrucId gives the family, the CCSID the code page. A code page that is not one character to the byte, or not
    known, gives way to latin-1 or cp500, which are: names use only characters that these share with the others.
    """
    fallback = EBCDIC_FIELDS if ebcdic else ASCII_FIELDS
    name = _CODECS.get(ccsid)
    if name is None or is_ebcdic(ccsid) is not ebcdic:
        return fallback
    try:
        every = bytes(range(256)).decode(name)
    except UnicodeDecodeError:
        return fallback
    return name if len(every) == len(set(every)) == 256 else fallback


def qmgr_ccsid(ascii_fields: bool) -> int:
    """CodedCharSetId of the queue manager of a descriptor. ascii_fields: whether its characters are in ASCII."""
    return QMGR_CCSID if ascii_fields else EBCDIC_QMGR_CCSID


_CCSID, _FORMAT = slice(16, 20), slice(20, 28)
_INHERIT_BYTES: Final = (b"\xfe\xff\xff\xff", b"\xff\xff\xff\xfe")
# A header follows a header where its Format begins so, and is not text.
_OF_IBM: Final = ("MQ".encode(ASCII_FIELDS), "MQ".encode(EBCDIC_FIELDS))
_TEXT: Final = ("MQSTR   ".encode(ASCII_FIELDS), "MQSTR   ".encode(EBCDIC_FIELDS))


def is_kept_body(body: bytes) -> bool:
    """Whether a queue manager keeps *body* as it is, as its first header shows at fixed places."""
    fmt = body[_FORMAT]
    return body[_CCSID] not in _INHERIT_BYTES and (fmt in _TEXT or fmt[:2] not in _OF_IBM)
