"""The comparison of two revisions: each room gives figures here, and the table is worked out right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks import compare

ROOT = Path(__file__).parents[2]


@pytest.mark.nightly
@pytest.mark.parametrize("room", compare.ROOMS)
def test_each_room_is_measured_in_a_process_of_its_own(room: str) -> None:
    figures = compare.measured(ROOT, room)
    assert len(figures) == 2
    assert all(us > 0 for us in figures.values())


def test_the_ratio_is_the_median_of_the_rounds_and_not_of_the_figures() -> None:
    rounds = [{"A": {"alike": a}, "B": {"alike": b}} for a, b in ((10.0, 11.0), (100.0, 90.0), (20.0, 30.0))]
    assert list(compare.lines_of(rounds, "wire")) == ["| wire, alike | 20.0 | 30.0 | 1.10 | 0.90 to 1.50 |"]


def test_time_of_child_processes_counts() -> None:
    program = ["-c", "sum(range(3_000_000))"]
    assert compare.spent_s(lambda: compare.subprocess.run([compare.sys.executable, *program], check=True)) > 0.01
