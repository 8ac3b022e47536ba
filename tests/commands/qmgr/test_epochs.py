"""Epochs: once another command processor has begun, the one before changes nothing any more."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands.broker.objects import LocalQueue, QueueManager
from commands.config.home import Home
from commands.qmgr.processor import Processor
from commands.qmgr.store import (
    Durability,
    QueueManagerStore,
    StoreBusyError,
    StoreDamagedError,
    SupersededError,
    schema,
)
from commands.qmgr.store.opening import require_readable, take_over
from tests.commands.qmgr.test_store_migration import old

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def home(home: Home) -> Home:
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    return home


def begin(home: Home, seen: int | None = None) -> int:
    return take_over(home, "QM1", Durability.NORMAL, 1.0, seen)


@pytest.fixture
def processor_store(home: Home) -> Iterator[QueueManagerStore]:
    """The store of a processor whose place is taken while it waits for messages."""
    epoch = begin(home)
    with QueueManagerStore.open(home, "QM1", epoch=epoch) as store:
        with store.unit_of_work() as unit:
            unit.put("SYSTEM.BROKER.CONTROL.QUEUE", None, b"a command")
        begin(home, epoch)
        yield store


def test_every_processor_that_begins_has_an_epoch_of_its_own(home: Home) -> None:
    assert [begin(home), begin(home), begin(home, seen=2)] == [1, 2, 3]
    with QueueManagerStore.open(home, "QM1") as store:
        with store.processor_lock():
            assert store.database.epoch == 4
        assert store.database.epoch is None


def test_of_two_that_take_over_from_the_same_one_only_one_does(home: Home) -> None:
    seen = begin(home)
    assert begin(home, seen) == seen + 1
    with pytest.raises(SupersededError):
        begin(home, seen)


@pytest.mark.rule("QM-16")
def test_a_unit_of_work_of_an_earlier_epoch_does_not_begin(processor_store: QueueManagerStore) -> None:
    before = processor_store.data_version(), [*processor_store.browse("SYSTEM.BROKER.CONTROL.QUEUE")]
    for _ in range(2):
        with pytest.raises(SupersededError, match="another instance has taken over"):
            processor_store.unit_of_work()
    assert (processor_store.data_version(), [*processor_store.browse("SYSTEM.BROKER.CONTROL.QUEUE")]) == before


@pytest.mark.parametrize("how", ["drain", "run"])
def test_a_processor_of_an_earlier_epoch_ends(
    processor_store: QueueManagerStore, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It does not try again, as after other errors of the store."""
    processor = Processor(processor_store, lambda: NOW)
    with caplog.at_level(logging.INFO), pytest.raises(SupersededError):
        processor.drain() if how == "drain" else processor.run(_Never())
    assert processor.tally.commands == 0
    assert processor_store.depth("SYSTEM.BROKER.CONTROL.QUEUE") == 1
    assert "next try" not in caplog.text


class _Never:
    def is_set(self) -> bool:
        return False

    def wait(self, timeout: float | None = None) -> bool:
        raise AssertionError(f"it waits {timeout} s to try again")


def test_other_programs_write_whoever_the_processor_is(home: Home) -> None:
    with QueueManagerStore.open(home, "QM1") as program:
        for n in range(3):
            begin(home)
            with program.unit_of_work() as unit:
                unit.save_definition(LocalQueue("Q"))
                unit.put("Q", None, b"%d" % n)
        assert [message.body for message in program.browse("Q")] == [b"0", b"1", b"2"]


def test_no_processor_begins_while_a_unit_of_work_is_open(home: Home) -> None:
    """Therefore what is checked as a unit of work begins holds when it is committed."""
    epoch = begin(home)
    with QueueManagerStore.open(home, "QM1", epoch=epoch) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("Q"))
            with pytest.raises(StoreBusyError):
                take_over(home, "QM1", Durability.NORMAL, 0.05, epoch)
            unit.put("Q", None, b"data")
        assert store.depth("Q") == 1


@pytest.mark.parametrize("version", range(1, len(schema.MIGRATIONS)))
def test_an_older_schema_is_brought_up_to_date_with_the_first_epoch(tmp_path: Path, version: int) -> None:
    """A standby of this version waits beside an active instance of an earlier one, and changes nothing before that."""
    path = old(tmp_path, version)
    before = path.read_bytes()
    require_readable(tmp_path, "QM1")
    assert path.read_bytes() == before
    assert begin(tmp_path) == 1
    with QueueManagerStore.open(tmp_path, "QM1", epoch=1) as store, store.unit_of_work() as unit:
        unit.put("BOARD", None, b"data")


def test_a_newer_schema_is_no_standbys(home: Home) -> None:
    with QueueManagerStore.open(home, "QM1") as store:
        newer = "PRAGMA user_version = 77" if isinstance(home, Path) else "UPDATE schema_version SET number = 77"
        store.database.connection.execute(newer)
    for refused in (lambda: require_readable(home, "QM1"), lambda: begin(home)):
        with pytest.raises(StoreDamagedError, match=r"newer qpubsub \(schema 77"):
            refused()
