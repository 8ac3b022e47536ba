"""Situations that are large but allowed: each is caused, its result is checked, and what it costs is measured.

    python -m tests.reliability situations

Each runs in a process of its own. Time is processor time. Memory is the most that the process had during the step, log
the size of the write-ahead log after it. Commands are processed as ``qpubsub run`` does it, in the same process as the
programs that put and get.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from commands.broker.objects import LocalQueue, QueueManager
from commands.disk.errors import UndeliverableError
from commands.explain.problems import explained
from commands.qmgr.delivery import Backlog
from commands.qmgr.processor import Processor
from commands.qmgr.store import Durability, QueueManagerStore
from commands.running.bridge import GARBAGE_THRESHOLD
from rfh2 import CapturedMessage, Dlh, decode
from rfh2.constants import MQRC_MSG_TOO_BIG_FOR_Q
from rfh2.errors import QueueError
from tests.reliability.figures import Table
from tests.reliability.workload import CONTROL, STREAM, put, unlogged
from tests.soak.load import file_size

DEAD, QUEUE, OTHER = "SYSTEM.DEAD.LETTER.QUEUE", "S", "OTHER"
COLUMNS: Final = ("situation", "step", "result", "processor time", "memory", "log")
_AT_ONCE: Final = 1_000
_LONGEST: Final = 104_857_600
_ROOM: Final = 500
_WAITING: Final = 100
# What stands before a message on the dead-letter queue, and some more.
_ROOM_FOR_DLH: Final = 1_000
_KB: Final = b"x" * 1_000
_DAY: Final = datetime(2026, 1, 2, tzinfo=UTC)
_DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class Measured:
    """One step. memory_bytes: the most in it. log_bytes: of the write-ahead log after it."""

    step: str
    result: str
    seconds: float
    memory_bytes: int
    log_bytes: int


class Scene:
    """A new queue manager, its programs and its processor, and what the steps cost."""

    def __init__(self, home: Path, **objects: LocalQueue) -> None:
        self.home, self.now = home, _DAY
        QueueManagerStore.create(home, QueueManager("QM1"), clock=lambda: self.now).close()
        self.programs = self._opened()
        with self.programs.unit_of_work() as unit:
            for queue in objects.values():
                unit.save_definition(queue)
        self.steps: list[Measured] = []
        self.start()

    def _opened(self) -> QueueManagerStore:
        return QueueManagerStore.open(self.home, "QM1", durability=Durability.NORMAL, clock=lambda: self.now)

    def start(self, backlog: Backlog | None = None) -> None:
        """A processor as after a start: nothing of an earlier one is in its memory."""
        self.processor = Processor(self._opened(), lambda: self.now, backlog=backlog)
        self.processor.start()

    @contextmanager
    def step(self, name: str) -> Iterator[list[str]]:
        """Measure what is done within. The list is for what came of it."""
        Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
        result: list[str] = []
        start = time.process_time()
        yield result
        spent_s = time.process_time() - start
        (peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
        log = file_size(self.home / "QM1" / "qmgr.sqlite3-wal")
        self.steps.append(Measured(name, ", ".join(result), spent_s, 1024 * int(peak.split()[1]), log))

    def put(self, queue: str, psc: Callable[[int], str], count: int, body: bytes = b"x" * 200) -> None:
        """Put *count* commands, many in each unit of work. psc: of the number of one."""
        for first in range(0, count, _AT_ONCE):
            with self.programs.unit_of_work() as unit:
                for n in range(first, min(count, first + _AT_ONCE)):
                    put(unit, queue, psc(n), body)

    def one(self, queue: str, psc: str, body: bytes = b"x" * 200) -> None:
        """Put one command, and process it."""
        self.put(queue, lambda _n: psc, 1, body)
        assert self.processor.drain() == 1

    def messages(self) -> int:
        """How many there are on all queues."""
        (count,) = self.programs.database.connection.execute("SELECT count(*) FROM messages").fetchone()
        return int(count)

    def depth(self, queue: str) -> int:
        """How many are on *queue*."""
        return self.programs.depth(queue) if self.programs.find_queue(queue) is not None else 0


def retained(home: Path, count: int) -> list[Measured]:
    """So many topics with a retained publication; one subscriber to all of them."""
    scene = Scene(home)
    retain = "<Command>Publish</Command><PubOpt>RetainPub</PubOpt>"
    scene.put(STREAM, lambda n: f"{retain}<Topic>r/{n % 100}/{n}</Topic>", count)
    with scene.step("publish and retain") as result:
        assert scene.processor.drain() == count
        result.append(f"{count:,} retained")
    with scene.step("start") as result:
        scene.start()
        assert scene.processor.drain() == 0
    for n, command in enumerate(("RegSub", "ReqUpdate"), 1):
        with scene.step(f"{command} with #") as result:
            scene.one(CONTROL, f"<Command>{command}</Command><Topic>#</Topic><QName>{QUEUE}</QName>")
            assert scene.depth(QUEUE) == n * count
            result.append(f"{count:,} delivered")
    return scene.steps


def subscriptions(home: Path, count: int) -> list[Measured]:
    """So many subscriptions on one queue."""
    scene = Scene(home)
    scene.put(CONTROL, lambda n: _registration(f"s/{n % 100}/{n}", QUEUE), count)
    with scene.step("register") as result:
        assert scene.processor.drain() == count
        result.append(f"{count:,} subscriptions")
    with scene.step("start"):
        scene.start()
        assert scene.processor.drain() == 0
    with scene.step("publish for one of them") as result:
        scene.one(STREAM, "<Command>Publish</Command><Topic>s/0/0</Topic>")
        assert scene.depth(QUEUE) == 1
        result.append("1 delivered")
    with scene.step("DeregSub with DeregAll") as result:
        scene.one(CONTROL, f"<Command>DeregSub</Command><RegOpt>DeregAll</RegOpt><QName>{QUEUE}</QName>")
        assert not scene.programs.load_state()[1]
        result.append("0 subscriptions")
    return scene.steps


def fan_out(home: Path, count: int) -> list[Measured]:
    """One topic, and so many subscribers, each with a queue of its own; publications of 1,000 bytes."""
    scene = Scene(home)
    scene.put(CONTROL, lambda n: _registration("t", f"Q{n}"), count)
    with scene.step("register") as result:
        assert scene.processor.drain() == count
        result.append(f"{count:,} subscribers")
    with scene.step("start"):
        scene.start()
        assert scene.processor.drain() == 0
    done = 0
    for publications in (1, 1, 8):
        scene.put(
            STREAM, lambda n: f"<Command>Publish</Command><Topic>t</Topic><SeqNum>{n}</SeqNum>", publications, _KB
        )
        with scene.step("1 publication" if publications == 1 else f"{publications} publications") as result:
            assert scene.processor.drain() == publications
            done += publications
            assert scene.messages() == done * count
            assert scene.depth("Q0") == scene.depth(f"Q{count - 1}") == done
            result.append(f"{publications * count:,} delivered")
    return scene.steps


def long_message(home: Path, size: int) -> list[Measured]:
    """A message of so many bytes, the most that a queue takes by default where it is 100 MB."""
    scene = Scene(home, short=LocalQueue("SHORT", max_message_length=size // 2))
    scene.one(CONTROL, _registration("t", QUEUE))
    psc = "<Command>Publish</Command><Topic>t</Topic>"
    scene.one(STREAM, psc, b"")
    (empty,) = scene.programs.browse(QUEUE)
    longest = size - len(empty.body)
    with scene.step("put") as result:
        scene.put(STREAM, lambda _n: psc, 1, bytes(longest))
        result.append(f"{size:,} bytes")
    with scene.step("process") as result:
        assert scene.processor.drain() == 1
        result.append("1 delivered")
    with scene.step("get and decode") as result:
        with scene.programs.unit_of_work() as unit:
            unit.get(QUEUE)
            got = unit.get(QUEUE)
        assert got is not None
        message = decode(got.body, got.md)
        assert (len(message.body), message.body.count(0)) == (longest, longest)
        result.append("data as put")
    with scene.step("explain, as `decode` does") as result:
        captured = CapturedMessage(seq=1, queue=QUEUE, md_hex=got.md.hex(), body_hex=got.body.hex())
        assert not explained(captured).problems
        result.append("no problems")
    del got, message, captured
    if size == _LONGEST:
        with scene.step("put one byte more") as result:
            refused = _refused(scene, psc, bytes(longest + 1))
            assert refused == MQRC_MSG_TOO_BIG_FOR_Q
            result.append(f"refused with {refused}")
    scene.one(CONTROL, _registration("t", "SHORT"))
    with scene.step("a second subscriber, MAXMSGL of half") as result:
        scene.one(STREAM, psc, bytes(longest - _ROOM_FOR_DLH))
        (letter,) = scene.programs.browse(DEAD)
        (dead, *_) = decode(letter.body, letter.md).headers
        assert isinstance(dead, Dlh)
        assert dead.reason == MQRC_MSG_TOO_BIG_FOR_Q
        assert (scene.depth(QUEUE), scene.depth("SHORT")) == (1, 0)
        result.append(f"1 delivered, 1 dead letter with {MQRC_MSG_TOO_BIG_FOR_Q}")
    del letter, dead
    with scene.step("the same, too long for a dead letter too") as result:
        scene.one(STREAM, psc, bytes(longest))
        owed = int(size == _LONGEST)  # else the dead-letter queue has room for it
        assert (scene.depth(QUEUE), scene.depth(DEAD), scene.processor.undelivered) == (2, 2 - owed, owed)
        result.append("1 delivered, 1 owed" if owed else "1 delivered, 1 dead letter")
        scene.one(STREAM, psc, b"short")
        assert (scene.depth(QUEUE), scene.depth("SHORT")) == (3, 1)
        result.append("the next publication reaches both")
    return scene.steps


def full_for_a_day(home: Path, count: int) -> list[Measured]:
    """A subscriber who gets nothing for a day, in which so many publications come; its queue and the dead letters' are
    short. Another subscriber gets all of them meanwhile."""
    room, dead = count // 17, count // 86
    scene = Scene(home, board=LocalQueue(QUEUE, max_depth=room), dead=LocalQueue(DEAD, max_depth=dead))
    for queue in (QUEUE, OTHER):
        scene.one(CONTROL, _registration("t", queue))
    minutes = min(_DAY_S, count) // 60
    came = 0
    with scene.step("the day") as result:
        for minute in range(minutes):
            first, end = count * minute // minutes, count * (minute + 1) // minutes
            _publish_numbers(scene, first, end)
            came += _numbers_of(scene, OTHER, range(first, end))
            scene.now += timedelta(days=1) / minutes
        assert came == count
        assert (scene.depth(QUEUE), scene.depth(DEAD)) == (room, dead)
        owed = scene.processor.undelivered
        assert owed == count - room - dead
        result.append(f"the other one got {came:,}; {room:,} on the queue, {dead:,} dead letters, {owed:,} owed")
    with scene.step("start"):
        scene.start()
    with scene.step("the subscriber comes back") as result:
        late: list[int] = []
        while scene.depth(QUEUE):
            late += _got(scene, QUEUE)
            scene.processor.drain()
        assert late == sorted(set(late)), "the order is kept"
        letters = [int(decode(body[172:]).body) for body in _bodies(scene, DEAD)]
        assert sorted(late + letters) == list(range(count))
        assert scene.processor.undelivered == 0
        result.append(f"got {len(late):,} in order; with the dead letters all {count:,}")
    return scene.steps


def beyond_the_bound(home: Path, most: int) -> list[Measured]:
    """The same, when as much is owed as may be: the command waits, and all go on when there is room."""
    scene = Scene(home, board=LocalQueue(QUEUE, max_depth=_ROOM), dead=LocalQueue(DEAD, max_depth=0))
    scene.start(Backlog(lambda: scene.now, 30.0, most_messages=most))
    for queue in (QUEUE, OTHER):
        scene.one(CONTROL, _registration("t", queue))
    count = _ROOM + most + _WAITING
    with scene.step("publish until all must wait") as result:
        with suppress(UndeliverableError):
            _publish_numbers(scene, 0, count)
        assert scene.processor.undelivered == most
        assert scene.depth(OTHER) == most + _ROOM
        assert scene.depth(STREAM) == _WAITING
        result.append(f"{most:,} owed, {_WAITING} commands wait")
    with scene.step("the subscriber comes back") as result:
        late: list[int] = []
        while len(late) < count:
            late += _got(scene, QUEUE)
            with suppress(UndeliverableError):
                scene.processor.drain()
        assert late == list(range(count))
        assert _numbers_of(scene, OTHER, range(count)) == count
        result.append(f"both got {count:,} in order")
    return scene.steps


def _refused(scene: Scene, psc: str, body: bytes) -> int | None:
    """The reason why the stream queue does not take this command; None where it does."""
    try:
        scene.put(STREAM, lambda _n: psc, 1, body)
    except QueueError as refusal:
        return refusal.reason
    return None


def _registration(topic: str, queue: str) -> str:
    return f"<Command>RegSub</Command><Topic>{topic}</Topic><QName>{queue}</QName>"


def _publish_numbers(scene: Scene, first: int, end: int) -> None:
    with scene.programs.unit_of_work() as unit:
        for n in range(first, end):
            put(unit, STREAM, "<Command>Publish</Command><Topic>t</Topic>", b"%d" % n)
    scene.processor.drain()


def _bodies(scene: Scene, queue: str) -> list[bytes]:
    """Get all that is on *queue*."""
    bodies = []
    with scene.programs.unit_of_work() as unit:
        while (message := unit.get(queue)) is not None:
            bodies.append(message.body)
    return bodies


def _got(scene: Scene, queue: str) -> list[int]:
    return [int(decode(body).body) for body in _bodies(scene, queue)]


def _numbers_of(scene: Scene, queue: str, wanted: range) -> int:
    """Get all that is on *queue*, which has to be *wanted* in order; how many."""
    assert _got(scene, queue) == list(wanted)
    return len(wanted)


SITUATIONS: Final[dict[str, tuple[Callable[[Path, int], list[Measured]], int]]] = {
    "retained": (retained, 50_000),
    "subscriptions": (subscriptions, 64_000),
    "fan-out": (fan_out, 50_000),
    "long message": (long_message, _LONGEST),
    "full for a day": (full_for_a_day, _DAY_S),
    "beyond the bound": (beyond_the_bound, 100_000),
}
"""Each with its size."""


def measured(name: str, scale: float = 1.0) -> list[Measured]:
    """The steps of one situation, in a directory of its own. Raises AssertionError where a result is wrong."""
    cause, size = SITUATIONS[name]
    with unlogged(), _collected_as_by_run(), tempfile.TemporaryDirectory() as directory:
        return cause(Path(directory), max(200, int(size * scale)))


@contextmanager
def _collected_as_by_run() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(GARBAGE_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def situations(scale: float = 1.0, names: Sequence[str] = tuple(SITUATIONS)) -> Table:
    """All of them. scale: of their sizes; 1 is about two minutes."""
    rows: list[tuple[str, ...]] = []
    broken = []
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        for name in names:
            work: Any = pool.submit(measured, name, scale)
            try:
                rows += [_row(name, step) for step in work.result()]
            except AssertionError as wrong:
                _, place, _ = f"{wrong.__cause__}".rpartition("  File ")[2].partition("\n")[0].split(", ")
                broken.append(f"{name}: {place}: {wrong}")
    return Table("Large situations", COLUMNS, rows, broken)


def _row(name: str, step: Measured) -> tuple[str, ...]:
    sizes = (f"{size / 1e6:.0f} MB" for size in (step.memory_bytes, step.log_bytes))
    return (name, step.step, step.result, f"{step.seconds:.2f} s", *sizes)
