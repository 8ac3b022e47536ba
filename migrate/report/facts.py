"""The facts of a report as plain data: what JSON shows, and what text and HTML are written from.

The topic tree before and after, as lines: objects, and how many subscriptions and publications lie where.

Reasons without the names of their items, so that identical reasons are one line with a count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from commands.terminal.counted import counted
from migrate.checklist import CARED_FOR, KNOWN
from migrate.ledger import Fate, Reason, Verdict
from migrate.plan import AddSubscription, KeepRetained, MigrationPlan, Store, outcome_of
from migrate.target import Target
from rfh2.captured import iso
from rfh2.errors import CommandError
from rfh2.terminal_escape import printable
from streams.patterns import parse_pattern
from streams.subscriptions import WildcardScheme
from streams.topic_objects import DEFAULT_STREAM, TopicObject, Wildcard

_GAP: Final = "\N{HORIZONTAL ELLIPSIS}"
_NAMED: Final = {"user", "queue", "stream"}
_PUNCTUATION: Final = "'\",;:.()"


def folded(text: str, ids: Sequence[str], own: str = "") -> str:
    """The text of a reason and its known problems. own: the item's names, which are left out of the text."""
    shown = _without_names(text, own) if own else text
    return printable(shown) + (f" [{' '.join(ids)}]" if ids else "")


def sentence(text: str) -> str:
    """*text* with a full stop at its end."""
    return text if text.endswith(".") else f"{text}."


def _without_names(text: str, own: str) -> str:
    words = text.split(" ")
    for at, word in enumerate(words):
        name = word.strip(_PUNCTUATION)
        is_plain = name.isalpha() and name.islower()
        follows = at > 0 and words[at - 1] in _NAMED
        if (follows and not is_plain) or (len(name) > 2 and not is_plain and name in own):
            words[at] = word.replace(name, _GAP)
    return " ".join(words)


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


def tree_before(plan: MigrationPlan) -> list[str]:
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


def tree_after(plan: MigrationPlan, target: Target) -> list[str]:
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
    counts = [counted(subscriptions, "subscription")] * bool(subscriptions) + [f"{retained} retained"] * bool(retained)
    return f"  ({', '.join(counts)})" if counts else ""


EXAMPLES = 20


def facts(plan: MigrationPlan, target: Target) -> dict[str, Any]:
    """Everything that a report says of *plan*: values of JSON, ``fates`` as ``FateFacts``."""
    sums = plan.sums
    by_kind: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(map(str, Verdict), 0))
    for fate in plan.fates:
        by_kind[fate.key[0]][fate.verdict] += 1
    return {
        "tool": str(plan.tool),
        "phase": str(plan.phase),
        "broker": plan.state.broker_name,
        "qmgr": plan.qmgr,
        "at": iso(plan.now),
        "sources_until": None if plan.state.until is None else iso(plan.state.until),
        "options": list(plan.options),
        "fingerprint": plan.fingerprint,
        "outcome": str(outcome_of(plan)),
        "items": sums.items,
        "counts": {"migrated": sums.migrated, "changed": sums.changed, "reported": sums.refused + sums.left},
        "left_by_choice": sums.left,
        "by_kind": dict(by_kind),
        "steps": {
            "definitions": len(plan.definitions),
            "subscriptions": sum(isinstance(s, AddSubscription) for s in plan.steps),
            "retained": sum(isinstance(s, KeepRetained) for s in plan.steps),
        },
        "warnings": [_reason(reason) for reason in plan.warnings],
        "problems": _problems(plan),
        "visibility": [
            {
                "subscription": view.key[1],
                "pattern": view.pattern,
                "gained": list(view.gained),
                "gained_count": view.gained_count,
                "lost": list(view.lost),
                "lost_count": view.lost_count,
            }
            for view in plan.visibility
        ],
        "collisions": [
            {"topic_string": found.topic_string, "topics": [list(each) for each in found.each]}
            for found in plan.collisions
        ],
        "tree": {"before": tree_before(plan), "after": tree_after(plan, target)},
        "security": list(plan.security),
        "fates": FateFacts(plan.fates),
    }


class FateFacts:
    """The fates as data, each made when it is asked for: all of them at once would need several times the memory."""

    def __init__(self, fates: Sequence[Fate]) -> None:
        self._fates = fates

    def __len__(self) -> int:
        return len(self._fates)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(_fate, self._fates)


def _fate(fate: Fate) -> dict[str, Any]:
    return {
        "kind": fate.key[0],
        "number": fate.key[1],
        "label": fate.label,
        "source": fate.source,
        "verdict": str(fate.verdict),
        "becomes": fate.becomes,
        "reasons": [_reason(reason) for reason in fate.reasons],
    }


def _reason(reason: Reason) -> dict[str, Any]:
    return {"severity": str(reason.severity), "text": reason.text, "ids": list(reason.ids)}


def _problems(plan: MigrationPlan) -> list[dict[str, Any]]:
    """The known problems that the plan names, with whom they concern; those that its order keeps away, at the end."""
    concerned: dict[str, list[str]] = defaultdict(list)
    for fate in plan.fates:
        for reason in fate.reasons:
            for known in reason.ids:
                if len(concerned[known]) < EXAMPLES:
                    concerned[known].append(fate.label)
    found = [
        {
            "id": known,
            "title": KNOWN[known].title,
            "advice": KNOWN[known].advice,
            "count": count,
            "items": concerned[known],
            "cared_for": False,
        }
        for known, count in sorted(plan.problem_counts().items(), key=lambda item: (item[0][0] != "P", item[0]))
    ]
    named = {entry["id"] for entry in found}
    for known in CARED_FOR:
        if known not in named:
            entry = KNOWN[known]
            found.append(
                {
                    "id": known,
                    "title": entry.title,
                    "advice": entry.advice,
                    "count": 0,
                    "items": [],
                    "cared_for": True,
                }
            )
    return found
