"""Recognizes bytes that are not an MQ message: for a user who saved a message in another form, or a part of it.

Only the beginning is examined, so that the cost does not depend on the length. Each form has one test. The first match
is reported, with what to do.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from typing import Final

from rfh2.ccsid import EBCDIC_FIELDS
from rfh2.chain import sniffed

_SEEN_BYTES: Final = 65_536

_HEX: Final = re.compile(rb"(?:[0-9A-Fa-f]{2}\s*){16,}[0-9A-Fa-f]?")
# Where two neighbours match blanks, the first takes them all (``++``), and what is looked for at each line does not run
# over the next lines: either would take the square of the length.
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/\s]{24,}+={0,2}+\s*+")
_WORDS: Final = re.compile(rb"[0-9A-Fa-f]{7,8} +[0-9A-Fa-f]{4}(?: +[0-9A-Fa-f]{4}){2,} *\r?\n")
_OCTAL: Final = re.compile(rb"[0-7]{7}(?: +[0-7]{6})+ *\r?\n")
_C_ARRAY: Final = re.compile(rb"[^{]{0,200}\{?\s*+0x[0-9A-Fa-f]{2}\s*,\s*0x[0-9A-Fa-f]{2}\s*,")
_DUMP: Final = re.compile(rb"^[^\w\n]*+0{4,16}:?[ \t]++(?:[0-9A-Fa-f]{2} ?){8}", re.MULTILINE)
_LISTING: Final = re.compile(rb"AMQSBCG\w? - starts here|\*{4}\s*Message descriptor\s*\*{4}")
_ZERO_X: Final = re.compile(rb"\s*(?:0x[0-9A-Fa-f]{2}[\s,]+){8}")
_LITERAL: Final = re.compile(rb"b['\"]")
_FOLDER: Final = re.compile(rb"\s*<(psc|pscr|mcd|jms|usr|mqps|mq_usr|mqext)>")
_STRING: Final = re.compile(rb"\s*\"?MQPS[A-Z]")
_UTF16: Final = re.compile(rb"(?:\xff\xfe|\xfe\xff)?(?:[\x20-\x7e\r\n]\0|\0[\x20-\x7e\r\n]){8,}")

_VERSIONS: Final = rb"(?:[\1\2]\0\0\0|\0\0\0[\1\2])"
_STRUC_IDS: Final = ("MD  ", "RFH ", "DLH ", "XQH ", "MDE ")
_STRUCTURE: Final = re.compile(
    rb"(?:"
    + b"|".join([re.escape(each.encode(codec)) for codec in ("ascii", EBCDIC_FIELDS) for each in _STRUC_IDS])
    + rb")"
    + _VERSIONS
)


def look_alike(data: bytes) -> str | None:
    """The form of *data*, which is neither an MQMD nor a header, in words; None for a form that is not known."""
    seen = data[:_SEEN_BYTES]
    return next((found for test in _TESTS if (found := test(seen)) is not None), None)


def lost_header(data: bytes) -> str | None:
    """The same, for data that stood behind a header or in one."""
    return next((found for test in _OF_A_HEADER if (found := test(data[:_SEEN_BYTES])) is not None), None)


def is_message(data: bytes) -> bool:
    """Whether *data* begins as a message with an MQMD or a header does."""
    return sniffed(data) is not None or _STRUCTURE.match(data) is not None


def _archive(data: bytes) -> str | None:
    if data.startswith(b"PK\3\4"):
        return "a zip archive: unzip -p FILE | qpubsub decode"
    if data[257:262] == b"ustar":
        return "a tar archive: tar -xOf FILE | qpubsub decode"
    if data.startswith((b"\x1f\x8b\x08", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd")):
        return "compressed data: decompress it (zstd -dc FILE | qpubsub decode)"
    return None


def _hex(data: bytes) -> str | None:
    if _HEX.fullmatch(data.strip()) is None:
        return None
    return "hex text of other hex text; decode it once: xxd -r -p FILE | qpubsub decode"


def _base64(data: bytes) -> str | None:
    if _BASE64.fullmatch(data) is None:
        return None
    digits = b"".join(data.split()).rstrip(b"=")
    try:
        plain = binascii.a2b_base64(digits[: len(digits) // 4 * 4])
    except binascii.Error:
        return None
    held = "a message" if is_message(plain) else "hex text" if _HEX.match(plain) else None
    return None if held is None else f"base64 of {held}: base64 -d FILE | qpubsub decode"


def _pattern(pattern: re.Pattern[bytes], words: str) -> Callable[[bytes], str | None]:
    return lambda data: words if pattern.match(data) is not None else None


def _within(pattern: re.Pattern[bytes], words: str) -> Callable[[bytes], str | None]:
    return lambda data: words if pattern.search(data) is not None else None


def _further_on(data: bytes) -> str | None:
    found = _STRUCTURE.search(data)
    if found is None:
        return None
    name = found[0][:4]
    text = name.decode("ascii") if name.isascii() else name.decode(EBCDIC_FIELDS)
    cut = f"tail -c +{found.start() + 1} FILE | qpubsub decode"
    return f"{found.start()} bytes of something else in front of a structure {text.strip()!r}: {cut}"


_OF_A_HEADER: Final = (
    _pattern(_FOLDER, "the text of a folder, without the MQRFH2 around it"),
    _pattern(_STRING, "the string of an MQRFH, without the header in front"),
)
_TESTS: Final = (
    _archive,
    *_OF_A_HEADER,
    _hex,
    _pattern(_WORDS, "a dump of 16-bit words: qpubsub decode --format pasted FILE"),
    _pattern(_OCTAL, "a dump of octal words: qpubsub decode --format pasted FILE"),
    _base64,
    _pattern(_LITERAL, "a literal of Python: qpubsub decode --format pasted FILE"),
    _pattern(_ZERO_X, "hex text with 0x before each byte: qpubsub decode --format pasted FILE"),
    _pattern(_C_ARRAY, "an array of C: qpubsub decode --format pasted FILE"),
    _further_on,
    _within(
        _LISTING,
        "a listing of amqsbcg with other text around it: qpubsub decode --format pasted FILE",
    ),
    _within(_DUMP, "a hex dump with other text around it: qpubsub decode --format pasted FILE"),
    _pattern(_UTF16, "text in UTF-16: iconv -f UTF-16 -t UTF-8 FILE | qpubsub decode"),
)
