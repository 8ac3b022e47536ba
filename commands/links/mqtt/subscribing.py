"""SUBSCRIBE: for one filter that a RegSub waits for, for many after a restart, and for those that no broker can bear.

A filter over which the broker ends the connection, instead of refusing it, would end each connection to come. So all
that were on their way when one broke are sent alone from then on, as publications are
(``commands.links.mqtt.outbound_pump``), and one that breaks the connection then, twice, is not sent again while the
bridge runs.
"""

from __future__ import annotations

import logging

from commands.links.engine.filter_registry import Interest
from commands.links.mqtt.answers import RefusedError, Ticket, TreeUnreachableError
from commands.links.mqtt.client import RETAIN_NEVER, MqttClient
from commands.links.mqtt.filters import Filters
from commands.links.mqtt.outbound_pump import BREAKS

_log = logging.getLogger("qpubsub.mqtt")


class Subscribing:
    """Has the broker send what filters select; used by the processor's thread and by the keeper's.

    patience_s: how long to wait for an answer.
    """

    def __init__(self, client: MqttClient, filters: Filters, interest: Interest[str], patience_s: float) -> None:
        self._client, self._filters, self._interest = client, filters, interest
        self._patience_s = patience_s
        self._lock = interest.lock
        # How often each filter that was on its way when a connection broke has broken one alone.
        self._suspects: dict[str, int] = {}

    def new(self, filters: list[str]) -> list[str]:
        """Subscribe; returns those that the broker has now. Raises TreeUnreachableError.

        One that may have broken the connection is passed over: it is for the keeper to find out.
        """
        with self._lock:
            innocent = [topic_filter for topic_filter in filters if topic_filter not in self._suspects]
        return self.all(innocent)

    def all(self, filters: list[str]) -> list[str]:
        """Subscribe; returns those that the broker has now. Raises TreeUnreachableError."""
        with self._lock:
            alone = [topic_filter for topic_filter in filters if topic_filter in self._suspects]
        asked = {topic_filter: self._ask(topic_filter) for topic_filter in filters if topic_filter not in alone}
        accepted = [topic_filter for topic_filter in filters if self._accepted(topic_filter, asked)]
        for topic_filter in alone:
            with self._client.alone:
                if not self._client.round_trip(self._patience_s):
                    raise TreeUnreachableError("the MQTT broker does not answer")
                ticket = self._ask(topic_filter)
                try:
                    if self._accepted(topic_filter, {topic_filter: ticket}):
                        accepted.append(topic_filter)
                except TreeUnreachableError:
                    if ticket.is_blamed:
                        self._broken_by(topic_filter)
                    raise
            with self._lock:
                del self._suspects[topic_filter]
        return accepted

    def refuse(self, topic_filter: str, error: RefusedError) -> None:
        """The broker will not have it."""
        self._interest.refuse(topic_filter)
        _log.error("%s: native publications will not reach its subscribers", error)

    def _ask(self, topic_filter: str) -> Ticket:
        # Sent under the lock, so that the broker hears of a filter in the order in which it comes and goes here.
        with self._lock:
            number = self._filters.add(topic_filter)
            granted = self._client.granted
            identifier = number if granted is None or granted.identifiers else None
            return self._client.subscribe(
                topic_filter, identifier, 1, RETAIN_NEVER, refused=lambda: self._gone(topic_filter, number)
            )

    def _gone(self, topic_filter: str, number: int) -> None:
        """The broker does not have it: copies that come for others are not to wait for one that comes for it."""
        with self._lock:
            if self._filters.number(topic_filter) == number:
                self._filters.remove(topic_filter)

    def _accepted(self, topic_filter: str, asked: dict[str, Ticket]) -> bool:
        ticket = asked.get(topic_filter)
        if ticket is None:
            return False
        try:
            self._answered(topic_filter, ticket)
        except RefusedError as error:
            self.refuse(topic_filter, error)
            return False
        except TreeUnreachableError:
            with self._lock:
                self._suspects.update(
                    {f: 0 for f, other in asked.items() if other.is_blamed and f not in self._suspects}
                )
            raise
        return True

    def _answered(self, topic_filter: str, ticket: Ticket) -> None:
        if not ticket.wait(self._patience_s):
            if ticket.is_blamed:
                with self._lock:
                    self._suspects.setdefault(topic_filter, 0)
            raise TreeUnreachableError(f"the MQTT broker does not answer a subscription to {topic_filter:.200}")
        if ticket.refused:
            raise RefusedError(f"a subscription to {topic_filter:.200}", ticket.code, ticket.name)
        if ticket.code == 0:
            _log.warning("the MQTT broker sends what %.200s selects at QoS 0: it may be lost", topic_filter)

    def _broken_by(self, topic_filter: str) -> None:
        with self._lock:
            self._suspects[topic_filter] += 1
            if self._suspects[topic_filter] < BREAKS:
                return
            self._interest.ban(topic_filter)
            self._filters.remove(topic_filter)
        _log.error(
            "the MQTT broker breaks the connection over a subscription to %.200s: it is not asked for it again until "
            "the bridge is started anew, and native publications will not reach its subscribers",
            topic_filter,
        )
