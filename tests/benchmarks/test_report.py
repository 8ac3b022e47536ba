"""The page with the figures of one machine."""

from __future__ import annotations

from tests.benchmarks.report import SECTIONS, lines_of, page_of, sections_of


def test_a_page_keeps_the_sections_that_were_not_measured_again() -> None:
    names = list(SECTIONS)
    sections = {names[2]: "old\n", names[0]: "2026\n\n    command\n\n```text\na\n```\n"}
    page = page_of(sections)
    assert page.index(f"## {names[0]}") < page.index(f"## {names[2]}")
    assert sections_of(page) == sections
    assert page_of(sections_of(page)) == page


def test_what_pytest_says_of_its_own_is_left_out() -> None:
    printed = "\ndecode   1,000 /s\n.\n..s [ 40%]\n\nencode   2,000 /s\n.     [100%]\n3 passed in 1.2s\n"
    assert lines_of(printed) == ["decode   1,000 /s", "encode   2,000 /s"]
