"""What a large migration needs: ``python -m tests.benchmarks.migration_memory [COUNT]``.

Runs strmqbrk in a process of its own on COUNT subscriptions (100,000) and prints its time, the most memory that it had,
and the sizes of what it wrote. The first state is a file of JSON with a retained publication for every five
subscriptions, migrated to an embedded queue manager. The second is a capture of as many Register Subscriber commands,
migrated to files for IBM MQ.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore
from rfh2.captured import CapturedMessage
from rfh2.captures import write_captures
from tests.migrate.legacy_messages import publish, register

_PATTERNS = ("Markets/Europe/{n}", "Markets/*/{n}", "Orders/{n}/*", "Orders/{n}/Status")
_STREAMS = ("SYSTEM.BROKER.DEFAULT.STREAM", "Sport", "Business", "Rates")


def write_state(path: Path, count: int) -> None:
    """A state as JSON: *count* subscriptions on four streams, one in three with a name; count / 5 publications."""
    body = publish(1, "x", data=b"100.25")
    with path.open("w") as file:
        file.write('{"format": "qpubsub-legacy-state", "version": 1, "qmgr": "QM1",\n "subscriptions": [')
        for n in range(count):
            item = {
                "source": {"file": "broker.json", "position": n + 1},
                "topic": _PATTERNS[n % 4].format(n=n // 4),
                "queue": f"APPL{n % 2000:04}.Q",
                "qmgr": "QM1",
                "correl_id": f"{n:048X}",
                "stream": _STREAMS[n % 4],
                "user": f"user{n % 300}",
                "options": ["CorrelAsId", "Local"] if n % 7 == 0 else ["CorrelAsId"],
                "created": "2008-06-01T12:00:00Z",
                "format": "rfh1" if n % 2 else "rfh2",
            } | ({"name": f"subscription {n}"} if n % 3 == 0 else {})
            file.write(("," if n else "") + "\n  " + json.dumps(item))
        file.write('],\n "retained": [')
        for n in range(count // 5):
            held = {"topic": f"Prices/{n}", "stream": _STREAMS[n % 4], "md_hex": body.md_hex, "body_hex": body.body_hex}
            source = {"source": {"file": "broker.json", "position": count + n + 1}}
            file.write(("," if n else "") + "\n  " + json.dumps(source | held))
        file.write("]}\n")


def write_capture(path: Path, count: int) -> None:
    """A capture of *count* Register Subscriber commands."""

    def commands() -> Iterator[CapturedMessage]:
        for n in range(count):
            correl_id = (n + 1).to_bytes(24, "big")
            topic, stream = _PATTERNS[n % 4].format(n=n // 4), _STREAMS[n % 4]
            yield register(
                n + 1, topic, stream, queue_name=f"APPL{n % 2000:04}.Q", correl_id=correl_id, options=["CorrelAsId"]
            )

    with path.open("wb") as file:
        write_captures(commands(), file, "jsonl")


def measured(*arguments: str) -> str:
    """One run of strmqbrk: its time and the most memory that the process had."""
    command = [sys.executable, "-m", "commands.cli", "strmqbrk", "-m", "QM1", *arguments]
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os.execv(command[0], command)
    _, status, usage = os.wait4(child, 0)
    took, cpu = time.monotonic() - begun, usage.ru_utime + usage.ru_stime
    code = os.waitstatus_to_exitcode(status)
    return f"exit code {code}, {took:.0f} s ({cpu:.0f} s of processor time), {usage.ru_maxrss / 1024:.0f} MiB"


def sizes(directory: Path) -> str:
    """The sizes of the files of *directory*."""
    files = sorted(path for path in directory.iterdir() if path.is_file())
    return ", ".join(f"{path.name} {path.stat().st_size / 1e6:.1f} MB" for path in files)


def main(count: int) -> None:
    """Both runs."""
    with tempfile.TemporaryDirectory() as made:
        here = Path(made)
        write_state(here / "state.json", count)
        write_capture(here / "capture.jsonl", count)
        with QueueManagerStore.create(here / "home", QueueManager("QM1", psmode="COMPAT", deadq="DEAD.Q")):
            pass
        home = ("--home", str(here / "home"))
        print(f"{count:,} subscriptions as JSON, {(here / 'state.json').stat().st_size / 1e6:.0f} MB")
        print("  to an embedded queue manager:", measured(*home, str(here / "state.json")))
        for report in (here / "home").rglob("report"):
            print("  report:", sizes(report))
        print("  undone:", measured(*home, "--undo"))
        print(f"{count:,} Register Subscriber commands, {(here / 'capture.jsonl').stat().st_size / 1e6:.0f} MB")
        out = here / "out"
        print("  to files:", measured("--target", "files", "--out", str(out), str(here / "capture.jsonl")))
        print("  files:", sizes(out))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
