"""Reads streams of JetStream, on from a position (``LogReader``).

The numbers that JetStream gives to what it delivers to a consumer have no gaps, and it says how a request for messages
ended. So the reader knows when something was lost on its way, above all in a cluster; then it must be opened anew.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from commands.links.engine.adapter import TreeUnreachableError
from commands.links.engine.logs import Placed
from commands.links.nats.connection import NatsConnection, Session

if TYPE_CHECKING:
    from nats.aio.subscription import Subscription
    from nats.js.api import ConsumerConfig

# What is asked for together: messages, bytes, and for how long the server waits for them.
_BATCH: Final = 2_000
_MOST_BYTES: Final = 16_000_000
_PULL_S: Final = 5.0
_SPARE_S: Final = 2.0


@dataclass(slots=True)
class Place:
    """The place of a consumer in its stream. log: the stream's name as a log.

    came: the consumer's number of the last message that came. asked: messages that the server may still send without
    being asked, until *until*. is_quiet: whether the last request ended with nothing more to send.
    """

    log: str
    consumer: str
    came: int = 0
    asked: int = 0
    until: float = 0.0
    is_quiet: bool = False


class NatsReader:
    """Runs in the loop, but for ``read`` and ``close``. places: by names of streams. lost: why it is of no use."""

    def __init__(self, connection: NatsConnection, session: Session) -> None:
        self._connection, self._session = connection, session
        self._inbox = session.client.new_inbox()
        self._subscription: Subscription | None = None
        self._came, self._arrival = deque[Placed[Any]](), asyncio.Event()
        self.places: dict[str, Place] = {}
        self.lost = ""

    async def consume(self, stream: str, log: str, config: ConsumerConfig) -> int:
        """Read *stream* by a new consumer, which has no number yet; returns how many messages wait for it."""
        if self._subscription is None:
            self._subscription = await self._session.client.subscribe(f"{self._inbox}.*", cb=self._heard)
        made = await self._session.jetstream.add_consumer(stream, config)
        self.places[stream] = Place(log, made.name)
        return made.num_pending or 0

    def read(self, limit: int, timeout_s: float) -> list[Placed[Any]]:
        return self._connection.call(lambda _session: self.taken(limit, timeout_s), timeout_s + 2 * _PULL_S)

    def close(self) -> None:
        if not self._session.lost.done():
            with suppress(Exception):
                self._connection.call(lambda _session: self.leave())

    async def taken(self, limit: int, timeout_s: float) -> list[Placed[Any]]:
        """As ``read``."""
        for stream, place in self.places.items():
            await self._ask(stream, place)
        if not self._came and not self.lost:
            self._arrival.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._arrival.wait(), timeout_s)
        if self._session.lost.done() or (self.lost and not self._came):
            raise TreeUnreachableError(f"what the NATS server sends is interrupted: {self.lost or 'no connection'}")
        return [self._came.popleft() for _ in range(min(len(self._came), limit))]

    async def waits(self) -> bool:
        """Whether something has come, or will."""
        for stream, place in self.places.items():
            about = await self._session.jetstream.consumer_info(stream, place.consumer)
            if self._came or about.num_pending or about.delivered.consumer_seq > place.came:
                return True
        return False

    async def leave(self) -> None:
        """Hear nothing more."""
        if self._subscription is not None:
            await self._subscription.unsubscribe()

    async def _ask(self, stream: str, place: Place) -> None:
        now = time.monotonic()
        if place.asked and now > place.until:
            self.lost = self.lost or f"stream {stream} does not answer"
        if place.asked or self.lost:
            return
        if place.is_quiet:
            delivered = (await self._session.jetstream.consumer_info(stream, place.consumer)).delivered
            if delivered.consumer_seq != place.came:
                self.lost = f"what stream {stream} has sent has not come"
                return
            self._came.append(Placed(place.log, delivered.stream_seq))
        place.asked, place.until, place.is_quiet = _BATCH, now + _PULL_S + _SPARE_S, False
        most = max(_MOST_BYTES, 2 * self._session.client.max_payload)
        wanted = json.dumps({"batch": _BATCH, "expires": int(_PULL_S * 1e9), "max_bytes": most}).encode()
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{place.consumer}"
        await self._session.client.publish(subject, wanted, reply=f"{self._inbox}.{stream}")

    async def _heard(self, message: Any) -> None:
        if message.subject.startswith(self._inbox):
            self._ended(message.subject.rpartition(".")[2], message.headers or {})
        else:
            about = message.metadata
            place, number = self.places[about.stream], about.sequence.stream
            place.came, place.asked = place.came + 1, place.asked - 1
            if about.sequence.consumer != place.came:
                self.lost = self.lost or f"a message of stream {about.stream} has not come"
            if not self.lost:
                self._came.append(Placed(place.log, number, message, message.data))
        self._arrival.set()

    def _ended(self, stream: str, headers: dict[str, str]) -> None:
        """A request for messages has ended, by its time (408), or because they are too long together (409)."""
        place, status, why = self.places[stream], headers.get("Status"), headers.get("Description", "")
        place.asked -= int(headers.get("Nats-Pending-Messages", 0))
        if place.asked or status not in ("408", "409"):
            self.lost = self.lost or f"stream {stream}: {status} {why}"
        place.is_quiet = status == "408"
