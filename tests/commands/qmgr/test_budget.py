"""The budget of one command, and a watch that interrupts: what goes beyond is set aside, all else is done once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands.broker.budget import Budget
from commands.broker.objects import LocalQueue, QueueManager
from commands.broker.puts import Put
from commands.qmgr.processor import Processor, ProcessorSettings
from commands.qmgr.store import QueueManagerStore, StoredMessage, UnitOfWork
from commands.qmgr.watchdog import EndedProcessors, NoWatchdog, OverdueError
from rfh2 import Folder, Mqmd, Rfh2, decode
from rfh2.errors import StoreError

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
DEAD = "SYSTEM.DEAD.LETTER.QUEUE"


def _put(unit: UnitOfWork, queue: str, psc: str, data: bytes = b"data") -> None:
    body = Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + data
    unit.put(queue, Mqmd(format="MQHRF2", persistence=1, user_identifier="app").encode(), body)


def _publish(unit: UnitOfWork, *topics: str, data: bytes = b"data") -> None:
    named = "".join(f"<Topic>{topic}</Topic>" for topic in topics)
    _put(unit, STREAM, f"<Command>Publish</Command>{named}", data)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[QueueManagerStore]:
    """Queue manager QM1 where S and T subscribe to topics under a, and S alone to topic b."""
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        with store.unit_of_work() as unit:
            for topic, queue in (("a/#", "S"), ("a/#", "T"), ("b", "S")):
                _put(unit, CONTROL, f"<Command>RegSub</Command><Topic>{topic}</Topic><QName>{queue}</QName>")
        Processor(store, lambda: NOW).drain()
        yield store


def _depths(store: QueueManagerStore, *queues: str) -> list[int]:
    return [store.depth(queue) if store.find_queue(queue) else 0 for queue in queues]


def _reasons(store: QueueManagerStore) -> list[int]:
    return [decode(m.body, m.md).headers[0].reason for m in store.browse(DEAD)]  # type: ignore[attr-defined]


BEYOND = [
    pytest.param(Budget(topics=2), ("b", "c", "d"), 4, id="topics"),
    pytest.param(Budget(changes=1), ("a/1",), 4, id="publications"),
    pytest.param(Budget(changes=3), ("a/1", "a/2"), 4, id="publications-of-several-topics"),
    pytest.param(Budget(size_bytes=5_000), ("b",), 10_000, id="size"),
    pytest.param(Budget(size_bytes=5_000), ("a/1",), 3_000, id="size-of-all"),
]


@pytest.mark.parametrize(("budget", "topics", "size_bytes"), BEYOND)
def test_what_goes_beyond_its_budget_is_a_dead_letter_and_the_rest_goes_on(
    store: QueueManagerStore, budget: Budget, topics: tuple[str, ...], size_bytes: int
) -> None:
    with store.unit_of_work() as unit:
        for _ in range(3):  # the third one is known by the ones before, if they were done
            _publish(unit, *topics, data=bytes(size_bytes))
        _publish(unit, "b")
    processor = Processor(store, lambda: NOW, settings=ProcessorSettings(budget=budget))
    assert processor.drain() == 4
    assert _depths(store, "S", "T", STREAM) == [1, 0, 0]
    assert _reasons(store) == [2102] * 3
    assert (processor.tally.errors, processor.tally.dead_letters, processor.tally.publications) == (3, 3, 1)


def test_a_publication_like_one_before_has_the_same_budget(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        for size_bytes in (10, 10, 10, 4_000):
            _publish(unit, "a/1", data=bytes(size_bytes))
    Processor(store, lambda: NOW, settings=ProcessorSettings(budget=Budget(size_bytes=5_000))).drain()
    assert (_depths(store, "S", "T"), _reasons(store)) == ([3, 3], [2102])


def test_no_limit_is_no_limit(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        _publish(unit, *(f"a/{n}" for n in range(50)), data=bytes(1_000))
    Processor(store, lambda: NOW, settings=ProcessorSettings(budget=Budget(0, 0, 0, 0))).drain()
    assert _depths(store, "S", "T") == [50, 50]


def test_the_budget_of_a_command_is_not_that_of_the_next(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        for n in range(10):
            _publish(unit, f"a/{n}")
    Processor(store, lambda: NOW, settings=ProcessorSettings(budget=Budget(changes=2))).drain()
    assert _depths(store, "S", "T") == [10, 10]


class _Impatient(NoWatchdog):
    """Finds that reading messages with ``slow`` in them takes too long: in a unit of work, or outside it too."""

    def __init__(
        self, store: QueueManagerStore, outside_too: bool = False, ended: EndedProcessors | None = None
    ) -> None:
        self._store, self._outside_too, self._ended = store, outside_too, ended
        self.seen: list[tuple[bytes, bool]] = []
        self.absolved: list[int] = []

    def begin(self, message: StoredMessage, held: bool) -> None:
        assert self._store.database.connection.in_transaction is held
        what = decode(message.body, message.md).body
        is_first = (what, held) not in self.seen
        self.seen.append((what, held))
        if b"slow" in what and is_first and (held or self._outside_too):
            raise OverdueError

    def ended_on(self, message: StoredMessage) -> EndedProcessors | None:
        return self._ended if b"slow" in message.body else None

    def succeeded(self, message: StoredMessage) -> None:
        self.absolved.append(message.seq)


def test_what_takes_long_to_read_is_read_outside_a_unit_of_work(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        for n, data in enumerate((b"1", b"slow", b"2")):
            _publish(unit, f"a/{n}", data=data)
    watch = _Impatient(store)
    assert Processor(store, lambda: NOW, watchdog=watch).drain() == 3
    assert watch.seen == [(b"1", True), (b"slow", True), (b"slow", False), (b"slow", True), (b"2", True)]
    assert (_depths(store, "S", "T", DEAD), len(watch.absolved)) == ([3, 3, 0], 1)


def test_what_takes_too_long_there_as_well_is_set_aside(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        for n, data in enumerate((b"1", b"slow", b"2")):
            _publish(unit, f"a/{n}", data=data)
    assert Processor(store, lambda: NOW, watchdog=_Impatient(store, outside_too=True)).drain() == 3
    assert (_depths(store, "S", "T"), _reasons(store)) == ([2, 2], [2102])


def test_a_message_that_ended_a_processor_once_is_done_in_a_unit_of_work_of_its_own(
    store: QueueManagerStore,
) -> None:
    with store.unit_of_work() as unit:
        for n, data in enumerate((b"1", b"slow", b"2")):
            _publish(unit, f"a/{n}", data=data)
    commits: list[int] = []
    watch = _Impatient(store, ended=EndedProcessors(1, "ended by signal 11"))
    watch.seen.append((b"slow", True))
    Processor(store, lambda: NOW, watchdog=watch, committed=lambda tally: commits.append(tally.commands)).drain()
    assert (commits, _depths(store, "S", "T", DEAD)) == ([1, 2, 3], [3, 3, 0])


def test_a_message_that_ended_two_processors_is_set_aside_unread(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        for n, data in enumerate((b"1", b"slow", b"2")):
            _publish(unit, f"a/{n}", data=data)
    watch = _Impatient(store, ended=EndedProcessors(2, "ended by signal 11"))
    assert Processor(store, lambda: NOW, watchdog=watch).drain() == 3
    assert b"slow" not in [what for what, _ in watch.seen]
    assert (_depths(store, "S", "T"), _reasons(store), len(watch.absolved)) == ([2, 2], [2362], 1)


def test_it_stays_where_it_is_while_the_dead_letter_queue_does_not_take_it(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        unit.save_definition(LocalQueue(DEAD, put_enabled=False))
        _publish(unit, "a/1", data=b"slow")
    watch = _Impatient(store, ended=EndedProcessors(2, "ended by signal 11"))
    processor = Processor(store, lambda: NOW, watchdog=watch)
    with pytest.raises(StoreError):
        processor.drain()
    assert (_depths(store, STREAM), watch.absolved) == ([1], [])
    with store.unit_of_work() as unit:
        unit.save_definition(LocalQueue(DEAD))
    processor.drain()
    assert (_reasons(store), len(watch.absolved)) == ([2362], 1)


def test_puts_that_could_not_be_recorded_are_recorded_before_anything_else_is_done(store: QueueManagerStore) -> None:
    room = 1
    recorded: list[Put] = []

    def record(put: Put) -> None:
        if len(recorded) >= room:
            raise StoreError("the disk is full")
        recorded.append(put)

    with store.unit_of_work() as unit:
        for n in range(3):
            _publish(unit, f"a/{n}")
    processor = Processor(store, lambda: NOW, record, settings=ProcessorSettings(batch=1))
    for room in (1, 3, 6):
        if room < 6:
            with pytest.raises(StoreError):
                processor.drain()
            assert len(recorded) == room
        else:
            processor.drain()
    assert [put.seq for put in recorded] == sorted(put.seq for put in recorded)
    assert (len(recorded), _depths(store, "S", "T", STREAM)) == (6, [3, 3, 0])
