"""A page of the database that the disk gives back as another one: said with what to do, and nothing made worse."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM, QueueManager
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore, StoreDamagedError
from tests.reliability.workload import clock, everything, put

_PAGE = 4096
# The whole page, what says what it is, and what is in it.
ROTS = [("zero", 0, bytes(_PAGE)), ("head", 0, b"\x5a" * 24), ("content", _PAGE - 200, b"\x5a" * 200)]


def _database(home: Path) -> Path:
    """With pages of tables, of indexes, of long messages, and of nothing."""
    with QueueManagerStore.create(home, QueueManager("QM1"), clock=clock) as store:
        with store.unit_of_work() as unit:
            for number in range(6):
                to = f"<Topic>a/{number}</Topic><QName>S{number}</QName>"
                put(unit, CONTROL_QUEUE, f"<Command>RegSub</Command>{to}")
            put(
                unit,
                DEFAULT_STREAM,
                "<Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a/1</Topic>",
                b"x" * 6_000,
            )
            put(unit, "GONE", "", bytes(9_000))
        Processor(store, clock).drain()
        with store.unit_of_work() as unit:
            unit.clear_queue("GONE")
            put(unit, DEFAULT_STREAM, "<Command>Publish</Command><Topic>a/1</Topic>", b"waits")
        return Path(store.database.path)


def _sizes(home: Path) -> dict[str, int]:
    return {what: len(found) for what, found in everything(home).items()}


@pytest.mark.parametrize(("at", "data"), [each[1:] for each in ROTS], ids=[each[0] for each in ROTS])
def test_a_page_that_rots_is_said_and_nothing_is_made_worse(tmp_path: Path, at: int, data: bytes) -> None:
    path = _database(tmp_path)
    whole, before, said, damaged = path.read_bytes(), _sizes(tmp_path), 0, 0
    for page in range(0, len(whole), _PAGE):
        rotten = whole[: page + at] + data + whole[page + at + len(data) :]
        path.write_bytes(rotten)
        try:
            # SQLite's pages have no checksum: other bytes within a message are not noticed.
            assert _sizes(tmp_path) == before, f"page {page // _PAGE}"
        except StoreDamagedError as error:
            said += "backup" in str(error)
            damaged += 1
            assert path.read_bytes() == rotten, f"page {page // _PAGE}: it was changed"
        else:
            with suppress(StoreDamagedError), QueueManagerStore.open(tmp_path, "QM1", clock=clock) as store:
                Processor(store, clock).drain()
        for left in path.parent.glob(f"{path.name}-*"):
            left.unlink()
    assert said == damaged > len(whole) // _PAGE // 4


def test_a_log_whose_beginning_rots_is_not_taken_for_a_queue_manager_that_may_be_made_again(tmp_path: Path) -> None:
    with (
        QueueManagerStore.create(tmp_path / "a", QueueManager("QM1"), clock=clock) as store,
        store.unit_of_work() as unit,
    ):
        put(unit, "Q", "")
        unit.commit()
        shutil.copytree(store.directory, tmp_path / "b" / "QM1")
    log = tmp_path / "b" / "QM1" / "qmgr.sqlite3-wal"
    data = bytearray(log.read_bytes())
    data[32 + 24 : 32 + 24 + 100] = bytes(100)
    log.write_bytes(data)
    with pytest.raises(StoreDamagedError, match="restore a backup"):
        QueueManagerStore.open(tmp_path / "b", "QM1")
