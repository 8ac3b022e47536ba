"""The metrics of ``qpubsub run``: name, type, labels, meaning."""

from __future__ import annotations

from commands.monitoring.catalogue import METRICS, Kind, Source
from extension.markdown import NOTHING, Table, code, escape


def table(source: str) -> Table:
    """The metrics of one source: processor, link or state."""
    rows = tuple(
        (
            code(metric.series[0] if metric.kind is Kind.COUNTER else metric.name),
            metric.kind.value,
            ", ".join(code(label) for label in metric.labels) or NOTHING,
            escape(metric.text),
        )
        for metric in METRICS
        if metric.source is Source(source)
    )
    return Table(("metric", "type", "labels", "meaning"), rows)
