"""The topic tree as one HTML page that needs nothing else: nodes to open and close, what is there, and the legend."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from commands.explain.pictures.text import SIGNS
from streams.outline import Outline, marks

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; color: #24292f; background: #fff }
details, .leaf { margin-left: 1.4rem } summary { cursor: pointer } .leaf { padding-left: 1rem }
code { font-family: ui-monospace, Menlo, Consolas, monospace }
.mark { margin-left: .8rem; font-size: .9em; white-space: nowrap }
.object { color: #7b3fa0 } .place { color: #0550ae }
.subscription { color: #1a7f37 } .retained { color: #b35900 } .hidden { color: #777 }
@media (prefers-color-scheme: dark) { body { color: #d5dbe1; background: #16191d }
.object { color: #c792ea } .place { color: #79c0ff }
.subscription { color: #7ee787 } .retained { color: #ffb86b } }
"""
_LEGEND = {
    "object": "topic object",
    "place": "stream or subscription point",
    "subscription": "subscription",
    "retained": "retained publication",
}
_OPEN_BELOW = 200


def page(root: Outline, title: str) -> str:
    """The page's text."""
    small = sum(1 for _ in root.walk()) <= _OPEN_BELOW
    legend = "".join(f'<span class="mark {kind}">{SIGNS[kind]} {text}</span>' for kind, text in _LEGEND.items())
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body>\n<h1>{escape(title)}</h1><p>{legend}</p>\n"
        + "\n".join(_lines(root, title, small))
        + "\n</body></html>\n"
    )


def _lines(root: Outline, title: str, is_open: bool) -> Iterator[str]:
    waiting: list[tuple[Outline, str] | None] = [(root, title)]
    while waiting:
        item = waiting.pop()
        if item is None:
            yield "</details>"
            continue
        node, label = item
        about = f"<code>{escape(label)}</code>" + "".join(
            f'<span class="mark {kind}">{SIGNS[kind]} {escape(text)}</span>' for kind, text in marks(node)
        )
        if not node.children:
            yield f'<div class="leaf">{about}</div>'
            continue
        yield f"<details{' open' if is_open else ''}><summary>{about}</summary>"
        waiting.append(None)
        waiting += [(child, child.shown_label) for child in reversed(node.children)]
