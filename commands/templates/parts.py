"""The parts of a publication: what a program always writes, the texts that vary, and the rest, which passes as it is.

    MQRFH2, fixed part │ folders before psc │ <psc> ... <Topic>text</Topic> ... <SeqNum>text</SeqNum> ... </psc> │ rest

Nothing is decoded. ``parts_of`` takes a message apart, ``form_of`` finds the parts again in what the broker made of it,
and ``bodies_of`` puts others together. It takes only messages in which that is safe: one psc folder in UTF-8, and texts
without a character that XML or a topic treats in a way of its own.

The descriptors of puts by templates: cut where each message has bytes of its own, and put together again.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Final, NamedTuple

from commands.broker.descriptor import CARRIED_IDS, Accepted, accepted, message_id
from commands.broker.outcome import Arrival
from commands.headers.publication import has_room_for
from rfh2.layouts import MQMD1
from rfh2.rfh2 import FIXED_LENGTH

APPLICATION: Final = "qpubsub"
"""PutApplName of what the broker puts, where its descriptor leaves that blank."""

_SPANS: Final = {name: (offset, offset + size) for name, offset, size in MQMD1.spans()}
ID: Final = slice(*_SPANS["MsgId"])
CORREL_ID: Final = slice(*_SPANS["CorrelId"])
STAMP: Final = slice(_SPANS["PutDate"][0], _SPANS["PutTime"][1])
_BEFORE_ID: Final = slice(0, ID.start)
_BETWEEN: Final = slice(ID.stop, STAMP.start)
_BEHIND: Final = slice(STAMP.stop, None)
_BEHIND_IDS: Final = slice(CORREL_ID.stop, STAMP.start)
_HUNDREDTH_US: Final = 10_000
_HUNDREDTH: Final = timedelta(microseconds=_HUNDREDTH_US)
_NOTHING: Final = timedelta(0)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


Cut = tuple[bytes, bytes, bytes]
"""The descriptor of a publication before the MsgId, from there to the PutDate, and behind the PutTime."""


def cut_of(md: bytes) -> Cut:
    """The cut of one descriptor."""
    return md[_BEFORE_ID], md[_BETWEEN], md[_BEHIND]


class ResponseCut(NamedTuple):
    """The response to publications that are alike."""

    own_id: bool  # it has a MsgId of its own, and not that of the command
    correl_id: bytes | None  # None for the MsgId of the command
    before: bytes  # the descriptor before the MsgId
    between: bytes  # from behind the CorrelId to the PutDate
    behind: bytes  # behind the PutTime

    @classmethod
    def of(cls, md: bytes, own_id: bool, correl_id: bytes | None) -> ResponseCut:
        """The cut of one response."""
        return cls(own_id, correl_id, md[_BEFORE_ID], md[_BEHIND_IDS], md[_BEHIND])

    def md(self, command_id: bytes, own_id: bytes, stamp: bytes) -> bytes:
        """The descriptor of one more. command_id: the MsgId of the command."""
        ident = own_id if self.own_id else command_id
        correl_id = command_id if self.correl_id is None else self.correl_id
        return b"".join((self.before, ident, correl_id, self.between, stamp, self.behind))


class Descriptors:
    """Makes the descriptors of such puts, for one queue manager. begin: the number before the first
    identifier, 0 or ``CARRIED_IDS``.
    """

    __slots__ = ("_begin", "_counted", "_qmgr", "_stamp")

    def __init__(self, qmgr: str, begin: int = 0) -> None:
        self._qmgr, self._begin = qmgr, begin
        self._counted = _COUNTED[begin]
        self._stamp = (_NEVER, b"")  # since when, for a hundredth of a second

    def ident(self, arrival: Arrival, n: int) -> bytes:
        """The MsgId of put *n* of *arrival*, from 1."""
        return message_id(self._qmgr, arrival.seq, self._begin + n)

    def of(self, cuts: Sequence[Cut], response: ResponseCut | None, arrival: Arrival) -> list[bytes]:
        """Those of the puts of *arrival*: the publications, then the response."""
        now = arrival.now
        begin, stamp = self._stamp
        if not _NOTHING <= now - begin < _HUNDREDTH:
            stamp = stamp_of(now)
            self._stamp = now.replace(microsecond=now.microsecond // _HUNDREDTH_US * _HUNDREDTH_US), stamp
        ident, join = message_id(self._qmgr, arrival.seq, 0)[:-3], b"".join
        # Few publications have more than a thousand subscribers.
        counted = self._counted if len(cuts) < len(self._counted) else _counted(self._begin, len(cuts) + 1)
        mds = [join((a, ident, n, b, stamp, c)) for (a, b, c), n in zip(cuts, counted, strict=False)]
        if response is not None:
            assert arrival.md is not None
            mds.append(response.md(arrival.md[ID], ident + counted[len(cuts)], stamp))
        return mds


def accepted_of(md: bytes, body: bytes, user: str | None = None) -> Accepted | None:
    """The columns in which a queue keeps a put of the broker, and all like it.

    user: who puts it, where that is not the one in *md*.
    """
    found = accepted(md, body, APPLICATION)
    return found if found is None or user is None else found._replace(user=user)


def stamp_of(now: datetime) -> bytes:
    """PutDate and PutTime, as ``commands.broker.descriptor`` makes them."""
    day, clock = (now.year, now.month, now.day), (now.hour, now.minute, now.second)
    return b"%04d%02d%02d%02d%02d%02d%02d" % (*day, *clock, now.microsecond // _HUNDREDTH_US)


def _counted(begin: int, count: int) -> tuple[bytes, ...]:
    return tuple([n.to_bytes(3, "big") for n in range(begin + 1, begin + count + 1)])


_COUNTED: Final = {begin: _counted(begin, 1024) for begin in (0, CARRIED_IDS)}


# StrucId and Version, to NameValueCCSID 1208 and the numbers in the byte order that Version shows.
_FRONTS: Final = {
    b"RFH \0\0\0\2": (b"\0\0\x04\xb8", struct.Struct(">i")),
    b"RFH \2\0\0\0": (b"\xb8\x04\0\0", struct.Struct("<i")),
}
_LENGTH_AT: Final = 8
_FIXED: Final = slice(12, FIXED_LENGTH)
_NAME_VALUE_CCSID: Final = slice(32, FIXED_LENGTH)
_BEGIN, _END, _MARK = b"<psc>", b"</psc>", b"<psc"
_PADDING: Final = b" \0"
_MOST_FOLDERS: Final = 64
_MOST_PSC: Final = 4_096
# The texts that vary; XML neither changes nor refuses a character in them, and nobody has to escape one.
_VARYING: Final = re.compile(rb"<(Topic|PubTime|SeqNum)>([^<>&\x00-\x1f\x7f]+)</\1>")
_ESCAPED: Final = re.compile("[<>&\r]")
_TOPIC: Final = b"Topic"
# Each order in which the three tags may occur, the topic always, to the place of the topic.
_ORDERS: Final = {
    order: order.index(_TOPIC)
    for count in (1, 2, 3)
    for order in permutations((_TOPIC, b"PubTime", b"SeqNum"), count)
    if _TOPIC in order
}
_TOPIC_SLOT: Final = -1

ShapeKey = tuple[str, str | None, bytes, bytes, tuple[bytes, ...]]
"""Queue, user, the descriptor, the fixed part; then StrucId and Version, and psc with the tags of its texts."""
Pieces = tuple[bytes | int, ...]
"""A psc folder: what is always the same in it, and the numbers of the texts between; the topic has ``_TOPIC_SLOT``."""


class Form(NamedTuple):
    """How an MQRFH2 begins. fixed: its fixed part behind StrucLength; the CCSID in it was resolved. psc: its folder."""

    fixed: bytes
    psc: Pieces


class Parts(NamedTuple):
    """A publication, taken apart. topic: its text. texts: all that vary, in their order, whose tags are in *key*.

    before: the folders before psc, with their lengths. behind: where the rest begins that follows psc. length:
    StrucLength.
    """

    key: ShapeKey
    topic: bytes
    texts: list[bytes]
    before: bytes
    behind: int
    length: int


def parts_of(arrival: Arrival) -> Parts | None:
    """The parts of a publication as most programs write it; None for any other message."""
    md, body = arrival.md, arrival.body
    front = _FRONTS.get(body[:8])
    if front is None or md is None or len(md) < STAMP.stop or body[_NAME_VALUE_CCSID] != front[0]:
        return None
    long_at = front[1].unpack_from
    (length,) = long_at(body, _LENGTH_AT)
    if length > len(body) or body.count(_MARK, FIXED_LENGTH, length) != 1:
        return None
    at, psc_at, psc_end = FIXED_LENGTH, 0, 0
    for _ in range(_MOST_FOLDERS):
        if at + 4 > length:
            break
        begin = at + 4
        (size,) = long_at(body, at)
        if size < 0:
            return None
        at = begin + size
        if body.startswith(_BEGIN, begin):
            psc_at, psc_end = begin, at
    if at != length or not psc_at or psc_end - psc_at > _MOST_PSC:
        return None
    found = _VARYING.split(body[psc_at:psc_end].rstrip(_PADDING))
    texts = found[2::3]
    del found[2::3]
    topic_at = _ORDERS.get(tuple(found[1::2]))
    if topic_at is None or not found[-1].endswith(_END):
        return None
    topic = texts[topic_at]
    if len(texts) > 1 and not all(text is topic or text.isascii() for text in texts):
        return None
    key = (arrival.queue, arrival.user, b"".join(cut_of(md)), body[_FIXED], (body[:8], *found))
    return Parts(key, topic, texts, body[FIXED_LENGTH : psc_at - 4], psc_end, length)


def is_changed(topic: str) -> bool:
    """Whether a psc folder would hold another text for *topic*."""
    return _ESCAPED.search(topic) is not None or not has_room_for(topic)


def form_of(put_body: bytes, body: bytes, parts: Parts, topic: str) -> Form | None:
    """The form of a put, if it has one. topic: the one that it names."""
    tail = len(body) - parts.behind + len(parts.before)
    psc = put_body[FIXED_LENGTH + 4 : len(put_body) - tail].rstrip(_PADDING)
    tags = parts.key[-1][2::2]
    marks = [(_TOPIC, topic.encode(), _TOPIC_SLOT)]
    marks += ((tag, text, n) for n, (tag, text) in enumerate(zip(tags, parts.texts, strict=True)) if tag != _TOPIC)
    places = []
    for tag, text, slot in marks:
        element = b"<%b>%b</%b>" % (tag, text, tag)
        if psc.count(element) != 1:
            return None
        begin = psc.index(element) + len(tag) + 2
        places.append((begin, begin + len(text), slot))
    form: list[bytes | int] = []
    at = 0
    for begin, end, slot in sorted(places):
        form += (psc[at:begin], slot)
        at = end
    return Form(put_body[_FIXED], (*form, psc[at:]))


def on_topic(topic: str, pieces: Pieces) -> Pieces:
    """*pieces* with this topic, and what is the same for all publications on it joined."""
    joined: list[bytes | int] = []
    for each in pieces:
        part = topic.encode() if isinstance(each, int) and each == _TOPIC_SLOT else each
        if joined and isinstance(part, bytes) and isinstance(last := joined[-1], bytes):
            joined[-1] = last + part
        else:
            joined.append(part)
    return tuple(joined)


def psc_folder(pieces: Pieces, parts: Parts) -> bytes:
    """The psc folder with the texts of *parts*: its length, and the padding to a multiple of four bytes."""
    texts = parts.texts
    psc = b"".join([each if isinstance(each, bytes) else texts[each] for each in pieces])
    psc += b" " * (-len(psc) % 4)
    return _FRONTS[parts.key[-1][0]][1].pack(len(psc)) + psc


def bodies_of(body: bytes, parts: Parts, begun: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    """*body*, whose parts these are, with each fixed part and psc folder in place of its own; psc is then the first."""
    _, _, _, before, behind, length = parts
    front, rest = body[:8], body[behind:]
    others = FIXED_LENGTH + len(before) + length - behind
    pack, join = _FRONTS[front][1].pack, b"".join
    return [join((front, pack(others + len(psc)), fixed, psc, before, rest)) for fixed, psc in begun]
