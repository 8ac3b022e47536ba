"""Messages of the stream and of the bucket, by a durable consumer of each (``Receiver``).

A message that the server sent as a connection broke has not come, and JetStream would send it only after those behind
it. So the bridge keeps the place itself: the sequence numbers that JetStream gives to what it delivers have no gaps. If
there is a gap, or the server waits for acknowledgements at a new connection, the consumer is replaced by one that
begins behind the last publication that is safe here. So a broken connection doubles nothing; only a bridge that ended
between its commit and the acknowledgement gets the same publications again.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from commands.links.engine.adapter import Arrivals, TreeUnreachableError
from commands.links.engine.command_from_native import NativePublication
from commands.links.engine.config import TopicsConfig
from commands.links.engine.followed_filters import FollowedFilters
from commands.links.engine.inbound_writer import Unreadable
from commands.links.nats.connection import NatsConnection, Session
from commands.links.nats.messages import bridge_of, is_marker, native_of
from commands.links.nats.subjects import cover, tokens_of, topic_of

try:
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
    from nats.js.errors import NotFoundError
except ImportError:  # pragma: no cover - the extra is not installed
    pass

_log = logging.getLogger("qpubsub.nats")

# How long the server keeps a request for messages; after it, the bridge looks whether one was lost.
_PULL_S: Final = 5.0
_MOST_BYTES: Final = 16_000_000


@dataclass(slots=True)
class Cursor:
    """The place of the bridge in a stream. prefix: of its subjects. is_bucket: whether it is the bucket's stream.

    position: sequence number of the last message that is safe here. newest: of the last one that came. expected: the
    next number of the consumer. asked: messages that the server may still send without being asked. behind: how many it
    has beside those. is_overdue: it sends no more of those, and something may be lost. is_broken: there is a gap.
    """

    stream: str
    prefix: str
    is_bucket: bool = False
    position: int = 0
    newest: int = 0
    generation: int = 0
    expected: int = 1
    inbox: str = ""
    asked: int = 0
    until: float = 0.0
    behind: int = 0
    is_overdue: bool = False
    is_broken: bool = False
    created: Any = None


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message that has come."""

    cursor: Cursor
    generation: int
    sequence: int
    message: Any = field(repr=False)


class NatsReceiver:
    """Filled by the connection's thread, emptied by the engine's. bridge: its name, and that of its consumers."""

    def __init__(
        self, config: TopicsConfig, cursors: tuple[Cursor, Cursor], bridge: str, filters: FollowedFilters
    ) -> None:
        self._config, self._cursors, self._bridge, self._filters = config, cursors, bridge, filters
        self._came = threading.Condition()
        self._waiting: deque[Arrived] = deque()
        self._taken: list[Arrived] = []
        self.connection: NatsConnection

    # The connection's thread

    async def open(self, session: Session) -> bool:
        """Make the consumers ready for a new connection; whether JetStream knows the place of the bridge."""
        return all([await self._open(session, cursor) for cursor in self._cursors])

    async def _open(self, session: Session, cursor: Cursor) -> bool:
        stream = await session.jetstream.stream_info(cursor.stream)
        info = await self._consumer(session, cursor)
        known = True
        if info is not None:
            cursor.position = max(cursor.position, info.ack_floor.stream_seq)
        elif self._filters.moving is not None:
            cursor.position = max(cursor.position, self._filters.moving.get(cursor.stream, 0))
        else:
            known = cursor.created == stream.created
        if not known or cursor.position > stream.state.last_seq:
            known, cursor.position = False, stream.state.last_seq
        cursor.created = stream.created
        filters = cover(self._filters.all(), cursor.prefix, cursor.is_bucket)
        if info is None or info.num_ack_pending or cursor.is_broken:
            info = await self._replaced(session, cursor, filters)
        elif sorted(info.config.filter_subjects or [info.config.filter_subject or ""]) != filters:
            info = await self._followed(session, info.config, cursor, filters)
        with self._came:
            cursor.generation += 1
            cursor.newest = cursor.position
            cursor.expected = info.delivered.consumer_seq + 1
            cursor.asked, cursor.behind, cursor.until = 0, info.num_pending, 0.0
            cursor.is_overdue = cursor.is_broken = False
            self._waiting = deque(each for each in self._waiting if each.cursor is not cursor)
        generation, cursor.inbox = cursor.generation, session.client.new_inbox()
        await session.client.subscribe(cursor.inbox, cb=partial(self._arrived, cursor, generation))
        return known

    async def _replaced(self, session: Session, cursor: Cursor, filters: list[str]) -> Any:
        """A new consumer that begins behind the position; the file has the position until it is there."""
        self._filters.move({each.stream: each.position for each in self._cursors})
        with suppress(NotFoundError):
            await session.jetstream.delete_consumer(cursor.stream, self._bridge)
        config = ConsumerConfig(
            name=self._bridge,
            durable_name=self._bridge,
            ack_policy=AckPolicy.ALL,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=cursor.position + 1,
            filter_subjects=filters,
            max_ack_pending=-1,
        )
        made = await session.jetstream.add_consumer(cursor.stream, config)
        self._filters.move(None)
        return made

    async def _followed(self, session: Session, config: Any, cursor: Cursor, filters: list[str]) -> Any:
        config.filter_subject, config.filter_subjects = None, filters
        return await session.jetstream.add_consumer(cursor.stream, config)

    async def _arrived(self, cursor: Cursor, generation: int, message: Any) -> None:
        with self._came:
            if generation != cursor.generation:
                return
            if message.subject == cursor.inbox:
                self._ended(cursor, message.headers or {})
            else:
                about = message.metadata
                cursor.asked -= 1
                cursor.behind = about.num_pending
                # Behind a gap nothing is taken: it comes again from there.
                cursor.is_broken = cursor.is_broken or about.sequence.consumer != cursor.expected
                if not cursor.is_broken:
                    cursor.expected += 1
                    # What is not accepted for a while comes again; it is here still.
                    if about.sequence.stream > cursor.newest:
                        cursor.newest = about.sequence.stream
                        self._waiting.append(Arrived(cursor, generation, cursor.newest, message))
            self._came.notify()

    def _ended(self, cursor: Cursor, headers: dict[str, str]) -> None:
        """A request for messages has ended: by its time (408), or the consumer is gone."""
        cursor.asked = max(0, cursor.asked - int(headers.get("Nats-Pending-Messages", cursor.asked)))
        cursor.is_broken = cursor.is_broken or headers.get("Status") not in ("408", "409")
        if headers.get("Description", "").startswith("Consumer"):
            cursor.is_broken = True
        if not cursor.asked:
            cursor.behind, cursor.is_overdue = 0, True

    # The engine's threads

    def follow(self) -> None:
        """Have the consumers follow the filters as they are now. Raises StoreError."""
        self.connection.call(self._follow)

    async def _follow(self, session: Session) -> None:
        for cursor in self._cursors:
            filters = cover(self._filters.all(), cursor.prefix, cursor.is_bucket)
            info = await session.jetstream.consumer_info(cursor.stream, self._bridge)
            if sorted(info.config.filter_subjects or [info.config.filter_subject or ""]) != filters:
                await self._followed(session, info.config, cursor, filters)

    def count_waiting(self) -> None:
        """Ask the server how many messages wait there. Raises StoreError."""
        for cursor in self._cursors:
            info = self._info(cursor)
            cursor.behind = 0 if info is None else info.num_pending

    @property
    def is_waiting(self) -> bool:
        with self._came:
            return bool(self._waiting or self._taken or any(cursor.behind for cursor in self._cursors))

    def take(self, limit: int, timeout_s: float) -> Arrivals:
        if not self.connection.wait_up(timeout_s):
            return Arrivals()
        try:
            for cursor in self._cursors:
                self._ask(cursor, limit)
        except TreeUnreachableError:
            # The connection logs its end itself.
            if self.connection.is_up:
                raise
            return Arrivals()
        with self._came:
            if not self._waiting:
                self._came.wait(timeout_s)
            came = [self._waiting.popleft() for _ in range(min(len(self._waiting), limit))]
            self._taken = [each for each in came if each.sequence > each.cursor.position]
        natives = [native for each in self._taken if (native := self._read(each)) is not None]
        return Arrivals(natives, len(self._taken))

    def accept(self) -> None:
        taken, self._taken = self._taken, []
        last = {each.cursor.stream: each for each in taken}
        for each in last.values():
            each.cursor.position = each.sequence
        for each in last.values():
            self._acknowledge(each)

    def undo(self) -> None:
        with self._came:
            still = [each for each in self._taken if each.generation == each.cursor.generation]
            self._waiting.extendleft(reversed(still))
            self._taken = []

    def close(self) -> None:
        """Nothing is held: the adapter disconnects."""

    def _ask(self, cursor: Cursor, limit: int) -> None:
        """Have the server send more, if there is room for it here. Raises StoreError."""
        now = time.monotonic()
        if not cursor.is_broken and (cursor.is_overdue or now > cursor.until > 0):
            # Nothing is under way now, so what JetStream has delivered has come, or never will.
            info = self._info(cursor)
            cursor.is_broken = info is None or info.delivered.consumer_seq >= cursor.expected
            cursor.asked, cursor.is_overdue = 0, False
        if cursor.is_broken:
            self.connection.renew()
            return
        if cursor.asked > limit // 2 or len(self._waiting) > limit:
            return
        with self._came:
            cursor.asked += limit
        cursor.until = now + _PULL_S + 1
        self.connection.call(lambda session: self._pull(session, cursor, limit))

    def _acknowledge(self, arrived: Arrived) -> None:
        """It, and all before it; with an answer, so that nothing comes again after this process."""
        self.connection.call(lambda session: session.client.request(arrived.message.reply, b"+ACK", timeout=60))

    def _info(self, cursor: Cursor) -> Any:
        return self.connection.call(lambda session: self._consumer(session, cursor))

    async def _consumer(self, session: Session, cursor: Cursor) -> Any:
        """The consumer as JetStream has it; None if it has none."""
        with suppress(NotFoundError):
            return await session.jetstream.consumer_info(cursor.stream, self._bridge)
        return None

    async def _pull(self, session: Session, cursor: Cursor, count: int) -> None:
        most = max(_MOST_BYTES, 2 * session.client.max_payload)
        wanted = {"batch": count, "expires": int(_PULL_S * 1e9), "max_bytes": most}
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{cursor.stream}.{self._bridge}"
        await session.client.publish(subject, json.dumps(wanted).encode(), reply=cursor.inbox)

    def _read(self, arrived: Arrived) -> NativePublication | Unreadable | None:
        """The publication; None for one that no subscription needs, or that this bridge has sent or has already."""
        cursor, message = arrived.cursor, arrived.message
        subject: str = message.subject.removeprefix(cursor.prefix)
        headers = message.headers or {}
        by, in_bucket = bridge_of(headers), cursor.is_bucket
        # What another bridge retains comes by the stream too; what it clears is in the bucket only.
        if by == self._bridge or (by is not None and in_bucket and not is_marker(headers)):
            return None
        topic = topic_of(subject, in_bucket)
        tokens = subject.replace(".", "/") if topic is None else tokens_of(topic)
        if not self._filters.takes(tokens, cursor.stream, arrived.sequence):
            return None
        return self.read(subject, message, in_bucket)

    def is_own(self, message: Any) -> bool:
        """Whether this bridge has sent it."""
        return bridge_of(message.headers or {}) == self._bridge

    def read(self, subject: str, message: Any, in_bucket: bool) -> NativePublication | Unreadable:
        """What came on *subject*, which is without its prefix."""
        try:
            topic = topic_of(subject, in_bucket)
            if topic is None:
                _log.error("subject %.200s: it is the subject of no topic string", subject)
                return Unreadable(message.data)
            age_s = max(0.0, time.time() - message.metadata.timestamp.timestamp())
            return native_of(topic, message.data, message.headers or {}, age_s, in_bucket, self._config.default_format)
        except Exception as error:
            # A fault of ours, or a value nobody thought of: it must not keep what is behind it waiting.
            _log.error("a native publication on subject %.200s cannot be read", subject, exc_info=error)
            return Unreadable(message.data)
