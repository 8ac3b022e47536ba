"""Pictures of the topic tree, for the terminal, as SVG and as a page that needs nothing else; of networks as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from html import escape
from typing import Final

from markupsafe import Markup

from commands.pages import Figure, Section, TreeNode, document, tree
from rfh2.terminal_escape import visible
from streams.mapping import TopicPrefix
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_objects import TopicObject
from streams.topic_strings import SEPARATOR, is_within

# The topic space as a tree to look at: levels, and the topic objects, subscriptions and retained publications at each.
#
# Wildcards appear as the levels that subscribers wrote. A chain of levels without content is one node.


@dataclass(slots=True)
class Outline:
    """One node. label: the levels that lead here from the node above; topic_string: from the root. copies: the names of
    those objects that are a cluster's, and are defined elsewhere.
    """

    label: str
    topic_string: str
    objects: list[TopicObject] = field(default_factory=list)
    copies: Set[str] = frozenset()
    places: list[TopicPrefix] = field(default_factory=list)
    subscriptions: list[Subscription] = field(default_factory=list)
    retained: bool = False
    children: list[Outline] = field(default_factory=list)
    hidden: int = 0

    @property
    def shown_label(self) -> str:
        """The label for a person: no control characters, and a word where the level is empty."""
        return visible(self.label) or "(empty level)"

    def walk(self) -> Iterator[Outline]:
        """This node and all below it, top down."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)


def outline(
    objects: Iterable[TopicObject],
    subscriptions: Iterable[Subscription],
    retained_topics: Iterable[str],
    under: str = "",
    depth: int | None = None,
    places: Iterable[TopicPrefix] = (),
    copies: Set[str] = frozenset(),
) -> Outline:
    """The tree of everything at and below topic string *under*, at most *depth* levels deep.

    places: the streams and subscription points to mark; each is where a topic object is. copies: the names of those
    objects that are a cluster's, and are defined elsewhere.
    Deeper nodes are counted in ``hidden`` of the node above them. Children are in order of their labels.
    """
    root = _OutlineNode()
    for topic_object in objects:
        if topic_object.topic_string:
            root.add(topic_object.topic_string, topic_object, under, depth)
    for subscription in subscriptions:
        root.add(subscription.topic_string, subscription, under, depth)
    for topic_string in retained_topics:
        root.add(topic_string, None, under, depth)
    for place in places:
        root.add(place.topic_string, place, under, depth, counts=False)
    return _outlined(root, under, copies)


def marks(node: Outline) -> list[tuple[str, str]]:
    """What is at a node, in words: (``object`` | ``place`` | ``subscription`` | ``retained`` | ``hidden``, text)."""
    out = [("object", _about_object(each, each.name in node.copies)) for each in node.objects]
    out += [("place", str(place)) for place in node.places]
    out += [("subscription", _about_subscription(subscription)) for subscription in node.subscriptions]
    if node.retained:
        out.append(("retained", "retained"))
    if node.hidden:
        out.append(("hidden", f"{node.hidden} more below"))
    return [(kind, visible(text)) for kind, text in out]


class _OutlineNode:
    """A level while the tree is being built; ``here`` has None for a retained publication."""

    __slots__ = ("children", "here", "hidden")

    def __init__(self) -> None:
        self.children: dict[str, _OutlineNode] = {}
        self.here: list[TopicObject | TopicPrefix | Subscription | None] = []
        self.hidden = 0

    @property
    def is_bare(self) -> bool:
        """Whether nothing is here but what lies below."""
        return not (self.here or self.hidden)

    def add(
        self,
        topic_string: str,
        thing: TopicObject | TopicPrefix | Subscription | None,
        under: str,
        depth: int | None,
        counts: bool = True,
    ) -> None:
        if not is_within(under, topic_string):
            return
        rest = topic_string.removeprefix(under) if under else SEPARATOR + topic_string
        levels = rest.split(SEPARATOR)[1:]
        node = self
        for level in levels[:depth]:
            node = node.children.setdefault(level, _OutlineNode())
        if len(levels[:depth]) < len(levels):
            node.hidden += counts
        else:
            node.here.append(thing)


def _outlined(root: _OutlineNode, under: str, copies: Set[str]) -> Outline:
    # A topic may have thousands of levels, and be a chain of as many nodes: hence no recursion, and no topic string is
    # spelt out for a level that is only on the way to another.
    top = _shown(root, under, under, copies)
    waiting = [(root, top)]
    while waiting:
        node, above = waiting.pop()
        begin = above.topic_string + SEPARATOR if under or above is not top else ""
        for level, below in sorted(node.children.items()):
            child, levels = below, [level]
            while child.is_bare and len(child.children) == 1:
                ((level_below, child),) = child.children.items()
                levels.append(level_below)
            label = SEPARATOR.join(levels)
            made = _shown(child, label, begin + label, copies)
            above.children.append(made)
            waiting.append((child, made))
    return top


def _shown(node: _OutlineNode, label: str, topic_string: str, copies: Set[str]) -> Outline:
    objects = [thing for thing in node.here if isinstance(thing, TopicObject)]
    return Outline(
        label,
        topic_string,
        objects,
        copies & {each.name for each in objects},
        [thing for thing in node.here if isinstance(thing, TopicPrefix)],
        [thing for thing in node.here if isinstance(thing, Subscription)],
        None in node.here,
        hidden=node.hidden,
    )


def _about_object(topic_object: TopicObject, is_copy: bool) -> str:
    given = ["copy of"] if is_copy else []
    given += [f"CLUSTER({topic_object.cluster})"] if topic_object.cluster else []
    given += [f"WILDCARD({topic_object.wildcard.value})"] if topic_object.wildcard.value != "PASSTHRU" else []
    given += [f"{word}({'ENABLED' if value else 'DISABLED'})" for word, value in _switches(topic_object)]
    return " ".join([topic_object.name, *given])


def _switches(topic_object: TopicObject) -> list[tuple[str, bool]]:
    switches = (("PUB", topic_object.pub), ("SUB", topic_object.sub))
    return [(word, value) for word, value in switches if value is not None]


def _about_subscription(subscription: Subscription) -> str:
    words = [subscription.name or subscription.dest_queue]
    if subscription.name:
        words.append(f"to {subscription.dest_queue}")
    if subscription.options.pub_on_req_only:
        words.append("on request")
    if subscription.selector:
        words.append("filtered")
    if subscription.wildcard is WildcardScheme.CHAR:
        words.append("by characters")
    return " ".join(words)


# The signs of what can be at a topic, and what they mean; the same in every picture.

SIGNS: Final[Mapping[str, str]] = {"object": "■", "place": "▲", "subscription": "●", "retained": "◆", "hidden": "…"}
LEGEND: Final[Mapping[str, str]] = {
    "object": "topic object",
    "place": "stream or subscription point",
    "subscription": "subscription",
    "retained": "retained publication",
}


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


# A network of queue managers as SVG: parents above their children, clusters as frames, flows as lines with counts.

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


# The topic tree as SVG: a line a node, indented, with a sign for what is there.

_ROW, _STEP, _LEFT = 22, 24, 16
_CHARACTER = 7.3
_SVG_COLOURS = {
    "object": "#7b3fa0",
    "place": "#0550ae",
    "subscription": "#1a7f37",
    "retained": "#b35900",
    "hidden": "#777777",
}
_SVG_STYLE = (
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
    return "\n".join([head, f"<style>{_SVG_STYLE}</style>", *rows, "</svg>"]) + "\n"


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
    colour, middle = _SVG_COLOURS[kind], y - 4.5
    if kind == "object":
        return f'<rect x="{x:.0f}" y="{middle - 4:.1f}" width="8" height="8" fill="{colour}"/>'
    if kind == "place":
        return f'<path d="M{x:.0f} {middle + 4:.1f} h9 l-4.5 -8.5z" fill="{colour}"/>'
    if kind == "retained":
        return f'<path d="M{x + 4:.0f} {middle - 5:.1f} l5 5 -5 5 -5 -5z" fill="{colour}"/>'
    return f'<circle cx="{x + 4:.0f}" cy="{middle:.1f}" r="4" fill="{colour}"/>'


# The topic tree in characters.

_TERMINAL_COLOURS = {"object": "35", "place": "34", "subscription": "32", "retained": "33", "hidden": "2"}
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
    return f"\x1b[{_TERMINAL_COLOURS[kind]}m{plain}\x1b[0m" if colour else plain
