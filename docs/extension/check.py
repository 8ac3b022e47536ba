"""Reads a built site as a browser without a network does: nothing comes from another host, each link has its target.

``python docs/extension/check.py DIRECTORY`` prints each fault, and ends with exit code 1 where there is one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag

from lxml import html

# What a browser gets by itself. A link that somebody follows may lead anywhere.
_LOADED = (
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("audio", "src"),
    ("video", "src"),
    ("embed", "src"),
    ("object", "data"),
    ("link", "href"),
    ("use", "href"),
)
_ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
_IN_STYLE = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)
# A script that asks for more: fetch, import, or an element whose source it sets.
_IN_SCRIPT = re.compile(
    r"""(?:fetch|import|importScripts)\(\s*["'`](https?://[^"'`]+)|\.src\s*=\s*["'`](https?://[^"'`]+)"""
)


def faults(site: Path) -> Iterator[str]:
    """What is wrong, a line each: file, and what it loads or links to."""
    pages = {page: html.fromstring(page.read_bytes()) for page in sorted(site.rglob("*.html"))}
    if not pages:
        yield f"{site}: no pages"
    anchors = {page: set(_strings(tree, "//@id | //a/@name")) for page, tree in pages.items()}
    for page, tree in pages.items():
        where = page.relative_to(site)
        yield from (f"{where}: loads {address}" for address in _loads(tree))
        yield from (
            f"{where}: broken link {link}" for link in _strings(tree, "//a/@href") if _broken(page, link, anchors)
        )
    for style in sorted(site.rglob("*.css")):
        text = style.read_text(encoding="utf-8")
        yield from (f"{style.relative_to(site)}: loads {address}" for address in _IN_STYLE.findall(text))
    for script in sorted(site.rglob("*.js")):
        text = script.read_text(encoding="utf-8")
        found = ("".join(groups) for groups in _IN_SCRIPT.findall(text))
        yield from (f"{script.relative_to(site)}: loads {address}" for address in found)


def _loads(tree: html.HtmlElement) -> Iterator[str]:
    for element, attribute in _LOADED:
        yield from (address for address in _strings(tree, f"//{element}/@{attribute}") if _ELSEWHERE.match(address))
    for candidates in _strings(tree, "//@srcset"):
        yield from (one.split()[0] for one in candidates.split(",") if _ELSEWHERE.match(one.strip()))
    for text in _strings(tree, "//style/text() | //@style"):
        yield from _IN_STYLE.findall(text)
    for text in _strings(tree, "//script/text()"):
        yield from ("".join(groups) for groups in _IN_SCRIPT.findall(text))


def _strings(tree: html.HtmlElement, path: str) -> list[str]:
    found = tree.xpath(path)
    assert isinstance(found, list)
    return [str(one) for one in found]


def _broken(page: Path, link: str, anchors: dict[Path, set[str]]) -> bool:
    if re.match(r"[a-z][a-z0-9+.-]*:", link, re.IGNORECASE) or link in ("", "#"):
        return False
    path, fragment = urldefrag(link)
    target = (page.parent / unquote(path)).resolve() if path else page
    if not target.is_file():
        return True
    return bool(fragment) and target in anchors and unquote(fragment) not in anchors[target]


if __name__ == "__main__":
    found = list(faults(Path(sys.argv[1]).resolve()))
    sys.stderr.writelines(f"{line}\n" for line in found)
    sys.exit(1 if found else 0)
