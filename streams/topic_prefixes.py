"""Where streams and subscription points lie in the topic space, and where two of them conflict.

Guide 6.1: the mapping "relies on the prefixes used for the topic strings being unique, to separate one set of topics
completely from another". Nothing enforces that, in IBM MQ or here; this module says where it is not so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from streams.mapping import PrefixFinding, PrefixSeverity, stream_topic
from streams.namelists import ADMIN_STREAM, DEFAULT_STREAM, DEFAULT_SUB_POINT, Namelist
from streams.topic_objects import TopicObjects, Wildcard
from streams.topic_strings import at_and_above

STREAM: Final = "stream"
SUB_POINT: Final = "subscription point"

# These belong at the root: the default stream by definition, the admin stream because it never had a topic object.
_ROOTED: Final = (DEFAULT_STREAM, ADMIN_STREAM)


@dataclass(frozen=True, slots=True)
class TopicPrefix:
    """Where one stream or subscription point lies. name: of the stream, or of the point, which is its topic string."""

    kind: str
    name: str
    topic_string: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def places(streams: Namelist | None, sub_points: Namelist | None, topic_objects: TopicObjects) -> list[TopicPrefix]:
    """Every named stream and subscription point that has a topic string, in the order of the namelists."""
    found = []
    for name in streams.names if streams is not None else ():
        topic_string = stream_topic(name, topic_objects).prefix
        if topic_string:
            found.append(TopicPrefix(STREAM, name, topic_string))
    for name in sub_points.names if sub_points is not None else ():
        topic_object = topic_objects.get(name)
        if name != DEFAULT_SUB_POINT and topic_object is not None and topic_object.topic_string:
            found.append(TopicPrefix(SUB_POINT, topic_object.topic_string, topic_object.topic_string))
    return found


def collisions(
    streams: Namelist | None, sub_points: Namelist | None, topic_objects: TopicObjects
) -> list[PrefixFinding]:
    """The present conflicts between streams and subscription points (guide 6.1, 6.5.4, 6.5.6).

    A stream without a topic object or without a topic string, whose topics are among those of the default stream; a
    name in the other namelist that no subscription point can be found by; two places of which one is, or lies in, the
    other; a place whose publications wildcards reach from outside.
    """
    findings = [*_homeless(streams, sub_points, topic_objects)]
    at: dict[str, list[TopicPrefix]] = {}
    for place in places(streams, sub_points, topic_objects):
        at.setdefault(place.topic_string, []).append(place)
    lengths = sorted(set(map(len, at)), reverse=True)
    for topic_string, here in at.items():
        first, *others = here
        findings += [_warning("same-place", f"{other} and {first} are both at {topic_string}") for other in others]
        for above in at_and_above(topic_string, lengths):
            if above in at and above != topic_string:
                findings.append(_warning("nested-place", f"{first} ({topic_string}) lies in {at[above][0]}"))
    for topic_string in at:
        topic_object = topic_objects.at(topic_string)
        if topic_object is not None and topic_object.wildcard is not Wildcard.BLOCK:
            why = f"topic object {topic_object.name} is not WILDCARD(BLOCK): # and * from outside reach its topics"
            findings.append(_warning("not-blocked", why))
    return findings


def _homeless(
    streams: Namelist | None, sub_points: Namelist | None, topic_objects: TopicObjects
) -> Iterator[PrefixFinding]:
    for name in streams.names if streams is not None else ():
        if name in _ROOTED:
            continue
        place = stream_topic(name, topic_objects)
        if place.object_missing:
            yield _warning("no-topic-object", f"stream {name} has no topic object: its topics are at the root")
        elif not place.prefix:
            yield _warning("at-root", f"topic object {name} has no TOPICSTR: the stream's topics are at the root")
    for name in sub_points.names if sub_points is not None else ():
        topic_object = topic_objects.get(name)
        if name != DEFAULT_SUB_POINT and (topic_object is None or not topic_object.topic_string):
            why = f"{name} in {sub_points.name if sub_points else ''} is not a topic object with a TOPICSTR"
            yield _warning("no-sub-point", f"{why}: the subscription point does not exist")


def _warning(code: str, text: str) -> PrefixFinding:
    return PrefixFinding(code, PrefixSeverity.WARNING, text)
