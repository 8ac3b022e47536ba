"""A subscriber whose queue refuses, where the dead-letter queue refuses too, holds nobody up and loses nothing.

Guide 6.7.6 speaks of responses and 6.5.1 of commands; of publications: each subscriber has its own, in order.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from commands.broker.objects import LocalQueue, QueueManager
from commands.config.home import Home
from commands.disk.errors import UndeliverableError
from commands.qmgr.delivery import Backlog
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore, StoreFullError, UnitOfWork
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from commands.running.journal import Journal
from commands.terminal.console import Console
from rfh2 import Folder, Mqmd, Rfh2, decode
from tests.commands.cli_runs import run

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
DEAD = "SYSTEM.DEAD.LETTER.QUEUE"

Change = Callable[[UnitOfWork], None]


def _put(unit: UnitOfWork, queue: str, psc: str, data: str = "data", **mqmd: object) -> None:
    md = Mqmd(**{"format": "MQHRF2", "persistence": 1, "priority": 0, "user_identifier": "app", **mqmd})  # type: ignore[arg-type]
    unit.put(queue, md.encode(), Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + data.encode())


def _publish(store: QueueManagerStore, *data: str, **mqmd: object) -> None:
    with store.unit_of_work() as unit:
        for each in data:
            psc = f"<Command>Publish</Command><SeqNum>{len(each)}</SeqNum><Topic>a</Topic>"
            _put(unit, STREAM, psc, each, **mqmd)


def _create(home: Home, **attributes: object) -> QueueManagerStore:
    """S and T subscribe to topic a; S and the dead-letter queue take nothing."""
    store = QueueManagerStore.create(home, QueueManager("QM1", **attributes), clock=lambda: NOW)  # type: ignore[arg-type]
    with store.unit_of_work() as unit:
        for queue in ("S", "T"):
            unit.save_definition(LocalQueue(queue))
            _put(unit, CONTROL, f"<Command>RegSub</Command><Topic>a</Topic><QName>{queue}</QName>")
    Processor(store, lambda: NOW).drain()
    _define(store, LocalQueue("S", put_enabled=False), LocalQueue(DEAD, put_enabled=False))
    return store


@pytest.fixture
def store(home: Home) -> Iterator[QueueManagerStore]:
    with _create(home) as store:
        yield store


def _define(store: QueueManagerStore, *queues: LocalQueue) -> None:
    with store.unit_of_work() as unit:
        for queue in queues:
            unit.save_definition(queue)


def _told(store: QueueManagerStore, queue: str) -> list[str]:
    return [decode(message.body, message.md).body.decode() for message in store.browse(queue)]


def _owed(store: QueueManagerStore) -> dict[str, int]:
    return {name: count for name, count, _ in store.overview().undelivered}


def _drain(processor: Processor) -> None:
    while processor.drain():
        pass


def _full(unit: UnitOfWork) -> None:
    unit.save_definition(LocalQueue("S", max_depth=0))


def _gone(unit: UnitOfWork) -> None:
    unit.save_definition(QueueManager("QM1", strict=True))
    unit.delete_definition("qlocal", "S")


def _inhibited(unit: UnitOfWork) -> None:
    unit.save_definition(LocalQueue("S", put_enabled=False))


@pytest.mark.rule("RESP-12", "APP-3")
@pytest.mark.parametrize("refusing", [_full, _gone, _inhibited])
def test_other_subscribers_have_theirs_and_it_gets_all_in_order_later(
    store: QueueManagerStore, refusing: Change
) -> None:
    with store.unit_of_work() as unit:
        refusing(unit)
    processor = Processor(store, lambda: NOW)
    for data in ("1", "22", "333"):
        _publish(store, data)
        assert processor.drain() == 1
    assert (_told(store, "T"), _owed(store)) == (["1", "22", "333"], {"S": 3})
    _define(store, LocalQueue("S"))
    _publish(store, "4444")
    processor.drain()
    assert (_told(store, "S"), _told(store, "T"), _owed(store)) == (["1", "22", "333", "4444"],) * 2 + ({},)
    assert processor.undelivered == 0


def test_a_restart_keeps_what_is_owed(home: Home) -> None:
    with _create(home) as store:
        _publish(store, "1", "22")
        Processor(store, lambda: NOW).drain()
    with QueueManagerStore.open(home, "QM1", clock=lambda: NOW) as store:
        _define(store, LocalQueue("S"))
        _publish(store, "333")
        Processor(store, lambda: NOW).drain()
        assert (_told(store, "S"), _owed(store)) == (["1", "22", "333"], {})


def test_what_is_published_before_it_is_tried_again_stays_behind(store: QueueManagerStore) -> None:
    """The pause between two tries is not over when the queue can take messages again."""
    now = NOW
    backlog = Backlog(lambda: now, 30.0)
    processor = Processor(store, lambda: now, backlog=backlog)
    _publish(store, "1")
    processor.drain()
    _define(store, LocalQueue("S"))
    _publish(store, "22")
    processor._drain(None)
    assert (_told(store, "S"), _owed(store)) == ([], {"S": 2})
    now += timedelta(seconds=31)
    assert backlog.is_due
    processor.drain()
    assert _told(store, "S") == ["1", "22"]


class _Reader:
    """Reads S after each batch, and publishes something. The clock goes on by 0.05 s each time."""

    def __init__(self, store: QueueManagerStore, count: int) -> None:
        self._store, self.now = store, NOW
        self.left, self.got = [f"{number:03}" for number in range(count)], list[str]()

    def is_set(self) -> bool:
        self.now += timedelta(seconds=0.05)
        if self.left:
            _publish(self._store, self.left.pop(0))
        with self._store.unit_of_work() as unit:
            while (message := unit.get("S")) is not None:
                self.got.append(decode(message.body, message.md).body.decode())
        return self.now > NOW + timedelta(seconds=20)

    def wait(self, timeout: float | None = None) -> bool:
        del timeout
        return False


def test_a_short_queue_that_is_read_gets_all_that_is_owed_while_commands_come_without_end(
    store: QueueManagerStore,
) -> None:
    owed = [f"owed {number}" for number in range(100)]
    _publish(store, *owed)
    Processor(store, lambda: NOW).drain()
    _define(store, LocalQueue("S", max_depth=2))
    reader = _Reader(store, 380)
    Processor(store, lambda: reader.now, backlog=Backlog(lambda: reader.now, 5.0)).run(reader, idle_s=0.0)
    # Two each 0.1 or 0.15 seconds in 20 seconds; with ever longer pauses it would be 16.
    assert len(reader.got) >= 200
    assert reader.got == owed + [f"{number:03}" for number in range(len(reader.got) - 100)]


def test_it_is_tried_ever_more_slowly(store: QueueManagerStore) -> None:
    now = NOW
    backlog = Backlog(lambda: now, 1.0)
    processor = Processor(store, lambda: now, backlog=backlog)
    _publish(store, "1")
    processor.drain()
    pauses = []
    for _ in range(8):
        since = now
        while not backlog.is_due:
            now += timedelta(seconds=0.05)
        pauses.append(round((now - since).total_seconds(), 2))
        processor.drain()
    assert pauses == sorted(pauses)
    assert pauses[0] <= 0.25
    assert pauses[-1] == pytest.approx(1.0, abs=0.1)


def test_the_dead_letter_queue_takes_it_where_that_is_what_is_mended(store: QueueManagerStore) -> None:
    _publish(store, "1", "22")
    processor = Processor(store, lambda: NOW)
    processor.drain()
    _define(store, LocalQueue(DEAD))
    processor.drain()
    headers = [decode(message.body, message.md).headers[0] for message in store.browse(DEAD)]
    assert [(header.reason, header.dest_q_name) for header in headers] == [(2051, "S")] * 2  # type: ignore[attr-defined]
    assert (_told(store, "S"), _owed(store)) == ([], {})


def test_a_message_that_its_queue_can_never_take_holds_none_behind_it_up(store: QueueManagerStore) -> None:
    _define(store, LocalQueue("S", max_message_length=300))
    _publish(store, "1", "x" * 1_000, "22")
    processor = Processor(store, lambda: NOW)
    processor.drain()
    assert (_told(store, "S"), _owed(store)) == (["1", "22"], {"": 1})
    _define(store, LocalQueue(DEAD))
    processor.drain()
    (dead,) = store.browse(DEAD)
    header = decode(dead.body, dead.md).headers[0]
    assert (header.reason, header.dest_q_name) == (2030, "S")  # type: ignore[attr-defined]
    assert (dead.body.count(b"DLH "), _owed(store)) == (1, {})


def test_what_is_owed_expires_and_its_expiry_runs_on(home: Home) -> None:
    now = NOW
    with _create(home) as store:
        processor = Processor(store, lambda: now)
        _publish(store, "1", expiry=10)
        _publish(store, "22", expiry=600)
        processor.drain()
        now += timedelta(seconds=30)
        _define(store, LocalQueue("S"))
        processor.drain()
        assert (_told(store, "S"), _owed(store)) == (["22"], {})
        (message,) = store.browse("S")
        assert message.expires_at == NOW + timedelta(seconds=60)


@pytest.mark.rule("RESP-12")
@pytest.mark.parametrize(
    ("attributes", "persistence", "left"),
    [({}, 0, {}), ({"psnpmsg": "KEEP"}, 0, {"S": 1}), ({}, 1, {"S": 1})],
    ids=["DISCARD", "KEEP", "persistent"],
)
def test_6_5_1_psnpmsg_what_is_not_persistent_is_given_up_after_psrtycnt_tries(
    home: Home, attributes: dict[str, object], persistence: int, left: dict[str, int]
) -> None:
    with _create(home, psrtycnt=3, **attributes) as store:
        processor = Processor(store, lambda: NOW)
        _publish(store, "1", persistence=persistence)
        processor.drain()
        for _ in range(2):
            processor.drain()
        assert _owed(store) == {"S": 1}
        for _ in range(5):
            processor.drain()
        assert _owed(store) == left


@pytest.mark.parametrize("limit", [{"most_messages": 2}, {"most_bytes": 250}], ids=str)
def test_where_no_more_can_be_owed_the_command_waits_whole(store: QueueManagerStore, limit: dict[str, int]) -> None:
    processor = Processor(store, lambda: NOW, backlog=Backlog(lambda: NOW, 1.0, **limit))
    _publish(store, "1", "22", "333")
    for _ in range(2):
        with pytest.raises(UndeliverableError):
            _drain(processor)
    owed = _owed(store)["S"]
    assert owed >= 1
    assert (len(_told(store, "T")), store.depth(STREAM)) == (owed, 3 - owed)
    _define(store, LocalQueue("S"))
    _drain(processor)
    assert (_told(store, "S"), _told(store, "T"), _owed(store)) == (["1", "22", "333"], ["1", "22", "333"], {})


def test_a_failing_command_owes_nothing(store: QueueManagerStore) -> None:
    """What a command owes commits with all else that it does, or not at all."""
    with store.unit_of_work() as unit:
        psc = "<Command>Publish</Command><Topic>a</Topic>"
        _put(unit, STREAM, psc, msg_type=1, reply_to_q="S")
    processor = Processor(store, lambda: NOW)
    with pytest.raises(UndeliverableError):
        processor.drain()
    assert (_told(store, "T"), store.depth(STREAM), _owed(store)) == ([], 1, {})


def test_it_is_said_once_and_status_shows_it(store: QueueManagerStore) -> None:
    talk = io.StringIO()
    journal = Journal(Console(io.BytesIO(), talk), store.directory, None)
    with journal.following():
        processor = Processor(store, lambda: NOW)
        for data in ("1", "22", "333"):
            _publish(store, data)
            processor.drain()
        assert talk.getvalue().count("publications for queue S are kept until they can be delivered") == 1
        assert talk.getvalue().count("\n") == 1
        home = str(store.home)
        (row,) = json.loads(run("status", "-m", "QM1", "--home", home, "--json").out)["owed"]
        assert (row["queue"], row["count"]) == ("S", 3)
        assert "3 " in next(line for line in run("status", "-m", "QM1", "--home", home).lines if line.endswith("  S"))
        _define(store, LocalQueue("S"))
        processor.drain()
    assert "queue S: nothing is kept for it any more" in talk.getvalue()


def test_once_ends_with_1_where_something_is_owed(store: QueueManagerStore) -> None:
    _publish(store, "1")
    ran = run("run", "-m", "QM1", "--home", str(store.home), "--once")
    assert (ran.code, "not delivered yet: 1 publication" in ran.talk) == (1, True)


def test_what_a_failing_commit_would_have_delivered_is_still_owed(
    store: QueueManagerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    processor = Processor(store, lambda: NOW)
    _publish(store, "1")
    processor.drain()
    _define(store, LocalQueue("S"))

    def full(unit: EmbeddedUnitOfWork) -> None:
        unit.backout()
        raise StoreFullError("qmgr.sqlite3")

    with monkeypatch.context() as patch:
        patch.setattr(EmbeddedUnitOfWork, "commit", full)
        with pytest.raises(StoreFullError):
            processor.drain()
    assert (_told(store, "S"), _owed(store)) == ([], {"S": 1})
    processor.drain()
    assert (_told(store, "S"), _owed(store)) == (["1"], {})
