"""Metrics of queues, topics, subscriptions and the link: read at each scrape, and never by the processor's thread.

Each scrape reads the database as ``status`` does: committed data, at one moment, without delaying the processor. A
series for each queue, topic or subscription costs memory in every monitor: patterns choose them, up to a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from commands.broker.counts import SubscriptionCounts, TopicCounts
from commands.broker.objects import UNLIMITED_DEPTH
from commands.monitoring.catalogue import BY_NAME, PLATFORM, Kind
from commands.mqsc.subscription_display import sub_type
from commands.qmgr.link_port import ManagedLink
from commands.qmgr.store import Overview, QueueManagerStore
from rfh2.errors import QPubSubError
from streams.subscriptions import Subscription

MOST_SERIES: Final = 5_000
_NEVER: Final = -1.0
_DEAD_LETTERS: Final = "(dead letters)"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which series there are: patterns with ``*``, the first that fits decides; ``!`` before one that is left out."""

    queues: tuple[str, ...] = ("*",)
    topics: tuple[str, ...] = ()
    subscriptions: tuple[str, ...] = ()


def chosen(name: str, patterns: Sequence[str]) -> bool:
    """Whether *patterns* choose *name*."""
    for pattern in patterns:
        if fnmatchcase(name, pattern.removeprefix("!")):
            return not pattern.startswith("!")
    return False


class Families:
    """The families of one scrape, as the catalogue describes them."""

    def __init__(self, qmgr: str) -> None:
        self._qmgr = qmgr
        self._families: dict[str, Metric] = {}

    def add(self, name: str, value: float, *labels: str) -> None:
        """Add one series. labels: beside ``qmgr`` and ``platform``."""
        metric = BY_NAME[name]
        family = self._families.get(name)
        if family is None:
            kind = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
            family = self._families[name] = kind(name, metric.text, labels=metric.all_labels)
        own = (self._qmgr, PLATFORM) if metric.is_ibms else (self._qmgr,)
        family.add_metric((*own, *labels), value)  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._families.values())


class StateCollector(Collector):
    """Reads the state at each scrape. open_store: the embedded queue manager, opened anew. link: None for none."""

    def __init__(
        self, open_store: Callable[[], QueueManagerStore], qmgr: str, choice: Chosen, link: ManagedLink | None
    ) -> None:
        self._open, self._qmgr, self._chosen, self._link = open_store, qmgr, choice, link

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        families = Families(self._qmgr)
        if self._link is not None:
            link(families, self._link)
        now, choice = datetime.now(UTC), self._chosen
        try:
            with self._open() as store:
                overview(families, store.overview(), choice, now)
                if choice.topics or choice.subscriptions:
                    with store.one_moment():
                        of_subscriptions, of_topics = store.counts()
                        known = store.load_state()[1]
                    topics(families, known, of_topics, choice, now)
                    subscriptions(families, known, of_subscriptions, choice, now)
        except (QPubSubError, OSError):
            families.add("qpubsub_state_read", 0)
        else:
            families.add("qpubsub_state_read", 1)
        return families


def link(families: Families, counts: ManagedLink) -> None:
    """What the link has carried."""
    families.add("qpubsub_link_connected", counts.state.connected)
    families.add("qpubsub_link_received", counts.received)
    families.add("qpubsub_link_sent", counts.sent)
    families.add("qpubsub_link_refused", counts.refused)


def overview(families: Families, seen: Overview, choice: Chosen, now: datetime) -> None:
    """Queues, and the numbers of everything."""
    names = [queue for queue in seen.queues if chosen(queue.definition.name, choice.queues)]
    families.add("qpubsub_series_left_out", max(len(names) - MOST_SERIES, 0), "queue")
    for queue in names[:MOST_SERIES]:
        name, counts = queue.definition.name, queue.counts
        families.add("ibmmq_queue_depth", queue.depth, name)
        if queue.definition.max_depth < UNLIMITED_DEPTH:
            families.add("ibmmq_queue_attribute_max_depth", queue.definition.max_depth, name)
        families.add("ibmmq_queue_oldest_message_age", _age(queue.oldest, now, nothing=0.0), name)
        families.add("ibmmq_queue_time_since_put", _age(counts.last_put, now), name)
        families.add("ibmmq_queue_time_since_get", _age(counts.last_get, now), name)
        families.add("qpubsub_queue_puts", counts.puts, name)
        families.add("qpubsub_queue_gets", counts.gets, name)
    for lane, count, since in seen.owed:
        families.add("qpubsub_owed", count, lane or _DEAD_LETTERS)
        families.add("qpubsub_owed_oldest_seconds", _age(since, now), lane or _DEAD_LETTERS)
    families.add("qpubsub_subscriptions", seen.subscriptions)
    families.add("qpubsub_retained", seen.retained)
    for part, size in (("file", seen.file_bytes), ("free", seen.free_bytes), ("log", seen.log_bytes)):
        families.add("qpubsub_database_bytes", size, part)


def topics(
    families: Families,
    known: Sequence[Subscription],
    counts: Mapping[str, TopicCounts],
    choice: Chosen,
    now: datetime,
) -> None:
    """The topics that are chosen: those published on, with ``type="pub"``, and those subscribed to, ``type="sub"``."""
    published = sorted(topic for topic in counts if chosen(topic, choice.topics))
    subscribers: dict[str, int] = {}
    for subscription in known:
        if chosen(subscription.topic_string, choice.topics):
            subscribers[subscription.topic_string] = subscribers.get(subscription.topic_string, 0) + 1
    left_out = sum(max(len(names) - MOST_SERIES, 0) for names in (published, subscribers))
    families.add("qpubsub_series_left_out", left_out, "topic")
    for topic in published[:MOST_SERIES]:
        of = counts[topic]
        families.add("ibmmq_topic_messages_published", of.publications, topic, "pub")
        families.add("ibmmq_topic_time_since_msg_published", _age(of.last, now), topic, "pub")
    for topic in sorted(subscribers)[:MOST_SERIES]:
        families.add("ibmmq_topic_subscriber_count", subscribers[topic], topic, "sub")


def subscriptions(
    families: Families,
    known: Sequence[Subscription],
    counts: Mapping[bytes, SubscriptionCounts],
    choice: Chosen,
    now: datetime,
) -> None:
    """The subscriptions whose name, or topic string where they have none, is chosen."""
    names = [each for each in known if chosen(each.name or each.topic_string, choice.subscriptions)]
    families.add("qpubsub_series_left_out", max(len(names) - MOST_SERIES, 0), "subscription")
    for each in names[:MOST_SERIES]:
        of = counts.get(each.sub_id, SubscriptionCounts())
        labels = (each.sub_id.hex().upper(), each.name or "", each.topic_string, sub_type(each))
        families.add("ibmmq_subscription_messsages_received", of.delivered, *labels)
        families.add("ibmmq_subscription_time_since_message_published", _age(of.last, now), *labels)


def _age(moment: datetime | None, now: datetime, nothing: float = _NEVER) -> float:
    return nothing if moment is None else max((now - moment).total_seconds(), 0.0)
