"""The command of docs/performance.md on what metrics and traces cost works; its figures are made by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("opentelemetry.sdk.trace")

from tests.benchmarks.metrics import TRAFFIC, WAYS, outside_interval, parts_us, table


def test_the_table_has_a_row_for_each_way_and_traffic() -> None:
    lines = list(table(turns=1, turn=100))[2:]
    assert [line.split(" | ")[0] for line in lines] == [f"| {traffic}, {way}" for traffic in TRAFFIC for way in WAYS]


def test_what_metrics_do_is_measured_and_a_unit_of_work_is_more_than_a_command() -> None:
    counted, unit = parts_us().values()
    assert 0 < counted < unit


@pytest.mark.parametrize(("count", "left_out"), [(1, 0), (5, 0), (6, 0), (9, 1), (12, 2), (20, 5), (40, 13)])
def test_the_interval_of_the_median_is_that_of_the_tables(count: int, left_out: int) -> None:
    """Order statistics for 95 % as textbooks have them: of 20 figures the 6th to the 15th."""
    assert outside_interval(count) == left_out
