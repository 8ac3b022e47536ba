"""The parts of a publication, or of a message without a command: what a program always writes, and what differs.

    MQMD but identifiers, user, time │ MQRFH2 │ <psc> ... <Topic>text</Topic> ... </psc> │ <usr> ... </usr> │ data
    MQMD but identifiers, user, time │ MQRFH │ MQPSCommand Publish MQPSTopic text ... │ data

Nothing is decoded. Texts that differ are those of Topic, PubTime and SeqNum, and of all leaves in folders beside psc.
Such a text has no character that XML, JSON or the view writes in a way of its own, so that it can be put into any
output as it is. All else that decides what is shown is the key: messages with the same key differ in these texts, in
identifiers, user and time, in lengths, and in the data.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from rfh2 import rfh1, rfh2
from rfh2.captured import CapturedMessage
from rfh2.explain.fields import offsets_of
from rfh2.layouts import MQMD1, MQMD2

_AT: Final = offsets_of(MQMD1)
_MSG_ID: Final = slice(_AT["MsgId"], _AT["CorrelId"])
_CORREL_ID: Final = slice(_AT["CorrelId"], _AT["BackoutCount"])
_USER: Final = slice(_AT["UserIdentifier"], _AT["AccountingToken"])
_STAMP: Final = slice(_AT["PutDate"], _AT["ApplOriginData"])
_DATE_SIZE: Final = 8
_BETWEEN: Final = slice(_CORREL_ID.stop, _USER.start)
_BEHIND_USER: Final = slice(_USER.stop, _STAMP.start)
_DESCRIPTORS: Final = (MQMD1.size, MQMD2.size)

_NUMBERS: Final = {"big": struct.Struct(">i").unpack_from, "little": struct.Struct("<i").unpack_from}
# StrucId and Version, to what reads a number in the byte order that Version shows.
_RFH2: Final = {b"RFH \0\0\0\2": _NUMBERS["big"], b"RFH \2\0\0\0": _NUMBERS["little"]}
_RFH1: Final = {b"RFH \0\0\0\1": _NUMBERS["big"], b"RFH \1\0\0\0": _NUMBERS["little"]}
_FRONT: Final = 8
_MOST_HEADER: Final = 16_384
_PSC: Final = "<psc>"
_CHARACTER: Final = r'[^<>&"\\\x00-\x1f\x7f]'
# A line of the view is shown without blanks at its end.
_TEXT: Final = rf"({_CHARACTER}++)(?<! )"
_IN_PSC: Final = re.compile(rf"<(Topic|PubTime|SeqNum)()>{_TEXT}</\1>")
_NAME: Final = "[A-Za-z_$][A-Za-z0-9_.$-]*+"
_TYPE: Final = "(?: dt=(?:'[A-Za-z0-9.]*+'|\"[A-Za-z0-9.]*+\"))?"
_IN_OTHERS: Final = re.compile(rf"<({_NAME})({_TYPE})>{_TEXT}</\1>")
_IN_STRING: Final = re.compile("(?<![^ ])MQPS(Topic|PubTime|SeqNum)( )([!#-\\[\\]-~]++)(?![^ ])")
_PLAIN: Final = re.compile("[ !#-\\[\\]-~]*+")


Shape = tuple[str, ...]
"""A folder without the texts that differ: what is before a text, its tag, its type, and so on; then its end.

The string of an MQRFH counts as a folder. Its tags have the type " ".
"""


class FolderPlace(NamedTuple):
    """Where a folder is, counted from the start of the header, its length in bytes, and how many of these pad it."""

    offset: int
    length: int
    padding: int


class Header(NamedTuple):
    """A header, taken apart. topic: empty without psc. shapes, places, texts: of its folders, in order."""

    topic: str
    shapes: list[Shape]
    places: list[FolderPlace]
    texts: list[str]


class Parts(NamedTuple):
    """A publication, taken apart. key: see above. length: StrucLength. data: what follows the header.

    msg_id to time: of the descriptor. The last four are those of ``Header``.
    """

    key: tuple[object, ...]
    length: int
    data: bytes
    msg_id: bytes
    correl_id: bytes
    user: str
    date: str
    time: str
    topic: str
    shapes: list[Shape]
    places: list[FolderPlace]
    texts: list[str]


def parts_of(captured: CapturedMessage) -> Parts | None:
    """The parts of a publication as most programs write it: one MQRFH2 or MQRFH, one topic; or without psc.

    None for other messages.
    """
    md, body = captured.md, captured.body
    front = body[:_FRONT]
    number_at = _RFH2.get(front)
    fixed, read = (rfh2.FIXED_LENGTH, _folders) if number_at is not None else (rfh1.FIXED_LENGTH, _string)
    number_at = number_at or _RFH1.get(front)
    if number_at is None or md is None or len(md) not in _DESCRIPTORS or len(body) < fixed:
        return None
    (length,) = number_at(body, _FRONT)
    stamp = md[_STAMP]
    if length > len(body) or length > _MOST_HEADER or length & 3 or not stamp.isdigit():
        return None
    user = str(md[_USER], "ascii", "replace").rstrip(" ")
    if _PLAIN.fullmatch(user) is None:
        return None
    header = read(body, length, number_at)
    if header is None:
        return None
    always = md[: _MSG_ID.start], md[_BETWEEN], md[_BEHIND_USER], md[_STAMP.stop :]
    described = front, body[_FRONT + 4 : fixed], length < len(body)
    key = (captured.queue, captured.qmgr, *always, *described, *header.shapes)
    date = str(stamp, "ascii")
    differing = md[_MSG_ID], md[_CORREL_ID], user, date[:_DATE_SIZE], date[_DATE_SIZE:]
    return Parts(key, length, body[length:], *differing, *header)


def _folders(body: bytes, length: int, number_at: Callable[[bytes, int], tuple[int]]) -> Header | None:
    """The parts of an MQRFH2."""
    at, topic = rfh2.FIXED_LENGTH, ""
    shapes: list[Shape] = []
    places: list[FolderPlace] = []
    texts: list[str] = []
    while at < length:
        (size,) = number_at(body, at)
        begin = at + 4
        at = begin + size
        if size <= 0 or size & 3 or at > length:
            return None
        folder = body[begin:at].rstrip(b" ")
        try:
            text = str(folder, "utf-8")
        except UnicodeDecodeError:
            return None
        in_psc = text.startswith(_PSC)
        shape = (_IN_PSC if in_psc else _IN_OTHERS).split(text)
        varying = shape[3::4]
        if not (text.isascii() or "".join(varying).isprintable()):
            return None
        if in_psc:
            tags = shape[1::4]
            if topic or tags.count("Topic") != 1:
                return None
            topic = varying[tags.index("Topic")]
        texts += varying
        del shape[3::4]
        shapes.append(tuple(shape))
        places.append(FolderPlace(begin, size, size - len(folder)))
    return Header(topic, shapes, places, texts)


def _string(body: bytes, length: int, _number_at: object) -> Header | None:
    """The parts of an MQRFH, whose string nulls pad."""
    begin = rfh1.FIXED_LENGTH
    string = body[begin:length].rstrip(b"\0")
    if not string.isascii() or b"\0" in string or b'"' in string:
        return None
    shape = _IN_STRING.split(str(string, "ascii"))
    texts, tags = shape[3::4], shape[1::4]
    if tags.count("Topic") != 1:
        return None
    del shape[3::4]
    size = length - begin
    return Header(texts[tags.index("Topic")], [tuple(shape)], [FolderPlace(begin, size, size - len(string))], texts)


def folder_of(shape: Shape, texts: Sequence[str]) -> str:
    """A folder, or the string of an MQRFH, of that shape with these texts, not padded."""
    leaves = [
        f"MQPS{tag} {text}" if kind == " " else f"<{tag}{kind}>{text}</{tag}>"
        for tag, kind, text in zip(shape[1::3], shape[2::3], texts, strict=True)
    ]
    return "".join([part for pair in zip(shape[::3], [*leaves, ""], strict=True) for part in pair])
