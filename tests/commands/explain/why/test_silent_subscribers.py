"""Each subscriber of fixtures/why is silent for one reason: ``why`` names it, and nothing else."""

from __future__ import annotations

from collections import defaultdict

import pytest

from commands.explain.why import Reason
from tests.commands.cli_runs import run
from tests.commands.silent_subscribers import FIXTURES, SERVED, Case, cases

CASES = list(cases())
ROWS = [pytest.param(case, queue, id=f"{case.name}:{queue}") for case in CASES for queue in case.expected]


def _reasons(case: Case) -> dict[str, set[Reason]]:
    found: dict[str, set[Reason]] = defaultdict(set)
    for verdict in case.answers():
        found[verdict.queue].add(verdict.reason)
    return found


FOUND = {case.name: _reasons(case) for case in CASES}


@pytest.mark.parametrize(("case", "queue"), ROWS)
def test_the_reason_is_named_and_nothing_else(case: Case, queue: str) -> None:
    assert FOUND[case.name][queue] - {Reason.DELIVERED} == {case.expected[queue]}
    assert (Reason.DELIVERED in FOUND[case.name][queue]) is (queue in SERVED)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nobody_else_is_named(case: Case) -> None:
    assert set(FOUND[case.name]) - set(case.expected) <= SERVED


def test_there_are_at_least_thirty_silent_subscribers_and_every_reason() -> None:
    assert sum(len(case.expected) for case in CASES) >= 30
    assert {reason for case in CASES for reason in case.expected.values()} | {Reason.DELIVERED, Reason.UNKNOWN} == set(
        Reason
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden_files(case: Case) -> None:
    for name, text in case.files().items():
        assert (FIXTURES / name).read_text() == text, name


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_command_line_prints_the_golden_files(case: Case) -> None:
    setup, capture = str(FIXTURES / f"{case.name}.mqsc"), str(FIXTURES / f"{case.name}.jsonl")
    words = ("why", "--input", capture, "--setup", setup, "--semantics", case.semantics)
    ran = run(*words)
    assert (ran.code, ran.out) == (0, (FIXTURES / f"{case.name}-why.txt").read_text())
    ran = run(*words, "--json")
    assert (ran.code, ran.out) == (0, (FIXTURES / f"{case.name}-why.jsonl").read_text())


@pytest.mark.parametrize(("case", "queue"), ROWS)
def test_asked_for_one_queue_the_answer_is_the_same(case: Case, queue: str) -> None:
    setup, capture = str(FIXTURES / f"{case.name}.mqsc"), str(FIXTURES / f"{case.name}.jsonl")
    ran = run("why", queue, "--input", capture, "--setup", setup, "--semantics", case.semantics, "--json")
    whole = (FIXTURES / f"{case.name}-why.jsonl").read_text().splitlines()
    assert ran.lines == [line for line in whole if f'"queue": "{queue}"' in line]
