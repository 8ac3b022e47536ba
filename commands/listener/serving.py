"""A listener that serves until it is asked to end: in this process, or on a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from commands.listener.server import Listener
from rfh2.errors import StoreError


class ListenError(StoreError):
    """A server cannot be started. why: one clause. option: that says where it listens."""

    def __init__(self, where: str, why: str, option: str = "--listen") -> None:
        super().__init__(where, why, option)
        self.where, self.why, self.option = where, why, option

    def __str__(self) -> str:
        return f"cannot listen on {self.where}: {self.why}; choose another with {self.option or '--listen'} HOST:PORT"


async def serve(listener: Listener, ended: asyncio.Event, started: Callable[[int], None]) -> None:
    """Listen until *ended* is set. started: called with the port. Raises ListenError, StoreError."""
    try:
        port = await listener.start()
    except OSError as error:
        await listener.stop()
        raise ListenError(listener.where, error.strerror or str(error)) from error
    started(port)
    try:
        await ended.wait()
    finally:
        await listener.stop()


class ListenerThread:
    """A listener on a thread, for tests and for programs that embed it: ``with ListenerThread(listener) as port``."""

    def __init__(self, listener: Callable[[], Listener]) -> None:
        self._make = listener
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="listener-loop", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None
        self._port = 0
        self._error: BaseException | None = None

    def __enter__(self) -> int:
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self._port

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._ended is not None:
            self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def _run(self) -> None:
        async def run() -> None:
            self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
            await serve(self._make(), self._ended, self._started)

        try:
            asyncio.run(run())
        except BaseException as error:
            self._error = error
            self._ready.set()

    def _started(self, port: int) -> None:
        self._port = port
        self._ready.set()
