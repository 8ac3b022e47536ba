"""A program's connection to the embedded queue manager: the queues that it has open, and their end.

    with store.connect() as connection:
        reply = connection.open("SYSTEM.DEFAULT.MODEL.QUEUE", "MY.REPLY.*")    # reply.name: MY.REPLY.6921F3A500000007
        ...
        connection.close(reply)                                                # a temporary dynamic queue goes with it

To open or close a queue is not part of a unit of work of the program: each has its own, so none may be open. The lock
of a connection shows whether its program ended without closing it (``QueueManagerStore.end_lost_connections``).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Final, Protocol, Self

from commands.disk.errors import QueueError, UnknownQueueError
from commands.qmgr.store.database import Database
from commands.qmgr.store.state_table import Close
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2.mqi_constants import MQRC_HOBJ_ERROR, MQRC_Q_DELETED

DYNAMIC_NAME: Final = "AMQ.*"


@dataclass(frozen=True, slots=True)
class OpenQueue:
    """A handle. name: of the queue, the dynamic one where a model queue was opened. made: whether opening made it."""

    handle: int
    name: str
    made: bool


class _Store(Protocol):
    @property
    def database(self) -> Database: ...
    def unit_of_work(self) -> EmbeddedUnitOfWork: ...


class ProgramConnection:
    """One program's; made by ``QueueManagerStore.connect``. Not to be shared between threads."""

    def __init__(self, store: _Store) -> None:
        self._store = store
        self._number: int | None = None  # of the connection, once it holds anything
        self._given_in: EmbeddedUnitOfWork | None = None  # the unit of work that gave it, if that may have failed
        self._losses = 0  # of the database, when the number was there
        self._open: dict[int, OpenQueue] = {}
        self._handles = 0

    def open(self, queue: str, dynamic_name: str = DYNAMIC_NAME, owner: str = "") -> OpenQueue:
        """Open a queue; of a model queue a new dynamic one (MQOPEN).

        dynamic_name: the new queue's name; one that ends in ``*`` gets a unique end. owner: its user. Raises
        UnknownQueueError (2085), QueueError 2011 for a *dynamic_name* that is none, 2100 for one that is taken,
        StoreError.
        """
        held = self._number
        try:
            with self._store.unit_of_work() as unit:
                model = unit.dynamic.model(queue)
                if model is not None:
                    name = unit.dynamic.make(model, dynamic_name, self.number(unit), owner).name
                elif unit.find_queue(queue) is None:
                    raise UnknownQueueError(queue)
                else:
                    name = queue
        except BaseException:
            if self._number != held:
                self._let_go()  # the number was backed out, and may now belong to another connection
            raise
        self._handles += 1
        opened = self._open[self._handles] = OpenQueue(self._handles, name, model is not None)
        return opened

    def adopted(self, queue: str) -> OpenQueue:
        """A handle of a permanent dynamic queue that now goes with this connection (``DynamicQueues.adopt``)."""
        self._handles += 1
        opened = self._open[self._handles] = OpenQueue(self._handles, queue, made=True)
        return opened

    def close(self, queue: OpenQueue, option: Close = Close.NONE) -> bool:
        """Close a queue (MQCLOSE); whether it was deleted.

        Raises QueueError 2019 where it is not open, 2045 and 2055 as ``dynamic_queues`` says: then it stays open, and
        2052 where it was deleted meanwhile: then it is not open any more.
        """
        if self._open.get(queue.handle) != queue:
            raise QueueError(MQRC_HOBJ_ERROR, queue.name, "it is not open")
        try:
            with self._store.unit_of_work() as unit:
                gone = unit.dynamic.close(queue.name, queue.made, option)
        except UnknownQueueError as error:
            del self._open[queue.handle]
            raise QueueError(MQRC_Q_DELETED, queue.name, "it has been deleted") from error
        del self._open[queue.handle]
        return gone

    def number(self, unit: EmbeddedUnitOfWork) -> int:
        """The connection's own number, the owner of its messages in ``uncommitted``.

        Another one than before, where the unit of work that gave it failed, or the database has lost it in a crash.
        """
        losses = self._store.database.losses
        if self._number is not None and (self._given_in not in (None, unit) or self._losses != losses):
            if unit.dynamic.is_connected(self._number) and self._store.database.has_lock(self._number):
                self._given_in, self._losses = None, losses
            else:
                self._let_go()
        if self._number is None:
            self._given_in, self._losses = unit, losses
            return self._locked(unit.dynamic.connect())
        return self._number

    def disconnect(self) -> None:
        """End the connection (MQDISC): its temporary dynamic queues go, others stay. Again is no error."""
        self._open.clear()
        if self._number is not None:
            with self._store.unit_of_work() as unit:
                unit.uncommitted.end(str(self._number))
                unit.dynamic.disconnect(self._number)
        self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.disconnect()

    def _let_go(self) -> None:
        if self._number is not None:
            self._store.database.unlock(self._number)
            self._number = None

    def _locked(self, number: int) -> int:
        # Lock before another process can read the number: a number without a lock counts as lost.
        self._store.database.lock(number)
        self._number = number
        return number
