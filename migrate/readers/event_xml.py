"""Message Broker's XML events: topics with subscriptions and access control entries, made, changed, deleted.

    <Broker label="BRK1"><ControlGroup><DynamicSubscriptionEngine>
      <Topic name="stock/IBM"><Create>
        <Subscription clientId="mqrfh2:QM1:TRADER.Q" subscriptionPoint="GBP" user="fred" .../>
      </Create></Topic>
    </DynamicSubscriptionEngine></ControlGroup></Broker>

The broker published one such document for each change, on $SYS/Broker/<broker>/Subscription/<topic> and .../Topic/...;
a file may hold any number of them, one after the other: replayed, they give the state. What is understood of an
attribute is in ``wmb``, which the listing of mqsireportproperties shares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

from migrate.legacy_state import BrokerItem, Item, Product, Source
from migrate.readers.text import unread
from migrate.readers.wmb import Registry, local_name

_ROOT = re.compile(r"<(?:\?xml[^>]*\?>\s*<)?(?:[\w.-]+:)?Broker\b")
_ACTIONS = ("Create", "Change", "Delete")
_PARSER = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)


def looks_like(text: str) -> bool:
    """Whether *text* begins as an event does."""
    return _ROOT.match(text.lstrip()) is not None


def read(text: str, file: str) -> Iterator[Item]:
    """The state that the events of *text* lead to."""
    registry = Registry(file)
    label = ""
    for number, document in _documents(text):
        if "<!DOCTYPE" in document:
            yield unread(file, number, document[:80], "a document type declaration, which no event has")
            continue
        try:
            root = etree.fromstring(document.encode("utf-8"), _PARSER)
        except etree.XMLSyntaxError as error:
            line = number + int(error.lineno or 1) - 1
            yield unread(file, line, document[:80], f"not a well-formed event: {error.msg}")
            continue
        if not label and root.get("label"):
            label = str(root.get("label"))
            yield BrokerItem(source=Source(file=file, position=number), name=label, product=Product.WMB)
        yield from _event(root, number, file, registry)
    yield from registry.items()


def _documents(text: str) -> Iterator[tuple[int, str]]:
    """Each document with the line it begins on; they end with </Broker>, in whatever prefix."""
    at = 0
    for end in re.finditer(r"</(?:[\w.-]+:)?Broker\s*>", text):
        document = text[at : end.end()]
        skipped = len(document) - len(document.lstrip())
        number = text.count("\n", 0, at + skipped) + 1
        yield number, re.sub(r"^\s*<\?xml[^>]*\?>", "", document).strip()
        at = end.end()
    if text[at:].strip():
        yield text.count("\n", 0, at) + 1, text[at:].strip()


def _line(element: etree._Element) -> int:
    line = element.sourceline
    return line if isinstance(line, int) else 1


def _event(root: etree._Element, number: int, file: str, registry: Registry) -> Iterator[Item]:
    for topic in root.iter():
        if not isinstance(topic.tag, str) or local_name(topic) != "Topic":
            continue
        name = topic.get("name")
        line = number + _line(topic) - 1
        if name is None:
            yield unread(file, line, "<Topic>", "a topic without a name")
            continue
        for action in topic:
            if not isinstance(action.tag, str):
                continue
            word = local_name(action)
            if word == "Topic":
                continue
            entries = list(action) if word in _ACTIONS else [action]
            for entry in entries:
                if isinstance(entry.tag, str):
                    at = number + _line(entry) - 1
                    attributes = {str(key): str(value) for key, value in entry.attrib.items()}
                    problem = registry.take(
                        word if word in _ACTIONS else "Create", local_name(entry), name, attributes, at
                    )
                    if problem:
                        yield unread(file, at, f"{name}: <{local_name(entry)}>", problem)
