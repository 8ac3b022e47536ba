"""A proxy between a bridge and its tree, in which a test delays, drops and cuts what passes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.commands.links.mosquitto import free_port
from tests.waiting import PATIENCE_S


class Proxy:
    """Passes bytes on between its port and *target*, both on this machine. delay_s: added to everything, each way.

    drops: whether bytes are swallowed; a connection that has lost some must then be cut, as TCP would end it.
    """

    def __init__(self, target: int) -> None:
        self.port, self.target = free_port(), target
        self.delay_s, self.drops = 0.0, False
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._run(asyncio.start_server(self._accepted, "127.0.0.1", self.port))

    def stop(self) -> None:
        self.cut()
        self._run(_end_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)

    def cut(self) -> None:
        """End all connections, without a word to either side."""

        async def cut() -> None:
            for writer in list(self._writers):
                writer.transport.abort()

        self._run(cut())

    def _run(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)  # type: ignore[arg-type]

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back_reader, back_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, back_writer}
        await asyncio.gather(self._pass(reader, back_writer), self._pass(back_reader, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while data := await reader.read(65_536):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                if not self.drops:
                    writer.write(data)
                    await writer.drain()
        writer.transport.abort()
        self._writers.discard(writer)


async def _end_others() -> None:
    """What waits in the loop would complain that the loop has ended."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


@contextmanager
def proxy(target: int) -> Iterator[Proxy]:
    running = Proxy(target)
    running.start()
    try:
        yield running
    finally:
        running.stop()
