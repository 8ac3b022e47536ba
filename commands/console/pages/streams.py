"""Streams and subscription points: where their topics are, whether their queues are read, and what collides."""

from __future__ import annotations

from typing import Any

from commands.broker.context import not_read
from commands.console.pages.query import Query
from commands.console.reading.source import State
from commands.running.status import status_of
from streams.mapping import collisions, stream_topic
from streams.topic_objects import DEFAULT_SUB_POINT, QUEUE_NAMELIST, SUB_POINT_NAMELIST


def streams(state: State, _query: Query) -> dict[str, Any]:
    """Both namelists, with the topic object of each name."""
    with state.store.one_moment():
        objects = state.store.overview().objects
        queues = status_of(state.store, state.now)["queues"]
    namelists = objects.namelists.get(QUEUE_NAMELIST), objects.namelists.get(SUB_POINT_NAMELIST)
    stream_list, point_list = namelists
    shown = []
    for name in stream_list.names if stream_list is not None else ():
        place, topic_object = stream_topic(name, objects.topics), objects.topics.get(name)
        depth = queues[name]["depth"] if name in queues else None
        shown.append({"name": name, "prefix": place.prefix, "object": topic_object, "depth": depth})
    points = []
    for name in point_list.names if point_list is not None else ():
        topic_object = objects.topics.get(name)
        prefix = "" if name == DEFAULT_SUB_POINT or topic_object is None else topic_object.topic_string
        points.append({"name": name, "prefix": prefix, "object": topic_object})
    unread = [{"name": name, "why": not_read(name)} for name, row in queues.items() if row["not_read"]]
    findings = [finding.text for finding in collisions(*namelists, objects.topics)]
    return {"streams": shown, "points": points, "unread": unread, "findings": findings}
