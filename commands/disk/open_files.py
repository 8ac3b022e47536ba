"""Open files: as many as the system allows, no more connections than they carry, and a server that has none left.

A server that has no descriptor left for a connection can neither accept nor refuse it: the system would tell it of the
same connection again at once, for ever. So it rests for a moment before it accepts again, and says so once a minute.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

with suppress(ImportError):  # Windows has none, and no queue manager.
    import resource

# Of a server itself: its sockets, the queue manager's files, clients that are being refused or just accepted.
_OWN: Final = 64
_NONE_LEFT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_AT_ONCE: Final = 16
_REST_S: Final = 1.0
_SAID_EVERY_S: Final = 60.0


def raise_limit() -> None:
    """Let this process, and those that it starts, have as many open files as the administrator allows."""
    with suppress(NameError, OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def open_files() -> int | None:
    """How many open files this process may have; None for any number."""
    try:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except NameError:
        return None
    return None if soft == resource.RLIM_INFINITY else soft


def carried(wanted: int, of_each: int, limit: int | None) -> int:
    """How many connections *limit* open files carry, *wanted* at most and one at least. of_each: files of each one."""
    return wanted if limit is None else max(1, min(wanted, (limit - _OWN) // of_each))


class OutOfFiles:
    """Says that nothing can be accepted, once a minute. clock: seconds."""

    def __init__(self, log: logging.Logger, where: str, clock: Callable[[], float]) -> None:
        self._log, self._where, self._clock = log, where, clock
        self._said_at: float | None = None

    def say(self, why: object) -> None:
        """It has happened again."""
        now = self._clock()
        if self._said_at is None or now - self._said_at >= _SAID_EVERY_S:
            self._said_at = now
            text = "%s: no connection can be accepted: %s (limit of open files, LimitNOFILE)"
            self._log.error(text, self._where, why)

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An exception handler of *loop*: asyncio's own servers report each of hundreds of tries, with a traceback."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _NONE_LEFT and "socket" in context:
            self.say(error.strerror)
        else:
            loop.default_exception_handler(context)


class Acceptor:
    """Accepts connections on *sockets*, which listen, until ``close``. made: gets each as a transport's protocol does.

    It accepts a few at a time, so that whoever is refused is gone before many more have come.
    """

    def __init__(
        self, sockets: Sequence[socket.socket], made: Callable[[], asyncio.Protocol], out_of_files: OutOfFiles
    ) -> None:
        self._sockets, self._made, self._out_of_files = sockets, made, out_of_files
        self._loop = asyncio.get_running_loop()
        self._resting: asyncio.TimerHandle | None = None
        self._arriving: set[asyncio.Task[Any]] = set()
        self._read()

    def close(self) -> None:
        """Accept no more, and close the sockets."""
        if self._resting is not None:
            self._resting.cancel()
        for each in self._sockets:
            self._loop.remove_reader(each)
            each.close()

    def _read(self) -> None:
        self._resting = None
        for each in self._sockets:
            self._loop.add_reader(each, self._accept, each)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NONE_LEFT:
                    raise
                self._out_of_files.say(error.strerror)
                for each in self._sockets:
                    self._loop.remove_reader(each)
                self._resting = self._loop.call_later(_REST_S, self._read)
                return
            accepted.setblocking(False)
            task = self._loop.create_task(self._loop.connect_accepted_socket(self._made, accepted))
            self._arriving.add(task)
            task.add_done_callback(self._arriving.discard)


async def listening_sockets(host: str, port: int, waiting: int) -> list[socket.socket]:
    """Sockets that listen at each address of *host*. waiting: how many may wait to be accepted. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((each[0], each[4]) for each in found):
            made = socket.create_server(address[:2], family=family, backlog=waiting)
            made.setblocking(False)
            sockets.append(made)
    except BaseException:
        for each in sockets:
            each.close()
        raise
    return sockets
