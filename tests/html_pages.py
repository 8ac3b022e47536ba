"""What a page of ours is made of, as a parser of HTML sees it."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

_VOID = {"meta", "input", "br", "col", "link"}


class PageParts(HTMLParser):
    """The parts of one page.

    links: what it leads to or loads. open: the tags that are open at its end. words: its text outside of scripts.
    scripts: the texts of script elements that run. tables: the data of its tables. handlers: attributes that run.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.tables: list[dict[str, Any]] = []
        self.handlers: list[str] = []
        self._is_data = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self._is_data = tag == "script" and ("type", "application/json") in attrs
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["script"]:
            self.words.append(data)
        elif self._is_data:
            self.tables.append(json.loads(data))
        else:
            self.scripts.append(data)


def check_page(page: str) -> PageParts:
    """The parts of *page*, which needs nothing else, runs our one script, and ends properly."""
    parts = PageParts(page)
    assert parts.open == []
    assert parts.handlers == []
    assert [link for link in parts.links if not link.startswith("#")] == []
    assert len(parts.scripts) == 1
    assert all(f'id="{link[1:]}"' in page for link in parts.links)
    for needed in ("Content-Security-Policy", "width=device-width", "prefers-color-scheme: dark", "@media print"):
        assert needed in page
    return parts
