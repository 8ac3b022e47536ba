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
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from commands.listener.server import Listener
from commands.listener.serving import ListenError, serve
from commands.running.crashes import MOST_CRASHES, Crashes
from commands.running.supervisor import die_with
from rfh2.errors import QPubSubError

_log: Final = logging.getLogger("qpubsub.listener")
_PAUSE_S: Final = 0.2
_ENDING_S: Final = 10.0


@contextmanager
def listening(make: Callable[[], Listener]) -> Iterator[str]:
    """A listener in a process of its own while inside; gives HOST:PORT.

    Raises ListenError, StoreError where it cannot listen.
    """
    guardian = _Guardian(make)
    where = guardian.start()
    try:
        yield where
    finally:
        guardian.stop()


class _Guardian:
    def __init__(self, make: Callable[[], Listener]) -> None:
        self._make = make
        self._parent, self._child = os.getpid(), 0

    def start(self) -> str:
        """Fork, and wait until the listener listens: where."""
        heard, says = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            os.close(heard)
            code = 1
            try:
                die_with(self._parent)
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
        crashes = Crashes()
        first = True
        while True:
            parent, worker = os.getpid(), os.fork()
            if worker == 0:
                code = 1
                try:
                    die_with(parent)
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
            if not crashes.may_restart():
                _log.error("the listener ended by signal %d, %d times in a minute; it stays down", -code, MOST_CRASHES)
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
