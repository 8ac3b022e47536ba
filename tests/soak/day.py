"""A day in short: half of full rate for a long time, while subscribers, the link, the disk and the processor fail.

    python -m tests.soak.day --minutes 120 --seed 1

``qpubsub run --topics mqtt://`` works on a queue manager with two producers, consumers, and native programs on both
sides of mosquitto. The full rate is measured first; then producers put half of that, and what ``tests.soak.plan`` makes
of the seed fails. Each publication has a number. The consumers of ALL and BOARD must see every number once, in order;
what passes mosquitto (QoS 1) must come at least once. Memory, files and delays are samples that end in a table; those
of quiet times are compared: the second half of the run must be like the first. Without root no disk is full.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from commands.broker.objects import LocalQueue, QueueManager
from commands.qmgr.store import QueueManagerStore
from commands.running.journal import last_status
from tests.commands.links.mosquitto import Mosquitto, Native
from tests.reliability.disk import resized, small_disk
from tests.reliability.workload import CONTROL, STREAM, put
from tests.soak.load import ALL, DEAD, OWN, REPLIES, file_size, worker_of, working_set
from tests.soak.plan import SPACE_S, Failure, What, planned
from tests.soak.programs import Seen, latencies, publication, seen_of
from tests.waiting import until

BOARD, NATIVE = "BOARD", "NATIVE"
CHECKED: Final = (ALL, BOARD, NATIVE)
PRODUCERS: Final = ("0", "1")
_BOARD_DEPTH: Final = 300
_DISK_MB, _SPARE_KB = 512, 128
_MEASURING_S: Final = 15.0
_DRAINED_S: Final = 180.0
_NATIVE_EVERY_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Sample:
    """One look. rss_mb: of processor and supervisor. delay: from put to get, ALL, in ms. load: of the machine, programs
    that want to run. failing: since the last look.

    quiet: whether nothing had failed for ``SPACE_S`` / 2, so that the figures are those of a processor at work.
    """

    at_s: float
    commands_per_s: float
    rss_mb: float
    database_mb: float
    log_mb: float
    waiting: int
    owed: int
    delay_ms: float | None
    longest_ms: float | None
    load: float
    failing: str
    quiet: bool


class Day:
    """All programs of one run. home: of the queue manager."""

    def __init__(self, work: Path) -> None:
        self.home = work / "qmgrs"
        self._broker = Mosquitto(work / "mosquitto")
        self._log = (work / "run.log").open("ab")
        self._programs: dict[str, subprocess.Popen[str]] = {}
        self.published: dict[str, int] = dict.fromkeys(PRODUCERS, 0)
        self.native_published, self.native_seen = 0, Seen()
        self._over = threading.Event()

    def start(self) -> None:
        with QueueManagerStore.create(self.home, QueueManager("QM1")) as store, store.unit_of_work() as unit:
            unit.save_definition(LocalQueue(BOARD, max_depth=_BOARD_DEPTH))
            # A dead-letter queue that is full: what BOARD refuses is kept for it, and keeps its order.
            unit.save_definition(LocalQueue(DEAD, max_depth=1))
            unit.put(DEAD, None, b"full")
            for topic, queue in (("s/#", ALL), ("s/0/#", BOARD), ("n/#", NATIVE), ("s/1/#", REPLIES)):
                put(unit, CONTROL, f"<Command>RegSub</Command><Topic>{topic}</Topic><QName>{queue}</QName>")
        self._broker.start()
        self._native = Native(self._broker, "native", "s/#", lasting=True)
        self._native.client.on_message = lambda _client, _data, message: self._note(message.payload)
        self.run()
        for queue in CHECKED:
            self._begin(queue, "consume", queue)
        self._begin("empty", "empty", REPLIES, *OWN)
        until(lambda: self._waiting(CONTROL) == 0, "the subscriptions")
        self._speaker = threading.Thread(target=self._speak)
        self._speaker.start()

    def _note(self, payload: bytes) -> None:
        if payload:  # none: a retained publication was deleted
            producer, number, _ = json.loads(payload)
            self.native_seen.note(str(producer), number)

    def _speak(self) -> None:
        speaker = Native(self._broker, "speaker")
        while not self._over.wait(_NATIVE_EVERY_S):
            speaker.insist("n/1", publication("n", self.native_published).decode())
            self.native_published += 1
        speaker.close()

    def run(self) -> None:
        """Start ``qpubsub run``."""
        arguments = ["run", "-m", "QM1", "--home", str(self.home), "--topics", self._broker.url]
        command = [sys.executable, "-m", "commands.cli", "--quiet", *arguments]
        self._programs["run"] = subprocess.Popen(command, stdout=self._log, stderr=self._log, text=True)

    def _begin(self, name: str, verb: str, *arguments: str) -> None:
        command = [sys.executable, "-m", "tests.soak.programs", verb, str(self.home), *arguments]
        self._programs[name] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def produce(self, per_s: float) -> None:
        """Have the producers put so many messages a second in all; 0: as many as are processed."""
        for producer in PRODUCERS:
            rate = f"{per_s / len(PRODUCERS):.2f}"
            self._begin(f"producer {producer}", "produce", producer, str(self.published[producer]), rate)

    def silence(self) -> None:
        """End the producers, and note how many they have published."""
        for producer in PRODUCERS:
            self.published[producer] = int(self._end(f"producer {producer}")[1])

    def _end(self, name: str) -> tuple[int, str]:
        process = self._programs.pop(name)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
        return process.returncode, output or ""

    def fail(self, failure: Failure) -> None:
        """Have it fail, wait for its end, and mend it."""
        match failure.what:
            case What.SUBSCRIBER | What.QUEUE:
                queue = ALL if failure.what is What.SUBSCRIBER else BOARD
                self._programs[queue].kill()
                self._programs.pop(queue).communicate()
                self._over.wait(failure.for_s)
                self._begin(queue, "consume", queue)
            case What.LINK:
                self._broker.stop()
                self._over.wait(failure.for_s)
                self._broker.start()
            case What.DISK:
                self._fill()
                self._over.wait(failure.for_s)
                resized(self.home, _DISK_MB * 1024)
            case What.WORKER:
                if worker := worker_of(self._programs["run"].pid):
                    os.kill(worker, signal.SIGKILL)
            case What.PROGRAM:
                self._programs["run"].kill()
                self._programs.pop("run").wait()
                self._over.wait(failure.for_s)
                self.run()

    def _fill(self) -> None:
        for spare in range(_SPARE_KB, 64 * _SPARE_KB, _SPARE_KB):
            try:  # it cannot be smaller than what is on it, which grows meanwhile
                return resized(self.home, shutil.disk_usage(self.home).used // 1024 + spare)
            except subprocess.CalledProcessError:
                continue
        raise AssertionError("the disk could not be made full")

    def samples(self, seconds: float, every_s: float, failing: list[tuple[float, str]]) -> Iterator[Sample]:
        """Look every so often. failing: Unix time and name of what failed, which the caller goes on writing."""
        directory, begun, before, then = self.home / "QM1", time.time(), 0, time.time()
        while (now := time.time()) - begun < seconds:
            time.sleep(min(every_s, seconds - (now - begun)))
            last, now = now, time.time()
            status = last_status(directory)
            commands = int(status.get("done", {}).get("commands", 0)) if status else 0
            rate = (commands - before if commands >= before else commands) / (now - then)  # a new processor begins at 0
            before, then = commands, now
            pid = self._programs["run"].pid if "run" in self._programs else 0
            rss = working_set(pid) + working_set(worker_of(pid)) if working_set(pid) else 0
            delays = [row for row in _delays(latencies(self.home, ALL)) if last <= row[0] < now]
            recent = [what for at, what in list(failing) if at >= last]
            yield Sample(
                now - begun,
                rate,
                rss / 1e6,
                file_size(directory / "qmgr.sqlite3") / 1e6,
                file_size(directory / "qmgr.sqlite3-wal") / 1e6,
                self._waiting(STREAM, CONTROL, *CHECKED),
                self._owed(),
                median(row[1] for row in delays) if delays else None,
                max(row[2] for row in delays) if delays else None,
                os.getloadavg()[0],
                ", ".join(recent),
                not any(at > last - SPACE_S / 2 for at, _ in list(failing)),
            )

    def _waiting(self, *queues: str) -> int:
        with QueueManagerStore.open(self.home, "QM1") as store:
            return sum(store.depth(queue) for queue in queues if store.find_queue(queue) is not None)

    def _owed(self) -> int:
        with QueueManagerStore.open(self.home, "QM1") as store:
            return sum(count for _, count, _ in store.overview().undelivered)

    def wait_until_delivered(self, most_s: float) -> None:
        """Until no command, no publication for a consumer, and nothing that is owed is left."""
        end = time.monotonic() + most_s
        while (self._waiting(STREAM, CONTROL, *CHECKED) or self._owed()) and time.monotonic() < end:
            time.sleep(0.5)

    def end(self) -> list[str]:
        """Let all be delivered, end the programs; a line for each promise that was broken."""
        self.silence()
        self._over.set()
        self._speaker.join(60)
        end = time.monotonic() + _DRAINED_S
        self.wait_until_delivered(_DRAINED_S)
        while self.native_seen.lost(self.published) and time.monotonic() < end:
            time.sleep(0.5)
        for queue in CHECKED:
            self._end(queue)
        self._end("empty")
        code, _ = self._end("run")
        self._native.close()
        with QueueManagerStore.open(self.home, "QM1") as store:
            seen = {queue: seen_of(store, queue) for queue in CHECKED}
        return [
            *_broken(ALL, seen[ALL], self.published, once=True),
            *_broken(BOARD, seen[BOARD], {"0": self.published["0"]}, once=True),
            *_broken(f"{NATIVE}, from MQTT", seen[NATIVE], {"n": self.native_published}, once=False),
            *_broken("to MQTT", self.native_seen, self.published, once=False),
            *([f"run ended with {code}"] if code not in (0, 1) else []),
        ]

    def give_up(self) -> None:
        """End whatever is left."""
        self._over.set()
        for process in self._programs.values():
            process.kill()
            process.communicate()
        self._broker.stop()
        self._log.close()


def _delays(path: Path) -> Iterator[tuple[float, float, float]]:
    for line in path.read_text().splitlines() if path.exists() else []:
        cells = line.split()
        if len(cells) == 3:  # the last line of a program that was killed
            yield float(cells[0]), float(cells[1]), float(cells[2])


def _broken(name: str, seen: Seen, published: dict[str, int], once: bool) -> Iterator[str]:
    total, lost = sum(published.values()), seen.lost(published)
    print(f"{name}: {total:,} published, lost {lost}, twice {seen.twice}, late {seen.late}", flush=True)
    if lost:
        yield f"{name}: {lost} lost"
    if once and (seen.twice or seen.late):
        yield f"{name}: {seen.twice} came twice, {seen.late} late"


def _shown(sample: Sample) -> str:
    delay = "-" if sample.delay_ms is None else f"{sample.delay_ms:.0f}"
    longest = "-" if sample.longest_ms is None else f"{sample.longest_ms:,.0f}"
    return (
        f"| {sample.at_s:,.0f} | {sample.commands_per_s:,.0f} | {sample.rss_mb:.1f} | {sample.database_mb:.1f} | "
        f"{sample.log_mb:.1f} | {sample.waiting:,} | {sample.owed:,} | {delay} | {longest} | "
        f"{sample.load:.0f} | {sample.failing} |"
    )


COLUMNS: Final = (
    "| s | commands/s | memory MB | database MB | log MB | waiting | owed | delay ms | longest | load | failing |"
)


def compared(samples: Sequence[Sample]) -> Iterator[str]:
    """The quiet samples of both halves of a run, side by side; nothing where there are too few."""
    quiet = [sample for sample in samples if sample.quiet and sample.rss_mb]
    half = samples[-1].at_s / 2 if samples else 0.0
    first, second = ([s for s in quiet if (s.at_s > half) is late] for late in (False, True))
    if not first or not second:
        return
    yield "| quiet samples | memory MB | database MB | log MB | delay ms |"
    yield "|---|---|---|---|---|"
    for name, found in (("first half", first), ("second half", second)):
        delays = [s.delay_ms for s in found if s.delay_ms is not None]
        sizes = (max(getattr(s, size) for s in found) for size in ("rss_mb", "database_mb", "log_mb"))
        cells = " | ".join(f"{size:.1f}" for size in sizes)
        yield f"| {name}: {len(found)}; greatest, and median delay | {cells} | {median(delays) if delays else 0:.0f} |"


def day(
    work: Path, minutes: float, seed: int, every_s: float, rate: float | None = None, space_s: float = SPACE_S
) -> int:
    """Run it, print what was seen; 0 where no promise was broken. rate: of the load; None for half of full rate."""
    (work / "qmgrs").mkdir(exist_ok=True)
    (work / "qmgrs").rmdir()
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk(work / "qmgrs", _DISK_MB))
        without = frozenset({What.DISK} if disk is None else ())
        running = Day(work)
        stack.callback(running.give_up)
        running.start()
        rate = _full_rate(running) / 2 if rate is None else rate
        seconds = minutes * 60
        failures = list(planned(seed, seconds, without, space_s))
        kinds = {what: sum(failure.what is what for failure in failures) for what in What}
        print(f"seed {seed}, {minutes:g} minutes at {rate:,.0f} commands/s, and these failures:")
        print("\n".join(f"    {count} times: {what}" for what, count in kinds.items()), flush=True)
        running.produce(rate)
        failing: list[tuple[float, str]] = []
        problems: list[str] = []
        failer = threading.Thread(target=_fail_all, args=(running, failures, failing, problems))
        failer.start()
        print(f"\n{COLUMNS}\n{'|---' * 11}|", flush=True)
        seen = []
        for sample in running.samples(seconds, every_s, failing):
            seen.append(sample)
            print(_shown(sample), flush=True)
        failer.join(120)
        print()
        problems += running.end()
        print("\n".join(["", *compared(seen)]), flush=True)
    print("\n".join(f"BROKEN: {line}" for line in problems))
    return int(bool(problems))


def _full_rate(running: Day) -> float:
    """Commands a second, as many as are processed, with all other programs at work too."""
    directory = running.home / "QM1"
    running.produce(0)
    time.sleep(5)
    before, begun = last_status(directory)["done"]["commands"], time.monotonic()
    time.sleep(_MEASURING_S)
    after = last_status(directory)["done"]["commands"]
    rate = (after - before) / (time.monotonic() - begun)
    running.silence()
    running.wait_until_delivered(_DRAINED_S)
    print(f"full rate {rate:,.0f} commands/s", flush=True)
    return float(rate)


def _fail_all(running: Day, failures: Sequence[Failure], failing: list[tuple[float, str]], out: list[str]) -> None:
    begun = time.monotonic()
    try:
        for failure in failures:
            time.sleep(max(0.0, begun + failure.at_s - time.monotonic()))
            failing.append((time.time(), failure.what))
            running.fail(failure)
            failing.append((time.time(), f"({failure.for_s:.0f} s)"))
    except Exception as error:  # the run goes on, and says so at its end
        out.append(f"the plan ended: {error!r}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.day", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1, help="of the failures (1)")
    parser.add_argument("--every", type=float, default=15.0, metavar="SECONDS", help="between two samples (15)")
    parser.add_argument("--space", type=float, default=SPACE_S, metavar="SECONDS", help="between failures (20)")
    parser.add_argument("--rate", type=float, metavar="N", help="commands a second; else half of the full rate")
    parser.add_argument("--work", type=Path, help="a new directory that is kept; else a temporary one")
    options = parser.parse_args()
    os.environ.setdefault("PYTHONPATH", os.pathsep.join(sys.path))
    with tempfile.TemporaryDirectory() as directory:
        work = options.work or Path(directory)
        work.mkdir(parents=True, exist_ok=True)
        return day(work, options.minutes, options.seed, options.every, options.rate, options.space)


if __name__ == "__main__":
    sys.exit(main())
