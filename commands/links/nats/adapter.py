"""NATS with JetStream as a topic tree (``Adapter``).

A stream has the publications, and a key-value bucket the retained ones, a key for each topic. Both belong to all
bridges and native programs that share the topics; each bridge has a durable consumer of its own in both. A filter is
text as ``commands.links.nats.subjects`` has it, without the prefix of the subjects.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from commands.links.engine.adapter import Engine, Subscribed
from commands.links.engine.command_from_native import NativePublication
from commands.links.engine.config import ConfigError, TopicsConfig
from commands.links.engine.filter_tree import matcher_of
from commands.links.engine.followed_filters import FollowedFilters, FollowsFilters
from commands.links.engine.retained import TreeRetained
from commands.links.engine.spool import Spool
from commands.links.engine.urls import Address
from commands.links.nats.capabilities import CAPABILITIES
from commands.links.nats.connection import NatsConnection, Session
from commands.links.nats.receiver import Cursor, NatsReceiver
from commands.links.nats.sender import NatsSender
from commands.links.nats.streams import last_values, make_streams
from commands.links.nats.subjects import filter_of, pattern_of, tokens_of, why_too_long
from streams.subscriptions import WildcardScheme

_log = logging.getLogger("qpubsub.nats")
_PREFIX: Final = re.compile(r"([^\s.*>$][^\s.*>]*\.)+")


def names_of(config: TopicsConfig, qmgr: str) -> tuple[str, str, str]:
    """The bridge's name at the server, the prefix of subjects in the stream, and that in the bucket.

    Raises ConfigError where the file has a prefix that cannot be one.
    """
    prefix = config.prefix or "mq."
    if _PREFIX.fullmatch(prefix) is None:
        raise ConfigError("prefix", f"{prefix} cannot begin NATS subjects; one that can is mq.")
    name = re.sub(r"[^A-Za-z0-9_-]", lambda found: f"={ord(found[0]):02X}", config.client_id or f"qpubsub-{qmgr}")
    return name, prefix, f"$KV.{config.stream}."


class NatsAdapter(FollowsFilters):
    """One NATS server or cluster. state: the directory for what the bridge remembers. Raises ConfigError."""

    kind = "NATS"
    name = "the NATS server"
    log = _log
    filters_at_once = 200
    forgets_filters = False
    capabilities = CAPABILITIES

    def __init__(self, address: Address, config: TopicsConfig, qmgr: str, state: Path) -> None:
        self._config = config
        self._bridge, self._prefix, self._bucket = names_of(config, qmgr)
        self._filters = FollowedFilters(state / "nats.json")
        bucket = Cursor(f"KV_{config.stream}", self._bucket, is_bucket=True)
        cursors = Cursor(config.stream, self._prefix), bucket
        self._receiver = NatsReceiver(config, cursors, self._bridge, self._filters)
        self._connection = NatsConnection(address, config, self._bridge, self._opened, self._denied)
        self._receiver.connection = self._connection
        self._sender = NatsSender(self._connection, config, self._prefix, self._bucket, self._bridge)

    # Names

    def filter_of(self, topic_string: str, wildcard: WildcardScheme) -> str | None:
        return filter_of(topic_string, wildcard)

    def pattern_of(self, topic_filter: str) -> tuple[str, WildcardScheme]:
        return pattern_of(topic_filter), WildcardScheme.TOPIC

    def matcher(self, filters: Sequence[str]) -> Callable[[str], Sequence[str]]:
        return matcher_of(filters, tokens_of)

    def why_stays(self, topic_string: str) -> str | None:
        """None: every topic string has a subject."""

    def why_not_carried(self, topic_string: str) -> str | None:
        return why_too_long(topic_string, self._config.longest_subject)

    # Its life

    def attach(self, engine: Engine[str]) -> None:
        self._engine = engine

    def start(self) -> None:
        self._connection.start()

    def stop(self) -> None:
        self._connection.stop()
        self._filters.save()

    @property
    def is_up(self) -> bool | None:
        return self._connection.is_up

    def wait_up(self, timeout_s: float) -> bool:
        return self._connection.wait_up(timeout_s)

    @property
    def trouble(self) -> str:
        return self._connection.trouble

    @property
    def next_try_s(self) -> float | None:
        return self._connection.next_try_s

    # Calls

    def client(self) -> NatsCalls:
        return NatsCalls(self._connection, self._receiver, self._filters, self._config, self._bucket)

    def receiver(self) -> NatsReceiver:
        return self._receiver

    def sender(self, spool: Spool, stop: threading.Event) -> NatsSender:
        del spool, stop  # queues are never the server's, and no call waits for long
        return self._sender

    # The connection's thread

    async def _opened(self, session: Session) -> None:
        self._connection.is_cluster = await make_streams(session, self._config, self._prefix)
        known = await self._receiver.open(session)
        if not known:
            self._filters.forget()
        # In another thread: who has the engine's lock may wait for an answer of this one.
        await asyncio.get_running_loop().run_in_executor(None, self._engine.connected, known)
        _log.info("connected to the NATS server as %s", self._bridge)

    def _denied(self, text: str) -> None:
        self._sender.denied(text)


class NatsCalls:
    """The calls of the processor's thread and the keeper (``TreeClient``), by one connection."""

    def __init__(
        self,
        connection: NatsConnection,
        receiver: NatsReceiver,
        filters: FollowedFilters,
        config: TopicsConfig,
        bucket: str,
    ) -> None:
        self._connection, self._receiver, self._filters = connection, receiver, filters
        self._config, self._bucket = config, bucket

    def prepare(self) -> None:
        """Nothing is left of earlier runs."""

    def subscribe(self, filters: Sequence[str], urgent: bool) -> Iterator[Subscribed[str]]:
        del urgent  # one is as fast as another
        self._filters.follow(filters, self._connection.call(self._last))
        self._receiver.follow()
        yield from map(Subscribed, filters)

    def unsubscribe(self, topic_filter: str) -> None:
        self._filters.remove(topic_filter)
        self._receiver.follow()

    def retained(self, filters: Sequence[str]) -> TreeRetained:
        messages = self._connection.call(
            lambda session: last_values(session, self._config.stream, filters), 4 * self._config.patience_s
        )
        natives: list[NativePublication] = []
        topics: list[str] = []
        for message in messages:
            read = self._receiver.read(message.subject.removeprefix(self._bucket), message, in_bucket=True)
            if isinstance(read, NativePublication) and not read.clears:
                topics.append(read.topic)
                if not self._receiver.is_own(message):
                    natives.append(read)
        return TreeRetained(tuple(natives), frozenset(topics))

    def answers(self) -> bool:
        self._receiver.count_waiting()
        return True

    def close(self) -> None:
        """Nothing is held: the adapter disconnects."""

    async def _last(self, session: Session) -> dict[str, int]:
        """The last sequence numbers of the stream and of the bucket."""
        names = self._config.stream, f"KV_{self._config.stream}"
        return {name: (await session.jetstream.stream_info(name)).state.last_seq for name in names}
