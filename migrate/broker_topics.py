"""Topics in Event Broker and Message Broker: those of a stream lie below ``$SYS/STREAM/<stream>`` (guide 8.4).

$SYS/STREAM/Sport/Soccer/Results    topic Soccer/Results of stream Sport
$SYS/STREAM/Sport                   the root of stream Sport: an access control list may stand there
"""

from __future__ import annotations

from typing import Final

from migrate.legacy_state import Product
from streams.topic_objects import DEFAULT_STREAM

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
