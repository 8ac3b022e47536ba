"""Reason codes: number, name, meaning, and the sections of the guide whose rules give them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from extension.markdown import NOTHING, Table, code, escape
from rfh2.constants import REASON_NAMES, reason_text
from tests.rules import rules

CONFORMANCE = Path(__file__).parents[1] / "conformance.md"
_SECTION = re.compile(r"^\d+(?:\.\d+)+$")


def table() -> Table:
    """All reason codes that the bridge gives, in order of their numbers."""
    rows = tuple(
        (
            str(number),
            code(name),
            escape(reason_text(number).partition(": ")[2]),
            ", ".join(sections(number, name)) or NOTHING,
        )
        for number, name in sorted(REASON_NAMES.items())
    )
    return Table(("code", "name", "meaning", "rules in sections of the guide"), rows)


def sections(number: int, name: str) -> list[str]:
    """The sections with a rule that names the reason code, as docs/conformance.md has them."""
    # 0 is a number of many things; the others are reason codes wherever they stand.
    mentioned = re.compile(rf"(?<![\w.-]){number}(?![\w.-])|\b{name}\b" if number else rf"\b{name}\b")
    found = {section for cited, rule in _rules() if mentioned.search(rule) for section in cited}
    return sorted(found, key=lambda section: [int(part) for part in section.split(".")])


@cache
def _rules() -> list[tuple[list[str], str]]:
    rows = rules(CONFORMANCE.read_text(encoding="utf-8"))
    return [([part for part in row.section.split(", ") if _SECTION.match(part)], row.text) for row in rows]
