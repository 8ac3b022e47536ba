"""A queue manager for programs with asyncio: other tasks do not wait for calls of ``commands.client.queue_manager``.

    async with await connect_async("mq://app@host:1414/QM1?channel=APP.SVRCONN", password="...") as qmgr:
        orders = qmgr.queue("ORDERS")
        async with qmgr.unit_of_work():
            await orders.put("one", properties={"Colour": "red"})
        async for message in orders.messages(wait_s=5):
            print(message.text)

A connection makes its calls in one thread, in the order in which they are asked for. A task that is cancelled ends when
the call under way has ended, half a second later at most. A message that it got nevertheless is not lost: the next get
from that queue gives it, or the unit of work is backed out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from commands.client import pcf, queue_manager as blocking
from commands.client.queue_manager import Message
from rfh2.mqi_constants import MQGMO_SYNCPOINT

_TURN_S: Final = 0.5
T = TypeVar("T")


async def connect_async(url: str, **how: Any) -> QueueManager:
    """Connect, as ``connect``, with its arguments."""
    worker = ThreadPoolExecutor(1, "mq")
    try:
        return QueueManager(await _in(worker, partial(blocking.connect, url, **how)), worker)
    except BaseException:
        worker.shutdown(wait=False)
        raise


async def _in(worker: ThreadPoolExecutor, call: Callable[[], T], keep: Callable[[T], None] | None = None) -> T:
    """The result of *call*, which is not left alone where the task is cancelled: *keep* gets its result then."""
    running = asyncio.get_running_loop().run_in_executor(worker, call)

    def ended(call: asyncio.Future[T]) -> None:
        if call.exception() is None and keep is not None:
            keep(call.result())

    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        running.add_done_callback(ended)
        await asyncio.wait([running])
        raise


class QueueManager:
    """As its namesake: the methods have the same arguments, results and errors."""

    def __init__(self, qmgr: blocking.QueueManager, worker: ThreadPoolExecutor) -> None:
        self.blocking, self._worker = qmgr, worker

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.do(partial(self.blocking.__exit__, kind, error, trace))
        finally:
            self._worker.shutdown(wait=False)

    async def do(self, call: Callable[[], T], keep: Callable[[T], None] | None = None) -> T:
        """The result of any call of ``blocking`` and its objects, in the thread of the connection.

        keep: gets the result where the task is cancelled before.
        """
        return await _in(self._worker, call, keep)

    async def close(self) -> None:
        """Disconnect."""
        await self.__aexit__(None, None, None)

    @asynccontextmanager
    async def unit_of_work(self) -> AsyncIterator[None]:
        """Puts and gets in this block are committed at its end, or backed out after an error."""
        unit = self.blocking.unit_of_work()
        await self.do(unit.__enter__)
        try:
            yield
        except BaseException as error:
            await self.do(partial(unit.__exit__, type(error), error, error.__traceback__))
            raise
        await self.do(partial(unit.__exit__, None, None, None))

    def queue(self, name: str, **how: Any) -> Queue:
        """A queue, which its first call opens."""
        return Queue(self, self.blocking.queue(name, **how))

    async def put(self, queue: str, data: bytes | str, **how: Any) -> bytes:
        """Put one message; its MsgId."""
        return await self.do(partial(self.blocking.put, queue, data, **how))

    async def publish(self, topic: str, data: bytes | str, **how: Any) -> bytes:
        """Put one message on *topic*; its MsgId."""
        return await self.do(partial(self.blocking.publish, topic, data, **how))

    @asynccontextmanager
    async def subscribe(self, topic: str, **how: Any) -> AsyncIterator[Queue]:
        """Subscribe to *topic*: the queue of its publications, until the end of the block."""
        made = await self.do(partial(self.blocking.subscribe, topic, **how))
        try:
            yield Queue(self, made.queue)
        finally:
            await self.do(made.__exit__)

    async def pcf(self, command: int, parameters: Mapping[int, pcf.Value] | None = None) -> list[dict[int, Any]]:
        """A command of administration: the parameters of each response."""
        return await self.do(partial(self.blocking.pcf, command, parameters))


class Queue:
    """As its namesake."""

    def __init__(self, qmgr: QueueManager, queue: blocking.Queue) -> None:
        self._qmgr, self.blocking = qmgr, queue
        self._kept: list[Message] = []  # what tasks got that were cancelled

    async def put(self, data: bytes | str, **how: Any) -> bytes:
        """Put a message; its MsgId."""
        return await self._qmgr.do(partial(self.blocking.put, data, **how))

    async def get(self, wait_s: float | None = None, **how: Any) -> Message | None:
        """The next message; None where there is none in *wait_s*, -1 for ever."""
        if self._kept and not how:
            return self._kept.pop(0)
        end_s = 0.0 if wait_s is None else float("inf") if wait_s < 0 else monotonic() + wait_s
        while True:
            turn_s = max(0.0, min(_TURN_S, end_s - monotonic()))
            found = await self._qmgr.do(partial(self.blocking.get, turn_s, **how), self._keep)
            if found is not None or monotonic() >= end_s:
                return found

    def _keep(self, got: Message | None) -> None:
        """*got* is of a task that was cancelled. A unit of work is backed out, and with it what it got."""
        if got is not None and not self._qmgr.blocking.get_options & MQGMO_SYNCPOINT:
            self._kept.append(got)

    async def messages(self, wait_s: float | None = None, **how: Any) -> AsyncIterator[Message]:
        """One message after the other, until none comes in *wait_s*."""
        while (found := await self.get(wait_s, **how)) is not None:
            yield found

    async def inquire(self, selectors: Sequence[int]) -> dict[int, int | str]:
        """MQINQ: values by selector."""
        return await self._qmgr.do(partial(self.blocking.inquire, selectors))

    async def close(self) -> None:
        """MQCLOSE."""
        await self._qmgr.do(self.blocking.close)
