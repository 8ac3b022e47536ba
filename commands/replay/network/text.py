"""The comparison of two networks as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from commands.replay.network.comparison import NetworkChange, NetworkReport

_WORDS = {
    NetworkChange.MORE: "more",
    NetworkChange.LESS: "less",
    NetworkChange.TWICE: "twice",
    NetworkChange.LATER: "later",
}
FIGURES: Final = (
    ("queue managers", "queue_managers"),
    ("publications that subscribers get", "deliveries"),
    ("publications sent between queue managers", "publications_sent"),
    ("proxy subscriptions sent or withdrawn", "proxy_flows"),
    ("proxy subscriptions at the end", "proxy_subscriptions"),
    ("retained publications, all copies", "retained_copies"),
)
"""What a person calls each of ``NetworkFigures``."""


def network_report_lines(report: NetworkReport) -> Iterator[str]:
    """The lines of the report."""
    yield f"{'':<44}{'before':>12}{'after':>12}"
    for label, name in FIGURES:
        yield f"{label:<44}{getattr(report.before, name):>12,}{getattr(report.after, name):>12,}"
    yield ""
    if not any(report.totals.values()):
        yield "Every subscriber gets the same."
        return
    yield f"{'subscriber':<44}{'more':>8}{'less':>8}{'twice':>8}{'later':>8}"
    for each in report.subscribers:
        counts = "".join(f"{each.changes.get(change, 0):>8,}" for change in NetworkChange)
        yield f"{f'{each.queue} at {each.qmgr}':<44}{counts}"
    yield ""
    for example in report.examples:
        where = f"{example.queue} at {example.qmgr}"
        yield f"{example.seq:>6}  {where}: {_WORDS[example.change]}: {example.topic}: {example.detail}"
