"""apply and its undo are killed at random moments: the next run goes on, and nothing is done twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from commands.qmgr.store import QueueManagerStore
from migrate.live.loading import PROGRESS_QUEUE
from migrate.targets import embedded
from rfh2.captures import write_captures
from tests.commands.cli_runs import run
from tests.migrate.cases import told
from tests.migrate.legacy_messages import publish, register
from tests.migrate.live.rigs import create, processing

KILLS = int(os.environ.get("QPUBSUB_KILLS", "20"))
SUBSCRIPTIONS = 150


def plan(directory: Path) -> Path:
    """Streams, many registrations and retained publications."""
    messages = [register(n, f"T{n}/*", "Sport", queue_name=f"Q{n % 9}", user="anne") for n in range(1, SUBSCRIPTIONS)]
    messages += [publish(SUBSCRIPTIONS + n, f"T{n}/a", "Sport", b"%d" % n, user="feed") for n in range(1, 250)]
    messages += [register(900, "News", queue_name="N.Q", name="news", user="anne")]
    path = directory / "capture.jsonl"
    with path.open("wb") as stream:
        write_captures(messages, stream, "jsonl")
    out = directory / "files"
    ran = run("strmqbrk", "-m", "QM1", "--target", "files", "--out", str(out), str(path))
    assert ran.code in (0, 1, 3), ran.talk
    return out


def started(home: Path, files: Path, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from commands.cli import main; main()", "apply", "-m", "QM1", "--home", str(home)]
    return subprocess.Popen([*command, *words, str(files)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def state(home: Path) -> dict[str, Any]:
    with QueueManagerStore.open(home, "QM1") as store:
        return told(embedded.load(store))


def killed(home: Path, files: Path, moment_s: float, *words: str) -> bool:
    """Whether the run was killed before it ended."""
    process = started(home, files, *words)
    deadline = time.monotonic() + 60
    journal = files / "apply.journal"
    while not journal.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(moment_s)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode == -signal.SIGKILL


APPLY = ("--all", "--confirm", "stopped", "--wait", "60")


@pytest.mark.slow
@pytest.mark.faults
def test_7_4_1_killed_at_any_moment_it_goes_on_and_does_nothing_twice(tmp_path: Path) -> None:
    chance = random.Random(18)
    files = plan(tmp_path)
    interrupted = 0
    for number in range(KILLS):
        home = tmp_path / f"home{number}"
        create(home)
        before = state(home)
        with processing(home):
            interrupted += killed(home, files, chance.uniform(0, 0.8), *APPLY)
            interrupted += killed(home, files, chance.uniform(0, 0.5), *APPLY)
            ran = run("apply", "-m", "QM1", "--home", str(home), *APPLY, "--json", str(files))
            assert ran.code == 0, ran.talk
            assert json.loads(ran.out)["next"] is None
            same = run("verify", "-m", "QM1", "--home", str(home), str(files))
            assert (same.code, same.out) == (0, ""), same.out
            with QueueManagerStore.open(home, "QM1") as store:
                counts = {queue.definition.name: queue.depth for queue in store.overview().queues}
            # Each retained publication was put once, before anybody subscribed.
            assert {name: depth for name, depth in counts.items() if depth} == {}
            assert PROGRESS_QUEUE not in counts
            interrupted += killed(home, files, chance.uniform(0, 0.3), "--undo")
            if (files / "apply.journal").exists():
                undone = run("apply", "-m", "QM1", "--home", str(home), "--undo", str(files))
                assert undone.code == 0, undone.talk
        assert state(home) == before
        for journal in files.glob("apply.journal*"):
            journal.unlink()
    assert interrupted > KILLS
