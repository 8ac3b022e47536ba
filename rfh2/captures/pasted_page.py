"""A pasted page as plain lines: without what mail, Markdown, browsers and terminals put around and into them.

The shapes (``pasted``) read what is left. Each line keeps the number that it has in the file.
"""

from __future__ import annotations

import html
import quopri
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from rfh2.captures.text_lines import as_utf8
from rfh2.ccsid import EBCDIC_FIELDS
from rfh2.folders import repeated

_CONTROL: Final = re.compile(
    r"\x1b(?:\[[0-9;?]*+[ -/]*+[@-~]|\][^\x07\x1b]*+(?:\x07|\x1b\\)|[@-Z\\^_=>])|[\x00-\x08\x0e-\x1a]"
)
_TYPOGRAPHY: Final = {
    **dict.fromkeys(map(ord, "\u2018\u2019\u201a\u201b\u2032\u00b4"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f\u2033"), '"'),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212"), "-"),
    0x2026: "...",
}
_SPACES: Final = {
    **dict.fromkeys(
        map(ord, "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u202f\u3000"), " "
    ),
    **dict.fromkeys((0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x00AD), None),
}
_TAGS: Final = re.compile(
    r"</?(?:br|pre|code|span|p|div|td|th|tr|tt|table|tbody|li|ul|font|b|i|em|strong)\b[^<>]*+>", re.I
)
_IS_HTML: Final = re.compile(r"<(?:br|pre|code|span|td|tt)\b[^<>]*+>", re.I)
_MARK: Final = r"[>|][ \t]?"
_QUOTED: Final = re.compile(rf"[ \t]*+{_MARK}{repeated(_MARK)}")
_COMMENT: Final = re.compile(r"[ \t]*+(?://(?=[ \t])|#|--|;|\*(?=[ \t]+[^ \t])|\+(?=[ \t]))[ \t]?")
_PRINTABLE: Final = frozenset(range(0x20, 0x7F)) | {0x09, 0x0A, 0x0D, 0x1B}
_DOUBLED: Final = 0.8
_LEAST_DOUBLED: Final = 6
_WIDE: Final = 200
"""Lines of this many characters hold whole messages: blank lines between them mean something."""


@dataclass(frozen=True, slots=True)
class Page:
    """Plain lines, and the text that they make.

    numbers: of each line in the file, from 1. dressing: what was removed, in words.
    """

    lines: tuple[str, ...]
    numbers: tuple[int, ...]
    dressing: tuple[str, ...] = ()
    text: str = field(init=False)
    starts: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", "\n".join(self.lines))
        ends = accumulate((len(line) + 1 for line in self.lines), initial=0)
        object.__setattr__(self, "starts", tuple(ends))

    def index(self, offset: int) -> int:
        """The index of the line in which the character at *offset* of the text stands."""
        return bisect_right(self.starts, offset, 0, len(self.lines)) - 1

    def number(self, offset: int) -> int:
        """The number in the file of that line."""
        return self.numbers[self.index(offset)] if self.lines else 1


def is_text(data: bytes) -> bool:
    """Whether *data* is text for the most part, in UTF-8, UTF-16 or a code page of one byte."""
    if not data:
        return False
    sample = as_utf8(data)[:4096] if data[:2] in (b"\xff\xfe", b"\xfe\xff") else data[:4096]
    if _is_utf16(sample):
        return True
    other = sum(byte not in _PRINTABLE for byte in sample if byte < 0x80)
    return other * 50 <= len(sample)


def page_of(data: bytes) -> Page:
    """The plain lines of *data*, in whichever encoding it is."""
    if b"quoted-printable" in data[:8192].lower():
        data = quopri.decodestring(data)
    text = _decoded(data)
    dressing = []
    lines = [line.rstrip("\r") for line in text.split("\n")]
    if _CONTROL.search(text):
        lines = [_CONTROL.sub("", line) for line in lines]
        dressing.append("with control characters of a terminal")
    if not text.isascii():
        lines = [line.translate(_SPACES) for line in lines]
        plain = [line.translate(_TYPOGRAPHY) for line in lines]
        if plain != lines:
            dressing.append("with typographic quotes or dashes")
        lines = plain
    if _IS_HTML.search(text):
        lines = [html.unescape(_TAGS.sub("", line)) for line in lines]
        dressing.append("in HTML")
    return _undoubled(_unquoted(lines, dressing), dressing)


def _decoded(data: bytes) -> str:
    data = as_utf8(data)
    if _is_utf16(data[:4096]):
        return data.decode("utf-16-le" if data[1:2] == b"\0" else "utf-16-be", "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _is_utf16(sample: bytes) -> bool:
    """UTF-16 of Western text without a byte order mark: every second byte is null, and no other."""
    half = len(sample) // 2
    return half >= 8 and any(
        sample[at::2].count(0) * 10 >= half * 9 and sample[1 - at :: 2].count(0) == 0 for at in (0, 1)
    )


def _unquoted(lines: Iterable[str], dressing: list[str]) -> list[str]:
    quoted = commented = 0
    plain = []
    for line in lines:
        rest = line
        if (found := _QUOTED.match(rest)) is not None:
            quoted += 1
            rest = rest[found.end() :].rstrip().removesuffix(" |")
        if rest.strip() != "*" and (leader := _COMMENT.match(rest)) is not None:
            commented += 1
            rest = rest[leader.end() :]
        plain.append(rest)
    if quoted:
        dressing.append("quoted")
    if commented > 2:
        dressing.append("in comments")
    return plain


def _undoubled(lines: list[str], dressing: list[str]) -> Page:
    """Without the blank line behind each line, where nearly every line has one."""
    there = [at for at, line in enumerate(lines) if line.strip()]
    followed = sum(at + 1 < len(lines) and not lines[at + 1].strip() for at in there)
    is_doubled = (
        len(there) >= _LEAST_DOUBLED
        and followed >= _DOUBLED * len(there)
        and sum(len(lines[at]) > _WIDE for at in there) * 2 < len(there)
    )
    if not is_doubled:
        return Page(tuple(lines), tuple(range(1, len(lines) + 1)), tuple(dressing))
    kept = [at for at, line in enumerate(lines) if line.strip() or at == 0 or not lines[at - 1].strip()]
    return Page(
        tuple(lines[at] for at in kept), tuple(at + 1 for at in kept), (*dressing, "with every line end doubled")
    )


# What a shape finds on a pasted page, and the bytes with which a message can begin: what the shapes look for.


@dataclass(frozen=True, slots=True)
class Piece:
    """One run of bytes on a page. start, end: where it stands in the text. shape: in words, for a person.

    data: the bytes, from the descriptor or the first header on; where the descriptor was listed by its fields, *md* is
    that, and *data* what follows it. why: what is missing of it, where something is. queue: where the page names one.
    """

    start: int
    end: int
    shape: str
    data: bytes
    md: bytes | None = None
    why: str | None = None
    queue: str = ""


Shape = Callable[[Page], Iterator[Piece]]
"""Gives the pieces of one shape on a page, in their order; takes time in proportion to the page."""

_STRUC_IDS: Final = ("MD  ", "RFH ", "DLH ", "XQH ", "MDE ", "TSH ", "TSHM", "TSHC")
_PCF: Final = tuple(
    number.to_bytes(4, order) + (36).to_bytes(4, order) for order in ("big", "little") for number in (1, 2, 7, 16)
)
BEGINNINGS: Final[tuple[bytes, ...]] = (
    *(struc_id.encode("ascii") for struc_id in _STRUC_IDS),
    *(struc_id.encode(EBCDIC_FIELDS) for struc_id in _STRUC_IDS),
    *_PCF,
)
"""StrucIds in ASCII and EBCDIC, and Type and StrucLength of an MQCFH."""


def begins_like_a_message(data: bytes) -> bool:
    """Whether *data* begins with one of BEGINNINGS."""
    return data.startswith(BEGINNINGS)
