"""A home is copied from a directory to PostgreSQL and back, whole, also where the copy is killed in the middle."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.config.home import Home, PostgresqlHome
from commands.disk.errors import QueueManagerExistsError, QueueManagerInUseError
from commands.qmgr.processor import Processor
from commands.qmgr.store import Durability, QueueManagerStore, queue_managers
from commands.qmgr.store.opening import _TABLES, connect, copy
from commands.qmgr.store.schema import NUMBERED
from tests.commands.cli_runs import run
from tests.commands.qmgr.test_dynamic_queues import STREAM, publish, register, send
from tests.postgresql import needs_postgresql

pytestmark = needs_postgresql
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NAMES = ("QM1", "QM2", "qm.3/%")


@pytest.fixture
def database(postgresql_home: PostgresqlHome) -> PostgresqlHome:
    return postgresql_home


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """Three queue managers with something in each table that a processor and programs write."""
    home = tmp_path / "home"
    for name in NAMES:
        with QueueManagerStore.create(home, QueueManager(name), clock=lambda: NOW) as store:
            with store.connect() as connection:
                connection.open("SYSTEM.DEFAULT.MODEL.QUEUE", "GONE.*")
            register(store, "Q", option="PersAsPub")
            publish(store, persistence=1)
            send_retained(store)
            Processor(store, lambda: NOW).drain()
            with store.unit_of_work() as unit:
                unit.put("IN", None, b"waits")
                unit.get("Q")
    return home


def send_retained(store: QueueManagerStore) -> None:
    send(store, STREAM, "<Command>Publish</Command><Topic>a/é</Topic><PubOpt>RetainPub</PubOpt>", persistence=1)


def content(home: Home, name: str) -> dict[str, object]:
    """All rows, and the numbers that were given last."""
    database = connect(home, name, Durability.FULL, 1.0)
    try:
        rows = {
            table: sorted(map(repr, database.connection.execute(f"SELECT {_columns(columns)} FROM {table}").fetchall()))
            for table, columns in _TABLES.items()
        }
        return {**rows, "highest": [database.highest(table) for table in NUMBERED], "versions": database.versions()}
    finally:
        database.close()


def _word(home: Home) -> str:
    return home.url if isinstance(home, PostgresqlHome) else str(home)


def _columns(columns: tuple[str, ...]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


def test_there_and_back_all_is_the_same(filled: Path, database: PostgresqlHome, tmp_path: Path) -> None:
    back = tmp_path / "back"
    for source, target in ((filled, database), (database, back)):
        assert run("home", "copy", *map(_word, (source, target))).code == 0
    assert queue_managers(back) == queue_managers(database) == tuple(sorted(NAMES))
    for name in NAMES:
        assert content(filled, name) == content(database, name) == content(back, name)
        assert content(back, name)["messages"]


KILLED = """
import os, sys
from commands.config.home import parse_home
from commands.qmgr.store.opening import copy
from commands.qmgr.store.opening import making
from commands.qmgr.store.postgresql_database import PostgresqlDatabase
from commands.qmgr.store.sqlite_database import SqliteDatabase

def die(database):
    os._exit(9)

source, target, before, *names = sys.argv[1:]
for number, name in enumerate(names):
    if number == int(before):
        SqliteDatabase.commit = PostgresqlDatabase.commit = die
    copy(parse_home(source), parse_home(target), name)
"""


@pytest.mark.parametrize("before", [pytest.param(0, marks=pytest.mark.nightly), *range(1, len(NAMES))])
def test_a_copy_that_is_killed_goes_on(filled: Path, database: PostgresqlHome, tmp_path: Path, before: int) -> None:
    homes: tuple[tuple[Home, Home], ...] = ((filled, database), (database, tmp_path / "back"))
    for source, target in homes:
        words = [*map(_word, (source, target)), str(before), *NAMES]
        killed = subprocess.run([sys.executable, "-c", KILLED, *words], check=False)
        assert killed.returncode == 9
        copied = [copy(source, target, name) for name in NAMES]
        assert copied == [number >= before for number in range(len(NAMES))]
        for name in NAMES:
            assert content(source, name) == content(target, name)


def test_what_is_worked_on_or_is_another_one_is_refused(filled: Path, database: PostgresqlHome) -> None:
    with QueueManagerStore.open(filled, "QM1") as store, store.processor_lock(), pytest.raises(QueueManagerInUseError):
        copy(filled, database, "QM1")
    copy(filled, database, "QM1")
    with QueueManagerStore.open(filled, "QM1") as store, store.unit_of_work() as unit:
        unit.put("IN", None, b"later")
    with pytest.raises(QueueManagerExistsError):
        copy(filled, database, "QM1")
