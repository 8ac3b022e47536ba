"""A network of queue managers as SVG: parents above their children, clusters as frames, flows as lines with counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_COLUMN, _ROW, _BOX, _HEIGHT, _MARGIN = 190, 120, 130, 40, 40
_COLOURS: Final = ("#0550ae", "#1a7f37", "#b35900", "#7b3fa0", "#a40e26", "#116329")
_STYLE: Final = (
    "svg{background:#fff}text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#24292f;text-anchor:middle}"
    ".title{font-weight:bold;text-anchor:start}.count{font-size:11px}.cluster{font-size:11px}"
    ".box{fill:#f6f8fa;stroke:#57606a}.link{stroke:#b8bec5;fill:none}.flow{stroke:#1a7f37;fill:none}"
)
_THICKEST: Final = 8.0


@dataclass(frozen=True, slots=True)
class NetworkNode:
    """A queue manager. notes: short texts below its name."""

    qmgr: str
    parent: str = ""
    clusters: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def network_svg(
    nodes: Sequence[NetworkNode],
    links: Sequence[tuple[str, str]],
    publications: Mapping[tuple[str, str], int],
    title: str,
) -> str:
    """The picture as the text of an SVG file. links: pairs of neighbours. publications: by sender and receiver."""
    places = _places(nodes)
    width = max((x for x, _ in places.values()), default=0) + _BOX // 2 + _MARGIN
    height = max((y for _, y in places.values()), default=0) + _HEIGHT + _MARGIN
    most = max(publications.values(), default=0)
    parts = [f'<text class="title" x="{_MARGIN}" y="24">{escape(title, quote=False)}</text>']
    for one, other in links:
        parts += _link(
            places[one], places[other], (publications.get((one, other), 0), publications.get((other, one), 0)), most
        )
    colours = {cluster: _COLOURS[n % len(_COLOURS)] for n, cluster in enumerate(_clusters(nodes))}
    for node in nodes:
        parts += _node(node, places[node.qmgr], colours)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="{escape(title)}">'
    )
    return "\n".join([head, f"<style>{_STYLE}</style>", *parts, "</svg>"]) + "\n"


def _clusters(nodes: Sequence[NetworkNode]) -> list[str]:
    return list(dict.fromkeys(cluster for node in nodes for cluster in node.clusters))


def _places(nodes: Sequence[NetworkNode]) -> dict[str, tuple[int, int]]:
    """The middle of each box: a row for each generation, in the order of the file."""
    parents = {node.qmgr: node.parent for node in nodes}
    columns: dict[int, int] = {}
    places = {}
    for node in nodes:
        depth, at, seen = 0, parents.get(node.qmgr, ""), {node.qmgr}
        while at in parents and at not in seen:
            seen.add(at)
            depth, at = depth + 1, parents[at]
        column = columns[depth] = columns.get(depth, -1) + 1
        places[node.qmgr] = (_MARGIN + _BOX // 2 + column * _COLUMN, 60 + _HEIGHT // 2 + depth * _ROW)
    return places


def _link(start: tuple[int, int], end: tuple[int, int], counts: tuple[int, int], most: int) -> list[str]:
    (x1, y1), (x2, y2) = start, end
    # Boxes of one row are joined by an arc below them, so that it does not go through those between.
    bend = 0 if y1 != y2 else _HEIGHT + abs(x2 - x1) // 8
    path = f"M{x1} {y1} Q{(x1 + x2) // 2} {(y1 + y2) // 2 + bend} {x2} {y2}"
    total = sum(counts)
    if not total:
        return [f'<path class="link" d="{path}"/>']
    thickness = 1 + (_THICKEST - 1) * total / most / 2
    text = (
        f'<text class="count" x="{(x1 + x2) // 2}" y="{(y1 + y2 + bend) // 2 + 4}">{counts[0]:,} / {counts[1]:,}</text>'
    )
    return [f'<path class="flow" stroke-width="{thickness:.1f}" d="{path}"/>', text]


def _node(node: NetworkNode, place: tuple[int, int], colours: Mapping[str, str]) -> list[str]:
    x, y = place
    left, top = x - _BOX // 2, y - _HEIGHT // 2
    parts = [f'<rect class="box" x="{left}" y="{top}" width="{_BOX}" height="{_HEIGHT}" rx="6"/>']
    parts.append(f'<text x="{x}" y="{y - 2}">{escape(node.qmgr, quote=False)}</text>')
    if node.notes:
        parts.append(f'<text class="count" x="{x}" y="{y + 13}">{escape(", ".join(node.notes), quote=False)}</text>')
    for n, cluster in enumerate(node.clusters):
        colour = colours[cluster]
        gap = 4 + 4 * n
        parts.append(
            f'<rect x="{left - gap}" y="{top - gap}" width="{_BOX + 2 * gap}" height="{_HEIGHT + 2 * gap}" rx="9" '
            f'fill="none" stroke="{colour}"/>'
        )
        label = escape(cluster, quote=False)
        parts.append(f'<text class="cluster" x="{x}" y="{top - gap - 3}" style="fill:{colour}">{label}</text>')
    return parts
