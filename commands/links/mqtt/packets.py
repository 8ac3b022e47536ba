"""Converts MQTT 5 publications to publications of queue managers and back, field by field. Pure.

The payload is never touched. User properties that begin with ``mq.`` say what MQTT has no field for
(``commands.links.engine.properties``).

    to the tree             from                               from the tree
    topic                   topic string                       topic string
    retain                  RetainPub                          RetainPub, or DeletePub where there is no payload
    QoS                     1 persistent, 0 not                persistence
    message expiry (s)      what is left, rounded up           Expiry
    content type, payload   Format, CodedCharSetId             Format MQSTR, 1208 for what is said to be text
      format indicator
    mq.Fence                only on what bridges send to themselves (commands.links.mqtt.adapter): never taken
    user properties         mq. properties, folder usr         the same
    mq.Escaped              1 where the user properties are    they are read as what they were
                              escaped (commands.links.mqtt.packets)
    response topic,         -                                  user properties mqtt.ResponseTopic,
      correlation data                                           mqtt.CorrelationData (hexadecimal)

The state of the bridge as a retained publication of the broker: ``[topics] state_topic``.

    running   published at each connection
    stopped   published when the bridge ends in order
    lost      published by the broker (last will) when the connection has been gone for WILL_DELAY_S: the bridge has
              ended in another way, or cannot be reached. An instance that takes over connects before that

The publications have the property ``mq.Bridge``, so that the bridge does not take them for a program's. Pure.

The answers of the MQTT broker to a connection, a SUBSCRIBE and a PUBLISH, and missing answers.

Topic strings and patterns of the queued interface as MQTT topic names and filters, where there are any.

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

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from commands.links.engine import properties as props
from commands.links.engine.filters import levels_of
from commands.links.engine.inbound_writer import NativePublication
from rfh2.captured import iso
from streams.patterns import MULTI_LEVEL, SINGLE_LEVEL
from streams.subscriptions import WildcardScheme
from streams.topic_strings import SEPARATOR

# Escapes text that MQTT cannot carry, so that user properties can carry it.
#
# Pure. A string of MQTT is UTF-8 of at most 65,535 bytes without a null; a broker may close the connection over
# control characters (U+0001 to U+001F, U+007F to U+009F), and over what Unicode has no characters for (MQTT 5,
# 1.5.4). The user properties of a publication that has any such are escaped, all of them, and ``mq.Escaped`` among
# them says so:
#
#     \u{9}     the character with this number, in hexadecimal
#     \\       a backslash
#     \+        at the end of a value: it goes on in the next property of the same name
#
#     Note = "line 1 (line feed) line 2"    ->    Note = "line 1\u{A}line 2", mq.Escaped = "1"
#
# A publication without such characters is sent as it is, backslashes and all.

MAX_BYTES: Final = 65_535
ESCAPED: Final = "mq.Escaped"

_NOT_CHARACTERS: Final = "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
_FORBIDDEN: Final = re.compile(f"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{_NOT_CHARACTERS}]")
_TO_ESCAPE: Final = re.compile(rf"\\|{_FORBIDDEN.pattern}")
_TOKEN: Final = re.compile(r"\\u\{([0-9A-F]{1,6})\}|\\(\\)|\\\+\Z|([^\\]+)")
_GOES_ON: Final = "\\+"
# Characters to a piece of a long value: an escape has up to 10 bytes, and it still fits.
_PIECE: Final = 6_000


def why_not_text(text: str) -> str | None:
    """Why MQTT cannot carry *text* as a string, None where it can."""
    if text.isprintable() and len(text) * 4 <= MAX_BYTES:
        return None
    found = _FORBIDDEN.search(text)
    if found is not None:
        return "MQTT allows no null" if found[0] == "\0" else f"MQTT does not allow character U+{ord(found[0]):04X}"
    size = len(text.encode())
    return f"it has {size} bytes, more than the {MAX_BYTES} that MQTT allows" if size > MAX_BYTES else None


def fits_name(name: str) -> bool:
    """Whether a user property may have this name, escaped if need be."""
    # An escape has up to 10 bytes.
    return len(name) * 10 <= MAX_BYTES or len(_escape(name).encode()) <= MAX_BYTES


def escaped(pairs: props.Pairs) -> props.Pairs:
    """*pairs* as MQTT carries them: the same where it can. Each name must be one that ``fits_name``."""
    if all(why_not_text(name) is None and why_not_text(value) is None for name, value in pairs):
        return pairs
    return ((ESCAPED, "1"), *((_escape(name), piece) for name, value in pairs for piece in _pieces(value)))


def unescaped(pairs: props.Pairs) -> props.Pairs:
    """What ``escaped`` was given; the same pairs where nothing says that they are escaped, or they are not."""
    if (ESCAPED, "1") not in pairs:
        return pairs
    found: list[tuple[str, str]] = []
    begun = ""
    for escaped_name, piece in pairs:
        if escaped_name == ESCAPED:
            continue
        name, text = _unescape(escaped_name), _unescape(piece)
        if name is None or text is None:
            return pairs
        begun += text[0]
        if not text[1]:
            found.append((name[0], begun))
            begun = ""
    return pairs if begun else tuple(found)


def _escape(text: str) -> str:
    return _TO_ESCAPE.sub(lambda found: "\\\\" if found[0] == "\\" else f"\\u{{{ord(found[0]):X}}}", text)


def _pieces(value: str) -> Iterator[str]:
    whole = _escape(value)
    if len(whole) * 4 <= MAX_BYTES or len(whole.encode()) <= MAX_BYTES:
        yield whole
        return
    for at in range(0, len(value), _PIECE):
        goes_on = _GOES_ON if at + _PIECE < len(value) else ""
        yield _escape(value[at : at + _PIECE]) + goes_on


def _unescape(text: str) -> tuple[str, bool] | None:
    """The text, and whether it goes on in the next property; None where it has an escape that there is not."""
    parts: list[str] = []
    at, goes_on = 0, False
    for token in _TOKEN.finditer(text):
        if token.start() != at:
            return None
        at = token.end()
        number, backslash, plain = token.groups()
        if number is not None:
            if int(number, 16) > 0x10FFFF:
                return None
            parts.append(chr(int(number, 16)))
        elif backslash or plain:
            parts.append(backslash or plain)
        else:
            goes_on = True
    return ("".join(parts), goes_on) if at == len(text) else None


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


FENCE: Final = "mq.Fence"
_MAX_EXPIRY: Final = 0xFFFF_FFFF


class MqttPublication(NamedTuple):
    """An MQTT 5 PUBLISH. expiry_s: seconds, None for never. is_text: payload format indicator 1."""

    topic: str
    payload: bytes = b""
    qos: int = 1
    retain: bool = False
    expiry_s: int | None = None
    content_type: str | None = None
    is_text: bool = False
    properties: props.Pairs = ()
    response_topic: str | None = None
    correlation_data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Granted:
    """What the broker says when it accepts a connection (CONNACK). max_packet: bytes, None for no limit."""

    session_present: bool
    max_qos: int = 2
    retain: bool = True
    max_packet: int | None = None
    receive_maximum: int = 65_535
    identifiers: bool = True
    session_expiry_s: int | None = None


EVERYTHING: Final = Granted(False)
"""What a broker grants that sets no limits."""


def packet_for(
    wanted: props.ForTree, prefix: str, bridge: str, granted: Granted = EVERYTHING
) -> tuple[MqttPublication, tuple[str, ...]]:
    """The PUBLISH that does what is wanted, as far as the broker grants it, and what it has no room for.

    prefix: of all topics in the tree. bridge: the client identifier.
    """
    topic = prefix + wanted.topic
    if wanted.clear:
        qos = min(1, granted.max_qos)
        return MqttPublication(topic, qos=qos, retain=granted.retain, properties=((props.BRIDGE, bridge),)), ()
    is_text, content_type = props.content_type_of(wanted, lambda text: why_not_text(text) is None)
    properties = escaped(tuple(pair for pair in props.properties_of(wanted, bridge) if fits_name(pair[0])))
    lost = [
        f"the property {name[:40]}..., the name of which is too long"
        for name, _ in wanted.properties
        if not fits_name(name)
    ]
    expiry_s = None if wanted.expiry <= 0 else min(-(-wanted.expiry // 10), _MAX_EXPIRY)
    qos, retain = min(int(wanted.persistent), granted.max_qos), wanted.retain and granted.retain
    packet = MqttPublication(topic, wanted.payload, qos, retain, expiry_s, content_type, is_text, properties)
    return packet, (*lost, *wanted.other)


def native_of(packet: MqttPublication, prefix: str, bridge: str, default_format: str = "") -> NativePublication | None:
    """The publication that came in *packet*; None for one that this bridge itself had sent, or outside the prefix.

    default_format: of a payload about which nothing is said.
    """
    if not packet.topic.startswith(prefix) or len(packet.topic) == len(prefix):
        return None
    pairs = unescaped(packet.properties)
    given = dict(pairs)
    if given.get(props.BRIDGE) == bridge or FENCE in given:
        return None
    more: list[tuple[str, str]] = []
    if packet.response_topic:
        more.append(("mqtt.ResponseTopic", packet.response_topic))
    if packet.correlation_data:
        more.append(("mqtt.CorrelationData", packet.correlation_data.hex()))
    return props.native_from(
        packet.topic.removeprefix(prefix),
        packet.payload,
        pairs,
        retain=packet.retain,
        persistent=packet.qos > 0,
        expiry_s=packet.expiry_s,
        is_text=packet.is_text or props.is_text_type(packet.content_type),
        default_format=default_format,
        more=tuple(more),
    )


WILL_DELAY_S: Final = 5


class BridgeState(StrEnum):
    """What the publication says."""

    RUNNING = "running"
    STOPPED = "stopped"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class StateTopic:
    """Makes the publications. topic: in full, without the prefix of others. bridge: the client identifier.

    queues: where the queues are, ``embedded`` or a URL. epoch: of the active instance, None where it has none.
    """

    topic: str
    bridge: str
    qmgr: str
    version: str
    queues: str
    epoch: int | None

    def packet(self, state: BridgeState, since: datetime) -> MqttPublication:
        """The publication that says that the bridge is in *state*. since: of a will, when the bridge connected."""
        about = {
            "qmgr": self.qmgr,
            "state": state,
            "since": iso(since),
            "version": self.version,
            "epoch": self.epoch,
            "links": {"queues": self.queues, "topics": _LINK[state]},
        }
        payload = json.dumps(about).encode()
        properties = ((props.BRIDGE, self.bridge),)
        return MqttPublication(
            self.topic, payload, 1, retain=True, content_type="application/json", is_text=True, properties=properties
        )


_LINK: Final = {
    BridgeState.RUNNING: "connected",
    BridgeState.STOPPED: "disconnected",
    BridgeState.LOST: "disconnected",
}


_FAILURE: Final = 0x80


class Received(NamedTuple):
    """A publication that came. mid: its packet identifier, to acknowledge it, in *connection*. identifiers: of the
    subscriptions that it was sent for. again: whether it may have come before."""

    packet: MqttPublication
    mid: int
    connection: int
    identifiers: tuple[int, ...]
    again: bool


class MqttConnection:
    """One connection, from the attempt to its end. number: of those that the broker accepted."""

    def __init__(self) -> None:
        self.paho: Any = None
        self.number = 0
        self.socket: Any = None
        self.answered = False
        self.since = time.monotonic()
        self.lock = threading.Lock()
        self.tickets: dict[int, Ticket] = {}
        self.early: dict[int, tuple[int, str]] = {}
        self.refusals: dict[int, tuple[int, str]] = {}
        self.ended = threading.Event()
        self.blames = False

    def end(self) -> None:
        """The connection is gone: no request on it gets an answer any more."""
        with self.lock:
            self.ended.set()
            left, self.tickets = list(self.tickets.values()), {}
        for ticket in left:
            ticket.lose()


class Ticket:
    """An answer to a SUBSCRIBE or UNSUBSCRIBE that is waited for."""

    __slots__ = ("_connection", "_done", "_lost", "_refused", "code", "name")

    def __init__(self, connection: MqttConnection, refused: Callable[[], None] | None = None) -> None:
        self._connection, self._refused = connection, refused
        self._done = threading.Event()
        self._lost = False
        self.code, self.name = 0, ""

    def settle(self, code: int, name: str) -> None:
        """The answer has arrived."""
        self.code, self.name = code, name
        if self.refused and self._refused is not None:
            self._refused()
        self._done.set()

    def lose(self) -> None:
        """The connection is gone, so the answer will not arrive."""
        self._lost = True
        self._done.set()

    @property
    def refused(self) -> bool:
        """Whether it is a refusal."""
        return self.code >= _FAILURE

    @property
    def is_blamed(self) -> bool:
        """Whether the broker ended the connection instead of answering, and may have done so because of this."""
        return self._lost and self._connection.blames

    def wait(self, timeout_s: float) -> bool:
        """Wait for the answer; whether it arrived."""
        return self._done.wait(timeout_s) and not self._lost


class SentPacket:
    """A publication on its way, until the broker has answered for it or the connection is gone."""

    __slots__ = ("_connection", "_info")

    def __init__(self, info: Any, connection: MqttConnection) -> None:
        self._info, self._connection = info, connection

    def wait(self, timeout_s: float) -> bool:
        """Wait for the answer; whether it came."""
        if self._info.rc:
            # The connection broke at that moment; the packet may have been sent before.
            self._connection.ended.wait(timeout_s)
            return False
        self._info.wait_for_publish(timeout_s)
        return bool(self._info.is_published())

    @property
    def is_lost(self) -> bool:
        """Whether the connection is gone, so that no answer comes any more."""
        return self._connection.ended.is_set() and (self._info.rc != 0 or not self._info.is_published())

    @property
    def is_blamed(self) -> bool:
        """Whether the broker ended the connection instead of answering, and may have done so because of this."""
        return self.is_lost and self._connection.blames

    def refusal(self) -> tuple[int, str] | None:
        """Reason code and its name where the broker did not take it; ask once, after the answer."""
        return self._connection.refusals.pop(self._info.mid, None)


def refusal(what: str, code: int, name: str) -> str:
    """That the broker refuses *what*, with MQTT 5's reason code and its name."""
    return f"the MQTT broker refuses {what}: {name} (0x{code:02X})"
