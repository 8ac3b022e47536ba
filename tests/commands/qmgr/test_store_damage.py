"""Databases damaged at random: every verb does its work, or ends with one line that names the file; no traceback."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from commands.broker.objects import QueueManager
from commands.cli import main
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.opening import DATABASE
from tests.commands.qmgr.test_store_retained import CONTROL, STREAM, command, process, publish

FIXTURES = Path(__file__).parents[3] / "fixtures"
MQSC = """DISPLAY QLOCAL(*)
DISPLAY SUB(*) ALL
DISPLAY TPSTATUS('#')
DEFINE QLOCAL(NEW)
DEFINE SUB(NEW) TOPICSTR('#') DEST(NEW)
CLEAR TOPICSTR('t/#') CLRTYPE(RETAINED)
"""
VERBS = [
    ("status",),
    ("status", "--json"),
    ("topics",),
    ("check",),
    ("browse", "S1"),
    ("get", "S1"),
    ("get", "BIG"),
    ("put", STREAM, "message.jsonl"),
    ("mqsc",),
    ("run", "--once"),
    ("strmqbrk", "--rehearse", "--source", "state.json"),
    ("strmqbrk", "--source", "state.json"),
    ("strmqbrk", "--undo"),
]
# Bytes written over those that are there, by how many there are.
DAMAGES = [
    lambda chance, size: bytes(chance.randrange(256) for _ in range(size)),
    lambda _chance, size: b"\xff" * size,
    lambda _chance, size: bytes(size),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A database with something in every table and in every kind of page."""
    home = tmp_path_factory.mktemp("whole")
    with QueueManagerStore.create(home, QueueManager("QM1")) as store:
        subscribed = "<Command>RegSub</Command><Topic>t/{0}/#</Topic><QName>S{0}</QName><SubName>name{0}</SubName>"
        process(store, *(command(subscribed.format(number), CONTROL) for number in range(20)))
        for number in range(20):
            topics, data = (f"t/{number}/a", f"t/{number}/b"), bytes(number * 40)
            process(store, publish(*topics, data=data, expiry=10**6 if number % 3 == 0 else -1))
        waiting = publish("t/1/a")
        with store.unit_of_work() as unit:
            for _ in range(20):
                unit.put(waiting.queue, waiting.md, waiting.body)
            unit.put("BIG", None, bytes(20_000))
        store.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return (home / "QM1" / DATABASE).read_bytes()


def damaged(whole: bytes, seed: int) -> bytes:
    chance = random.Random(seed)
    data = bytearray(whole)
    # Now and then the header of the file, and the schema behind it.
    first = 0 if chance.random() < 0.2 else 100
    for _ in range(chance.choice([1, 3, 20])):
        size = chance.choice([1, 1, 4, 64, 600])
        at = chance.randrange(first, len(data) - size)
        data[at : at + size] = chance.choice(DAMAGES)(chance, size)
    return bytes(data)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "message.jsonl").write_text(publish("t/1/a").model_dump_json() + "\n")
    shutil.copy(next(iter(sorted((FIXTURES / "legacy").rglob("*.json")))), tmp_path / "state.json")
    return tmp_path / "home"


def try_verbs(home: Path, whole: bytes, seeds: range) -> dict[int, int]:
    """Every verb on a copy of its own for each seed; how often each exit code came."""
    codes: dict[int, int] = {}
    for seed in seeds:
        for verb, *more in VERBS:
            shutil.rmtree(home, ignore_errors=True)
            path = home / "QM1" / DATABASE
            path.parent.mkdir(parents=True)
            path.write_bytes(damaged(whole, seed))
            given = [verb, "-m", "QM1", "--home", str(home), *more]
            result = CliRunner().invoke(main, given, input=MQSC if verb == "mqsc" else None)
            assert "Traceback" not in result.output, (seed, given, result.output)
            assert result.exit_code in (0, 1, 2), (seed, given, result.output)
            if result.exit_code == 2:
                said = result.output.strip().splitlines()[-1]
                assert str(path) in said or "queue" in said or "refused" in said, (seed, given, result.output)
            codes[result.exit_code] = codes.get(result.exit_code, 0) + 1
    return codes


def test_damage_is_said_in_a_line_that_names_the_file(home: Path, whole: bytes) -> None:
    assert try_verbs(home, whole, range(4)).get(2, 0) >= 4


@pytest.mark.nightly
def test_damage_is_said_in_a_line_that_names_the_file_many_times(home: Path, whole: bytes) -> None:
    assert try_verbs(home, whole, range(100, 160)).get(2, 0) >= 100


def test_a_log_that_was_removed_after_a_kill_is_told(tmp_path: Path) -> None:
    """The copy is what a kill leaves; without its log it would open as if nothing were missing."""
    home = tmp_path / "home"
    copy = tmp_path / "copy"
    with QueueManagerStore.create(home, QueueManager("QM1")) as store:
        with store.unit_of_work() as unit:
            unit.put("S", publish("a").md, b"data")
        shutil.copytree(home, copy)
    log, index = (copy / "QM1" / f"{DATABASE}{end}" for end in ("-wal", "-shm"))
    kept = log.read_bytes()
    log.unlink()
    for _ in range(2):
        result = CliRunner().invoke(main, ["browse", "-m", "QM1", "--home", str(copy), "S"])
        assert (result.exit_code, "-wal) was removed" in result.output) == (2, True)
    log.write_bytes(kept)
    with QueueManagerStore.open(copy, "QM1") as store:
        assert store.depth("S") == 1
    assert not log.exists()
    assert not index.exists(), "SQLite removes both"
    QueueManagerStore.open(copy, "QM1").close()
