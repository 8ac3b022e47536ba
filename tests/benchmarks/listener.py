"""Programs that connect, in numbers: what IBM's Java client gets done, beside the same work in process.

    python -m tests.benchmarks.listener [--messages 2000] [--idle 1000]

Puts and gets messages of 1 KiB with one client and with eight, persistent and not, each on a connection of its own and
without syncpoint: every call is a commit. Beside that, the same through the store of the queue manager in this process,
a commit for each message. Then request and reply between two clients, and idle connections. Rates are by the clock;
processor time is that of the listener's process, and means something on a busy machine too.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from commands.broker.objects import QueueManager
from commands.config.settings import ChannelRule
from commands.listener.security import Security
from commands.listener.server import Listener, ListenerOptions, serve
from commands.qmgr.store import QueueManagerStore
from rfh2.mqi_constants import MQOO_INPUT_SHARED, MQOO_OUTPUT
from rfh2.mqmd import Mqmd
from tests.commands.listener.mqi_client import MqiClient
from tests.ibm_java import JARS

JAVA = Path(__file__).parents[1] / "commands" / "listener" / "java"
SIZE_BYTES = 1_024


@dataclass(frozen=True, slots=True)
class Service:
    """A listener in a process of its own."""

    port: int
    process: int

    def spent_s(self) -> float:
        """Its processor time so far."""
        return spent_s(self.process)

    def memory_bytes(self) -> int:
        """What it holds of the memory."""
        return int(Path(f"/proc/{self.process}/statm").read_text().split()[1]) * resource.getpagesize()


def spent_s(process: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def service() -> Iterator[Service]:
    """A listener for a new queue manager."""
    with tempfile.TemporaryDirectory() as home:
        QueueManagerStore.create(Path(home), QueueManager("QM1")).close()
        command = [sys.executable, "-m", "tests.benchmarks.listener", "--serve", home]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                yield Service(int(process.stdout.readline()), process.pid)
            finally:
                process.terminate()


def _serve(home: Path) -> None:
    logging.disable(logging.ERROR)  # of programs that end without MQDISC
    options = ListenerOptions(port=0, connections=20_000, connections_of_address=20_000, quiesce_s=0)
    listener = Listener(options, "QM1", lambda: QueueManagerStore.open(home, "QM1"), Security({"*": ChannelRule()}))
    asyncio.run(serve(listener, asyncio.Event(), lambda port: print(port, flush=True)))


def classpath(folder: Path) -> str:
    """Where the compiled programs and IBM's classes are."""
    path = ":".join(map(str, (folder, *JARS)))
    subprocess.run(["javac", "-cp", path, "-d", str(folder), str(JAVA / "Load.java")], check=True)
    return path


@dataclass(frozen=True, slots=True)
class Step:
    """What a program printed of one step, and the listener's processor time for it."""

    printed: str
    spent_s: float


def steps(path: str, server: Service, clients: int, messages: int, persistent: bool, *more: str) -> list[Step]:
    """The steps of Load: put and get, or with "reply" the round trips."""
    words = (server.port, clients, messages, SIZE_BYTES, int(persistent), *more)
    return steps_of(["java", "-cp", path, "Load", *map(str, words)], server.spent_s)


def steps_of(command: list[str], spent_s: Callable[[], float]) -> list[Step]:
    """The steps of a program that waits for a line before each. spent_s: processor time of the server so far."""
    found = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        while program.stdout.readline() == "ready\n":
            before = spent_s()
            program.stdin.write("\n")
            program.stdin.flush()
            printed = program.stdout.readline()
            found.append(Step(printed.strip(), spent_s() - before))
    if program.returncode:
        raise RuntimeError(f"{' '.join(command[-8:])} ended with {program.returncode}")
    return found


def in_process(messages: int, persistent: bool) -> list[tuple[float, float]]:
    """Seconds by the clock, and of processor time, to put and to get *messages*, a commit for each."""
    described, body, found = Mqmd(persistence=int(persistent)).encode(), bytes(SIZE_BYTES), []
    with tempfile.TemporaryDirectory() as home, QueueManagerStore.create(Path(home), QueueManager("QM1")) as store:
        for puts in (True, False):
            began, spent = time.perf_counter(), time.process_time()
            for _ in range(messages):
                with store.unit_of_work() as unit:
                    if puts:
                        unit.put("LOAD", described, body)
                    else:
                        unit.get("LOAD")
            found.append((time.perf_counter() - began, time.process_time() - spent))
    return found


def idle(server: Service, count: int) -> float:
    """Bytes of memory of an idle connection, with a program and an open queue."""
    with ExitStack() as stack:
        before = 0
        for number in range(count + 50):
            if number == 50:
                before = server.memory_bytes()
            client = stack.enter_context(MqiClient(server.port))
            assert client.connect() == 0
            client.opened("LOAD", MQOO_INPUT_SHARED | MQOO_OUTPUT)
        return (server.memory_bytes() - before) / count


def table(messages: int, idles: int) -> Iterator[str]:
    """The figures, as lines of Markdown."""
    yield "| messages of 1 KiB | put, a second | get, a second | put, us | get, us |"
    yield "|---|---|---|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        path = classpath(Path(folder))
        for persistent in (False, True):
            kind = "persistent" if persistent else "not persistent"
            for clients in (1, 8):
                with service() as server:
                    done = steps(path, server, clients, messages // clients, persistent)
                rates = [f"{messages / float(step.printed):,.0f}" for step in done]
                spent = [f"{step.spent_s / messages * 1e6:,.0f}" for step in done]
                who = f"{clients} Java client{'s' if clients > 1 else ''}"
                yield f"| {kind}, {who} | {' | '.join(rates + spent)} |"
            (put, get) = in_process(messages, persistent)
            rates = [f"{messages / clock_s:,.0f}" for clock_s, _ in (put, get)]
            spent = [f"{cpu_s / messages * 1e6:,.0f}" for _, cpu_s in (put, get)]
            yield f"| {kind}, in process | {' | '.join(rates + spent)} |"
        yield ""
        for persistent in (False, True):
            with service() as server:
                (step,) = steps(path, server, 1, messages // 2, persistent, "reply")
            middle, slowest = map(int, step.printed.split())
            kind = "persistent" if persistent else "not persistent"
            yield f"request and reply, {kind}: {middle / 1000:.1f} ms, 99 of 100 within {slowest / 1000:.1f} ms"
    if idles:
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        with service() as server:
            yield f"{idles:,} idle connections: {idle(server, idles) / 1024:.1f} KiB each"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--idle", type=int, default=1_000)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve is not None:
        _serve(asked.serve)
        return
    if not JARS or shutil.which("javac") is None:
        sys.exit("it needs javac, and IBM's client in .venv/peers/java, where .ci/run puts it")
    for line in table(asked.messages, asked.idle):
        print(line, flush=True)


if __name__ == "__main__":
    main()
