"""The topic tree before and after, as lines: objects, and how many subscriptions and publications lie where."""

from __future__ import annotations

from collections.abc import Iterator

from migrate.log import printable
from migrate.plan import AddSubscription, KeepRetained, MigrationPlan, Store
from migrate.target import Target
from rfh2.errors import CommandError
from streams.patterns import parse_pattern
from streams.subscriptions import WildcardScheme
from streams.topic_objects import DEFAULT_STREAM, TopicObject, Wildcard

_DEPTH = 3
_WIDTH = 12


class _TreeNode:
    """A level of the tree. Most nodes have no children: those have no dictionary for them."""

    __slots__ = ("children", "label", "retained", "subscriptions")

    def __init__(self, label: str = "") -> None:
        self.children: dict[str, _TreeNode] | None = None
        self.subscriptions = 0
        self.retained = 0
        self.label = label

    def at(self, topic_string: str) -> _TreeNode:
        """The node of *topic_string*, as deep as trees are shown."""
        node = self
        for level in topic_string.split("/", _DEPTH)[:_DEPTH] if topic_string else ():
            if node.children is None:
                node.children = {}
            child = node.children.get(level)
            if child is None:
                child = node.children[level] = _TreeNode()
            node = child
        return node

    def total(self) -> tuple[int, int]:
        """Subscriptions and retained publications here and below."""
        subscriptions, retained = self.subscriptions, self.retained
        for child in (self.children or {}).values():
            more = child.total()
            subscriptions, retained = subscriptions + more[0], retained + more[1]
        return subscriptions, retained


def before(plan: MigrationPlan) -> list[str]:
    """Each stream with its own topics, and within it each subscription point."""
    roots: dict[str, _TreeNode] = {stream.name: _TreeNode() for stream in plan.state.streams}
    roots.setdefault(DEFAULT_STREAM, _TreeNode())
    for subscription in plan.state.subscriptions:
        root = roots.setdefault(_place(subscription.stream, subscription.sub_point), _TreeNode())
        root.at(_literal(subscription.topic, subscription.scheme)).subscriptions += 1
    for retained in plan.state.retained:
        roots.setdefault(_place(retained.stream, retained.sub_point), _TreeNode()).at(retained.topic).retained += 1
    lines = []
    for name, root in sorted(roots.items(), key=lambda item: (item[0] != DEFAULT_STREAM, item[0])):
        lines += [f"{printable(name)}{_counts(root)}", *_children(root, "  ")]
    return lines


def after(plan: MigrationPlan, target: Target) -> list[str]:
    """One tree, with the topic objects in it."""
    root = _TreeNode(label=" SYSTEM.BASE.TOPIC")
    objects = {o.name: o for o in target.objects.topics.own}
    for step in plan.steps:
        if isinstance(step, Store) and isinstance(step.definition, TopicObject):
            objects[step.definition.name] = step.definition
    for topic in objects.values():
        if topic.topic_string:
            blocked = ", WILDCARD(BLOCK)" if topic.wildcard is Wildcard.BLOCK else ""
            node = root.at(topic.topic_string)
            node.label += f" [{topic.name}{blocked}]"
    for step in plan.steps:
        if isinstance(step, AddSubscription):
            found = step.subscription
            root.at(_literal(found.topic_string, found.wildcard)).subscriptions += 1
        elif isinstance(step, KeepRetained):
            root.at(step.retained.topic_string).retained += 1
    return [f"(root){root.label}{_counts(root)}", *_children(root, "  ")]


def _place(stream: str, sub_point: str | None) -> str:
    return f"{stream} at {sub_point}" if sub_point else stream


def _literal(topic_string: str, scheme: WildcardScheme) -> str:
    try:
        return parse_pattern(topic_string, scheme).literal_topic
    except CommandError:
        return topic_string


def _children(node: _TreeNode, indent: str) -> Iterator[str]:
    shown = sorted((node.children or {}).items(), key=lambda item: (not item[1].label, item[0]))
    for level, child in shown[:_WIDTH]:
        yield f"{indent}{printable(level) or '(empty level)'}{child.label}{_counts(child)}"
        yield from _children(child, indent + "  ")
    if len(shown) > _WIDTH:
        yield f"{indent}... and {len(shown) - _WIDTH} more"


def _counts(node: _TreeNode) -> str:
    subscriptions, retained = node.total()
    counts = [f"{subscriptions} subscriptions"] * bool(subscriptions) + [f"{retained} retained"] * bool(retained)
    return f"  ({', '.join(counts)})" if counts else ""
