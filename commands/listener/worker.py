"""The thread that works on the queue manager, for all connections: one unit of work serves what waits by then.

Connections hand it what to do and wait for the result. Whatever has come while the last unit of work was committed is
done in the next one together, so that many connections share one wait for the disk. A call that fails is backed out
alone. Nobody is answered before the commit.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.unit_of_work import SqliteUnitOfWork
from rfh2.errors import QPubSubError

_MOST_TOGETHER: Final = 256
_POLL_S: Final = 0.02

_Result = TypeVar("_Result")


@dataclass(slots=True)
class _Job:
    """alone: it begins and ends units of work itself. lasting: whether a power failure must not undo it."""

    work: Callable[[Any], Any]
    alone: bool
    lasting: bool
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


class Worker:
    """Runs on a thread of its own from ``start`` to ``stop``. store: to be used by that thread alone.

    arrived: called on the event loop with the queues that have new messages, or None where any may have.
    """

    def __init__(
        self, open_store: Callable[[], QueueManagerStore], arrived: Callable[[Iterable[str] | None], None]
    ) -> None:
        self._open_store, self._arrived = open_store, arrived
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._version, self._look_at = -1, 0.0
        self._thread = threading.Thread(target=self._run, name="listener", daemon=True)
        self._ready: asyncio.Future[None] = self._loop.create_future()

    async def start(self) -> None:
        """Open the queue manager. Raises StoreError."""
        self._thread.start()
        await self._ready

    @property
    def is_running(self) -> bool:
        """Whether the queue manager is open."""
        return self._thread.is_alive() and self._ready.done() and self._ready.exception() is None

    async def stop(self) -> None:
        """Finish what was handed over, and close the queue manager."""
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    async def do(self, work: Callable[[SqliteUnitOfWork], _Result], lasting: bool = True) -> _Result:
        """The result of *work* in a unit of work, when it is committed. Raises what *work* raises, or StoreError.

        lasting: false for what a power failure may undo, until something later lasts: nobody waits for the disk then.
        """
        return await self._handed(work, False, lasting)  # type: ignore[no-any-return]

    async def alone(self, work: Callable[[QueueManagerStore], _Result]) -> _Result:
        """The result of *work*, which begins and ends units of work itself. Raises what *work* raises."""
        return await self._handed(work, True, True)  # type: ignore[no-any-return]

    async def _handed(self, work: Callable[[Any], Any], alone: bool, lasting: bool) -> Any:
        future: asyncio.Future[Any] = self._loop.create_future()
        self._jobs.put(_Job(work, alone, lasting, future))
        return await future

    # On the thread

    def _run(self) -> None:
        try:
            store = self._open_store()
        except BaseException as error:
            self._loop.call_soon_threadsafe(self._ready.set_exception, error)
            return
        self._loop.call_soon_threadsafe(self._ready.set_result, None)
        with store:
            while True:
                jobs, ended = self._next(store)
                for together in _groups(jobs):
                    self._do(store, together)
                self._look_around(store)
                if ended:
                    return

    def _look_around(self, store: QueueManagerStore) -> None:
        """Tell the connections that wait when another process has committed something, soon after it has."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _POLL_S
        version = store.data_version()
        if version != self._version:
            self._version = version
            self._loop.call_soon_threadsafe(self._arrived, None)

    def _next(self, store: QueueManagerStore) -> tuple[list[_Job], bool]:
        """What waits, once something does, and whether nothing comes after it."""
        while True:
            try:
                first = self._jobs.get(timeout=_POLL_S)
                break
            except Empty:
                self._look_around(store)
        jobs: list[_Job] = []
        while first is not None:
            jobs.append(first)
            if len(jobs) == _MOST_TOGETHER:
                return jobs, False
            try:
                first = self._jobs.get_nowait()
            except Empty:
                return jobs, False
        return jobs, True

    def _do(self, store: QueueManagerStore, jobs: list[_Job]) -> None:
        try:
            if jobs[0].alone:
                jobs[0].result = jobs[0].work(store)
            else:
                with store.unit_of_work(any(job.lasting for job in jobs)) as unit:
                    for job in jobs:
                        _do_part(unit, job)
        except Exception as error:
            for job in jobs:
                job.error = error
        self._loop.call_soon_threadsafe(_answer, jobs)


def _do_part(unit: SqliteUnitOfWork, job: _Job) -> None:
    try:
        with unit.savepoint():
            job.result = job.work(unit)
    except QPubSubError as error:
        if not unit.is_open:
            raise
        job.error = error


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


def _answer(jobs: list[_Job]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)
