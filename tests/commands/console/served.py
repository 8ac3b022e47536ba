"""A console that listens, on a thread of the test: for a browser."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from commands.config.access import IsRight
from commands.console.access import ConsoleOptions
from commands.console.server import ConsoleApp, serve
from commands.console.source import Source
from commands.qmgr.store import QueueManagerStore
from commands.terminal.users import groups_of
from tests.waiting import PATIENCE_S


@contextmanager
def served(
    home: Path, write: bool = False, with_history: bool = False, is_right: IsRight | None = None
) -> Iterator[str]:
    """The address of a console on a thread, without its last slash. with_history: ten minutes of made-up totals."""
    options = ConsoleOptions("127.0.0.1", 0, write, is_right)
    source = Source(lambda: QueueManagerStore.open(home, "QM1"), groups_of)
    began = datetime.now(UTC) - timedelta(minutes=10)
    for second in range(120 if with_history else 0):
        totals = {"commands": second * second, "delivered": 3 * second, "errors": second // 40}
        source.history.add(began + timedelta(seconds=5 * second), totals, {"depth": second % 11})
    ports: list[int] = []
    ready, loop, ended = threading.Event(), asyncio.new_event_loop(), asyncio.Event()

    def started(port: int) -> None:
        ports.append(port)
        ready.set()

    app = ConsoleApp("QM1", options, source)
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(app, options, ended, started),))
    thread.start()
    try:
        assert ready.wait(PATIENCE_S)
        yield f"http://127.0.0.1:{ports[0]}"
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()
        source.close()
