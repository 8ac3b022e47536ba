"""Subscription points become topic objects in SYSTEM.QPUBSUB.SUBPOINT.NAMELIST (guide 6.2).

One is migrated if it has a retained publication or a registered subscriber; others are reported to the
administrator. The topic string is the point's name, WILDCARD(BLOCK). An object with that topic string is used as it is;
the name of the object is the point's unless it is taken or too long (``names``).
"""

from __future__ import annotations

from dataclasses import replace

from migrate.draft import MAX_NAMELIST_NAMES, Draft, Place
from migrate.ledger import Severity
from migrate.legacy_state import Key
from migrate.names import sub_point_object_name
from rfh2.errors import CommandError
from streams.mapping import check_prefix_collisions
from streams.topic_objects import DEFAULT_SUB_POINT, SUB_POINT_NAMELIST, Namelist, TopicObject, Wildcard

MAX_POINT_NAME = 128


def plan_sub_points(draft: Draft) -> None:
    """Places for all subscription points of the state, and the steps that make them."""
    state = draft.state
    used = {s.sub_point for s in state.subscriptions} | {r.sub_point for r in state.retained}
    seen: set[str] = set()
    listed: list[tuple[str, Key, str]] = []
    for number, point in enumerate(state.sub_points, 1):
        key = (point.kind, number)
        if point.name in seen:
            draft.ledger.becomes(key, "the subscription point of another source")
            draft.ledger.note(key, "two sources tell of it")
        elif point.name not in used:
            why = "nobody subscribes to it and nothing is retained at it: add it by hand if it will be used (guide 6.2)"
            draft.ledger.report(key, why, "P19")
        else:
            found = _topic_object(draft, key, point.name)
            if found is not None:
                listed.append((found, key, point.name))
        seen.add(point.name)
        draft.progress(1)
    _plan_namelist(draft, listed)


def _topic_object(draft: Draft, key: Key, point: str) -> str | None:
    """The name of the object for *point*; None if none can be made."""
    topics = draft.objects.topics
    if len(point) > MAX_POINT_NAME:
        why = f"its name has {len(point)} characters, more than {MAX_POINT_NAME}"
        draft.ledger.report(key, why, severity=Severity.ERROR)
        return None
    same_string = topics.at(point)
    if same_string is not None:
        if same_string.wildcard is not Wildcard.BLOCK:
            why = f"topic object {same_string.name} is not WILDCARD(BLOCK) and was left as it is"
            draft.ledger.change(key, why, "P07", "D08", severity=Severity.WARNING)
        draft.ledger.becomes(key, f"topic object {same_string.name}, which was there")
        return same_string.name
    name = sub_point_object_name(point, lambda name: name in topics)
    if name is None:
        draft.ledger.report(key, "every name that could be made for its topic object is taken", severity=Severity.ERROR)
        return None
    try:
        draft.define(TopicObject(name, point, wildcard=Wildcard.BLOCK), key)
    except CommandError as error:
        draft.ledger.report(key, f"no topic object can have this topic string: {error.why}", severity=Severity.ERROR)
        return None
    if name != point:
        draft.ledger.change(key, f"its topic object is called {name}", "P08")
    draft.ledger.becomes(key, f"topic object {name}, TOPICSTR({point}), WILDCARD(BLOCK)")
    for finding in check_prefix_collisions(name, point, topics, (), ()):
        draft.ledger.note(key, finding.text, "P09", severity=Severity.WARNING)
    return name


def _plan_namelist(draft: Draft, listed: list[tuple[str, Key, str]]) -> None:
    if not listed:
        return
    before = draft.objects.namelists.get(SUB_POINT_NAMELIST, Namelist(SUB_POINT_NAMELIST, (DEFAULT_SUB_POINT,)))
    names = list(before.names)
    keys: list[Key] = []
    for name, key, point in listed:
        if name not in names and len(names) >= MAX_NAMELIST_NAMES:
            why = f"{SUB_POINT_NAMELIST} is full: it holds {MAX_NAMELIST_NAMES} names"
            draft.ledger.report(key, why, "P28", severity=Severity.ERROR)
            continue
        if name not in names:
            names.append(name)
            keys.append(key)
        draft.sub_points[point] = Place(point, name)
    draft.define(replace(before, names=tuple(names)), *keys)
