"""Where a topic of one queue manager lies at a neighbour (guide 3.1.3, 3.3.4, 6.1).

Between two queue managers of version 7 a topic string is the same at both. Version 6 has a topic space for each stream:
a topic string travels with its stream, and gets the prefix that the stream has where it arrives (guide 6.1, figure 1).
A stream that only one of the two has goes no further.

    version 7, topic object Sport, TOPICSTR(xyz)   version 6, stream Sport
    xyz/Soccer/Results                             Soccer/Results on stream Sport
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from commands.broker.context import Semantics, has_stream, stream_prefix
from commands.broker.objects import Objects
from commands.network.flows import Place
from streams.char_wildcards import widen_to_topic_pattern
from streams.patterns import add_pattern_prefix, remove_pattern_prefix
from streams.subscriptions import WildcardScheme
from streams.topic_objects import ADMIN_STREAM, DEFAULT_STREAM, QUEUE_NAMELIST
from streams.topic_strings import is_within


class Correspondent(Protocol):
    """What has to be known of a queue manager to say where topics lie there; a broker is one.

    objects: its streams; between two queue managers of version 7 nothing is asked of them.
    """

    @property
    def semantics(self) -> Semantics: ...
    @property
    def objects(self) -> Objects: ...


def at_neighbour(place: Place, here: Correspondent, there: Correspondent) -> Place | None:
    """Where *place* lies at the neighbour; None where the neighbour does not have its stream."""
    if here.semantics is Semantics.V7 and there.semantics is Semantics.V7:
        return (
            place if place.stream is None and place.sub_point is None else replace(place, stream=None, sub_point=None)
        )
    stream = _stream(place, here)
    if stream is not None and not has_stream(stream, there.objects, there.semantics):
        return None
    before, after = (
        "" if stream is None else stream_prefix(stream, each.objects, each.semantics) for each in (here, there)
    )
    written = remove_pattern_prefix(before, place.topic_string, place.wildcard)
    if before and written == place.topic_string:
        return None  # the topic that is the prefix itself: within a stream of version 6 it has no name
    moved = add_pattern_prefix(after, written, place.wildcard)
    if there.semantics is Semantics.V7:
        return Place(moved, place.wildcard)
    return Place(moved, place.wildcard, stream, place.sub_point)


def proxy_at_neighbour(place: Place, here: Correspondent, there: Correspondent) -> Place | None:
    """The same for the pattern of a proxy subscription.

    Character-based wildcards are widened, unless both are of version 6 and know no others (guide 3.1.3).
    """
    moved = at_neighbour(place, here, there)
    if moved is None or moved.wildcard is WildcardScheme.TOPIC or here.semantics is there.semantics is Semantics.V6:
        return moved
    return replace(moved, topic_string=widen_to_topic_pattern(moved.topic_string), wildcard=WildcardScheme.TOPIC)


def _stream(place: Place, here: Correspondent) -> str | None:
    """The stream of a topic string; at version 7 the one whose topic object it lies below, the nearest of several."""
    if here.semantics is Semantics.V6:
        return place.stream
    namelist = here.objects.namelists.get(QUEUE_NAMELIST)
    names = () if namelist is None else namelist.names
    prefixes = {
        name: stream_prefix(name, here.objects, here.semantics)
        for name in names
        if name not in (DEFAULT_STREAM, ADMIN_STREAM)
    }
    within = [name for name, prefix in prefixes.items() if prefix and is_within(prefix, place.topic_string)]
    return max(within, key=lambda name: len(prefixes[name]), default=None)
