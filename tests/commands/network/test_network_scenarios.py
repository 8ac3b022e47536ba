"""The figures and worked examples of guide 3 (fixtures/scenarios): messages in at several queue managers, puts out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.cli_runs import run
from tests.commands.network_scenarios import NetworkScenario, network_scenarios

ALL = list(network_scenarios())
SECTIONS = {
    *("3", "3.1", "3.1.3", "3.2.1.1", "3.2.1.3", "3.2.1.4", "3.2.2", "3.3.3", "3.3.4", "3.3.5.1", "3.3.5.2"),
    *("3.3.5.3", "3.3.5.4", "3.3.5.5", "3.3.6", "3.4", "3.5", "6.1"),
}


def _id(scenario: NetworkScenario) -> str:
    return scenario.name


@pytest.mark.parametrize("scenario", ALL, ids=_id)
def test_what_the_guide_says_comes_of_each_step(scenario: NetworkScenario) -> None:
    for came in scenario.came:
        says = came.step.says
        what = f"guide {', '.join(scenario.sections)}, {scenario.name}, step {came.step.number}: {dict(says)}"
        assert sorted(came.gets) == sorted(says.get("gets", [])), what
        if "flows" in says:
            assert came.flows == says["flows"], what
        if "kept" in says:
            assert came.kept == says["kept"], what


@pytest.mark.parametrize("scenario", ALL, ids=_id)
def test_messages_and_puts_are_the_ones_on_disk(scenario: NetworkScenario) -> None:
    """Byte for byte; ``python -m tests.commands.network_scenarios`` writes them again."""
    for name, content in scenario.files.items():
        assert (scenario.path / name).read_bytes() == content, name


@pytest.mark.parametrize("scenario", ALL, ids=_id)
def test_replay_gives_the_same(scenario: NetworkScenario, tmp_path: Path) -> None:
    target, capture = tmp_path / "puts.jsonl", scenario.path / "capture.jsonl"
    ran = run("replay", "--network", str(scenario.path), str(capture), "--output", str(target))
    assert ran.code == 0, ran.talk
    assert target.read_bytes() == (scenario.path / "puts.jsonl").read_bytes()


def test_every_section_with_figures_or_examples_is_there() -> None:
    assert {section for scenario in ALL for section in scenario.sections} >= SECTIONS
