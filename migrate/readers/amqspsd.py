"""The listing of the sample program amqspsd and of its rewrites: relations, streams, publishers, subscribers.

    Broker relations
      Queue manager: QMA
      Parent: None
      Children: QMB
    Streams supported
      Sport
    Subscribers
    StreamName: Sport
      Topic: Soccer/Results/*
        BrokerCount: 0
        ApplCount: 1
        AnonymousCount: 0
        QMgrName: QMA
        QName: RESULTS.Q
        RegistrationOptions: CorrelAsId VariableUserId

The rewrite in Perl, amqspsda.pl, whose source is public, underlines its headings and prints relations below their
labels, and ``None`` for a stream that nobody is registered with:

    Broker Relations
    ----------------
    QMgrName:
       QMA
    Parent:
       None
    Children:
       QMB

Columns of IBM's own program are not known: case, colons and indentation do not matter here, each registration begins
with its QMgrName, and a line that means nothing is reported. The listing has neither headers nor expiry: both are
noted as unknown. Registrations that the counts announce and that are not listed (anonymous ones) are reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from migrate.legacy_state import BrokerItem, Item, Publisher, Relation, Source, Stream
from migrate.readers.metatopics import Registration, publisher_of, subscription_of
from migrate.readers.text import SourceLine, lines_of, unread
from streams.topic_objects import DEFAULT_STREAM

# Possessive, so that a long line is looked at once; the name keeps the blanks behind it.
_FIELD = re.compile(r"([A-Za-z][A-Za-z ]*+)\s*+[:=]\s*+(.*)")
_SECTIONS: Final = {
    "broker relations": "relations",
    "relations": "relations",
    "streams supported": "streams",
    "stream support": "streams",
    "publishers": "publishers",
    "subscribers": "subscribers",
    "retained publications": "retained",
}
_OWN_NAME: Final = ("queuemanager", "qmgr", "qmgrname", "broker")
_PARENT: Final = ("parent", "parents")
_CHILDREN: Final = ("child", "children")
_RELATIONS: Final = (*_OWN_NAME, *_PARENT, *_CHILDREN)
_UNDERLINE: Final = re.compile("[-=]{3,}+")
_BANNER: Final = re.compile("amqspsd|start|message broker dumper", re.IGNORECASE)
_COUNTS: Final = ("brokercount", "applcount", "anonymouscount")
_FIELDS: Final = {
    "qmgrname": "qmgr",
    "qname": "queue",
    "correlid": "correl_id",
    "useridentifier": "user",
    "userid": "user",
    "registrationoptions": "options",
    "regopts": "options",
    "time": "time",
    "subname": "name",
    "subuserdata": "user_data",
    "subidentity": "identities",
}


def looks_like(text: str) -> bool:
    """Whether *text* has the listing's sections."""
    words = [line.text.rstrip(":").lower() for line in lines_of(text)]
    return ("subscribers" in words or "publishers" in words) and any(w.startswith("streamname") for w in words)


@dataclass(slots=True)
class _Reading:
    file: str
    section: str = ""
    stream: str = DEFAULT_STREAM
    topic: str = ""
    relation: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    listed: int = 0
    topic_line: int = 0
    current: Registration | None = None


def read(text: str, file: str) -> Iterator[Item]:
    """Relations, streams, publishers and subscriptions, in order."""
    state = _Reading(file)
    for line in lines_of(text):
        section = _SECTIONS.get(line.text.rstrip(":").strip().lower())
        if _UNDERLINE.fullmatch(line.text):
            continue
        if section is not None:
            yield from _end_topic(state)
            state.section, state.stream, state.relation = section, DEFAULT_STREAM, ""
        elif not state.section:
            if not _BANNER.search(line.text):
                yield unread(file, line.number, line.text, "it stands before any section")
        else:
            yield from _line(line, state)
    yield from _end_topic(state)


def _line(line: SourceLine, state: _Reading) -> Iterator[Item]:
    found = _FIELD.fullmatch(line.text)
    source = Source(file=state.file, position=line.number)
    if state.section == "streams" and found is None:
        yield Stream(source=source, name=line.text)
        return
    if found is None and state.relation:
        yield from _relation(state.relation, line.text, source, line, state)
        return
    if found is None:
        # A stream that nobody is registered with.
        if line.text.lower() != "none" or state.topic or state.section not in ("publishers", "subscribers"):
            yield unread(state.file, line.number, line.text, "it is not a field with a value")
        return
    name, value = found[1].replace(" ", "").lower(), found[2].strip()
    if state.section == "relations":
        yield from _relation(name, value, source, line, state)
    elif state.section == "streams" and name in ("stream", "streamname"):
        yield Stream(source=source, name=value)
    elif name in ("streamname", "stream"):
        yield from _end_topic(state)
        state.stream = value or DEFAULT_STREAM
    elif name == "topic":
        yield from _end_topic(state)
        # What follows the first colon, blanks and colons included, is the topic.
        state.topic, state.topic_line = value, line.number
    elif name in _COUNTS:
        if value.isdecimal():
            state.counts[name] = int(value)
        else:
            yield unread(state.file, line.number, line.text, "no number")
    elif name in _FIELDS and state.topic:
        if name == "qmgrname" or state.current is None:
            yield from _end_registration(state)
            state.current = Registration(source)
            state.listed += 1
        state.current.set(_FIELDS[name], value)
    else:
        yield unread(state.file, line.number, line.text, "a field that is not known, or out of place")


def _relation(name: str, value: str, source: Source, line: SourceLine, state: _Reading) -> Iterator[Item]:
    # A label without a value has it, or several, on the lines below.
    state.relation = name
    if not value:
        if name not in _RELATIONS:
            yield unread(state.file, line.number, line.text, "no relation")
        return
    names = [word for word in re.split(r"[,\s]+", value) if word and word.lower() != "none"]
    if name in _OWN_NAME:
        yield BrokerItem(source=source, name=value, qmgr=value)
    elif name in _PARENT:
        for qmgr in names:
            yield Relation(source=source, role="parent", qmgr=qmgr)
    elif name in _CHILDREN:
        for qmgr in names:
            yield Relation(source=source, role="child", qmgr=qmgr)
    else:
        yield unread(state.file, line.number, line.text, "no relation")


def _end_registration(state: _Reading) -> Iterator[Item]:
    current, state.current = state.current, None
    if current is None:
        return
    if state.section == "publishers":
        yield publisher_of(current, state.topic, state.stream)
    else:
        yield subscription_of(current, state.topic, state.stream)


def _end_topic(state: _Reading) -> Iterator[Item]:
    yield from _end_registration(state)
    if state.topic and state.section in ("publishers", "subscribers"):
        announced = state.counts.get("applcount", 0) + state.counts.get("anonymouscount", 0)
        if announced > state.listed:
            missing = f"{announced} registrations are counted, {state.listed} are listed: the others are unknown"
            yield unread(state.file, state.topic_line, f"{state.section} of {state.topic}", missing)
        if not state.listed and not announced and state.section == "publishers":
            yield Publisher(
                source=Source(file=state.file, position=state.topic_line), topic=state.topic, stream=state.stream
            )
    state.topic, state.counts, state.listed = "", {}, 0
