"""The topic tree as one HTML page that needs nothing else: nodes to open and close, what is there, and the legend."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from commands.explain.pictures.legend import LEGEND, SIGNS
from commands.pages import Figure, Section, TreeNode, document, tree
from streams.outline import Outline, marks

_OPEN_BELOW: Final = 60
_OPEN_LEVELS: Final = 2


def page(root: Outline, title: str) -> str:
    """The page's text."""
    nodes = list(root.walk())
    counts = (
        (len(nodes) - 1, "topics"),
        (sum(len(node.objects) for node in nodes), "topic objects"),
        (sum(len(node.subscriptions) for node in nodes), "subscriptions"),
        (sum(node.retained for node in nodes), "retained publications"),
    )
    mark = Markup('<span class="mark {}">{} {}</span>')
    legend = Markup(" ").join(mark.format(kind, SIGNS[kind], text) for kind, text in LEGEND.items())
    # A small tree is open as a whole.
    levels = len(nodes) if len(nodes) <= _OPEN_BELOW else _OPEN_LEVELS
    return document(
        f"Topic tree of {title}",
        (),
        [Figure(f"{count:,}", label) for count, label in counts],
        [Section("Topics", tree(_nodes(root, title), levels))],
        after=Markup('<p class="key-line">{}</p>').format(legend),
    )


def _nodes(root: Outline, title: str) -> TreeNode:
    top = TreeNode(title, _signed(root))
    waiting = [(root, top)]
    while waiting:
        node, made = waiting.pop()
        made.children = [TreeNode(child.shown_label, _signed(child)) for child in node.children]
        waiting += zip(node.children, made.children, strict=True)
    return top


def _signed(node: Outline) -> list[tuple[str, str]]:
    return [(kind, f"{SIGNS[kind]} {text}") for kind, text in marks(node)]
