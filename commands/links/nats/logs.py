"""The stream and the bucket as logs (``Logs``); a message is one of nats-py.

The bridge has a durable consumer in each. It begins where the bridge says, and follows a cover of all filters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from commands.config.settings import TopicsConfig
from commands.config.urls import Address
from commands.links.engine.followed_filters import Positions
from commands.links.engine.headers import Record
from commands.links.engine.logs import Following
from commands.links.nats.connection import NatsConnection, Session
from commands.links.nats.messages import record_of
from commands.links.nats.reader import NatsReader
from commands.links.nats.streams import Names, configs_of, make_stream, why_unfit
from commands.links.nats.subjects import cover, wildcards_of
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

    def record(self, message: Any) -> Record:
        in_bucket = message.subject.startswith(self._names.keys)
        subject = message.subject.removeprefix(self._names.keys if in_bucket else self._names.prefix)
        stored_at = message.metadata.timestamp.timestamp()
        return record_of(subject, message.data, message.headers or {}, stored_at, in_bucket)

    def retained(self, filters: Sequence[str]) -> list[Any]:
        return self.connection.call(lambda session: self._retained(session, filters), 4 * self._config.patience_s)

    def close(self) -> None:
        self.connection.close()

    # The loop

    async def _streams(self, session: Session) -> list[StreamInfo]:
        """The stream and the bucket, which are made if they are not there. Raises StoreError if they cannot be used."""
        found = []
        for wanted in configs_of(self._config, self._names):
            about, _ = await make_stream(session, wanted)
            if why := why_unfit(about, wanted):
                raise StoreError(why)
            found.append(about)
        self.is_cluster = found[0].cluster is not None
        return found

    async def _open(self, session: Session, positions: Positions, following: Following) -> NatsReader:
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

    async def _follow(self, session: Session, following: Following) -> None:
        async with self._placing:
            for stream in self._reader.places if self._reader is not None else ():
                with suppress(NotFoundError):
                    config = (await session.jetstream.consumer_info(stream, self.bridge)).config
                    wanted = self._cover(stream, following())
                    if sorted(config.filter_subjects or [config.filter_subject or ""]) != wanted:
                        config.filter_subject, config.filter_subjects = None, wanted
                        await session.jetstream.add_consumer(stream, config)

    async def _retained(self, session: Session, filters: Sequence[str]) -> list[Any]:
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
