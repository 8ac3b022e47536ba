"""paho-mqtt as the rest of the bridge sees it: packets in, packets out, reason codes as exceptions.

The one module that knows paho. Its callbacks run in paho's own thread and only note what came.
"""

from __future__ import annotations

import logging
import socket
import ssl
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from commands.live.config import ConfigError, TopicsConfig
from commands.live.mqtt.packets import Packet
from commands.live.urls import Address
from rfh2.distribution import how_to_install
from rfh2.errors import StoreError

try:
    from paho.mqtt import client as paho
    from paho.mqtt.enums import CallbackAPIVersion
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties
    from paho.mqtt.subscribeoptions import SubscribeOptions
except ImportError:  # pragma: no cover - the extra is not installed
    paho = None  # type: ignore[assignment]

_log = logging.getLogger("qpubsub.mqtt")

_FAILURE: Final = 0x80
RETAIN_NOW, RETAIN_NEVER = 0, 2


class TreeUnreachableError(StoreError):
    """The MQTT broker cannot be reached now; what was asked may be tried again."""


class RefusedError(StoreError):
    """The MQTT broker refuses. code: MQTT 5's reason code. what: what was asked."""

    def __init__(self, what: str, code: int, name: str) -> None:
        super().__init__(what, code, name)
        self.what, self.code, self.name = what, code, name

    def __str__(self) -> str:
        return f"the MQTT broker refuses {self.what}: {self.name} (0x{self.code:02X})"


@dataclass(frozen=True, slots=True)
class Received:
    """A publication that came. mid: its packet identifier, to acknowledge it, in *connection*. identifiers: of the
    subscriptions that it was sent for. again: whether it may have come before."""

    packet: Packet
    mid: int
    connection: int
    identifiers: tuple[int, ...]
    again: bool


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


class Ticket:
    """An answer to a SUBSCRIBE or UNSUBSCRIBE that is waited for."""

    __slots__ = ("_done", "code", "name")

    def __init__(self) -> None:
        self._done = threading.Event()
        self.code, self.name = 0, ""

    def settle(self, code: int, name: str) -> None:
        """It came."""
        self.code, self.name = code, name
        self._done.set()

    @property
    def refused(self) -> bool:
        """Whether it is a refusal."""
        return self.code >= _FAILURE

    def wait(self, timeout_s: float) -> bool:
        """Wait for it; whether it came."""
        return self._done.wait(timeout_s)


class Sent:
    """A publication on its way, until the broker has answered for it."""

    __slots__ = ("_info", "_refusals")

    def __init__(self, info: Any, refusals: dict[int, tuple[int, str]]) -> None:
        self._info, self._refusals = info, refusals

    def wait(self, timeout_s: float) -> bool:
        """Wait for the answer; whether it came."""
        self._info.wait_for_publish(timeout_s)
        return bool(self._info.is_published())

    def refusal(self) -> tuple[int, str] | None:
        """Reason code and its name where the broker did not take it; ask once, after the answer."""
        return self._refusals.pop(self._info.mid, None)


class MqttClient:
    """One connection, made again whenever it breaks. clean: without a session that outlives it.

    received: called with each publication; connected: with what the broker granted; both in paho's thread. Raises
    ConfigError where paho-mqtt is missing or the TLS files are no good.
    """

    def __init__(
        self,
        address: Address,
        config: TopicsConfig,
        client_id: str,
        received: Callable[[Received], None],
        connected: Callable[[Granted], None] = lambda _granted: None,
        clean: bool = False,
    ) -> None:
        if paho is None:
            raise ConfigError("--topics", f"mqtt:// needs the package paho-mqtt: {how_to_install('mqtt')}")
        self.client_id = client_id
        self._address, self._config, self._clean = address, config, clean
        self._received, self._granted = received, connected
        self._tickets: dict[int, Ticket] = {}
        self._early: dict[int, tuple[int, str]] = {}
        self._refusals: dict[int, tuple[int, str]] = {}
        self._lock = threading.Lock()
        self._up, self._tried = threading.Event(), threading.Event()
        self.connection = 0
        self.granted: Granted | None = None
        self._answered = False
        self._socket: Any = None
        self.trouble = f"the MQTT broker at {address} has not answered yet"
        client = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id,
            protocol=paho.MQTTv5,
            manual_ack=True,
            reconnect_on_failure=True,
        )
        client.on_connect, client.on_disconnect = self._on_connect, self._on_disconnect
        client.on_message, client.on_publish = self._on_message, self._on_publish
        client.on_subscribe, client.on_unsubscribe = self._on_subscribe, self._on_unsubscribe
        client.on_connect_fail = self._on_connect_fail
        client.on_socket_open = self._on_socket_open
        client.max_queued_messages_set(0)
        client.max_inflight_messages_set(1_000)
        client.reconnect_delay_set(1, 30)
        user = address.user or config.user
        if user is not None:
            client.username_pw_set(user, config.password())
        if address.secure:
            self._secure(client)
        self._client = client

    def _secure(self, client: Any) -> None:
        config = self._config
        try:
            context = ssl.create_default_context(cafile=None if config.ca_file is None else str(config.ca_file))
            if config.cert_file is not None:
                context.load_cert_chain(config.cert_file, config.key_file)
        except OSError as error:
            files = ", ".join(str(path) for path in (config.ca_file, config.cert_file, config.key_file) if path)
            raise ConfigError("ca_file, cert_file, key_file", f"{files}: {error.strerror or error}") from error
        client.tls_set_context(context)

    def start(self) -> None:
        """Connect, and stay so, in a thread of its own."""
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = 0 if self._clean else self._config.session_expiry_s
        properties.ReceiveMaximum = self._config.receive_maximum
        self._client.connect_async(
            self._address.host,
            self._address.port,
            self._config.keepalive_s,
            clean_start=self._clean,
            properties=properties,
        )
        self._client.loop_start()

    def stop(self) -> None:
        """Disconnect; a session stays with the broker."""
        self._client.disconnect()
        self._client.loop_stop()
        self._up.clear()

    @property
    def is_up(self) -> bool:
        """Whether there is a connection now."""
        return self._up.is_set()

    def wait_up(self, timeout_s: float) -> bool:
        """Wait for a connection; whether there is one."""
        return self._up.wait(timeout_s)

    def wait_tried(self, timeout_s: float) -> bool:
        """Wait until a connection was tried, and no longer; whether there is one."""
        self._tried.wait(timeout_s)
        return self.is_up

    def publish(self, packet: Packet) -> Sent:
        """Send it; with QoS 1 it is sent again until it is answered, also by a connection yet to come.

        Raises TreeUnreachableError without a connection; with QoS 1 it may be sent all the same.
        """
        if not self.is_up:
            raise TreeUnreachableError(self.trouble)
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        if packet.expiry_s is not None:
            properties.MessageExpiryInterval = packet.expiry_s
        if packet.content_type is not None:
            properties.ContentType = packet.content_type
        if packet.is_text:
            properties.PayloadFormatIndicator = 1
        if packet.properties:
            properties.UserProperty = list(packet.properties)
        qos = packet.qos if self.granted is None else min(packet.qos, self.granted.max_qos)
        info = self._client.publish(packet.topic, packet.payload, qos, packet.retain, properties)
        if info.rc != paho.MQTT_ERR_SUCCESS:
            raise TreeUnreachableError(self.trouble)
        return Sent(info, self._refusals)

    def subscribe(
        self, topic_filter: str, identifier: int | None, qos: int, retained: int, own: bool = False
    ) -> Ticket:
        """Subscribe. retained: RETAIN_NOW or RETAIN_NEVER. own: send what this client publishes too.

        Raises TreeUnreachableError without a connection.
        """
        options = SubscribeOptions(
            qos, noLocal=not own, retainAsPublished=retained == RETAIN_NEVER, retainHandling=retained
        )
        properties = None
        if identifier is not None:
            properties = Properties(PacketTypes.SUBSCRIBE)  # type: ignore[no-untyped-call]
            properties.SubscriptionIdentifier = identifier
        code, mid = self._client.subscribe(topic_filter, options=options, properties=properties)
        return self._asked(code, mid)

    def unsubscribe(self, topic_filter: str) -> Ticket:
        """Unsubscribe. Raises TreeUnreachableError without a connection."""
        code, mid = self._client.unsubscribe(topic_filter)
        return self._asked(code, mid)

    def round_trip(self, timeout_s: float) -> bool:
        """Whether the broker has answered all that was sent before, and sent all that it had in between.

        Raises TreeUnreachableError without a connection.
        """
        # Nobody has this filter, and no access rule is asked about the end of a subscription.
        return self.unsubscribe("$qpubsub/round-trip").wait(timeout_s)

    def acknowledge(self, received: Received) -> None:
        """Tell the broker that it is safe here; not where its connection is gone: then it comes again."""
        if received.packet.qos and received.connection == self.connection and self._up.is_set():
            self._client.ack(received.mid, received.packet.qos)

    def _asked(self, code: int, mid: int | None) -> Ticket:
        if code != paho.MQTT_ERR_SUCCESS or mid is None:
            raise TreeUnreachableError(self.trouble)
        return self._ticket(mid)

    def _ticket(self, mid: int) -> Ticket:
        with self._lock:
            early = self._early.pop(mid, None)
            ticket = Ticket()
            if early is None:
                self._tickets[mid] = ticket
            else:
                ticket.settle(*early)
            return ticket

    def _settle(self, mid: int, code: int, name: str) -> None:
        with self._lock:
            ticket = self._tickets.pop(mid, None)
            if ticket is None:
                # The answer came before subscribe() had told us what it is the answer to.
                self._early[mid] = (code, name)
                return
        ticket.settle(code, name)

    # paho's thread

    def _on_socket_open(self, _client: Any, _data: Any, sock: Any) -> None:
        # Packets are small and answers waited for: held back until there are more, each costs a RegSub 40 ms.
        with suppress(OSError, AttributeError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = sock

    def _acknowledge_at_once(self) -> None:
        # A broker that holds small packets back sends the next one only when the system here has acknowledged the last,
        # for which that waits 40 ms; Linux alone can be told not to, until it forgets.
        with suppress(OSError, AttributeError):
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def _on_connect(self, _client: Any, _data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._answered = True
        if reason.is_failure:
            self._trouble(f"the MQTT broker at {self._address} refuses the connection: {reason}")
            return
        with self._lock:
            # What was asked of the connection before will not be answered; paho sends publications again by itself.
            self._early.clear()
            self._tickets.clear()
        self.connection += 1
        self.granted = Granted(
            bool(flags.session_present),
            getattr(properties, "MaximumQoS", 2),
            bool(getattr(properties, "RetainAvailable", 1)),
            getattr(properties, "MaximumPacketSize", None),
            getattr(properties, "ReceiveMaximum", 65_535),
            bool(getattr(properties, "SubscriptionIdentifierAvailable", 1)),
            getattr(properties, "SessionExpiryInterval", None),
        )
        self.trouble = ""
        self._up.set()
        self._tried.set()
        self._granted(self.granted)

    def _on_connect_fail(self, _client: Any, _data: Any) -> None:
        # paho keeps what went wrong to itself, but calls this where it handles it.
        self._trouble(f"the MQTT broker at {self._address} does not answer: {_why(sys.exc_info()[1], self._address)}")

    def _on_disconnect(self, _client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        answered, self._answered = self._answered, False
        was_up = self._up.is_set()
        self._up.clear()
        if reason.is_failure and was_up:
            self._trouble(f"the connection to the MQTT broker at {self._address} is broken: {reason}")
        elif not answered:
            # One that was refused has told why already.
            what = "it is no MQTT 5 broker, or wants TLS" if not self._address.secure else "it is no MQTT 5 broker"
            self._trouble(f"what listens at {self._address} hangs up instead of answering: {what}")

    def _trouble(self, text: str) -> None:
        if text != self.trouble:
            _log.warning("%s; trying again", text)
        self.trouble = text
        self._tried.set()

    def _on_message(self, _client: Any, _data: Any, message: Any) -> None:
        properties = message.properties
        packet = Packet(
            message.topic,
            bytes(message.payload),
            message.qos,
            bool(message.retain),
            getattr(properties, "MessageExpiryInterval", None),
            getattr(properties, "ContentType", None),
            getattr(properties, "PayloadFormatIndicator", 0) == 1,
            tuple((str(name), str(value)) for name, value in getattr(properties, "UserProperty", ())),
            getattr(properties, "ResponseTopic", None),
            getattr(properties, "CorrelationData", None),
        )
        identifiers = tuple(getattr(properties, "SubscriptionIdentifier", ()))
        self._received(Received(packet, message.mid, self.connection, identifiers, bool(message.dup)))

    def _on_publish(self, _client: Any, _data: Any, mid: int, reason: Any, _properties: Any) -> None:
        self._acknowledge_at_once()
        # Acceptance is read off paho's own record: this is called for QoS 0 too, whose numbers are used again.
        if reason.is_failure:
            self._refusals[mid] = (reason.value, str(reason))

    def _on_subscribe(self, _client: Any, _data: Any, mid: int, reasons: Any, _properties: Any) -> None:
        worst = max(reasons, key=lambda reason: int(reason.value))
        self._settle(mid, worst.value, str(worst))

    def _on_unsubscribe(self, _client: Any, _data: Any, mid: int, reasons: Any, _properties: Any) -> None:
        worst = max(reasons, key=lambda reason: int(reason.value), default=None)
        self._settle(mid, 0 if worst is None else worst.value, str(worst))


def _why(error: BaseException | None, address: Address) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}); see ca_file"
    why = (error.strerror if isinstance(error, OSError) else None) or str(error)
    if address.secure and isinstance(error, ssl.SSLError | ConnectionResetError):
        return f"TLS is not what it speaks there ({why}); try mqtt://"
    return why
