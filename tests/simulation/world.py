"""What the worlds of a simulation share: a home, the bridges in it, and programs that do not give up."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from commands.qmgr.store import Durability, QueueManagerStore
from commands.running.bridge import Bridge
from commands.running.run_settings import RunSettings
from commands.terminal.console import Console
from rfh2.errors import StoreError
from tests.reliability.workload import put
from tests.simulation.kernel import Kernel

HOME: Final = Path("home")
PATIENCE_S: Final = 900.0
"""So long after the last fault everything has arrived."""


class World(Protocol):
    """A plan, and what has to hold at its end. faults: how many there were."""

    @property
    def faults(self) -> int: ...

    def run(self) -> None: ...

    def amiss(self) -> Iterator[str]:
        """What does not hold at the end."""


def bridge_of(qmgr: str, topics: str | None = None) -> Bridge:
    """A bridge that says nothing."""
    console = Console(io.BytesIO(), io.StringIO(), quiet=True)
    return Bridge(console, RunSettings(qmgr=qmgr, home=HOME, topics=topics, durability=Durability.NORMAL))


def until(kernel: Kernel, seconds: float, done: Callable[[], bool], pause_s: float = 0.5) -> bool:
    """Wait at most so long; whether it came true."""
    end = kernel.now + seconds
    while not (found := done()) and kernel.now < end:
        kernel.sleep(pause_s)
    return found


def patiently(kernel: Kernel, act: Callable[[], None]) -> None:
    """Do it as a program does: again, where a stopped process has the database locked."""
    while True:
        with suppress(StoreError):
            act()
            return
        kernel.sleep(1.0)


def put_command(kernel: Kernel, store: QueueManagerStore, queue: str, psc: str, body: bytes = b"") -> None:
    """Put a command; it is tried until it is there."""

    def act() -> None:
        with store.unit_of_work() as unit:
            put(unit, queue, psc, body)

    patiently(kernel, act)
