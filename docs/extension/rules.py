"""Rules of the guide: the code and the tests of each, from the marks in the tests."""

from __future__ import annotations

from collections.abc import Iterable

from extension.markdown import NOTHING, Table, code
from tests.rules import DOCUMENT, code_of, marked_tests, rules


def table() -> Table:
    """All rows of docs/conformance.md that are done, in their order."""
    rows = []
    for rule in rules(DOCUMENT.read_text(encoding="utf-8")):
        if rule.not_done is None:
            tests = marked_tests().get(rule.id, [])
            rows.append((rule.id, _codes(sorted({code_of(test) for test in tests})), _codes(tests)))
    return Table(("id", "code", "tests"), tuple(rows))


def _codes(words: Iterable[str]) -> str:
    return ", ".join(map(code, words)) or NOTHING
