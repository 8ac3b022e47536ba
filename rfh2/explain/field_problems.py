"""The problems of the fields of descriptors and headers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rfh2.ccsid import ByteOrder, byte_order, is_ebcdic, text_codec
from rfh2.chain import Header
from rfh2.constants import MQAT_BROKER, MQCCSI_DEFAULT, MQCCSI_INHERIT, MQFMT_STRING
from rfh2.explain.codes import Part, problem
from rfh2.explain.fields import descriptor_layout, layout_of, offsets_of, texts_of
from rfh2.explain.form import Problem
from rfh2.explain.meanings import FORMATS, MSG_TYPES, REPORT_OPTIONS, SYSTEM_MSG_TYPES, bits
from rfh2.explain.reading import Located, PartialMessage
from rfh2.layouts import Layout
from rfh2.mqmd import Mqmd, name_of
from rfh2.xqh import Xqh

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
        why = f"{len(md) - partial.mqmd_length} bytes stand behind the {partial.mqmd_length} of the MQMD"
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
    _, rest = bits(mqmd.report & 0xFFFFFFFF, REPORT_OPTIONS)
    if rest:
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
    if "StrucLength" in at and header.length % 4:
        why = f"{header.kind} StrucLength {header.length} is not a multiple of four"
        yield problem("length-not-multiple-of-4", offset + at["StrucLength"], why)
    flags = getattr(header, "flags", 0)
    if "Flags" in at and flags & _RESERVED_FLAGS:
        yield problem("reserved-flags", offset + at["Flags"], f"Flags 0x{flags & 0xFFFFFFFF:08X} has reserved bits")
    if isinstance(header, Xqh):
        yield from _mqmd(header.mqmd, data[layout.size :], offset + layout.size, "body")
        return
    if offset + header.length == len(partial.captured.body):
        return  # what describes nothing can be anything
    if "Encoding" in at:
        yield from _description(header, layout, offset, "body")
        yield from _chained_ccsid(header.coded_char_set_id, offset + at["CodedCharSetId"], partial)


def _nulls(layout: Layout, data: bytes, base: int, charset: str, part: Part) -> Iterator[Problem]:
    """Nulls in character fields: names end at the first one, whatever stands behind it."""
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
            why = f"{layout.name} {name} ends at a null, {text[:null]!r}, with other bytes behind it"
            yield problem("bytes-behind-null", base + start + null, why, part)


def _description(speaker: Mqmd | Header, layout: Layout, base: int, part: Part) -> Iterator[Problem]:
    """The problems of the fields of a descriptor or a header, at *base*, that describe the bytes behind it."""
    encoding, ccsid, fmt = speaker.encoding, speaker.coded_char_set_id, name_of(speaker.format)
    at = offsets_of(layout)
    if fmt and byte_order(encoding) is None:
        why = f"Encoding {encoding} does not define the byte order of integers"
        yield problem("unknown-encoding", base + at["Encoding"], why, part)
    if ccsid > 0 and text_codec(ccsid, encoding) is None:
        severe = " although the Format says that it is text" if fmt == MQFMT_STRING else ""
        why = f"CCSID {ccsid} is not known here{severe}"
        yield problem("unknown-ccsid", base + at["CodedCharSetId"], why, part)
    if fmt.startswith("MQ") and fmt not in FORMATS and fmt != "MQRFH2":
        why = f"Format {fmt!r} begins like IBM's formats, but is not one of them"
        yield problem("unknown-format", base + at["Format"], why, part)


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
    said = byte_order(speaker.encoding)
    if order is not None and said is not None and order != said:
        why = f"the Encoding {speaker.encoding} of the {name} says {said}-endian, the {header.kind} is {order}-endian"
        yield problem("encoding-contradicts", at + 4, why)
    charset: str | None = getattr(header, "charset", None)
    ccsid = speaker.coded_char_set_id
    if charset is not None and ccsid > 0 and text_codec(ccsid, 0) is not None:
        found = " ".encode(charset) == b"\x40"
        if is_ebcdic(ccsid) is not found:
            why = (
                f"the CCSID {ccsid} of the {name} is {_FAMILY[is_ebcdic(ccsid)]}, the {header.kind} is {_FAMILY[found]}"
            )
            yield problem("ccsid-contradicts", at, why)
