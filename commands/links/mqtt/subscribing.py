"""SUBSCRIBE: for the filter of a RegSub, for many filters after a restart, and for filters that break connections.

If the broker ends the connection because of a filter, and does not refuse it, the filter would end each new connection.
So the bridge sends each filter that had no answer when a connection broke alone from then on, like publications
(``commands.links.mqtt.sender``). It does not send a filter that breaks the connection twice in this way again while it
runs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from commands.links.engine.adapter import FilterAnswer, Subscribed, TreeUnreachableError
from commands.links.mqtt.answers import Ticket, refusal
from commands.links.mqtt.client import RETAIN_IF_NEW, RETAIN_NEVER, MqttClient
from commands.links.mqtt.filters import Filters
from commands.links.mqtt.sender import BREAKS

_log = logging.getLogger("qpubsub.mqtt")


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

    def subscribe(self, filters: Sequence[str], urgent: bool) -> Iterator[Subscribed[str]]:
        """Subscribe, and say what the broker answers. Raises TreeUnreachableError.

        urgent: one that may have broken the connection is passed over.
        """
        with self._lock:
            alone = [topic_filter for topic_filter in filters if topic_filter in self._suspects]
        asked = {topic_filter: self._ask(topic_filter) for topic_filter in filters if topic_filter not in alone}
        for topic_filter, ticket in asked.items():
            try:
                yield self._answer(topic_filter, ticket)
            except TreeUnreachableError:
                self._suspect(asked)
                raise
        for topic_filter in alone:
            if urgent:
                yield Subscribed(topic_filter, FilterAnswer.LATER)
            else:
                yield from self._alone(topic_filter)

    def _alone(self, topic_filter: str) -> Iterator[Subscribed[str]]:
        """Subscribe by what may have broken the connection, with nothing else on its way that may."""
        with self._client.alone:
            if not self._client.round_trip(self._patience_s):
                raise TreeUnreachableError("the MQTT broker does not answer")
            ticket = self._ask(topic_filter)
            try:
                answer = self._answer(topic_filter, ticket)
            except TreeUnreachableError:
                if ticket.is_blamed and self._breaks_again(topic_filter):
                    why = f"the MQTT broker breaks the connection over a subscription to {topic_filter:.200}"
                    yield Subscribed(topic_filter, FilterAnswer.BANNED, why)
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

    def _answer(self, topic_filter: str, ticket: Ticket) -> Subscribed[str]:
        if not ticket.wait(self._patience_s):
            raise TreeUnreachableError(f"the MQTT broker does not answer a subscription to {topic_filter:.200}")
        if ticket.refused:
            why = refusal(f"a subscription to {topic_filter:.200}", ticket.code, ticket.name)
            return Subscribed(topic_filter, FilterAnswer.REJECTED, why)
        if ticket.code == 0:
            _log.warning("the MQTT broker sends what %.200s selects at QoS 0: it may be lost", topic_filter)
        return Subscribed(topic_filter)

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
