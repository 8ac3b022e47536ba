"""Topic strings and patterns of the queued interface as MQTT topic names and filters, where there are any.

Pure. MQTT (version 5, section 4.7) has the topic-based wildcards of MQ, ``+`` and ``#``, but for this:

* ``#`` may only be last, and neither character may be a part of a level at all;
* a filter that begins with a wildcard selects no topic that begins with ``$``;
* a topic is at most 65,535 bytes of UTF-8 without control characters, where MQ counts 10,240 characters.

    pattern                    filter            then
    Stock/+/IBM, Stock/#       the same
    Sport/#/Arsenal            Sport/#           the bridge leaves out what the pattern does not select
    a/b*c (characters)         a/#               the same (guide 3.1.3)
    USA+/x                     none              no MQTT topic has such a level: nothing can come
    $share/g/x                 none              to MQTT that is no topic
"""

from __future__ import annotations

from typing import Final

from commands.links.engine.filter_tree import levels_of
from commands.links.mqtt.escaping import why_not_text
from streams.subscriptions import WildcardScheme
from streams.topic_strings import SEPARATOR
from streams.topic_wildcards import MULTI_LEVEL, SINGLE_LEVEL

_RESERVED: Final = "$"


def why_not_shared(topic: str) -> str | None:
    """Why a publication on *topic* concerns no MQTT program, None where it does."""
    if MULTI_LEVEL in topic or SINGLE_LEVEL in topic:
        return "an MQTT topic has no + and no #"
    return "topics that begin with $ are the MQTT broker's own" if topic.startswith(_RESERVED) else None


def why_not_topic(topic: str) -> str | None:
    """Why MQTT cannot carry a publication on *topic*, None where it can."""
    return why_not_shared(topic) or (why_not_text(topic) if topic else "an MQTT topic is not empty")


def filter_of(topic_string: str, scheme: WildcardScheme) -> str | None:
    """The narrowest MQTT filter that selects all that the pattern does; None where nothing can come over MQTT.

    Raises CommandError 3072 where *topic_string* is no pattern of that scheme.
    """
    levels = levels_of(topic_string, scheme)
    if levels is None or any(level not in (MULTI_LEVEL, SINGLE_LEVEL) and _has_wildcard(level) for level in levels):
        return None
    found = SEPARATOR.join(levels)
    return None if found.startswith(_RESERVED) or why_not_text(found) else found


def _has_wildcard(level: str) -> bool:
    return MULTI_LEVEL in level or SINGLE_LEVEL in level
