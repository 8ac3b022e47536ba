"""The tables and examples of the guide (fixtures/scenarios): MQSC and messages in, puts out, as the guide says."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from commands.broker.attribute_kinds import Shown
from commands.mqsc.broker import Broker
from rfh2.captured import CapturedMessage
from tests.commands.guide_scenarios import Came, GuideScenario, scenarios, told_topic

ALL = list(scenarios())
SECTIONS = {
    *("2.4.3", "2.5.1", "2.5.1.1", "2.5.1.1.1", "2.5.1.1.2", "2.5.2", "2.5.3", "2.5.3.1", "2.5.4", "2.5.4.1"),
    *("3.1.3", "4.6.1", "4.8.3", "6.1", "6.2", "6.5.4", "6.5.5", "6.5.6", "6.7.4"),
}


def _id(scenario: GuideScenario) -> str:
    return scenario.name


@pytest.mark.parametrize("scenario", ALL, ids=_id)
def test_what_the_guide_says_comes_of_each_step(scenario: GuideScenario) -> None:
    for came in scenario.came:
        says = came.step.says
        what = f"guide {', '.join(scenario.sections)}, {scenario.name}, step {came.step.number}: {dict(says)}"
        assert came.gets == says.get("gets", []), what
        assert came.answer == says.get("answer"), what
        assert came.dead == says.get("dead"), what
        assert [answer.amq or "" for answer in came.answers] == says.get("says", []), what
        if "shows" in says:
            assert [_shown(row) for answer in came.answers for row in answer.objects] == says["shows"], what
        if "notes" in says:
            assert [line for answer in came.answers for line in (*answer.notes, *answer.detail)] == says["notes"], what
        if "why" in says:
            assert came.outcome is not None
            assert came.outcome.why.count(says["why"]) == 1, f"{what}: {came.outcome.why}"


@pytest.mark.parametrize("scenario", ALL, ids=_id)
def test_messages_and_puts_are_the_ones_on_disk(scenario: GuideScenario) -> None:
    """Byte for byte; ``python tests/commands/guide_scenarios.py`` writes them again."""
    for name, content in scenario.files.items():
        assert (scenario.path / name).read_bytes() == content, name


def test_every_section_with_tables_or_examples_is_there() -> None:
    assert {section for scenario in ALL for section in scenario.sections} >= SECTIONS


def test_2_5_4_table_3_what_qmb_receives_through_its_proxy_subscriptions() -> None:
    """The unexpected result: SPORTS and SLEEDS receive what was sent for the subscriptions without wildcards."""
    (qma,) = (each for each in ALL if each.name == "2.5.4-table-3")
    qmb = Broker("QMB", (qma.path / "qmb.mqsc").read_text())
    sent = [put for came in qma.came for put in came.puts if put.qmgr == "QMB"]
    received: dict[str | None, list[str | None]] = {}
    for seq, put in enumerate(sent, 1):
        arrived = CapturedMessage(seq=seq, qmgr="QMB", queue=put.queue, md_hex=put.md_hex, body_hex=put.body_hex)
        for here in qmb.handle(arrived):
            received.setdefault(here.sub_name, []).append(told_topic(here))
    assert received == {
        "SPORTS": ["Sports/Rugby/Leeds"],
        "SLEEDS": ["Sports/Rugby/Leeds"],
        "FARSENAL": ["Sports/Football/Arsenal"],
        "RLEEDS": ["Sports/Rugby/Leeds"],
    }


def _shown(row: Mapping[str, Shown]) -> str:
    return " ".join(f"{keyword}({value})" for keyword, value in row.items())


def test_a_step_says_something() -> None:
    """A step without an expectation could not fail."""
    silent = [
        f"{scenario.name} {came.step.number}"
        for scenario in ALL
        for came in _commands(scenario)
        if not {"gets", "answer", "dead", "says"} & came.step.says.keys()
    ]
    assert silent == []


def _commands(scenario: GuideScenario) -> list[Came]:
    return [came for came in scenario.came if "restart" not in came.step.says]
