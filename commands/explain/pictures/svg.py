"""The topic tree as SVG: a line a node, indented, with a sign for what is there."""

from __future__ import annotations

from html import escape

from commands.explain.pictures.legend import LEGEND
from streams.outline import Outline, marks

_ROW, _STEP, _LEFT = 22, 24, 16
_CHARACTER = 7.3
_COLOURS = {
    "object": "#7b3fa0",
    "place": "#0550ae",
    "subscription": "#1a7f37",
    "retained": "#b35900",
    "hidden": "#777777",
}
_STYLE = (
    "svg{background:#fff}text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#24292f}"
    ".mark{font-size:12px}.edge{stroke:#b8bec5;fill:none}.title{font-weight:bold}"
)
_MOST_MARKS = 6


def svg(root: Outline, title: str) -> str:
    """The picture as the text of an SVG file, with the legend of its signs at the bottom."""
    rows, width = _draw(root, title)
    height = _ROW * (2 + sum(1 for _ in root.walk())) + _ROW // 2
    width = max(width, _draw_legend(height - _ROW // 2, rows))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + _LEFT:.0f}" height="{height}" '
        f'viewBox="0 0 {width + _LEFT:.0f} {height}" role="img" aria-label="{escape(title)}">'
    )
    return "\n".join([head, f"<style>{_STYLE}</style>", *rows, "</svg>"]) + "\n"


def _draw(root: Outline, title: str) -> tuple[list[str], float]:
    """What is drawn, and how far to the right anything reaches."""
    rows: list[str] = []
    width, row = 0.0, 0
    # A node to be drawn, or the edge to one whose nodes below have all been drawn.
    waiting: list[tuple[Outline, str, int, str] | str] = [(root, title, 0, "")]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            rows.append(item)
            continue
        node, label, depth, above = item
        x, y = _LEFT + depth * _STEP, row * _ROW + _ROW
        row += 1
        if above:
            waiting.append(f'<path class="edge" d="{above} V{y - 4} H{x - 4}"/>')
        style = ' class="title"' if depth == 0 else ""
        rows.append(f'<text x="{x}" y="{y}"{style}>{escape(label, quote=False)}</text>')
        width = max(width, _draw_marks(node, x + len(label) * _CHARACTER + 14, y, rows))
        corner = f"M{x + 6} {y + 6}"
        waiting += [(child, child.shown_label, depth + 1, corner) for child in reversed(node.children)]
    return rows, width


def _draw_legend(y: int, rows: list[str]) -> float:
    """Draw the legend; returns where it ends."""
    right: float = _LEFT
    rows.append(f'<path class="edge" d="M{_LEFT} {y - _ROW + 2} H{_LEFT + 200}"/>')
    for kind, text in LEGEND.items():
        rows.append(_sign(kind, right, y) + f'<text class="mark" x="{right + 14:.0f}" y="{y}">{text}</text>')
        right += 14 + len(text) * _CHARACTER + 14
    return right


def _draw_marks(node: Outline, right: float, y: int, rows: list[str]) -> float:
    """Draw the signs of what is at a node, from *right* on; returns where they end."""
    found = marks(node)
    for kind, text in found[:_MOST_MARKS]:
        mark = f'<text class="mark" x="{right + 14:.0f}" y="{y}">{escape(text, quote=False)}</text>'
        rows.append(_sign(kind, right, y) + mark)
        right += 14 + len(text) * _CHARACTER + 14
    if len(found) > _MOST_MARKS:
        more = f"and {len(found) - _MOST_MARKS} more"
        rows.append(f'<text class="mark" x="{right:.0f}" y="{y}">{more}</text>')
        right += len(more) * _CHARACTER
    return right


def _sign(kind: str, x: float, y: float) -> str:
    colour, middle = _COLOURS[kind], y - 4.5
    if kind == "object":
        return f'<rect x="{x:.0f}" y="{middle - 4:.1f}" width="8" height="8" fill="{colour}"/>'
    if kind == "place":
        return f'<path d="M{x:.0f} {middle + 4:.1f} h9 l-4.5 -8.5z" fill="{colour}"/>'
    if kind == "retained":
        return f'<path d="M{x + 4:.0f} {middle - 5:.1f} l5 5 -5 5 -5 -5z" fill="{colour}"/>'
    return f'<circle cx="{x + 4:.0f}" cy="{middle:.1f}" r="4" fill="{colour}"/>'
