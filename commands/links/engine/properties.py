"""Properties that begin with ``mq.``: what a tree of another make has no field for. Pure.

MQ keeps such names for itself, so that no program's own property is in their way.

    to the tree             from                               from the tree
    content type            Format, CodedCharSetId             Format MQSTR, 1208 for what is said to be text
    mq.Format, mq.Encoding, the same                           the same, where they are given
      mq.CodedCharSetId
    mq.Priority             the publication's                  Priority, where it is given
    mq.PubTime, mq.SeqNum   psc                                psc
    mq.Data                 IntData, StringData                user property
    mq.Bridge               name of this bridge at the tree    its own is not taken again
    other properties        folder usr                         folder usr
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from commands.links.engine.inbound_writer import NativePublication, is_format
from commands.links.engine.message_for_tree import ForTree
from rfh2.ccsid import UTF8_CCSID, text_codec
from rfh2.constants import MQENC_NATIVE

Pairs = tuple[tuple[str, str], ...]

TEXT: Final = "text/plain"
BYTES: Final = "application/octet-stream"
BRIDGE: Final = "mq.Bridge"
_STRING: Final = "MQSTR"
_FORMAT, _PRIORITY = "mq.Format", "mq.Priority"
_ENCODING, _CCSID = "mq.Encoding", "mq.CodedCharSetId"
_STAMPS: Final = {"Pts": "mq.PubTime", "Seq": "mq.SeqNum", "Sid": "mq.Data"}
_TAGS: Final = {"mq.PubTime": "PubTime", "mq.SeqNum": "SeqNum"}
_OWN: Final = frozenset({BRIDGE, _FORMAT, _PRIORITY, _ENCODING, _CCSID, *_TAGS})
_NUMBER: Final = re.compile("-?[0-9]{1,10}", re.ASCII)


def properties_of(wanted: ForTree, bridge: str) -> Pairs:
    """The properties of a publication to the tree; those of folder usr are last. bridge: its name at the tree."""
    own = [(BRIDGE, bridge), (_FORMAT, wanted.format)] if wanted.format else [(BRIDGE, bridge)]
    if wanted.ccsid > 0 and wanted.ccsid != UTF8_CCSID:
        own.append((_CCSID, str(wanted.ccsid)))
    if wanted.encoding != MQENC_NATIVE:
        own.append((_ENCODING, str(wanted.encoding)))
    if wanted.priority:
        own.append((_PRIORITY, str(wanted.priority)))
    stamps = [(_STAMPS.get(name, f"mq.{name}"), value) for name, value in wanted.stamps]
    return (*own, *stamps, *wanted.properties)


def native_from(
    topic: str,
    payload: bytes,
    pairs: Pairs,
    *,
    retain: bool,
    persistent: bool,
    expiry_s: float | None,
    is_text: bool,
    default_format: str = "",
    more: Pairs = (),
) -> NativePublication:
    """The publication that came with the properties *pairs*.

    is_text: whether the tree says that the payload is text in UTF-8. default_format: of a payload about which nothing
    is said. more: properties for folder usr that the tree has fields for.
    """
    given = dict(pairs)
    fmt = given.get(_FORMAT)
    if fmt is None or not is_format(fmt):
        fmt = _STRING if is_text else default_format
    return NativePublication(
        topic,
        payload,
        retain,
        persistent,
        expiry_s,
        _number(given.get(_PRIORITY), 0, 9, 0),
        (*((name, value) for name, value in pairs if name not in _OWN), *more),
        tuple((_TAGS[name], value) for name, value in pairs if name in _TAGS),
        fmt,
        _number(given.get(_ENCODING), 0, 0x7FFF_FFFF, MQENC_NATIVE),
        _number(given.get(_CCSID), -2, 0x7FFF_FFFF, UTF8_CCSID),
    )


def content_type_of(wanted: ForTree, fits: Callable[[str], bool]) -> tuple[bool, str]:
    """Whether the payload is text in UTF-8; and its content type. fits: whether the tree can carry a text as it is."""
    if wanted.format != _STRING:
        if not wanted.format:
            return False, BYTES
        name = wanted.format if fits(wanted.format) else quote(wanted.format, safe=" ")
        return False, f"application/x-ibm-mq; format={name}"
    codec = text_codec(wanted.ccsid, wanted.encoding)
    if codec is None:
        return False, TEXT
    utf8 = codec.replace("-", "").replace("_", "").lower() == "utf8"
    return utf8 and _is_utf8(wanted.payload), f"{TEXT}; charset={'utf-8' if utf8 else codec}"


def is_text_type(content_type: str | None) -> bool:
    """Whether a content type says that the payload is text in UTF-8."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    charset = (content_type or "").lower().partition("charset=")[2].strip(' "')
    is_text = kind.startswith("text/") or kind in ("application/json", "application/xml")
    return is_text and charset in ("", "utf-8", "utf8", "us-ascii")


def _is_utf8(payload: bytes) -> bool:
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return False
    return "\0" not in text


def _number(text: str | None, least: int, most: int, otherwise: int) -> int:
    if text is None or _NUMBER.fullmatch(text) is None:
        return otherwise
    number = int(text)
    return number if least <= number <= most else otherwise


# Publications as messages with headers, and back, for trees that have such messages: NATS, Kafka. Pure.
#
# The payload is never touched.
#
#     to the tree             from                               from the tree
#     content type            Format, CodedCharSetId             Format MQSTR, 1208 for what is said to be text
#     mq.Retain               1: RetainPub                       RetainPub
#     mq.Persistence          0: not persistent                  persistence
#     other headers           mq. properties, folder usr         the same (commands.links.engine.properties)
#
# An adapter adds the topic, the expiry, and what clears a topic: each tree has a place of its own for them.

RETAIN: Final = "mq.Retain"
PERSISTENCE: Final = "mq.Persistence"
CONTENT_TYPE: Final = "content-type"
"""In small letters; trees differ in how they spell it."""


@dataclass(frozen=True, slots=True)
class TreeMessage:
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


def native_of(record: TreeMessage, now_s: float, default_format: str = "") -> NativePublication | None:
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
