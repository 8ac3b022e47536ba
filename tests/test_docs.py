"""The documents are true where a machine can tell: links lead somewhere, and every verb is in the table of verbs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest

from commands.cli import main
from rfh2.captures import FORMATS, CaptureFormat
from tests.documents import DOCS, written_pages

ROOT = Path(__file__).parents[1]
WRITTEN = written_pages(".md", ".ipynb")
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *WRITTEN]
ANCHORED = re.compile(r"\]\((?!https?:)([^)#]*)#([^)]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def test_links_lead_somewhere() -> None:
    links = [(page, link) for page in PAGES for link in LINK.findall(page.read_text())]
    assert [(page, link) for page, link in links if not (page.parent / link).exists()] == []


def slugs(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them, and the site too (``myst_heading_anchors``)."""
    found: list[str] = []
    for heading in re.findall(r"^#{1,4} (.+)$", FENCED.sub("", page.read_text()), re.MULTILINE):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        found.append(f"{slug}-{found.count(slug)}" if slug in found else slug)
    return set(found)


def test_links_to_headings_lead_to_headings() -> None:
    links = [(page, path, anchor) for page in PAGES for path, anchor in ANCHORED.findall(page.read_text())]
    anchors = {page.resolve(): slugs(page) for page in PAGES}
    assert [
        (page, path, anchor)
        for page, path, anchor in links
        if anchor not in anchors[(page.parent / path if path else page).resolve()]
    ] == []


@pytest.mark.parametrize(
    ("heading", "slug"),
    [
        ("Captures, as tables", "captures-as-tables"),
        ("9. JMS subscription entries", "9-jms-subscription-entries"),
        ("`run --once` and [a link](x.md)", "run---once-and-a-link"),
    ],
)
def test_the_anchor_of_a_heading(heading: str, slug: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(f"# One\n```\n# no heading\n```\n## {heading}\n## {heading}\n")
    assert slugs(tmp_path / "page.md") == {"one", slug, f"{slug}-1"}


def test_some_links_lead_to_headings() -> None:
    assert sum(len(ANCHORED.findall(page.read_text())) for page in PAGES) > 10


def test_the_readme_leads_to_the_index() -> None:
    assert "(docs/index.md)" in PAGES[0].read_text()


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "index.md").read_text()
    pages = [page.relative_to(DOCS) for page in WRITTEN if page.name != "index.md"]
    assert [page for page in pages if f"]({page})" not in index] == []


def test_every_verb_is_in_the_table_of_verbs() -> None:
    table = (DOCS / "command-line.md").read_text().partition("## Input and output")[0]
    assert [verb for verb in main.list_commands(click.Context(main)) if verb not in table] == []


@pytest.mark.parametrize("entry", FORMATS.values(), ids=FORMATS)
def test_every_capture_format_has_its_row(entry: CaptureFormat) -> None:
    lines = (ROOT / "docs" / "capture-formats.md").read_text().splitlines()
    (row,) = (line.split(" | ") for line in lines if line.startswith(f"| `{entry.name}` |"))
    assert row[2:4] == ["yes", "yes" if entry.writer is not None else "no"]


def test_what_contributing_names_is_there() -> None:
    named = re.findall(r"`((?:rfh2|streams|commands|migrate|tests|docs|fixtures|\.ci)/[\w./]*)`", PAGES[2].read_text())
    made_up = re.compile(r"NAME|VERB|SUFFIX")
    assert len(named) > 40
    assert [path for path in named if not made_up.search(path) and not (ROOT / path).exists()] == []


_DARK = re.compile(
    r"(?<!here )\b(?:is|are) no (?!longer\b|such\b|one\b)\w|\banew\b|\b(?:is|are) told\b|\bso (?:often|many)\b"
    r"|(?<!left )(?<!bytes-)\bbehind (?!of)|\bdefault one\b|\b[Nn]obody (?!'|$)|\btells? of\b|\bby TLS\b|\bof before\b"
)


@pytest.mark.nightly
def test_what_a_user_reads_is_said_plainly() -> None:
    """Strings of the program, but docstrings: "is not a" for "is no", and no dark words."""
    dark = []
    for package in ("rfh2", "streams", "commands", "migrate"):
        for path in (ROOT / package).rglob("*.py"):
            tree = ast.parse(path.read_text())
            docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            dark += [
                f"{path}:{node.lineno}: {node.value}"
                for node in ast.walk(tree)
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
                if _DARK.search(node.value)
            ]
    assert dark == []
