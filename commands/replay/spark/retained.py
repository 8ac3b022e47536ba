"""What each RegSub and ReqUpdate finds retained: the last retained publication before it on each topic it looks at.

Three steps, none of which sees more of a hot topic than of any other:

1. In each range, of the publications on one topic only those are kept between which and the next one somebody looks at
   the topic, and the last one (``_candidates``). They are small: numbers and topics, no messages.
2. Topics are dealt out to tasks; each lays its candidates, and all lookups and DeletePubs, in the order of ``seq``, and
   runs them through a topic space (``_winners``).
3. The messages of those that were found are fetched, once for each message that looks.
"""

from __future__ import annotations

import pickle
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from commands.broker.core import Arrival
from commands.mqsc.broker import Broker
from commands.qmgr.publication_cache import CacheKey, cache_key, is_all_header
from commands.replay.spark.control import Winner
from commands.replay.spark.journal import Lookup, SubscriptionJournals
from commands.replay.spark.prepare import Prepared, Work
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.rows import batch_of, columns
from commands.replay.spark.schemas import COLUMNS, arrow_schema
from rfh2.message import Message
from rfh2.mqmd import Mqmd
from streams.index import SubscriptionIndex
from streams.operations import Publication, Published, RetainedPublication, RetainedStored
from streams.subscriptions import Subscription

_CANDIDATES: Final = StructType(
    [
        StructField("qmgr", StringType()),
        StructField("topic", StringType()),
        StructField("seq", LongType()),
        StructField("publication", BinaryType()),
    ]
)
_WINNERS: Final = StructType(
    [
        StructField("qmgr", StringType()),
        StructField("at", LongType()),
        StructField("topic", StringType()),
        StructField("seq", LongType()),
    ]
)
_ARROW_CANDIDATES: Final = arrow_schema(_CANDIDATES)
_ARROW_WINNERS: Final = arrow_schema(_WINNERS)
_BATCH_ROWS: Final = 4096
_MOST_KNOWN: Final = 20_000
_NOTHING: Final = Message(Mqmd())

Batches = Iterable[pa.RecordBatch]


def found_retained(
    prepared: Prepared, journals: Broadcast[SubscriptionJournals], winners: list[Winner], *, clears: bool = False
) -> DataFrame | None:
    """The messages that lookups find: the columns of a prepared message, ``at`` for who looks, and ``topic``.

    winners: those that are known already. clears: whether DeletePub looks, too, at what it clears. None where nobody
    looks.
    """
    setting = prepared.setting
    looking = [
        q for q, journal in journals.value.items() if any(clears or look.clears is None for look in journal.lookups)
    ]
    if not looking and not winners:
        return None
    found = prepared.messages.sparkSession.createDataFrame(winners, _WINNERS)
    if looking:
        work = _candidates(setting, frozenset(looking), journals, clears)
        candidates = prepared.in_ranges(work, looking, _CANDIDATES)
        found = found.union(_winners(candidates, setting, journals, clears))
    return prepared.fetched(found)


def _candidates(
    setting: ReplaySetup, qmgrs: frozenset[str], journals: Broadcast[SubscriptionJournals], clears: bool
) -> Work:
    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        places: dict[str, _Candidates] = {}
        rows: list[tuple[Any, ...]] = []
        for batch in batches:
            for seq, now, qmgr, queue, user, md, body in columns(batch, *COLUMNS):
                if qmgr not in qmgrs:
                    continue
                place = places.get(qmgr)
                if place is None:
                    place = places[qmgr] = _Candidates(qmgr, setting, journals.value[qmgr].lookups, clears)
                rows += place.process(Arrival(seq, now, queue, md, body, user))
            if len(rows) >= _BATCH_ROWS:
                yield batch_of(rows, _ARROW_CANDIDATES)
                rows = []
        for place in places.values():
            rows += place.end()
        if rows:
            yield batch_of(rows, _ARROW_CANDIDATES)

    return run


class _Candidates:
    """The retained publications of one queue manager in one range."""

    def __init__(self, qmgr: str, setting: ReplaySetup, lookups: list[Lookup], clears: bool) -> None:
        self._qmgr = qmgr
        self._broker: Broker = setting.broker(qmgr)
        self._broker.space.restore((), ())
        self._looks = _LooksByTopic(look for look in lookups if clears or look.clears is None)
        self._last: dict[str, tuple[int, Publication]] = {}
        self._known: dict[CacheKey, list[tuple[str, Publication]]] = {}

    def process(self, arrival: Arrival) -> Iterator[tuple[Any, ...]]:
        """One message; its result is a candidate once the next one on its topic is known."""
        for topic, publication in self._retained_by(arrival):
            if topic in self._last:
                yield from self._looked_at(topic, arrival.seq)
            self._last[topic] = (arrival.seq, publication)

    def _retained_by(self, arrival: Arrival) -> list[tuple[str, Publication]]:
        """What a message leaves retained, without the message itself. The same header gives the same result."""
        key = cache_key(arrival)
        known = None if key is None else self._known.get(key)
        if known is not None:
            return [(topic, replace(publication, published_at=arrival.now)) for topic, publication in known]
        effects = self._broker.process(arrival).effects
        self._broker.space.forget_retained()
        stored = [effect.retained for effect in effects if isinstance(effect, RetainedStored)]
        found = [(each.topic_string, _without_message(each.publication)) for each in stored]
        # When something expires depends on when it was published.
        lasting = all(publication.expires_at is None for _, publication in found)
        if key is not None and lasting and is_all_header(arrival, len(key[-1])):
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = found
        return found

    def end(self) -> Iterator[tuple[Any, ...]]:
        """What is left at the end of the range."""
        for topic in self._last:
            yield from self._looked_at(topic, None)

    def _looked_at(self, topic: str, before: int | None) -> Iterator[tuple[Any, ...]]:
        seq, publication = self._last[topic]
        if self._looks.any_between(topic, seq, before):
            yield (self._qmgr, topic, seq, pickle.dumps(publication))


def _without_message(published: Published) -> Publication:
    fields = (published.published_at, published.expires_at, published.local, published.stream, published.sub_point)
    return Publication(_NOTHING, *fields)


class _LooksByTopic:
    """Who looks at a topic, and when."""

    def __init__(self, lookups: Iterable[Lookup]) -> None:
        self._index = SubscriptionIndex()
        self._places: list[list[int]] = []
        numbers: dict[tuple[str, str], int] = {}
        for look in lookups:
            number = numbers.setdefault((look.pattern, look.scheme.value), len(numbers))
            if number == len(self._places):
                self._places.append([])
                pseudo = Subscription(number.to_bytes(24, "big"), look.pattern, "", "", look.now, wildcard=look.scheme)
                self._index.add(pseudo)
            self._places[number].append(look.seq)

    def any_between(self, topic: str, after: int, before: int | None) -> bool:
        """Whether anybody looks at *topic* after one message and before another, or ever."""
        for pattern in self._index.match(topic):
            places = self._places[int.from_bytes(pattern.sub_id, "big")]
            at = bisect_right(places, after)
            if at < len(places) and (before is None or places[at] < before):
                return True
        return False


def _winners(
    candidates: DataFrame, setting: ReplaySetup, journals: Broadcast[SubscriptionJournals], clears: bool
) -> DataFrame:
    in_order = candidates.repartition("qmgr", "topic").sortWithinPartitions("qmgr", "seq")

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        timeline: _Timeline | None = None
        current = ""
        rows: list[tuple[Any, ...]] = []
        for batch in batches:
            for qmgr, topic, seq, publication in columns(batch, *_CANDIDATES.names):
                if timeline is None or qmgr != current:
                    if timeline is not None:
                        rows += timeline.until(None)
                    timeline, current = _Timeline(qmgr, setting, journals.value[qmgr].lookups, clears), qmgr
                rows += timeline.until(seq)
                timeline.store(topic, seq, pickle.loads(publication))
            if len(rows) >= _BATCH_ROWS:
                yield batch_of(rows, _ARROW_WINNERS)
                rows = []
        if timeline is not None:
            rows += timeline.until(None)
        if rows:
            yield batch_of(rows, _ARROW_WINNERS)

    return in_order.mapInArrow(run, _WINNERS)


class _Timeline:
    """Some topics of one queue manager: what is retained on them as its lookups come along."""

    def __init__(self, qmgr: str, setting: ReplaySetup, lookups: list[Lookup], clears: bool) -> None:
        self._qmgr, self._lookups, self._clears, self._done = qmgr, lookups, clears, 0
        self._space = setting.broker(qmgr).space
        self._stored: dict[str, int] = {}

    def store(self, topic: str, seq: int, publication: Publication) -> None:
        """A publication of message *seq* is retained."""
        self._space.retain(RetainedPublication(topic, publication))
        self._stored[topic] = seq

    def until(self, seq: int | None) -> Iterator[tuple[Any, ...]]:
        """What the lookups before message *seq*, or all that are left, find."""
        while self._done < len(self._lookups) and (seq is None or self._lookups[self._done].seq < seq):
            look = self._lookups[self._done]
            self._done += 1
            if self._clears or look.clears is None:
                for each in self._space.retained(look.pattern, look.scheme, look.now, heed_blocks=False):
                    topic = each.topic_string
                    yield (self._qmgr, look.seq, topic, self._stored[topic])
            if look.clears is not None:
                self._space.apply(look.clears, look.now)
