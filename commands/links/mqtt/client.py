"""paho-mqtt as the rest of the bridge sees it: packets in, packets out, reason codes as exceptions.

The one module that knows paho. Its callbacks run in paho's own thread and only note what came.

Each connection is a new paho client, made by a thread of this module. So the pause between two connections grows until
a connection has been useful, whatever the broker does after it accepted one. When a connection breaks, only the callers
send again what had no answer. A fault in paho's thread counts as a broken connection.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from commands.config.settings import ConfigError, TopicsConfig
from commands.config.urls import Address
from commands.links.engine.adapter import TreeUnreachableError, client_context, why_unreachable
from commands.links.engine.threads import Backoff
from commands.links.mqtt.answers import Granted, MqttConnection, Received, SentPacket, Ticket
from commands.links.mqtt.packets import WILL_DELAY_S, MqttPublication
from rfh2.distribution import how_to_install

try:
    from paho.mqtt import client as paho
    from paho.mqtt.enums import CallbackAPIVersion
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties
    from paho.mqtt.subscribeoptions import SubscribeOptions

    from commands.links.mqtt.publish_properties import publish_properties
except ImportError:  # pragma: no cover - the extra is not installed
    paho = None  # type: ignore[assignment]

_log = logging.getLogger("qpubsub.mqtt")

# Why a broker ends a connection over what it was sent (MQTT 5, 2.4); 0x80 also where it just hangs up.
_BLAMES: Final = frozenset({0x80, 0x81, 0x82, 0x83, 0x8F, 0x90, 0x94, 0x95, 0x99, 0x9A, 0x9B, 0x9E, 0xA1, 0xA2})
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0
# A connection that lasts so long has been useful, even if nothing was published.
_GOOD_S: Final = 60.0
_LONGEST_STOP_S: Final = 5.0
_NAP_S: Final = 0.2
RETAIN_NOW, RETAIN_IF_NEW, RETAIN_NEVER = 0, 1, 2


class MqttClient:
    """One connection, made again whenever it breaks. clean: without a session that outlives it.

    received: called with each publication; connected: with what the broker granted; both in paho's thread. will: makes,
    for each connection, what the broker publishes when that is lost. Raises ConfigError where paho-mqtt is missing or
    the TLS files are no good.
    """

    def __init__(
        self,
        address: Address,
        config: TopicsConfig,
        client_id: str,
        received: Callable[[Received], None],
        connected: Callable[[Granted], None] = lambda _granted: None,
        clean: bool = False,
        will: Callable[[], MqttPublication] | None = None,
    ) -> None:
        if paho is None:
            raise ConfigError("--topics", f"mqtt:// needs the package paho-mqtt: {how_to_install('mqtt')}")
        self.client_id = client_id
        self._address, self._config, self._clean = address, config, clean
        self._received, self._granted, self._will = received, connected, will
        self._up, self._tried, self._stopping = threading.Event(), threading.Event(), threading.Event()
        self._backoff = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        self._thread: threading.Thread | None = None
        self._connection = MqttConnection()
        self.connection = 0
        self.granted: Granted | None = None
        self.trouble = f"the MQTT broker at {address} has not answered yet"
        self.next_try_s: float | None = None
        # A thread holds it while it sends a packet that may have broken a connection, so that no other such packet is
        # sent.
        self.alone = threading.Lock()
        self._user = address.user or config.user
        self._password = config.password() if self._user is not None else None
        self._tls = client_context(config) if address.secure else None

    def start(self) -> None:
        """Connect, and connect again after each break, in a thread of its own."""
        self._thread = threading.Thread(target=self._stay_connected, name=f"mqtt-{self.client_id}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Disconnect; a session stays with the broker."""
        self._stopping.set()
        if self._thread is not None:
            with suppress(Exception):
                self._connection.paho.disconnect()
            self._thread.join(_LONGEST_STOP_S)
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

    def publish(self, packet: MqttPublication) -> SentPacket:
        """Send it by the present connection; the caller sends it again if no answer comes.

        Raises TreeUnreachableError without a connection.
        """
        connection = self._connection
        if not self.is_up:
            raise TreeUnreachableError(self.trouble)
        properties = publish_properties(packet.expiry_s, packet.content_type, packet.is_text, packet.properties)
        qos = packet.qos if self.granted is None else min(packet.qos, self.granted.max_qos)
        info = connection.paho.publish(packet.topic, packet.payload, qos, packet.retain, properties)
        return SentPacket(info, connection)

    def proved(self) -> None:
        """The connection has been useful: if it breaks, try the next one soon."""
        self._backoff.reset()

    def subscribe(
        self,
        topic_filter: str,
        identifier: int | None,
        qos: int,
        retained: int,
        own: bool = False,
        refused: Callable[[], None] | None = None,
    ) -> Ticket:
        """Subscribe. retained: what the broker sends of what it retains: all, all if it did not have the subscription,
        or nothing. own: send what this client publishes too.

        refused: called where the broker refuses it, before anything that it sent after that is received. Raises
        TreeUnreachableError without a connection.
        """
        options = SubscribeOptions(
            qos, noLocal=not own, retainAsPublished=retained != RETAIN_NOW, retainHandling=retained
        )
        properties = None
        if identifier is not None:
            properties = Properties(PacketTypes.SUBSCRIBE)  # type: ignore[no-untyped-call]
            properties.SubscriptionIdentifier = identifier
        connection = self._online()
        code, mid = connection.paho.subscribe(topic_filter, options=options, properties=properties)
        return self._asked(connection, code, mid, refused)

    def unsubscribe(self, topic_filter: str) -> Ticket:
        """Unsubscribe. Raises TreeUnreachableError without a connection."""
        connection = self._online()
        code, mid = connection.paho.unsubscribe(topic_filter)
        return self._asked(connection, code, mid)

    def round_trip(self, timeout_s: float) -> bool:
        """Whether the broker has answered all that was sent before, and sent all that it had in between.

        Raises TreeUnreachableError without a connection.
        """
        # Nobody has this filter, and no access rule is asked about the end of a subscription.
        return self.unsubscribe("$qpubsub/round-trip").wait(timeout_s)

    def acknowledge(self, received: Received) -> None:
        """Tell the broker that it is safe here; not where its connection is gone: then it comes again."""
        connection = self._connection
        if received.packet.qos and received.connection == connection.number and self._up.is_set():
            connection.paho.ack(received.mid, received.packet.qos)

    def _online(self) -> MqttConnection:
        if not self.is_up:
            raise TreeUnreachableError(self.trouble)
        return self._connection

    def _asked(
        self, connection: MqttConnection, code: int, mid: int | None, refused: Callable[[], None] | None = None
    ) -> Ticket:
        if mid is None:
            raise TreeUnreachableError(self.trouble)
        ticket = Ticket(connection, refused)
        if code != paho.MQTT_ERR_SUCCESS:
            # The connection broke in that moment, perhaps over this: it may have gone out before.
            connection.ended.wait(_NAP_S)
            ticket.lose()
            return ticket
        with connection.lock:
            early = connection.early.pop(mid, None)
            if early is None and not connection.ended.is_set():
                connection.tickets[mid] = ticket
                return ticket
        if early is None:
            ticket.lose()
        else:
            ticket.settle(*early)
        return ticket

    # The thread that connects

    def _stay_connected(self) -> None:
        while not self._stopping.is_set():
            self._connection = connection = MqttConnection()
            try:
                self._connect(connection)
                while not connection.ended.wait(_NAP_S) and not self._stopping.is_set():
                    pass
                if self._stopping.is_set():
                    connection.ended.wait(_LONGEST_STOP_S / 2)
            except Exception as error:
                why = why_unreachable(error, self._address.secure, "mqtt")
                self._trouble(f"the MQTT broker at {self._address} does not answer: {why}")
            finally:
                self._up.clear()
                connection.end()
                self._closed(connection)
            if connection.number and time.monotonic() - connection.since >= _GOOD_S:
                self._backoff.reset()
            if not self._stopping.is_set():
                self.next_try_s = self._backoff.next()
                _log.info("the next try to reach the MQTT broker is in %.1f seconds", self.next_try_s)
                self._stopping.wait(self.next_try_s)

    def _connect(self, connection: MqttConnection) -> None:
        client = connection.paho = _Paho(
            CallbackAPIVersion.VERSION2,
            self.client_id,
            userdata=connection,
            protocol=paho.MQTTv5,
            manual_ack=True,
            reconnect_on_failure=False,
        )
        client.on_connect, client.on_disconnect = self._on_connect, self._on_disconnect
        client.on_message, client.on_publish = self._on_message, self._on_publish
        client.on_subscribe, client.on_unsubscribe = self._on_subscribe, self._on_unsubscribe
        client.on_socket_open, client.on_fault = self._on_socket_open, self._on_fault
        client.max_queued_messages_set(0)
        client.max_inflight_messages_set(1_000)
        if self._user is not None:
            client.username_pw_set(self._user, self._password)
        if self._tls is not None:
            client.tls_set_context(self._tls)
        if self._will is not None:
            will = self._will()
            about = _properties(PacketTypes.WILLMESSAGE, will)
            about.WillDelayInterval = WILL_DELAY_S
            client.will_set(will.topic, will.payload, will.qos, will.retain, about)
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = 0 if self._clean else self._config.session_expiry_s
        properties.ReceiveMaximum = self._config.receive_maximum
        client.connect(
            self._address.host,
            self._address.port,
            self._config.keepalive_s,
            clean_start=self._clean,
            properties=properties,
        )
        client.loop_start()

    def _closed(self, connection: MqttConnection) -> None:
        """Close the socket, so that paho's thread ends in any state."""
        with suppress(Exception):
            sock = connection.paho.socket()
            if sock is not None:
                sock.close()

    # paho's thread

    def _on_socket_open(self, _client: Any, connection: MqttConnection, sock: Any) -> None:
        # Packets are small and answers waited for: held back until there are more, each costs a RegSub 40 ms.
        with suppress(OSError, AttributeError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.socket = sock

    def _acknowledge_at_once(self, connection: MqttConnection) -> None:
        # A broker that holds small packets back sends the next one only when the system here has acknowledged the last,
        # for which that waits 40 ms; Linux alone can be set not to, until it forgets.
        with suppress(OSError, AttributeError):
            connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def _on_connect(self, _client: Any, connection: MqttConnection, flags: Any, reason: Any, properties: Any) -> None:
        if connection.number:
            # As if the connection were new, nothing that came before would be acknowledged, and nothing sent again.
            raise ValueError("a second CONNACK")
        connection.answered = True
        if reason.is_failure:
            self._trouble(f"the MQTT broker at {self._address} refuses the connection: {reason}")
            return
        self.connection += 1
        connection.number = self.connection
        self.granted = Granted(
            bool(flags.session_present),
            getattr(properties, "MaximumQoS", 2),
            bool(getattr(properties, "RetainAvailable", 1)),
            getattr(properties, "MaximumPacketSize", None),
            getattr(properties, "ReceiveMaximum", 65_535),
            bool(getattr(properties, "SubscriptionIdentifierAvailable", 1)),
            getattr(properties, "SessionExpiryInterval", None),
        )
        self.trouble, self.next_try_s = "", None
        self._up.set()
        self._tried.set()
        self._granted(self.granted)

    def _on_disconnect(self, _client: Any, connection: MqttConnection, _flags: Any, reason: Any, _props: Any) -> None:
        was_up = self._up.is_set()
        self._up.clear()
        if self._stopping.is_set():
            pass
        elif was_up:
            connection.blames = reason.value in _BLAMES
            self._trouble(f"the connection to the MQTT broker at {self._address} is broken: {reason}")
        elif not connection.answered:
            # For one that was refused the reason is known already.
            what = "it is not an MQTT 5 broker" + ("" if self._address.secure else ", or wants TLS")
            self._trouble(f"what listens at {self._address} hangs up instead of answering: {what}")
        connection.end()

    def _on_fault(self, connection: MqttConnection, error: Exception) -> None:
        self._up.clear()
        self._trouble(f"what the MQTT broker at {self._address} sends cannot be read: {error!r}")
        connection.end()

    def _trouble(self, text: str) -> None:
        if text != self.trouble:
            _log.warning("%s; trying again", text)
        self.trouble = text
        self._tried.set()

    def _on_message(self, _client: Any, connection: MqttConnection, message: Any) -> None:
        properties = message.properties
        packet = MqttPublication(
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
        self._received(Received(packet, message.mid, connection.number, identifiers, bool(message.dup)))

    def _on_publish(self, _client: Any, connection: MqttConnection, mid: int, reason: Any, _properties: Any) -> None:
        self._acknowledge_at_once(connection)
        # Acceptance is read off paho's own record: this is called for QoS 0 too, whose numbers are used again.
        if reason.is_failure:
            connection.refusals[mid] = (reason.value, str(reason))

    def _on_subscribe(self, _client: Any, connection: MqttConnection, mid: int, reasons: Any, _properties: Any) -> None:
        worst = max(reasons, key=lambda reason: int(reason.value))
        _settle(connection, mid, worst.value, str(worst))

    def _on_unsubscribe(self, _client: Any, connection: MqttConnection, mid: int, reasons: Any, _props: Any) -> None:
        worst = max(reasons, key=lambda reason: int(reason.value), default=None)
        _settle(connection, mid, 0 if worst is None else worst.value, str(worst))


_Base: Any = object if paho is None else paho.Client


class _Paho(_Base):  # type: ignore[misc]
    """A paho client whose thread does not end unnoticed: ``on_fault`` gets what nobody has caught."""

    on_fault: Callable[[MqttConnection, Exception], None]

    def loop_forever(self, *args: Any, **named: Any) -> Any:
        try:
            return super().loop_forever(*args, **named)
        except Exception as error:
            connection = self.user_data_get()
            # Where the socket was closed because the connection is over, there is nothing to report.
            if not connection.ended.is_set():
                self.on_fault(connection, error)
            return paho.MQTT_ERR_UNKNOWN
        finally:
            self.user_data_get().end()


def _properties(kind: int, packet: MqttPublication) -> Any:
    properties: Any = Properties(kind)  # type: ignore[no-untyped-call]
    if packet.expiry_s is not None:
        properties.MessageExpiryInterval = packet.expiry_s
    if packet.content_type is not None:
        properties.ContentType = packet.content_type
    if packet.is_text:
        properties.PayloadFormatIndicator = 1
    if packet.properties:
        properties.UserProperty = list(packet.properties)
    return properties


def _settle(connection: MqttConnection, mid: int, code: int, name: str) -> None:
    with connection.lock:
        ticket = connection.tickets.pop(mid, None)
        if ticket is None:
            # The answer came before subscribe() had returned what it is the answer to.
            connection.early[mid] = (code, name)
            return
    ticket.settle(code, name)
