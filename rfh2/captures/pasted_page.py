"""A pasted page as plain lines: without what mail, Markdown, browsers and terminals put around and into them.

The shapes (``pasted``) read what is left. Each line keeps the number that it has in the file.
"""

from __future__ import annotations

import base64
import binascii
import html
import quopri
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from rfh2.captures.record import as_utf8
from rfh2.ccsid import EBCDIC_FIELDS, UTF8_CCSID
from rfh2.folders import Folder, repeated
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2

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


# What a page can hold without offsets: hex, arrays, string literals, base64, and the text of folders.
#
# Each shape is a pattern for the beginning of a message, and what it goes on with.

# Plain hex, however it is grouped: ``5246 4820``, ``52:46:48:20``, ``52-46-48-20``, ``\x52\x46``, ``X'5246'``.
#
# A run begins where the digits of a StrucId stand, whatever is before them in the line. It goes on over lines that
# hold nothing else than hex. Frames of a network, which have no StrucId at their beginning, are known by their
# EtherType.


_ANY_MARK: Final = r"(?:0[xX]|\\[xX]|%|\\u00)?"
_GAP: Final = r"[ \t,:;_\-]{0,3}+"


def _digits(data: bytes) -> str:
    return _GAP.join(
        _ANY_MARK + "".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in f"{byte:02x}") for byte in data
    )


_BEGINNING: Final = re.compile(
    rf"(?<![0-9A-Fa-f])(?:{'|'.join(map(_digits, BEGINNINGS))}|"
    rf"(?:[0-9A-Fa-f]{{2}}{_GAP}){{12}}08{_GAP}00{_GAP}45{_GAP}00)"
)
_GROUP: Final = re.compile(rf"[ \t,:;_\-]*+{_ANY_MARK}([0-9A-Fa-f]++)(?![G-Zg-z])")
_LINE_END: Final = re.compile(r"[ \t\r\"'+\\,:;&.)\]}|_-]*+(?:\n|\Z)")
_LINE_START: Final = re.compile(r"[ \t\"'+&.(\[{|]*+")
_LEFT_OUT: Final = re.compile(r"[\s,:\-]*+(?:\.{2,}|\[|<|\()(?:\.|snip|cut|trunc|more)?", re.IGNORECASE)
_WHOLE_LINE: Final = 128
"""A line of more digits is a message of its own, not a line of a longer one."""


def find_digits(page: Page) -> Iterator[Piece]:
    """Each run of hex that begins as a message does."""
    text = page.text
    at = 0
    while (found := _BEGINNING.search(text, at)) is not None:
        run = _Run(text, found.start())
        at = max(run.end, found.end())
        if len(run.digits) >= 16:
            yield Piece(found.start(), at, "hex text", bytes.fromhex(run.digits), why=run.why)


class _Run:
    """The digits from *start* on. end: where they end in the text; why: what is missing of them, if something is."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self.end = start
        self.why: str | None = None
        parts: list[str] = []
        first = self._line(start, parts)
        size = len(parts)
        while first is not None and (stop := _LINE_END.match(text, self.end)) is not None and stop.end() < len(text):
            begin = _LINE_START.match(text, stop.end())
            assert begin is not None
            if size and sum(map(len, parts[:size])) > _WHOLE_LINE and _BEGINNING.match(text, begin.end()):
                break
            kept, before = self.end, len(parts)
            if self._line(begin.end(), parts) is None or not self._is_whole_line():
                self.end = kept
                del parts[before:]
                break
        left_out = _LEFT_OUT.match(text, self.end)
        if left_out is not None and (".." in left_out[0] or left_out[0][-1:].isalpha()):
            self.why = "its author left out the rest"
        self.digits = "".join(parts)
        if len(self.digits) % 2:
            self.digits = self.digits[:-1]
            self.why = self.why or "the last byte has one hex digit: some were lost"

    def _is_whole_line(self) -> bool:
        return _LINE_END.match(self._text, self.end) is not None or _LEFT_OUT.match(self._text, self.end) is not None

    def _line(self, at: int, parts: list[str]) -> int | None:
        """The groups of one line, added to *parts*; None where there are none."""
        count = 0
        while (group := _GROUP.match(self._text, at)) is not None:
            parts.append(group[1])
            at = self.end = group.end()
            count += 1
            if len(group[1]) % 2:
                break
        return count or None


# Arrays of numbers, as programs and debuggers print bytes: C, Java, C#, Go, JavaScript, JSON, PowerShell.
#
# ``{0x52, 0x46, 0x48, 0x20}``, ``[82, 70, 72, 32]``, ``(byte) -39``, ``'R', 'F'``, one number a line. An array begins
# with the four bytes of a StrucId, in any of these forms.

_C_COMMENT: Final = r"(?:/\*[^*\n]{0,80}+\*/|//[^\n]{0,120}+(?=\n))"
_CAST: Final = r"(?:\((?:byte|sbyte|char|uint8_t|unsigned char)\)[ ]?)?"
_COMMENTS: Final = repeated(rf"{_C_COMMENT}[ \t]*+")
_BLANK: Final = rf"[ \t]*+{_COMMENTS}"
# Two line ends in a row end an array.
_BETWEEN: Final = rf"(?:{_BLANK}[,;]{_BLANK}\n?{_BLANK}|{_BLANK}\n{_BLANK}|[ \t]++){_CAST}"
_NUMBER: Final = re.compile(
    r"(?:0[xX](?P<hex>[0-9A-Fa-f]{1,2})|(?P<decimal>-?[0-9]{1,3})|"
    r"'(?:\\x(?P<escaped>[0-9A-Fa-f]{1,2})|\\(?P<octal>[0-7]{1,3})|\\(?P<special>[^x0-7\n])|(?P<plain>[^'\\\n]))')"
    r"(?:u8|[uUlL]{1,2})?(?![\w.])"
)
_NEXT: Final = re.compile(_BETWEEN)
_ARRAY_LEFT_OUT: Final = re.compile(r"[\s,]*+(?:\.{2,}|/\* ?\.{2,}|<Buffer|more)")
_SPECIAL: Final = {"n": 10, "r": 13, "t": 9, "\\": 92, "'": 39, '"': 34, "a": 7, "b": 8, "f": 12, "v": 11}


def _forms(byte: int) -> str:
    forms = [rf"0[xX]0?{byte:x}(?![0-9A-Fa-f])", rf"0[xX]{byte:02X}", rf"{byte}(?![0-9.])"]
    if byte > 0x7F:
        forms.append(rf"-{256 - byte}(?![0-9.])")
    if 0x20 <= byte < 0x7F and chr(byte) not in "'\\":
        forms.append(f"'{re.escape(chr(byte))}'")
    return f"(?:{'|'.join(forms)})(?:u8|[uUlL])?"


_ARRAY_BEGINNING: Final = re.compile(
    rf"(?<![\w.'-]){_CAST}(?:{'|'.join(_BETWEEN.join(map(_forms, beginning)) for beginning in BEGINNINGS)})"
)


def find_arrays(page: Page) -> Iterator[Piece]:
    """Each array that begins as a message does."""
    text = page.text
    at = 0
    while (found := _ARRAY_BEGINNING.search(text, at)) is not None:
        data, at, why = _array(text, found.start())
        if len(data) >= 8:
            yield Piece(found.start(), at, "an array of bytes", data, why=why)
        at = max(at, found.end())


def _array(text: str, at: int) -> tuple[bytes, int, str | None]:
    cast = re.compile(_CAST).match(text, at)
    assert cast is not None
    at = end = cast.end()
    data = bytearray()
    while (number := _NUMBER.match(text, at)) is not None:
        value = _value(number)
        if not -128 <= value <= 255:
            break
        data.append(value & 0xFF)
        end = number.end()
        between = _NEXT.match(text, end)
        if between is None:
            break
        at = between.end()
    return bytes(data), end, "its author left out the rest" if _ARRAY_LEFT_OUT.match(text, end) else None


def _value(number: re.Match[str]) -> int:
    if number["decimal"]:
        return int(number["decimal"])
    if digits := number["hex"] or number["escaped"]:
        return int(digits, 16)
    if number["octal"]:
        return int(number["octal"], 8)
    return _SPECIAL.get(number["special"], 256) if number["special"] else ord(number["plain"])


# String literals with escapes: of Python (``b'RFH \x02...'``), C, Go, Ruby, JavaScript and JSON.
#
# Literals that stand one behind another are one, as in Python and C, and so are those joined by ``+``.

# Only literals that can begin with a StrucId, in letters or escaped.
_LITERAL_BEGINNING: Final = re.compile(
    r"(?<![\\\w])(?:[bB]|u8)?(?P<quote>[\"'])(?=(?:MD  |RFH |DLH |XQH |MDE |TSH[ MC]|\\(?:x|u00)?[0-9A-Fa-f]{2}))"
)


def _inside(quote: str) -> re.Pattern[str]:
    plain = rf"[^{quote}\\\n]"
    escaped = repeated(rf"\\[^\n]{plain}*+")
    return re.compile(rf"{plain}*+{escaped}(?P<end>{quote})?")


_INSIDE: Final = {quote: _inside(quote) for quote in ("'", '"')}
_JOINED: Final = re.compile(r"\s{0,200}+(?:[+.&\\]\s{0,200}+)?(?:[bB]|u8)?(?P<quote>[\"'])")
_ESCAPE: Final = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u00([0-9A-Fa-f]{2})|([0-7]{1,3})|(.))")
_LITERAL_SPECIAL: Final = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b"}
_UNFINISHED: Final = "the literal has no closing quote"


def find_literals(page: Page) -> Iterator[Piece]:
    """Each literal that begins as a message does."""
    text = page.text
    at = 0
    while (found := _LITERAL_BEGINNING.search(text, at)) is not None:
        parts, end, why = _literal(text, found)
        data = _unescaped("".join(parts))
        if data is not None and begins_like_a_message(data):
            if data.endswith(b"...") and len(data) > 8:
                data, why = data[:-3], why or "its author left out the rest"
            yield Piece(found.start(), end, "a string literal", data, why=why)
        at = max(end, found.end())


def _literal(text: str, found: re.Match[str]) -> tuple[list[str], int, str | None]:
    """The contents of a literal and of those joined to it, where they end, and what is missing."""
    parts: list[str] = []
    opened: re.Match[str] | None = found
    end = found.end()
    while opened is not None:
        inside = _INSIDE[opened["quote"]].match(text, opened.end())
        assert inside is not None
        parts.append(inside[0][: -1 if inside["end"] else None])
        end = inside.end()
        if not inside["end"]:
            return parts, end, _UNFINISHED
        opened = _JOINED.match(text, end)
    return parts, end, None


def _unescaped(text: str) -> bytes | None:
    if "\\" in text:
        text = _ESCAPE.sub(_character, text)
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _character(found: re.Match[str]) -> str:
    if digits := found[1] or found[2]:
        return chr(int(digits, 16))
    if found[3]:
        return chr(int(found[3], 8) & 0xFF)
    return _LITERAL_SPECIAL.get(found[4], found[4])


# Base64, in one line or folded as mail and PEM fold it, of a message or of its hex text.

_HEX_BEGINNINGS: Final = tuple(
    dict.fromkeys(text.encode() for data in BEGINNINGS for text in (data.hex(), data.hex().upper()))
)


def _encoded(data: bytes) -> str:
    """The characters that base64 of anything that begins with *data* begins with."""
    return re.escape(base64.b64encode(data)[: len(data) * 8 // 6].decode())


_BASE64_BEGINNING: Final = re.compile(
    rf"(?<![A-Za-z0-9+/_-])(?:{'|'.join(dict.fromkeys(map(_encoded, (*BEGINNINGS, *_HEX_BEGINNINGS))))})"
)
_DIGIT: Final = "[A-Za-z0-9+/_-]"
_ESCAPED: Final = repeated(rf"\\/{_DIGIT}*+")
_RUN: Final = re.compile(rf"(?:{_DIGIT}|\\/){_DIGIT}*+{_ESCAPED}={{0,2}}+")
_MARKS: Final = r"[\"'+,]*+"
_INDENT: Final = r"[ \t\"']"
_LINE_ENDS: Final = repeated(rf"\\[rn]{_MARKS}")
_PLUSES: Final = repeated(rf"\+{_INDENT}++")
_FOLD: Final = re.compile(rf"{_MARKS}{_LINE_ENDS}[ \t]*+\n{_INDENT}*+{_PLUSES}(?={_DIGIT})")
_NARROWEST: Final = 20


def find_base64(page: Page) -> Iterator[Piece]:
    """Each run of base64 whose bytes, or the hex digits in it, begin as a message does."""
    text = page.text
    at = 0
    while (found := _BASE64_BEGINNING.search(text, at)) is not None:
        digits, at = _run(text, found.start())
        whole = len(digits) // 4 * 4
        try:
            data = binascii.a2b_base64(digits[:whole])
            rest = binascii.a2b_base64(digits[whole:] + "=" * (4 - len(digits) % 4)) if len(digits) % 4 > 1 else b""
        except binascii.Error:
            continue
        data += rest
        shape, why = "base64", "the last characters of the base64 are missing" if len(digits) % 4 == 1 else None
        with suppress(ValueError):
            data, shape = bytes.fromhex(data.decode("ascii")), "base64 of hex text"
        if begins_like_a_message(data):
            why = why or ("its author left out the rest" if text.startswith("...", at) else None)
            yield Piece(found.start(), at, shape, data, why=why)


def _run(text: str, start: int) -> tuple[str, int]:
    """The digits from *start* on, without line ends, and where they end. All lines but the last are equally long."""
    parts: list[str] = []
    at, width = start, 0
    while (run := _RUN.match(text, at)) is not None:
        parts.append(run[0])
        at = run.end()
        width = width or len(run[0])
        fold = _FOLD.match(text, at)
        if fold is None or len(run[0]) != width or width < _NARROWEST or run[0].endswith("="):
            break
        following = _RUN.match(text, fold.end())
        if following is None or len(following[0]) > width or _goes_on(text, following.end()):
            break
        at = fold.end()
    digits = "".join(parts).replace("\\/", "/").replace("-", "+").replace("_", "/").rstrip("=")
    return digits, at


def _goes_on(text: str, at: int) -> bool:
    """Whether something else than base64 stands in the rest of the line."""
    return re.compile(r"[\"'\\,;)]{0,4}\s*?(?:\n|\Z)|\.\.\.|\\n").match(text, at) is None


# The text of folders, or the string of an MQRFH, without the header around it: people copy what they can read.
#
# A header is made around it, so that ``decode`` can show what it says. It is given as incomplete: the message that it
# was copied from had a header, a descriptor and data that nobody knows.

_OPENING: Final = re.compile(r"<(psc|pscr|mcd|jms|usr|mqps)>")
_DECISIVE: Final = frozenset({"psc", "pscr"})
_TEXT_BETWEEN: Final = re.compile(r"\s{0,200}+")
_STRING: Final = re.compile(r"(?<!\w)MQPSCommand {1,4}+[^\n]{1,4000}")
_BETWEEN_TAGS: Final = re.compile(r">\s++<")
_MOST_FOLDERS: Final = 20


def find_folders(page: Page) -> Iterator[Piece]:
    """Each run of folders with a psc or pscr among them."""
    text = page.text
    endless: set[str] = set()
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        folders: list[tuple[str, str]] = []
        end = start = opening.start()
        following: re.Match[str] | None = opening
        while following is not None and len(folders) < _MOST_FOLDERS and following[1] not in endless:
            closing = f"</{following[1]}>"
            found = text.find(closing, following.end())
            if found < 0:
                endless.add(following[1])
                break
            end = found + len(closing)
            folders.append((following[1], text[following.start() : end]))
            blank = _TEXT_BETWEEN.match(text, end)
            following = _OPENING.match(text, blank.end() if blank is not None else end)
        at = max(end, opening.end())
        if not _DECISIVE.isdisjoint(name for name, _ in folders):
            # Line ends and indentation between tags are the page's; programs write none.
            plain = (Folder.of(_clean(_BETWEEN_TAGS.sub("><", folder))) for _, folder in folders)
            header = Rfh2(tuple(plain), coded_char_set_id=UTF8_CCSID)
            why = "the text of folders alone is here; an MQRFH2 was made around it"
            yield Piece(start, end, "the text of folders", header.encode(), why=why)


def find_strings(page: Page) -> Iterator[Piece]:
    """Each string of an MQRFH, up to the end of its line."""
    for found in _STRING.finditer(page.text):
        string = _clean(found[0]).rstrip(" \t\r\"',;)")
        data = string.encode() + bytes(4 - len(string.encode()) % 4)
        why = "the string of an MQRFH alone is here; an MQRFH was made around it"
        header = Rfh1(data, coded_char_set_id=UTF8_CCSID)
        yield Piece(found.start(), found.end(), "the string of an MQRFH", header.encode(), why=why)


def _clean(text: str) -> str:
    """*text* without half surrogate pairs, which no code page has."""
    return text.encode("utf-8", "replace").decode("utf-8")
