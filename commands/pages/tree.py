"""A tree of a page: nodes to open and close, the first levels open, a search that opens what leads to a node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from commands.pages.text import escaped

_MARKS_IN_LINE: Final = 4


@dataclass(slots=True)
class TreeNode:
    """A node. marks: (kind, text) of what is at it; the kind is a class of the style."""

    label: str
    marks: Sequence[tuple[str, str]] = ()
    children: list[TreeNode] = field(default_factory=list)


def tree(root: TreeNode, open_levels: int = 2) -> str:
    """The tree as HTML. open_levels: how many levels of nodes are open at first."""
    return f'<div class="tree"><div class="tools" hidden></div>\n{"".join(_lines(root, open_levels))}</div>'


def _lines(root: TreeNode, open_levels: int) -> Iterator[str]:
    # A topic may have thousands of levels: hence no recursion.
    waiting: list[tuple[TreeNode, int] | str] = [(root, 0)]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
            continue
        node, level = item
        many = len(node.marks) > _MARKS_IN_LINE
        shown = node.marks[: _MARKS_IN_LINE - 1] if many else node.marks
        label = f"<code>{escaped(node.label)}</code>{_marks(shown)}"
        if many:
            label += f'<span class="mark rest">and {len(node.marks) - len(shown):,} more</span>'
        if not node.children and not many:
            yield f'<div class="leaf">{label}</div>\n'
            continue
        is_open = " open" if level < open_levels and node.children else ""
        yield f'<details class="node"{is_open}><summary>{label}</summary>\n'
        if many:
            yield f'<div class="marks">{_marks(node.marks[len(shown) :])}</div>\n'
        waiting.append("</details>\n")
        waiting += [(child, level + 1) for child in reversed(node.children)]


def _marks(marks: Sequence[tuple[str, str]]) -> str:
    return "".join(f'<span class="mark {kind}">{escaped(text)}</span>' for kind, text in marks)
