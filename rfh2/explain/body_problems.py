"""The problems of the body of a message: whether it agrees with its last header."""

from __future__ import annotations

from collections.abc import Iterator

from rfh2.ccsid import byte_order, text_codec
from rfh2.chain import DECODERS, sniffed
from rfh2.constants import MQCCSI_DEFAULT, MQCCSI_INHERIT, MQFMT_STRING
from rfh2.errors import DecodeError
from rfh2.explain.codes import problem
from rfh2.explain.form import Problem
from rfh2.explain.misidentified_input import look_alike, lost_header
from rfh2.explain.reading import PartialMessage
from rfh2.pcf import FORMATS as PCF_FORMATS, decode_pcf

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
