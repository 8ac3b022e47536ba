"""Of every schema there ever was: what its golden database says is there afterwards, in the tables of a new one."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from commands.broker.objects import QueueManager, definition_of, state_of
from commands.broker.state import subscription_state
from commands.qmgr.store import QueueManagerStore, schema
from commands.qmgr.store.opening import DATABASE
from streams.subscriptions import Subscription
from tests.commands.qmgr.golden_state import dumped, made
from tests.commands.qmgr.test_store_migration import old
from tests.reliability.workload import NOW, clock

LATEST = len(schema.MIGRATIONS)
SCHEMAS = range(1, LATEST + 1)
# Schema 2 changed these on purpose, if nobody else had.
CHANGED = {
    ("qlocal", "SYSTEM.BROKER.ADMIN.STREAM", "def_persistent"),
    ("qlocal", "SYSTEM.BROKER.DEFAULT.STREAM", "def_persistent"),
}


def tables(path: Path) -> dict[str, object]:
    """Columns of tables and indexes, and triggers, by name."""
    connection = sqlite3.connect(path)
    found: dict[str, object] = {}
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall():
        asked = {"table": "table_xinfo", "index": "index_xinfo"}.get(kind)
        columns = [] if asked is None else connection.execute(f"PRAGMA {asked}('{name}')").fetchall()
        found[f"{kind} {name}"] = columns or " ".join((sql or "").split())
    connection.close()
    return found


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def lost(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """The attributes that *after* lacks or has another value of; it may have more."""
    return {key for key, value in before.items() if key not in after or after[key] != value}


def test_a_new_queue_manager_has_the_tables_of_the_golden_database_of_its_schema(tmp_path: Path) -> None:
    """Where this fails, a schema was changed that databases have already: it needs a migration."""
    QueueManagerStore.create(tmp_path / "new", QueueManager("QM1")).close()
    assert tables(tmp_path / "new" / "QM1" / DATABASE) == tables(old(tmp_path / "golden", LATEST))


@pytest.mark.parametrize("version", SCHEMAS)
def test_an_older_database_gets_the_tables_of_a_new_one(tmp_path: Path, version: int) -> None:
    path = old(tmp_path / "golden", version)
    QueueManagerStore.open(tmp_path / "golden", "QM1").close()
    QueueManagerStore.create(tmp_path / "new", QueueManager("QM1")).close()
    assert tables(path) == tables(tmp_path / "new" / "QM1" / DATABASE)


@pytest.mark.parametrize("version", SCHEMAS)
def test_definitions_and_subscriptions_keep_every_attribute(tmp_path: Path, version: int) -> None:
    path = old(tmp_path, version)
    definitions = {row[:2]: json.loads(row[2]) for row in rows(path, "SELECT kind, name, state FROM definitions")}
    subscriptions = {row[0]: json.loads(row[1]) for row in rows(path, "SELECT sub_id, state FROM subscriptions")}
    with QueueManagerStore.open(tmp_path, "QM1", clock=clock) as store:
        found = {key: json.loads(state) for key, state in _read_and_written(store).items()}
        after = {each.sub_id: json.loads(subscription_state(each)) for each in store.load_state()[1]}
    assert definitions.keys() <= found.keys()
    changed = {(*key, each) for key, before in definitions.items() for each in lost(before, found[key])}
    assert changed <= (CHANGED if version == 1 else set())
    assert after.keys() == subscriptions.keys()
    assert set().union(*(lost(before, after[key]) for key, before in subscriptions.items())) == set()


def _read_and_written(store: QueueManagerStore) -> dict[tuple[str, str], str]:
    """Each definition as this version reads it, and would write it again."""
    query = "SELECT kind, name, state FROM definitions"
    kept = store.database.connection.execute(query).fetchall()
    return {(kind, name): state_of(definition_of(kind, state)) for kind, name, state in kept}


@pytest.mark.parametrize("version", SCHEMAS)
def test_messages_retained_publications_and_counters_stay(tmp_path: Path, version: int) -> None:
    path = old(tmp_path, version)
    columns = "seq, queue, rank, time, user, persistent, expires_at, backout_count, md, body"
    messages = f"SELECT {columns} FROM messages ORDER BY seq"
    kept = "SELECT topic, md, body FROM retained"
    if version > 1:
        kept += " JOIN publications ON publications.number = retained.publication"
    counted = ("subscription_counts", "topic_counts", "queue_counts", "dynamic_queues") if version > 2 else ()
    before = [
        rows(path, messages),
        sorted(rows(path, kept)),
        *(rows(path, f"SELECT * FROM {name}") for name in counted),
    ]
    QueueManagerStore.open(tmp_path, "QM1", clock=clock).close()
    now = "SELECT topic, md, body FROM retained JOIN publications ON publications.number = retained.publication"
    after = [rows(path, messages), sorted(rows(path, now)), *(rows(path, f"SELECT * FROM {name}") for name in counted)]
    assert before == after
    assert before[0]


def test_the_golden_database_of_this_schema_has_every_kind_of_state(tmp_path: Path) -> None:
    path = old(tmp_path, LATEST)
    empty = {"connections", "ended_subscriptions", "temporary_subscriptions"}  # of programs that are connected
    empty |= {"arrived", "senders", "sequences"}  # of other queue managers
    names = {name for (name,) in rows(path, "SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert {name for name in names if not rows(path, f"SELECT * FROM {name}")} == empty | {"owed_elsewhere"}
    kinds = {kind for (kind,) in rows(path, "SELECT DISTINCT kind FROM definitions")}
    assert kinds == {"qmgr", "qlocal", "qalias", "qmodel", "namelist", "topic", "authrec", "channel"}
    subscriptions = [json.loads(state) for (state,) in rows(path, "SELECT state FROM subscriptions")]
    plain = json.loads(subscription_state(Subscription(bytes(24), "t", "Q", "QM1", NOW)))
    # A field that is younger than the golden database has its default there.
    only_default = {key for key in plain if all(each.get(key, plain[key]) == plain[key] for each in subscriptions)}
    assert only_default == {"dest_qmgr", "temporary", "renewed"}


def test_what_it_is_made_by_still_works(tmp_path: Path) -> None:
    assert f"PRAGMA user_version = {LATEST};" in dumped(made(tmp_path))
