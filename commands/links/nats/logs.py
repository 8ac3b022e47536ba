"""The stream and the bucket as logs (``Logs``); a message is one of nats-py.

The bridge has a durable consumer in each. It begins where the bridge says, and follows a cover of all filters.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from commands.config.settings import TopicsConfig
from commands.config.urls import Address
from commands.links.engine.adapter import TreeUnreachableError
from commands.links.engine.filters import Positions
from commands.links.engine.log_adapter import Following, Placed
from commands.links.engine.properties import TreeMessage
from commands.links.nats.connection import Names, NatsConnection, NatsSession, configs_of, make_stream, why_unfit
from commands.links.nats.messages import cover, record_of, wildcards_of
from rfh2.errors import StoreError

try:
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StreamInfo
    from nats.js.errors import NotFoundError
except ImportError:  # pragma: no cover - the extra is not installed
    pass

_AT_ONCE: Final = 500
_PATIENCE_S: Final = 10.0


class NatsLogs:
    """is_cluster: whether several servers have the stream; None if no server was asked yet. Raises ConfigError."""

    def __init__(self, address: Address, config: TopicsConfig, names: Names) -> None:
        self.bridge, self._config, self._names = names.bridge, config, names
        self.connection = NatsConnection(address, config, names.bridge, self._streams)
        self._reader: NatsReader | None = None
        self._placing = asyncio.Lock()
        self.is_cluster: bool | None = None

    def make_ready(self) -> None:
        self.connection.call(self._streams)

    def ends(self) -> Positions:
        return {_log_of(each): each.state.last_seq for each in self.connection.call(self._streams)}

    def begins(self) -> Positions:
        return {_log_of(each): max(each.state.first_seq - 1, 0) for each in self.connection.call(self._streams)}

    def reader(self, positions: Positions, following: Following) -> NatsReader:
        return self.connection.call(lambda session: self._open(session, positions, following))

    def follow(self, following: Following) -> None:
        self.connection.call(lambda session: self._follow(session, following))

    def waits(self, positions: Positions) -> bool:
        del positions  # the reader knows
        reader = self._reader
        return reader is None or self.connection.call(lambda _session: reader.waits())

    def record(self, message: Any) -> TreeMessage:
        in_bucket = message.subject.startswith(self._names.keys)
        subject = message.subject.removeprefix(self._names.keys if in_bucket else self._names.prefix)
        stored_at = message.metadata.timestamp.timestamp()
        return record_of(subject, message.data, message.headers or {}, stored_at, in_bucket)

    def retained(self, filters: Sequence[str]) -> list[Any]:
        return self.connection.call(lambda session: self._retained(session, filters), 4 * self._config.patience_s)

    def close(self) -> None:
        self.connection.close()

    # The loop

    async def _streams(self, session: NatsSession) -> list[StreamInfo]:
        """The stream and the bucket, which are made if they are not there. Raises StoreError if they cannot be used."""
        found = []
        for wanted in configs_of(self._config, self._names):
            about, _ = await make_stream(session, wanted)
            if why := why_unfit(about, wanted):
                raise StoreError(why)
            found.append(about)
        # A server that is alone may name itself as the leader, as 2.15 does; only a cluster has a name.
        self.is_cluster = bool(found[0].cluster and found[0].cluster.name)
        return found

    async def _open(self, session: NatsSession, positions: Positions, following: Following) -> NatsReader:
        async with self._placing:
            self._reader, reader = None, NatsReader(self.connection, session)
            for about in await self._streams(session):
                name, log = str(about.config.name), _log_of(about)
                with suppress(NotFoundError):
                    await session.jetstream.delete_consumer(name, self.bridge)
                config = ConsumerConfig(
                    name=self.bridge,
                    durable_name=self.bridge,
                    ack_policy=AckPolicy.NONE,
                    deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                    opt_start_seq=positions.get(log, 0) + 1,
                    filter_subjects=self._cover(name, following()),
                )
                await reader.consume(name, log, config)
            self._reader = reader
            return reader

    async def _follow(self, session: NatsSession, following: Following) -> None:
        async with self._placing:
            for stream in self._reader.places if self._reader is not None else ():
                with suppress(NotFoundError):
                    config = (await session.jetstream.consumer_info(stream, self.bridge)).config
                    wanted = self._cover(stream, following())
                    if sorted(config.filter_subjects or [config.filter_subject or ""]) != wanted:
                        config.filter_subject, config.filter_subjects = None, wanted
                        await session.jetstream.add_consumer(stream, config)

    async def _retained(self, session: NatsSession, filters: Sequence[str]) -> list[Any]:
        """The messages of all keys of the bucket that *filters* select, and perhaps of others."""
        keys, bucket = self._names.keys, self._names.bucket
        wanted = wildcards_of(filters[0], keys, key=True) if len(filters) == 1 else cover(filters, keys, key=True)
        config = ConsumerConfig(
            ack_policy=AckPolicy.NONE,
            deliver_policy=DeliverPolicy.LAST_PER_SUBJECT,
            filter_subjects=list(wanted),
            mem_storage=True,
            inactive_threshold=30.0,
        )
        reader, found = NatsReader(self.connection, session), list[Any]()
        try:
            count, is_all = await reader.consume(bucket, bucket, config), False
            while len(found) < count and not is_all:
                placed = await reader.taken(_AT_ONCE, _PATIENCE_S)
                found += [each.message for each in placed if each.message is not None]
                is_all = any(each.message is None for each in placed)  # some have expired
        finally:
            with suppress(Exception):
                await reader.leave()
                await session.jetstream.delete_consumer(bucket, reader.places[bucket].consumer)
        return found

    def _cover(self, stream: str, filters: Sequence[str]) -> list[str]:
        in_bucket = stream == self._names.bucket
        return cover(filters, self._names.keys if in_bucket else self._names.prefix, in_bucket)


def _log_of(stream: StreamInfo) -> str:
    """The name of a stream as a log: one that was made anew is another."""
    return f"{stream.config.name} of {stream.created}"


# Reads streams of JetStream, on from a position (``LogReader``).
#
# The numbers that JetStream gives to what it delivers to a consumer have no gaps, and it says how a request for
# messages ended. So the reader knows when something was lost on its way, above all in a cluster; then it must be
# opened anew.

if TYPE_CHECKING:
    from nats.aio.subscription import Subscription
    from nats.js.api import ConsumerConfig

# What is asked for together: messages, bytes, and for how long the server waits for them.
_BATCH: Final = 2_000
_MOST_BYTES: Final = 16_000_000
_PULL_S: Final = 5.0
_SPARE_S: Final = 2.0


@dataclass(slots=True)
class ConsumerPlace:
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

    def __init__(self, connection: NatsConnection, session: NatsSession) -> None:
        self._connection, self._session = connection, session
        self._inbox = session.client.new_inbox()
        self._subscription: Subscription | None = None
        self._came, self._arrival = deque[Placed[Any]](), asyncio.Event()
        self.places: dict[str, ConsumerPlace] = {}
        self.lost = ""

    async def consume(self, stream: str, log: str, config: ConsumerConfig) -> int:
        """Read *stream* by a new consumer, which has no number yet; returns how many messages wait for it."""
        if self._subscription is None:
            self._subscription = await self._session.client.subscribe(f"{self._inbox}.*", cb=self._heard)
        made = await self._session.jetstream.add_consumer(stream, config)
        self.places[stream] = ConsumerPlace(log, made.name)
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

    async def _ask(self, stream: str, place: ConsumerPlace) -> None:
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
