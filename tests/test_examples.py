"""The examples of docstrings and of docs/python.md run, and give what they say."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.documents import written_pages

ROOT = Path(__file__).parents[1]
PACKAGES = ("rfh2", "streams", "commands", "migrate")
PAGES = [page for page in written_pages(".md") if "```pycon" in page.read_text()]


def _modules() -> list[str]:
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    with_examples = (path.relative_to(ROOT).with_suffix("") for path in paths if "    >>> " in path.read_text())
    return [".".join(path.parts) for path in with_examples]


MODULES = _modules()


def _run(name: str, text: str, names: dict[str, object]) -> str:
    """What a run of the examples in *text* says of those that fail."""
    test = doctest.DocTestParser().get_doctest(text, names, name, name, 0)
    said: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert result.attempted > 0
    return "".join(said)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    if name == "commands.replay.frames":
        pytest.importorskip("pandas")
    module = import_module(name)
    for found in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        if found.examples:
            said: list[str] = []
            doctest.DocTestRunner(verbose=False).run(found, out=said.append)
            assert "".join(said) == ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_a_page(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"^```pycon\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    assert _run(page.name, "\n".join(blocks), {}) == ""


def test_there_are_examples() -> None:
    assert "commands.mqsc.broker" in MODULES
    assert ROOT / "docs" / "python.md" in PAGES


def test_a_wrong_example_is_found() -> None:
    assert "Expected:\n    3" in _run("wrong", ">>> 1 + 1\n3\n", {})
