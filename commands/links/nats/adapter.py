"""NATS with JetStream as a topic tree (``Adapter``).

A stream has the publications, and a key-value bucket the retained ones, a key for each topic. Both belong to all
bridges and native programs that share the topics.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from commands.config.settings import TopicsConfig
from commands.config.urls import Address
from commands.links.engine.adapter import NotCarriedError, Prepared, Sent, UnansweredError, Waiting, too_large
from commands.links.engine.log_adapter import LogAdapter, batches, capabilities_of
from commands.links.engine.message_for_tree import ForTree
from commands.links.engine.spool import Spool
from commands.links.nats.connection import Names, NatsSession, refusal
from commands.links.nats.logs import NatsLogs
from commands.links.nats.messages import MESSAGE_ID, MOST_HEADER_BYTES, NatsPublication, message_for, why_too_long
from commands.qmgr.link_port import Feature, How
from rfh2.constants import MQRC_MSG_TOO_BIG_FOR_Q, MQRC_NOT_AUTHORIZED, MQRCCF_COMMAND_FAILED, MQRCCF_TOPIC_ERROR

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
        self._config, self._names = config, Names.of(config, qmgr)
        self._nats = NatsLogs(address, config, self._names)
        super().__init__(self._nats, state / "nats.json", config.default_format)

    def why_not_carried(self, topic_string: str) -> str | None:
        return why_too_long(topic_string, self._config.longest_subject)

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

    def __init__(self, logs: NatsLogs, config: TopicsConfig, names: Names) -> None:
        self._logs, self._config, self._names = logs, config, names
        # Answers that are waited for, by subject; the server tells what it denies by subject alone.
        self._awaited: dict[asyncio.Future[Any], str] = {}
        logs.connection.denied = self._denied

    def prepare(self, wanted: ForTree) -> Prepared[NatsPublication] | None:
        item = message_for(wanted, self._names.bridge, self._config.session_expiry_s or 86_400)
        why = why_too_long(wanted.topic, self._config.longest_subject)
        if why is not None:
            raise NotCarriedError(MQRCCF_TOPIC_ERROR, f"topic {wanted.topic:.200}: {why}")
        if item.header_bytes > MOST_HEADER_BYTES:
            why = f"its properties take {item.header_bytes} bytes as headers, JetStream takes {MOST_HEADER_BYTES}"
            raise NotCarriedError(MQRC_MSG_TOO_BIG_FOR_Q, f"topic {wanted.topic:.200}: {why}")
        most = self._logs.connection.max_payload
        if item.size > most:
            raise too_large(wanted.topic, item.size, most, "the NATS server")
        return Prepared(item, wanted.other)

    def send(self, batch: Iterable[Waiting[NatsPublication]]) -> Iterator[Sent]:
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
            raise UnansweredError("the NATS server has not answered for all publications", unanswered)

    def done(self) -> None:
        """Nothing is remembered of a batch."""

    def close(self) -> None:
        """Nothing is held: the adapter disconnects."""

    def _sent(self, waiting: Waiting[NatsPublication], answers: Answers) -> Sent | None:
        """The result for one; None where the server has not answered, or would take it later."""
        errors = [each.exception() for each in answers if each.done() and not each.cancelled()]
        lasting = next((each for each in errors if each is not None and _is_lasting(each)), None)
        if lasting is None:
            return Sent(waiting.message) if errors == [None] * len(answers) else None
        is_denied = isinstance(lasting, PermissionError)
        why = f"a publication on topic {waiting.wanted.topic:.200}: {lasting if is_denied else refusal(lasting)}"
        return Sent(waiting.message, MQRC_NOT_AUTHORIZED if is_denied else MQRCCF_COMMAND_FAILED, why)

    # The loop

    async def _publish(self, together: Sequence[Waiting[NatsPublication]], session: NatsSession) -> list[Answers]:
        """Publish all, in order; what the server has said of each after ``patience_s``."""
        answers: list[list[asyncio.Future[Any]]] = []
        try:
            for waiting in together:
                item, of_one = waiting.item, list[asyncio.Future[Any]]()
                answers.append(of_one)
                headers = {**item.headers, MESSAGE_ID: f"{self._names.bridge}-{waiting.key.hex()}"}
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


def _subject(waiting: Waiting[NatsPublication]) -> str:
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
