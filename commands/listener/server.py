"""The listener of one queue manager: its socket, its limits, and the worker that all sessions share."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from commands.listener.conversation import Arrivals, Shared
from commands.listener.security import Security
from commands.listener.session import Session
from commands.listener.worker import Worker
from commands.qmgr.store import QueueManagerStore

_log: Final = logging.getLogger("qpubsub.listener")


@dataclass(frozen=True, slots=True)
class ListenerOptions:
    """Where to listen, and how much to bear. sharing: the most conversations on a connection (SHARECNV).

    connections: the most at a time. first_s: how long a connection may take until it is agreed.
    """

    host: str = "127.0.0.1"
    port: int = 1414
    sharing: int = 10
    connections: int = 1000
    first_s: float = 30.0
    tls: ssl.SSLContext | None = None


class Listener:
    """Serves clients from ``start`` to ``stop``. open_store: opens the queue manager, on a thread of the listener's."""

    def __init__(
        self, options: ListenerOptions, name: str, open_store: Callable[[], QueueManagerStore], security: Security
    ) -> None:
        self._options, self._open_store = options, open_store
        self._arrivals = Arrivals()
        self._name, self._security = name, security
        self._sessions: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._worker: Worker | None = None
        self._shared: Shared | None = None

    @property
    def where(self) -> str:
        """HOST:PORT."""
        return f"{self._options.host}:{self._options.port}"

    async def start(self) -> int:
        """Listen; returns the port. Raises OSError, StoreError."""
        self._worker = Worker(self._open_store, self._arrived)
        await self._worker.start()
        # A listener that was killed has left what its programs held open.
        await self._worker.alone(lambda store: store.end_lost_connections())
        self._shared = Shared(self._name, self._worker, self._arrivals, self._security, _new_ids())
        self._server = await asyncio.start_server(
            self._serve, self._options.host, self._options.port, ssl=self._options.tls
        )
        port: int = self._server.sockets[0].getsockname()[1]
        _log.info("listening on %s:%d for queue manager %s", self._options.host, port, self._name)
        return port

    async def stop(self) -> None:
        """Take no more connections, end those that there are, and let go of the queue manager."""
        if self._server is not None:
            self._server.close()
        sessions = list(self._sessions)
        for task in sessions:
            task.cancel()
        await asyncio.gather(*sessions, return_exceptions=True)
        if self._worker is not None and self._worker.is_running:
            holder = None if self._shared is None else self._shared.holder
            if holder is not None:
                await self._worker.alone(lambda _: holder.disconnect())
            await self._worker.stop()

    def _arrived(self, queues: Iterable[str] | None) -> None:
        self._arrivals.wake(queues)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._sessions) >= self._options.connections:
            _log.warning("%d connections: another one was refused", len(self._sessions))
            writer.close()
            return
        task = asyncio.current_task()
        assert task is not None
        assert self._shared is not None
        options = self._options
        self._sessions.add(task)
        task.add_done_callback(self._sessions.discard)
        # Only ``stop`` cancels a session, and waits for its end; to asyncio it would look like a fault.
        with suppress(asyncio.CancelledError):
            await Session(reader, writer, self._shared, options.sharing, options.first_s, os.urandom).run()


def _new_ids() -> Callable[[], bytes]:
    """Makes identifiers of 24 bytes: the end is a count that begins with the time, so that no later one repeats it."""
    last = time.time_ns() // 1000 | 1 << 62

    def new() -> bytes:
        nonlocal last
        last += 1
        return b"AMQ qpubsub     " + last.to_bytes(8, "big")

    return new
