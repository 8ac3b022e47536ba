"""What becomes of a put that its queue refuses: guide 6.7.6, 6.5.1; 2085, 2051, 2053 and their like.

The dead-letter queue takes it, with the reason. Where that refuses too, the command stays where it is, with all that it
would have done, until an operator has mended one of the two.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from commands.broker.objects import AliasQueue, Definition, LocalQueue, QueueManager
from commands.config.home import Home
from commands.disk.errors import UndeliverableError
from commands.qmgr.delivery import Backlog
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore, UnitOfWork
from rfh2 import Folder, Mqmd, Rfh2, decode
from rfh2.dlh import Dlh

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
DEAD = "SYSTEM.DEAD.LETTER.QUEUE"

Change = Callable[[UnitOfWork], None]


def _put(unit: UnitOfWork, queue: str, psc: str, **mqmd: object) -> None:
    md = Mqmd(**{"format": "MQHRF2", "persistence": 1, "priority": 0, "user_identifier": "app", **mqmd})  # type: ignore[arg-type]
    unit.put(queue, md.encode(), Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + b"data")


def _publish(unit: UnitOfWork, topic: str = "a", **mqmd: object) -> None:
    _put(unit, STREAM, f"<Command>Publish</Command><Topic>{topic}</Topic>", **mqmd)


def _registered(home: Home, strict: bool = True, **attributes: object) -> QueueManagerStore:
    """A queue manager where S subscribes to topics a and T to topics a and b."""
    store = QueueManagerStore.create(home, QueueManager("QM1", strict=strict, **attributes))  # type: ignore[arg-type]
    with store.unit_of_work() as unit:
        for queue, topics in {"S": "a", "T": "ab"}.items():
            unit.save_definition(LocalQueue(queue))
            for topic in topics:
                _put(unit, CONTROL, f"<Command>RegSub</Command><Topic>{topic}</Topic><QName>{queue}</QName>")
    assert Processor(store, lambda: NOW).drain() == 3
    return store


def _change(store: QueueManagerStore, change: Change) -> None:
    with store.unit_of_work() as unit:
        change(unit)


def _depth(store: QueueManagerStore, queue: str) -> int:
    return store.depth(queue) if store.find_queue(queue) is not None else 0


def _dead_letters(store: QueueManagerStore) -> list[tuple[str, int]]:
    found = []
    for message in store.browse(DEAD):
        header = decode(message.body, message.md).headers[0]
        assert isinstance(header, Dlh)
        found.append((header.dest_q_name.rstrip(), header.reason))
    return found


def _defined(definition: Definition) -> Change:
    return lambda unit: unit.save_definition(definition)


def _deleted(queue: str) -> Change:
    return lambda unit: unit.delete_definition("qlocal", queue)


def _alias_of_nothing(unit: UnitOfWork) -> None:
    unit.delete_definition("qlocal", "S")
    unit.save_definition(AliasQueue("S", "NOTHING"))


def _full(unit: UnitOfWork) -> None:
    unit.save_definition(LocalQueue("S", max_depth=1))
    unit.put("S", None, b"the one that fits")


# How the queue of a subscriber may refuse, and the reason in the MQDLH of what it refused.
REFUSALS = [
    pytest.param(_full, 2053, id="full"),
    pytest.param(_defined(LocalQueue("S", put_enabled=False)), 2051, id="put-inhibited"),
    pytest.param(_deleted("S"), 2085, id="deleted"),
    pytest.param(_alias_of_nothing, 2082, id="an-alias-of-nothing"),
    pytest.param(_defined(LocalQueue("S", max_message_length=10)), 2030, id="MAXMSGL"),
]


@pytest.mark.rule("RESP-10")
@pytest.mark.parametrize(("refusing", "reason"), REFUSALS)
def test_6_7_6_a_publication_that_is_refused_is_a_dead_letter_and_others_have_theirs(
    home: Home, refusing: Change, reason: int
) -> None:
    with _registered(home) as store:
        _change(store, refusing)
        _change(store, _publish)
        processor = Processor(store, lambda: NOW)
        assert processor.drain() == 1
        assert _dead_letters(store) == [("S", reason)]
        assert _depth(store, "T") == 1
        assert (processor.tally.publications, processor.tally.dead_letters) == (1, 1)


# How the dead-letter queue may refuse, and how an operator mends that.
NO_WAY_OUT = [
    pytest.param(_defined(LocalQueue(DEAD, max_depth=0)), _defined(LocalQueue(DEAD)), id="full"),
    pytest.param(_defined(LocalQueue(DEAD, put_enabled=False)), _defined(LocalQueue(DEAD)), id="put-inhibited"),
    pytest.param(_deleted(DEAD), _defined(LocalQueue(DEAD)), id="deleted"),
    pytest.param(
        _defined(QueueManager("QM1", strict=True, deadq="")), _defined(QueueManager("QM1", strict=True)), id="no-DEADQ"
    ),
    pytest.param(
        _defined(QueueManager("QM1", strict=True, deadq="NO.SUCH.QUEUE")),
        _defined(LocalQueue("NO.SUCH.QUEUE")),
        id="DEADQ-of-nothing",
    ),
    pytest.param(_defined(LocalQueue(DEAD, max_message_length=100)), _defined(LocalQueue(DEAD)), id="MAXMSGL"),
]


@pytest.mark.rule("RESP-11")
@pytest.mark.parametrize(("refusing", "mending"), NO_WAY_OUT)
def test_6_7_6_with_no_way_out_the_command_waits_and_is_done_once_when_there_is_one(
    home: Home, refusing: Change, mending: Change
) -> None:
    """As much is owed to subscribers as may be."""
    with _registered(home) as store:
        _change(store, _deleted("S"))
        _change(store, refusing)
        _change(store, _publish)
        processor = Processor(store, lambda: NOW, backlog=Backlog(lambda: NOW, 1.0, most_messages=0))
        for _ in range(3):
            with pytest.raises(UndeliverableError, match="queue S: there is no such queue"):
                processor.drain()
        assert (_depth(store, STREAM), _depth(store, "T")) == (1, 0)
        (waiting,) = store.browse(STREAM)
        assert waiting.backout_count == 3
        _change(store, mending)
        assert processor.drain() == 1
        assert _depth(store, STREAM) == 0
        assert _depth(store, "T") == 1
        deadq = store.load_state()[0].qmgr.deadq
        assert _depth(store, deadq) == 1


@pytest.mark.rule("RESP-11")
def test_a_message_that_is_no_command_waits_where_it_is_too(home: Home) -> None:
    with _registered(home) as store:
        _change(store, _deleted(DEAD))
        with store.unit_of_work() as unit:
            unit.put(STREAM, None, b"RFH \2\0\0\0 no header")
        with pytest.raises(UndeliverableError, match=f"queue {DEAD}: there is no such queue"):
            Processor(store, lambda: NOW).drain()
        assert _depth(store, STREAM) == 1


@pytest.mark.rule("RESP-8")
@pytest.mark.parametrize("command", ["RegSub", "Publish"])
def test_6_7_6_a_persistent_response_that_can_be_sent_nowhere_backs_its_command_out(home: Home, command: str) -> None:
    with _registered(home) as store:
        _change(store, _deleted(DEAD))
        queue = CONTROL if command == "RegSub" else STREAM
        psc = f"<Command>{command}</Command><Topic>a</Topic>"
        to = "<QName>T</QName><RegOpt>Local</RegOpt>" if command == "RegSub" else ""
        _change(store, lambda unit: _put(unit, queue, psc + to, msg_type=1, reply_to_q="NOWHERE"))
        before = store.load_state()[1]
        with pytest.raises(UndeliverableError, match="queue NOWHERE"):
            Processor(store, lambda: NOW).drain()
        assert (_depth(store, queue), _depth(store, "T")) == (1, 0)
        assert store.load_state()[1] == before


@pytest.mark.rule("RESP-7")
def test_6_7_6_a_persistent_response_that_its_queue_refuses_is_a_dead_letter_and_its_command_stands(
    home: Home,
) -> None:
    with _registered(home) as store:
        _change(store, lambda unit: _publish(unit, msg_type=1, reply_to_q="NOWHERE"))
        Processor(store, lambda: NOW).drain()
        assert _dead_letters(store) == [("NOWHERE", 2085)]
        assert (_depth(store, "S"), _depth(store, "T")) == (1, 1)


def test_d17_the_subscription_of_a_deleted_queue_stays_and_makes_the_queue_anew(home: Home) -> None:
    """No queue here is a temporary dynamic one: what was subscribed by name stays subscribed by name."""
    with _registered(home, strict=False) as store:
        _change(store, _deleted("S"))
        _change(store, _publish)
        Processor(store, lambda: NOW).drain()
        assert {(s.dest_queue, s.topic_string) for s in store.load_state()[1]} == {("S", "a"), ("T", "a"), ("T", "b")}
        assert (_depth(store, "S"), _dead_letters(store)) == (1, [])


def test_d17_in_a_strict_queue_manager_what_it_is_sent_is_dead_letters_until_somebody_deregisters(
    home: Home,
) -> None:
    with _registered(home) as store:
        _change(store, _deleted("S"))
        _change(store, _publish)
        _change(store, lambda unit: _put(unit, CONTROL, "<Command>RegSub</Command><Topic>c</Topic><QName>S</QName>"))
        leave = "<Command>DeregSub</Command><Topic>a</Topic><QName>S</QName>"
        _change(store, lambda unit: _put(unit, CONTROL, leave))
        _change(store, _publish)
        processor = Processor(store, lambda: NOW)
        processor.drain()
        assert _dead_letters(store) == [("S", 2085), (CONTROL, 3076)]
        assert [s.dest_queue for s in store.load_state()[1]] == ["T", "T"]
