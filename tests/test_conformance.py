"""docs/conformance.md keeps its word: what it names is there, and every test that it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "conformance.md"
_CELL = r" (?P<{}>[^|]+) \|"
_ROW = re.compile(
    r"^\| (?P<id>[A-Z0-9]+-\w+) \|" + "".join(map(_CELL.format, ("section", "rule", "code", "tests"))) + "$"
)
ROWS = [match for line in DOCUMENT.read_text().splitlines() if (match := _ROW.match(line))]


@cache
def functions_of(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_rule_has_a_row_of_its_own() -> None:
    ids = [row["id"] for row in ROWS]
    assert len(ids) > 100
    assert sorted({each for each in ids if ids.count(each) > 1}) == []


def test_every_section_of_6_7_has_rows() -> None:
    sections = {section for row in ROWS for section in row["section"].split(", ")}
    assert {"6.6", *(f"6.7.{n}" for n in range(1, 11)), "7.5", "8.5"} <= sections


def test_every_file_exists() -> None:
    missing = [
        f"{row['id']}: {path}"
        for row in ROWS
        for path in re.findall(r"`([^`]+)`", row["code"])
        if not (ROOT / path).exists()
    ]
    assert missing == []


def test_every_test_exists() -> None:
    missing = []
    for row in ROWS:
        for path, name in re.findall(r"`([^`]+)::(\w+)`", row["tests"]):
            if not (ROOT / path).exists() or name not in functions_of(path):
                missing.append(f"{row['id']}: {path}::{name}")
    assert missing == []


def test_a_row_without_a_test_says_that_the_rule_is_not_done() -> None:
    bare = [row["id"] for row in ROWS if "::" not in row["tests"] and not row["code"].startswith("not done")]
    assert bare == []
