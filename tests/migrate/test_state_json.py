"""State files are read item by item: the same states as from the whole JSON, and nothing of a file that is damaged."""

from __future__ import annotations

import gc
import json
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from migrate import source_checks, strmqbrk
from migrate.contents import pieces
from migrate.legacy_state import LegacyRetained, LegacyState, Source
from migrate.plan import PlanOptions
from migrate.readers import state_json
from migrate.readers.sources import read_sources
from migrate.report.facts import facts
from migrate.report.outputs import report_contents
from migrate.target import Target
from tests.benchmarks.migration_memory import write_state
from tests.examples import FEW
from tests.migrate.legacy_messages import NOW
from tests.migrate.strategies import states

HEAD = '{"format": "qpubsub-legacy-state", "version": 1, "qmgr": "QM1"'
ITEM = '{"source": {"file": "x", "position": 3}, "name": "Sport"}'


@FEW
@given(st.lists(states, min_size=1, max_size=3), st.sampled_from((None, 1, "\t")))
def test_what_is_written_is_read(held: list[LegacyState], indent: Any) -> None:
    value = json.loads(state_json.write(held))
    text = json.dumps(value, indent=indent, ensure_ascii=indent == 1)
    assert state_json.read(text, "state.json") == (held, [])


@given(states, st.data())
def test_nothing_is_read_of_a_file_that_is_cut_off(held: LegacyState, data: st.DataObject) -> None:
    text = state_json.write([held]).rstrip()
    found, problems = state_json.read(text[: data.draw(st.integers(0, len(text) - 1))], "state.json")
    assert found == []
    assert [problem.why[:14] for problem in problems] == ["it is not JSON"]


BAD = [
    ("extra-data", f"{HEAD}}} x", ["it is not JSON: Extra data"]),
    ("comma-at-the-end", f'{HEAD}, "streams": [{ITEM},]}}', ["it is not JSON: Expecting value"]),
    ("no-comma", f'{HEAD}, "streams": [{ITEM} {ITEM}]}}', ["it is not JSON: Expecting ',' delimiter"]),
    ("no-colon", f'{HEAD}, "streams" [{ITEM}]}}', ["it is not JSON: Expecting a name and ':'"]),
    ("nested", f'{HEAD}, "streams": ' + "[" * 100_000, ["it is not JSON: nested too deeply"]),
    ("an-array", "[1]", ["it is not a JSON object"]),
    ("unknown-field", f'{HEAD}, "odd": 1}}', ["there is no such field"]),
    ("unknown-field-of-an-item", f'{HEAD}, "streams": [{ITEM[:-1]}, "odd": 1}}]}}', ["there is no such field"]),
    ("no-list", f'{HEAD}, "streams": {ITEM}}}', ["Input should be a valid tuple"]),
    ("no-item", f'{HEAD}, "streams": [7]}}', ["Input should be a dictionary or an instance of Stream"]),
    ("beside-states", f'{HEAD}, "states": [{HEAD}}}]}}', ["there is no such field"] * 3),
    ("no-state", '{"states": [7]}', ["it is not a JSON object", "Field required"]),
    ("no-states", '{"states": []}', ["Tuple should have at least 1 item after validation, not 0"]),
]


@pytest.mark.parametrize(("text", "whys"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_a_file_that_is_no_state_file(text: str, whys: list[str]) -> None:
    found, problems = state_json.read(text, "state.json")
    assert found == []
    assert [problem.why for problem in problems] == whys


def test_many_faults_are_counted() -> None:
    items = ", ".join(['{"name": "x"}'] * 150)
    found, problems = state_json.read(f'{HEAD}, "streams": [{items}]}}', "state.json")
    assert (found, len(problems), problems[-1].text) == ([], 101, "50 more faults")
    assert problems[7].text == "streams.7.source"


def test_equal_values_are_one_object(tmp_path: Path) -> None:
    write_state(tmp_path / "state.json", 20)
    first, second = read_sources([str(tmp_path / "state.json")], "QM1").subscriptions[4:13:8]
    assert first.options == ("CorrelAsId",)
    for name in ("stream", "options", "created", "qmgr"):
        assert getattr(first, name) is getattr(second, name)
    assert first.source.file is second.source.file


def test_equal_times_keep_their_zones() -> None:
    moments = ("2009-01-28T12:00:00Z", "2009-01-28T13:00:00+01:00")
    held = [LegacyRetained(source=Source(file="x"), topic="t", published_at=moment) for moment in moments]
    assert [each.published_at.isoformat() for each in held] == ["2009-01-28T12:00:00+00:00", moments[1]]


def test_what_planning_needs_for_each_subscription(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """With a fifth of a retained publication each: 2,400 bytes where nothing else runs in the process."""
    monkeypatch.setattr(source_checks, "_FEW", 50)
    # Otherwise what other tests have left decides when garbage goes.
    gc.collect()
    gc.freeze()
    request.addfinalizer(gc.unfreeze)
    request.addfinalizer(partial(gc.set_threshold, *gc.get_threshold()))
    gc.set_threshold(200, 1, 1)
    peaks = []
    for count in (800, 200, 800):
        write_state(tmp_path / "state.json", count)
        tracemalloc.start()
        plan = strmqbrk.plan(
            read_sources([str(tmp_path / "state.json")], "QM1"), Target.fresh("QM1"), PlanOptions(), NOW
        )
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(plan.subscriptions) == count
    assert (peaks[2] - peaks[1]) / 600 < 3_000


def test_a_report_is_written_without_being_in_memory(tmp_path: Path) -> None:
    """Twice the items take no more memory: the page, which is cut, and one piece of 64 KiB."""
    peaks = []
    for count in (500, 1_500):
        write_state(tmp_path / "state.json", count)
        target = Target.fresh("QM1")
        plan = strmqbrk.plan(read_sources([str(tmp_path / "state.json")], "QM1"), target, PlanOptions(), NOW)
        contents = report_contents(facts(plan, target))
        tracemalloc.start()
        size = sum(
            len(piece) for name in ("report.json", "items.csv", "report.txt") for piece in pieces(contents[name])
        )
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert size > 500 * count
    assert max(peaks) < 500_000
