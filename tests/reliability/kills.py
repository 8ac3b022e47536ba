"""kill -9 at random moments: of the processor, of ``qpubsub run``, of ``put`` and of ``get``.

Each process that is killed is a forked child, so that a kill costs milliseconds and there can be hundreds of them. At
the end every queue, subscription and retained publication are those of a run that nobody killed. What ``put`` and
``get`` promise is said where they are killed.
"""

from __future__ import annotations

import io
import json
import logging
import os
import random
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from commands.broker.objects import QueueManager
from commands.cli import main, run  # noqa: F401 - the verbs before the forks: loading them is not what is to be killed
from commands.qmgr.store import QueueManagerStore
from commands.running import bridge
from commands.terminal.console import Console
from rfh2 import CapturedMessage, Mqmd
from tests.reliability.figures import Table
from tests.reliability.workload import create, drain, everything, waiting

PUT_AT_ONCE, GET_AT_ONCE, RUN_AT_ONCE = 1_000, 100, 50

COLUMNS = ("killed", "kills", "messages", "of the kills", "at the end")


@dataclass(frozen=True, slots=True)
class Size:
    """How much is killed: kills that have to fall into the work, and messages."""

    kills: int
    messages: int


def killed_after(delay_s: float, work: Callable[[], None]) -> bool:
    """Do *work* in a child, and kill it *delay_s* after it began; whether it was still at work."""
    child = begun(work)
    time.sleep(delay_s)
    os.kill(child, signal.SIGKILL)
    return not ended(child)


def time_of(work: Callable[[], None]) -> float:
    """Do *work* in a child, to its end; how many seconds it takes."""
    start = time.monotonic()
    ended(begun(work))
    return time.monotonic() - start


def begun(work: Callable[[], None]) -> int:
    """A child at work; its process id."""
    ready, started = os.pipe()
    child = os.fork()
    if child == 0:
        logging.disable()
        code = 1
        try:
            os.write(started, b"!")
            work()
            code = 0
        except SystemExit as ended:
            code = 0 if ended.code in (0, 1) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.read(ready, 1)
    os.close(ready)
    os.close(started)
    return child


def ended(child: int) -> bool:
    """Whether it came to its end; False where it was killed."""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code > 0:
        raise AssertionError("the process that was to be killed failed by itself")
    return code == 0


class Moments:
    """When to kill: any time between the first work of a process and what it can do in its turn of *kills* turns."""

    def __init__(self, idle_s: float, work_s: float, kills: int, chance: random.Random) -> None:
        self._earliest, self._latest = 0.7 * idle_s, idle_s + 1.4 * work_s / kills
        self._chance = chance

    def next(self) -> float:
        """Seconds after its beginning."""
        return self._chance.uniform(self._earliest, self._latest)


def verb(*arguments: str, stdout: BinaryIO | None = None) -> Callable[[], None]:
    """The work of one verb of the command line."""

    def work() -> None:
        main(list(arguments), obj=Console(stdout or io.BytesIO(), io.StringIO()))

    return work


def of_the_processor(directory: Path, size: Size, seed: int) -> Table:
    """Killed while it commits every seventh command: between get and commit, and while the log is written back."""
    return _interrupted("the processor, commits of 7", directory, size, seed, lambda home: lambda: drain(home, 7))


def of_run(directory: Path, size: Size, seed: int) -> Table:
    """``qpubsub run``, as a person runs it."""

    def work(home: Path) -> Callable[[], None]:
        processing = verb("run", "-m", "QM1", "--home", str(home), "--once")

        def with_small_commits() -> None:
            bridge.BATCH = RUN_AT_ONCE  # 1,000 would leave few moments to choose from
            processing()

        return with_small_commits

    return _interrupted(f"`run`, commits of {RUN_AT_ONCE}", directory, size, seed, work)


def _interrupted(
    what: str, directory: Path, size: Size, seed: int, work: Callable[[Path], Callable[[], None]]
) -> Table:
    """The same load on two queue managers, one of which is killed again and again until all is done."""
    whole, home = directory / "whole", directory / "killed"
    for each in (whole, home):
        create(each, size.messages, seed)
    work_s = time_of(work(whole))
    idle_s = time_of(work(whole))
    moments = Moments(idle_s, work_s - idle_s, size.kills, random.Random(seed))
    kills = fruitful = 0
    left = waiting(home)
    while kills < size.kills and left:
        kills += killed_after(moments.next(), work(home))
        left, before = waiting(home), left
        fruitful += left < before
    time_of(work(home))
    expected, found = everything(whole), everything(home)
    places = sorted({*expected, *found})
    broken = [f"{what}: {place} differs" for place in places if expected.get(place) != found.get(place)]
    # How long the work takes is guessed from two runs; a busy machine may be quicker or slower a moment later.
    if kills < size.kills // 3:
        broken.append(f"{what}: only {kills} kills fell into the work")
    counted = f"{fruitful:,} times with commits, {left:,} commands left for the last run"
    row = (what, f"{kills:,}", f"{size.messages:,}", counted, "differs" if broken else "equal")
    return Table("Kills", COLUMNS, [row], broken)


def _numbered(count: int) -> list[CapturedMessage]:
    md = Mqmd(format="MQSTR", persistence=1).encode().hex()
    return [CapturedMessage(seq=n, queue="Q", md_hex=md, body_hex=(b"%d" % n).hex()) for n in range(1, count + 1)]


def _on_queue(home: Path) -> list[int]:
    with QueueManagerStore.open(home, "QM1") as store:
        return [] if store.find_queue("Q") is None else [int(message.body) for message in store.browse("Q")]


def of_put(directory: Path, size: Size, seed: int) -> Table:
    """``put`` puts 1,000 messages, or 16 MB, in one unit of work: killed, it has put whole such batches, in order.

    What it had not said that it had put may be there all the same, so whoever starts it again begins behind what is on
    the queue.
    """
    capture = directory / "capture.jsonl"
    messages = _numbered(size.messages)
    capture.write_text("".join(message.model_dump_json() + "\n" for message in messages))
    empty = directory / "empty"
    QueueManagerStore.create(empty, QueueManager("QM1")).close()
    idle_s = time_of(verb("put", "-m", "QM1", "--home", str(empty), "Q", os.devnull))
    work_s = time_of(verb("put", "-m", "QM1", "--home", str(empty), "Q", str(capture)))
    moments = Moments(idle_s, work_s - idle_s, 1, random.Random(seed))
    kills, between, broken = 0, 0, []
    for number in range(size.kills):
        home = directory / f"put-{number}"
        QueueManagerStore.create(home, QueueManager("QM1")).close()
        kills += killed_after(moments.next(), verb("put", "-m", "QM1", "--home", str(home), "Q", str(capture)))
        there = _on_queue(home)
        between += 0 < len(there) < size.messages
        whole = len(there) % PUT_AT_ONCE == 0 or len(there) == size.messages
        if there != list(range(1, len(there) + 1)) or not whole:
            broken.append(f"put: {len(there)} messages on the queue, from {there[:1]} to {there[-1:]}")
        shutil.rmtree(home)
    end = "differs" if broken else "whole batches, in order"
    row = ("`put`", f"{kills:,}", f"{size.messages:,} each time", f"{between:,} times with a part of them put", end)
    return Table("Kills", COLUMNS, [row], broken)


def of_get(directory: Path, size: Size, seed: int) -> Table:
    """``get`` writes 100 messages, flushes them, then commits: killed, each message is on the queue or was written.

    Those of one batch may be both: written, and still on the queue, for the next ``get`` to write again. Of the last
    line only a part may be there; that message is on the queue.
    """
    home, output = directory / "get", directory / "got.jsonl"
    with QueueManagerStore.create(home, QueueManager("QM1")) as store, store.unit_of_work() as unit:
        for message in _numbered(size.messages):
            unit.put("Q", message.md, message.body)

    def work(limit: int, stdout: BinaryIO | None = None) -> Callable[[], None]:
        return verb("get", "-m", "QM1", "--home", str(home), "--limit", str(limit), "Q", stdout=stdout)

    idle_s = time_of(work(0))
    moments = Moments(idle_s, 0.02, 1, random.Random(seed))
    kills, broken, got, left = 0, [], Counter[int](), _on_queue(home)
    while kills < size.kills and left:
        with output.open("wb") as stdout:
            kills += killed_after(moments.next(), work(size.messages, stdout))
        lines = output.read_bytes().split(b"\n")[:-1]
        written = [int(bytes.fromhex(json.loads(line)["body_hex"])) for line in lines]
        before, left = left, _on_queue(home)
        got.update(written)
        both = len({*written} & {*left})
        if sorted({*written, *left}) != before or both > GET_AT_ONCE or left != before[len(before) - len(left) :]:
            broken.append(f"get: {len(before)} messages, {len(written)} written, {len(left)} left, {both} both")
    again = sum(got.values()) - len(got)
    counted = f"{len(got):,} written, {len(left):,} left, {again:,} written again"
    row = ("`get`", f"{kills:,}", f"{size.messages:,}", counted, "differs" if broken else "each written or left")
    return Table("Kills", COLUMNS, [row], broken)


def kills(seed: int, scale: float = 1.0) -> Table:
    """All of them. scale: 1 is about two minutes."""
    parts = (
        (of_the_processor, Size(int(200 * scale), int(20_000 * scale))),
        (of_run, Size(int(60 * scale), int(30_000 * scale))),
        (of_put, Size(int(100 * scale), 5_000)),
        (of_get, Size(int(200 * scale), int(20_000 * scale))),
    )
    tables = []
    for part, size in parts:
        with tempfile.TemporaryDirectory() as directory:
            tables.append(part(Path(directory), size, seed))
    return Table("Kills", COLUMNS, [row for t in tables for row in t.rows], [line for t in tables for line in t.broken])
