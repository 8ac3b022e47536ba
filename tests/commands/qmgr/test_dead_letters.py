"""A dead letter put again: where it was to go, as it was; or it stays, and it is said why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands.broker.objects import LocalQueue, QueueManager
from commands.broker.puts import DeadLetters
from commands.console.queues import NotPutAgainError, put_again
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from rfh2.errors import QPubSubError
from rfh2.mqmd import Mqmd
from streams.topic_objects import TopicObject
from tests.commands.qmgr.test_dynamic_queues import publish, register
from tests.commands.qmgr.test_processor import STREAM

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DEAD = "SYSTEM.DEAD.LETTER.QUEUE"
ORIGINAL = Mqmd(
    format="MQSTR",
    encoding=273,
    coded_char_set_id=500,
    msg_id=b"M" * 24,
    correl_id=b"C" * 24,
    persistence=1,
    priority=3,
    user_identifier="alice",
    expiry=600,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[QueueManagerStore]:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1"), clock=lambda: NOW) as made:
        yield made


def _dead(store: QueueManagerStore, queue: str = "BOARD", qmgr: str | None = None) -> int:
    letter = DeadLetters(store.name, DEAD).put(ORIGINAL, b"data", 2053, queue, NOW, qmgr=qmgr)
    with store.unit_of_work() as unit:
        return unit.put(DEAD, letter.message.mqmd.encode(), letter.body, time=NOW, user="alice")


def test_it_goes_where_it_was_to_go_as_it_was(store: QueueManagerStore) -> None:
    other, seq = _dead(store), _dead(store)
    assert put_again(store, DEAD, seq, NOW) == "BOARD"
    (message,) = store.browse("BOARD")
    mqmd = Mqmd.decode(message.md)
    changed = {"put_appl_type", "put_appl_name", "put_date", "put_time"}
    assert replace(mqmd, **{name: getattr(ORIGINAL, name) for name in changed}) == ORIGINAL
    assert (message.body, message.user) == (b"data", "alice")
    assert [each.seq for each in store.browse(DEAD)] == [other]


def _full(store: QueueManagerStore) -> int:
    with store.unit_of_work() as unit:
        unit.save_definition(LocalQueue("BOARD", max_depth=0))
    return _dead(store)


def _not_dead(store: QueueManagerStore) -> int:
    with store.unit_of_work() as unit:
        return unit.put(DEAD, None, b"no header", time=NOW)


REFUSALS: dict[str, tuple[Callable[[QueueManagerStore], int], str]] = {
    "gone": (lambda store: _dead(store) + 1, "it is not on SYSTEM.DEAD.LETTER.QUEUE any more"),
    "full": (_full, "BOARD is full"),
    "elsewhere": (
        lambda store: _dead(store, qmgr="QM2"),
        "was for queue BOARD of queue manager QM2",
    ),
    "itself": (lambda store: _dead(store, DEAD), "its dead-letter header names no other queue"),
    "nowhere": (lambda store: _dead(store, ""), "its dead-letter header names no other queue"),
    "no header": (_not_dead, "it does not begin with a dead-letter header"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_it_stays_where_it_cannot_be_put(case: str, store: QueueManagerStore) -> None:
    make, why = REFUSALS[case]
    seq = make(store)
    with pytest.raises(QPubSubError) as refused:
        put_again(store, DEAD, seq, NOW)
    assert why in str(refused.value)
    assert isinstance(refused.value, NotPutAgainError) is (case != "full")
    assert store.depth(DEAD) == 1
    assert store.find_queue("BOARD") is None or store.depth("BOARD") == 0


def test_a_publication_that_is_put_again_is_published(store: QueueManagerStore) -> None:
    """Its dead letter has the context of the queue manager, and so has the message that is put again."""
    processor = Processor(store, lambda: NOW)
    with store.unit_of_work() as unit:
        unit.save_definition(TopicObject("CLOSED", "a", pub=False))
    register(store, "S", option="PersAsPub")
    publish(store)
    processor.drain()
    (dead,) = store.browse(DEAD)
    with store.unit_of_work() as unit:
        unit.save_definition(TopicObject("CLOSED", "a"))
    assert put_again(store, DEAD, dead.seq, NOW) == STREAM
    processor.drain()
    assert (store.depth(DEAD), store.depth("S")) == (0, 1)
