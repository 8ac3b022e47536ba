"""Publications to the stream, and retained ones to the bucket too (``Sender``): many under way at once.

Each has its message's identifier, so the server takes it once, however often the bridge sends it after a broken
connection, within the duplicate window. In a cluster, a change of the stream's leader may lose a publication and take
the next one: there the next one on the same subject waits for the answer to the first, so that they keep their order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from commands.links.engine.adapter import NotCarriedError, Prepared, Sent, TreeUnreachableError, Waiting
from commands.links.engine.config import TopicsConfig
from commands.links.engine.message_for_tree import ForTree
from commands.links.nats.connection import NatsConnection, Session, refusal
from commands.links.nats.messages import MESSAGE_ID, NatsPublication, message_for
from commands.links.nats.subjects import why_too_long
from rfh2.constants import MQRC_MSG_TOO_BIG_FOR_Q, MQRC_NOT_AUTHORIZED, MQRCCF_COMMAND_FAILED, MQRCCF_TOPIC_ERROR
from rfh2.errors import StoreError

_log = logging.getLogger("qpubsub.nats")

_MOST_AT_ONCE: Final = 1_000
_MOST_BYTES: Final = 4_000_000
_BAD_REQUEST: Final = 400

Answer = Exception | None


class NatsSender:
    """Sends by the connection that there is. stream, bucket: the prefixes of their subjects. bridge: its name there."""

    def __init__(self, connection: NatsConnection, config: TopicsConfig, stream: str, bucket: str, bridge: str) -> None:
        self._connection, self._config, self._bridge = connection, config, bridge
        self._stream, self._bucket = stream, bucket
        # Answers that are waited for, by subject; the server tells what it denies by subject alone.
        self._awaited: dict[asyncio.Future[Any], str] = {}

    def prepare(self, wanted: ForTree) -> Prepared[NatsPublication] | None:
        item = message_for(wanted, self._bridge, self._config.session_expiry_s or 86_400)
        why = why_too_long(wanted.topic, self._config.longest_subject)
        if why is not None:
            raise NotCarriedError(MQRCCF_TOPIC_ERROR, f"topic {wanted.topic:.200}: {why}")
        most = self._connection.max_payload
        if item.size > most:
            why = f"topic {wanted.topic:.200}: {item.size} bytes, the NATS server takes {most}"
            raise NotCarriedError(MQRC_MSG_TOO_BIG_FOR_Q, why)
        return Prepared(item, wanted.other)

    def send(self, batch: Iterable[Waiting[NatsPublication]]) -> Iterator[Sent]:
        together: list[Waiting[NatsPublication]] = []
        subjects: set[str] = set()
        size = 0
        for waiting in batch:
            again = self._connection.is_cluster and waiting.item.subject in subjects
            if again or len(together) == _MOST_AT_ONCE or size > _MOST_BYTES:
                yield from self._sent(together)
                together, subjects, size = [], set(), 0
            together.append(waiting)
            subjects.add(waiting.item.subject)
            size += waiting.item.size
        yield from self._sent(together)

    def done(self) -> None:
        """Nothing is remembered of a batch."""

    def close(self) -> None:
        """Nothing is held: the adapter disconnects."""

    def denied(self, text: str) -> None:
        """The server denies something; in the connection's thread. nats-py gives its text in small letters."""
        meant = {answer: subject for answer, subject in self._awaited.items() if f'"{subject.lower()}"' in text}
        # Subjects that differ in that only: the one that is allowed has its answer soon.
        wait_s = 0.0 if len(set(meant.values())) == 1 else self._config.patience_s / 2
        for answer in meant:
            answer.get_loop().call_later(wait_s, _deny, answer, text.removeprefix("nats: "))

    def _sent(self, together: Sequence[Waiting[NatsPublication]]) -> Iterator[Sent]:
        answers: dict[int, Answer] = {}
        failed: StoreError | None = None
        try:
            if together:
                limit_s = 2 * self._config.patience_s
                self._connection.call(lambda session: self._publish(session, together, answers), limit_s)
        except StoreError as error:
            failed = error
        for number, waiting in enumerate(together):
            if number in answers:
                yield self._result(waiting, answers[number])
        if failed is not None:
            raise failed
        if len(answers) < len(together):
            raise TreeUnreachableError("the NATS server has not answered for all publications")

    def _result(self, waiting: Waiting[NatsPublication], answer: Answer) -> Sent:
        if answer is None:
            return Sent(waiting.message)
        reason = MQRC_NOT_AUTHORIZED if isinstance(answer, PermissionError) else MQRCCF_COMMAND_FAILED
        why = str(answer) if isinstance(answer, PermissionError) else refusal(answer)
        return Sent(waiting.message, reason, f"a publication on topic {waiting.wanted.topic:.200}: {why}")

    async def _publish(
        self, session: Session, together: Sequence[Waiting[NatsPublication]], answers: dict[int, Answer]
    ) -> None:
        """Publish all, in order, and note in *answers* what the server says. Raises what it does not say."""
        parts: dict[int, list[asyncio.Future[Any]]] = {}
        awaited: list[asyncio.Future[Any]] = []
        try:
            for number, waiting in enumerate(together):
                item = waiting.item
                headers = {**item.headers, MESSAGE_ID: f"{self._bridge}-{waiting.key.hex()}"}
                subjects = [] if item.clear else [self._stream + item.subject]
                for subject in subjects + ([self._bucket + item.key] if item.clear or item.retain else []):
                    answer = await session.jetstream.publish_async(subject, item.payload, headers=dict(headers))
                    self._awaited[answer] = subject
                    awaited.append(answer)
                    parts.setdefault(number, []).append(answer)
            await asyncio.wait(awaited, timeout=self._config.patience_s)
        finally:
            for number, answers_of in parts.items():
                self._note(number, answers_of, answers)
            for answer in awaited:
                self._awaited.pop(answer, None)

    def _note(self, number: int, parts: Sequence[asyncio.Future[Any]], answers: dict[int, Answer]) -> None:
        done = [part for part in parts if part.done() and not part.cancelled()]
        refused = [error for part in done if (error := part.exception()) is not None]
        lasting = [each for each in refused if _is_lasting(each)]
        if lasting:
            answers[number] = lasting[0]  # type: ignore[assignment]
        elif not refused and len(done) == len(parts):
            answers[number] = None


def _deny(answer: asyncio.Future[Any], text: str) -> None:
    if not answer.done():
        answer.set_exception(PermissionError(text))


def _is_lasting(error: BaseException) -> bool:
    """Whether the same publication would be refused again: not where no server leads the stream, or it is full."""
    return isinstance(error, PermissionError) or getattr(error, "code", None) == _BAD_REQUEST
