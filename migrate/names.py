"""Names that a migration makes: for subscriptions whose names were unique only in a stream, and for topic objects.

A topic object for a subscription point has the point's name. If that is longer than an object name, or an object with
another topic string has it, the name is made of the first 23 characters, two hexadecimal digits counting from 00, and
the last 23 (guide 6.2; IBM's sample programs have the rule):

    Prices/Europe/Frankfurt/Equities/RealTime/VeryLongSubscriptionPoint
    Prices/Europe/Frankfurt00ryLongSubscriptionPoint

A short name gets the digits at its end. Characters that no object name may have become ``_``.

Topics in Event Broker and Message Broker: those of a stream lie below ``$SYS/STREAM/<stream>`` (guide 8.4).

$SYS/STREAM/Sport/Soccer/Results    topic Soccer/Results of stream Sport
$SYS/STREAM/Sport                   the root of stream Sport: an access control list may stand there
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from commands.broker.objects import is_object_name
from migrate.legacy_state import Product
from rfh2.constants import MQ_OBJECT_NAME_LENGTH
from streams.topic_objects import DEFAULT_STREAM

ACL_TOPIC: Final = "MIGMBBRK.TOPIC."
_HALF: Final = 23
_NOT_ALLOWED: Final = re.compile(r"[^A-Za-z0-9._/%]")


def subscription_name(name: str, stream: str, separator: str) -> str:
    """The name in version 7: unchanged on the default stream, else with the stream's name appended (guide 7.6.1)."""
    return name if stream == DEFAULT_STREAM else f"{name}{separator}{stream}"


def sub_point_object_name(point: str, is_taken: Callable[[str], bool]) -> str | None:
    """The name of the topic object for a subscription point; None where none of 256 made names is free.

    is_taken: whether an object of that name is in the way.
    """
    if is_object_name(point) and not is_taken(point):
        return point
    base = _NOT_ALLOWED.sub("_", point)
    for counter in range(256):
        digits = f"{counter:02X}"
        fits = len(base) + 2 <= MQ_OBJECT_NAME_LENGTH
        name = base + digits if fits else base[:_HALF] + digits + base[-_HALF:]
        if not is_taken(name):
            return name
    return None


def acl_object_names(first: int, is_taken: Callable[[str], bool]) -> Callable[[], str]:
    """Names of topic objects made for access control lists: five digits from *first*, those in use left out (8.4)."""
    number = first - 1

    def following() -> str:
        nonlocal number
        number += 1
        while is_taken(f"{ACL_TOPIC}{number:05}"):
            number += 1
        return f"{ACL_TOPIC}{number:05}"

    return following


STREAM_TOPICS: Final = "$SYS/STREAM/"
SYSTEM_TOPICS: Final = ("$SYS", "$SYS/STREAM")


def split_stream(topic: str) -> tuple[str, str]:
    """(stream, topic) of a topic string inside the broker; "" for the topic where it is the root of a stream."""
    if not topic.startswith(STREAM_TOPICS):
        return DEFAULT_STREAM, topic
    stream, _, own = topic.removeprefix(STREAM_TOPICS).partition("/")
    return (stream, own) if stream else (DEFAULT_STREAM, topic)


def broker_topic(stream: str, topic: str, product: Product) -> str:
    """A topic as the broker had it: Message Broker's under the name of its stream."""
    if stream == DEFAULT_STREAM or product is not Product.WMB:
        return topic
    return f"{STREAM_TOPICS}{stream}/{topic}" if topic else f"{STREAM_TOPICS}{stream}"
