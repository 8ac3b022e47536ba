"""The contents of the site: a heading of the index is a part, each link below it a page of that part."""

from __future__ import annotations

import re
from collections.abc import Mapping

ROOT_PAGES = ("README", "CONTRIBUTING", "CHANGELOG")
"""Pages of the root directory that the site has too."""

_LINK = re.compile(r"\]\((?!https?:)([\w./-]+)\.(?:md|ipynb)\)")
_ROOT_PAGE = re.compile(rf"\]\((?:\.\./)+({'|'.join(ROOT_PAGES)})\.md")
_NO_PAGE = re.compile(r"\]\(((?:\.\./)+(?!docs/)[\w./-]+\.md)\)")


def linked_in_the_site(text: str) -> str:
    """*text* with links to pages of the root directory as links to their copies in the site; other files are files."""
    text = _ROOT_PAGE.sub(lambda found: f"](/generated/{found[1].lower()}.md", text)
    return _NO_PAGE.sub(r"](path:\1)", text)


def moved_below_docs(text: str) -> str:
    """*text* of a page of the root directory with its links as a page in docs/generated has them."""
    return re.sub(r"\]\((?!https?:|#)", "](../../", text).replace("](../../docs/", "](../")


def trees(text: str, more: Mapping[str, list[str]]) -> str:
    """A hidden toctree for each heading of *text*; more: pages besides those that are linked, by heading."""
    found = []
    for part in text.split("\n## ")[1:]:
        heading, _, body = part.partition("\n")
        pages = [link.removeprefix("/") for link in _LINK.findall(body)] + more.get(heading, [])
        if pages:
            found.append("\n".join(["```{toctree}", ":hidden:", f":caption: {heading}", "", *pages, "```"]))
    return "\n\n" + "\n\n".join(found) + "\n"
