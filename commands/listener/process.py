"""The listener beside ``run``: a process of its own, so that neither a hanging command nor its restart touches clients.

    run (supervisor) ── fork ──> listener        on SIGTERM it takes no more connections and ends; it dies with run
                     ── fork ──> worker

A listener that ends by itself is started again, unless it does so many times in a minute.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from commands.listener.server import Listener
from rfh2.errors import QPubSubError, StoreError

_log: Final = logging.getLogger("qpubsub.listener")
_MOST_RESTARTS: Final = 5
_RESTARTS_WITHIN_S: Final = 60.0
_PAUSE_S: Final = 0.2
_ENDING_S: Final = 10.0


class ListenError(StoreError):
    """The listener cannot be started. why: one clause."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(where, why)
        self.where, self.why = where, why

    def __str__(self) -> str:
        return f"cannot listen on {self.where}: {self.why}; choose another with --listen HOST:PORT"


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


@contextmanager
def listening(make: Callable[[], Listener], die_with_parent: Callable[[int], None]) -> Iterator[str]:
    """A listener in a process of its own while inside; gives HOST:PORT. die_with_parent: called in it with our number.

    Raises ListenError, StoreError where it cannot listen.
    """
    guardian = _Guardian(make, die_with_parent)
    where = guardian.start()
    try:
        yield where
    finally:
        guardian.stop()


class _Guardian:
    def __init__(self, make: Callable[[], Listener], die_with_parent: Callable[[int], None]) -> None:
        self._make, self._die_with_parent = make, die_with_parent
        self._parent, self._child = os.getpid(), 0

    def start(self) -> str:
        """Fork, and wait until the listener listens: where."""
        heard, says = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            os.close(heard)
            code = 1
            try:
                self._die_with_parent(self._parent)
                code = self._guard(says)
            finally:
                os._exit(code)
        os.close(says)
        with os.fdopen(heard, "rb") as pipe:
            said = pipe.read()
        where, _, why = said.decode("utf-8", "replace").partition("\n")
        if why or not where:
            os.waitpid(self._child, 0)
            self._child = 0
            raise ListenError(where, why or "it ended at once")
        return where

    def stop(self) -> None:
        """Ask the listener to end, and wait for that; by force where it does not."""
        if not self._child or os.getpid() != self._parent:
            return
        with suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGTERM)
        end = time.monotonic() + _ENDING_S
        while time.monotonic() < end:
            if os.waitpid(self._child, os.WNOHANG)[0]:
                return
            time.sleep(0.02)
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)

    def _guard(self, says: int) -> int:
        """In the child: run listeners, one after the other, until one ends in order."""
        restarts: deque[float] = deque(maxlen=_MOST_RESTARTS)
        first = True
        while True:
            parent, worker = os.getpid(), os.fork()
            if worker == 0:
                code = 1
                try:
                    self._die_with_parent(parent)
                    code = self._listen(says if first else None)
                finally:
                    os._exit(code)
            if first:
                os.close(says)
            first = False
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: _end(worker))  # noqa: B023
            _, status = os.waitpid(worker, 0)
            code = os.waitstatus_to_exitcode(status)
            if code >= 0:
                return code
            restarts.append(time.monotonic())
            if len(restarts) == _MOST_RESTARTS and restarts[-1] - restarts[0] < _RESTARTS_WITHIN_S:
                _log.error("the listener ended by signal %d, %d times in a minute; it stays down", -code, len(restarts))
                return 1
            _log.error("the listener ended by signal %d, and is started again", -code)
            time.sleep(_PAUSE_S)

    def _listen(self, says: int | None) -> int:
        listener = self._make()

        def started(port: int) -> None:
            if says is not None:
                _say(says, f"{listener.where.rpartition(':')[0]}:{port}")

        async def run() -> None:
            ended = asyncio.Event()
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, ended.set)
            await serve(listener, ended, started)

        try:
            asyncio.run(run())
        except QPubSubError as error:
            if says is None:
                _log.error("%s", error)
            elif isinstance(error, ListenError):
                _say(says, f"{error.where}\n{error.why}")
            else:
                _say(says, f"{listener.where}\n{error}")
            return 1
        return 0


def _say(pipe: int, text: str) -> None:
    with os.fdopen(pipe, "wb") as stream:
        stream.write(text.encode())


def _end(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGTERM)


class ListenerThread:
    """The same on a thread, for tests and for programs that embed it: ``with ListenerThread(listener) as port``."""

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
