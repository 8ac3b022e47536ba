"""Publications to the MQTT broker (``Sender``): as many on their way at once as it takes (Receive Maximum).

The sender does not send what the broker says that it cannot do (CONNACK): the broker would end each connection. If the
broker ends the connection for another reason, the sender finds the publication that causes it. From then on it sends
each publication that had no answer alone, after the broker has answered something harmless, and no other suspect at the
same time. A publication that breaks the connection twice in this way is refused, and those behind it go on.

The filters that the bridge has subscribed to at the broker, each with its subscription identifier, and their file.

The broker remembers them across a restart of the bridge, and so does the bridge: what the broker kept meanwhile comes
with the identifiers of then. Filters overlap (``a/#`` and ``a/+/c``), and a broker may send a publication once for each
that selects it; it is taken once, for the oldest filter that selects it. Each SUBSCRIBE for a filter that the broker is
not known to have gets a new identifier. So identifiers ascend in the order in which the broker got the filters, and all
copies of a publication agree on which filter is the oldest. The bridge takes a copy under an identifier that it no
longer knows: a second copy is better than none.

A broker that was killed may have a filter again that it had let go. It would send those second copies for ever, so the
last filters that went are kept too, and are ``doubtful`` at each new connection until they are removed once more.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from commands.config.settings import TopicsConfig
from commands.links.engine import adapter as trees
from commands.links.engine.filters import FilterTree, read_state, unreadable, write_state
from commands.links.engine.properties import ForTree
from commands.links.mqtt.client import RETAIN_IF_NEW, RETAIN_NEVER, MqttClient
from commands.links.mqtt.packets import (
    EVERYTHING,
    Granted,
    MqttPublication,
    SentPacket,
    Ticket,
    packet_for,
    refusal,
    why_not_topic,
)
from rfh2.constants import MQRC_NOT_AUTHORIZED, MQRCCF_COMMAND_FAILED, MQRCCF_TOPIC_ERROR

_log = logging.getLogger("qpubsub.mqtt")

_NOT_AUTHORIZED: Final = 0x87
# Room for the fixed and the variable header beside payload and properties.
_PACKET_HEADER: Final = 64
# How often something breaks the connection, alone, until it is set aside: once may be an accident.
BREAKS: Final = 2


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """A publication that was sent."""

    waiting: trees.Waiting[MqttPublication]
    sent: SentPacket


class MqttSender:
    """Sends by the connection that there is. stop: ends a wait for the broker's answer."""

    def __init__(self, client: MqttClient, config: TopicsConfig, stop: threading.Event) -> None:
        self._client, self._config, self._stop = client, config, stop
        # How often each that was on its way when a connection broke has broken one alone, by its key.
        self._suspects: dict[bytes, int] = {}

    def prepare(self, wanted: ForTree) -> trees.Prepared[MqttPublication] | None:
        granted = self._granted
        packet, lost = packet_for(wanted, self._config.prefix, self._client.client_id, granted)
        why = why_not_topic(packet.topic)
        if why is not None:
            raise trees.NotCarriedError(MQRCCF_TOPIC_ERROR, f"a publication on topic {packet.topic:.200}: {why}")
        if not granted.retain and (wanted.retain or wanted.clear):
            if wanted.clear:
                return None
            _log.warning("topic %s: the MQTT broker retains nothing", wanted.topic)
        if granted.max_packet is not None:
            size = len(packet.payload) + len(packet.topic.encode()) + _PACKET_HEADER
            size += sum(len(name.encode()) + len(value.encode()) + 5 for name, value in packet.properties)
            if size > granted.max_packet:
                raise trees.too_large(wanted.topic, size, granted.max_packet, "the MQTT broker")
        return trees.Prepared(packet, lost)

    def send(self, batch: Iterable[trees.Waiting[MqttPublication]]) -> Iterator[trees.Sent]:
        under_way: deque[_UnderWay] = deque()
        try:
            for waiting in batch:
                if waiting.key in self._suspects:
                    yield from self._finish_all(under_way)
                    yield from self._alone(waiting)
                    continue
                while len(under_way) >= self._granted.receive_maximum:
                    yield self._finish(under_way[0])
                    under_way.popleft()
                under_way.append(_UnderWay(waiting, self._client.publish(waiting.item)))
            yield from self._finish_all(under_way)
        except trees.TreeUnreachableError:
            self._suspect(under_way)
            raise

    def done(self) -> None:
        self._suspects.clear()

    def close(self) -> None:
        """Nothing is held: the adapter disconnects."""

    def _suspect(self, under_way: deque[_UnderWay]) -> None:
        for one in under_way:
            if one.sent.is_blamed:
                self._suspects.setdefault(one.waiting.key, 0)

    def _alone(self, waiting: trees.Waiting[MqttPublication]) -> Iterator[trees.Sent]:
        """Send what may have broken the connection, with nothing else on its way that may."""
        with self._client.alone:
            if not self._client.round_trip(self._config.patience_s):
                raise trees.TreeUnreachableError("the MQTT broker does not answer")
            one = _UnderWay(waiting, self._client.publish(waiting.item))
            try:
                sent = self._finish(one)
            except trees.TreeUnreachableError:
                if one.sent.is_blamed:
                    self._suspects[waiting.key] += 1
                    if self._suspects[waiting.key] >= BREAKS:
                        why = f"the MQTT broker breaks the connection over a publication on {waiting.item.topic:.200}"
                        yield trees.Sent(waiting.message, MQRCCF_COMMAND_FAILED, why)
                raise
        del self._suspects[waiting.key]
        yield sent

    @property
    def _granted(self) -> Granted:
        return self._client.granted or EVERYTHING

    def _finish_all(self, under_way: deque[_UnderWay]) -> Iterator[trees.Sent]:
        while under_way:
            yield self._finish(under_way[0])
            under_way.popleft()

    def _finish(self, one: _UnderWay) -> trees.Sent:
        """Wait for the answer. Raises TreeUnreachableError where none can come any more, and when *stop* is set."""
        packet, message = one.waiting.item, one.waiting.message
        begun = time.monotonic()
        while not one.sent.wait(0.2):
            if self._stop.is_set():
                raise trees.TreeUnreachableError("stopped")
            if one.sent.is_lost:
                if packet.qos == 0:
                    return trees.Sent(message)  # it went with the connection, as QoS 0 may
                raise trees.TreeUnreachableError(self._client.trouble)
            if time.monotonic() - begun > 60 and self._client.is_up:
                _log.warning("the MQTT broker has not answered for a publication on %s for a minute", packet.topic)
                begun = time.monotonic()
        if packet.qos:
            self._client.proved()
        refused = one.sent.refusal()
        if refused is None:
            return trees.Sent(message)
        code, name = refused
        reason = MQRC_NOT_AUTHORIZED if code == _NOT_AUTHORIZED else MQRCCF_COMMAND_FAILED
        return trees.Sent(message, reason, refusal(f"a publication on {packet.topic}", code, name))


# So many identifiers are set apart at once: what a crash wastes, of the 268,435,455 that MQTT has (3.8.2.1.2).
_RESERVED: Final = 1_000
_MOST_FORMER: Final = 1_000


class Filters:
    """The filters and their identifiers, as the file at *path* keeps them. Raises StoreError where it cannot.

    acknowledged: those that the broker is known to have. doubtful: former ones that it may have again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tree = FilterTree()
        self._ids: dict[str, int] = {}
        self._next = self._reserved = 1
        self._changed = False
        self._former: dict[str, None] = {}  # the oldest first
        self.acknowledged: set[str] = set()
        self.doubtful: set[str] = set()
        self._load()

    def number(self, topic_filter: str) -> int | None:
        """Its identifier, None where there is no such filter."""
        return self._ids.get(topic_filter)

    def all(self) -> tuple[str, ...]:
        """Every filter, the oldest first."""
        return tuple(self._ids)

    def add(self, topic_filter: str) -> int:
        """Have *topic_filter*; returns its identifier: a new one, unless the broker is known to have the filter."""
        if topic_filter in self.acknowledged:
            return self._ids[topic_filter]
        self.remove(topic_filter)
        if self._next >= self._reserved:
            self._reserved = self._next + _RESERVED
            self.save()
        number = self._ids[topic_filter] = self._next
        self._next += 1
        self._tree.add(topic_filter, number)
        self._former.pop(topic_filter, None)
        self._changed = True
        return number

    def remove(self, topic_filter: str) -> None:
        """Remove the filter; do nothing if there is none."""
        self.doubtful.discard(topic_filter)
        number = self._ids.pop(topic_filter, None)
        if number is not None:
            self._tree.remove(topic_filter, number)
            self.acknowledged.discard(topic_filter)
            self._former[topic_filter] = None
            if len(self._former) > _MOST_FORMER:
                del self._former[next(iter(self._former))]
            self._changed = True

    def acknowledge(self, topic_filter: str) -> None:
        """The broker has it."""
        if topic_filter in self._ids and topic_filter not in self.acknowledged:
            self.acknowledged.add(topic_filter)
            self._changed = True

    def connected(self, remembered: bool) -> None:
        """There is a new connection. remembered: the broker has the filters of an earlier one; else it has none."""
        if not remembered:
            self.acknowledged.clear()
            self._former.clear()
            self._changed = True
        self.doubtful = set(self._former)

    def takes(self, topic: str, identifiers: Iterable[int]) -> bool:
        """Whether a copy on *topic*, sent under these identifiers, is the one to take."""
        given = set(identifiers)
        if not given or len(self._ids) <= 1:
            return True
        matching = self._tree.match(topic)
        return not matching or matching[0] in given or not given <= set(matching)

    def _load(self) -> None:
        try:
            state = read_state(self._path)
            if state is None:
                return
            self._next = self._reserved = int(state["next"])
            for topic_filter, number in sorted(state["filters"].items(), key=lambda item: int(item[1])):
                self._ids[topic_filter] = int(number)
                self._tree.add(topic_filter, int(number))
            self.acknowledged = set(state["acknowledged"]) & set(self._ids)
            self._former = {str(each): None for each in state.get("former", ()) if each not in self._ids}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise unreadable(self._path, error) from error

    def save(self, only_changes: bool = False) -> None:
        """Keep them. A filter that a crash makes forgotten is subscribed to again, under a new identifier."""
        if only_changes and not self._changed:
            return
        state = {
            "next": self._reserved,
            "filters": self._ids,
            "acknowledged": sorted(self.acknowledged),
            "former": list(self._former),
        }
        write_state(self._path, state)
        self._changed = False


# SUBSCRIBE: for the filter of a RegSub, for many filters after a restart, and for filters that break connections.
#
# If the broker ends the connection because of a filter, and does not refuse it, the filter would end each new
# connection. So the bridge sends each filter that had no answer when a connection broke alone from then on, like
# publications (``commands.links.mqtt.sender``). It does not send a filter that breaks the connection twice in this
# way again while it runs.


class Subscribing:
    """Subscribes to filters at the broker; used by the processor's thread and by the keeper's.

    lock: the engine's. patience_s: how long to wait for an answer.
    """

    def __init__(
        self, client: MqttClient, filters: Filters, lock: AbstractContextManager[Any], patience_s: float
    ) -> None:
        self._client, self._filters, self._lock, self._patience_s = client, filters, lock, patience_s
        # How often each filter that was on its way when a connection broke has broken one alone.
        self._suspects: dict[str, int] = {}

    def subscribe(self, filters: Sequence[str], urgent: bool) -> Iterator[trees.Subscribed[str]]:
        """Subscribe, and say what the broker answers. Raises TreeUnreachableError.

        urgent: one that may have broken the connection is passed over.
        """
        with self._lock:
            alone = [topic_filter for topic_filter in filters if topic_filter in self._suspects]
        asked = {topic_filter: self._ask(topic_filter) for topic_filter in filters if topic_filter not in alone}
        for topic_filter, ticket in asked.items():
            try:
                yield self._answer(topic_filter, ticket)
            except trees.TreeUnreachableError:
                self._suspect(asked)
                raise
        for topic_filter in alone:
            if urgent:
                yield trees.Subscribed(topic_filter, trees.FilterAnswer.LATER)
            else:
                yield from self._alone(topic_filter)

    def _alone(self, topic_filter: str) -> Iterator[trees.Subscribed[str]]:
        """Subscribe by what may have broken the connection, with nothing else on its way that may."""
        with self._client.alone:
            if not self._client.round_trip(self._patience_s):
                raise trees.TreeUnreachableError("the MQTT broker does not answer")
            ticket = self._ask(topic_filter)
            try:
                answer = self._answer(topic_filter, ticket)
            except trees.TreeUnreachableError:
                if ticket.is_blamed and self._breaks_again(topic_filter):
                    why = f"the MQTT broker breaks the connection over a subscription to {topic_filter:.200}"
                    yield trees.Subscribed(topic_filter, trees.FilterAnswer.BANNED, why)
                raise
        with self._lock:
            del self._suspects[topic_filter]
        yield answer

    def _ask(self, topic_filter: str) -> Ticket:
        # Sent under the lock, so that the broker has filters come and go in the same order as they do here.
        with self._lock:
            # One that the broker had is subscribed to again because it may have forgotten it, and what came meanwhile.
            retained = RETAIN_IF_NEW if topic_filter in self._filters.acknowledged else RETAIN_NEVER
            number = self._filters.add(topic_filter)
            granted = self._client.granted
            identifier = number if granted is None or granted.identifiers else None
            return self._client.subscribe(
                topic_filter, identifier, 1, retained, refused=lambda: self._gone(topic_filter, number)
            )

    def _gone(self, topic_filter: str, number: int) -> None:
        """The broker does not have it: copies for other filters must not wait for a copy for this one."""
        with self._lock:
            if self._filters.number(topic_filter) == number:
                self._filters.remove(topic_filter)

    def _answer(self, topic_filter: str, ticket: Ticket) -> trees.Subscribed[str]:
        if not ticket.wait(self._patience_s):
            raise trees.TreeUnreachableError(f"the MQTT broker does not answer a subscription to {topic_filter:.200}")
        if ticket.refused:
            why = refusal(f"a subscription to {topic_filter:.200}", ticket.code, ticket.name)
            return trees.Subscribed(topic_filter, trees.FilterAnswer.REJECTED, why)
        if ticket.code == 0:
            _log.warning("the MQTT broker sends what %.200s selects at QoS 0: it may be lost", topic_filter)
        return trees.Subscribed(topic_filter)

    def _suspect(self, asked: dict[str, Ticket]) -> None:
        with self._lock:
            for topic_filter, ticket in asked.items():
                if ticket.is_blamed:
                    self._suspects.setdefault(topic_filter, 0)

    def _breaks_again(self, topic_filter: str) -> bool:
        """Whether it has broken the connection so often that it is not sent again."""
        with self._lock:
            self._suspects[topic_filter] += 1
            if self._suspects[topic_filter] < BREAKS:
                return False
            self._filters.remove(topic_filter)
            return True
