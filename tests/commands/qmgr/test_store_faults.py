"""Faults of the world, caused and not imagined: what was committed is there, what was not has left no trace."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.qmgr.store import (
    Durability,
    QueueManagerExistsError,
    QueueManagerInUseError,
    QueueManagerStore,
    StoreBusyError,
    StoreDamagedError,
    StoreFullError,
    schema,
)
from commands.qmgr.store.opening import DATABASE
from rfh2.errors import StoreError
from tests.waiting import PATIENCE_S, until

PRELUDE = """
import os, signal, sys
from pathlib import Path
from commands.qmgr.store import QueueManagerStore
store = QueueManagerStore.open(Path(sys.argv[1]), "QM1")
"""


def create(home: Path) -> QueueManagerStore:
    return QueueManagerStore.create(home, QueueManager("QM1"))


def reopen(home: Path, patience_s: float = 30.0) -> QueueManagerStore:
    return QueueManagerStore.open(home, "QM1", patience_s=patience_s)


def start(home: Path, program: str) -> subprocess.Popen[str]:
    """Another process that has the queue manager open as ``store``."""
    command = [sys.executable, "-c", PRELUDE + program, str(home)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def fill(store: QueueManagerStore, queue: str, count: int, size: int = 100) -> None:
    with store.unit_of_work() as unit:
        for number in range(count):
            unit.put(queue, None, number.to_bytes(4, "big") + bytes(size))


def numbers(store: QueueManagerStore, queue: str) -> list[int]:
    if store.find_queue(queue) is None:
        return []
    return [int.from_bytes(message.body[:4], "big") for message in store.browse(queue)]


# The end of a process


def test_kill_9_in_the_middle_of_a_unit_of_work(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        fill(store, "IN", 3)
        process = start(
            tmp_path,
            """
unit = store.unit_of_work()
unit.get("IN"); unit.get("IN"); unit.put("OUT", None, b"x" * 10_000_000)
print("ready", flush=True); signal.pause()
""",
        )
        until_ready(process)
        process.kill()
        process.wait()

        assert (numbers(store, "IN"), store.find_queue("OUT")) == ([0, 1, 2], None)
        fill(store, "IN", 1)
        assert store.depth("IN") == 4


# Several processes


@pytest.mark.rule("QM-13")
def test_two_processes_put_at_once(tmp_path: Path) -> None:
    program = """
for number in range(200):
    with store.unit_of_work() as unit:
        unit.put("Q", None, sys.argv[0].encode() + number.to_bytes(4, "big"), user=str(os.getpid()))
"""
    with create(tmp_path) as store:
        processes = [start(tmp_path, program) for _ in range(2)]
        assert [process.communicate(timeout=PATIENCE_S)[1] for process in processes] == ["", ""]

        messages = list(store.browse("Q"))
    assert [message.seq for message in messages] == list(range(1, 401))
    for process in processes:
        mine = [int.from_bytes(m.body[-4:], "big") for m in messages if m.user == str(process.pid)]
        assert mine == list(range(200))


@pytest.mark.rule("QM-13")
def test_two_processes_get_each_message_once(tmp_path: Path) -> None:
    program = """
while True:
    with store.unit_of_work() as unit:
        message = unit.get("Q")
        if message is None:
            break
        print(int.from_bytes(message.body[:4], "big"))
"""
    with create(tmp_path) as store:
        fill(store, "Q", 300)
        processes = [start(tmp_path, program) for _ in range(2)]
        outputs = [process.communicate(timeout=PATIENCE_S) for process in processes]

    assert [error for _, error in outputs] == ["", ""]
    assert Counter(int(line) for output, _ in outputs for line in output.split()) == Counter(range(300))


def test_another_unit_of_work_is_waited_for_but_not_for_ever(tmp_path: Path) -> None:
    with create(tmp_path) as store, reopen(tmp_path, patience_s=0.1) as impatient:
        fill(store, "Q", 1)
        with store.unit_of_work() as unit:
            unit.get("Q")
            with pytest.raises(StoreBusyError, match="another process"):
                impatient.unit_of_work()
            assert numbers(impatient, "Q") == [0]
        with impatient.unit_of_work() as unit:
            assert unit.get("Q") is None


def test_a_busy_process_does_not_keep_others_out(tmp_path: Path) -> None:
    program = """
import time
print("ready", flush=True)
while True:
    with store.unit_of_work() as unit:
        unit.put("BUSY", None, b"")
        time.sleep(0.02)
"""
    with create(tmp_path) as store, reopen(tmp_path, patience_s=PATIENCE_S) as patient:
        process = start(tmp_path, program)
        until_ready(process)
        for _ in range(5):
            fill(patient, "Q", 1)
        process.kill()
        process.wait()

        assert store.depth("Q") == 5


def test_who_waits_is_known(tmp_path: Path) -> None:
    program = """
print("ready", flush=True)
with store.unit_of_work() as unit:
    unit.put("Q", None, b"")
"""
    with create(tmp_path) as store:
        with store.unit_of_work() as unit:
            assert not unit.is_awaited
            process = start(tmp_path, program)
            until_ready(process)
            until(lambda: unit.is_awaited)
        assert process.wait(PATIENCE_S) == 0
        with store.unit_of_work() as unit:
            assert not unit.is_awaited
            assert unit.depth("Q") == 1


def test_of_several_creations_at_once_one_succeeds(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerExistsError, QueueManagerStore
try:
    QueueManagerStore.create(Path(sys.argv[1]), QueueManager("QM1")).close()
    print("made")
except QueueManagerExistsError:
    print("exists")
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]

    assert sorted(process.communicate(timeout=PATIENCE_S)[0] for process in processes) == ["exists\n"] * 3 + ["made\n"]


def test_a_browser_that_waits_holds_nobody_up(tmp_path: Path) -> None:
    with create(tmp_path) as store, reopen(tmp_path) as browser:
        fill(store, "Q", 1_000)
        messages = browser.browse("Q")
        next(messages)
        with store.unit_of_work() as unit:
            unit.clear_queue("Q")
        (busy, _frames, _taken_in) = store.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

        assert (busy, list(messages)) == (0, [])


def test_waiting_wakes_for_another_process(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        with store.unit_of_work():
            pass
        process = start(
            tmp_path,
            """
import time
print("ready", flush=True); time.sleep(0.2)
with store.unit_of_work() as unit: unit.put("Q", None, b"")
""",
        )
        until_ready(process)
        assert store.wait_for_change(PATIENCE_S)
        process.communicate(timeout=PATIENCE_S)


# The command processor's lock


def test_a_second_processor_is_refused_by_name(tmp_path: Path) -> None:
    with create(tmp_path) as store, reopen(tmp_path) as second:
        process = start(tmp_path, 'with store.processor_lock(): print("ready", flush=True); signal.pause()')
        until_ready(process)
        for refused in (store, second):
            with pytest.raises(QueueManagerInUseError, match=rf"QM1 .*process {process.pid}"):
                refused.processor_lock().__enter__()
        process.send_signal(signal.SIGKILL)
        process.wait()

        with second.processor_lock():
            pass
        with store.processor_lock():
            pass


# The disk


def limit(store: QueueManagerStore, more_pages: int) -> None:
    """From now on the database may grow by no more than that: what a full disk does."""
    (pages,) = store.database.connection.execute("PRAGMA page_count").fetchone()
    store.database.connection.execute(f"PRAGMA max_page_count = {pages + more_pages}")


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        fill(store, "Q", 10)
        limit(store, 20)
        unit = store.unit_of_work()
        unit.get("Q")
        with pytest.raises(StoreFullError, match="make room"):
            unit.put("OUT", None, bytes(1_000_000))
        unit.backout()

        assert (numbers(store, "Q"), store.find_queue("OUT")) == (list(range(10)), None)
        limit(store, 10_000)
        fill(store, "OUT", 1, 1_000_000)
    with reopen(tmp_path) as store:
        assert numbers(store, "OUT") == [0]


def test_a_unit_of_work_that_met_a_full_disk_does_not_commit_the_rest(tmp_path: Path) -> None:
    def carefree(store: QueueManagerStore) -> None:
        with store.unit_of_work() as unit:
            unit.put("Q", None, b"fits")
            with suppress(StoreFullError):
                unit.put("Q", None, bytes(1_000_000))
            # SQLite has ended the transaction: a put that went on would commit by itself.
            with suppress(StoreError):
                unit.put("Q", None, b"fits too")

    with create(tmp_path) as store:
        limit(store, 20)
        with pytest.raises(StoreError, match="backed out"):
            carefree(store)

        assert store.find_queue("Q") is None


def test_a_transaction_that_sqlite_ended_takes_no_more(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        limit(store, 20)
        unit = store.unit_of_work()
        with suppress(StoreFullError):
            unit.put("Q", None, bytes(1_000_000))
        for call in (lambda: unit.put("Q", None, b"2"), lambda: unit.get("Q"), unit.commit):
            with pytest.raises(StoreError, match="over"):
                call()
        unit.backout()

        assert store.find_queue("Q") is None


# Files that are not what they should be


def foreign(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()


def newer(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {len(schema.MIGRATIONS) + 1}")
    connection.close()


def nameless(path: Path) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM definitions WHERE kind = 'qmgr'")
    connection.close()


DAMAGE: list[tuple[str, Callable[[Path], object], str]] = [
    ("text", lambda path: path.write_bytes(b"this is no database\n" * 1_000), "not an SQLite database"),
    ("empty", lambda path: path.write_bytes(b""), "never finished"),
    ("another-programs", foreign, "another program's"),
    ("newer", newer, "newer qpubsub"),
    ("nameless", nameless, "which queue manager"),
    ("truncated", lambda path: path.write_bytes(path.read_bytes()[:5000]), "damaged"),
    ("overwritten", lambda path: path.write_bytes(path.read_bytes()[:100] + b"\xaa" * 60_000), "damaged"),
]


@pytest.mark.parametrize(("damage", "words"), [c[1:] for c in DAMAGE], ids=[c[0] for c in DAMAGE])
def test_a_damaged_database_is_told_and_left_as_it_is(
    tmp_path: Path, damage: Callable[[Path], object], words: str
) -> None:
    create(tmp_path).close()
    path = tmp_path / "QM1" / DATABASE
    damage(path)
    before = path.read_bytes()

    with pytest.raises(StoreDamagedError, match=words):
        reopen(tmp_path).load_state()
    assert path.read_bytes() == before


def test_damage_met_in_a_unit_of_work(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        fill(store, "Q", 1_000)
    path = tmp_path / "QM1" / DATABASE
    whole = path.read_bytes()
    path.write_bytes(whole[:160_000] + b"\xaa" * (len(whole) - 160_000))

    with reopen(tmp_path) as store, pytest.raises(StoreDamagedError, match="damaged"):
        list(store.browse("Q"))


@pytest.mark.parametrize(
    ("table", "words"),
    [("definitions", "definition"), ("subscriptions", "subscription"), ("retained", "retained publication on t")],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, table: str, words: str) -> None:
    with create(tmp_path) as store:
        execute = store.database.connection.execute
        if table == "definitions":
            execute("INSERT INTO definitions VALUES ('qlocal', 'X', '{}')")
        elif table == "subscriptions":
            execute("INSERT INTO subscriptions VALUES (x'00', '{}')")
        else:
            execute("INSERT INTO publications VALUES (1, 0, NULL, 0, 0, x'00', x'00')")
            execute("INSERT INTO retained VALUES ('t', 1)")
        with pytest.raises(StoreDamagedError, match=words):
            [retained.publication.message for retained in store.load_state()[2]]


def test_another_queue_managers_directory_under_this_name(tmp_path: Path) -> None:
    create(tmp_path).close()
    (tmp_path / "QM1").rename(tmp_path / "QM2")

    with pytest.raises(StoreDamagedError, match="holds queue manager QM1, not QM2"):
        QueueManagerStore.open(tmp_path, "QM2")


def test_a_path_that_cannot_be_opened(tmp_path: Path) -> None:
    create(tmp_path).close()
    (tmp_path / "QM1" / f"{DATABASE}-wal").mkdir()

    with pytest.raises(StoreError, match="permissions"):
        reopen(tmp_path)


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")

    with pytest.raises(StoreError, match="cannot be made"):
        create(tmp_path / "home")


# Creation and migration


def test_a_creation_that_was_cut_short_can_be_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "NOT SQL;"))
        with pytest.raises(StoreError):
            create(tmp_path)
    with pytest.raises(StoreDamagedError, match="create again"):
        reopen(tmp_path)

    with create(tmp_path) as store:
        fill(store, "Q", 1)
    with pytest.raises(QueueManagerExistsError):
        create(tmp_path)


def test_an_older_database_is_brought_up_to_date_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with create(tmp_path) as store:
        fill(store, "Q", 1)
    added = "CREATE TABLE added (x); INSERT INTO added VALUES (1);"
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, added.replace("; ", ";\n")))

    for _ in range(2):
        with reopen(tmp_path) as store:
            assert store.database.connection.execute("SELECT x FROM added").fetchall() == [(1,)]
            assert numbers(store, "Q") == [0]


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with create(tmp_path) as store:
        fill(store, "Q", 1)
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "CREATE TABLE added (x);\nDROP TABLE none;\n"))
        with pytest.raises(StoreError, match="none"):
            reopen(tmp_path)

    with reopen(tmp_path) as store:
        assert numbers(store, "Q") == [0]


@pytest.mark.parametrize(("durability", "synchronous"), [(Durability.FULL, 2), (Durability.NORMAL, 1)])
def test_durability(tmp_path: Path, durability: Durability, synchronous: int) -> None:
    create(tmp_path).close()
    with QueueManagerStore.open(tmp_path, "QM1", durability=durability) as store:
        connection = store.database.connection
        assert connection.execute("PRAGMA synchronous").fetchone() == (synchronous,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
