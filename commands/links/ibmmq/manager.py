"""IBM MQ as the queue manager of the processor (``QueueManagerPort``): its queues, and SQLite for the state.

After a connection breaks, the next unit of work connects again; the processor decides how long to wait before that.
Before the first unit of work of a connection, the record says whether the last one was committed (``record``).

The outgoing queue in IBM MQ (``Spool``): got under syncpoint, and committed once the tree has what was got.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Final, Self

from commands.client.errors import ConnectionLostError, MqError
from commands.config.settings import ConfigError, QueuesConfig
from commands.config.urls import Address
from commands.disk.errors import QueueManagerInUseError
from commands.links.engine.spool import Refused, put_dead
from commands.links.ibmmq.channel import connection_to
from commands.links.ibmmq.connection import AttributeCache, Connection
from commands.links.ibmmq.undelivered import LiveState, RecordError, UndeliveredBefore, UnitRecord, read_record
from commands.links.ibmmq.unit import MqUnit, MqWorkUnit, put_record
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.message_table import note_undelivered_elsewhere
from commands.qmgr.store.port import StoredMessage
from rfh2 import mqi_constants as m
from rfh2.errors import StoreError
from streams.operations import Effect

_log = logging.getLogger("qpubsub.mq")

_NUMBERS: Final = 20_000
_NAP_S: Final = 0.05
_RELEASED_S: Final = 5.0


class MqMessages:
    """The messages of IBM MQ alone, for links: units of work without state. Not to be shared between threads."""

    def __init__(self, address: Address, config: QueuesConfig, application: str = "qpubsub") -> None:
        self._connection = connection_to(address, config, application)
        self._queues = AttributeCache(self._connection)
        self._config, self._address = config, address
        self._unit: MqUnit | None = None
        self._count = 0

    @property
    def name(self) -> str:
        """The queue manager's name."""
        return self._address.qmgr

    def unit_of_work(self) -> MqUnit:
        """Begin one, connecting first where there is no connection. Raises MqError."""
        if not self._connection.is_up:
            self._queues.forget()
            self._connection.connect()
        self._unit = MqUnit(self._connection, self._queues, self._config, self._number, self._ended)
        return self._unit

    @property
    def connection(self) -> Connection:
        """The connection, for calls that are no part of the port."""
        return self._connection

    def wait_for_message(self, queue: str, timeout_s: float) -> bool:
        """Wait until there is one on *queue*; whether there is. No unit of work may be open. Raises MqError."""
        if not self._connection.is_up:
            self.unit_of_work().commit()
        try:
            handle = self._connection.queue(queue, m.MQOO_INPUT_SHARED | m.MQOO_BROWSE)
            wait_ms = max(1, int(timeout_s * 1000))
            return self._connection.get(handle, m.MQGMO_BROWSE_FIRST, wait_ms=wait_ms) is not None
        except ConnectionLostError:
            self._connection.disconnect()
            raise

    def close(self) -> None:
        """Disconnect; a unit of work still open is backed out."""
        self._connection.disconnect()

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _ended(self, goes_on: bool) -> None:
        if not goes_on:
            self._connection.disconnect()


class MqQueueManager:
    """IBM MQ with its state in *store*, which is of the same name. Raises ConfigError where it is not."""

    def __init__(self, store: QueueManagerStore, address: Address, config: QueuesConfig) -> None:
        if address.qmgr != store.name:
            why = f"the URL names queue manager {address.qmgr}, not {store.name}"
            raise ConfigError("--queues", why)
        self._store, self._address, self._config = store, address, config
        self._connection = connection_to(address, config)
        self._queues = AttributeCache(self._connection)
        self._state = LiveState(store.database)
        self._before = UndeliveredBefore(config.owed_queue)
        self._unit: MqWorkUnit | None = None

    @property
    def name(self) -> str:
        return self._store.name

    @property
    def connection(self) -> Connection:
        """The connection, for calls that are no part of the port."""
        return self._connection

    def unit_of_work(self) -> MqWorkUnit:
        if not self._connection.is_up:
            self._connect()
        self._state.reserve(_NUMBERS)
        knowledge = self._store.unit_of_work()
        try:
            self._unit = MqWorkUnit(
                self._connection, self._queues, self._config, self._state, self._before, knowledge, self._ended
            )
        except BaseException:
            knowledge.backout()
            raise
        return self._unit

    @contextmanager
    def processor_lock(self) -> Iterator[None]:
        """Be the one processor: on this machine by the lock of the store, elsewhere by the record's queue."""
        with self._store.processor_lock():
            self._connect_in_turn()
            self._warn_of_stranded()
            yield

    def _connect_in_turn(self) -> None:
        """Connect, as soon as the queue manager has noticed that the instance before has ended."""
        end = time.monotonic() + _RELEASED_S
        while True:
            try:
                return self._connect()
            except QueueManagerInUseError:
                if self._store.database.epoch is None or time.monotonic() >= end:
                    raise
                time.sleep(_NAP_S)

    def _warn_of_stranded(self) -> None:
        """Log which embedded queues hold messages: older ones, or messages that MQSC put there."""
        depths = {queue.definition.name: queue.depth for queue in self._store.overview().queues if queue.depth}
        if depths:
            depths_text = ", ".join(f"{name}: {depth}" for name, depth in depths.items())
            text = "messages on embedded queues are not read while the queues are IBM MQ's (%s); see qpubsub get"
            _log.warning(text, depths_text)

    def end_lost_connections(self) -> int:
        return 0  # the queue manager's own work

    def wait_for_change(self, timeout_s: float) -> bool:
        """Wait until there may be a message; look at all queues that a unit of work read, and wait at the first."""
        end = time.monotonic() + timeout_s
        if self._unit is None or not self._connection.is_up:
            time.sleep(timeout_s)
            return True
        handles = self._unit.inputs
        try:
            while (left_s := end - time.monotonic()) > 0:
                if any(self._connection.glance(handle, first=True) is not None for handle in handles):
                    return True
                if handles:
                    wait_ms = max(1, int(min(left_s, _NAP_S) * 1000))
                    option = m.MQGMO_BROWSE_FIRST
                    if self._connection.get(handles[-1], option, wait_ms=wait_ms) is not None:
                        return True
                else:
                    time.sleep(min(left_s, _NAP_S))
        except ConnectionLostError:
            self._connection.disconnect()
            return True
        return False

    def close(self) -> None:
        try:
            self._connection.disconnect()
        finally:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ended(self, goes_on: bool) -> None:
        if not goes_on:
            self._connection.disconnect()

    def _connect(self) -> None:
        self._queues.forget()
        self._connection.connect()
        try:
            self._catch_up()
            self._read_undelivered()
        except BaseException:
            self._connection.disconnect()
            raise
        _log.info("connected to queue manager %s", self._address)

    def _catch_up(self) -> None:
        """Bring SQLite up to date with the record. Raises RecordError, QueueManagerInUseError, StoreError."""
        record, applied = self._read_record(), self._state.applied
        if record is None:
            if applied:
                why = (
                    f"the record of unit of work {applied} is not on {self._config.record_queue}: the queue manager has"
                    " not decided on it yet, or the queue was cleared or is another one"
                )
                raise RecordError(why)
            put_record(self._connection, self._config.record_queue, UnitRecord(self._state.store, 0))
            self._connection.commit()
            return
        if record.store != self._state.store:
            raise RecordError(f"{self._config.record_queue} holds the record of another bridge's state")
        if record.batch == applied:
            return
        if record.batch != applied + 1:
            why = f"the record is of unit of work {record.batch}, the state of {applied}; was one of them restored?"
            raise RecordError(why)
        with self._store.unit_of_work() as unit:
            unit.save_effects(record.effects)
            self._state.follow(unit.database.connection, record.batch)
        _log.warning("unit of work %d was committed by IBM MQ and not here: %s", record.batch, _count(record.effects))

    def _read_undelivered(self) -> None:
        self._before.read(self._connection)
        rows = [(name, each.count, each.since) for name, each in self._before.by_queue.items()]
        if rows or self._store.overview().undelivered:
            with self._store.unit_of_work() as unit:
                note_undelivered_elsewhere(unit.database, rows)

    def _read_record(self) -> UnitRecord | None:
        queue = self._config.record_queue
        try:
            handle = self._connection.queue(queue, m.MQOO_INPUT_EXCLUSIVE | m.MQOO_BROWSE)
        except MqError as error:
            if error.reason == m.MQRC_OBJECT_IN_USE:
                raise QueueManagerInUseError(self.name, f"that has {queue} open") from error
            raise
        bodies: list[bytes] = []
        option = m.MQGMO_BROWSE_FIRST
        while (got := self._connection.get(handle, option)) is not None:
            bodies.append(got.body)
            option = m.MQGMO_BROWSE_NEXT
        return read_record(bodies)


def _count(effects: tuple[Effect, ...]) -> str:
    return f"{len(effects)} missed changes of state were applied"


class MqSpool:
    """The outgoing queue *queue* of IBM MQ. messages: for this spool alone."""

    def __init__(self, messages: MqMessages, queue: str, dead_letter_queue: str) -> None:
        self._messages, self._queue, self._dead = messages, queue, dead_letter_queue
        self._unit: MqUnit | None = None
        self._taken: list[StoredMessage] = []

    @property
    def messages(self) -> MqMessages:
        """The connection, for those whose tree is IBM MQ too: what they do in the unit of work commits with it."""
        return self._messages

    def take(self, limit: int) -> list[StoredMessage]:
        if self._unit is None:
            self._unit = self._messages.unit_of_work()
        while len(self._taken) < limit and (message := self._unit.get(self._queue)) is not None:
            self._taken.append(message)
        return list(self._taken)

    def done(self, refused: Sequence[Refused] = ()) -> None:
        unit, self._unit, self._taken = self._unit, None, []
        if unit is None:
            return
        try:
            for one in refused:
                put_dead(unit, one, self._messages.name, self._dead)
            unit.commit()
        except BaseException:
            with suppress(StoreError):
                unit.backout()
            raise

    def undo(self) -> None:
        unit, self._unit, self._taken = self._unit, None, []
        if unit is not None:
            with suppress(StoreError):
                unit.backout()

    def wait(self, timeout_s: float) -> None:
        self.done()
        self._messages.wait_for_message(self._queue, timeout_s)

    def close(self) -> None:
        self.undo()
        self._messages.close()
