"""The documents are true where a machine can tell: links lead somewhere, and every verb is in the README."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from commands.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    assert [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES[2:], ids=lambda page: page.name)
def test_every_page_can_be_reached_from_the_readme(page: Path) -> None:
    assert f"(docs/{page.name})" in PAGES[0].read_text()


def test_every_verb_is_in_the_readme() -> None:
    there = main.list_commands(click.Context(main))
    assert [verb for verb in there if f"{verb}" not in PAGES[0].read_text()] == []
