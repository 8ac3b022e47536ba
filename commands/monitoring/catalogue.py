"""All metrics: the one table from which they are made, the page docs/metrics.md, and the Grafana board is checked.

Metrics with ``ibmmq_`` have the names, labels and meanings of IBM's mq-metric-samples, so that boards and alerts made
for those work. The others have no counterpart there. A counter is zero when the processor starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """A Prometheus type."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Source(StrEnum):
    """Where a metric is taken. STATE: the database of the queue manager, at each scrape."""

    PROCESSOR = "processor"
    LINK = "link"
    STATE = "state"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. name: without the suffixes that the type adds. labels: beside ``qmgr``, which all have.

    buckets: upper bounds of a histogram.
    """

    name: str
    kind: Kind
    source: Source
    text: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def all_labels(self) -> tuple[str, ...]:
        """With those that all metrics of its family have."""
        return ("qmgr", "platform", *self.labels) if self.is_ibms else ("qmgr", *self.labels)

    @property
    def is_ibms(self) -> bool:
        """Whether IBM's samples have it."""
        return self.name.startswith("ibmmq_")

    @property
    def series(self) -> tuple[str, ...]:
        """The names in queries."""
        if self.kind is Kind.COUNTER:
            return (f"{self.name}_total",)
        if self.kind is Kind.HISTOGRAM:
            return tuple(f"{self.name}_{suffix}" for suffix in ("bucket", "sum", "count"))
        return (self.name,)


_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM
_P, _L, _S = Source.PROCESSOR, Source.LINK, Source.STATE
_QUICK: Final = (1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 0.01, 0.05, 0.25, 1.0, 10.0)
_COMMIT: Final = (5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
_WAIT: Final = (1e-3, 5e-3, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0, 3600.0)
_MANY: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_QUEUE: Final = ("queue",)
_CHANNEL: Final = ("channel",)
_IBMS_CHANNEL: Final = ("channel", "type")

METRICS: Final[tuple[Metric, ...]] = (
    # got
    Metric("qpubsub_commands", _C, _P, "Commands processed, by name and completion.", ("command", "completion")),
    Metric("qpubsub_reasons", _C, _P, "Commands that ended with a reason code.", ("reason", "name")),
    Metric("qpubsub_bytes", _C, _P, "Bytes of messages removed and put."),
    Metric("qpubsub_in_flight", _G, _P, "Commands got and not yet committed."),
    Metric("qpubsub_sampled", _C, _P, "Commands measured step by step."),
    Metric("qpubsub_wait_seconds", _H, _P, "From the arrival of a command to its get. Sampled.", (), _WAIT),
    # decoded, matched, delivered
    Metric(
        "qpubsub_stage_seconds",
        _H,
        _P,
        "Time of one step of a command: decode, match, deliver. Sampled.",
        ("stage",),
        _QUICK,
    ),
    Metric("qpubsub_published", _C, _P, "Publications on topics, with or without a subscriber."),
    Metric("qpubsub_delivered", _C, _P, "Publications put on subscriber queues."),
    Metric(
        "qpubsub_kept_back",
        _C,
        _P,
        "Publications kept back: by a selection string, or a queue.",
        ("rule",),
    ),
    Metric(
        "qpubsub_sampled_kept_back",
        _C,
        _P,
        "Publications kept back, by rule, of the sampled commands alone.",
        ("rule",),
    ),
    Metric("qpubsub_responses", _C, _P, "Responses put."),
    Metric("qpubsub_dead_letters", _C, _P, "Messages put on the dead-letter queue."),
    Metric("qpubsub_discarded", _C, _P, "Commands discarded (PSNPMSG)."),
    Metric("qpubsub_linked", _C, _P, "Publications for the linked topic tree."),
    # committed
    Metric("qpubsub_units_of_work", _C, _P, "Units of work committed."),
    Metric("qpubsub_backouts", _C, _P, "Units of work backed out; their commands are tried again."),
    Metric("qpubsub_commit_seconds", _H, _P, "Time of a commit.", (), _COMMIT),
    Metric("qpubsub_unit_of_work_commands", _H, _P, "Commands in a unit of work.", (), _MANY),
    # the process
    Metric("qpubsub_start_time_seconds", _G, _P, "When the processor started, Unix time."),
    Metric("qpubsub_ready", _G, _P, "1 if /readyz says so, else 0."),
    Metric("qpubsub_retrying", _G, _P, "1 while the processor cannot go on and tries again, else 0."),
    Metric("qpubsub_log_events", _C, _P, "Events in the log.", ("level",)),
    Metric("ibmmq_qmgr_status", _G, _P, "MQQMSTA: 1 starting, 2 running, 3 quiescing, 4 standby."),
    Metric("ibmmq_qmgr_uptime", _G, _P, "Seconds since the processor started."),
    Metric(
        "ibmmq_qmgr_command_server_status", _G, _P, "MQSVC_STATUS of the processor, which is the command server too."
    ),
    # the link
    Metric("qpubsub_link_connected", _G, _L, "1 if the topic tree is connected, else 0."),
    Metric("qpubsub_link_received", _C, _L, "Publications taken from the topic tree."),
    Metric("qpubsub_link_sent", _C, _L, "Publications that the topic tree has answered for."),
    Metric("qpubsub_link_refused", _C, _L, "Publications that the topic tree refused; they are dead letters."),
    # queues
    Metric("ibmmq_queue_depth", _G, _S, "Messages on the queue.", _QUEUE),
    Metric("ibmmq_queue_attribute_max_depth", _G, _S, "MAXDEPTH.", _QUEUE),
    Metric("ibmmq_queue_oldest_message_age", _G, _S, "Seconds since the oldest message arrived.", _QUEUE),
    Metric("ibmmq_queue_time_since_put", _G, _S, "Seconds since the last put; -1 for none.", _QUEUE),
    Metric("ibmmq_queue_time_since_get", _G, _S, "Seconds since the last get; -1 for none.", _QUEUE),
    Metric("qpubsub_queue_puts", _C, _S, "Messages put on the queue since it was made.", _QUEUE),
    Metric("qpubsub_queue_gets", _C, _S, "Messages got from the queue since it was made.", _QUEUE),
    Metric("qpubsub_owed", _G, _S, "Publications that neither this queue nor the dead-letter queue takes.", _QUEUE),
    Metric("qpubsub_owed_oldest_seconds", _G, _S, "Seconds since the oldest of these was published.", _QUEUE),
    # programs that are connected
    Metric("ibmmq_qmgr_connection_count", _G, _S, "Programs that are connected by a listener."),
    Metric("ibmmq_qmgr_active_listeners", _G, _S, "Listeners."),
    Metric("ibmmq_qmgr_channel_initiator_status", _G, _S, "MQSVC_STATUS: 2 while there is a listener, else 0."),
    Metric("ibmmq_queue_input_handles", _G, _S, "Handles that programs have open for input (IPPROCS).", _QUEUE),
    Metric("ibmmq_queue_output_handles", _G, _S, "Handles that programs have open for output (OPPROCS).", _QUEUE),
    Metric(
        "qpubsub_channel_connections", _G, _S, "Connections by the channel, each of one or several programs.", _CHANNEL
    ),
    Metric("qpubsub_channel_programs", _G, _S, "Programs that are connected by the channel.", _CHANNEL),
    Metric("qpubsub_channel_calls", _C, _S, "MQI calls since the listener started.", _CHANNEL),
    Metric("qpubsub_channel_puts", _C, _S, "Messages put since the listener started.", _CHANNEL),
    Metric("qpubsub_channel_gets", _C, _S, "Messages got since the listener started.", _CHANNEL),
    Metric("qpubsub_channel_received_bytes", _C, _S, "Bytes received since the listener started.", _CHANNEL),
    Metric("qpubsub_channel_sent_bytes", _C, _S, "Bytes sent since the listener started.", _CHANNEL),
    Metric("ibmmq_channel_status", _G, _S, "MQCHS: 3 running, 0 inactive, 6 stopped.", _IBMS_CHANNEL),
    Metric("ibmmq_channel_status_squash", _G, _S, "The same: 2 running, 0 not.", _IBMS_CHANNEL),
    Metric("ibmmq_channel_cur_inst", _G, _S, "Connections by the channel.", _IBMS_CHANNEL),
    Metric("ibmmq_channel_attribute_max_inst", _G, _S, "MAXINST.", _IBMS_CHANNEL),
    Metric("ibmmq_channel_attribute_max_instc", _G, _S, "MAXINSTC.", _IBMS_CHANNEL),
    Metric("ibmmq_channel_messages", _G, _S, "MQI calls since the listener started (MSGS).", _IBMS_CHANNEL),
    Metric("ibmmq_channel_bytes_rcvd", _G, _S, "Bytes received since the listener started.", _IBMS_CHANNEL),
    Metric("ibmmq_channel_bytes_sent", _G, _S, "Bytes sent since the listener started.", _IBMS_CHANNEL),
    # topics and subscriptions, where the configuration names them
    Metric(
        "ibmmq_topic_messages_published",
        _G,
        _S,
        "Publications on the topic since it is in the tree (NUMPUBS).",
        ("topic", "type"),
    ),
    Metric("ibmmq_topic_time_since_msg_published", _G, _S, "Seconds since the last publication.", ("topic", "type")),
    Metric("ibmmq_topic_publisher_count", _G, _S, "1: the processor, which publishes for all.", ("topic", "type")),
    Metric(
        "ibmmq_topic_messages_received", _G, _S, "Publications put for its subscriptions (NUMMSGS).", ("topic", "type")
    ),
    Metric("ibmmq_topic_time_since_msg_received", _G, _S, "Seconds since the last; -1 for none.", ("topic", "type")),
    Metric("ibmmq_topic_subscriber_count", _G, _S, "Subscriptions with this topic string.", ("topic", "type")),
    Metric(
        "ibmmq_subscription_messsages_received",
        _G,
        _S,
        "Publications put on its queue (NUMMSGS); the name is spelt as IBM spells it.",
        ("subid", "subscription", "topic", "type"),
    ),
    Metric(
        "ibmmq_subscription_time_since_message_published",
        _G,
        _S,
        "Seconds since the last of these; -1 for none.",
        ("subid", "subscription", "topic", "type"),
    ),
    # the state
    Metric("qpubsub_state_read", _G, _S, "1 if the state could be read for this scrape, else 0."),
    Metric("qpubsub_series_left_out", _G, _S, "Queues, topics and subscriptions beyond the limit.", ("kind",)),
    Metric("qpubsub_subscriptions", _G, _S, "Subscriptions."),
    Metric("qpubsub_retained", _G, _S, "Retained publications."),
    Metric("qpubsub_database_bytes", _G, _S, "Size of the database, its free part, its log.", ("part",)),
)

BY_NAME: Final[dict[str, Metric]] = {metric.name: metric for metric in METRICS}

RULE_FILTER, RULE_REFUSED = "filter", "queue-refused"
PLATFORM: Final = "UNIX"
"""The label that IBM's samples have for queue managers on Linux and AIX."""
