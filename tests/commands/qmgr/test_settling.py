"""Whenever pending writes are made, and whatever is backed out, the tables end as if each had been made at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, strategies as st

from commands.broker.objects import QueueManager
from commands.broker.state import PublicationRow
from commands.qmgr.store import QueueManagerStore, write_buffer
from commands.qmgr.store.schema import migrate
from commands.qmgr.store.sqlite_database import SqliteDatabase
from commands.qmgr.store.write_buffer import WriteBuffer
from rfh2 import Mqmd, decode
from streams.operations import Publication, RetainedPublication, RetainedStored
from tests.examples import FEW

Step = tuple[str, int]
Content = tuple[list[tuple[int, bytes]], dict[str, bytes]]

WRITES = st.tuples(st.sampled_from(["put", "take", "retain", "clear", "settle", "settle messages"]), st.integers(0, 3))
PARTS = st.tuples(st.lists(WRITES, max_size=8), st.booleans())

PUBLICATION = Publication(decode(b"", Mqmd()), datetime(2026, 1, 1, tzinfo=UTC))


def tables() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("BEGIN")
    migrate(connection, 0)
    return connection


class _InMemory(SqliteDatabase):
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection, self.path = connection, ":memory:"


class World:
    """The tables, what pends for them, and numbers. at_once: every write is made when it comes."""

    def __init__(self, connection: sqlite3.Connection, *, at_once: bool) -> None:
        self.connection, self.at_once, self.number = connection, at_once, 0
        self.pending = WriteBuffer(_InMemory(connection))
        self.there: list[int] = []

    def step(self, step: Step) -> None:
        self.number += 1
        kind, which = step
        body = str(self.number).encode()
        if kind == "put":
            self.pending.put([(self.number, "Q", 9, 0, None, 1, None, b"", body, 0)])
            self.there.append(self.number)
        elif kind == "take" and self.there:
            # A get looks at the table first.
            self.pending.flush_messages()
            self.pending.take(self.there.pop(which % len(self.there)))
        elif kind == "retain":
            self.pending.publish(self.number, PublicationRow(0, None, False, True, b"", body))
            self.pending.retain(f"t/{which}", self.number)
        elif kind == "clear":
            self.pending.execute("DELETE FROM retained WHERE topic = ?", (f"t/{which}",))
        if kind == "settle" or self.at_once:
            self.pending.flush()
        elif kind == "settle messages":
            self.pending.flush_messages()

    def part(self, steps: Sequence[Step], done: bool) -> None:
        before = list(self.there)
        self.pending.begin_part()
        for step in steps:
            self.step(step)
        self.pending.end_part(done=done)
        self.there = self.there if done else before

    def content(self) -> Content:
        self.pending.flush()
        messages = self.connection.execute("SELECT seq, body FROM messages ORDER BY seq").fetchall()
        kept = "SELECT topic, body FROM retained JOIN publications ON number = publication"
        retained = dict(self.connection.execute(kept).fetchall())
        ((publications,),) = self.connection.execute("SELECT count(*) FROM publications").fetchall()
        assert publications == len(retained)
        return messages, retained


@pytest.mark.parametrize("most_rows", [2, 2_000], ids=["little room", "room"])
@FEW
@given(st.lists(PARTS, max_size=6))
def test_the_tables_end_as_if_each_write_were_made_at_once(
    most_rows: int, parts: list[tuple[list[Step], bool]]
) -> None:
    ends = []
    for at_once in (True, False):
        world = World(tables(), at_once=at_once)
        with patch.object(write_buffer, "_MOST_MESSAGES", most_rows):
            for steps, done in parts:
                world.part(steps, done)
        ends.append(world.content())
        world.connection.close()
    assert ends[0] == ends[1]


def test_a_part_that_adds_to_much_is_no_savepoint_and_is_backed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What there is no room for is written, and that is what came before the part."""
    monkeypatch.setattr(write_buffer, "_MOST_MESSAGES", 2)
    world = World(tables(), at_once=False)
    world.part([("put", 0)] * 2, done=True)
    statements: list[str] = []
    world.connection.set_trace_callback(statements.append)
    world.part([("put", 0)] * 2, done=False)
    assert [statement.split()[0] for statement in statements] == ["INSERT", "INSERT"]
    assert world.content()[0] == [(1, b"1"), (2, b"2")]


def test_what_was_retained_before_a_part_is_not_backed_out_with_it() -> None:
    world = World(tables(), at_once=False)
    world.step(("retain", 1))
    # A get writes the messages behind a savepoint, and then something is read that is retained.
    world.part([("put", 0), ("take", 0), ("retain", 2), ("settle", 0)], done=False)
    assert world.content() == ([], {"t/1": b"1"})


@pytest.mark.parametrize("count", [1, 49, 50, 51, 120])
def test_as_many_as_are_retained_are_there(count: int) -> None:
    world = World(tables(), at_once=False)
    for _ in range(2):
        for n in range(count):
            world.step(("retain", n))
    assert world.content()[1] == {f"t/{n}": str(count + n + 1).encode() for n in range(count)}


def test_what_is_retained_is_written_once_for_many_gets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    plain = WriteBuffer._write_statements

    def noted(self: WriteBuffer, published: int, count: int) -> None:
        written.append(published)
        plain(self, published, count)

    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        with store.unit_of_work() as unit:
            for _ in range(500):
                unit.put("Q", None, b"")
        monkeypatch.setattr(WriteBuffer, "_write_statements", noted)
        with store.unit_of_work() as unit:
            for n in range(500):
                with unit.savepoint():
                    assert unit.get("Q") is not None
                    unit.save_effects([RetainedStored(RetainedPublication(f"t/{n % 7}", PUBLICATION))])
    assert [count for count in written if count] == [500]
