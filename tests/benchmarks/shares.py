"""Publications a second of one workload in four shares, for which one, two and four bridges work.

``python -m tests.benchmarks.shares [--publications N] [--bridges N ...] [--durability full]``

Each publication is for one subscriber. Each bridge may use one processor only, as in a container with one: so the table
says what a bridge more brings, until the machine has no processor left. The home is in PostgreSQL on the same machine,
whose processes may use all processors. The publications are put on the stream queues
while the bridges have their shares and wait (PSMODE(DISABLED)). The time is from PSMODE(ENABLED) until all of them are
delivered.
First, for comparison: all publications in one queue manager, which one ``run`` works for, on one processor too.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from commands.broker.objects import CONTROL_QUEUE
from commands.config.home import PostgresqlHome
from commands.qmgr.store import Durability, QueueManagerStore
from tests.postgresql import empty, postgresql_server
from tests.reliability.workload import put
from tests.shared_workload import BridgeProcess, active_in, board_of, bridge_of, make_workload, stream_of
from tests.waiting import until

SHARES = 4
TOPICS = 500
_BATCH = 1_000


def published(home: PostgresqlHome, names: Sequence[str], publications: int) -> None:
    """Put *publications* on the stream queues of *names*, as many on each."""
    each = publications // len(names)
    for name in names:
        with QueueManagerStore.open(home, name, durability=Durability.NORMAL) as store:
            for first in range(0, each, _BATCH):
                with store.unit_of_work() as unit:
                    for n in range(first, min(first + _BATCH, each)):
                        psc = f"<Command>Publish</Command><Topic>t{n % TOPICS}</Topic><SeqNum>{n}</SeqNum>"
                        put(unit, stream_of(name), psc, b"x" * 200, priority=0)


def rate(home: PostgresqlHome, names: Sequence[str], publications: int, is_spread: Callable[[], bool]) -> float:
    """Publications a second, once *is_spread* says that the bridges have their parts."""
    with ExitStack() as stack:
        stores = {name: stack.enter_context(QueueManagerStore.open(home, name)) for name in names}
        until(is_spread, "the bridges to have their parts")
        until(lambda: all(store.depth(CONTROL_QUEUE) == 0 for store in stores.values()), "the subscriptions")
        for store in stores.values():
            set_psmode(store, "DISABLED")
        published(home, names, publications)
        began = time.perf_counter()
        for store in stores.values():
            set_psmode(store, "ENABLED")
        whole = publications // len(names) * len(names)
        while sum(store.depth(board_of(name)) for name, store in stores.items()) < whole:
            time.sleep(0.02)
        return whole / (time.perf_counter() - began)


def set_psmode(store: QueueManagerStore, psmode: str) -> None:
    """ALTER QMGR PSMODE."""
    with store.unit_of_work() as unit:
        unit.save_definition(replace(unit.queue_manager(), psmode=psmode))


def alone(home: PostgresqlHome, place: Path, publications: int, durability: str) -> float:
    """The same of one queue manager and one ``run``."""
    names = make_workload(home, place, 1)
    words = [sys.executable, "-m", "commands.cli", "-q", "run", "-m", names[0], "--home", home.url]
    limit = lambda: os.sched_setaffinity(0, {_cpu(0)})  # noqa: E731
    process = subprocess.Popen([*words, "--durability", durability], preexec_fn=limit)  # noqa: PLW1509 - no threads
    try:
        return rate(home, names, publications, lambda: active_in(home, names[0]) is not None)
    finally:
        process.terminate()
        process.wait()


def shared(home: PostgresqlHome, place: Path, publications: int, bridges: int, durability: str) -> float:
    """Of four shares, for which *bridges* work."""
    names = make_workload(home, place, SHARES)
    started = [BridgeProcess(home, place, "--durability", durability, cpu=_cpu(n)) for n in range(bridges)]

    def is_spread() -> bool:
        held = [bridge_of(active_in(home, name)) for name in names]
        return all(held.count(each.pid) == SHARES // bridges for each in started)

    try:
        return rate(home, names, publications, is_spread)
    finally:
        for each in started:
            each.end()


def _cpu(number: int) -> int:
    usable = sorted(os.sched_getaffinity(0))
    return usable[number % len(usable)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--publications", type=int, default=200_000)
    parser.add_argument("--bridges", type=int, nargs="+", choices=[1, 2, 4], default=[1, 2, 4])
    parser.add_argument("--durability", choices=["normal", "full"], default="normal")
    asked = parser.parse_args()
    processors = len(os.sched_getaffinity(0))
    print(f"{processors} processors, load {os.getloadavg()[0]:.1f}, commits {asked.durability}")
    print("| | publications/s | times one bridge |")
    print("|---|---|---|")
    settings = {"fsync": "on"} if asked.durability == "full" else {}
    with postgresql_server(**settings) as server, tempfile.TemporaryDirectory() as directory:
        os.environ["XDG_STATE_HOME"] = directory
        home, place = server.home(), Path(directory)
        figure = alone(home, place, asked.publications, asked.durability)
        print(f"| one queue manager, one `run` | {figure:,.0f} | |", flush=True)
        first = 0.0
        for bridges in asked.bridges:
            empty(home)
            figure = shared(home, place, asked.publications, bridges, asked.durability)
            first = first or figure
            name = f"{bridges} bridge{'s' if bridges > 1 else ''}"
            print(f"| {SHARES} shares, {name} | {figure:,.0f} | {figure / first:.2f} |", flush=True)


if __name__ == "__main__":
    main()
