"""The work of all connections on the queue manager: one unit of work serves what waits by then.

Connections hand it what to do and wait for the result. What has come by then is done in one unit of work. A call that
fails is backed out alone. A program that waits for a message gets it in the unit of work that puts it: one commit, and
one wait for the disk or none, is enough for both. Nobody is answered before the commit, and nobody whose work must
outlast a power failure before the disk has it. That wait is shared: what must last and comes while the disk works is
done together behind that, and the store goes on meanwhile with what need not.

The work is done on the event loop itself: to hand each call to a thread and back costs more than most calls. What may
wait is done on a thread, and the store is that thread's until it is done: a unit of work that another process does not
let begin, and work that begins units of work by itself. The disk has a thread of its own, ``_Disk``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, Generic, NamedTuple, TypeVar

from commands.disk.errors import StoreBusyError
from commands.listener.wire import Signal, give, new_signal
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.database import FAILURES, CommitLog
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2.errors import QPubSubError, StoreError

_log: Final = logging.getLogger("qpubsub.listener")
_MOST_TOGETHER: Final = 256
_POLL_S: Final = 0.02
_AWAY_S: Final = 0.2
# After so many units of work the log is written into the database.
_UNITS_OF_LOG: Final = 400

_Result = TypeVar("_Result")


class Taken(NamedTuple, Generic[_Result]):
    """What came of looking for a message. lasting: whether a power failure must not put it back on its queue."""

    result: _Result
    lasting: bool


def _none(_result: object) -> Iterable[str]:
    return ()


@dataclass(slots=True, eq=False)
class _Job:
    """alone: it begins and ends units of work itself. lasting: whether a power failure must not undo it.

    fills: which queues have more messages by the result. brief: it is alone, and needs no thread.
    """

    work: Callable[[Any], Any]
    alone: bool
    lasting: bool
    future: asyncio.Future[Any]
    fills: Callable[[Any], Iterable[str]] = _none
    brief: bool = False
    result: Any = None
    error: BaseException | None = None


@dataclass(slots=True, eq=False)
class Taking(_Job):
    """Work that looks for a message on *queue*; what gives None is done again when one comes, unless *queue* is "".

    stands: it has been done, and its future is for the message.
    """

    queue: str = ""
    stands: bool = False


class _Disk:
    """A thread that waits for the disk. An executor's futures cost more than most calls.

    done: called on the event loop with what was handed over, and with the error.
    """

    def __init__(self, log: CommitLog, done: Callable[[list[_Job], Exception | None], None]) -> None:
        self._log, self._done, self._loop = log, done, asyncio.get_running_loop()
        self._asked: SimpleQueue[list[_Job] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="listener-disk", daemon=True)
        self._thread.start()

    def sync(self, jobs: list[_Job]) -> None:
        """Wait until what *jobs* did is on the disk."""
        self._asked.put(jobs)

    def stop(self) -> None:
        """End the thread."""
        self._asked.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (jobs := self._asked.get()) is not None:
            failure = None
            try:
                self._log.sync()
            except Exception as error:
                failure = error
            self._loop.call_soon_threadsafe(self._done, jobs, failure)


class Worker:
    """Works from ``start`` to ``stop``. The store is used by nobody else.

    arrived: called on the event loop with the queues that have new messages, or None where any may have. failed: called
    there with the fault that has ended it: then all that it has, or is handed, fails.
    """

    def __init__(
        self,
        open_store: Callable[[], QueueManagerStore],
        arrived: Callable[[Iterable[str] | None], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._open_store, self._arrived, self._failed = open_store, arrived, failed
        self._jobs: list[_Job] = []
        self._in_hand: list[_Job] = []
        self._fault: BaseException | None = None
        self._given: Signal | None = None  # what the task waits for, and so does not use the store
        self._timer: asyncio.TimerHandle | None = None
        self._is_ending = False
        self._version, self._look_at, self._is_away = -1, 0.0, False
        self._thread = ThreadPoolExecutor(1, "listener")
        self._disk: _Disk | None = None
        self._log: CommitLog | None = None
        self._unsynced: list[_Job] = []  # done, and not on the disk
        self._held: list[_Job] = []  # until the disk has what was done before
        self._synced: Signal | None = None  # given when the disk has all; None while it has
        self._standing: dict[str, list[Taking]] = {}  # what looks for a message, by its queue
        self._units = 0
        self._moving: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the queue manager. Raises StoreError."""
        store = await self._on_thread(self._open_store)
        self._log = store.database.take_log()
        self._disk = None if self._log is None else _Disk(self._log, self._disk_has)
        self._task = asyncio.create_task(self._run(store))
        self._task.add_done_callback(self._look_for_fault)

    def _look_for_fault(self, task: asyncio.Task[None]) -> None:
        error = asyncio.CancelledError("it was cancelled") if task.cancelled() else task.exception()
        if error is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self._fault is not None:
            return
        self._fault = error
        standing = chain.from_iterable(self._standing.values())
        for job in (*self._in_hand, *self._jobs, *self._held, *self._unsynced, *standing):
            job.error = _ended_by(error)
            _answer(job)
        if self._task is not None:
            self._task.cancel()
        self._failed(error)

    @property
    def is_running(self) -> bool:
        """Whether the queue manager is open, and what is handed over is done."""
        return self._task is not None and not self._task.done() and self._fault is None

    async def stop(self) -> None:
        """Finish what was handed over, and close the queue manager."""
        self._is_ending = True
        self._wake()
        if self._task is not None:
            await asyncio.wait((self._task,))
        self._thread.shutdown()
        if self._disk is not None:
            self._disk.stop()

    async def do(
        self,
        work: Callable[[EmbeddedUnitOfWork], _Result],
        lasting: bool = True,
        fills: Callable[[_Result], Iterable[str]] = _none,
    ) -> _Result:
        """The result of *work* in a unit of work, when it is committed. Raises what *work* raises, or StoreError.

        lasting: false for what a power failure may undo, until something later lasts: nobody waits for the disk then.
        fills: the queues that have more messages by it. Who waits for them (``take``) gets them in that unit of work.
        """
        return await self._handed(_Job(work, False, lasting, _future(), fills))  # type: ignore[no-any-return]

    def take(
        self,
        queue: str,
        work: Callable[[EmbeddedUnitOfWork], Taken[_Result] | None],
        lasting: bool,
        fills: Callable[[_Result], Iterable[str]],
        tries: bool = True,
    ) -> Taking:
        """Have *work* look for a message on *queue*; its future gives what *work* took, or None, and then waits anew.

        From then on *work* is done again whenever a message may have come, until it takes one, or ``withdraw`` is
        called. queue: "" for what does not wait. lasting: whether what *work* takes may have to last. fills: as ``do``.
        tries: false for what has looked already, so that its future is for the message at once.
        """
        job = Taking(work, False, lasting, _future(), fills, queue=queue, stands=not tries)
        if tries or self._fault is not None:
            self._handed(job)
        else:
            self._stand(job)
        return job

    def withdraw(self, job: Taking) -> None:
        """Have *job* wait no longer: its future gives what it took, or None."""
        stood = self._unstand(job)
        job.queue = ""
        if stood:
            _answer(job)

    def retry(self, queues: Iterable[str] | None) -> None:
        """There may be messages on *queues*, None for any, that no unit of work of this process has put there."""
        for queue in list(self._standing) if queues is None else queues:
            self._jobs += self._standing.pop(queue, ())
        self._wake()

    async def alone(self, work: Callable[[QueueManagerStore], _Result], brief: bool = False) -> _Result:
        """The result of *work*, which begins and ends units of work itself. Raises what *work* raises.

        brief: it waits for nothing, and takes no longer than a unit of work does.
        """
        return await self._handed(_Job(work, True, True, _future(), brief=brief))  # type: ignore[no-any-return]

    def _handed(self, job: _Job) -> asyncio.Future[Any]:
        if self._fault is not None:
            job.error = _ended_by(self._fault)
            _answer(job)
        elif job.lasting and not job.alone and self._synced is not None:
            self._held.append(job)
        else:
            self._jobs.append(job)
            self._wake()
        return job.future

    def _wake(self) -> None:
        if self._given is not None:
            give(self._given)

    # The task

    def _on_thread(self, work: Callable[[], _Result]) -> asyncio.Future[_Result]:
        return asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _run(self, store: QueueManagerStore) -> None:
        self._tick(store)
        try:
            while self._jobs or self._held or not self._is_ending:
                if not self._jobs:
                    self._given = new_signal()
                    await self._given
                    self._given = None
                await self._gather()
                jobs, self._jobs = self._jobs[:_MOST_TOGETHER], self._jobs[_MOST_TOGETHER:]
                self._in_hand = jobs
                for together in _groups(jobs):
                    self._done(await self._do(store, together))
                self._look_around(store)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._moving is not None:
                self._moving.cancel()
            if self._synced is not None:
                await self._synced
            await self._on_thread(store.close)

    async def _gather(self) -> None:
        """Let those come whose calls are being read: a commit costs as much as several calls."""
        count = 0
        while count < len(self._jobs) < _MOST_TOGETHER:
            count = len(self._jobs)
            await asyncio.sleep(0)

    def _tick(self, store: QueueManagerStore) -> None:
        self._timer = asyncio.get_running_loop().call_later(_POLL_S, self._tick, store)
        if self._given is not None:
            try:
                self._look_around(store)
            except Exception as error:  # nobody would see that other processes put messages
                self._fail(error)

    def _look_around(self, store: QueueManagerStore) -> None:
        """Tell the connections that wait when another process has committed something, soon after it has.

        Where the database is away, those that call are told so.
        """
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _POLL_S
        try:
            version = store.data_version()
        except StoreError as error:
            self._look_at = time.monotonic() + _AWAY_S
            if not self._is_away:
                _log.error("%s", error)
            self._is_away = True
            return
        self._is_away = False
        if version != self._version:
            self._version = version
            self.retry(None)
            self._arrived(None)

    async def _do(self, store: QueueManagerStore, jobs: list[_Job]) -> list[_Job]:
        """Do *jobs*; returns them, and what has waited for their messages and is done by that."""
        looked: list[Taking] = []
        try:
            if jobs[0].brief:
                jobs[0].result = jobs[0].work(store)
                return jobs
            if jobs[0].alone:
                jobs[0].result = await self._on_thread(lambda: jobs[0].work(store))
                return jobs
            log, lasting = self._log, self._log is None and any(job.lasting for job in jobs)
            try:
                unit = store.unit_of_work(lasting, waits=False)
            except StoreBusyError:
                unit = await self._on_thread(lambda: store.unit_of_work(lasting))
            with unit:
                for job in jobs:
                    filled = self._do_part(unit, job)
                    # What is got there may have to last, which a unit of work without a log says when it begins.
                    if log is None and not lasting:
                        self.retry(filled)
                    elif filled:
                        self._serve(unit, filled, looked)
                if lasting:
                    await self._on_thread(unit.commit)
            self._units += 1
            if log is not None and self._units >= _UNITS_OF_LOG and (self._moving is None or self._moving.done()):
                self._units, self._moving = 0, asyncio.create_task(self._move(log))
        except Exception as error:
            failure = store.database.translated(error) if isinstance(error, FAILURES) else error
            for job in jobs:
                job.error = failure
                if isinstance(job, Taking):
                    self._unstand(job)
            for taking in looked:  # what they took is not there, and their programs are not to blame
                if taking not in jobs:
                    self._unstand(taking)
                    taking.result, taking.error, taking.queue = None, None, ""
        return [*dict.fromkeys((*jobs, *looked))]

    def _do_part(self, unit: EmbeddedUnitOfWork, job: _Job) -> list[str]:
        """Do *job*; the queues that have more messages by it."""
        try:
            with unit.savepoint():
                job.result = job.work(unit)
        except (QPubSubError, *FAILURES) as error:
            if not unit.is_open:
                raise
            job.error = unit.database.translated(error) if isinstance(error, FAILURES) else error
        if isinstance(job, Taking):
            taken: Taken[Any] | None = job.result
            if taken is not None:
                job.result, job.lasting = taken
            elif job.error is None and job.queue:
                self._stand(job)
        return [] if job.error is not None else list(job.fills(job.result))

    def _stand(self, job: Taking) -> None:
        self._standing.setdefault(job.queue, []).append(job)

    def _unstand(self, job: Taking) -> bool:
        standing = self._standing.get(job.queue, [])
        if job not in standing:
            return False
        standing.remove(job)
        if not standing:
            del self._standing[job.queue]
        return True

    def _serve(self, unit: EmbeddedUnitOfWork, filled: list[str], looked: list[Taking]) -> None:
        """Have those look again who wait for messages on the queues *filled*; adds them to those who have *looked*."""
        while filled:
            looking = self._standing.pop(filled.pop(), [])
            looked += looking
            self._in_hand = [*self._in_hand, *looking]
            for job in looking:
                more = self._do_part(unit, job)
                if job.result is not None or job.error is not None:
                    filled += more

    def _done(self, jobs: list[_Job]) -> None:
        """Answer what need not wait for the disk, and have it write what must."""
        for job in jobs:
            if isinstance(job, Taking) and job.result is None and job.error is None:
                if not job.stands:
                    _answer(job)
                    job.stands, job.future = True, _future()
                elif not job.queue:
                    _answer(job)
            elif job.lasting and not job.alone and job.error is None and self._disk is not None:
                self._unsynced.append(job)
            else:
                _answer(job)
        if self._unsynced and self._synced is None:
            self._synced = new_signal()
            self._sync()

    async def _move(self, log: CommitLog) -> None:
        """Write the log into the database: while others work, what came meanwhile, and the little that is then left."""
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(None, log.checkpoint)
            await loop.run_in_executor(None, log.checkpoint)
            await self.alone(lambda _: log.checkpoint())
        except Exception as error:
            is_fault = not isinstance(error, (StoreError, *FAILURES))
            _log.warning("the write-ahead log grows: %s", error, exc_info=is_fault)

    def _sync(self) -> None:
        assert self._disk is not None
        jobs, self._unsynced = self._unsynced, []
        self._disk.sync(jobs)

    def _disk_has(self, jobs: list[_Job], error: Exception | None) -> None:
        """The disk has what *jobs* did, or *error* says why not: answer them, and go on with what waited for that."""
        for job in jobs:
            job.error = error
            _answer(job)
        self._jobs += self._held
        self._held = []
        self._wake()
        if self._unsynced:
            self._sync()
        elif self._synced is not None:
            give(self._synced)
            self._synced = None


def _groups(jobs: list[_Job]) -> Iterable[list[_Job]]:
    together: list[_Job] = []
    for job in jobs:
        if job.alone:
            if together:
                yield together
                together = []
            yield [job]
        else:
            together.append(job)
    if together:
        yield together


def _ended_by(fault: BaseException) -> StoreError:
    return StoreError(f"the listener ends by a fault: {fault!r}")


def _future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


def _answer(job: _Job) -> None:
    if job.future.done():
        return
    if job.error is not None:
        job.future.set_exception(job.error)
    else:
        job.future.set_result(job.result)
