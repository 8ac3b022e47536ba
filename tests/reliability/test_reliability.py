"""A part of what ``python -m tests.reliability`` tries, in every test run; and whether it would see a failure."""

from __future__ import annotations

import re
import time
from pathlib import Path
from random import Random

import pytest

from tests.reliability import __main__ as program, hostile
from tests.reliability.corpus import HOSTILE, captures, commands, legacy, messages, scripts
from tests.reliability.fuzz import FUZZ, TARGETS, kept
from tests.reliability.trials import Tally, Target, again, attempt, hunt

SEED = 20261122
BOTH = (*FUZZ, *hostile.TARGETS)
ROUNDS = 0.005


def test_there_is_something_to_make_mutants_of() -> None:
    assert len(messages()) > 2_000
    assert len(commands()) > 1_000
    formats = {sample.format for sample in captures()}
    assert {"jsonl", "parquet", "raw", "mqmd", "hex", "qload", "auto"} <= formats
    assert len(legacy()) > 5
    assert len(scripts()) > 20


@pytest.mark.parametrize("path", kept(), ids=lambda path: path.stem)
def test_what_once_broke_something_does_not_break_it_again(path: Path) -> None:
    failure = again(path, TARGETS)
    assert failure is None, f"{failure.how}: {failure.why}"


def test_what_is_kept_is_all_that_is_there() -> None:
    assert len(kept()) > 20
    assert {path.suffix for path in HOSTILE.iterdir()} == {".json", ".md"}


@pytest.mark.parametrize("target", BOTH, ids=lambda target: target.name)
def test_some_cases(target: Target, tmp_path: Path) -> None:
    tally = hunt(target, SEED, max(1, int(target.rounds * ROUNDS)), tmp_path)
    assert not tally.broken, "\n".join(tally.broken)


def _no_seven(case: int) -> str:
    assert "7" not in str(case["number"]), "a seven"  # type: ignore[index]
    return "fine"


SEVEN = Target("seven", "no number has a seven", lambda random: {"number": str(random.randrange(10**6))}, _no_seven, 10)


def test_a_broken_rule_is_found_made_smaller_kept_and_can_be_tried_again(tmp_path: Path) -> None:
    tally = hunt(SEVEN, 1, 50, tmp_path)
    assert tally.cases == 50
    assert 0 < len(tally.failures) < 50
    assert tally.failures[0].case == {"number": "7"}
    (line,) = tally.broken
    assert "a seven" in line
    assert "seed 1, round" in line
    failure = again(tally.kept[0], {"seven": SEVEN})
    assert failure is not None
    assert failure.how == tally.failures[0].how


def test_the_case_of_a_round_does_not_depend_on_the_rounds_before() -> None:
    for target in (SEVEN, hostile.TARGETS[0], FUZZ[0]):
        seen: list[object] = []
        watched = Target(target.name, "", target.make, lambda case: seen.append(case) or "", 1)  # type: ignore[func-returns-value] # noqa: B023
        hunt(watched, 3, 5)
        hunt(watched, 3, 1, first=4)
        assert seen[4] == seen[5]
        assert seen[0] != seen[4]


def _endless(_case: object) -> str:
    end = time.process_time() + 20
    while time.process_time() < end:
        pass
    return "done"


def test_what_takes_too_long_is_ended() -> None:
    target = Target("endless", "", lambda _random: 1, _endless, 1, allowed_s=0.2)
    failure = attempt(target, 1, Tally("endless"))
    assert failure is not None
    assert failure.how == "TooSlowError"


def test_mutants_reach_what_they_are_for() -> None:
    """Were they all refused at the door, nothing behind it would be tried."""
    decode = hunt(TARGETS["decode"], SEED, 200)
    assert decode.outcomes["command"] > 10
    assert decode.outcomes["command refused"] > 20
    broker = hunt(TARGETS["broker"], SEED, 100)
    assert broker.outcomes["ok"] >= 1


def test_the_program_prints_tables(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["fuzz", "--only", "nats-in", "--quick", "--found", str(tmp_path)]
    assert program.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "| nats-in |" in printed
    assert "seed 1" in printed


def test_the_document_names_every_attack() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text()
    assert [name for name in program.ATTACKS if not re.search(rf"tests\.reliability[ .]{name}", text)] == []


def test_a_seeded_generator_makes_the_same_case_everywhere() -> None:
    assert Random("index 1 0").randrange(10**6) == 694_126
