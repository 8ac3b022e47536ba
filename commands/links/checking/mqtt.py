"""Trying an MQTT 5 broker: the connection, what it grants, and the topics that the bridge publishes and subscribes to.

The check uses its own connections, without a session. So it does not disturb a bridge that is running.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from typing import Final

from commands.config.settings import TopicsConfig
from commands.config.urls import Address
from commands.links.checking.findings import CheckResult
from commands.links.engine.adapter import TreeUnreachableError
from commands.links.mqtt.answers import Granted, Received
from commands.links.mqtt.client import RETAIN_NEVER, MqttClient
from commands.links.mqtt.packets import FENCE, MqttPublication

# So many filters are tried; a broker's access rules are seldom finer.
_TRIED: Final = 100


class MqttCheck:
    """Tries one broker. qmgr: whose bridge asks."""

    def __init__(self, address: Address, config: TopicsConfig, qmgr: str) -> None:
        self._address, self._config = address, config
        self._bridge = config.client_id or f"qpubsub-{qmgr}"
        self._client = MqttClient(address, config, f"{self._bridge}-check", self._received, clean=True)
        self._came_back = threading.Event()

    def connect(self) -> CheckResult:
        """Whether there is a connection; every other test needs one."""
        logging.getLogger("qpubsub.mqtt").disabled = True
        self._client.start()
        subject = f"connection to {self._address}"
        if self._client.wait_tried(self._config.patience_s):
            return CheckResult(subject, True, f"connected as {self._client.client_id}")
        return CheckResult(subject, False, self._client.trouble)

    def grants(self) -> Iterator[CheckResult]:
        """What the broker grants."""
        granted = self._client.granted or Granted(False)
        yield CheckResult(
            "QoS 1",
            granted.max_qos >= 1,
            f"Maximum QoS is {granted.max_qos}"
            + ("" if granted.max_qos else ": persistent publications could be lost"),
        )
        what = "the broker keeps them" if granted.retain else "the broker keeps none: subscribers to come get nothing"
        yield CheckResult("retained publications", granted.retain, what)
        what = "available" if granted.identifiers else "not available: overlapping subscriptions may get copies"
        yield CheckResult("subscription identifiers", granted.identifiers, what)
        limit = (
            "no limit" if granted.max_packet is None else f"{granted.max_packet} bytes; larger ones are dead letters"
        )
        yield CheckResult("size of a publication", True, limit)

    def rights(self, filters: Sequence[str]) -> Iterator[CheckResult]:
        """The topics. filters: those that the subscriptions need now."""
        prefix = self._config.prefix
        yield from self._there_and_back(f"{prefix}qpubsub/{self._bridge}/fence")
        for topic_filter in (*filters[:_TRIED], *(() if filters else (f"{prefix}#",))):
            yield self._subscribe(topic_filter)
        if len(filters) > _TRIED:
            yield CheckResult("subscriptions", True, f"{len(filters) - _TRIED} more filters were not tried")

    def close(self) -> None:
        """Disconnect."""
        self._client.stop()
        logging.getLogger("qpubsub.mqtt").disabled = False

    def _received(self, received: Received) -> None:
        self._client.acknowledge(received)
        self._came_back.set()

    def _there_and_back(self, topic: str) -> Iterator[CheckResult]:
        """A broker may accept a subscription and send nothing for it if reading is forbidden: mosquitto does."""
        subscribed = self._subscribe(topic, keep=True)
        published = self._publish(topic)
        yield published
        if not subscribed.ok:
            yield subscribed
        elif published.ok:
            back = self._came_back.wait(self._config.patience_s)
            what = "comes back" if back else "does not come back: reading is forbidden"
            mend = () if back else self._acl(f"{self._config.prefix}#")
            yield CheckResult(f"receiving from {topic}", back, what, mend)

    def _publish(self, topic: str) -> CheckResult:
        subject = f"publishing on {topic}"
        try:
            sent = self._client.publish(
                MqttPublication(topic, b"check", 1, properties=((FENCE, self._client.client_id),))
            )
            if not sent.wait(self._config.patience_s):
                return CheckResult(subject, False, "the broker does not answer")
        except TreeUnreachableError as error:
            return CheckResult(subject, False, str(error))
        refusal = sent.refusal()
        if refusal is None:
            return CheckResult(subject, True, "allowed")
        code, name = refusal
        return CheckResult(subject, False, f"{name} (0x{code:02X})", self._acl(f"{self._config.prefix}#"))

    def _subscribe(self, topic_filter: str, keep: bool = False) -> CheckResult:
        subject = f"subscribing to {topic_filter}"
        try:
            ticket = self._client.subscribe(topic_filter, None, 1, RETAIN_NEVER, own=keep)
            if not ticket.wait(self._config.patience_s):
                return CheckResult(subject, False, "the broker does not answer")
            if not keep:
                self._client.unsubscribe(topic_filter)
        except TreeUnreachableError as error:
            return CheckResult(subject, False, str(error))
        if ticket.refused:
            return CheckResult(subject, False, f"{ticket.name} (0x{ticket.code:02X})", self._acl(topic_filter))
        if ticket.code == 0:
            return CheckResult(subject, False, "granted at QoS 0: native publications could be lost")
        return CheckResult(subject, True, "allowed")

    def _acl(self, topics: str) -> tuple[str, ...]:
        user = self._address.user or self._config.user
        return (f"user {user}" if user else "# before any user line", f"topic readwrite {topics}")
