"""The same JMS program at the listener, at Artemis embedded, and at RabbitMQ, in one run.

    python -m tests.benchmarks.brokers [--messages 8000] [--rounds 2]

Eight connections, each with a queue of its own, put and get messages of 1 KiB: not persistent, persistent, and
persistent in transactions of 100. Each broker has the client of its maker, with that client's settings: the listener's
waits for the answer to each call, Artemis's where a message is persistent, RabbitMQ's for a commit alone; those two are
sent messages before they ask. All three keep what is persistent on this machine's disk; the listener and Artemis answer
when the disk has it. Of several rounds the best rate is told, and the processor time of the broker for a message.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.benchmarks.listener import SIZE_BYTES, Step, service, spent_s, steps_of
from tests.commands.links.mosquitto import free_port, listens
from tests.ibm_java import JARS, PEERS
from tests.waiting import until

JAVA: Final = Path(__file__).parent / "java"
RUNS: Final = ("java", "-Dslf4j.internal.verbosity=ERROR", "-cp")
CLIENTS: Final = 8
MODES: Final = {"not persistent": (0, 0), "persistent": (1, 0), "persistent, 100 to a commit": (1, 100)}
"""Persistence, and how many messages have a commit."""
_RABBIT_SCRIPTS: Final = Path("/usr/lib/rabbitmq/bin")


@dataclass(frozen=True, slots=True)
class Server:
    """A broker. name: as the Java program calls it. spent_s: its processor time so far."""

    name: str
    port: int
    spent_s: Callable[[], float]


def _spent_s(session: int) -> float:
    """Processor time of all processes of a session so far."""
    total = 0.0
    for each in Path("/proc").iterdir():
        with suppress(OSError):
            if each.name.isdecimal() and os.getsid(int(each.name)) == session:
                total += spent_s(int(each.name))
    return total


@contextmanager
def _listener(_: str) -> Iterator[Server]:
    with service() as own:
        yield Server("qpubsub", own.port, own.spent_s)


@contextmanager
def _process(name: str, port: int, command: list[str], env: Mapping[str, str] | None = None) -> Iterator[Server]:
    """A broker in a session of its own, until it is ended."""
    variables = os.environ | (env or {})
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, env=variables
    ) as process:
        try:
            until(lambda: listens(port) or process.poll() is not None, f"{name} to listen")
            if process.poll() is not None:
                raise RuntimeError(f"{name} ended with {process.returncode}")
            yield Server(name, port, lambda: _spent_s(process.pid))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)


@contextmanager
def _artemis(path: str) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        with _process("artemis", port, [*RUNS, path, "Artemis", str(port), directory]) as server:
            yield server


@contextmanager
def _rabbitmq(_: str) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as directory:
        port, distribution, mapper = free_port(), free_port(), free_port()
        env = {
            "HOME": directory,
            "ERL_EPMD_PORT": str(mapper),
            "RABBITMQ_NODENAME": f"bench{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_MNESIA_BASE": f"{directory}/data",
            "RABBITMQ_LOG_BASE": f"{directory}/log",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{directory}/plugins",
            "RABBITMQ_PID_FILE": f"{directory}/pid",
        }
        try:
            with _process("rabbitmq", port, [str(_RABBIT_SCRIPTS / "rabbitmq-server")], env) as server:
                yield server
        finally:  # Erlang's port mapper outlives it
            subprocess.run(["epmd", "-kill"], env=os.environ | env, check=False, stdout=subprocess.DEVNULL)


BROKERS: Final[dict[str, Callable[[str], AbstractContextManager[Server]]]] = {
    "qpubsub": _listener,
    "Artemis": _artemis,
    "RabbitMQ": _rabbitmq,
}


def _compiled(folder: Path) -> str:
    """The class path of the programs, with the clients of all brokers and Artemis itself."""
    path = ":".join(map(str, (folder, *JARS, *sorted((PEERS / "brokers").glob("*.jar")))))
    subprocess.run(["javac", "-cp", path, "-d", str(folder), *map(str, JAVA.glob("*.java"))], check=True)
    return path


def _best(path: str, server: Server, messages: int, mode: str, rounds: int) -> list[Step]:
    """Of the put and of the get, the round that took least."""
    words = (server.name, server.port, CLIENTS, messages // CLIENTS, SIZE_BYTES, *MODES[mode])
    command = [*RUNS, path, "Jms", *map(str, words)]
    found = [steps_of(command, server.spent_s) for _ in range(rounds)]
    return [min(steps, key=lambda step: float(step.printed)) for steps in zip(*found, strict=True)]


def table(messages: int, rounds: int) -> Iterator[str]:
    """The figures, as lines of Markdown."""
    yield f"| {CLIENTS} JMS clients, {SIZE_BYTES:,} bytes | put, a second | get, a second | put, us | get, us |"
    yield "|---|---|---|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        path = _compiled(Path(folder))
        for name, broker in BROKERS.items():
            if name == "RabbitMQ" and not (_RABBIT_SCRIPTS / "rabbitmq-server").exists():
                yield f"\n{name} is not installed (.ci/peers --all): it is left out."
                continue
            with broker(path) as server:
                for mode in MODES:
                    done = _best(path, server, messages, mode, rounds)
                    rates = [f"{messages / float(step.printed):,.0f}" for step in done]
                    spent = [f"{step.spent_s / messages * 1e6:,.0f}" for step in done]
                    yield f"| {name}, {mode} | {' | '.join(rates + spent)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=8_000)
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()
    if not JARS or not (PEERS / "brokers").is_dir() or shutil.which("javac") is None:
        sys.exit("it needs javac, and the clients and Artemis in .venv/peers, where .ci/peers --all puts them")
    for line in table(asked.messages, asked.rounds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
