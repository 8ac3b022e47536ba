"""The problems of a message on the wire: all that can be found without knowing what a command means."""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Final

from rfh2.ccsid import EBCDIC_FIELDS, ByteOrder, byte_order, is_ebcdic, text_codec
from rfh2.constants import MQAT_BROKER, MQCCSI_DEFAULT, MQCCSI_INHERIT, MQFMT_STRING
from rfh2.errors import CaptureError, DecodeError
from rfh2.explain.fields import descriptor_layout, layout_of, offsets_of, spans_of, texts_of
from rfh2.explain.form import CODES, Part, Problem, problem
from rfh2.explain.meanings import FORMATS, MSG_TYPES, REPORT_OPTIONS, SYSTEM_MSG_TYPES, bits
from rfh2.explain.reading import Located, PartialMessage, Salvaged, salvage
from rfh2.folders import Folder, parse, tag_of
from rfh2.layouts import Layout
from rfh2.message import DECODERS, Header, sniffed
from rfh2.mqmd import Mqmd, Xqh, name_of
from rfh2.pcf import FORMATS as PCF_FORMATS, decode_pcf
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2

# Recognizes bytes that are not an MQ message: for a user who saved a message in another form, or a part of it.
#
# Only the beginning is examined, so that the cost does not depend on the length. Each form has one test. The first
# match is reported, with what to do.

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
_UTF16_MARKS: Final = re.compile(rb"(?:\xff\xfe|\xfe\xff)?(?:[\x20-\x7e\r\n]\0|\0[\x20-\x7e\r\n]){8,}")

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
    _pattern(_UTF16_MARKS, "text in UTF-16: iconv -f UTF-16 -t UTF-8 FILE | qpubsub decode"),
)


# The problems of the body of a message: whether it agrees with its last header.

_MARKS = {b"\xfe\xff": "big", b"\xff\xfe": "little"}
_UTF16 = ("utf-16-be", "utf-16-le")


def body_problems(partial: PartialMessage) -> Iterator[Problem]:
    """The problems of the body of a message whose headers were all decoded."""
    message, at = partial.message, partial.rest_offset
    if not message.body:
        return
    if not partial.headers:
        yield from _nothing_known(partial)
    if message.body_format == MQFMT_STRING:
        yield from _text(partial)
    elif message.body_format in PCF_FORMATS:
        try:
            decode_pcf(message.body, message.body_ccsid, at)
        except DecodeError as error:
            yield problem("bad-pcf", error.offset, f"{error.header}: {error.why}", reason=error.reason)
    elif message.body_format not in DECODERS and (found := sniffed(message.body)) is not None:
        why = f"the data begins like the header that Format {found[0]} announces, but Format is {message.body_format!r}"
        yield problem("unannounced-header", at, why)


def _nothing_known(partial: PartialMessage) -> Iterator[Problem]:
    """A message without a header: without a descriptor too, it may be no message; with one, its header may be lost."""
    if partial.captured.md is None and partial.message.body_format in PCF_FORMATS:
        why = f"no MQMD is here; the data begins like PCF, and is read as of Format {partial.message.body_format}"
        yield problem("assumed-pcf", 0, why)
    elif partial.captured.md is None:
        looks = look_alike(partial.rest)
        hint = f"; it looks like {looks}" if looks else ""
        yield problem("unrecognised-data", 0, f"no MQMD and no known header is here; the bytes are read as data{hint}")
    elif (looks := lost_header(partial.rest)) is not None and partial.message.body_format in ("", MQFMT_STRING):
        yield problem("lost-header", 0, f"the data looks like {looks}")


def _text(partial: PartialMessage) -> Iterator[Problem]:
    message, at = partial.message, partial.rest_offset
    ccsid = message.body_ccsid
    unnamed = ccsid in (MQCCSI_DEFAULT, MQCCSI_INHERIT)
    codec = "ascii" if unnamed else text_codec(ccsid, message.body_encoding)
    if codec is None:
        return  # an unknown CCSID is reported where it is named
    mark = _MARKS.get(message.body[:2])
    if codec in _UTF16 and mark is not None and mark != byte_order(message.body_encoding):
        why = f"a byte order mark says {mark}-endian, Encoding {message.body_encoding} says the other byte order"
        yield problem("byte-order-mark-contradicts", at, why)
    try:
        message.body.decode(codec)
    except UnicodeDecodeError as error:
        if unnamed:
            why = f"not US-ASCII, and no header names a CCSID: {error.reason}"
        else:
            why = f"the data is not in CCSID {ccsid} ({codec}): {error.reason}"
        yield problem("undecodable-text", at + error.start, why)


# What is wrong with folders, and with the string of an MQRFH, as text.

# Folders that decide what happens to the message: broken ones are errors, others are passed on as they are.
_DECISIVE: Final = ("psc", "pscr", "")
# Those of which an MQRFH2 may have one (wire formats 3.2).
_ONCE: Final = ("pscr", "mcd", "jms", "usr", "mqps", "mqpse")
_KNOWN: Final = frozenset({"psc", "pscr", "mcd", "jms", "usr", "mqps", "mqpse", "mq_usr", "mqext"})
_HELD: Final = re.compile(r"<(psc|pscr)[\s/>]")
_BARE_AMPERSAND: Final = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9A-Fa-f]+);)")


def folder_problems(header: Rfh2) -> Iterator[Problem]:
    """What is wrong with the folders of a header."""
    first: dict[str, int] = {}
    for n, folder in enumerate(header.folders):
        name = folder.name
        if not _is_plain(folder):
            yield from _folder(folder)
        if first.setdefault(name, n) != n and name in _ONCE:
            yield problem("repeated-folder", folder.offset, f"a second folder {name}; one is allowed")
        if name not in _KNOWN:
            yield from _name(folder)
    if first.get("psc", len(header.folders)) < first.get("pscr", -1):
        at = header.folders[first["pscr"]].offset
        yield problem("pscr-in-command", at, "a pscr folder in a command is ignored")


def string_problems(header: Rfh1) -> Iterator[Problem]:
    """What is wrong with the NameValueString of an MQRFH."""
    try:
        header.pairs()
    except DecodeError as error:
        yield problem(_known(error.code), error.offset, f"{error.header}: {error.why}", reason=error.reason)


def _is_plain(folder: Folder) -> bool:
    """Whether a quick look shows that nothing is wrong with the text, as nearly always."""
    data = folder.data
    if folder.charset != "utf-8" or len(data) % 4 or b"\0" in data:
        return False
    try:
        return folder.is_flat()
    except DecodeError:
        return False


def _folder(folder: Folder) -> Iterator[Problem]:
    if len(folder.data) % 4:
        why = f"NameValueLength {len(folder.data)} is not a multiple of four"
        yield problem("length-not-multiple-of-4", folder.offset - 4, why)
    text = folder.data.decode(folder.charset, "replace")
    content = text.rstrip(" \0")
    if "\0" in text[len(content) :]:
        at = folder.offset + len(content.encode(folder.charset))
        yield problem("null-padding", at, f"folder {folder.name} is padded with nulls, not with blanks")
    if not content:
        yield problem("empty-folder", folder.offset - 4, "a NameValueData without a folder")
        return
    try:
        if folder.is_flat():
            return  # one root, no references: nothing of what follows
        roots = parse(folder)
    except DecodeError as error:
        yield _broken(folder, error)
        return
    if len(roots) > 1:
        names = ", ".join(tag_of(root).rpartition(":")[2] for root in roots)
        yield problem("several-roots", folder.offset, f"one NameValueData holds several folders: {names}")
    if ampersand := _BARE_AMPERSAND.search(text):
        at = folder.offset + len(text[: ampersand.start()].encode(folder.charset))
        yield problem("bare-ampersand", at, "an & is not written as &amp;; it is read as an ampersand")


def _name(folder: Folder) -> Iterator[Problem]:
    """A name that is IBM's but for case or a prefix: a queue manager passes such a folder on, and does not read it."""
    plain = folder.name.rpartition(":")[2]
    known = plain.lower()
    if known in _KNOWN:
        why = f"folder '{folder.name}' is not read: the name that counts is '{known}', letter by letter"
        yield problem("folder-name", folder.offset, why)


def _broken(folder: Folder, error: DecodeError) -> Problem:
    why = f"{error.header}: {error.why}"
    held = _HELD.search(folder.data.decode(folder.charset, "replace")) if folder.name[:1] in ("?", "!", "") else None
    if held is not None:
        what = "an XML declaration" if folder.name.startswith("?xml") else "a declaration, comment or instruction"
        said = f"{what} stands before <{held[1]}>; XML allows it, but a queue manager finds no {held[1]} folder then"
        return problem("xml-not-allowed", error.offset, said)
    if error.why == "text outside any element" and error.offset > folder.offset and folder.name in _DECISIVE:
        return problem("text-after-folder", error.offset, why, reason=error.reason)
    if folder.name in _DECISIVE:
        return problem(_known(error.code), error.offset, why, reason=error.reason)
    return problem("opaque-folder", error.offset, f"{why}; the folder is passed on as it is")


def _known(code: str) -> str:
    return code if code in CODES else "bad-folder"


# The problems of the fields of descriptors and headers.

_RESERVED_FLAGS: Final = 0xFFFF0000
_PRIORITIES: Final = range(-3, 10)
_PERSISTENCES: Final = range(-1, 3)
_FAMILY: Final = {True: "EBCDIC", False: "ASCII"}


def descriptor_problems(partial: PartialMessage) -> Iterator[Problem]:
    """The problems of the fields of the MQMD; none where there is no MQMD."""
    mqmd, md = partial.mqmd, partial.captured.md
    if mqmd is None or md is None:
        return
    if len(md) > partial.mqmd_length:
        why = f"{len(md) - partial.mqmd_length} bytes follow the {partial.mqmd_length} of the MQMD"
        yield problem("bytes-behind-mqmd", partial.mqmd_length, why, "mqmd")
    yield from _mqmd(mqmd, md, 0, "mqmd")


def _mqmd(mqmd: Mqmd, data: bytes, base: int, part: Part) -> Iterator[Problem]:
    layout = descriptor_layout(mqmd.version)
    yield from _nulls(layout, data, base, mqmd.charset, part)
    yield from _description(mqmd, layout, base, part)
    at = offsets_of(layout)
    if mqmd.msg_type not in MSG_TYPES and (mqmd.msg_type < 1 or mqmd.msg_type in SYSTEM_MSG_TYPES):
        why = f"MsgType {mqmd.msg_type} is not a value that IBM defines"
        yield problem("unknown-msg-type", base + at["MsgType"], why, part)
    if mqmd.report and (rest := bits(mqmd.report & 0xFFFFFFFF, REPORT_OPTIONS)[1]):
        yield problem("unknown-report-option", base + at["Report"], f"Report has unknown bits 0x{rest:08X}", part)
    if mqmd.persistence not in _PERSISTENCES:
        yield problem("unknown-persistence", base + at["Persistence"], f"Persistence is {mqmd.persistence}", part)
    if mqmd.priority not in _PRIORITIES:
        yield problem("unknown-priority", base + at["Priority"], f"Priority is {mqmd.priority}", part)
    if mqmd.expiry == 0 or mqmd.expiry < -1:
        yield problem("bad-expiry", base + at["Expiry"], f"Expiry is {mqmd.expiry}, neither -1 nor a time", part)


def header_problems(located: Located, partial: PartialMessage) -> Iterator[Problem]:
    """The problems of the fixed part of a header, and the contradictions between it and the structure before it."""
    header, offset = located.header, located.offset
    yield from _contradictions(located, partial)
    layout = layout_of(header.kind)
    order: ByteOrder | None = getattr(header, "order", None)
    charset: str | None = getattr(header, "charset", None)
    if layout is None or order is None or charset is None:
        return
    data = partial.captured.body[offset : offset + header.length]
    at = offsets_of(layout)
    yield from _nulls(layout, data, offset, charset, "body")
    if "StrucLength" in at and len(data) % 4:
        why = f"{header.kind} StrucLength {header.length} is not a multiple of four"
        yield problem("length-not-multiple-of-4", offset + at["StrucLength"], why)
    flags = getattr(header, "flags", 0)
    if "Flags" in at and flags & _RESERVED_FLAGS:
        yield problem("reserved-flags", offset + at["Flags"], f"Flags 0x{flags & 0xFFFFFFFF:08X} has reserved bits")
    if isinstance(header, Xqh):
        yield from _mqmd(header.mqmd, data[layout.size :], offset + layout.size, "body")
        return
    if offset + len(data) == len(partial.captured.body):
        return  # what describes nothing can be anything
    if "Encoding" in at:
        yield from _description(header, layout, offset, "body")
        yield from _chained_ccsid(header.coded_char_set_id, offset + at["CodedCharSetId"], partial)


@cache
def _without_nulls(layout: Layout) -> re.Pattern[bytes]:
    """What matches a fixed part without nulls in its character fields, as nearly all are."""
    fields = [
        (rb"[^\0]" if is_text and name != "StrucId" else rb".", size) for name, _, size, is_text in spans_of(layout)
    ]
    return re.compile(b"".join([b"%b{%d}" % field for field in fields]), re.DOTALL)


def _nulls(layout: Layout, data: bytes, base: int, charset: str, part: Part) -> Iterator[Problem]:
    """Nulls in character fields: names end at the first one, whatever stands behind it."""
    if _without_nulls(layout).match(data) is not None:
        return
    for name, start, size, _ in texts_of(layout):
        field = data[start : start + size]
        if b"\0" not in field or name == "StrucId":
            continue
        text = field.decode(charset)
        null = text.find("\0")
        if null < 0:
            continue
        if name == "Format" and text.strip(" \0"):
            why = f"{layout.name} Format {text[:null]!r} is padded with nulls, not with blanks"
            yield problem("null-in-format", base + start + null, why, part)
        if text[null:].strip(" \0") and name not in ("ApplIdentityData", "ApplOriginData"):
            why = f"{layout.name} {name} ends at a null, {text[:null]!r}, with other bytes after it"
            yield problem("bytes-behind-null", base + start + null, why, part)


def _description(speaker: Mqmd | Header, layout: Layout, base: int, part: Part) -> Iterator[Problem]:
    """The problems of the fields of a descriptor or a header, at *base*, that describe the bytes behind it."""
    for code, field, why in _misdescribed(speaker.encoding, speaker.coded_char_set_id, name_of(speaker.format)):
        yield problem(code, base + offsets_of(layout)[field], why, part)


# A program says the same of each of its messages.
@lru_cache(maxsize=256)
def _misdescribed(encoding: int, ccsid: int, fmt: str) -> tuple[tuple[str, str, str], ...]:
    """What is wrong with such a description: the code, the field, and why."""
    found = []
    if fmt and byte_order(encoding) is None:
        why = f"Encoding {encoding} does not define the byte order of integers"
        found.append(("unknown-encoding", "Encoding", why))
    if ccsid > 0 and text_codec(ccsid, encoding) is None:
        severe = " although the Format says that it is text" if fmt == MQFMT_STRING else ""
        found.append(("unknown-ccsid", "CodedCharSetId", f"CCSID {ccsid} is not known here{severe}"))
    if fmt.startswith("MQ") and fmt not in FORMATS and fmt != "MQRFH2":
        why = f"Format {fmt!r} begins like IBM's formats, but is not one of them"
        found.append(("unknown-format", "Format", why))
    return tuple(found)


def _chained_ccsid(ccsid: int, at: int, partial: PartialMessage) -> Iterator[Problem]:
    if ccsid == MQCCSI_DEFAULT:
        why = "CodedCharSetId is 0; it is read as the CCSID of the structure before this header"
        yield problem("default-ccsid", at, why)
    elif ccsid == MQCCSI_INHERIT and partial.assumed.put_appl_type == MQAT_BROKER:
        why = "CodedCharSetId is -2 (inherit), which a message that publish/subscribe put must not have"
        yield problem("inherited-ccsid-from-broker", at, why)


def _contradictions(located: Located, partial: PartialMessage) -> Iterator[Problem]:
    """The contradictions between the fields of the preceding header and the bytes of this one."""
    header, at = located.header, located.offset
    speaker: Mqmd | Header
    if at > 0:
        speaker = next(other.header for other in reversed(partial.headers) if other.offset < at)
        name = speaker.kind
    elif partial.mqmd is not None:
        speaker, name = partial.mqmd, "MQMD"
    else:
        return
    order: ByteOrder | None = getattr(header, "order", None)
    encoding, ccsid = speaker.encoding, speaker.coded_char_set_id
    said, family, found = _claims(encoding, ccsid, getattr(header, "charset", None))
    if order is not None and said is not None and order != said:
        why = f"the Encoding {encoding} of the {name} says {said}-endian, the {header.kind} is {order}-endian"
        yield problem("encoding-contradicts", at + 4, why)
    if family is not found:
        why = f"the CCSID {ccsid} of the {name} is {_FAMILY[family]}, the {header.kind} is {_FAMILY[found]}"
        yield problem("ccsid-contradicts", at, why)


@lru_cache(maxsize=256)
def _claims(encoding: int, ccsid: int, charset: str | None) -> tuple[ByteOrder | None, bool, bool]:
    """The byte order of an Encoding; whether a CCSID, and *charset*, are EBCDIC: alike where one says nothing."""
    if charset is None or ccsid <= 0 or text_codec(ccsid, 0) is None:
        return byte_order(encoding), False, False
    return byte_order(encoding), is_ebcdic(ccsid), " ".encode(charset) == b"\x40"


def wire_problems(partial: PartialMessage) -> list[Problem]:
    """Everything wrong with the bytes of a message: descriptor, headers in their order, body."""
    return list(_problems(partial))


def of_error(error: DecodeError) -> Problem:
    """The problem for a decoding error."""
    code = error.code if error.code in CODES else "malformed-header"
    part: Part = "mqmd" if error.header == "MQMD" else "body"
    return problem(code, error.offset, f"{error.header}: {error.why}", part, error.reason)


def of_record(position: int, error: CaptureError) -> Problem:
    """The problem for a record of a capture that cannot become a message; position: where the record begins."""
    return problem("unreadable-record", position, str(error))


def _problems(partial: PartialMessage) -> Iterator[Problem]:
    if partial.mqmd_fault is not None:
        yield of_error(partial.mqmd_fault)
    else:
        yield from descriptor_problems(partial)
    for located in partial.headers:
        yield from header_problems(located, partial)
        if isinstance(located.header, Rfh2):
            yield from folder_problems(located.header)
        elif isinstance(located.header, Rfh1):
            yield from string_problems(located.header)
    if partial.fault is not None:
        # Offsets of an MQMD that is embedded in a header count with the rest.
        found = of_error(partial.fault)
        yield found.model_copy(update={"part": "body"})
        yield from _behind_the_fault(partial)
    else:
        yield from body_problems(partial)


def _behind_the_fault(partial: PartialMessage) -> Iterator[Problem]:
    """The problems of what can be read all the same."""
    first = True
    for part in salvage(partial).parts:
        if isinstance(part, Salvaged):
            if not first:
                yield of_error(part.fault).model_copy(update={"part": "body"})
            first = False
            if part.rfh2 is not None:
                yield from folder_problems(part.rfh2)
        elif isinstance(part.header, Rfh2):
            yield from folder_problems(part.header)
        elif isinstance(part.header, Rfh1):
            yield from string_problems(part.header)
