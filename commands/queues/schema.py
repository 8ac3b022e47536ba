"""The database of one queue manager: its tables, how an older one becomes a newer one, and whose file it is.

Each entry of MIGRATIONS leads from the version before to the next one; a new database runs them all. An entry, once
released, is never edited. ``user_version`` holds the version reached, ``application_id`` says that the file is ours.

messages     one row a message. rank is 9 - priority, so that (rank, seq) ascending is the order of MQGET: priority
             descending, then arrival. seq is never given twice. Times are microseconds since 1970, UTC.
definitions  commands.objects, each as the JSON that state_of writes
subscriptions, retained   what the topic space tells through its effects
state        one row; version grows with each unit of work that changes one of the three tables above
"""

from __future__ import annotations

import sqlite3
from typing import Final

from commands.queues.errors import StoreDamagedError

APPLICATION_ID: Final = int.from_bytes(b"qpsb", "big")

_FIRST = """
CREATE TABLE messages (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    rank INTEGER NOT NULL,
    time INTEGER NOT NULL,
    user TEXT,
    persistent INTEGER NOT NULL,
    expires_at INTEGER,
    backout_count INTEGER NOT NULL DEFAULT 0,
    md BLOB NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX messages_in_order ON messages (queue, rank);
CREATE INDEX messages_that_expire ON messages (expires_at, queue) WHERE expires_at IS NOT NULL;
CREATE TABLE definitions (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
CREATE TABLE subscriptions (
    sub_id BLOB PRIMARY KEY,
    state TEXT NOT NULL
);
CREATE TABLE retained (
    topic TEXT PRIMARY KEY,
    published_at INTEGER NOT NULL,
    expires_at INTEGER,
    local INTEGER NOT NULL,
    persistent INTEGER NOT NULL,
    md BLOB NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE state (version INTEGER NOT NULL);
INSERT INTO state VALUES (1);
"""

MIGRATIONS: tuple[str, ...] = (_FIRST,)


def version_of(connection: sqlite3.Connection, path: str) -> int:
    """The schema version of the database at *path*; 0 for one that is empty, or was left before it was finished.

    Raises StoreDamagedError for another program's database, and for one that a newer qpubsub has written.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application == 0 and version == 0 and tables == 0:
        return 0
    if application != APPLICATION_ID:
        raise StoreDamagedError(path, "is another program's database, not a queue manager; it was left as it is")
    if version > len(MIGRATIONS):
        why = f"was written by a newer qpubsub (schema {version}, this one knows {len(MIGRATIONS)}); use that one"
        raise StoreDamagedError(path, why)
    return int(version)


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring the database from *version* to the newest; the caller holds a write transaction, and commits it."""
    for script in MIGRATIONS[version:]:
        for statement in _statements(script):
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _statements(script: str) -> list[str]:
    # executescript() would commit the transaction that makes a migration happen whole or not at all.
    out, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            out.append(pending)
            pending = ""
    return out
