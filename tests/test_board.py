"""The Grafana board asks for metrics and labels that there are, and asks as their types want to be asked."""

from __future__ import annotations

import json
import re

import pytest

from commands.monitoring.catalogue import METRICS, Kind
from tests.board import BOARD, SERIES, board, panels, rendered

EXPRESSIONS = [
    (f"{panel.title} {n}", expression, legend)
    for panel in panels()
    for n, (expression, (_, legend)) in enumerate(zip(panel.expressions, panel.queries, strict=True))
]
# What a label is compared with may hold anything but a quote.
SELECTOR = re.compile(r"\b((?:qpubsub|ibmmq)_\w+)(\{[^}]*\})?(\[\$__rate_interval\])?")
LABEL = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"')


def test_the_file_is_what_the_table_makes() -> None:
    assert BOARD.read_text(encoding="utf-8") == rendered(), "run: python -m tests.board"


@pytest.mark.parametrize(
    ("expression", "legend"), [row[1:] for row in EXPRESSIONS], ids=[row[0] for row in EXPRESSIONS]
)
def test_an_expression_names_metrics_and_labels_that_exist(expression: str, legend: str) -> None:
    found = SELECTOR.findall(expression)
    assert found, "an expression asks for something"
    labels: set[str] = set()
    for series, selector, interval in found:
        assert series in SERIES, f"there is no {series}"
        metric = SERIES[series]
        assert bool(interval) is (metric.kind is not Kind.GAUGE), "a rate of what only grows, and of nothing else"
        assert set(LABEL.findall(selector)) <= set(metric.all_labels)
        assert 'qmgr=~"$qmgr"' in selector
        labels |= set(metric.all_labels)
    for by in re.findall(r"by \(([^)]*)\)", expression):
        assert {label.strip() for label in by.split(",")} <= labels | {"le"}
    grouped = [set(map(str.strip, by.split(","))) for by in re.findall(r"^(?:\w+)? ?by \(([^)]*)\)", expression)]
    assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= (grouped[0] if grouped else labels)
    assert expression.count("(") == expression.count(")")


def test_a_wrong_metric_label_or_rate_is_found() -> None:
    for wrong in ("qpubsub_none{}", "sum(rate(qpubsub_ready{%s}[$__rate_interval]))", 'qpubsub_ready{%s,queue="Q"}'):
        with pytest.raises(AssertionError):
            test_an_expression_names_metrics_and_labels_that_exist(wrong.replace("%s", 'qmgr=~"$qmgr"'), "")


def test_every_metric_of_the_processor_that_only_grows_is_on_the_board() -> None:
    shown = {metric.name for panel in panels() for metric in panel.metrics}
    counters = {metric.name for metric in METRICS if metric.kind is not Kind.GAUGE}
    assert (
        sorted(counters - shown - {"qpubsub_sampled", "qpubsub_responses", "qpubsub_linked", "qpubsub_units_of_work"})
        == []
    )


def test_panels_stand_side_by_side_and_have_numbers_of_their_own() -> None:
    placed = board()["panels"]
    assert len({panel["id"] for panel in placed}) == len(placed)
    cells = [
        (x, y)
        for panel in placed
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert json.loads(rendered())["uid"] == "qpubsub"


@pytest.mark.parametrize("page", ["metrics.md", "operations.md"])
def test_the_pages_name_metrics_that_exist(page: str) -> None:
    text = (BOARD.parents[2] / "docs" / page).read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:qpubsub|ibmmq)_[a-z_]+[a-z]\b", text))
    assert sorted(named - SERIES.keys()) == []
