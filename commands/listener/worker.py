"""The work of all connections on the queue manager: one unit of work serves what waits by then.

Connections hand it what to do and wait for the result. Whatever has come while the last unit of work was committed is
done in the next one together, so that many connections share one wait for the disk. A call that fails is backed out
alone. Nobody is answered before the commit.

The work is done on the event loop itself: to hand each call to a thread and back costs more than most calls. What may
wait is done on a thread, and the store is that thread's until it is done: a commit that waits for the disk, a unit of
work that another process does not let begin, and work that begins units of work by itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from commands.disk.errors import StoreBusyError
from commands.listener.gate import Signal, give, new_signal
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
    """Works from ``start`` to ``stop``. The store is used by nobody else.

    arrived: called on the event loop with the queues that have new messages, or None where any may have.
    """

    def __init__(
        self, open_store: Callable[[], QueueManagerStore], arrived: Callable[[Iterable[str] | None], None]
    ) -> None:
        self._open_store, self._arrived = open_store, arrived
        self._jobs: list[_Job] = []
        self._given: Signal | None = None  # what the task waits for
        self._is_ending = False
        self._version, self._look_at = -1, 0.0
        self._thread = ThreadPoolExecutor(1, "listener")
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the queue manager. Raises StoreError."""
        store = await self._on_thread(self._open_store)
        self._task = asyncio.create_task(self._run(store))

    @property
    def is_running(self) -> bool:
        """Whether the queue manager is open."""
        return self._task is not None and not self._task.done()

    async def stop(self) -> None:
        """Finish what was handed over, and close the queue manager."""
        self._is_ending = True
        self._wake()
        if self._task is not None:
            await self._task
        self._thread.shutdown()

    async def do(self, work: Callable[[SqliteUnitOfWork], _Result], lasting: bool = True) -> _Result:
        """The result of *work* in a unit of work, when it is committed. Raises what *work* raises, or StoreError.

        lasting: false for what a power failure may undo, until something later lasts: nobody waits for the disk then.
        """
        return await self._handed(work, False, lasting)  # type: ignore[no-any-return]

    async def alone(self, work: Callable[[QueueManagerStore], _Result]) -> _Result:
        """The result of *work*, which begins and ends units of work itself. Raises what *work* raises."""
        return await self._handed(work, True, True)  # type: ignore[no-any-return]

    def _handed(self, work: Callable[[Any], Any], alone: bool, lasting: bool) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._jobs.append(_Job(work, alone, lasting, future))
        self._wake()
        return future

    def _wake(self) -> None:
        if self._given is not None:
            give(self._given)

    # The task

    def _on_thread(self, work: Callable[[], _Result]) -> asyncio.Future[_Result]:
        return asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _run(self, store: QueueManagerStore) -> None:
        try:
            while self._jobs or not self._is_ending:
                if not self._jobs:
                    await self._wait(store)
                jobs, self._jobs = self._jobs[:_MOST_TOGETHER], self._jobs[_MOST_TOGETHER:]
                for together in _groups(jobs):
                    await self._do(store, together)
                    _answer(together)
                self._look_around(store)
        finally:
            await self._on_thread(store.close)

    async def _wait(self, store: QueueManagerStore) -> None:
        """Wait until there is something to do, and look around meanwhile."""
        loop, given = asyncio.get_running_loop(), new_signal()
        self._given = given
        timer: asyncio.TimerHandle

        def look() -> None:
            nonlocal timer
            self._look_around(store)
            timer = loop.call_later(_POLL_S, look)

        timer = loop.call_later(_POLL_S, look)
        try:
            await given
        finally:
            timer.cancel()
            self._given = None

    def _look_around(self, store: QueueManagerStore) -> None:
        """Tell the connections that wait when another process has committed something, soon after it has."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _POLL_S
        version = store.data_version()
        if version != self._version:
            self._version = version
            self._arrived(None)

    async def _do(self, store: QueueManagerStore, jobs: list[_Job]) -> None:
        try:
            if jobs[0].alone:
                jobs[0].result = await self._on_thread(lambda: jobs[0].work(store))
                return
            lasting = any(job.lasting for job in jobs)
            try:
                unit = store.unit_of_work(lasting, waits=False)
            except StoreBusyError:
                unit = await self._on_thread(lambda: store.unit_of_work(lasting))
            with unit:
                for job in jobs:
                    _do_part(unit, job)
                if lasting:
                    await self._on_thread(unit.commit)
        except Exception as error:
            for job in jobs:
                job.error = error


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
