"""Ten minutes at full rate: does memory stay flat, is the database bounded, is nothing lost, doubled or out of order?

    python -m tests.soak.soak --minutes 10

``qpubsub run`` works as a process of its own; so do the producers, which keep its queues filled but not overflowing,
and the consumers, for whom they wait. The load is mixed: publications (some retained, some answered), registrations
that come, go and expire, requests, deletions, and messages that are none. Each publication bears its producer and its
number, and the consumer of queue ALL sees to it that every number comes once and in its turn. Not part of any test run:
it prints what it saw.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore
from commands.running.journal import last_status
from rfh2 import decode
from tests.reliability.workload import CONTROL, STREAM, put
from tests.soak.load import ALL, DEAD, OWN, REPLIES, file_size, mixed, worker_of, working_set

DEEP = 3_000
PRODUCERS, AT_ONCE = 2, 50
FORK = multiprocessing.get_context("fork")


def _produce(home: Path, producer: int, over: float, told: Any) -> None:
    chance, number = random.Random(producer), 0
    with QueueManagerStore.open(home, "QM1") as store:
        while time.monotonic() < over:
            if store.depth(STREAM) > DEEP or _behind(store):
                time.sleep(0.02)
                continue
            with store.unit_of_work() as unit:
                for _ in range(AT_ONCE):
                    body = json.dumps([producer, number]).encode().ljust(200)
                    if chance.random() < 0.005:
                        unit.put(STREAM, None, b"RFH \2\0\0\0 this is none")
                    else:
                        number += mixed(unit, producer, body, chance)
    told.put((producer, number))


def _behind(store: QueueManagerStore) -> bool:
    """Whether the consumers are: what the processor has delivered is not to pile up."""
    return sum(store.depth(queue) for queue in (ALL, "HALF") if store.find_queue(queue) is not None) > DEEP


def _consume(home: Path, queues: list[str], stop: Any, told: Any) -> None:
    """Get from *queues* until told to stop and all are empty; ALL's numbers have to come in their turn."""
    wanted, got, wrong = [0] * PRODUCERS, 0, 0
    with QueueManagerStore.open(home, "QM1") as store:
        while True:
            ending, count = stop.is_set(), 0
            for queue in queues:
                with store.unit_of_work() as unit:
                    for _ in range(500 if unit.find_queue(queue) is not None else 0):
                        message = unit.get(queue)
                        if message is None:
                            break
                        count += 1
                        if queue == ALL:
                            producer, number = json.loads(decode(message.body, message.md).body)
                            wrong += number != wanted[producer]
                            wanted[producer] = number + 1
            got += count
            if count == 0:
                if ending:
                    break
                store.wait_for_change(0.2)
    told.put((queues, got, wanted, wrong))


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at everything. Sizes in MB; rss: of the processor."""

    at_s: float
    commands: int
    per_s: float
    rss: float
    database: float
    log: float
    depths: int


def _samples(home: Path, pid: int, seconds: float, every_s: float) -> Iterator[Sample]:
    begun, before, then = time.monotonic(), 0, time.monotonic()
    directory = home / "QM1"
    with QueueManagerStore.open(home, "QM1") as store:
        while (now := time.monotonic()) - begun < seconds:
            time.sleep(min(every_s, seconds - (now - begun)))
            now = time.monotonic()
            commands = last_status(directory)["done"]["commands"]
            rss = working_set(worker_of(pid))
            database, log = (file_size(directory / f"qmgr.sqlite3{suffix}") for suffix in ("", "-wal"))
            depths = sum(store.depth(queue) for queue in store.load_state()[0].queues)
            rate = (commands - before) / (now - then)
            before, then = commands, now
            yield Sample(now - begun, commands, rate, rss / 1e6, database / 1e6, log / 1e6, depths)


@contextmanager
def _processor(home: Path, durability: str) -> Iterator[subprocess.Popen[str]]:
    arguments = ["--quiet", "run", "-m", "QM1", "--home", str(home), "--durability", durability]
    process = subprocess.Popen(
        [sys.executable, "-m", "commands.cli", *arguments],
        stderr=(home / "talk").open("w"),
        text=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _prepare(home: Path) -> None:
    with QueueManagerStore.create(home, QueueManager("QM1")) as store, store.unit_of_work() as unit:
        for topic, queue in (("s/#", ALL), ("s/0/#", "HALF"), ("+/+/7", "FEW")):
            put(unit, CONTROL, f"<Command>RegSub</Command><Topic>{topic}</Topic><QName>{queue}</QName>")


def _is_idle(home: Path) -> bool:
    with QueueManagerStore.open(home, "QM1") as store:
        return store.depth(STREAM) == store.depth(CONTROL) == 0


def soak(home: Path, minutes: float, durability: str, every_s: float) -> int:
    """Run it, print what was seen; 0 where nothing was wrong."""
    _prepare(home)
    stop, told = FORK.Event(), FORK.Queue()
    queues = [[ALL], ["HALF", "FEW", REPLIES, DEAD, *OWN]]
    over = time.monotonic() + minutes * 60
    workers = [FORK.Process(target=_produce, args=(home, p, over, told), daemon=True) for p in range(PRODUCERS)]
    workers += [FORK.Process(target=_consume, args=(home, names, stop, told), daemon=True) for names in queues]
    seen: list[Sample] = []
    with _processor(home, durability) as process:
        for worker in workers:
            worker.start()
        print("   time  commands      /s  rss MB   db MB  wal MB  waiting", flush=True)
        for sample in _samples(home, process.pid, minutes * 60, every_s):
            seen.append(sample)
            print(
                f"{sample.at_s:6.0f}s {sample.commands:9,} {sample.per_s:7,.0f} {sample.rss:7.1f} "
                f"{sample.database:7.1f} {sample.log:7.1f} {sample.depths:8,}",
                flush=True,
            )
        published = dict(told.get(timeout=120) for _ in range(PRODUCERS))
        while not _is_idle(home):
            time.sleep(0.1)
        stop.set()
        consumed = [told.get(timeout=600) for _ in queues]
        rss = working_set(worker_of(process.pid)) / 1e6
    with QueueManagerStore.open(home, "QM1") as store:
        _, subscriptions, retained = store.load_state()
        store.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        (free,) = store.database.connection.execute("PRAGMA freelist_count").fetchone()
        (pages,) = store.database.connection.execute("PRAGMA page_count").fetchone()
    wanted, wrong = next((w, x) for names, _, w, x in consumed if ALL in names)
    print(
        f"{sum(published.values()):,} publications, {sum(got for _, got, _, _ in consumed):,} messages removed; "
        f"numbers out of turn: {wrong}; lost: {sum(published.values()) - sum(wanted)}\n"
        f"processor at the end: {rss:.1f} MB; {len(subscriptions):,} subscriptions, {len(retained):,} retained\n"
        f"database at the end: {file_size(home / 'QM1' / 'qmgr.sqlite3') / 1e6:.1f} MB, {free / pages:.0%} of it free"
    )
    half = seen[len(seen) // 2 :]
    growth = half[-1].rss - half[0].rss
    print(f"processor in the second half: {growth:+.1f} MB")
    return int(bool(wrong) or sum(published.values()) != sum(wanted))


def main() -> None:
    """Read the options and begin."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--durability", choices=("full", "normal"), default="full")
    parser.add_argument("--every", type=float, default=15.0, metavar="SECONDS")
    parser.add_argument("--home", type=Path, help="a new directory; one for the time being where omitted")
    options = parser.parse_args()
    os.environ.setdefault("PYTHONPATH", os.pathsep.join(sys.path))
    with tempfile.TemporaryDirectory() as directory:
        raise SystemExit(soak(options.home or Path(directory), options.minutes, options.durability, options.every))


if __name__ == "__main__":
    main()
