"""What a bridge remembers that follows its filters itself: the filters, and its position in the tree's logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.links.engine.filters import FollowedFilters
from commands.links.engine.inbound_writer import CommandPutter, InboundWriter, Unreadable
from commands.qmgr.store import QueueManagerStore
from rfh2.errors import StoreError

QUEUE, DEAD = "SYSTEM.QPUBSUB.POSITION", "SYSTEM.DEAD.LETTER.QUEUE"


def test_the_file_of_filters_has_where_each_begins(tmp_path: Path) -> None:
    filters = FollowedFilters(tmp_path / "filters.json")
    filters.follow(["a/#"], {"s": 5, "b": 7})
    filters.follow(["b"], {"s": 9, "b": 9})
    filters.sync(["a/#"])
    filters.save(only_changes=True)
    again = FollowedFilters(tmp_path / "filters.json")
    assert (again.all(), again.synced) == (("a/#", "b"), {"a/#"})
    taken = [(again.takes("a/x", "s", at), again.takes("a/x", "b", at)) for at in (5, 6, 7, 8)]
    assert taken == [(False, False), (True, False), (True, False), (True, True)]
    (tmp_path / "filters.json").write_text("{")
    with pytest.raises(StoreError, match="remove it"):
        FollowedFilters(tmp_path / "filters.json")


def test_what_has_been_passed_need_not_be_remembered(tmp_path: Path) -> None:
    filters = FollowedFilters(tmp_path / "filters.json")
    filters.add("a", {"s": 5, "b": 7})
    filters.passed({"s": 5, "b": 6})
    assert (filters.first("s"), filters.first("b")) == (5, 7)
    filters.passed({"s": 9, "b": 7})
    assert (filters.first("s"), filters.first("new")) == (-1, -1)
    assert filters.takes("a", "new", 0), "a log that came later is followed whole"


def test_a_log_that_begins_anew_is_followed_whole(tmp_path: Path) -> None:
    filters = FollowedFilters(tmp_path / "filters.json")
    filters.add("a", {"s": 5, "b": 7})
    filters.restart("s")
    assert [filters.takes("a", "s", 0), filters.takes("a", "b", 7), filters.takes("a", "b", 8)] == [True, False, True]
    assert filters.first("s") == -1


def test_the_position_is_committed_with_the_commands_or_not_at_all(tmp_path: Path) -> None:
    QueueManagerStore.create(tmp_path, QueueManager("QM1")).close()
    store = QueueManagerStore.open(tmp_path, "QM1")
    writer = InboundWriter(store, CommandPutter("QM1", "native", DEAD), QUEUE)
    assert writer.position() is None
    writer.put([Unreadable(b"x")], {"t/0": 3})
    writer.put([], {"t/0": 4, "t/1": 0})
    assert writer.position() == {"t/0": 4, "t/1": 0}
    assert (store.depth(QUEUE), store.depth(DEAD)) == (1, 1)
    refused = InboundWriter(store, CommandPutter("QM1", "native", "?"), QUEUE)
    with pytest.raises(StoreError):
        refused.put([Unreadable(b"y")], {"t/0": 5})
    assert writer.position() == {"t/0": 4, "t/1": 0}
    with store.unit_of_work() as unit:
        unit.clear_queue(QUEUE)
        unit.put(QUEUE, None, b"[")
    with pytest.raises(StoreError, match="clear the queue"):
        writer.position()
    store.close()
