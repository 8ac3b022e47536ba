"""The command of docs/performance.md on what metrics and traces cost works; its figures are made by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("opentelemetry.sdk.trace")

from tests.benchmarks.metrics import TRAFFIC, WAYS, table


def test_the_table_has_a_row_for_each_way_and_traffic() -> None:
    lines = list(table(turns=1, turn=100))[2:]
    assert [line.split(" | ")[0] for line in lines] == [f"| {traffic}, {way}" for traffic in TRAFFIC for way in WAYS]
