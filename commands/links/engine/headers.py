"""Publications as messages with headers, and back, for trees that have such messages: NATS, Kafka. Pure.

The payload is never touched.

    to the tree             from                               from the tree
    content type            Format, CodedCharSetId             Format MQSTR, 1208 for what is said to be text
    mq.Retain               1: RetainPub                       RetainPub
    mq.Persistence          0: not persistent                  persistence
    other headers           mq. properties, folder usr         the same (commands.links.engine.properties)

An adapter adds the topic, the expiry, and what clears a topic: each tree has a place of its own for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from commands.links.engine.command_from_native import NativePublication
from commands.links.engine.message_for_tree import ForTree
from commands.links.engine.properties import BRIDGE, Pairs, content_type_of, is_text_type, native_from

RETAIN: Final = "mq.Retain"
PERSISTENCE: Final = "mq.Persistence"
CONTENT_TYPE: Final = "content-type"
"""In small letters; trees differ in how they spell it."""


@dataclass(frozen=True, slots=True)
class Record:
    """A message of a tree. topic: its topic string; None for none: then *near* is like it, "" for nothing like it.

    headers: without those that are the tree's own; the first of a name counts. is_kept: whether it is where the tree
    keeps what is retained. is_copy: whether a bridge sends the same elsewhere too. clears: whether it only clears what
    is retained. expires_at: seconds since 1970, None for never.
    """

    topic: str | None
    payload: bytes
    headers: Pairs
    near: str = ""
    is_kept: bool = False
    is_copy: bool = False
    clears: bool = False
    expires_at: float | None = None

    @property
    def bridge(self) -> str | None:
        """The bridge that sent it; None if a native program did."""
        return next((value for name, value in self.headers if name == BRIDGE), None)


def own_headers(wanted: ForTree, content_type: str, fits: Callable[[str], bool]) -> list[tuple[str, str]]:
    """The headers of a publication beside its properties.

    content_type: how the tree's programs spell that header. fits: whether a header can have a text as it is.
    """
    own = [(content_type, content_type_of(wanted, fits)[1])]
    if wanted.retain:
        own.append((RETAIN, "1"))
    if not wanted.persistent:
        own.append((PERSISTENCE, "0"))
    return own


def native_of(record: Record, now_s: float, default_format: str = "") -> NativePublication | None:
    """The publication in a record that has a topic string; None if it has expired. now_s: seconds since 1970."""
    topic = record.topic or ""
    if record.clears:
        return NativePublication(topic, b"", retain=True)
    left_s = None if record.expires_at is None else record.expires_at - now_s
    if left_s is not None and left_s <= 0:
        return None
    given = dict(reversed(record.headers))
    kind = next((each for each in record.headers if each[0].lower() == CONTENT_TYPE), None)
    return native_from(
        topic,
        record.payload,
        tuple(each for each in record.headers if each is not kind and each[0] not in (RETAIN, PERSISTENCE)),
        retain=(record.is_kept or given.get(RETAIN) == "1") and bool(record.payload),
        persistent=given.get(PERSISTENCE) != "0",
        expiry_s=left_s,
        is_text=kind is not None and is_text_type(kind[1]),
        default_format=default_format,
    )
