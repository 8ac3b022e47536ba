"""Streams become topic objects: name, topic string and WILDCARD(BLOCK), a queue, a place in the namelist (guide 6.1).

The topic string is the stream's name unless the administrator gave another one. An object that exists already is
not changed, with a warning, unless existing objects are to be replaced (guide 7.1); subscriptions and publications of
the stream then use its topic string. The namelist is written once, complete, after the objects (guide 6.5.4).

Subscription points become topic objects in SYSTEM.QPUBSUB.SUBPOINT.NAMELIST (guide 6.2).

One is migrated if it has a retained publication or a registered subscriber; others are reported to the
administrator. The topic string is the point's name, WILDCARD(BLOCK). An object with that topic string is used as it is;
the name of the object is the point's unless it is taken or too long (``names``).
"""

from __future__ import annotations

from dataclasses import replace

from commands.broker.objects import ADMIN_STREAM, is_object_name
from migrate.assemble import sub_point_object_name
from migrate.ledger import Severity
from migrate.legacy_state import Key, Stream
from migrate.target import MAX_NAMELIST_NAMES, Draft, Place
from rfh2.errors import CommandError
from streams.mapping import check_prefix_collisions
from streams.topic_objects import (
    DEFAULT_STREAM,
    DEFAULT_SUB_POINT,
    QUEUE_NAMELIST,
    SUB_POINT_NAMELIST,
    Namelist,
    TopicObject,
    Wildcard,
)


def plan_streams(draft: Draft) -> None:
    """Places for all streams of the state, and the steps that make them."""
    seen: dict[str, Key] = {}
    listed: list[str] = []
    for number, stream in enumerate(draft.state.streams, 1):
        key = (stream.kind, number)
        if stream.name in seen:
            draft.ledger.becomes(key, f"the stream of {draft.state.streams[seen[stream.name][1] - 1].source}")
            draft.ledger.note(key, "two sources name it")
        elif stream.name == DEFAULT_STREAM:
            draft.ledger.becomes(key, "the root of the topic tree")
        elif stream.name == ADMIN_STREAM:
            draft.ledger.becomes(key, f"itself: it stays in {QUEUE_NAMELIST}")
            draft.ledger.note(key, "what version 6 published on it has no counterpart", "D05")
        elif _plan_stream(draft, key, stream):
            listed.append(stream.name)
        seen.setdefault(stream.name, key)
        draft.progress(1)
    _plan_namelist(draft, listed, seen)
    _check_collisions(draft)


def _plan_stream(draft: Draft, key: Key, stream: Stream) -> bool:
    """Whether the stream exists after the migration."""
    name = stream.name
    if not is_object_name(name):
        why = "it cannot be the name of a queue and of a topic object; its subscriptions have no place"
        draft.ledger.report(key, why, severity=Severity.ERROR)
        return False
    if name in draft.target.remote_queues:
        why = "a definition of a remote queue has its name: the stream's queue cannot be defined before it is deleted"
        draft.ledger.change(key, why, "P08", severity=Severity.ERROR)
    prefix = _topic_object(draft, key, name)
    if prefix is None:
        return False
    if name not in draft.objects.queues and name not in draft.objects.aliases:
        draft.ensure_queue(name, key, persistent=True)
    draft.streams[name] = Place(prefix, name)
    draft.ledger.becomes(key, f"topic object {name}, TOPICSTR({prefix}), WILDCARD(BLOCK)")
    return True


def _topic_object(draft: Draft, key: Key, name: str) -> str | None:
    """The prefix of the stream; None if no topic object can be made."""
    wanted = TopicObject(name, draft.options.prefixes.get(name, name), wildcard=Wildcard.BLOCK)
    existing = draft.objects.topics.get(name)
    if existing is not None and not draft.options.overwrite:
        same = (existing.topic_string, existing.wildcard) == (wanted.topic_string, wanted.wildcard)
        why = "as it would be made" if same else f"with TOPICSTR({existing.topic_string}), {existing.wildcard}"
        text = f"topic object {name} exists, {why}; it was not replaced"
        if same:
            draft.ledger.note(key, text, "P08", severity=Severity.WARNING)
        else:
            draft.ledger.change(key, text, "P08", severity=Severity.WARNING)
        if existing.cluster:
            what = f"it is in cluster {existing.cluster}: see that every queue manager there has a local copy"
            draft.ledger.note(key, what, "P31", severity=Severity.WARNING)
        if existing.wildcard is not Wildcard.BLOCK:
            what = "it is not WILDCARD(BLOCK): wildcard subscriptions from outside the stream see its publications"
            draft.ledger.change(key, what, "D08", "P17", severity=Severity.WARNING)
        return existing.topic_string
    try:
        if existing is not None:
            made = replace(existing, topic_string=wanted.topic_string, wildcard=Wildcard.BLOCK)
            anew = made.topic_string != existing.topic_string
            draft.define(made, key, anew=anew)
            draft.ledger.change(key, f"topic object {name} existed and was replaced", "P08", severity=Severity.WARNING)
        else:
            draft.define(wanted, key)
    except CommandError as error:
        if existing is not None and draft.objects.topics.get(name) is None:
            draft.objects.put(existing)
        why = f"topic object {name} cannot be made: {error.why}; choose another topic string for the stream (guide 6.1)"
        draft.ledger.report(key, why, "P10", severity=Severity.ERROR)
        return None
    if wanted.topic_string != name:
        draft.ledger.change(key, f"its topics lie below {wanted.topic_string}, as was chosen")
    return wanted.topic_string


def _plan_namelist(draft: Draft, listed: list[str], seen: dict[str, Key]) -> None:
    before = draft.objects.namelists.get(QUEUE_NAMELIST, Namelist(QUEUE_NAMELIST))
    names = list(before.names)
    for name in (DEFAULT_STREAM, ADMIN_STREAM, *listed):
        if name in names:
            continue
        if len(names) >= MAX_NAMELIST_NAMES:
            key = seen[name]
            why = f"{QUEUE_NAMELIST} is full: it holds {MAX_NAMELIST_NAMES} names"
            draft.ledger.report(key, why, "P28", severity=Severity.ERROR)
            del draft.streams[name]
            continue
        names.append(name)
    keys = tuple(seen[name] for name in listed if name in names and name not in before.names)
    draft.define(replace(before, names=tuple(names)), *keys)


def _check_collisions(draft: Draft) -> None:
    """Report what else is below the prefixes: other objects, and topics of the default stream (guide 6.1)."""
    state = draft.state
    plain = {s.topic for s in state.subscriptions if s.stream == DEFAULT_STREAM}
    plain |= {r.topic for r in state.retained if r.stream == DEFAULT_STREAM}
    for number, stream in enumerate(state.streams, 1):
        place = draft.streams.get(stream.name)
        if place is None or not place.prefix:
            continue
        key = (stream.kind, number)
        for finding in check_prefix_collisions(stream.name, place.prefix, draft.objects.topics, (), ()):
            draft.ledger.note(key, finding.text, "P09", severity=Severity.WARNING)
        mixed = sum(1 for topic in plain if topic == place.prefix or topic.startswith(place.prefix + "/"))
        if mixed:
            why = f"{mixed} topics of the default stream lie below {place.prefix}; its topics mix with the stream's"
            draft.ledger.note(key, why, "P09", "D09", severity=Severity.WARNING)


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
            draft.ledger.note(key, "two sources name it")
        elif point.name not in used:
            why = "it has no subscription and no retained publication: add it by hand if it will be used (guide 6.2)"
            draft.ledger.report(key, why, "P19")
        else:
            found = _point_object(draft, key, point.name)
            if found is not None:
                listed.append((found, key, point.name))
        seen.add(point.name)
        draft.progress(1)
    _plan_point_namelist(draft, listed)


def _point_object(draft: Draft, key: Key, point: str) -> str | None:
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


def _plan_point_namelist(draft: Draft, listed: list[tuple[str, Key, str]]) -> None:
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
