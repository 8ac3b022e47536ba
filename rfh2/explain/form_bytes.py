"""The JSON form of a message as bytes: the line that ``form.json_line`` makes of what ``describe.described`` gives.

Most of a descriptor and of a header's fixed part is the same in the next message of a program. Their text is kept, and
only what differs is written anew: identifiers, user, time and folders. ``tests/commands/explain/test_decode_caches.py``
compares the two forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from pydantic_core import to_json

from rfh2.bounded_cache import BoundedCache
from rfh2.captured import CapturedMessage, iso
from rfh2.explain.describe import body_form, folder_form, header_form
from rfh2.explain.fields import descriptor_layout, layout_of, offsets_of, read_field, read_fields, spans_of
from rfh2.explain.form import Problem
from rfh2.explain.reading import Located, PartialMessage
from rfh2.layouts import MQMD1
from rfh2.mqmd import Mqmd
from rfh2.rfh2 import FIXED_LENGTH, Rfh2

_AT: Final = offsets_of(MQMD1)
_MSG_ID: Final = slice(_AT["MsgId"], _AT["CorrelId"])
_CORREL_ID: Final = slice(_AT["CorrelId"], _AT["BackoutCount"])
_USER: Final = slice(_AT["UserIdentifier"], _AT["AccountingToken"])
_PUT_DATE: Final = slice(_AT["PutDate"], _AT["PutTime"])
_PUT_TIME: Final = slice(_AT["PutTime"], _AT["ApplOriginData"])
_DIFFERING: Final = ("MsgId", "CorrelId", "UserIdentifier", "PutDate", "PutTime")
_USER_SPAN: Final = next(span for span in spans_of(MQMD1) if span.name == "UserIdentifier")
_PLACE: Final = "\ue000"
"""In the place of a field that differs: a character that no code page of descriptors has."""

_DESCRIPTORS_ROOM: Final = 4 << 20
_DESCRIPTORS: Final[BoundedCache[bytes, list[bytes]]] = BoundedCache(_DESCRIPTORS_ROOM)
"""Descriptors as JSON, without what differs, by their other bytes."""
_HEADERS_ROOM: Final = 4 << 20
_HEADERS: Final[BoundedCache[tuple[Any, ...], bytes]] = BoundedCache(_HEADERS_ROOM)
"""An MQRFH2 as JSON, up to its folders, by all that this depends on."""
_ENTRY_BYTES: Final = 1_000


def described_line(
    partial: PartialMessage, source: str, index: int, command: bytes, problems: Sequence[Problem]
) -> bytes:
    """The line of a message that could be decoded as a whole. command: the parsed command as JSON."""
    headers = b",".join([_header(located, partial.captured.body) for located in partial.headers])
    found = to_json([problem.model_dump(exclude_defaults=True) for problem in problems]) if problems else b"[]"
    return b'{"source":%b,"index":%d,"mqmd":%b,"headers":[%b],"command":%b,"body":%b,"problems":%b,"captured":%b}' % (
        _word(source).encode(),
        index,
        _descriptor(partial.mqmd, partial.captured.md),
        headers,
        command,
        to_json(body_form(partial)),
        found,
        _captured(partial.captured),
    )


# Names of files, queues and users: few of them, again and again.
@lru_cache(maxsize=1024)
def _word(value: str | None) -> str:
    return to_json(value).decode()


def _descriptor(mqmd: Mqmd | None, md: bytes | None) -> bytes:
    if mqmd is None or md is None:
        return b"null"
    date, time = md[_PUT_DATE], md[_PUT_TIME]
    if not (date.isdigit() and time.isdigit()):
        return to_json(read_fields(descriptor_layout(mqmd.version), md, mqmd.order, mqmd.charset))
    between = md[_CORREL_ID.stop : _USER.start], md[_USER.stop : _PUT_DATE.start]
    key = b"".join((md[: _MSG_ID.start], *between, md[_PUT_TIME.stop :]))
    pieces = _DESCRIPTORS.get(key)
    if pieces is None:
        fields = read_fields(descriptor_layout(mqmd.version), md, mqmd.order, mqmd.charset)
        pieces = to_json(fields | dict.fromkeys(_DIFFERING, _PLACE)).split(_PLACE.encode())
        _DESCRIPTORS.keep(key, pieces, len(key) + _ENTRY_BYTES)
    user = _word(read_field(_USER_SPAN, md, mqmd.charset))[1:-1]
    texts = (md[_MSG_ID].hex().encode(), md[_CORREL_ID].hex().encode(), user.encode(), date, time)
    return b"".join([part for pair in zip(pieces, (*texts, b""), strict=True) for part in pair])


def _header(located: Located, body: bytes) -> bytes:
    header, offset = located.header, located.offset
    if not isinstance(header, Rfh2):
        return to_json(header_form(located, body))
    fixed = body[offset : offset + FIXED_LENGTH]
    key = (fixed, offset, header.order, header.charset)
    front = _HEADERS.get(key)
    if front is None:
        layout = layout_of(header.kind)
        assert layout is not None
        form = {"type": header.kind, "offset": offset, "length": header.length, "byte_order": header.order}
        form |= {"charset": header.charset, "fields": read_fields(layout, fixed, header.order, header.charset)}
        front = to_json(form)[:-1]
        _HEADERS.keep(key, front, len(front) + _ENTRY_BYTES)
    return b'%b,"folders":%b}' % (front, to_json([folder_form(folder) for folder in header.folders]))


def _captured(captured: CapturedMessage) -> bytes:
    time = "null" if captured.time is None else f'"{iso(captured.time)}"'
    where = f'"qmgr":{_word(captured.qmgr)},"queue":{_word(captured.queue)},"user":{_word(captured.user)}'
    md = "null" if captured.md_hex is None or captured.md is None else _hex(captured.md_hex, captured.md)
    body = _hex(captured.body_hex, captured.body)
    return f'{{"seq":{captured.seq},"time":{time},{where},"md_hex":{md},"body_hex":{body}}}'.encode()


def _hex(digits: str, data: bytes) -> str:
    """Digits of *data* as they were captured: there may be white space between them."""
    return f'"{digits}"' if len(digits) == 2 * len(data) else to_json(digits).decode()
