"""docs/conformance.md keeps its word: each rule that is done has a test with its mark, and each mark has a row."""

from __future__ import annotations

import re

import pytest

from tests.rules import DOCUMENT, Rule, code_of, marked_tests, rules

ROWS = rules(DOCUMENT.read_text())


def _sections(row: Rule) -> set[str]:
    return set(row.section.split(", "))


def _without_test(rows: list[Rule]) -> list[str]:
    return [row.id for row in rows if row.not_done is None and row.id not in marked_tests()]


def _done_after_all(rows: list[Rule]) -> list[str]:
    return [row.id for row in rows if row.not_done is not None and row.id in marked_tests()]


def _promises(rows: list[Rule]) -> list[str]:
    """What is "not done yet" is done one day, and nobody thinks of the row."""
    promised = re.compile(r"\b(yet|later|soon|to come|planned|so far)\b")
    return [row.id for row in rows if row.not_done is not None and promised.search(row.not_done)]


def test_every_rule_has_a_row_of_its_own() -> None:
    ids = [row.id for row in ROWS]
    assert len(ids) > 400
    assert sorted({each for each in ids if ids.count(each) > 1}) == []


def test_every_row_is_read() -> None:
    """A row with a cell too many would be none."""
    cells = re.findall(r"^\| (?=[A-Z0-9]+-\w+[, ])([^|(]+) ", DOCUMENT.read_text(), re.MULTILINE)
    assert sum(len(cell.split()) for cell in cells) == len(ROWS)


def test_every_section_of_the_guide_has_rows() -> None:
    sections = set().union(*map(_sections, ROWS))
    assert {"6.6", *(f"6.7.{n}" for n in range(1, 11)), "7.5", "8.5"} <= sections
    assert {"2.3.2", "2.4.3", "2.5.1", "2.5.4", "3.1.3", "4.6.1", "4.8.3", "7.1", "7.2"} <= sections
    assert {"7.3", "7.4.1", "7.6.1", "8.1", "8.4", "8.6", "8.7"} <= sections


def test_a_rule_that_is_done_has_a_test() -> None:
    assert _without_test(ROWS) == []


def test_a_mark_names_a_row() -> None:
    assert sorted(marked_tests().keys() - {row.id for row in ROWS}) == []


def test_a_rule_that_is_not_done_has_none_and_says_why_and_not_when() -> None:
    assert _done_after_all(ROWS) == []
    assert _promises(ROWS) == []


@pytest.mark.parametrize(
    ("row", "check"),
    [
        ("| NEW-1 (7.1) | A rule that nobody tests |", _without_test),
        ("| REG-1 (6.7.4) | A registration. **Not done:** nobody asked |", _done_after_all),
        ("| NEW-2 (7.1) | Migration. **Not done:** not planned so far |", _promises),
    ],
)
def test_a_row_that_is_false_is_found(row: str, check: object) -> None:
    assert check(rules(row)) == [row.split()[1]]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("test", "code"),
    [
        ("tests/streams/test_retained.py::test_it", "streams/retained.py"),
        ("tests/commands/broker/test_scenarios.py::test_it", "commands/broker"),
        ("tests/commands/links/engine/test_scope.py::test_it", "commands/links/engine"),
        ("fixtures/scenarios/2.4.3-selectors", "commands/broker"),
    ],
)
def test_the_code_of_a_rule_is_what_its_test_is_named_after(test: str, code: str) -> None:
    assert code_of(test).startswith(code)
