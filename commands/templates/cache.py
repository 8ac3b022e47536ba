"""A cache of publications: one that is like an earlier one has the same puts, except for the fields of each put.

Programs publish with the same header again and again. What a broker makes of a publication on a stream queue depends on

- the queue, the user, the header, and the descriptor without its MsgId, PutDate and PutTime;
- the subscriptions that its topics match;
- objects of the queue manager, which no message changes; where a person changes them, a new broker is made.

It does not depend on the data, on ``seq`` or on the time; the cache fills these in. So a publication like an earlier
one takes a look-up, one match for each topic and a copy of its bytes: a small part of the broker's time.

Templates (``commands.templates.templates``) are tried first: with them most headers need not be equal. The cache
is for what they do not make: several topics, filters, and an MQRFH on either side. It checks in the broker's own puts
that an entry is valid. It keeps only publications without a warning, a response or a loss. If subscriptions filter by
one of the three fields, it keeps nothing. Whether the user may publish is asked each time: a user's groups can change.

Without ``effects``, nothing is said of retained publications: this is for replays that find them in another way. A
running broker sets ``effects``: the cache then keeps no publication with effects, templates say what is retained, and
neither is used while something has expired.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from commands.broker.authority import Action
from commands.broker.core import BrokerCore
from commands.broker.identifiers import message_id
from commands.broker.outcome import Arrival, Outcome
from commands.broker.puts import PutKind
from commands.headers.response import Completion
from commands.model import Publish
from commands.templates.cached_puts import (
    BEFORE_ID,
    BEHIND,
    BETWEEN,
    ID,
    STAMP,
    CachedPuts,
    CacheEntry,
    Descriptors,
    accepted_of,
    stamp_of,
)
from commands.templates.parts import parts_of
from commands.templates.templates import PublicationTemplates
from rfh2.chain import decoder_of
from rfh2.errors import DecodeError
from rfh2.message import Message, decode
from rfh2.mqmd import name_of
from rfh2.pcf import FORMATS
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2
from streams.operations import PublishToTopic
from streams.subscriptions import PublicationFormat, Subscription

_OF_EACH_PUT: Final = re.compile("MsgId|MessageID|PutDate|PutTime|Timestamp")
"""What a filter says that looks at one of the three fields, by any of their names (streams.selectors)."""

_STRUC_ID: Final = b"RFH "
_FIXED: Final = 32
_ORDERS: Final = {b"\0\0\0\1": "big", b"\0\0\0\2": "big", b"\1\0\0\0": "little", b"\2\0\0\0": "little"}
_IN_HEADERS: Final = (PublicationFormat.RFH2, PublicationFormat.RFH1)
_MOST_SEEN: Final = 200_000
# A put takes about 400 bytes here, so that all take some tens of megabytes at most.
_ROOM: Final = 65_536

CacheKey = tuple[str, str | None, bytes, bytes]
"""What messages that are alike have in common; the last item is the header."""


@dataclass(slots=True)
class _Kept:
    """What is kept of publications with one header. heads: of each publication that is put the bytes before the data.

    as_of: the changes of subscriptions after which the topics were last seen to match the same ones.
    """

    entry: CacheEntry
    heads: tuple[bytes, ...]
    as_of: int


class PublicationCache:
    """The publications that one broker has seen more than once.

    effects: whether the broker's changes count, and not only its puts. traced: whether outcomes of the broker have a
    trace.
    """

    def __init__(self, broker: BrokerCore, effects: bool = False, *, traced: bool = False) -> None:
        self._effects = effects
        self._process: Callable[[Arrival], Outcome] = broker.trace if traced else broker.process
        self._broker, self._space, self._qmgr, self._authority = broker, broker.space, broker.qmgr, broker.authority
        self._templates = PublicationTemplates(broker, effects)
        self._descriptors = Descriptors(broker.qmgr)
        self._kept: dict[CacheKey, _Kept] = {}
        self._room = _ROOM
        self._seen: set[int] = set()

    @property
    def room(self) -> int:
        """How many more puts can be kept before all are forgotten."""
        return self._room

    def process(self, arrival: Arrival) -> Outcome | CachedPuts:
        """The result for a message that needs no retained publication: as ``Broker.process``, or only the puts."""
        if self._effects and self._space.is_due(arrival.now):
            return self._process(arrival)
        key = cache_key(arrival)
        if key is None:
            return self._process(arrival)
        kept = self._kept.get(key)
        if kept is not None:
            if self._is_good(kept, arrival):
                return self._again(arrival, key, kept)
            self._room += _cost(self._kept.pop(key).entry)
        parts = parts_of(arrival)
        if parts is None:
            return self._whole(arrival, key, self._was_seen(hash(key)))
        if not self._effects and self._templates.knows(parts):  # else nothing is due
            self._space.expire(arrival.now)
        made = self._templates.answer(arrival, parts)
        if isinstance(made, CachedPuts):
            if self._was_seen(hash(key)):
                size = len(arrival.body) - len(key[3])
                self._store(key, made.kept, (body[: len(body) - size] for body in made.bodies[: len(made.kept.cuts)]))
            return made
        is_known = self._templates.knows(parts)
        if is_known and not made:
            return self._whole(arrival, key, self._was_seen(hash(key)))
        outcome = self._process(arrival)
        # What never comes again is not worth keeping.
        if is_known or self._was_seen(hash(parts.key)):
            self._templates.learn(arrival, parts, outcome)
            if self._templates.answer(arrival, parts) is False:
                self._keep(arrival, key, outcome)
        return outcome

    def _is_good(self, kept: _Kept, arrival: Arrival) -> bool:
        """Whether its topics match the same subscriptions as before."""
        space, entry, now = self._space, kept.entry, arrival.now
        if not self._effects:  # else nothing is due
            space.expire(now)
        if kept.as_of != space.subscription_changes:
            if tuple(space.match(topic, now) for topic in entry.topics) != entry.matches:
                return False
            kept.as_of = space.subscription_changes
        return True

    def _again(self, arrival: Arrival, key: CacheKey, kept: _Kept) -> Outcome | CachedPuts:
        """The result for a message with a header that is kept."""
        entry = kept.entry
        for topic in entry.topics:
            if not self._authority.may_use_topic(entry.user, Action.PUBLISH, topic):
                return self._process(arrival)
        data = arrival.body[len(key[3]) :]
        bodies = [head + data for head in kept.heads]
        if entry.response is not None:
            bodies.append(entry.response.body)
        return CachedPuts(entry, self._descriptors.of(entry, arrival), bodies)

    def _whole(self, arrival: Arrival, key: CacheKey, is_kept: bool) -> Outcome:
        """Process a message in the broker. is_kept: whether to keep the result."""
        outcome = self._process(arrival)
        if is_kept:
            self._keep(arrival, key, outcome)
        return outcome

    def _was_seen(self, number: int) -> bool:
        """Whether it was seen before; from now on it was."""
        if number in self._seen:
            return True
        if len(self._seen) >= _MOST_SEEN:
            self._seen.clear()
        self._seen.add(number)
        return False

    def _keep(self, arrival: Arrival, key: CacheKey, outcome: Outcome) -> None:
        """Keep the result of a publication if it can be used again."""
        known = self._known(arrival, outcome, key)
        if known is not None:
            self._store(key, *known)

    def _store(self, key: CacheKey, entry: CacheEntry, heads: Iterable[bytes]) -> None:
        cost = _cost(entry)
        if cost > _ROOM:
            return
        if self._room < cost:
            # What is in use comes back at the price of one way through the broker each.
            self._kept.clear()
            self._room = _ROOM
        self._kept[key] = _Kept(entry, _shared(heads), self._space.subscription_changes)
        self._room -= cost

    def _known(self, arrival: Arrival, outcome: Outcome, key: CacheKey) -> tuple[CacheEntry, Iterable[bytes]] | None:
        """What to keep for a publication, and its heads, or None; every assumption is checked in the puts."""
        if outcome.completion is not Completion.OK or outcome.lost or not isinstance(outcome.command, Publish):
            return None
        if self._effects and (outcome.effects or any(put.qmgr != self._qmgr for put in outcome.puts)):
            return None
        published = [each for each in outcome.operations if isinstance(each, PublishToTopic)]
        head = key[3]
        if not published or not _is_all_header(published[0].publication.message, len(head)):
            return None
        topics = tuple(each.topic_string for each in published)
        matches = tuple(self._space.match(topic, arrival.now) for topic in topics)
        if not all(_is_plain(subscription) for matched in matches for subscription in matched):
            return None
        puts, data, stamp = outcome.puts, arrival.body[len(head) :], stamp_of(arrival.now)
        mds = [put.message.mqmd.encode() for put in puts]
        for n, (put, md) in enumerate(zip(puts, mds, strict=True), 1):
            ends_with_data = put.kind is PutKind.PUBLICATION and put.body.endswith(data)
            if not ends_with_data or md[ID] != message_id(self._qmgr, arrival.seq, n) or md[STAMP] != stamp:
                return None
        copies = [each[0].subscription for each in outcome.copies]
        entry = CacheEntry(
            name_of(published[0].publication.message.mqmd.user_identifier) if arrival.user is None else arrival.user,
            topics,
            matches,
            tuple(put.kind for put in puts),
            tuple(put.qmgr for put in puts),
            tuple(put.queue for put in puts),
            tuple(put.topic for put in puts),
            tuple(put.sub_name for put in puts),
            tuple((md[BEFORE_ID], md[BETWEEN], md[BEHIND]) for md in mds),
            tuple(subscription.sub_id for subscription in copies),
            frozenset(subscription.sub_id for subscription in copies if subscription.temporary),
            tuple(subscription.sub_id for subscription in outcome.filtered),
            accepted=tuple(accepted_of(md, put.body) for md, put in zip(mds, puts, strict=True)),
        )
        return entry, (put.body[: len(put.body) - len(data)] for put in puts)


def cache_key(arrival: Arrival) -> CacheKey | None:
    """The key that like messages share; None if the message plainly is no command."""
    md, body = arrival.md, arrival.body
    order = _ORDERS.get(body[4:8])
    if md is None or len(md) < STAMP.stop or order is None or body[:4] != _STRUC_ID:
        return None
    length = int.from_bytes(body[8:12], order)  # type: ignore[arg-type]
    if not _FIXED <= length <= len(body):
        return None
    return arrival.queue, arrival.user, md[BEFORE_ID] + md[BETWEEN] + md[BEHIND], body[:length]


def is_all_header(arrival: Arrival, length: int) -> bool:
    """Whether the first *length* bytes are all the header there is, and data follow whatever they are.

    Raises nothing: a message that cannot be decoded is not.
    """
    try:
        return _is_all_header(decode(arrival.body, arrival.md), length)
    except DecodeError:
        return False


def _is_all_header(message: Message, length: int) -> bool:
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


def _shared(heads: Iterable[bytes]) -> tuple[bytes, ...]:
    """*heads*, equal ones as one object: many subscribers get the same."""
    known: dict[bytes, bytes] = {}
    return tuple(known.setdefault(head, head) for head in heads)


def _cost(kept: CacheEntry) -> int:
    return len(kept.cuts) + 2
