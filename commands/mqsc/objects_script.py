"""The objects of a queue manager as an MQSC script, from what DISPLAY shows: to keep them, or to make them elsewhere.

It has attributes of the queue manager, queues, topic objects, namelists, authority records, and subscriptions with
names. Objects that every queue manager has are altered, others are defined with REPLACE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from commands.broker.attribute_kinds import Choice, Number, Shown
from commands.broker.objects import TEMPORARY, Objects, QueueManager
from commands.mqsc import attributes as mqsc_kinds
from commands.mqsc.administration import Administration
from commands.mqsc.attributes import ObjectKind
from commands.mqsc.execute import execute
from commands.mqsc.model import Command, Keyword, Statement, Value
from commands.mqsc.script import Attribute, NoMqscFormError, Word, comment, quoted, statement

Row = Mapping[str, Shown]
"""The attributes of an object, by keyword, as DISPLAY shows them."""


class ShownObjects(Protocol):
    """What DISPLAY shows, by name; records by object type, profile, entity type and entity."""

    @property
    def qmgr(self) -> Row: ...
    @property
    def queues(self) -> Mapping[str, Row]: ...
    @property
    def topics(self) -> Mapping[str, Row]: ...
    @property
    def namelists(self) -> Mapping[str, Row]: ...
    @property
    def records(self) -> Mapping[str, frozenset[str]]: ...
    @property
    def subscriptions(self) -> Sequence[Row]: ...


@dataclass(frozen=True, slots=True)
class _Shown:
    qmgr: Row
    queues: Mapping[str, Row]
    topics: Mapping[str, Row]
    namelists: Mapping[str, Row]
    records: Mapping[str, frozenset[str]]
    subscriptions: Sequence[Row]


def shown_by(administration: Administration) -> ShownObjects:
    """What DISPLAY shows of a queue manager in memory."""

    def rows(target: str, name: str | None = "*") -> list[Row]:
        named = None if name is None else Value(name, quoted=True)
        command = Command("DISPLAY", target, named, (Keyword("ALL", None),))
        return list(execute(Statement(1, 1, (), f"DISPLAY {target}", command), administration).objects)

    def by_name(target: str) -> dict[str, Row]:
        return {text(row, target): row for row in rows(target)}

    records = {record_key(row): authorities(row) for row in rows("AUTHREC", None)}
    lists = by_name("QUEUE"), by_name("TOPIC"), by_name("NAMELIST")
    return _Shown(rows("QMGR", None)[0], *lists, records, rows("SUB"))


def text(row: Row, keyword: str) -> str:
    """The value as text, without blanks at its end; "" where there is none."""
    value = row.get(keyword, "")
    return ",".join(value) if isinstance(value, tuple) else str(value).rstrip(" ")


def word(row: Row, keyword: str) -> str:
    """A value that is a word of MQSC, in capitals."""
    return text(row, keyword).upper()


def names(row: Row, keyword: str) -> tuple[str, ...]:
    """A value that lists names; blank ones are none."""
    value = row.get(keyword, ())
    listed = value if isinstance(value, tuple) else str(value).split(",")
    return tuple(name for each in listed if (name := each.strip(" ")))


def record_key(row: Row) -> str:
    """The key of an authority record; the queue manager is named by its object type alone."""
    kind = word(row, "OBJTYPE")
    profile = "" if kind == "QMGR" else text(row, "PROFILE")
    return f"{kind} {profile} {word(row, 'ENTTYPE')} {text(row, 'ENTITY')}"


def authorities(row: Row) -> frozenset[str]:
    """The authorities of a record, in capitals; none where it has none."""
    return frozenset(name.upper() for name in names(row, "AUTHLIST")) - {"NONE"}


_QUEUES: Final = {"QLOCAL": mqsc_kinds.QLOCAL, "QALIAS": mqsc_kinds.QALIAS, "QMODEL": mqsc_kinds.QMODEL}
_OBJECT_TYPES: Final = ("QUEUE", "TOPIC", "NAMELIST", "QMGR")
# SUBID and CorrelId of a subscription are its own; a topic object is within TOPICSTR already.
_NOT_OF_A_SUB: Final = frozenset({"DESTCORL", "TOPICOBJ", "DESTCLAS", "GROUPSUB"})


def script_of(live: ShownObjects, qmgr: str) -> Iterator[str]:
    """The lines. What MQSC has no form for is a comment."""
    fresh = Objects(QueueManager(qmgr))
    yield comment(f"objects of queue manager {qmgr}, as DISPLAY showed them")
    yield from _written("ALTER QMGR", _given(mqsc_kinds.QMGR, live.qmgr))
    for name, row in live.queues.items():
        kind = _QUEUES.get(word(row, "TYPE"))
        if word(row, "TYPE") == "QREMOTE":
            yield from _defined("QREMOTE", name, [])
        elif kind is mqsc_kinds.QMODEL or (kind is not None and word(row, "DEFTYPE") != TEMPORARY):
            yield from _defined(kind.word, name, _given(kind, row))
    for name, row in live.topics.items():
        if fresh.topics.get(name) is not None:
            yield from _altered("TOPIC", name, _given(mqsc_kinds.TOPIC, row, without={"TOPICSTR"}))
        else:
            yield from _defined("TOPIC", name, _given(mqsc_kinds.TOPIC, row))
    for name, row in live.namelists.items():
        write = _altered if name in fresh.namelists else _defined
        yield from write("NAMELIST", name, _given(mqsc_kinds.NAMELIST, row))
    yield from _subscriptions(live.subscriptions)
    yield from _records(live)


def _subscriptions(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        if text(row, "SUB") and word(row, "DESTCLAS") != "MANAGED":
            yield from _defined("SUB", text(row, "SUB"), _given(mqsc_kinds.SUB, row, without=_NOT_OF_A_SUB))


def _records(live: ShownObjects) -> Iterator[str]:
    for key, granted in sorted(live.records.items()):
        kind, rest = key.split(" ", 1)
        for entity_type in ("PRINCIPAL", "GROUP"):
            profile, found, entity = rest.partition(f" {entity_type} ")
            if not found or kind not in _OBJECT_TYPES or not granted:
                continue
            given: list[Attribute] = [] if kind == "QMGR" else [("PROFILE", profile)]
            given += [("OBJTYPE", Word(kind)), (entity_type, entity), ("AUTHADD", Word(",".join(sorted(granted))))]
            yield from _written("SET AUTHREC", given)


def _given(kind: ObjectKind, row: Row, without: Iterable[str] = ()) -> list[Attribute]:
    """The attributes that a plan knows, as *row* shows them."""
    left_out = frozenset(without)
    given: list[Attribute] = []
    for attribute in kind.attributes:
        if attribute.keyword not in row or attribute.keyword in left_out:
            continue
        value = text(row, attribute.keyword)
        if attribute.keyword == "NAMES":
            listed = ", ".join(_quoted(name) for name in names(row, "NAMES"))
            given.append(("NAMES", Word(listed or "' '")))
        elif isinstance(attribute.kind, Choice | Number):
            given.append((attribute.keyword, Word(value)))
        else:
            given.append((attribute.keyword, value or Word("' '")))
    return given


def _quoted(name: str) -> str:
    try:
        return quoted(name)
    except NoMqscFormError:
        return "' '"


def _defined(word_: str, name: str, given: list[Attribute]) -> Iterator[str]:
    lines = list(_written(f"DEFINE {word_}({_quoted(name)})", given))
    if lines and not lines[-1].startswith("*"):
        lines[-1] += " +"
        lines.append("  REPLACE")
    yield from lines


def _altered(word_: str, name: str, given: list[Attribute]) -> Iterator[str]:
    yield from _written(f"ALTER {word_}({_quoted(name)})", given)


def _written(head: str, given: list[Attribute]) -> Iterator[str]:
    try:
        yield from statement(head, given)
    except NoMqscFormError as error:
        yield comment(f"{head}: {error}")
