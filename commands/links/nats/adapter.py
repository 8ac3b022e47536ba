"""NATS with JetStream as a topic tree (``Adapter``).

A stream has the publications, and a key-value bucket the retained ones, a key for each topic. Both belong to all
bridges and native programs that share the topics.

The stream and the bucket as logs (``Logs``); a message is one of nats-py.

The bridge has a durable consumer in each. It begins where the bridge says, and follows a cover of all filters.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from commands.config.settings import TopicsConfig
from commands.config.urls import Address
from commands.links.engine import adapter as trees
from commands.links.engine.filters import Positions
from commands.links.engine.log_adapter import Following, LogAdapter, Placed, batches, capabilities_of
from commands.links.engine.properties import ForTree, TreeMessage
from commands.links.engine.spool import Spool
from commands.links.nats import connection as nats
from commands.qmgr.link_port import Feature, How
from rfh2.constants import MQRC_MSG_TOO_BIG_FOR_Q, MQRC_NOT_AUTHORIZED, MQRCCF_COMMAND_FAILED, MQRCCF_TOPIC_ERROR
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

    def __init__(self, address: Address, config: TopicsConfig, names: nats.Names) -> None:
        self.bridge, self._config, self._names = names.bridge, config, names
        self.connection = nats.NatsConnection(address, config, names.bridge, self._streams)
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
        return nats.record_of(subject, message.data, message.headers or {}, stored_at, in_bucket)

    def retained(self, filters: Sequence[str]) -> list[Any]:
        return self.connection.call(lambda session: self._retained(session, filters), 4 * self._config.patience_s)

    def close(self) -> None:
        self.connection.close()

    # The loop

    async def _streams(self, session: nats.NatsSession) -> list[StreamInfo]:
        """The stream and the bucket, which are made if they are not there. Raises StoreError if they cannot be used."""
        found = []
        for wanted in nats.configs_of(self._config, self._names):
            about, _ = await nats.make_stream(session, wanted)
            if why := nats.why_unfit(about, wanted):
                raise StoreError(why)
            found.append(about)
        # A server that is alone may name itself as the leader, as 2.15 does; only a cluster has a name.
        self.is_cluster = bool(found[0].cluster and found[0].cluster.name)
        return found

    async def _open(self, session: nats.NatsSession, positions: Positions, following: Following) -> NatsReader:
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

    async def _follow(self, session: nats.NatsSession, following: Following) -> None:
        async with self._placing:
            for stream in self._reader.places if self._reader is not None else ():
                with suppress(NotFoundError):
                    config = (await session.jetstream.consumer_info(stream, self.bridge)).config
                    wanted = self._cover(stream, following())
                    if sorted(config.filter_subjects or [config.filter_subject or ""]) != wanted:
                        config.filter_subject, config.filter_subjects = None, wanted
                        await session.jetstream.add_consumer(stream, config)

    async def _retained(self, session: nats.NatsSession, filters: Sequence[str]) -> list[Any]:
        """The messages of all keys of the bucket that *filters* select, and perhaps of others."""
        keys, bucket = self._names.keys, self._names.bucket
        wanted = (
            nats.wildcards_of(filters[0], keys, key=True) if len(filters) == 1 else nats.cover(filters, keys, key=True)
        )
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
        return nats.cover(filters, self._names.keys if in_bucket else self._names.prefix, in_bucket)


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
_MOST_FETCHED: Final = 16_000_000
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

    def __init__(self, connection: nats.NatsConnection, session: nats.NatsSession) -> None:
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
            raise trees.TreeUnreachableError(
                f"what the NATS server sends is interrupted: {self.lost or 'no connection'}"
            )
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
        most = max(_MOST_FETCHED, 2 * self._session.client.max_payload)
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


CAPABILITIES: Final = capabilities_of(
    {
        Feature.SUBSCRIBE: How.DOES,
        Feature.PUBLISH: How.DOES,
        Feature.RETAIN: How.DOES,
        Feature.REQUEST: How.EMULATED,
        Feature.CLEAR: How.DOES,
        Feature.CHAR_WILDCARDS: How.EMULATED,
        Feature.INNER_HASH: How.EMULATED,
        Feature.ODD_TOPICS: How.DOES,
        Feature.DOLLAR_TOPICS: How.DOES,
        Feature.EXPIRY: How.DOES,
        Feature.PERSISTENCE: How.EMULATED,
        Feature.PRIORITY: How.LOST,
        Feature.ORDER: How.DOES,
        Feature.UNIT_OF_WORK: How.EMULATED,
    }
)


class NatsAdapter(LogAdapter[Any]):
    """One NATS server or cluster. state: the directory for what the bridge remembers. Raises ConfigError."""

    kind = "NATS"
    name = "the NATS server"
    log = logging.getLogger("qpubsub.nats")
    filters_at_once = 200
    forgets_filters = False
    capabilities = CAPABILITIES

    def __init__(self, address: Address, config: TopicsConfig, qmgr: str, state: Path) -> None:
        self._config, self._names = config, nats.Names.of(config, qmgr)
        self._nats = NatsLogs(address, config, self._names)
        super().__init__(self._nats, state / "nats.json", config.default_format)

    def why_not_carried(self, topic_string: str) -> str | None:
        return nats.why_too_long(topic_string, self._config.longest_subject)

    def sender(self, spool: Spool, stop: threading.Event) -> NatsSender:
        del spool, stop  # queues are never the server's, and no call waits for long
        return NatsSender(self._nats, self._config, self._names)


# Publications to the stream, and retained ones to the bucket too (``Sender``): many under way at once.
#
# Each has its message's identifier, so the server takes it once, however often the bridge sends it after a broken
# connection, within the duplicate window. In a cluster, a change of the stream's leader may lose a publication and take
# the next one: there the next one on the same subject waits for the answer to the first, so that they keep their order.

_MOST_BYTES: Final = 4_000_000
_BAD_REQUEST: Final = 400

Answers = Sequence[asyncio.Future[Any]]


class NatsSender:
    """Sends to the stream and the bucket of *logs*."""

    def __init__(self, logs: NatsLogs, config: TopicsConfig, names: nats.Names) -> None:
        self._logs, self._config, self._names = logs, config, names
        # Answers that are waited for, by subject; the server tells what it denies by subject alone.
        self._awaited: dict[asyncio.Future[Any], str] = {}
        logs.connection.denied = self._denied

    def prepare(self, wanted: ForTree) -> trees.Prepared[nats.NatsPublication] | None:
        item = nats.message_for(wanted, self._names.bridge, self._config.session_expiry_s or 86_400)
        why = nats.why_too_long(wanted.topic, self._config.longest_subject)
        if why is not None:
            raise trees.NotCarriedError(MQRCCF_TOPIC_ERROR, f"topic {wanted.topic:.200}: {why}")
        if item.header_bytes > nats.MOST_HEADER_BYTES:
            why = f"its properties take {item.header_bytes} bytes as headers, JetStream takes {nats.MOST_HEADER_BYTES}"
            raise trees.NotCarriedError(MQRC_MSG_TOO_BIG_FOR_Q, f"topic {wanted.topic:.200}: {why}")
        most = self._logs.connection.max_payload
        if item.size > most:
            raise trees.too_large(wanted.topic, item.size, most, "the NATS server")
        return trees.Prepared(item, wanted.other)

    def send(self, batch: Iterable[trees.Waiting[nats.NatsPublication]]) -> Iterator[trees.Sent]:
        if self._logs.is_cluster is None:
            self._logs.make_ready()
        apart = _subject if self._logs.is_cluster else None
        unanswered: list[bytes] = []
        left: set[str] = set()
        for each_batch in batches(batch, lambda each: each.item.size, _MOST_BYTES, apart):
            # In a cluster, what is behind another one on its subject waits for that.
            together = [each for each in each_batch if apart is None or each.item.subject not in left]
            if not together:
                continue
            publish = partial(self._publish, together)
            answers = self._logs.connection.call(publish, 2 * self._config.patience_s)
            known = [(each, self._sent(each, answer)) for each, answer in zip(together, answers, strict=True)]
            yield from (sent for _, sent in known if sent is not None)
            missing = [(each, answer) for (each, sent), answer in zip(known, answers, strict=True) if sent is None]
            left.update(each.item.subject for each, _ in missing)
            unanswered += [each.key for each, answer in missing if not any(map(_is_refused, answer))]
            if len(missing) == len(together) and apart is None:
                break
        if left:
            raise trees.UnansweredError("the NATS server has not answered for all publications", unanswered)

    def done(self) -> None:
        """Nothing is remembered of a batch."""

    def close(self) -> None:
        """Nothing is held: the adapter disconnects."""

    def _sent(self, waiting: trees.Waiting[nats.NatsPublication], answers: Answers) -> trees.Sent | None:
        """The result for one; None where the server has not answered, or would take it later."""
        errors = [each.exception() for each in answers if each.done() and not each.cancelled()]
        lasting = next((each for each in errors if each is not None and _is_lasting(each)), None)
        if lasting is None:
            return trees.Sent(waiting.message) if errors == [None] * len(answers) else None
        is_denied = isinstance(lasting, PermissionError)
        why = f"a publication on topic {waiting.wanted.topic:.200}: {lasting if is_denied else nats.refusal(lasting)}"
        return trees.Sent(waiting.message, MQRC_NOT_AUTHORIZED if is_denied else MQRCCF_COMMAND_FAILED, why)

    # The loop

    async def _publish(
        self, together: Sequence[trees.Waiting[nats.NatsPublication]], session: nats.NatsSession
    ) -> list[Answers]:
        """Publish all, in order; what the server has said of each after ``patience_s``."""
        answers: list[list[asyncio.Future[Any]]] = []
        try:
            for waiting in together:
                item, of_one = waiting.item, list[asyncio.Future[Any]]()
                answers.append(of_one)
                headers = {**item.headers, nats.MESSAGE_ID: f"{self._names.bridge}-{waiting.key.hex()}"}
                subjects = [] if item.clear else [self._names.prefix + item.subject]
                subjects += [self._names.keys + item.key] if item.clear or item.retain else []
                for subject in subjects:
                    answer = await session.jetstream.publish_async(subject, item.payload, headers=dict(headers))
                    self._awaited[answer] = subject
                    of_one.append(answer)
            await asyncio.wait(list(self._awaited), timeout=self._config.patience_s)
            return list(answers)
        finally:
            for answer in self._awaited:
                answer.cancel()  # for nats-py, which has room for so many
            self._awaited.clear()

    def _denied(self, text: str) -> None:
        """The server denies something. nats-py gives its text in small letters."""
        meant = {answer: subject for answer, subject in self._awaited.items() if f'"{subject.lower()}"' in text}
        # Subjects that differ in that only: the one that is allowed has its answer soon.
        wait_s = 0.0 if len(set(meant.values())) == 1 else self._config.patience_s / 2
        for answer in meant:
            answer.get_loop().call_later(wait_s, _deny, answer, text.removeprefix("nats: "))


def _subject(waiting: trees.Waiting[nats.NatsPublication]) -> str:
    return waiting.item.subject


def _is_refused(answer: asyncio.Future[Any]) -> bool:
    """Whether the server has answered that it does not take it now."""
    return answer.done() and not answer.cancelled() and answer.exception() is not None


def _deny(answer: asyncio.Future[Any], text: str) -> None:
    if not answer.done():
        answer.set_exception(PermissionError(text))


def _is_lasting(error: BaseException) -> bool:
    """Whether the same publication would be refused again: not where no server leads the stream, or it is full."""
    return isinstance(error, PermissionError) or getattr(error, "code", None) == _BAD_REQUEST
