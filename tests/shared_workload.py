"""A workload in shares, for tests and measurements: queue managers ``S1``, ``S2`` ..., and the bridges that share them.

Share ``S1`` has the queues ``S1.*``: stream ``S1.STREAM`` for topics below ``S1``, and ``S1.BOARD`` of a subscriber.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM, LocalQueue, QueueManager
from commands.config.home import Home, PostgresqlHome
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.opening import processor_of
from streams.topic_objects import QUEUE_NAMELIST, Namelist, TopicObject, Wildcard
from tests.reliability.workload import put

NAME = "WORKLOAD"
FILE = "shares.toml"


def stream_of(qmgr: str) -> str:
    """Its stream queue."""
    return f"{qmgr}.STREAM"


def board_of(qmgr: str) -> str:
    """The queue of its subscriber."""
    return f"{qmgr}.BOARD"


def make_workload(home: Home, place: Path, count: int) -> list[str]:
    """*count* shares in *home*, with the file in *place*; the names of their queue managers. A RegSub waits in each."""
    names = [f"S{number}" for number in range(1, count + 1)]
    tables = [f'[[share]]\nqmgr = "{name}"\nqueues = ["{name}.*"]\n' for name in names]
    (place / FILE).write_text("\n".join([f'name = "{NAME}"\n', *tables]))
    for name in names:
        with QueueManagerStore.create(home, QueueManager(name)) as store, store.unit_of_work() as unit:
            unit.save_definition(LocalQueue(stream_of(name)))
            unit.save_definition(LocalQueue(board_of(name)))
            unit.save_definition(TopicObject(stream_of(name), name, wildcard=Wildcard.BLOCK))
            unit.save_definition(Namelist(QUEUE_NAMELIST, (DEFAULT_STREAM, stream_of(name))))
            to = f"<Topic>{name}/#</Topic><QName>{board_of(name)}</QName>"
            put(unit, CONTROL_QUEUE, f"<Command>RegSub</Command>{to}")
    return names


class BridgeProcess:
    """``qpubsub shares run``, in a session of its own. place: of the file. options: of ``run``.

    cpu: the only processor that it may use.
    """

    def __init__(
        self, home: PostgresqlHome, place: Path, *options: str, lease_s: float = 3.0, cpu: int | None = None
    ) -> None:
        words = ["shares", "run", str(place / FILE), "--home", home.url, "--lease", str(lease_s), "--", *options]
        limit: Callable[[], None] | None = None
        if cpu is not None:
            limit = lambda: os.sched_setaffinity(0, {cpu})  # noqa: E731
        with (place / "bridges.out").open("ab") as talk:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "commands.cli", *words],
                stdout=talk,
                stderr=talk,
                start_new_session=True,
                preexec_fn=limit,  # noqa: PLW1509 - there are no threads yet
            )

    @property
    def pid(self) -> int:
        """Of the bridge, which is the group of all of its processes too."""
        return self.process.pid

    def signal(self, number: signal.Signals, *, alone: bool = False) -> None:
        """Send it to all of its processes, or to the bridge alone."""
        if alone:
            os.kill(self.pid, number)
        else:
            os.killpg(self.pid, number)

    def end(self) -> None:
        """End all of its processes, stopped ones too."""
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
        self.process.wait()


def active_in(home: PostgresqlHome, qmgr: str) -> int | None:
    """The process that works for a share; None where nobody does."""
    holder = processor_of(home, qmgr)
    return int(holder.partition(" ")[0]) if holder else None


def bridge_of(pid: int | None) -> int | None:
    """The bridge that started ``run`` of process *pid*; None where there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[1])
