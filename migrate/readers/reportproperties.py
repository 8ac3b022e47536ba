"""The listing of ``mqsireportproperties BROKER -e default -o DynamicSubscriptionEngine -r`` (guide 8.4).

    DynamicSubscriptionEngine
      Topic
        name='stock/IBM'
        Subscription
          clientId='mqrfh2:QM1:TRADER.Q'
          user='fred'
        ACLEntry
          principalName='fred'
          publish='true'

    BIP8071I: Successful command completion.

No listing of a real broker was available. The reader assumes that indentation shows nesting, that properties have the
form ``name='value'``, and that the words are those of the broker's events. Anything else is reported and skipped; a
listing that does not end with BIP8071I is reported as cut short.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from migrate.legacy_state import Item, Unread
from migrate.readers.text import SourceLine, lines_of, unread
from migrate.readers.wmb import Registry

_PROPERTY = re.compile(r"([\w.-]+)\s*=\s*'(.*)'", re.DOTALL)
_OPEN_PROPERTY = re.compile(r"([\w.-]+)\s*=\s*'([^']*)")
_ELEMENT = re.compile(r"[A-Za-z][\w.-]*")
_MESSAGE = re.compile(r"BIP\d{4}[A-Z]?:?")
_DONE = "BIP8071"
_ELEMENTS = frozenset({"Subscription", "ACLEntry", "RetainedPublication", "Retained"})


def looks_like(text: str) -> bool:
    """Whether *text* lists the subscription engine."""
    return any(line.text.startswith("DynamicSubscriptionEngine") for line in lines_of(text))


@dataclass(slots=True)
class _PropertyNode:
    word: str
    line: SourceLine
    properties: dict[str, str] = field(default_factory=dict)


def read(text: str, file: str) -> Iterator[Item]:
    """Topics' subscriptions and entries in the order of the listing."""
    registry = Registry(file)
    problems: list[Unread] = []
    stack: list[_PropertyNode] = []
    complete = False

    def close_to(indent: int) -> None:
        while stack and stack[-1].line.indent >= indent:
            _closed(stack.pop(), stack, registry, problems, file)

    for line in lines_of(text):
        if _MESSAGE.match(line.text):
            complete = complete or line.text.startswith(_DONE)
            if not line.text.startswith(_DONE):
                problem = unread(file, line.number, line.text, "a message of the broker")
                # BIPnnnnI informs; a warning or an error may stand for what is not listed.
                if line.text[7:8] == "I":
                    problem = replace(problem, is_state=False, warns=True)
                problems.append(problem)
            continue
        found = _PROPERTY.fullmatch(line.text)
        if found is not None:
            while stack and stack[-1].line.indent >= line.indent:
                _closed(stack.pop(), stack, registry, problems, file)
            if stack:
                stack[-1].properties[found[1]] = found[2]
            else:
                problems.append(unread(file, line.number, line.text, "a property before any element"))
        elif _ELEMENT.fullmatch(line.text):
            close_to(line.indent)
            stack.append(_PropertyNode(line.text, line))
        elif _OPEN_PROPERTY.fullmatch(line.text):
            problems.append(unread(file, line.number, line.text, "its value has no end: the listing is cut short"))
        else:
            problems.append(unread(file, line.number, line.text, "neither an element nor a property"))
    close_to(-1)
    if not complete:
        problems.append(unread(file, text.count("\n") + 1, "", "the listing does not end with BIP8071I: is it whole?"))
    yield from registry.items()
    yield from problems


def _closed(
    node: _PropertyNode, above: list[_PropertyNode], registry: Registry, problems: list[Unread], file: str
) -> None:
    if node.word not in _ELEMENTS:
        return
    topic = next((outer for outer in reversed(above) if outer.word == "Topic"), None)
    name = None if topic is None else topic.properties.get("name")
    if name is None:
        problems.append(unread(file, node.line.number, node.word, "it belongs to no topic with a name"))
        return
    problem = registry.take("Create", node.word, name, node.properties, node.line.number)
    if problem:
        problems.append(unread(file, node.line.number, f"{name}: {node.word}", problem))
