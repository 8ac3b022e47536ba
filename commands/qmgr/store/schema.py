"""The database of one queue manager: its tables, how an older one becomes a newer one, and whose file it is.

Each entry of MIGRATIONS leads from the version before to the next one; a new database runs them all. An entry, once
released, is never edited. ``user_version`` holds the version reached, ``application_id`` says that the file is ours.

messages      one row a message. rank is 9 - priority, so that (rank, seq) ascending is the order of MQGET: priority
              descending, then arrival. seq is never given twice. Times are microseconds since 1970, UTC.
definitions   commands.broker.objects, each as the JSON that state_of writes
subscriptions, retained   what the topic space tells through its effects
publications  what the topics in retained keep: one row a publication, however many topics keep it; a number is never
              given twice. A row goes with the last topic that kept it, which triggers on retained see to.
connections   programs that hold dynamic queues open; a number is never given twice
dynamic_queues   of what is in definitions, those made from a model; connection: that a temporary one goes with
temporary_subscriptions   of what is in subscriptions, those that go with a temporary queue, and with which
ended_subscriptions   those whose queue has gone, until the command processor has taken them off
subscription_counts, topic_counts, queue_counts   commands.broker.counts; no row: nothing was counted yet
owed_elsewhere   what is undelivered where the queues are another queue manager's, as of the last time it was noted
neighbours    the parent and the children, and the other members of each cluster; cluster: "" for parent and child;
              refresh: what they are to get again (``commands.network.topology``)
sent_proxies  the topic strings of proxy subscriptions that a neighbour was sent
repository    what is known of others that share a cluster, each as JSON (``commands.network.cluster_topics``)
senders, arrived   of messages that another queue manager of the same home sent: which channel may bring them, and those
              of which it is not known yet that they have left the other's transmission queue
prepared      branches of global transactions that are in doubt; a number is never
              given twice
sequences     how many batches of messages were carried to another queue manager of the home, and came from there
state         one row; version grows with each unit of work that changes definitions, subscriptions or retained, and
              definitions with each that changes the first of these; epoch with each processor that begins (``opening``)

In PostgreSQL there are the tables that SQLite has from the ninth version on.

Each queue manager has a schema of its own. Text is in the order of its bytes, as in SQLite. A topic string may be
longer than an entry of an index, so that an index has its digest. ``state`` has some columns more: what SQLite counts
by itself.

unit          how many units of work were committed; messages, publications ... the highest number that a table has had
waiting       1: somebody waits for the next commit, which then says so (NOTIFY) and makes it 0
writers       of each connection that has committed, the number of its last unit of work: who lost its connection in a
              commit finds out here whether that was done
questions     what programs of other machines ask the instance of run that works (``running.tenure``)
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from commands.broker.objects import (
    DEFAULT_MODELS,
    DEFAULT_QUEUES,
    Definition,
    kind_of,
    state_of,
)
from commands.disk.errors import StoreDamagedError
from streams.topic_objects import BASE_TOPIC, DEFAULT_TOPIC_OBJECTS, TopicObject

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

_SECOND = """
ALTER TABLE retained RENAME TO retained_before;
CREATE TABLE publications (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    published_at INTEGER NOT NULL,
    expires_at INTEGER,
    local INTEGER NOT NULL,
    persistent INTEGER NOT NULL,
    md BLOB NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE retained (
    topic TEXT PRIMARY KEY,
    publication INTEGER NOT NULL REFERENCES publications (number)
);
CREATE INDEX retained_by_publication ON retained (publication);
CREATE TRIGGER retained_deleted AFTER DELETE ON retained BEGIN
    DELETE FROM publications WHERE number = OLD.publication
        AND NOT EXISTS (SELECT 1 FROM retained WHERE publication = OLD.publication);
END;
CREATE TRIGGER retained_replaced AFTER UPDATE OF publication ON retained WHEN OLD.publication <> NEW.publication BEGIN
    DELETE FROM publications WHERE number = OLD.publication
        AND NOT EXISTS (SELECT 1 FROM retained WHERE publication = OLD.publication);
END;
"""
_DYNAMIC = """
CREATE TABLE connections (number INTEGER PRIMARY KEY AUTOINCREMENT);
CREATE TABLE dynamic_queues (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    connection INTEGER
);
CREATE INDEX dynamic_queues_by_connection ON dynamic_queues (connection);
CREATE TABLE temporary_subscriptions (
    sub_id BLOB PRIMARY KEY,
    queue TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX temporary_subscriptions_by_queue ON temporary_subscriptions (queue);
CREATE TABLE ended_subscriptions (sub_id BLOB PRIMARY KEY) WITHOUT ROWID;
"""
_COUNTS = """
CREATE TABLE subscription_counts (
    sub_id BLOB PRIMARY KEY,
    delivered INTEGER NOT NULL,
    last INTEGER,
    filtered INTEGER NOT NULL,
    dead_letters INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE topic_counts (
    topic TEXT PRIMARY KEY,
    publications INTEGER NOT NULL,
    last INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE queue_counts (
    queue TEXT PRIMARY KEY,
    puts INTEGER NOT NULL,
    last_put INTEGER,
    gets INTEGER NOT NULL,
    last_get INTEGER
) WITHOUT ROWID;
"""
_FOURTH = """
CREATE TABLE IF NOT EXISTS owed_elsewhere (
    queue TEXT PRIMARY KEY,
    count INTEGER NOT NULL,
    since INTEGER NOT NULL
) WITHOUT ROWID;
ALTER TABLE state ADD COLUMN definitions INTEGER NOT NULL DEFAULT 1;
"""
_FIFTH = "ALTER TABLE state ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;\n"
_SIXTH = """
CREATE TABLE neighbours (
    qmgr TEXT PRIMARY KEY,
    relation TEXT NOT NULL,
    status TEXT NOT NULL,
    refresh INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE sent_proxies (
    neighbour TEXT NOT NULL,
    topic TEXT NOT NULL,
    PRIMARY KEY (neighbour, topic)
) WITHOUT ROWID;
CREATE TABLE senders (
    qmgr TEXT PRIMARY KEY,
    claim TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE arrived (
    sender TEXT NOT NULL,
    seq INTEGER NOT NULL,
    time INTEGER NOT NULL,
    PRIMARY KEY (sender, seq, time)
) WITHOUT ROWID;
"""
_SEVENTH = """
CREATE TABLE sequences (
    qmgr TEXT PRIMARY KEY,
    sent INTEGER NOT NULL DEFAULT 0,
    received INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
"""
_EIGHTH = """
ALTER TABLE neighbours RENAME TO neighbours_before;
CREATE TABLE neighbours (
    qmgr TEXT NOT NULL,
    cluster TEXT NOT NULL,
    relation TEXT NOT NULL,
    status TEXT NOT NULL,
    refresh INTEGER NOT NULL,
    PRIMARY KEY (qmgr, cluster)
) WITHOUT ROWID;
INSERT INTO neighbours (qmgr, cluster, relation, status, refresh)
    SELECT qmgr, '', relation, status, refresh FROM neighbours_before;
DROP TABLE neighbours_before;
ALTER TABLE sent_proxies RENAME TO sent_proxies_before;
CREATE TABLE sent_proxies (
    neighbour TEXT NOT NULL,
    cluster TEXT NOT NULL,
    topic TEXT NOT NULL,
    PRIMARY KEY (neighbour, cluster, topic)
) WITHOUT ROWID;
INSERT INTO sent_proxies (neighbour, cluster, topic) SELECT neighbour, '', topic FROM sent_proxies_before;
DROP TABLE sent_proxies_before;
CREATE TABLE repository (
    qmgr TEXT PRIMARY KEY,
    entry TEXT NOT NULL
) WITHOUT ROWID;
"""
_NINTH = """
CREATE TABLE prepared (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    xid BLOB NOT NULL UNIQUE
);
"""
_PUBLISH = """INSERT INTO publications (published_at, expires_at, local, persistent, md, body)
    VALUES (?, ?, ?, ?, ?, ?)"""
_TOPIC_OF_NAME = "SELECT 1 FROM definitions WHERE kind = 'topic' AND name = ?"
_QUEUE_OF_NAME = "SELECT 1 FROM definitions WHERE kind IN ('qlocal', 'qalias', 'qmodel') AND name = ?"
_BROKER_STREAMS = ("SYSTEM.BROKER.ADMIN.STREAM", "SYSTEM.BROKER.DEFAULT.STREAM")
_AS_MADE = {
    "description": "",
    "def_priority": 0,
    "def_persistent": False,
    "max_depth": 999_999_999,
    "max_message_length": 104_857_600,
    "get_enabled": True,
    "put_enabled": True,
    "backout_threshold": 0,
    "backout_queue": "",
    "transmission": False,
}


def _retained_once(connection: sqlite3.Connection) -> None:
    """Combine equal retained publications of several topics in one row; they are equal if all their columns are."""
    numbers: dict[tuple[object, ...], int | None] = {}
    columns = "topic, published_at, expires_at, local, persistent, md, body"
    for topic, *row in connection.execute(f"SELECT {columns} FROM retained_before ORDER BY rowid"):
        *told, md, body = row
        key = (*told, sha256(md).digest(), sha256(body).digest())
        if key not in numbers:
            numbers[key] = connection.execute(_PUBLISH, row).lastrowid
        connection.execute("INSERT INTO retained (topic, publication) VALUES (?, ?)", (topic, numbers[key]))
    connection.execute("DROP TABLE retained_before")


def _streams_persistent(connection: sqlite3.Connection) -> None:
    """Give the default and the admin stream DEFPSIST(YES), as in IBM MQ, if their definitions are unchanged."""
    for name in _BROKER_STREAMS:
        where = "kind = 'qlocal' AND name = ?"
        found = connection.execute(f"SELECT state FROM definitions WHERE {where}", (name,)).fetchone()
        state = None if found is None else json.loads(found[0])
        if state is not None and all(state.get(key, value) == value for key, value in _AS_MADE.items()):
            state["def_persistent"] = True
            connection.execute(f"UPDATE definitions SET state = ? WHERE {where}", (json.dumps(state), name))


def _second(connection: sqlite3.Connection) -> None:
    _run(connection, _SECOND)
    _retained_once(connection)
    _streams_persistent(connection)


def _default_objects(connection: sqlite3.Connection) -> None:
    """Define in an older queue manager the objects that a new one has, except where a name is in use.

    A new database has no queue manager yet, and gets all of these when it is made.
    """
    if connection.execute("SELECT 1 FROM definitions").fetchone() is None:
        return
    # If the base topic is missing, someone has deleted it deliberately.
    topics = (made for made in DEFAULT_TOPIC_OBJECTS if made.name != BASE_TOPIC)
    defaults: tuple[Definition, ...] = (*DEFAULT_MODELS, *DEFAULT_QUEUES, *topics)
    for made in defaults:
        is_topic = isinstance(made, TopicObject)
        is_there = connection.execute(_TOPIC_OF_NAME if is_topic else _QUEUE_OF_NAME, (made.name,)).fetchone()
        if is_there is None:
            row = (kind_of(made), made.name, state_of(made))
            connection.execute("INSERT INTO definitions (kind, name, state) VALUES (?, ?, ?)", row)


def _third(connection: sqlite3.Connection) -> None:
    _run(connection, _COUNTS)
    _run(connection, _DYNAMIC)
    _default_objects(connection)


def _run(connection: sqlite3.Connection, script: str) -> None:
    for statement in _statements(script):
        connection.execute(statement)


MIGRATIONS: tuple[str | Callable[[sqlite3.Connection], None], ...] = (
    _FIRST,
    _second,
    _third,
    _FOURTH,
    _FIFTH,
    _SIXTH,
    _SEVENTH,
    _EIGHTH,
    _NINTH,
)


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
    for migration in MIGRATIONS[version:]:
        if isinstance(migration, str):
            _run(connection, migration)
        else:
            migration(connection)
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


FIRST_VERSION: Final = 9
NUMBERED: Final = ("messages", "publications", "connections", "dynamic_queues", "prepared")
"""The tables whose numbers are never given twice."""

_POSTGRESQL: Final = """
CREATE TABLE schema_version (number BIGINT NOT NULL);
INSERT INTO schema_version VALUES (9);
CREATE FUNCTION digest(topic TEXT) RETURNS BYTEA IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql
    AS $$ SELECT sha256(convert_to(topic, 'UTF8')) $$;
CREATE TABLE messages (
    seq BIGINT PRIMARY KEY,
    queue TEXT NOT NULL,
    rank BIGINT NOT NULL,
    time BIGINT NOT NULL,
    "user" TEXT,
    persistent BIGINT NOT NULL,
    expires_at BIGINT,
    backout_count BIGINT NOT NULL DEFAULT 0,
    md BYTEA NOT NULL,
    body BYTEA NOT NULL
);
CREATE INDEX messages_in_order ON messages (queue, rank, seq);
CREATE INDEX messages_that_expire ON messages (expires_at, queue) WHERE expires_at IS NOT NULL;
CREATE TABLE definitions (kind TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL, PRIMARY KEY (kind, name));
CREATE TABLE subscriptions (sub_id BYTEA PRIMARY KEY, state TEXT NOT NULL);
CREATE TABLE publications (
    number BIGINT PRIMARY KEY,
    published_at BIGINT NOT NULL,
    expires_at BIGINT,
    local BIGINT NOT NULL,
    persistent BIGINT NOT NULL,
    md BYTEA NOT NULL,
    body BYTEA NOT NULL
);
CREATE TABLE retained (topic TEXT NOT NULL, publication BIGINT NOT NULL);
CREATE UNIQUE INDEX retained_by_digest ON retained (digest(topic));
CREATE INDEX retained_by_topic ON retained USING hash (topic);
CREATE INDEX retained_by_publication ON retained (publication);
CREATE FUNCTION forget_publications() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM publications USING gone WHERE number = gone.publication
        AND NOT EXISTS (SELECT 1 FROM retained WHERE retained.publication = gone.publication);
    RETURN NULL;
END $$;
CREATE TRIGGER retained_deleted AFTER DELETE ON retained REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION forget_publications();
CREATE TRIGGER retained_replaced AFTER UPDATE ON retained REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION forget_publications();
CREATE TABLE connections (number BIGINT PRIMARY KEY);
CREATE TABLE dynamic_queues (number BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, connection BIGINT);
CREATE INDEX dynamic_queues_by_connection ON dynamic_queues (connection);
CREATE TABLE temporary_subscriptions (sub_id BYTEA PRIMARY KEY, queue TEXT NOT NULL);
CREATE INDEX temporary_subscriptions_by_queue ON temporary_subscriptions (queue);
CREATE TABLE ended_subscriptions (sub_id BYTEA PRIMARY KEY);
CREATE TABLE subscription_counts (
    sub_id BYTEA PRIMARY KEY,
    delivered BIGINT NOT NULL,
    last BIGINT,
    filtered BIGINT NOT NULL,
    dead_letters BIGINT NOT NULL
);
CREATE TABLE topic_counts (topic TEXT NOT NULL, publications BIGINT NOT NULL, last BIGINT NOT NULL);
CREATE UNIQUE INDEX topic_counts_by_digest ON topic_counts (digest(topic));
CREATE INDEX topic_counts_by_topic ON topic_counts USING hash (topic);
CREATE TABLE queue_counts (
    queue TEXT PRIMARY KEY,
    puts BIGINT NOT NULL,
    last_put BIGINT,
    gets BIGINT NOT NULL,
    last_get BIGINT
);
CREATE TABLE owed_elsewhere (queue TEXT PRIMARY KEY, count BIGINT NOT NULL, since BIGINT NOT NULL);
CREATE TABLE neighbours (
    qmgr TEXT NOT NULL,
    cluster TEXT NOT NULL,
    relation TEXT NOT NULL,
    status TEXT NOT NULL,
    refresh BIGINT NOT NULL,
    PRIMARY KEY (qmgr, cluster)
);
CREATE TABLE sent_proxies (neighbour TEXT NOT NULL, cluster TEXT NOT NULL, topic TEXT NOT NULL);
CREATE UNIQUE INDEX sent_proxies_by_digest ON sent_proxies (neighbour, cluster, digest(topic));
CREATE TABLE repository (qmgr TEXT PRIMARY KEY, entry TEXT NOT NULL);
CREATE TABLE senders (qmgr TEXT PRIMARY KEY, claim TEXT NOT NULL);
CREATE TABLE arrived (sender TEXT NOT NULL, seq BIGINT NOT NULL, time BIGINT NOT NULL, PRIMARY KEY (sender, seq, time));
CREATE TABLE sequences (qmgr TEXT PRIMARY KEY, sent BIGINT NOT NULL DEFAULT 0, received BIGINT NOT NULL DEFAULT 0);
CREATE TABLE prepared (number BIGINT PRIMARY KEY, xid BYTEA NOT NULL UNIQUE);
CREATE TABLE writers (name TEXT PRIMARY KEY, unit BIGINT NOT NULL);
CREATE UNLOGGED TABLE questions (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    asked_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    question TEXT NOT NULL,
    answer TEXT
);
CREATE TABLE state (
    version BIGINT NOT NULL,
    definitions BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    unit BIGINT NOT NULL,
    waiting BIGINT NOT NULL,
    messages BIGINT NOT NULL,
    publications BIGINT NOT NULL,
    connections BIGINT NOT NULL,
    dynamic_queues BIGINT NOT NULL,
    prepared BIGINT NOT NULL
) WITH (fillfactor = 10);
INSERT INTO state VALUES (1, 1, 0, 0, 0, 0, 0, 0, 0, 0);
"""


def postgresql_script(version: int) -> str:
    """The statements that bring tables of *version* to the newest; 0 for none."""
    made = _POSTGRESQL if version == 0 else ""
    return made.replace(" TEXT ", ' TEXT COLLATE "C" ').replace(" TEXT,", ' TEXT COLLATE "C",')
