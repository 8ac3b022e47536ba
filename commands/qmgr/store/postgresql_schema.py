"""The tables of a queue manager in PostgreSQL, which are those of ``schema`` from its ninth version on.

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

from typing import Final

FIRST_VERSION: Final = 9
NUMBERED: Final = ("messages", "publications", "connections", "dynamic_queues", "prepared")
"""The tables whose numbers are never given twice."""

_NINTH: Final = """
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


def script(version: int) -> str:
    """The statements that bring tables of *version* to the newest; 0 for none."""
    made = _NINTH if version == 0 else ""
    return made.replace(" TEXT ", ' TEXT COLLATE "C" ').replace(" TEXT,", ' TEXT COLLATE "C",')
