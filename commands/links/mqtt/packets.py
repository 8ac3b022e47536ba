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
    mq.Fence                only on what bridges send to themselves (commands.links.mqtt.snapshots): never taken
    user properties         mq. properties, folder usr         the same
    mq.Escaped              1 where the user properties are    they are read as what they were
                              escaped (commands.links.mqtt.topics)
    response topic,         -                                  user properties mqtt.ResponseTopic,
      correlation data                                           mqtt.CorrelationData (hexadecimal)

The state of the bridge as a retained publication of the broker: ``[topics] state_topic``.

    running   published at each connection
    stopped   published when the bridge ends in order
    lost      published by the broker (last will) when the connection has been gone for WILL_DELAY_S: the bridge has
              ended in another way, or cannot be reached. An instance that takes over connects before that

The publications have the property ``mq.Bridge``, so that the bridge does not take them for a program's. Pure.

The answers of the MQTT broker to a connection, a SUBSCRIBE and a PUBLISH, and missing answers.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from commands.links.engine.inbound_writer import NativePublication
from commands.links.engine.message_for_tree import ForTree
from commands.links.engine.properties import (
    BRIDGE,
    Pairs,
    content_type_of,
    is_text_type,
    native_from,
    properties_of,
)
from commands.links.mqtt.topics import escaped, fits_name, unescaped, why_not_text
from rfh2.captured import iso

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
    properties: Pairs = ()
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


_EVERYTHING: Final = Granted(False)


def packet_for(
    wanted: ForTree, prefix: str, bridge: str, granted: Granted | None = None
) -> tuple[MqttPublication, tuple[str, ...]]:
    """The PUBLISH that does what is wanted, as far as the broker grants it, and what it has no room for.

    prefix: of all topics in the tree. bridge: the client identifier.
    """
    granted = _EVERYTHING if granted is None else granted
    topic = prefix + wanted.topic
    if wanted.clear:
        qos = min(1, granted.max_qos)
        return MqttPublication(topic, qos=qos, retain=granted.retain, properties=((BRIDGE, bridge),)), ()
    is_text, content_type = content_type_of(wanted, lambda text: why_not_text(text) is None)
    properties = escaped(tuple(pair for pair in properties_of(wanted, bridge) if fits_name(pair[0])))
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
    if given.get(BRIDGE) == bridge or FENCE in given:
        return None
    more: list[tuple[str, str]] = []
    if packet.response_topic:
        more.append(("mqtt.ResponseTopic", packet.response_topic))
    if packet.correlation_data:
        more.append(("mqtt.CorrelationData", packet.correlation_data.hex()))
    return native_from(
        packet.topic.removeprefix(prefix),
        packet.payload,
        pairs,
        retain=packet.retain,
        persistent=packet.qos > 0,
        expiry_s=packet.expiry_s,
        is_text=packet.is_text or is_text_type(packet.content_type),
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
        properties = ((BRIDGE, self.bridge),)
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
