"""A cache of publications: one that is like an earlier one has the same puts, except for the fields of each put.

Programs publish with the same header again and again. What a broker makes of a publication on a stream queue depends on

- the queue, the user, the header, and the descriptor without its MsgId, PutDate and PutTime;
- the subscriptions that its topics match;
- objects of the queue manager, which no message changes; where a person changes them, a new broker is made.

It does not depend on the data, on ``seq`` or on the time; the cache fills these in. So a publication like an earlier
one takes a look-up, one match for each topic and a copy of its bytes: a small part of the broker's time. The
cache checks in the broker's own puts that an entry is valid. It keeps only publications without a warning, a response
or a loss. If subscriptions filter by one of the three fields, it keeps nothing.

Without ``effects``, the cache stores no retained publication: this is for replays that find retained publications in
another way. A running broker sets ``effects``: the cache then keeps no publication with effects, and is not used while
something has expired.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from commands.broker.core import Arrival, BrokerCore, Outcome
from commands.broker.identifiers import message_id
from commands.broker.puts import Outgoing, Put, PutKind
from commands.headers.response import Completion
from commands.model import Publish
from rfh2.chain import decoder_of
from rfh2.errors import DecodeError
from rfh2.layouts import MQMD1
from rfh2.message import decode
from rfh2.pcf import FORMATS
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2
from streams.operations import PublishToTopic
from streams.subscriptions import PublicationFormat, Subscription

_SPANS: Final = {name: (offset, offset + size) for name, offset, size in MQMD1.spans()}
_ID: Final = slice(*_SPANS["MsgId"])
_STAMP: Final = slice(_SPANS["PutDate"][0], _SPANS["PutTime"][1])
_BEFORE_ID: Final = slice(0, _ID.start)
_BETWEEN: Final = slice(_ID.stop, _STAMP.start)
_BEHIND: Final = slice(_STAMP.stop, None)
_OF_EACH_PUT: Final = re.compile("MsgId|MessageID|PutDate|PutTime|Timestamp")
"""What a filter says that looks at one of the three fields, by any of their names (streams.selectors)."""

_STRUC_ID: Final = b"RFH "
_FIXED: Final = 32
_ORDERS: Final = {b"\0\0\0\1": "big", b"\0\0\0\2": "big", b"\1\0\0\0": "little", b"\2\0\0\0": "little"}
_IN_HEADERS: Final = (PublicationFormat.RFH2, PublicationFormat.RFH1)
_COUNTED: Final = tuple(n.to_bytes(3, "big") for n in range(1, 1025))
_MOST_SEEN: Final = 200_000
# A put takes about 400 bytes here, so that all take some tens of megabytes at most.
_ROOM: Final = 65_536

CacheKey = tuple[str, str | None, bytes, bytes]
"""What messages that are alike have in common; the last item is the header."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """What the puts of publications that are alike have in common; each tuple has one item a put.

    topics, matches: on what was published, and the subscriptions of each. cuts: the descriptor before the MsgId, from
    there to the PutDate, and behind the PutTime. heads: the bytes before the data. sub_ids: whom the put is for.
    filtered: not one a put, but the subscriptions whose filter keeps it away.
    """

    topics: tuple[str, ...]
    matches: tuple[tuple[Subscription, ...], ...]
    qmgrs: tuple[str, ...]
    queues: tuple[str, ...]
    topic_strings: tuple[str | None, ...]
    sub_names: tuple[str | None, ...]
    cuts: tuple[tuple[bytes, bytes, bytes], ...]
    heads: tuple[bytes, ...]
    sub_ids: tuple[bytes, ...]
    filtered: tuple[bytes, ...]


class CachedPuts(NamedTuple):
    """The puts of one more publication like one before. mds, bodies: of each put."""

    kept: CacheEntry
    mds: list[bytes]
    bodies: list[bytes]

    def puts(self, seq: int) -> Iterator[Put]:
        """The same in the recorded form."""
        kept = self.kept
        of_each = zip(kept.qmgrs, kept.queues, kept.topic_strings, kept.sub_names, self.mds, self.bodies, strict=True)
        for n, (qmgr, queue, topic, sub_name, md, body) in enumerate(of_each):
            yield Put(
                seq=seq,
                n=n,
                kind=PutKind.PUBLICATION,
                qmgr=qmgr,
                queue=queue,
                topic=topic,
                sub_name=sub_name,
                md_hex=md.hex(),
                body_hex=body.hex(),
            )


class PublicationCache:
    """The publications that one broker has seen more than once.

    effects: whether the broker's changes count, and not only its puts.
    """

    def __init__(self, broker: BrokerCore, effects: bool = False) -> None:
        self._effects = effects
        self._broker, self._space, self._qmgr = broker, broker.space, broker.qmgr
        self._kept: dict[CacheKey, CacheEntry] = {}
        self._room = _ROOM
        self._seen: set[int] = set()
        self._stamp = (datetime.min, b"")

    @property
    def room(self) -> int:
        """How many more puts can be kept before all are forgotten."""
        return self._room

    def process(self, arrival: Arrival) -> Outcome | CachedPuts:
        """The result for a message that needs no retained publication: as ``Broker.process``, or only the puts."""
        key = cache_key(arrival)
        if key is None or (self._effects and self._space.is_due(arrival.now)):
            return self._broker.process(arrival)
        kept = self._kept.get(key)
        if kept is None:
            # Headers that never come again are not worth keeping.
            number = hash(key)
            if number not in self._seen:
                if len(self._seen) >= _MOST_SEEN:
                    self._seen.clear()
                self._seen.add(number)
                return self._broker.process(arrival)
            return self._process(arrival, key)
        if not self._effects:  # else nothing is due
            self._space.expire(arrival.now)
        match, now = self._space.match, arrival.now
        for topic, matched in zip(kept.topics, kept.matches, strict=True):
            if match(topic, now) != matched:
                self._room += _cost(self._kept.pop(key))
                return self._process(arrival, key)
        return self._again(kept, arrival, arrival.body[len(key[3]) :])

    def _again(self, kept: CacheEntry, arrival: Arrival, data: bytes) -> CachedPuts:
        ident = message_id(self._qmgr, arrival.seq, 0)[:-3]
        stamp = self._stamp_of(arrival.now)
        # Few publications have more than a thousand subscribers.
        counted = _COUNTED if len(kept.cuts) <= len(_COUNTED) else _counted(len(kept.cuts))
        join = b"".join
        mds = [join((a, ident, n, b, stamp, c)) for (a, b, c), n in zip(kept.cuts, counted, strict=False)]
        return CachedPuts(kept, mds, [head + data for head in kept.heads])

    def _stamp_of(self, now: datetime) -> bytes:
        at, stamp = self._stamp
        if at != now:
            stamp = _stamp(now)
            self._stamp = now, stamp
        return stamp

    def _process(self, arrival: Arrival, key: CacheKey) -> Outcome:
        """Process a message in the broker, and keep the result if it can be used again."""
        outcome = self._broker.trace(arrival)
        kept = self._known(arrival, outcome, key)
        if kept is not None and (cost := _cost(kept)) <= _ROOM:
            if self._room < cost:
                # What is in use comes back at the price of one way through the broker each.
                self._kept.clear()
                self._room = _ROOM
            self._kept[key] = kept
            self._room -= cost
        return outcome

    def _known(self, arrival: Arrival, outcome: Outcome, key: CacheKey) -> CacheEntry | None:
        """The entry for a publication, or None; every assumption is checked in the puts."""
        if outcome.completion is not Completion.OK or outcome.lost or not isinstance(outcome.command, Publish):
            return None
        if self._effects and (outcome.effects or any(put.qmgr != self._qmgr for put in outcome.puts)):
            return None
        head = key[3]
        if not is_all_header(arrival, len(head)):
            return None
        assert outcome.trace is not None
        operations = (traced.operation for traced in outcome.trace.operations)
        topics = tuple(each.topic_string for each in operations if isinstance(each, PublishToTopic))
        matches = tuple(self._space.match(topic, arrival.now) for topic in topics)
        if not all(_is_plain(subscription) for matched in matches for subscription in matched):
            return None
        puts, data, stamp = outcome.puts, arrival.body[len(head) :], _stamp(arrival.now)
        mds = [put.message.mqmd.encode() for put in puts]
        for n, (put, md) in enumerate(zip(puts, mds, strict=True), 1):
            ends_with_data = put.kind is PutKind.PUBLICATION and put.body.endswith(data)
            if not ends_with_data or md[_ID] != message_id(self._qmgr, arrival.seq, n) or md[_STAMP] != stamp:
                return None
        return CacheEntry(
            topics,
            matches,
            tuple(put.qmgr for put in puts),
            tuple(put.queue for put in puts),
            tuple(put.topic for put in puts),
            tuple(put.sub_name for put in puts),
            tuple((md[_BEFORE_ID], md[_BETWEEN], md[_BEHIND]) for md in mds),
            tuple(_heads(puts, len(data))),
            tuple(copies[0].subscription.sub_id for copies in outcome.copies),
            tuple(subscription.sub_id for subscription in outcome.filtered),
        )


def cache_key(arrival: Arrival) -> CacheKey | None:
    """The key that like messages share; None if the message plainly is no command."""
    md, body = arrival.md, arrival.body
    order = _ORDERS.get(body[4:8])
    if md is None or len(md) < _STAMP.stop or order is None or body[:4] != _STRUC_ID:
        return None
    length = int.from_bytes(body[8:12], order)  # type: ignore[arg-type]
    if not _FIXED <= length <= len(body):
        return None
    return arrival.queue, arrival.user, md[_BEFORE_ID] + md[_BETWEEN] + md[_BEHIND], body[:length]


def is_all_header(arrival: Arrival, length: int) -> bool:
    """Whether the first *length* bytes are all the header there is, and data follow whatever they are.

    Raises nothing: a message that cannot be decoded is not.
    """
    try:
        message = decode(arrival.body, arrival.md)
    except DecodeError:
        return False
    if len(message.headers) != 1:
        return False
    (header,) = message.headers
    is_whole = isinstance(header, Rfh1 | Rfh2) and header.length == length
    return is_whole and decoder_of(header.format) is None and message.body_format not in FORMATS


def _is_plain(subscription: Subscription) -> bool:
    """Whether a subscriber's message has the data unchanged, and does not depend on the three fields."""
    if subscription.format not in _IN_HEADERS:
        return False
    return subscription.selector is None or _OF_EACH_PUT.search(subscription.selector) is None


def _heads(puts: tuple[Outgoing, ...], size: int) -> Iterator[bytes]:
    """What is before the data in each put; puts that share their bytes go on sharing them."""
    shared: dict[int, bytes] = {}
    for put in puts:
        head = shared.get(id(put.body))
        if head is None:
            head = shared[id(put.body)] = put.body[: len(put.body) - size]
        yield head


def _cost(kept: CacheEntry) -> int:
    return len(kept.cuts) + 2


def _stamp(now: datetime) -> bytes:
    """PutDate and PutTime, as ``commands.broker.identifiers`` makes them."""
    day, clock = (now.year, now.month, now.day), (now.hour, now.minute, now.second)
    return b"%04d%02d%02d%02d%02d%02d%02d" % (*day, *clock, now.microsecond // 10_000)


def _counted(count: int) -> list[bytes]:
    return [n.to_bytes(3, "big") for n in range(1, count + 1)]
