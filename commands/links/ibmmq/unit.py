"""A unit of work of IBM MQ, and one that keeps the state in SQLite beside it (``UnitOfWork``).

MQ has no savepoints: an error in the middle backs everything out (``has_savepoints``).

Takes commands from several queues in the order in which they were put.

MQ orders one queue, by priority and arrival; between queues there is only PutDate and PutTime, to a hundredth of a
second. A program that registers and then publishes must not find its publication processed first. So the first message
of a queue is taken only after a look at every other queue since it was seen: a message put there later is later.

A look is a browse of the first message's descriptor, and each message needs new looks. To browse further ahead would
save looks and be wrong: a message that was put under syncpoint may be committed behind the cursor, and later messages
would overtake it. The processor gets a message, by its token, only when it is its turn: a message that is got and not
processed would be lost with the commit.

So a message costs as many calls as there are queues, and one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self

from commands.broker.counts import Counting
from commands.broker.descriptor import default_descriptor
from commands.broker.objects import Definition, LocalQueue
from commands.client.errors import BackedOutError, ConnectionLostError, MqError
from commands.config.settings import QueuesConfig
from commands.disk.errors import UndeliverableError, UnitOfWorkFullError, UnknownQueueError
from commands.links.ibmmq.connection import AttributeCache, Connection, Got, QueueAttributes
from commands.links.ibmmq.undelivered import (
    RECORD_FORMAT,
    LiveState,
    UndeliveredBefore,
    UndeliveredOnQueue,
    UnitRecord,
    put_at,
)
from commands.qmgr.store.message_table import note_undelivered_elsewhere
from commands.qmgr.store.port import LoadedState, StoredMessage
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2 import mqi_constants as m
from rfh2.constants import MQPER_PERSISTENT, MQRC_NOT_AUTHORIZED, MQRC_UNKNOWN_OBJECT_NAME
from rfh2.errors import MessageRefusedError, QueueError, StoreError
from rfh2.layouts import MQMD1
from rfh2.mqi_constants import MQGMO_SYNCPOINT
from rfh2.mqmd import Mqmd, name_of
from rfh2.pcf_admin_names import MQIA_CURRENT_Q_DEPTH
from streams.operations import Delivery, Effect, RetainedPublication

_PUT: Final = {name: MQMD1.slices()[name] for name in ("PutDate", "PutTime")}


@dataclass(slots=True)
class _InputQueue:
    """A queue, and what the last look at it saw: the first message's token and moment, or None for no message."""

    name: str
    handle: Any
    looked: int = -1
    token: bytes | None = None
    put: bytes = b""


class InputQueues:
    """The input queues during one unit of work. queues: names, and handles for browsing and for input."""

    def __init__(self, connection: Connection, queues: Sequence[tuple[str, Any]]) -> None:
        self._connection = connection
        self.handles = tuple(queues)
        self._queues = [_InputQueue(name, handle) for name, handle in queues]
        self._looks = 0

    def take(self) -> tuple[str, Got] | None:
        """The next message, got under syncpoint, and its queue; None where there is none."""
        begun = self._looks
        while (queue := self._first(begun)) is not None:
            got = self._connection.get(queue.handle, MQGMO_SYNCPOINT, token=queue.token)
            queue.looked = -1  # it has another first message now, whether this one was got or has expired
            if got is not None:
                return queue.name, got
        return None

    def _first(self, begun: int) -> _InputQueue | None:
        """The queue whose first message is the next one. begun: looks up to this number are too old."""
        while True:
            for queue in self._queues:
                if queue.looked < 0:
                    self._look(queue)
            filled = [queue for queue in self._queues if queue.token is not None]
            if not filled:
                stale = [queue for queue in self._queues if queue.looked <= begun]
                if not stale:
                    return None
            else:
                first = min(filled, key=lambda queue: queue.put)
                if first.looked <= begun:
                    stale = [first]
                else:
                    stale = [queue for queue in self._queues if queue.looked < first.looked]
                if not stale:
                    return first
            for queue in stale:
                self._look(queue)

    def _look(self, queue: _InputQueue) -> None:
        self._looks += 1
        queue.looked = self._looks
        seen = self._connection.glance(queue.handle, first=True)
        queue.token = None if seen is None else seen.token
        queue.put = b"" if seen is None else seen.md[_PUT["PutDate"]] + seen.md[_PUT["PutTime"]]


_log = logging.getLogger("qpubsub.mq")

# MQPMO_*: which context a put sets.
_CONTEXT: Final = {"all": 0x0800, "identity": 0x0400, "default": 0x0020}
_SYNCPOINT: Final = 0x0002


class MqUnit:
    """Messages alone, for links. end: called when it is over, with whether the connection can still be used."""

    has_savepoints = is_alone = is_awaited = False

    def __init__(
        self,
        connection: Connection,
        queues: AttributeCache,
        config: QueuesConfig,
        numbers: Callable[[], int],
        end: Callable[[bool], None],
    ) -> None:
        self._connection, self._queues, self._config = connection, queues, config
        self._numbers, self._end = numbers, end
        self._inputs: tuple[tuple[str, ...], InputQueues] | None = None
        self._is_open, self._failed = True, False

    # Messages

    def get(self, queue: str) -> StoredMessage | None:
        with self._calling(queue):
            got = self._connection.get(self._input(queue), m.MQGMO_SYNCPOINT)
            return None if got is None else self._stored(queue, got)

    def get_next(self, queues: Sequence[str]) -> StoredMessage | None:
        with self._calling(""):
            names = tuple(queues)
            if self._inputs is None or self._inputs[0] != names:
                self._inputs = (names, InputQueues(self._connection, list(self._readable(names))))
            while (taken := self._take(self._inputs[1])) is not None:
                queue, got = taken
                message = self._stored(queue, got)
                if not self._set_aside(queue, message):
                    return message
            return None

    def put(
        self,
        queue: str,
        md: bytes | None,
        body: bytes,
        *,
        time: datetime | None = None,
        user: str | None = None,
        application: str = "",
        expires_at: datetime | None = None,
    ) -> int:
        del time, expires_at  # the queue manager's clock, and the MQMD's Expiry
        return self.put_remote("", queue, md, body, user=user, application=application)

    def put_remote(
        self, qmgr: str, queue: str, md: bytes | None, body: bytes, *, user: str | None = None, application: str = ""
    ) -> int:
        """The same, to a queue of queue manager *qmgr*, or of this one where it is ""."""
        described = default_descriptor(body) if md is None else md
        context = _CONTEXT[self._config.context]
        self._put1(queue, qmgr, self._completed(described, user, application), body, context)
        return 0

    def _put1(self, queue: str, qmgr: str, md: bytes, body: bytes, context: int = 0) -> None:
        try:
            with self._calling(queue):
                self._connection.put1(queue, qmgr, md, body, _SYNCPOINT | context)
        except MqError as error:
            if error.reason == m.MQRC_SYNCPOINT_LIMIT_REACHED:
                # Then commit only the commands before this one; if it is the first, only an administrator can help.
                raise UndeliverableError(f"{error}: MAXUMSGS is too low for all that one command causes") from error
            raise

    def browse(self, queue: str) -> Iterator[StoredMessage]:
        with self._calling(queue):
            handle = self._connection.queue(queue, m.MQOO_BROWSE)
        first = True
        while True:
            with self._calling(queue):
                option = m.MQGMO_BROWSE_FIRST if first else m.MQGMO_BROWSE_NEXT
                got = self._connection.get(handle, option)
            if got is None:
                return
            first = False
            yield self._stored(queue, got)

    def depth(self, queue: str) -> int:
        found = self._queues.look(queue)
        if found is None:
            raise UnknownQueueError(queue)
        with self._calling(queue):
            handle = self._connection.queue(queue, m.MQOO_INQUIRE)
            depth = MQIA_CURRENT_Q_DEPTH
            return int(self._connection.inquire(handle, [depth])[depth])

    def clear_queue(self, queue: str) -> int:
        count = 0
        while self.get(queue) is not None:
            count += 1
        return count

    def find_queue(self, name: str) -> LocalQueue | None:
        with self._calling(name):
            found = self._queues.look(name)
            return None if found is None else found.definition

    def ensure_queue(self, name: str) -> LocalQueue:
        found = self.find_queue(name)
        if found is None:
            raise UnknownQueueError(name)
        return found

    def is_gone(self, name: str) -> bool:
        del name
        return False  # no queue is made by being named there

    def discard_expired(self, now: datetime | None = None) -> int:
        return 0  # the queue manager's own work

    # The unit itself

    def commit(self) -> None:
        self._require_open()
        self._is_open = False
        try:
            self._connection.commit()
        except MqError as error:
            self._end(not isinstance(error, ConnectionLostError))
            raise
        self._end(True)

    def backout(self) -> None:
        self._require_open()
        self._is_open = False
        try:
            self._connection.backout()
        except MqError:
            self._end(False)  # the connection's end backs out as well
            return
        self._end(not self._failed)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self._require_open()
        try:
            yield
        except BaseException:
            self._failed = self._failed or not self._connection.is_up
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_open:
            self.commit() if error is None else self.backout()

    @contextmanager
    def _calling(self, queue: str) -> Iterator[None]:
        """Say whether a failed call is a fault of the queue, or of the connection, which is then ended."""
        self._require_open()
        try:
            yield
        except MqError as error:
            if isinstance(error, ConnectionLostError):
                self._failed = True
                raise
            refused = refusal(queue, error)
            if refused is None:
                raise
            if error.reason == MQRC_UNKNOWN_OBJECT_NAME:
                self._queues.forget(queue)
                raise UnknownQueueError(queue) from error
            raise refused from error

    def _require_open(self) -> None:
        if not self._is_open:
            raise StoreError("this unit of work is over; begin another one")

    # Getting

    @staticmethod
    def _take(inputs: InputQueues) -> tuple[str, Got] | None:
        try:
            return inputs.take()
        except MqError as error:
            if error.reason == m.MQRC_SYNCPOINT_LIMIT_REACHED:
                return None  # this unit of work is as large as it may be; the next one goes on
            raise

    @property
    def inputs(self) -> list[Any]:
        """The handles of the queues that were read."""
        return [] if self._inputs is None else [handle for _, handle in self._inputs[1].handles]

    def _input(self, queue: str) -> Any:
        return self._connection.queue(queue, m.MQOO_INPUT_SHARED | m.MQOO_BROWSE)

    def _readable(self, queues: Sequence[str]) -> Iterator[tuple[str, Any]]:
        for queue in queues:
            found = self._queues.look(queue)
            if found is None or not found.definition.get_enabled:
                continue
            try:
                yield queue, self._input(queue)
            except ConnectionLostError:
                raise
            except MqError as error:
                _log.error("%s is passed over: %s", queue, error)

    def _stored(self, queue: str, got: Got) -> StoredMessage:
        mqmd = Mqmd.decode(got.md)
        return StoredMessage(
            self._numbers(),
            queue,
            put_at(mqmd),
            name_of(mqmd.user_identifier) or None,
            got.md,
            got.body,
            mqmd.persistence == MQPER_PERSISTENT,
            mqmd.priority,
            None,
            mqmd.backout_count,
        )

    def _set_aside(self, queue: str, message: StoredMessage) -> bool:
        """Move a message that was backed out too often to the queue's backout queue (BOTHRESH, BOQNAME)."""
        found = self._queues.look(queue)
        if found is None:
            return False
        threshold, backout_queue = found.definition.backout_threshold, found.definition.backout_queue
        if not threshold or not backout_queue or message.backout_count < threshold:
            return False
        options = _SYNCPOINT | _CONTEXT[self._config.context]
        about = (queue, message.backout_count, backout_queue)
        try:
            self._connection.put1(backout_queue, "", message.md, message.body, options)
        except MqError as error:
            if refusal(backout_queue, error) is None:
                raise
            _log.error("a message on %s was backed out %d times, and %s does not take it: %s", *about, error)
            return False
        _log.error("a message on %s was backed out %d times and is now on %s", *about)
        return True

    def _completed(self, md: bytes, user: str | None, application: str) -> bytes:
        """Set the fields that the queue manager leaves to a program that sets the whole context."""
        if self._config.context != "all":
            return md
        mqmd = Mqmd.decode(md)
        if name_of(mqmd.put_date) and name_of(mqmd.put_time) and name_of(mqmd.user_identifier):
            return md
        now = datetime.now(UTC)
        return replace(
            mqmd,
            user_identifier=mqmd.user_identifier or (user or "")[:12],
            put_appl_type=mqmd.put_appl_type or 6,
            put_appl_name=mqmd.put_appl_name or application[:28],
            put_date=mqmd.put_date or f"{now:%Y%m%d}",
            put_time=mqmd.put_time or f"{now:%H%M%S}{now.microsecond // 10_000:02}",
        ).encode()


class MqWorkUnit(MqUnit):
    """Messages in IBM MQ and state in SQLite, committed in that order and by one decision (``record``)."""

    def __init__(
        self,
        connection: Connection,
        queues: AttributeCache,
        config: QueuesConfig,
        state: LiveState,
        before: UndeliveredBefore,
        knowledge: EmbeddedUnitOfWork,
        end: Callable[[bool], None],
    ) -> None:
        super().__init__(connection, queues, config, state.number, end)
        self._state, self._knowledge = state, knowledge
        self._effects: list[Effect] = []
        self.undelivered = UndeliveredOnQueue(connection, before, self._calling, self._keep, self._is_temporary)

    @property
    def counters(self) -> Counting:
        """In SQLite: a unit of work that a crash cuts off between the two commits is not counted."""
        return self._knowledge.counters

    @property
    def state_version(self) -> int:
        return self._knowledge.state_version

    def load_state(self) -> LoadedState:
        objects, subscriptions, retained = self._knowledge.load_state()
        with self._calling(""):
            objects.qmgr = replace(objects.qmgr, strict=True, deadq=self._queues.dead_letter_queue)
        objects.queues = QueueAttributes(self._queues)
        objects.aliases = {}
        return objects, subscriptions, retained

    def save_effects(self, effects: Iterable[Effect]) -> list[RetainedPublication]:
        kept = [effect for effect in effects if not isinstance(effect, Delivery)]
        self._effects += kept
        return self._knowledge.save_effects(kept)

    def take_ended_subscriptions(self) -> list[bytes]:
        return []  # nobody says that a queue was deleted: the next put to it does

    def save_definition(self, definition: Definition) -> None:
        self._knowledge.save_definition(definition)

    def delete_definition(self, kind: str, name: str) -> None:
        self._knowledge.delete_definition(kind, name)

    def discard_nonpersistent_retained(self) -> int:
        return self._knowledge.discard_nonpersistent_retained()

    def commit(self) -> None:
        self._require_open()
        try:
            if self._effects or self.undelivered.has_changed:
                self._put_record()
            if self.undelivered.has_changed:
                note_undelivered_elsewhere(self._knowledge.database, self.undelivered.overview())
            self._is_open = False
            self._connection.commit()
        except BackedOutError:
            self._over(True)
            raise
        except BaseException:
            # The record says whether MQCMIT happened, when there is a connection again.
            self._over(False)
            raise
        self.undelivered.settle()
        try:
            self._knowledge.commit()
        except BaseException:
            self._end(False)
            raise
        self._end(True)

    def backout(self) -> None:
        with suppress(StoreError):
            self._knowledge.backout()
        super().backout()

    def _over(self, goes_on: bool) -> None:
        self._is_open = False
        with suppress(StoreError):
            self._knowledge.backout()
        self._end(goes_on)

    def _keep(self, md: bytes, body: bytes) -> None:
        self._put1(self._config.owed_queue, "", md, body)

    def _is_temporary(self, queue: str) -> bool:
        found = self.find_queue(queue)
        return found is not None and found.is_temporary

    def _put_record(self) -> None:
        queue = self._config.record_queue
        handle = self._connection.queue(queue, m.MQOO_INPUT_EXCLUSIVE | m.MQOO_BROWSE)
        while self._connection.get(handle, m.MQGMO_SYNCPOINT) is not None:
            pass
        record = UnitRecord(self._state.store, self._state.applied + 1, tuple(self._effects))
        try:
            put_record(self._connection, queue, record)
        except MqError as error:
            if error.reason == m.MQRC_SYNCPOINT_LIMIT_REACHED:
                raise UnitOfWorkFullError(f"{error}: MAXUMSGS is too low for all that one command causes") from error
            raise
        self._state.follow(self._knowledge.database.connection, record.batch)


def put_record(connection: Connection, queue: str, record: UnitRecord) -> None:
    """Put the messages of *record* on *queue*, under syncpoint."""
    md = Mqmd(format=RECORD_FORMAT, persistence=MQPER_PERSISTENT, priority=0).encode()
    for body in record.messages():
        connection.put1(queue, "", md, body, _SYNCPOINT)


# Which of IBM MQ's reasons refuse one put, so that the dead-letter queue may take the message instead.

# The put failed because of the queue or this message: the dead-letter queue may take the message instead.
REFUSED: Final = {
    2001: "it is an alias of an alias",
    2005: "the message is too long for the buffer",
    2010: "the message has an invalid length",
    2013: "its Expiry is invalid",
    2026: "its MQMD is invalid",
    2027: "its ReplyToQ is missing",
    2029: "its MsgType is invalid",
    2030: "the message is longer than the queue's MAXMSGL",
    2031: "the message is longer than the queue manager's MAXMSGL",
    MQRC_NOT_AUTHORIZED: "not authorized to put there with the message's own context, which takes +setall",
    2043: "it is not a queue to put to",
    2047: "its Persistence is invalid",
    2048: "the queue is temporary and the message persistent",
    2050: "its Priority is invalid",
    2051: "putting is inhibited",
    2052: "it has been deleted",
    2053: "it is full",
    2056: "there is no space on disk for it",
    2057: "its queue type is invalid",
    2082: "it is an alias of a queue that does not exist",
    MQRC_UNKNOWN_OBJECT_NAME: "there is no such queue",
    2086: "there is no such queue manager",
    2087: "there is no way to that queue manager",
    2092: "its transmission queue is a queue of another kind",
    2098: "the context of the message may not be set",
    2115: "the queue's transmission queue is unknown",
    2149: "the message is malformed",
    2189: "its cluster cannot be resolved",
    2192: "the storage for it is full",
    2196: "the transmission queue of that queue manager is unknown",
    2197: "the default transmission queue is unknown",
    2198: "the default transmission queue is not local",
    2199: "the default transmission queue is used otherwise",
    2218: "the message is longer than the channel takes",
    2269: "its cluster has no queue for it now",
}


_OF_THE_MESSAGE: Final = frozenset({2005, 2010, 2013, 2026, 2027, 2029, 2030, 2031, 2047, 2048, 2050, 2149})


def refusal(queue: str, error: MqError) -> QueueError | None:
    """What a put's *error* says of *queue*; None where it is no fault of queue or message."""
    why = REFUSED.get(error.reason)
    if why is None:
        return None
    kind = MessageRefusedError if error.reason in _OF_THE_MESSAGE else QueueError
    return kind(error.reason, queue, why)
