"""The topic tree in characters."""

from __future__ import annotations

from collections.abc import Iterator

from commands.explain.pictures.legend import SIGNS
from streams.outline import Outline, marks

_COLOURS = {"object": "35", "place": "34", "subscription": "32", "retained": "33", "hidden": "2"}
_MARKS_SHOWN = 4
_MARKS_COLUMN = 36


def text_tree(root: Outline, title: str, colour: bool = False) -> Iterator[str]:
    """The lines of the picture. colour: with the terminal's colours."""
    yield _line(title, root, colour)
    waiting = _children(root, "")
    while waiting:
        start, indent, node = waiting.pop()
        yield _line(start, node, colour)
        waiting += _children(node, indent)


def _children(node: Outline, indent: str) -> list[tuple[str, str, Outline]]:
    """The beginning of each child's line, the indent below it, and the child; the first one last."""
    drawn = [(f"{indent}├── {child.shown_label}", f"{indent}│   ", child) for child in node.children[:-1]]
    drawn += [(f"{indent}└── {child.shown_label}", f"{indent}    ", child) for child in node.children[-1:]]
    return drawn[::-1]


def _line(start: str, node: Outline, colour: bool) -> str:
    shown = [_mark(kind, text, colour) for kind, text in marks(node)]
    if len(shown) > _MARKS_SHOWN:
        shown = [*shown[: _MARKS_SHOWN - 1], f"and {len(shown) - _MARKS_SHOWN + 1} more"]
    return f"{start:<{_MARKS_COLUMN}}  {'  '.join(shown)}".rstrip()


def _mark(kind: str, text: str, colour: bool) -> str:
    plain = f"{SIGNS[kind]} {text}"
    return f"\x1b[{_COLOURS[kind]}m{plain}\x1b[0m" if colour else plain
