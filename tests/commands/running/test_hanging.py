"""Messages that hang or kill whoever reads them: the processor goes on, others work, and it can be stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore, UnitOfWork
from commands.running.supervisor import GRACE_S
from commands.running.work_page import being_worked_on
from rfh2 import Folder, Mqmd, Rfh2, decode
from tests.waiting import PATIENCE_S, until

CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
DEAD = "SYSTEM.DEAD.LETTER.QUEUE"
OVER_BUDGET, POISON = 2102, 2362

pytestmark = pytest.mark.nightly


def _put(unit: UnitOfWork, queue: str, psc: str, data: str = "data") -> None:
    body = Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + data.encode()
    unit.put(queue, Mqmd(format="MQHRF2", persistence=1, user_identifier="app").encode(), body)


def _publish(unit: UnitOfWork, data: str) -> None:
    # A tag for each: a publication whose header differs from one before only in numbers is not read at all.
    tag = f"Of{data.title().replace(' ', '')}"
    _put(unit, STREAM, f"<Command>Publish</Command><{tag}>1</{tag}><Topic>a</Topic>", data)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[QueueManagerStore]:
    """Queue manager QM1 where S subscribes to topic a."""
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        with store.unit_of_work() as unit:
            _put(unit, CONTROL, "<Command>RegSub</Command><Topic>a</Topic><QName>S</QName>")
        yield store


def _start(store: QueueManagerStore, *options: str) -> subprocess.Popen[str]:
    program = Path(__file__).with_name("hanging.py")
    arguments = ["run", "-m", "QM1", "--home", str(store.directory.parent), *options]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.Popen(
        [sys.executable, str(program), *arguments], stderr=subprocess.PIPE, text=True, env=environment
    )


@contextmanager
def _running(store: QueueManagerStore, *options: str) -> Iterator[subprocess.Popen[str]]:
    process = _start(store, *options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=PATIENCE_S)


def _is_stuck(store: QueueManagerStore, process: subprocess.Popen[str]) -> bool:
    found = being_worked_on(store.directory)
    return found is not None and found["pid"] == process.pid and not found["died"]


def _told(store: QueueManagerStore, queue: str = "S") -> list[bytes]:
    if store.find_queue(queue) is None:
        return []
    return [decode(message.body, message.md).body for message in store.browse(queue)]


def _reasons(store: QueueManagerStore) -> list[int]:
    return [decode(m.body, m.md).headers[0].reason for m in store.browse(DEAD)]  # type: ignore[attr-defined]


HANGS = ["hang in C", "hang in a regex", "hang in Python", "hang after reading"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("hang", HANGS)
def test_it_ends_within_a_second_whatever_is_being_read(
    store: QueueManagerStore, hang: str, number: signal.Signals
) -> None:
    with store.unit_of_work() as unit:
        _publish(unit, hang)
    with _running(store, "--command-seconds", "0") as process:
        until(lambda: _is_stuck(store, process))
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == 130  # what hangs would do so for ever
    assert store.depth(STREAM) == 1
    assert being_worked_on(store.directory) is None
    assert GRACE_S < 1.0


def test_an_idle_processor_ends_in_order(store: QueueManagerStore) -> None:
    with _running(store) as process:
        until(lambda: store.depth(CONTROL) == 0)
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


BUDGETS = [
    ("hang in Python", OVER_BUDGET),
    ("hang in a regex", OVER_BUDGET),
    ("hang after reading", OVER_BUDGET),
    ("hang in C", POISON),
    ("die", POISON),
]


@pytest.mark.parametrize(("fault", "reason"), BUDGETS)
def test_a_message_that_takes_too_long_is_a_dead_letter_and_the_rest_goes_on(
    store: QueueManagerStore, fault: str, reason: int
) -> None:
    with store.unit_of_work() as unit:
        for data in ("1", "2", fault, "3"):
            _publish(unit, data)
    with _running(store, "--once", "--command-seconds", "1.5") as process:
        assert process.wait(PATIENCE_S) == 1
    assert (_told(store), _reasons(store)) == ([b"1", b"2", b"3"], [reason])
    assert being_worked_on(store.directory) is None


def test_what_takes_long_to_read_is_read_while_others_can_put(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        _publish(unit, "hang in Python")
    with _running(store, "--command-seconds", "6") as process:
        until(lambda: _is_stuck(store, process))
        puts = 0
        while _reasons(store) == []:
            with store.unit_of_work() as unit:
                unit.put("OTHER", None, b"data")
            puts += 1
            time.sleep(0.05)
        assert process.poll() is None
    assert puts >= 5, "the unit of work was held for as long as the message was read"


def test_what_was_read_outside_the_unit_of_work_is_carried_out(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        for data in ("1", "hang if held", "2"):
            _publish(unit, data)
    with _running(store, "--once") as process:
        assert process.wait(PATIENCE_S) == 0
    assert _told(store) == [b"1", b"hang if held", b"2"]


@pytest.mark.parametrize("hang", ["hang in C", "hang in Python"])
def test_killed_twice_over_one_message_the_third_start_sets_it_aside(store: QueueManagerStore, hang: str) -> None:
    """kill -9 of all of it: nobody is left to say what happened."""
    with store.unit_of_work() as unit:
        for data in ("1", hang, "2"):
            _publish(unit, data)
    for _ in range(2):
        with _running(store, "--command-seconds", "0") as process:
            until(lambda: _is_stuck(store, process))
            process.kill()
            process.wait(PATIENCE_S)
        assert _told(store) in ([], [b"1"])
    process = _start(store, "--once", "--command-seconds", "0")
    _, talk = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert (_told(store), _reasons(store)) == ([b"1", b"2"], [POISON])
    assert "the processor ended 2 times while it worked on it" in talk


def test_a_message_that_kills_is_tried_once_more_and_then_set_aside_with_a_line_in_the_log(
    store: QueueManagerStore, tmp_path: Path
) -> None:
    with store.unit_of_work() as unit:
        _publish(unit, "die")
    process = _start(store, "--once", "--log", str(tmp_path / "log"))
    _, talk = process.communicate(timeout=PATIENCE_S)
    assert "ended by signal 11 (SIGSEGV) while it worked on it; it is tried once more, by itself" in talk
    assert "ended by signal 11 (SIGSEGV) while it worked on it; it is set aside" in talk
    assert (tmp_path / "log").read_text().count("SIGSEGV") >= 2


def test_a_worker_that_is_killed_is_replaced(store: QueueManagerStore) -> None:
    with _running(store) as process:
        until(lambda: store.depth(CONTROL) == 0)
        (worker,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(worker), signal.SIGKILL)
        with store.unit_of_work() as unit:
            _publish(unit, "data")
        until(lambda: _told(store) == [b"data"])
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
