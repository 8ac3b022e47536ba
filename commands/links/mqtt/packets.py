"""Converts MQTT 5 publications to publications of queue managers and back, field by field. Pure.

The payload is never touched. User properties that begin with ``mq.`` say what MQTT has no field for; MQ keeps such
names for itself, so that no program's own property is in their way.

    to the tree             from                               from the tree
    topic                   topic string                       topic string
    retain                  RetainPub                          RetainPub, or DeletePub where there is no payload
    QoS                     1 persistent, 0 not                persistence
    message expiry (s)      what is left, rounded up           Expiry
    content type, payload   Format, CodedCharSetId             Format MQSTR, 1208 for what is said to be text
      format indicator
    mq.Format, mq.Encoding, the same                           the same, where they are given
      mq.CodedCharSetId
    mq.Priority             the publication's                  Priority, where it is given
    mq.PubTime, mq.SeqNum   psc                                psc
    mq.Data                 IntData, StringData                user property
    mq.Bridge               client identifier of this bridge   its own is not taken again
    mq.Fence                only on what bridges send to themselves (commands.links.mqtt.snapshots): never taken
    user properties         folder usr                         folder usr
    mq.Escaped              1 where the user properties are    they are read as what they were
                              escaped (commands.links.mqtt.escaping)
    response topic,         -                                  user properties mqtt.ResponseTopic,
      correlation data                                           mqtt.CorrelationData (hexadecimal)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from commands.links.engine.command_from_native import NativePublication, is_format
from commands.links.engine.message_for_tree import ForTree
from commands.links.mqtt.escaping import Pairs, escaped, fits_name, unescaped, why_not_text
from rfh2.ccsid import text_codec
from rfh2.constants import MQENC_NATIVE

FENCE: Final = "mq.Fence"
TEXT: Final = "text/plain"
BYTES: Final = "application/octet-stream"
_STRING: Final = "MQSTR"
_UTF8: Final = 1208
_BRIDGE, _FORMAT, _PRIORITY = "mq.Bridge", "mq.Format", "mq.Priority"
_ENCODING, _CCSID = "mq.Encoding", "mq.CodedCharSetId"
_STAMPS: Final = {"Pts": "mq.PubTime", "Seq": "mq.SeqNum", "Sid": "mq.Data"}
_TAGS: Final = {"mq.PubTime": "PubTime", "mq.SeqNum": "SeqNum"}
_OWN: Final = frozenset({_BRIDGE, _FORMAT, _PRIORITY, _ENCODING, _CCSID, *_TAGS})
_NUMBER: Final = re.compile("-?[0-9]{1,10}", re.ASCII)
_MAX_EXPIRY: Final = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class MqttPublication:
    """An MQTT 5 PUBLISH. expiry_s: seconds, None for never. is_text: payload format indicator 1."""

    topic: str
    payload: bytes = b""
    qos: int = 1
    retain: bool = False
    expiry_s: int | None = None
    content_type: str | None = None
    is_text: bool = False
    properties: Pairs = ()
    response_topic: str | None = None
    correlation_data: bytes | None = None


def packet_for(wanted: ForTree, prefix: str, bridge: str) -> tuple[MqttPublication, tuple[str, ...]]:
    """The PUBLISH that does what is wanted, and what it has no room for.

    prefix: of all topics in the tree. bridge: the client identifier.
    """
    topic = prefix + wanted.topic
    if wanted.clear:
        return MqttPublication(topic, qos=1, retain=True, properties=((_BRIDGE, bridge),)), ()
    own = [(_BRIDGE, bridge), (_FORMAT, wanted.format)] if wanted.format else [(_BRIDGE, bridge)]
    is_text, content_type = _content_type(wanted)
    if wanted.ccsid > 0 and wanted.ccsid != _UTF8:
        own.append((_CCSID, str(wanted.ccsid)))
    if wanted.encoding != MQENC_NATIVE:
        own.append((_ENCODING, str(wanted.encoding)))
    if wanted.priority:
        own.append((_PRIORITY, str(wanted.priority)))
    stamps = [(_STAMPS.get(name, f"mq.{name}"), value) for name, value in wanted.stamps]
    properties = escaped(tuple(pair for pair in (*own, *stamps, *wanted.properties) if fits_name(pair[0])))
    lost = [
        f"the property {name[:40]}..., the name of which is too long"
        for name, _ in wanted.properties
        if not fits_name(name)
    ]
    expiry_s = None if wanted.expiry <= 0 else min(-(-wanted.expiry // 10), _MAX_EXPIRY)
    qos = int(wanted.persistent)
    packet = MqttPublication(topic, wanted.payload, qos, wanted.retain, expiry_s, content_type, is_text, properties)
    return packet, (*lost, *wanted.other)


def native_of(packet: MqttPublication, prefix: str, bridge: str, default_format: str = "") -> NativePublication | None:
    """The publication that came in *packet*; None for one that this bridge itself had sent, or outside the prefix.

    default_format: of a payload about which nothing is said.
    """
    if not packet.topic.startswith(prefix) or len(packet.topic) == len(prefix):
        return None
    pairs = unescaped(packet.properties)
    given = dict(pairs)
    if given.get(_BRIDGE) == bridge or FENCE in given:
        return None
    fmt = given.get(_FORMAT)
    if fmt is None or not is_format(fmt):
        fmt = _STRING if packet.is_text or _is_text_type(packet.content_type) else default_format
    properties = tuple((name, value) for name, value in pairs if name not in _OWN)
    if packet.response_topic:
        properties = (*properties, ("mqtt.ResponseTopic", packet.response_topic))
    if packet.correlation_data:
        properties = (*properties, ("mqtt.CorrelationData", packet.correlation_data.hex()))
    return NativePublication(
        packet.topic.removeprefix(prefix),
        packet.payload,
        packet.retain,
        packet.qos > 0,
        packet.expiry_s,
        _number(given.get(_PRIORITY), 0, 9, 0),
        properties,
        tuple((_TAGS[name], value) for name, value in pairs if name in _TAGS),
        fmt,
        _number(given.get(_ENCODING), 0, 0x7FFF_FFFF, MQENC_NATIVE),
        _number(given.get(_CCSID), -2, 0x7FFF_FFFF, _UTF8),
    )


def _content_type(wanted: ForTree) -> tuple[bool, str]:
    """Whether the payload is text that MQTT knows, which is UTF-8; and its content type."""
    if wanted.format != _STRING:
        if not wanted.format:
            return False, BYTES
        name = wanted.format if why_not_text(wanted.format) is None else quote(wanted.format, safe=" ")
        return False, f"application/x-ibm-mq; format={name}"
    codec = text_codec(wanted.ccsid, wanted.encoding)
    if codec is None:
        return False, TEXT
    utf8 = codec.replace("-", "").replace("_", "").lower() == "utf8"
    return utf8 and _is_utf8(wanted.payload), f"{TEXT}; charset={'utf-8' if utf8 else codec}"


def _is_text_type(content_type: str | None) -> bool:
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
