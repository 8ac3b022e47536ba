"""Metrics of the processor: counted with each unit of work, and step by step for sampled commands.

A sampled command costs some 100 us more than one that a template answers. So after each the sampler waits
for many times as long as it took (``_SHARE``): the cost has a bound, whatever the rate of commands and however large
they are, and at low rates every command is measured.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, Final, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from commands.broker.channel_objects import ServerChannel
from commands.broker.connections import ListenerReport, open_counts, programs
from commands.broker.counts import SubscriptionCounts, TopicCounts
from commands.broker.objects import UNLIMITED_DEPTH
from commands.broker.outcome import Outcome
from commands.broker.subscription_attributes import sub_type
from commands.monitoring.catalogue import BY_NAME, METRICS, PLATFORM, RULE_FILTER, RULE_REFUSED, Kind, Source
from commands.monitoring.server import Health, Signs
from commands.monitoring.trace_context import STAGES, Steps
from commands.qmgr.link_port import ManagedLink
from commands.qmgr.observer import Committed, Ending, ProcessorTally
from commands.qmgr.store import Overview, QueueManagerStore
from commands.qmgr.store.listeners import AskedListeners
from rfh2.constants import REASON_NAMES
from rfh2.errors import QPubSubError
from streams.subscriptions import Subscription

_CLASSES: Final = {Kind.COUNTER: Counter, Kind.GAUGE: Gauge, Kind.HISTOGRAM: Histogram}
_OK: Final = Ending("Publish", "ok")
_SHARE: Final = 1000
_LEVELS: Final = ("info", "warning", "error")


class ProcessorMetrics:
    """The metrics whose source is the processor, for one queue manager.

    unit: counts the commands of the unit of work that is open. due_s: from when on a command is measured step by step,
    of ``time.perf_counter``.
    """

    def __init__(self, registry: CollectorRegistry, qmgr: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a series more for each; qpubsub_start_time_seconds says the same
        self._qmgr = qmgr
        self._of: dict[str, Any] = {}
        for metric in METRICS:
            if metric.source is Source.PROCESSOR:
                options = {"buckets": metric.buckets} if metric.buckets else {}
                made = _CLASSES[metric.kind](
                    metric.name, metric.text, metric.all_labels, registry=registry, **cast(Any, options)
                )
                self._of[metric.name] = made
        plain = {metric.name for metric in METRICS if metric.all_labels == ("qmgr",)}
        self._plain = {name: made.labels(qmgr) for name, made in self._of.items() if name in plain}
        self._stages = {stage: self.labelled("qpubsub_stage_seconds", stage) for stage in STAGES}
        self._kept_back = {rule: self.labelled("qpubsub_kept_back", rule) for rule in (RULE_FILTER, RULE_REFUSED)}
        self.events = {level: self.labelled("qpubsub_log_events", level) for level in _LEVELS}
        self._endings: dict[Ending, tuple[Any, ...]] = {}
        self.due_s = 0.0
        self.unit: ProcessorTally | None = None
        self._plain["qpubsub_in_flight"].set_function(self._in_flight)
        self._plain["qpubsub_start_time_seconds"].set_to_current_time()

    def show(self, health: Health, signs: Signs, clock_s: Callable[[], float]) -> None:
        """Show the state of the process too. clock_s: a clock for how long it runs."""
        began = clock_s()
        self._plain["qpubsub_ready"].set_function(lambda: health.ready().ok)
        self._plain["qpubsub_retrying"].set_function(lambda: signs.waiting is not None)
        self.labelled("ibmmq_qmgr_status", PLATFORM).set_function(lambda: health.phase)
        self.labelled("ibmmq_qmgr_command_server_status", PLATFORM).set_function(lambda: health.phase)
        self.labelled("ibmmq_qmgr_uptime", PLATFORM).set_function(lambda: clock_s() - began)

    def labelled(self, name: str, *values: str) -> Any:
        """One series of a metric with more labels than ``qmgr``."""
        return self._of[name].labels(self._qmgr, *values)

    # Sampling

    def sampled(self, wait_s: float, steps: Steps, outcome: Outcome) -> None:
        """Take the measures of one command. wait_s: from its arrival to its get."""
        ended = steps[-1].end_s
        self.due_s = ended + (ended - steps[0].begin_s) * _SHARE
        self._plain["qpubsub_sampled"].inc()
        self._plain["qpubsub_wait_seconds"].observe(max(wait_s, 0.0))
        for step in steps:
            self._stages[step.stage].observe(step.end_s - step.begin_s)
        if outcome.trace is not None:
            for operation in outcome.trace.operations:
                for passed in operation.passed_over:
                    self.labelled("qpubsub_sampled_kept_back", passed.rule.value).inc()

    # Units of work

    def committed(self, unit: Committed, commit_s: float | None) -> None:
        """Count a unit of work. commit_s: how long its commit took, if that was measured."""
        tally, counts, plain = unit.tally, unit.counts, self._plain
        self.unit = None
        if not tally.commands:
            return
        others = 0
        for ending, times in unit.endings.items():
            others += times
            self._ended(ending, times)
        if tally.commands > others:
            self._ended(_OK, tally.commands - others)
        for name, count in (
            ("qpubsub_bytes", unit.size_bytes),
            ("qpubsub_published", sum(counts.published.values())),
            ("qpubsub_delivered", tally.publications),
            ("qpubsub_responses", tally.responses),
            ("qpubsub_dead_letters", tally.dead_letters),
            ("qpubsub_discarded", tally.discarded),
            ("qpubsub_linked", tally.linked),
            ("qpubsub_units_of_work", 1),
        ):
            if count:
                plain[name].inc(count)
        if counts.filtered:
            self._kept_back[RULE_FILTER].inc(sum(counts.filtered.values()))
        if counts.dead_letters:
            self._kept_back[RULE_REFUSED].inc(sum(counts.dead_letters.values()))
        plain["qpubsub_unit_of_work_commands"].observe(tally.commands)
        if commit_s is not None:
            plain["qpubsub_commit_seconds"].observe(commit_s)

    def backed_out(self) -> None:
        """Count a unit of work that was backed out."""
        self.unit = None
        self._plain["qpubsub_backouts"].inc()

    def _in_flight(self) -> int:
        unit = self.unit  # another thread asks
        return 0 if unit is None else unit.commands

    def _ended(self, ending: Ending, times: int) -> None:
        found = self._endings.get(ending)
        if found is None:
            command = self.labelled("qpubsub_commands", ending.command or "none", ending.completion or "none")
            found = (command,)
            if ending.reason is not None:
                name = REASON_NAMES.get(ending.reason, "")
                found = (command, self.labelled("qpubsub_reasons", str(ending.reason), name))
            self._endings[ending] = found
        for counter in found:
            counter.inc(times)


class EventCounter(logging.Handler):
    """Counts the events of the log by level."""

    def __init__(self, metrics: ProcessorMetrics) -> None:
        super().__init__()
        self._events = metrics.events

    def emit(self, record: logging.LogRecord) -> None:
        level = "error" if record.levelno >= logging.ERROR else record.levelname.lower()
        counter = self._events.get(level)
        if counter is not None:
            counter.inc()


# Metrics of queues, topics, subscriptions and the link: read at each scrape, and never by the processor's thread.
#
# Each scrape reads the database as ``status`` does: committed data, at one moment, without delaying the processor. A
# series for each queue, topic or subscription costs memory in every monitor: patterns choose them, up to a limit.

MOST_SERIES: Final = 5_000
_NEVER: Final = -1.0
# MQSVC_STATUS_RUNNING, which is also what status_squash calls a channel that runs; MQCHS_*.
_RUNNING: Final = 2
_MQCHS_RUNNING: Final = 3
_MQCHS_STOPPED: Final = 6
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
                seen = store.overview()
                overview(families, seen, choice, now)
                reports = AskedListeners(store.database).reports()
                connected(families, reports, choice)
                channels(families, seen.objects.server_channels, reports)
                if choice.topics or choice.subscriptions:
                    with store.one_moment():
                        of_subscriptions, of_topics = store.counts()
                        known = store.load_state()[1]
                    topics(families, known, of_topics, of_subscriptions, choice, now)
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
    for lane, count, since in seen.undelivered:
        families.add("qpubsub_owed", count, lane or _DEAD_LETTERS)
        families.add("qpubsub_owed_oldest_seconds", _age(since, now), lane or _DEAD_LETTERS)
    families.add("qpubsub_subscriptions", seen.subscriptions)
    families.add("qpubsub_retained", seen.retained)
    for part, size in (("file", seen.file_bytes), ("free", seen.free_bytes), ("log", seen.log_bytes)):
        families.add("qpubsub_database_bytes", size, part)


def connected(families: Families, reports: Sequence[ListenerReport], choice: Chosen) -> None:
    """The programs that are connected, and what was done by each channel."""
    inputs, outputs = open_counts(reports)
    families.add("ibmmq_qmgr_connection_count", sum(1 for _ in programs(reports)))
    families.add("ibmmq_qmgr_active_listeners", sum(len(report.places) for report in reports))
    for name in [each for each in sorted(inputs | outputs) if each and chosen(each, choice.queues)][:MOST_SERIES]:
        families.add("ibmmq_queue_input_handles", inputs[name], name)
        families.add("ibmmq_queue_output_handles", outputs[name], name)
    for channel in sorted({name for report in reports for name in report.totals}):
        instances = [each for report in reports for each in report.instances if each.channel == channel]
        families.add("qpubsub_channel_connections", len(instances), channel)
        families.add("qpubsub_channel_programs", sum(len(each.programs) for each in instances), channel)
        for count in ("calls", "puts", "gets", "received_bytes", "sent_bytes"):
            total = sum(getattr(report.totals[channel], count) for report in reports if channel in report.totals)
            families.add(f"qpubsub_channel_{count}", total, channel)


def channels(families: Families, defined: Mapping[str, ServerChannel], reports: Sequence[ListenerReport]) -> None:
    """Each channel of clients, all its connections together, in IBM's names."""
    families.add("ibmmq_qmgr_channel_initiator_status", _RUNNING if any(each.places for each in reports) else 0)
    stopped = {name for report in reports for name in report.stopped}
    used = {name for report in reports for name in report.totals}
    for name in sorted(defined.keys() | used)[:MOST_SERIES]:
        labels, channel = (name, "SVRCONN"), defined.get(name)
        instances = sum(each.channel == name for report in reports for each in report.instances)
        idle = _MQCHS_STOPPED if name in stopped else 0
        families.add("ibmmq_channel_status", _MQCHS_RUNNING if instances else idle, *labels)
        families.add("ibmmq_channel_status_squash", _RUNNING if instances else 0, *labels)
        families.add("ibmmq_channel_cur_inst", instances, *labels)
        if channel is not None:
            families.add("ibmmq_channel_attribute_max_inst", channel.instances, *labels)
            families.add("ibmmq_channel_attribute_max_instc", channel.instances_of_client, *labels)
        totals = [report.totals[name] for report in reports if name in report.totals]
        for series, count in (("messages", "calls"), ("bytes_rcvd", "received_bytes"), ("bytes_sent", "sent_bytes")):
            families.add(f"ibmmq_channel_{series}", sum(getattr(each, count) for each in totals), *labels)


def topics(
    families: Families,
    known: Sequence[Subscription],
    counts: Mapping[str, TopicCounts],
    of_subscriptions: Mapping[bytes, SubscriptionCounts],
    choice: Chosen,
    now: datetime,
) -> None:
    """The topics that are chosen: those published on, with ``type="pub"``, and those subscribed to, ``type="sub"``."""
    published = sorted(topic for topic in counts if chosen(topic, choice.topics))
    subscribers: dict[str, int] = {}
    received: dict[str, SubscriptionCounts] = {}
    for subscription in known:
        if chosen(topic := subscription.topic_string, choice.topics):
            subscribers[topic] = subscribers.get(topic, 0) + 1
            so_far = received.setdefault(topic, SubscriptionCounts())
            more = of_subscriptions.get(subscription.sub_id, SubscriptionCounts())
            so_far.delivered += more.delivered
            so_far.last = max(filter(None, (so_far.last, more.last)), default=None)
    left_out = sum(max(len(names) - MOST_SERIES, 0) for names in (published, subscribers))
    families.add("qpubsub_series_left_out", left_out, "topic")
    for topic in published[:MOST_SERIES]:
        of = counts[topic]
        families.add("ibmmq_topic_messages_published", of.publications, topic, "pub")
        families.add("ibmmq_topic_time_since_msg_published", _age(of.last, now), topic, "pub")
        families.add("ibmmq_topic_publisher_count", 1, topic, "pub")
    for topic in sorted(subscribers)[:MOST_SERIES]:
        families.add("ibmmq_topic_subscriber_count", subscribers[topic], topic, "sub")
        families.add("ibmmq_topic_messages_received", received[topic].delivered, topic, "sub")
        families.add("ibmmq_topic_time_since_msg_received", _age(received[topic].last, now), topic, "sub")


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
