"""A tree of a page: nodes to open and close, the first levels open, a search that opens what leads to a node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from markupsafe import Markup

from commands.pages.engine import fill

_MARKS_IN_LINE: Final = 4


@dataclass(slots=True)
class TreeNode:
    """A node. marks: (kind, text) of what is at it; the kind is a class of the style."""

    label: str
    marks: Sequence[tuple[str, str]] = ()
    children: list[TreeNode] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Line:
    """The beginning of a node. shown: marks in its line. rest: those in a box below it."""

    node: TreeNode
    shown: Sequence[tuple[str, str]]
    rest: Sequence[tuple[str, str]]
    is_leaf: bool
    is_open: bool


def tree(root: TreeNode, open_levels: int = 2) -> Markup:
    """The tree as HTML. open_levels: how many levels of nodes are open at first."""
    return fill("tree.html", lines=_lines(root, open_levels))


def _lines(root: TreeNode, open_levels: int) -> Iterator[_Line | None]:
    """The beginning of each node, and None for the end of one that is no leaf."""
    # A topic may have thousands of levels: hence no recursion.
    waiting: list[tuple[TreeNode, int] | None] = [(root, 0)]
    while waiting:
        item = waiting.pop()
        if item is None:
            yield None
            continue
        node, level = item
        many = len(node.marks) > _MARKS_IN_LINE
        shown = node.marks[: _MARKS_IN_LINE - 1] if many else node.marks
        is_leaf = not node.children and not many
        yield _Line(node, shown, node.marks[len(shown) :], is_leaf, level < open_levels and bool(node.children))
        if not is_leaf:
            waiting.append(None)
            waiting += [(child, level + 1) for child in reversed(node.children)]
