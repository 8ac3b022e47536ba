"""The Grafana board: ``python -m tests.board`` writes deploy/grafana/qpubsub.json again.

The panels are a table here; what a panel says about its metrics comes from the catalogue (commands.monitoring).
``tests/test_board.py`` checks each expression against the catalogue: metrics, labels, and what a counter is used for.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from commands.monitoring.catalogue import METRICS, Metric

BOARD: Final = Path(__file__).parents[1] / "deploy" / "grafana" / "qpubsub.json"
SERIES: Final[dict[str, Metric]] = {series: metric for metric in METRICS for series in metric.series}
_NAME: Final = re.compile(r"\b(?:qpubsub|ibmmq)_\w+")
_WIDTH, _HEIGHT = 24, 8
_OF_CHANNEL: Final = "{{qmgr}} {{channel}}"


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. unit: Grafana's name. queries: expression and legend; ``%s`` stands for the chosen queue managers.

    stat: a single number instead of a graph.
    """

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    stat: bool = False

    @property
    def expressions(self) -> tuple[str, ...]:
        """As Grafana sends them."""
        return tuple(expression.replace("%s", 'qmgr=~"$qmgr"') for expression, _ in self.queries)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that it shows."""
        names = (name for expression in self.expressions for name in _NAME.findall(expression))
        return tuple(dict.fromkeys(SERIES[name] for name in names))


def _rate(series: str, by: str = "qmgr", where: str = "") -> str:
    selected = f"%s,{where}" if where else "%s"
    return f"sum by ({by}) (rate({series}{{{selected}}}[$__rate_interval]))"


def _mean(name: str) -> str:
    return f"{_rate(f'{name}_sum')} / {_rate(f'{name}_count')}"


def _quantile(q: float, name: str, by: str) -> str:
    return f"histogram_quantile({q}, {_rate(f'{name}_bucket', f'le, {by}')})"


ROWS: Final[tuple[tuple[str, tuple[Panel, ...]], ...]] = (
    (
        "Now",
        (
            Panel("Ready", "bool_yes_no", (("max by (qmgr) (qpubsub_ready{%s})", "{{qmgr}}"),), stat=True),
            Panel(
                "Commands waiting",
                "short",
                (('sum by (qmgr) (ibmmq_queue_depth{%s,queue=~"$input"})', "{{qmgr}}"),),
                True,
            ),
            Panel(
                "First command waits for",
                "s",
                (('max by (qmgr) (ibmmq_queue_oldest_message_age{%s,queue=~"$input"})', "{{qmgr}}"),),
                True,
            ),
            Panel(
                "Dead letters", "short", (('sum by (qmgr) (ibmmq_queue_depth{%s,queue=~"$dead"})', "{{qmgr}}"),), True
            ),
            Panel("Owed to subscribers", "short", (("sum by (qmgr) (qpubsub_owed{%s})", "{{qmgr}}"),), True),
            Panel("Topic tree", "bool_yes_no", (("min by (qmgr) (qpubsub_link_connected{%s})", "{{qmgr}}"),), True),
        ),
    ),
    (
        "Flow",
        (
            Panel(
                "Commands a second",
                "ops",
                ((_rate("qpubsub_commands_total", "qmgr, command"), "{{qmgr}} {{command}}"),),
            ),
            Panel(
                "Publications",
                "ops",
                (
                    (_rate("qpubsub_published_total"), "{{qmgr}} published"),
                    (_rate("qpubsub_delivered_total"), "{{qmgr}} delivered"),
                    (_rate("qpubsub_kept_back_total", "qmgr, rule"), "{{qmgr}} kept back: {{rule}}"),
                ),
            ),
            Panel("Bytes a second", "Bps", ((_rate("qpubsub_bytes_total"), "{{qmgr}}"),)),
            Panel(
                "Rules that kept publications back (sampled)",
                "ops",
                ((_rate("qpubsub_sampled_kept_back_total", "qmgr, rule"), "{{qmgr}} {{rule}}"),),
            ),
        ),
    ),
    (
        "Errors",
        (
            Panel(
                "Commands in error",
                "ops",
                (
                    (
                        _rate("qpubsub_commands_total", "qmgr, command", 'completion="error"'),
                        "{{qmgr}} {{command}}",
                    ),
                ),
            ),
            Panel(
                "By reason",
                "ops",
                ((_rate("qpubsub_reasons_total", "qmgr, reason, name"), "{{qmgr}} {{reason}} {{name}}"),),
            ),
            Panel(
                "Dead letters and discarded",
                "ops",
                (
                    (_rate("qpubsub_dead_letters_total"), "{{qmgr}} dead letters"),
                    (_rate("qpubsub_discarded_total"), "{{qmgr}} discarded"),
                ),
            ),
            Panel(
                "Units of work backed out, and retries",
                "short",
                (
                    (_rate("qpubsub_backouts_total"), "{{qmgr}} backed out"),
                    ("max by (qmgr) (qpubsub_retrying{%s})", "{{qmgr}} retrying"),
                ),
            ),
        ),
    ),
    (
        "Time",
        (
            Panel(
                "Wait of a command (sampled)",
                "s",
                (
                    (_quantile(0.5, "qpubsub_wait_seconds", "qmgr"), "{{qmgr}} half"),
                    (_quantile(0.99, "qpubsub_wait_seconds", "qmgr"), "{{qmgr}} 99 %"),
                ),
            ),
            Panel(
                "Steps of a command, 99 % (sampled)",
                "s",
                ((_quantile(0.99, "qpubsub_stage_seconds", "qmgr, stage"), "{{qmgr}} {{stage}}"),),
            ),
            Panel(
                "Commit",
                "s",
                (
                    (_quantile(0.5, "qpubsub_commit_seconds", "qmgr"), "{{qmgr}} half"),
                    (_quantile(0.99, "qpubsub_commit_seconds", "qmgr"), "{{qmgr}} 99 %"),
                ),
            ),
            Panel(
                "Commands in a unit of work",
                "short",
                (
                    (
                        _mean("qpubsub_unit_of_work_commands"),
                        "{{qmgr}} mean",
                    ),
                    ("max by (qmgr) (qpubsub_in_flight{%s})", "{{qmgr}} in flight"),
                ),
            ),
        ),
    ),
    (
        "Programs",
        (
            Panel(
                "Programs by channel",
                "short",
                (("sum by (qmgr, channel) (qpubsub_channel_programs{%s})", _OF_CHANNEL),),
            ),
            Panel("MQI calls", "ops", ((_rate("qpubsub_channel_calls_total", "qmgr, channel"), _OF_CHANNEL),)),
            Panel(
                "Messages put and got",
                "ops",
                (
                    (_rate("qpubsub_channel_puts_total", "qmgr, channel"), f"{_OF_CHANNEL} put"),
                    (_rate("qpubsub_channel_gets_total", "qmgr, channel"), f"{_OF_CHANNEL} got"),
                ),
            ),
            Panel(
                "Bytes received and sent",
                "Bps",
                (
                    (_rate("qpubsub_channel_received_bytes_total", "qmgr, channel"), f"{_OF_CHANNEL} received"),
                    (_rate("qpubsub_channel_sent_bytes_total", "qmgr, channel"), f"{_OF_CHANNEL} sent"),
                ),
            ),
        ),
    ),
    (
        "Queues",
        (
            Panel("Depth", "short", (("topk(20, ibmmq_queue_depth{%s} > 0)", "{{qmgr}} {{queue}}"),)),
            Panel(
                "How full",
                "percentunit",
                (("topk(20, ibmmq_queue_depth{%s} / ibmmq_queue_attribute_max_depth{%s} > 0)", "{{qmgr}} {{queue}}"),),
            ),
            Panel("Oldest message", "s", (("topk(20, ibmmq_queue_oldest_message_age{%s} > 0)", "{{qmgr}} {{queue}}"),)),
            Panel(
                "Puts and gets",
                "ops",
                (
                    ("topk(20, rate(qpubsub_queue_puts_total{%s}[$__rate_interval]) > 0)", "{{qmgr}} {{queue}} puts"),
                    ("topk(20, rate(qpubsub_queue_gets_total{%s}[$__rate_interval]) > 0)", "{{qmgr}} {{queue}} gets"),
                ),
            ),
        ),
    ),
    (
        "State and topic tree",
        (
            Panel(
                "Subscriptions and retained publications",
                "short",
                (
                    ("qpubsub_subscriptions{%s}", "{{qmgr}} subscriptions"),
                    ("qpubsub_retained{%s}", "{{qmgr}} retained"),
                ),
            ),
            Panel("Database", "bytes", (("qpubsub_database_bytes{%s}", "{{qmgr}} {{part}}"),)),
            Panel(
                "Topic tree",
                "ops",
                (
                    (_rate("qpubsub_link_received_total"), "{{qmgr}} received"),
                    (_rate("qpubsub_link_sent_total"), "{{qmgr}} sent"),
                    (_rate("qpubsub_link_refused_total"), "{{qmgr}} refused"),
                ),
            ),
            Panel(
                "Log",
                "ops",
                (
                    (
                        _rate("qpubsub_log_events_total", "qmgr, level", 'level!="info"'),
                        "{{qmgr}} {{level}}",
                    ),
                ),
            ),
        ),
    ),
)

_SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
# The variables of the board: a queue manager that has the metrics, and names of queues that a site may have changed.
_VARIABLES: Final[list[dict[str, Any]]] = [
    {"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"},
    {
        "name": "qmgr",
        "label": "Queue manager",
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": "label_values(qpubsub_ready, qmgr)", "refId": "qmgr"},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "current": {"text": "All", "value": "$__all"},
    },
    {"name": "input", "label": "Input queues", "type": "textbox", "query": "SYSTEM.BROKER.*"},
    {"name": "dead", "label": "Dead-letter queue", "type": "textbox", "query": "SYSTEM.DEAD.LETTER.QUEUE"},
]


def panels() -> tuple[Panel, ...]:
    """All panels."""
    return tuple(panel for _, row in ROWS for panel in row)


def board() -> dict[str, Any]:
    """The board as Grafana imports it."""
    made: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS:
        made.append(
            {"id": len(made) + 1, "type": "row", "title": title, "gridPos": {"x": 0, "y": y, "w": _WIDTH, "h": 1}}
        )
        y += 1
        width, height = _WIDTH // len(row), _HEIGHT // 2 if row[0].stat else _HEIGHT
        for number, panel in enumerate(row):
            place = {"x": number * width, "y": y, "w": width, "h": height}
            made.append(_panel(panel, len(made) + 1, place))
        y += height
    return {
        "uid": "qpubsub",
        "title": "qpubsub",
        "description": "Queue managers of qpubsub run --metrics.",
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "tags": ["qpubsub", "ibmmq"],
        "templating": {"list": _VARIABLES},
        "panels": made,
    }


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + n), "datasource": _SOURCE, "expr": expression, "legendFormat": legend}
        for n, (expression, (_, legend)) in enumerate(zip(panel.expressions, panel.queries, strict=True))
    ]
    text = "\n\n".join(f"{metric.name}: {metric.text}" for metric in panel.metrics)
    return {
        "id": number,
        "type": "stat" if panel.stat else "timeseries",
        "title": panel.title,
        "description": text,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


def rendered() -> str:
    """The board's file."""
    return json.dumps(board(), indent=2) + "\n"


if __name__ == "__main__":
    BOARD.write_text(rendered(), encoding="utf-8")
