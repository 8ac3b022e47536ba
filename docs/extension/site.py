"""What the site shows that no page holds: tables and pages made from the code, and the contents made from the index.

``docs/conf.py`` names this as a Sphinx extension. A page asks for a table with the directive ``from-code``. Pages of
verbs are written to ``docs/generated`` before Sphinx reads any page, one for each verb; they are the man pages as well.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective

from extension import contents, verbs
from extension.tables import TABLES

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "docs" / "generated"


class FromCode(SphinxDirective):
    """A table made from the code: ``from-code`` with the name of a table, and what that table takes."""

    required_arguments = 1
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        make = TABLES[self.arguments[0]]
        parent = nodes.container(classes=["from-code"])
        lines = StringList(make(*self.arguments[1:]).lines(), source=f"<{self.arguments[0]}>")
        self.state.nested_parse(lines, self.content_offset, parent)
        return list(parent.children)


def _write_pages(_app: Sphinx, config: Config) -> None:
    shutil.rmtree(GENERATED, ignore_errors=True)
    GENERATED.mkdir()
    pages = verbs.pages()
    for page in pages:
        (GENERATED / f"{page.name}.md").write_text(page.text, encoding="utf-8")
    for name in contents.ROOT_PAGES:
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
        (GENERATED / f"{name.lower()}.md").write_text(contents.moved_below_docs(text), encoding="utf-8")
    config.man_pages = [(f"generated/{page.name}", page.name, page.summary, [], 1) for page in pages]


def _read(app: Sphinx, docname: str, source: list[str]) -> None:
    text = contents.linked_in_the_site(source[0])
    if docname == app.config.root_doc:
        generated = sorted(path.stem for path in GENERATED.glob("qpubsub*.md"))
        text += contents.trees(text, {"Reference": [f"generated/{name}" for name in generated]})
    source[0] = text


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("from-code", FromCode)
    app.connect("config-inited", _write_pages, priority=100)
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}
