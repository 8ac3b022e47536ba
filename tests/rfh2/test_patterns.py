"""Regular expressions of the packages on every Python that they run on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rfh2.folders import repeated

ROOT = Path(__file__).parents[2]
# A closing bracket that is not escaped, repeated possessively.
_POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{\d*,?\d*\})\+")


def _strings(path: Path) -> Iterator[tuple[int, str]]:
    source = path.read_text()
    if not _POSSESSIVE_GROUP.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            yield node.lineno, text


def test_no_pattern_repeats_a_group_possessively() -> None:
    """CPython before 3.11.5 matches ``(?:...)*+`` wrongly (gh-106052); Debian 12 has 3.11.2."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text[:60]}"
        for package in ("rfh2", "streams", "commands", "migrate")
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, text in _strings(path)
        if "``" not in text and _POSSESSIVE_GROUP.search(text)  # "``": a docstring about one
    ]
    assert found == []


@pytest.mark.parametrize("pattern", ["(?:a|b)*+c", "(?:ab)++", "(?:a){2,3}+", "(?:a)?+"])
def test_one_would_be_found(pattern: str) -> None:
    assert _POSSESSIVE_GROUP.search(pattern)


@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 10_000])
def test_what_stands_for_one_takes_all_and_gives_nothing_back(count: int) -> None:
    pattern = repeated("(?:a|b)")
    text = "ab" * count
    assert re.fullmatch(pattern, text)
    assert re.match(rf"{pattern}c", text + "c")
    assert re.match(rf"{pattern}b", text) is None
