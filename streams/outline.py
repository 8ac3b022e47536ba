"""The topic space as a tree to look at: levels, and the topic objects, subscriptions and retained publications at each.

Wildcards appear as the levels that subscribers wrote. A chain of levels without content is one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field

from rfh2.terminal_escape import visible
from streams.mapping import TopicPrefix
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_objects import TopicObject
from streams.topic_strings import SEPARATOR, is_within


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
