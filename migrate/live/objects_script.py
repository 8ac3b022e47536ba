"""The objects of a live queue manager as an MQSC script: what ``--existing`` of strmqbrk and migmbbrk takes.

It has what a plan depends on: attributes of the queue manager, queues, topic objects, namelists, authority records, and
subscriptions with names. Objects that every queue manager has are altered, others are defined with REPLACE.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from commands.broker.objects import TEMPORARY
from commands.mqsc import attributes as mqsc_kinds
from commands.mqsc.attributes import ObjectKind
from commands.mqsc.export import in_script
from commands.mqsc.script import Attribute, NoMqscFormError, Word, comment, keyword, statement
from migrate.live.administrator import Row
from migrate.live.snapshot import LiveState, names, text, word
from migrate.planned_state import Kind
from migrate.target import Target

KINDS: Final[tuple[Kind, ...]] = ("QMGR", "QUEUE", "TOPIC", "NAMELIST", "AUTHREC", "SUB")
"""What has to be read for the script."""

_QUEUES: Final = {"QLOCAL": mqsc_kinds.QLOCAL, "QALIAS": mqsc_kinds.QALIAS, "QMODEL": mqsc_kinds.QMODEL}
_OBJECT_TYPES: Final = ("QUEUE", "TOPIC", "NAMELIST", "QMGR")
# SUBID and CorrelId of a subscription are its own; a topic object is within TOPICSTR already.
_NOT_OF_A_SUB: Final = frozenset({"DESTCORL", "TOPICOBJ", "DESTCLAS", "GROUPSUB"})


def script_of(live: LiveState, qmgr: str) -> Iterator[str]:
    """The lines. What MQSC has no form for is a comment."""
    fresh = Target.fresh(qmgr).objects
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


def _records(live: LiveState) -> Iterator[str]:
    for key, granted in sorted(live.records.items()):
        kind, rest = key.split(" ", 1)
        for entity_type in ("PRINCIPAL", "GROUP"):
            profile, found, entity = rest.partition(f" {entity_type} ")
            if not found or kind not in _OBJECT_TYPES or not granted:
                continue
            given: list[Attribute] = [] if kind == "QMGR" else [("PROFILE", profile)]
            given += [("OBJTYPE", Word(kind)), (entity_type, entity), ("AUTHADD", Word(",".join(sorted(granted))))]
            yield from _written("SET AUTHREC", given)


def _given(kind: ObjectKind, row: Row, without: Collection[str] = ()) -> Iterator[Attribute]:
    """The attributes that a plan knows, as *row* shows them."""
    for each in kind.attributes:
        if each.keyword in row and each.keyword not in without:
            is_list = each.keyword == "NAMES"
            yield each.keyword, in_script(each, names(row, "NAMES") if is_list else text(row, each.keyword))


def _defined(word_: str, name: str, given: Iterable[Attribute]) -> Iterator[str]:
    lines = list(_written("DEFINE", given, word_, name))
    if lines and not lines[-1].startswith("*"):
        lines[-1] += " +"
        lines.append("  REPLACE")
    yield from lines


def _altered(word_: str, name: str, given: Iterable[Attribute]) -> Iterator[str]:
    yield from _written("ALTER", given, word_, name)


def _written(head: str, given: Iterable[Attribute], word_: str = "", name: str = "") -> Iterator[str]:
    try:
        yield from statement(f"{head} {keyword(word_, name)}" if word_ else head, given)
    except NoMqscFormError as error:
        yield comment(f"{head} {word_} {name}: {error}")
