"""Checks the effect of a change on streams and subscription points, as guide 6.5.4 to 6.5.6 require.

They never stop a command, because a queue manager would not; their results are the notes below its answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from commands.broker.objects import CONTROL_QUEUE, Objects
from commands.mqsc.administration import Administration
from streams.mapping import (
    PrefixFinding,
    check_stream_addition,
    check_stream_deletion,
    check_sub_point_addition,
    collisions,
)
from streams.subscriptions import Subscription
from streams.topic_objects import DEFAULT_STREAM, DEFAULT_SUB_POINT, QUEUE_NAMELIST, SUB_POINT_NAMELIST, Namelist

# Collisions that the checks of one stream or point do not see.
_BETWEEN: Final = frozenset({"same-place", "nested-place"})


def used_by_broker(name: str, kind: str, objects: Objects) -> bool:
    """Whether queued publish/subscribe has the object open: its control queue, its stream queues and its namelists."""
    if objects.qmgr.psmode != "ENABLED":
        return False
    if kind == "namelist":
        return name in (QUEUE_NAMELIST, SUB_POINT_NAMELIST)
    streams = objects.namelists.get(QUEUE_NAMELIST)
    return kind == "qlocal" and (name == CONTROL_QUEUE or (streams is not None and name in streams))


def deletion_notes(name: str, kind: str, objects: Objects) -> tuple[str, ...]:
    """The notes on deleting an object that is in one of the two namelists."""
    notes = []
    streams, sub_points = objects.namelists.get(QUEUE_NAMELIST), objects.namelists.get(SUB_POINT_NAMELIST)
    if kind == "topic" and streams is not None and name in streams and name != DEFAULT_STREAM:
        notes.append(f"{name} is still listed in {QUEUE_NAMELIST}: from now on its topics lie at the root")
    if kind == "topic" and sub_points is not None and name in sub_points and name != DEFAULT_SUB_POINT:
        notes.append(f"{name} is still listed in {SUB_POINT_NAMELIST}: its subscription point is gone")
    return tuple(notes)


def namelist_notes(before: Namelist | None, after: Namelist, administration: Administration) -> tuple[str, ...]:
    """The notes on a change of the list of streams or of subscription points to *after*."""
    old = before if before is not None else Namelist(after.name)
    to_check = _sub_points if after.name == SUB_POINT_NAMELIST else _streams
    found = [*to_check(old, after, administration)]
    known = collisions_of(administration.objects)
    found += _texts(f for f in collisions_of(administration.objects, after) if f not in known and f.code in _BETWEEN)
    return tuple(dict.fromkeys(found))


def collisions_of(objects: Objects, instead: Namelist | None = None) -> list[PrefixFinding]:
    """The collisions of streams and subscription points. instead: the new value of one of the two lists."""
    lists = {**objects.namelists, **({instead.name: instead} if instead is not None else {})}
    return collisions(lists.get(QUEUE_NAMELIST), lists.get(SUB_POINT_NAMELIST), objects.topics)


def topic_notes(before: list[PrefixFinding], objects: Objects) -> tuple[str, ...]:
    """The result of a change to topic objects. before: ``collisions_of`` before the change."""
    return tuple(_texts(finding for finding in collisions_of(objects) if finding not in before))


def _streams(old: Namelist, new: Namelist, administration: Administration) -> Iterator[str]:
    objects = administration.objects
    subscriptions, retained = _there_already(administration)
    for stream in new.names:
        if stream not in old:
            found = check_stream_addition(stream, objects.queues, old, objects.topics, subscriptions, retained)
            yield from _texts(found)
    for stream in old.names:
        if stream in new:
            continue
        if stream == DEFAULT_STREAM:
            yield f"{DEFAULT_STREAM} is no longer listed: ALTER replaces the whole list"
            continue
        depth = administration.queues.depth(stream) if stream in objects.queues else 0
        yield from _texts(check_stream_deletion(stream, subscriptions, depth, old, objects.topics))


def _sub_points(old: Namelist, new: Namelist, administration: Administration) -> Iterator[str]:
    topics = administration.objects.topics
    subscriptions, retained = _there_already(administration)
    for name in new.names:
        if name in old or name == DEFAULT_SUB_POINT:
            continue
        topic_object = topics.get(name)
        if topic_object is None:
            yield f"there is no topic object {name}: define the topics before the namelist is altered"
        elif not topic_object.topic_string:
            yield f"topic object {name} has no TOPICSTR, and no subscription point can be found by it"
        else:
            found = check_sub_point_addition(topic_object.topic_string, old, topics, subscriptions, retained)
            # That the string belongs to the object in the list is as it should be.
            yield from _texts([finding for finding in found if finding.code != "topic-string-in-use"])
    if DEFAULT_SUB_POINT in old and DEFAULT_SUB_POINT not in new:
        yield f"{DEFAULT_SUB_POINT} is no longer listed: ALTER replaces the whole list"


def _there_already(administration: Administration) -> tuple[tuple[Subscription, ...], list[str]]:
    """The subscriptions, and the topics with a retained publication."""
    space = administration.topic_space
    return space.subscriptions(), [kept.topic_string for kept in space.retained_publications()]


def _texts(findings: Iterable[PrefixFinding]) -> Iterator[str]:
    return (finding.text for finding in findings)
