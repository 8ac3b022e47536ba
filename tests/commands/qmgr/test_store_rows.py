"""The columns of the table of messages are named once, and the positions that are used are theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore, port as rows
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork


@pytest.mark.parametrize("name", ["seq", "user", "expires_at", "body"])
def test_a_position_is_that_of_its_column(name: str) -> None:
    assert rows.COLUMNS[getattr(rows, name.upper())] == name


def test_the_columns_are_those_of_the_table(tmp_path: Path) -> None:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store, store.unit_of_work() as unit:
        assert isinstance(unit, EmbeddedUnitOfWork)
        described = unit.database.connection.execute("SELECT name FROM pragma_table_info('messages')").fetchall()
    assert {name for (name,) in described} == set(rows.COLUMNS)


@pytest.mark.parametrize("size", [0, 1, rows.SHORT_BYTES, rows.SHORT_BYTES + 1])
def test_a_body_comes_whole_wherever_it_was_read(tmp_path: Path, size: int) -> None:
    """Long bodies are not read ahead."""
    bodies = [bytes([n]) * size for n in range(3)]
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        with store.unit_of_work() as unit:
            for body in bodies:
                unit.put("Q", None, body)
        with store.unit_of_work() as unit:
            assert [message.body for message in unit.browse("Q")] == bodies
            got = [unit.get("Q") for _ in bodies]
        assert [(message.seq, message.body) for message in got if message is not None] == list(enumerate(bodies, 1))
