"""The topic tree as SVG: a line a node, indented, with a sign for what is there."""

from __future__ import annotations

from xml.sax.saxutils import escape

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
    "text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#24292f}"
    ".mark{font-size:12px}.edge{stroke:#b8bec5;fill:none}.title{font-weight:bold}"
)
_MOST_MARKS = 6


def svg(root: Outline, title: str) -> str:
    """The picture as the text of an SVG file. Signs: square topic object, triangle stream or subscription point,
    circle subscription, diamond retained publication.
    """
    rows: list[str] = []
    width = _draw(root, title, 0, rows, [0])[1]
    height = _ROW * (1 + sum(1 for _ in root.walk()))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + _LEFT:.0f}" height="{height}" '
        f'viewBox="0 0 {width + _LEFT:.0f} {height}" role="img" aria-label="{escape(title, {chr(34): "&quot;"})}">'
    )
    return "\n".join([head, f"<style>{_STYLE}</style>", *rows, "</svg>"]) + "\n"


def _draw(node: Outline, label: str, depth: int, rows: list[str], line: list[int]) -> tuple[int, float]:
    """Draw *node* and what is below; returns its row, and how far to the right anything reaches."""
    row = line[0]
    line[0] += 1
    x, y = _LEFT + depth * _STEP, row * _ROW + _ROW
    style = ' class="title"' if depth == 0 else ""
    rows.append(f'<text x="{x}" y="{y}"{style}>{escape(label)}</text>')
    right = x + len(label) * _CHARACTER + 14
    found = marks(node)
    for kind, text in found[:_MOST_MARKS]:
        rows.append(_sign(kind, right, y) + f'<text class="mark" x="{right + 14:.0f}" y="{y}">{escape(text)}</text>')
        right += 14 + len(text) * _CHARACTER + 14
    if len(found) > _MOST_MARKS:
        more = f"and {len(found) - _MOST_MARKS} more"
        rows.append(f'<text class="mark" x="{right:.0f}" y="{y}">{more}</text>')
        right += len(more) * _CHARACTER
    for child in node.children:
        at, reach = _draw(child, child.shown_label, depth + 1, rows, line)
        down = at * _ROW + _ROW - 4
        rows.append(f'<path class="edge" d="M{x + 6} {y + 6} V{down} H{x + _STEP - 4}"/>')
        right = max(right, reach)
    return row, right


def _sign(kind: str, x: float, y: float) -> str:
    colour, middle = _COLOURS[kind], y - 4.5
    if kind == "object":
        return f'<rect x="{x:.0f}" y="{middle - 4:.1f}" width="8" height="8" fill="{colour}"/>'
    if kind == "place":
        return f'<path d="M{x:.0f} {middle + 4:.1f} h9 l-4.5 -8.5z" fill="{colour}"/>'
    if kind == "retained":
        return f'<path d="M{x + 4:.0f} {middle - 5:.1f} l5 5 -5 5 -5 -5z" fill="{colour}"/>'
    return f'<circle cx="{x + 4:.0f}" cy="{middle:.1f}" r="4" fill="{colour}"/>'
