"""Calls of a client library for asyncio, from threads that wait for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

T = TypeVar("T")

_LONGEST_STOP_S: Final = 5.0


class LoopThread:
    """A thread with an event loop, from the first call on. name: of the thread."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._starting = threading.Lock()

    def call(self, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """What *work* returns; raises what it raises. After timeout_s it is cancelled: raises TimeoutError."""
        with self._starting:
            if self._thread.ident is None:
                self._thread.start()
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise

    def stop(self, last: Coroutine[Any, Any, None]) -> None:
        """Do *last*, and end the thread, if it has begun. Raises nothing."""
        if not self._thread.is_alive():
            last.close()
            return
        with suppress(Exception):
            self.call(last, _LONGEST_STOP_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_LONGEST_STOP_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.loop.run_until_complete(asyncio.sleep(0))
            self.loop.close()


async def unless(over: asyncio.Future[Any], work: Coroutine[Any, Any, T], error: Exception) -> T:
    """What *work* returns; if *over* is done before it, it is cancelled, and *error* raised."""
    task = asyncio.ensure_future(work)
    try:
        ends: list[asyncio.Future[Any]] = [task, over]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise error
    finally:
        task.cancel()
