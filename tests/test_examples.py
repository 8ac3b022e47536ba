"""The examples in docstrings, and those of the Python pages, give what they print."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for package in ("rfh2", "streams", "commands", "migrate")
    for path in (ROOT / package).rglob("*.py")
    if ">>> " in path.read_text()
)
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if ">>> " in page.read_text()]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert (result.failed, result.attempted > 0) == (0, True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_in_pages(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = page.read_text().replace("```\n", "\n")
    example = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_the_python_api_has_examples() -> None:
    assert {"rfh2.message", "rfh2.captures.reading", "commands.headers.registry", "streams.patterns"} <= set(MODULES)
    assert ROOT / "docs/reference/python.md" in PAGES
