"""The vocabulary of Message Broker's subscription engine, the same in its XML events and in its property listing.

Registry keeps the subscriptions and access control entries that exist after all changes, in the order in which they
were made: that order numbers them in the migration log (guide 8.4). A client identifier has its parts between colons:
the header format, the queue manager, the queue and, where there is one, the correlation identifier.

Topics of a stream begin with ``$SYS/STREAM/<stream>/`` inside the broker (guide 8.4).

Message Broker's XML events: topics with subscriptions and access control entries, made, changed, deleted.

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
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from lxml import etree

from migrate.assemble import split_stream
from migrate.legacy_state import (
    Access,
    AclEntry,
    BrokerItem,
    Item,
    LegacyRetained,
    LegacySubscription,
    Product,
    Source,
    Unread,
)
from migrate.readers.metatopics import of_printed
from migrate.readers.text import unread
from streams.subscriptions import PublicationFormat, WildcardScheme

_FORMATS: Final = {"mqrfh2": PublicationFormat.RFH2, "mqrfh": PublicationFormat.RFH1, "mqrfh1": PublicationFormat.RFH1}
_FLAGS: Final = {"localOnly": "Local", "pubOnReqOnly": "PubOnReqOnly", "informIfRet": "InformIfRet"}
_CORREL_ID: Final = re.compile("[0-9A-Fa-f]{48}")
_KNOWN: Final = _FLAGS.keys() | {
    "clientId",
    "subscriptionPoint",
    "subscriptionName",
    "filter",
    "user",
    "persistent",
    "expiryTimeStamp",
    "createTimeStamp",
    "tempDynamicQueue",
    "clientContext",
    "name",
    "uuid",
}
_ACL: Final = frozenset({"principalName", "principalType", "publish", "subscribe", "persistent", "name", "uuid"})


def local_name(element: etree._Element) -> str:
    """The element's name without a namespace."""
    return str(element.tag).rpartition("}")[2].rpartition(":")[2]


class Registry:
    """What is registered after the changes so far."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._subscriptions: dict[tuple[str, ...], LegacySubscription] = {}
        # A user and a group may have one name (guide 8.1), and an entry each.
        self._acl: dict[tuple[str, str, str], AclEntry] = {}
        self._retained: dict[tuple[str, str], LegacyRetained] = {}
        self._unread: list[Unread] = []

    def items(self) -> Iterator[Item]:
        """Everything that is left, and what was not understood."""
        yield from self._subscriptions.values()
        yield from self._acl.values()
        yield from self._retained.values()
        yield from self._unread

    def take(self, action: str, element: str, topic: str, attributes: Mapping[str, str], line: int) -> str:
        """One change: Create, Change or Delete of *element* at *topic*. Returns what was wrong with it, or ""."""
        if element == "Subscription":
            return self._subscription(action, topic, attributes, line)
        if element == "ACLEntry":
            return self._entry(action, topic, attributes, line)
        if element == "AllACLEntries":
            for key in [key for key in self._acl if key[0] == topic]:
                del self._acl[key]
            return ""
        if element in ("RetainedPublication", "Retained"):
            self._retain(action, topic, attributes, line)
            return ""
        return f"{element} is not part of a topic that is known"

    def _subscription(self, action: str, topic: str, attributes: Mapping[str, str], line: int) -> str:
        client = attributes.get("clientId", "")
        words = [attributes.get(name, "") for name in ("subscriptionPoint", "filter")]
        key = (topic, client, *words)
        if action == "Delete":
            if self._subscriptions.pop(key, None) is None:
                self._repeated(line, f"{topic}: {client}", "it deletes a subscription that is not there")
            return ""
        made = self._made(topic, client, attributes, line)
        if isinstance(made, str):
            return made
        if action == "Create" and key in self._subscriptions:
            # The later one is valid; the earlier one is still an item of the source.
            self._repeated(line, f"{topic}: {client}", "the same subscription a second time; the later one is used")
            self._subscriptions.pop(key)
        self._subscriptions[key] = made
        return ""

    def _made(self, topic: str, client: str, attributes: Mapping[str, str], line: int) -> LegacySubscription | str:
        word, *parts = client.split(":")
        header = _FORMATS.get(word.lower())
        client_id = client if word and parts and header is None else ""
        if client_id:
            # What the parts of other clientIds mean is not documented; none of these clients has a queue for certain.
            parts, header = ["", ""], PublicationFormat.RFH2
        if header is None or len(parts) < 2 or not (parts[1] or client_id):
            return f"clientId {client!r} does not name format, queue manager and queue"
        qmgr, queue, *more = parts
        correl_id = more[0] if more and _CORREL_ID.fullmatch(more[0]) else None
        stream, own = split_stream(topic)
        if not own:
            return f"{topic} is a stream, not a topic of it: no program can subscribe there"
        unknown_options = [f"{name}={attributes[name]}" for name in sorted(set(attributes) - _KNOWN)]
        if more and (correl_id is None or len(more) > 1):
            unknown_options.append(f"clientId part {':'.join(more[correl_id is not None :])}")
        options = [option for name, option in _FLAGS.items() if attributes.get(name) == "true"]
        if attributes.get("persistent") == "true":
            options.append("Pers")
        if correl_id is not None:
            options.append("CorrelAsId")
        moments: dict[str, Any] = {}
        for name, field in (("createTimeStamp", "created"), ("expiryTimeStamp", "expires_at")):
            text = attributes.get(name, "")
            moments[field] = of_printed(text)
            if text and moments[field] is None and text not in ("0", "never"):
                unknown_options.append(f"{name}={text}")
        return LegacySubscription(
            source=Source(file=self._file, position=line),
            topic=own,
            stream=stream,
            queue=queue,
            qmgr=qmgr,
            correl_id=correl_id,
            sub_point=attributes.get("subscriptionPoint") or None,
            scheme=WildcardScheme.TOPIC if header is PublicationFormat.RFH2 else WildcardScheme.CHAR,
            format=header,
            user=attributes.get("user", ""),
            name=attributes.get("subscriptionName") or None,
            filter=attributes.get("filter") or None,
            options=tuple(options),
            unknown_options=tuple(unknown_options),
            temp_dynamic=attributes.get("tempDynamicQueue") == "true",
            client_context=_hex(attributes.get("clientContext", "")),
            client_id=client_id,
            **moments,
        )

    def _entry(self, action: str, topic: str, attributes: Mapping[str, str], line: int) -> str:
        principal = attributes.get("principalName", "")
        if not principal:
            return "an entry without principalName"
        principal_type = _principal_type(attributes.get("principalType", ""))
        key = (topic, principal, principal_type)
        if action == "Delete":
            return self._delete_entry(key, line)
        rights: dict[str, Access] = {}
        for right in ("publish", "subscribe", "persistent"):
            text = attributes.get(right, "inherit").lower()
            if text not in ("true", "false", "inherit"):
                return f"{right}={text!r} is neither true, false nor inherit"
            rights[right] = Access(text)
        stream, own = split_stream(topic)
        if action == "Create" and key in self._acl:
            self._repeated(line, f"{topic}: {principal}", "the same entry a second time; the later one is used")
        self._acl[key] = AclEntry(
            source=Source(file=self._file, position=line),
            topic=own,
            stream=stream,
            principal=principal,
            principal_type=principal_type,
            publish=rights["publish"],
            subscribe=rights["subscribe"],
            persistent=rights["persistent"],
        )
        for name in sorted(set(attributes) - _ACL):
            self._say(line, f"{topic}: {name}={attributes[name]}", "not an attribute of an access control entry")
        return ""

    def _delete_entry(self, key: tuple[str, str, str], line: int) -> str:
        """Delete what *key* names; without a type, the one entry that the principal has there."""
        topic, principal, principal_type = key
        theirs = [k for k in self._acl if k[:2] == (topic, principal)]
        if key not in self._acl and principal_type == "unknown" and len(theirs) > 1:
            return "it does not say whether the user's or the group's entry is deleted; both are kept"
        found = key if key in self._acl else next((k for k in theirs if "unknown" in (principal_type, k[2])), None)
        if found is None:
            self._repeated(line, f"{topic}: {principal}", "it deletes an entry that is not there")
            return ""
        del self._acl[found]
        return ""

    def _retain(self, action: str, topic: str, attributes: Mapping[str, str], line: int) -> None:
        point = attributes.get("subscriptionPoint", "")
        if action == "Delete":
            self._retained.pop((topic, point), None)
            return
        stream, own = split_stream(topic)
        source = Source(file=self._file, position=line)
        self._retained[topic, point] = LegacyRetained(source=source, topic=own, stream=stream, sub_point=point or None)

    def _repeated(self, line: int, text: str, why: str) -> None:
        """An item that was understood but adds no state; a person should see it."""
        source = Source(file=self._file, position=line)
        self._unread.append(Unread(source=source, text=text, why=why, is_state=False, warns=True))

    def _say(self, line: int, text: str, why: str) -> None:
        self._unread.append(Unread(source=Source(file=self._file, position=line), text=text, why=why))


def _principal_type(text: str) -> Literal["user", "group", "unknown"]:
    lowered = text.lower()
    if lowered in ("user", "principal"):
        return "user"
    return "group" if lowered == "group" else "unknown"


def _hex(text: str) -> str:
    return text if re.fullmatch(r"(?:[0-9A-Fa-f]{2})*", text) else ""


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
