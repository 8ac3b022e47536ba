"""Streams and subscription points as places in the topic space (guide 6.1, 6.2), and what to look at before adding or
deleting one (guide 6.5.4 to 6.5.6).

A stream queue named X starts at the topic string of topic object X; the default stream at the root. A subscription
point is found by the topic string, not by the name, of the objects in its namelist, and that string is its prefix.

Guide 6.1: the mapping "relies on the prefixes used for the topic strings being unique, to separate one set of topics
completely from another". Nothing enforces that, in IBM MQ or here; ``collisions`` says where it is not so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from streams.patterns import escape_char_pattern
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_objects import ADMIN_STREAM, DEFAULT_STREAM, DEFAULT_SUB_POINT, Namelist, TopicObjects, Wildcard
from streams.topic_strings import at_and_above, is_within


@dataclass(frozen=True, slots=True)
class StreamTopic:
    """Where a stream lies in the topic space.

    prefix: "" is the root. object_missing: the stream has no topic object, so that its topics lie at the root; whoever
    asked says so in the log.
    """

    stream: str
    prefix: str
    object_missing: bool = False


def is_stream_queue(queue: str, queue_namelist: Namelist) -> bool:
    """Whether publications are taken from this queue: it stands in SYSTEM.QPUBSUB.QUEUE.NAMELIST (guide 6.1)."""
    return bool(queue) and queue in queue_namelist.names


def stream_topic(stream: str, topic_objects: TopicObjects) -> StreamTopic:
    """Where the topics of a stream lie: below the TOPICSTR of the topic object of its name (guide 6.1).

    The default stream is at the root whatever its topic object says; so is a stream with an empty TOPICSTR.
    """
    if not stream or stream == DEFAULT_STREAM:
        return StreamTopic(stream or DEFAULT_STREAM, "")
    topic_object = topic_objects.get(stream)
    if topic_object is None:
        return StreamTopic(stream, "", object_missing=True)
    return StreamTopic(stream, topic_object.topic_string)


def sub_point_prefix(sub_point: str | None, namelist: Namelist, topic_objects: TopicObjects) -> str | None:
    """The prefix of a subscription point: the TOPICSTR in SYSTEM.QPUBSUB.SUBPOINT.NAMELIST that equals its name (6.2).

    "" for none and for the empty one, which is the default; None where no object in the list bears the name. The
    default one cannot be named.
    """
    if not sub_point:
        return ""
    for name in namelist.names:
        if name == DEFAULT_SUB_POINT:
            continue
        topic_object = topic_objects.get(name)
        if topic_object is not None and topic_object.topic_string == sub_point:
            return topic_object.topic_string
    return None


class PrefixSeverity(StrEnum):
    """How much a finding matters: an error makes the change wrong, a warning wants a person's judgement."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class PrefixFinding:
    """One thing found when asked whether a stream or a subscription point can be added or deleted."""

    code: str
    severity: PrefixSeverity
    text: str


def check_stream_addition(
    stream: str,
    queues: Collection[str],
    queue_namelist: Namelist,
    topic_objects: TopicObjects,
    subscriptions: Iterable[Subscription] = (),
    retained_topics: Iterable[str] = (),
) -> list[PrefixFinding]:
    """Check what a stream needs by guide 6.5.4: queue, topic object, WILDCARD(BLOCK), namelist, own prefix.

    queues: the names of the local queues. subscriptions, retained_topics: what there is already, anywhere.
    """
    findings: list[PrefixFinding] = []
    if stream not in queues:
        findings.append(_error("no-queue", f"there is no local queue {stream}"))
    if stream in queue_namelist:
        findings.append(_warning("already-listed", f"{stream} is already in {queue_namelist.name}"))
    topic_object = topic_objects.get(stream)
    if topic_object is None:
        findings.append(_error("no-topic-object", f"there is no topic object {stream}: topics would be at the root"))
        return findings
    if stream == DEFAULT_STREAM:
        return findings
    if not topic_object.topic_string:
        findings.append(_warning("at-root", f"topic object {stream} has no TOPICSTR; its topics are at the root"))
        return findings
    if topic_object.wildcard is not Wildcard.BLOCK:
        why = f"topic object {stream} is not WILDCARD(BLOCK); subscriptions to # or * outside get its publications"
        findings.append(_warning("not-blocked", why))
    prefix = topic_object.topic_string
    findings += check_prefix_collisions(stream, prefix, topic_objects, subscriptions, retained_topics)
    return findings


def check_stream_deletion(
    stream: str,
    subscriptions: Iterable[Subscription],
    messages_on_queue: int,
    queue_namelist: Namelist,
    topic_objects: TopicObjects,
) -> list[PrefixFinding]:
    """Check by guide 6.5.5 whether a stream can be deleted: it has no subscriptions, its queue has no messages."""
    findings: list[PrefixFinding] = []
    if stream == DEFAULT_STREAM:
        findings.append(_error("default-stream", "the default stream cannot be deleted"))
    if stream not in queue_namelist:
        findings.append(_warning("not-listed", f"{stream} is not in {queue_namelist.name}"))
    prefix = stream_topic(stream, topic_objects).prefix
    left = [s for s in subscriptions if s.stream == stream or (prefix and _lies_within(prefix, s))]
    if left:
        findings.append(_error("subscriptions-left", f"the stream still has subscriptions: {len(left)}"))
    if messages_on_queue:
        findings.append(_error("messages-left", f"queue {stream} still has messages: {messages_on_queue}"))
    return findings


def check_sub_point_addition(
    sub_point: str,
    namelist: Namelist,
    topic_objects: TopicObjects,
    subscriptions: Iterable[Subscription] = (),
    retained_topics: Iterable[str] = (),
) -> list[PrefixFinding]:
    """Check by guide 6.5.6 whether a subscription point can be added: it, its name and its string are not in use.

    subscriptions, retained_topics: what there is already, anywhere.
    """
    findings: list[PrefixFinding] = []
    if sub_point_prefix(sub_point, namelist, topic_objects) is not None:
        findings.append(_error("already-defined", f"subscription point {sub_point} is defined already"))
        return findings
    same_name, same_string = topic_objects.get(sub_point), topic_objects.at(sub_point)
    if same_string is not None:
        why = f"topic object {same_string.name} has topic string {sub_point}: it would become the subscription point"
        findings.append(_warning("topic-string-in-use", why))
        if same_string.wildcard is not Wildcard.BLOCK:
            findings.append(_warning("not-blocked", f"topic object {same_string.name} is not WILDCARD(BLOCK)"))
    elif same_name is not None:
        why = f"topic object {sub_point} has topic string {same_name.topic_string!r}: use another object name"
        findings.append(_warning("object-name-in-use", why))
    owner = sub_point if same_string is None else same_string.name
    findings += check_prefix_collisions(owner, sub_point, topic_objects, subscriptions, retained_topics)
    return findings


def check_prefix_collisions(
    owner: str,
    prefix: str,
    topic_objects: TopicObjects,
    subscriptions: Iterable[Subscription],
    retained_topics: Iterable[str],
) -> list[PrefixFinding]:
    """The other users of the part of the topic space for *owner*, a stream or a subscription point (guide 6.1).

    The prefixes of streams and subscription points must be unique, and none may lie inside another. Ordinary
    subscriptions and retained publications below the prefix would be mixed with those of the stream.
    """
    if not prefix:
        return []
    findings: list[PrefixFinding] = []
    for other in topic_objects:
        if other.name == owner or not other.topic_string:
            continue
        blocking = other.wildcard is Wildcard.BLOCK
        if other.topic_string == prefix:
            findings.append(_warning("prefix-in-use", f"topic object {other.name} has topic string {prefix}"))
        elif is_within(prefix, other.topic_string):
            findings.append(_warning("object-below", f"{other.name} ({other.topic_string}) lies below {prefix}"))
        elif blocking and is_within(other.topic_string, prefix):
            findings.append(_warning("prefix-nested", f"{prefix} lies below {other.name} ({other.topic_string})"))
    own = {owner, prefix}  # the object of a subscription point may have another name than the point
    mixed = [s for s in subscriptions if not own & {s.stream, s.sub_point} and _lies_within(prefix, s)]
    if mixed:
        findings.append(_warning("subscriptions-below", f"{len(mixed)} other subscriptions lie below {prefix}"))
    kept = sum(1 for topic in retained_topics if is_within(prefix, topic))
    if kept:
        findings.append(_warning("retained-below", f"{kept} retained publications lie below {prefix}"))
    return findings


def _lies_within(prefix: str, subscription: Subscription) -> bool:
    if subscription.wildcard is WildcardScheme.CHAR:
        prefix = escape_char_pattern(prefix)
    return is_within(prefix, subscription.topic_string)


def _error(code: str, text: str) -> PrefixFinding:
    return PrefixFinding(code, PrefixSeverity.ERROR, text)


def _warning(code: str, text: str) -> PrefixFinding:
    return PrefixFinding(code, PrefixSeverity.WARNING, text)


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
