"""The processor: what it commits together, what it does when a queue refuses, and kill -9 in the middle."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from commands.broker.objects import LocalQueue, QueueManager
from commands.broker.puts import Outgoing
from commands.config.home import Home
from commands.disk.errors import UndeliverableError
from commands.qmgr.delivery import Backlog
from commands.qmgr.observer import ProcessorTally
from commands.qmgr.processor import Processor, ProcessorSettings
from commands.qmgr.store import QueueManagerStore, UnitOfWork
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2 import Folder, Mqmd, Rfh2, decode, encode
from streams.operations import Published
from streams.topic_objects import TopicObject, Wildcard
from tests.waiting import PATIENCE_S, until

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
DEAD = "SYSTEM.DEAD.LETTER.QUEUE"


def _command(psc: str, **mqmd: object) -> tuple[bytes, bytes]:
    md = Mqmd(**{"format": "MQHRF2", "persistence": 1, "priority": 0, "user_identifier": "app", **mqmd})  # type: ignore[arg-type]
    return md.encode(), Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + b"data"


def _put(unit: UnitOfWork, queue: str, psc: str, **mqmd: object) -> None:
    unit.put(queue, *_command(psc, **mqmd))


def _register(unit: UnitOfWork, queue: str, topic: str = "a") -> None:
    _put(unit, CONTROL, f"<Command>RegSub</Command><Topic>{topic}</Topic><QName>{queue}</QName>")


def _publish(unit: UnitOfWork, topic: str = "a", **mqmd: object) -> None:
    _put(unit, STREAM, f"<Command>Publish</Command><Topic>{topic}</Topic>", **mqmd)


def _store(home: Home, **attributes: object) -> QueueManagerStore:
    return QueueManagerStore.create(home, QueueManager("QM1", **attributes))  # type: ignore[arg-type]


def _depths(store: QueueManagerStore, *queues: str) -> list[int]:
    with store.unit_of_work() as unit:
        return [unit.depth(queue) if unit.find_queue(queue) else 0 for queue in queues]


def test_state_survives_a_restart(home: Home) -> None:
    with _store(home) as store:
        with store.unit_of_work() as unit:
            _register(unit, "S")
        Processor(store, lambda: NOW).drain()
    with QueueManagerStore.open(home, "QM1") as store:
        with store.unit_of_work() as unit:
            _publish(unit)
        Processor(store, lambda: NOW).drain()
        assert _depths(store, "S") == [1]


def test_what_has_expired_is_taken_off_queues_that_nobody_gets_from(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = NOW
    stop = threading.Event()

    def clock() -> datetime:
        return now

    def later(_timeout_s: float) -> bool:
        nonlocal now
        if rows() < 2:
            stop.set()
        now += timedelta(seconds=45)
        return False

    def rows() -> int:
        return int(store.database.connection.execute("SELECT count(*) FROM messages").fetchone()[0])

    with QueueManagerStore.create(home, QueueManager("QM1"), clock=clock) as store:
        with store.unit_of_work() as unit:
            unit.put("S", Mqmd(expiry=10).encode(), b"a second")
            unit.put("S", Mqmd(expiry=1000).encode(), b"100 seconds")
            unit.put("S", None, b"for ever")
        now += timedelta(seconds=2)
        processor = Processor(store, clock)
        processor.start()
        assert rows() == 2
        monkeypatch.setattr(store, "wait_for_change", later)
        processor.run(stop)
        assert [message.body for message in store.browse("S")] == [b"for ever"]
        assert rows() == 1


@pytest.mark.rule("SEC-16")
def test_what_answers_a_command_is_of_who_put_it_and_not_of_the_name_in_its_descriptor(home: Home) -> None:
    """A response goes where the program says: on some queues it is read as a command of that user."""
    forged = {"user_identifier": "mqm", "msg_type": 1, "reply_to_q": "R"}
    with _store(home) as store:
        with store.unit_of_work() as unit:
            _register(unit, "S")
            unit.put(CONTROL, *_command("<Command>RegSub</Command>", **forged), user="mallory")  # it fails
            for _ in range(3):  # the first one, and those that are like it
                unit.put(STREAM, *_command("<Command>Publish</Command><Topic>a</Topic>", **forged), user="mallory")
            unit.put(CONTROL, *_command("<Command>None</Command>", user_identifier="mqm"), user="mallory")
        Processor(store, lambda: NOW).drain()
        answers = list(store.browse("R"))
        assert [(each.user, Mqmd.decode(each.md).user_identifier) for each in answers] == [("mallory", "mqm")] * 4
        assert [each.user for each in store.browse(DEAD)] == ["mallory"]
        assert [each.user for each in store.browse("S")] == ["app"] * 3  # a publication is its subscriber's


def test_priority_comes_before_arrival(home: Home) -> None:
    with _store(home) as store:
        with store.unit_of_work() as unit:
            _register(unit, "S", "#")
        processor = Processor(store, lambda: NOW)
        processor.drain()
        with store.unit_of_work() as unit:
            for topic, priority in (("low", 1), ("high", 7), ("middle", 4), ("high2", 7)):
                _publish(unit, topic, priority=priority)
        processor.drain()
        with store.unit_of_work() as unit:
            folders = [decode(m.body, m.md).rfh2.folders[0].values() for m in unit.browse("S")]  # type: ignore[union-attr]
    assert [folder["Topic"] for folder in folders] == ["high", "high2", "middle", "low"]


def test_a_publication_that_its_queue_refuses_is_a_dead_letter_with_the_reason(home: Home) -> None:
    with _store(home) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("S", max_depth=1))
            _register(unit, "S")
            _publish(unit)
            _publish(unit)
        processor = Processor(store, lambda: NOW)
        processor.drain()
        assert _depths(store, "S", DEAD) == [1, 1]
        with store.unit_of_work() as unit:
            (dead,) = unit.browse(DEAD)
    header = decode(dead.body, dead.md).headers[0]
    assert (header.kind, header.reason, header.dest_q_name) == ("MQDLH", 2053, "S")  # type: ignore[attr-defined]


def _no_room() -> Backlog:
    """Nothing more can be owed to a subscriber: the command waits."""
    return Backlog(lambda: NOW, 1.0, most_messages=0)


def test_what_even_the_dead_letter_queue_refuses_stays_on_its_queue_where_no_more_can_be_owed(home: Home) -> None:
    with _store(home) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("S", put_enabled=False))
            unit.save_definition(LocalQueue(DEAD, put_enabled=False))
            _register(unit, "S")
            _register(unit, "T", "b")
            _publish(unit, "b")
            _publish(unit, "a")
            _publish(unit, "b")
        processor = Processor(store, lambda: NOW, backlog=_no_room())
        with pytest.raises(UndeliverableError, match="queue S: putting is inhibited"):
            processor.drain()
        assert _depths(store, STREAM, "T") == [2, 1]
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("S"))
        processor.drain()
        assert _depths(store, STREAM, "S", "T", DEAD) == [0, 1, 2, 0]


def _stuck(store: QueueManagerStore, **mqmd: object) -> Processor:
    """A publication that neither its queue nor the dead-letter queue takes, and one behind it that could go."""
    with store.unit_of_work() as unit:
        unit.save_definition(LocalQueue("S", put_enabled=False))
        unit.save_definition(LocalQueue(DEAD, put_enabled=False))
        _register(unit, "S")
        _register(unit, "T", "b")
    processor = Processor(store, lambda: NOW, backlog=_no_room())
    processor.drain()
    with store.unit_of_work() as unit:
        _publish(unit, "a", **mqmd)
        _publish(unit, "b")
    return processor


@pytest.mark.rule("QM-2")
def test_6_5_1_psnpmsg_discard_gives_a_non_persistent_command_up_after_psrtycnt_tries(home: Home) -> None:
    with _store(home, psrtycnt=3) as store:
        processor = _stuck(store, persistence=0)
        for _ in range(3):
            with pytest.raises(UndeliverableError):
                processor.drain()
        assert processor.drain() == 2
        assert (processor.tally.discarded, _depths(store, STREAM, "T")) == (1, [0, 1])


@pytest.mark.rule("QM-2")
@pytest.mark.parametrize(("attributes", "persistence"), [({"psnpmsg": "KEEP"}, 0), ({}, 1)], ids=["KEEP", "persistent"])
def test_6_5_1_other_commands_wait_however_often_they_were_tried(
    home: Home, attributes: dict[str, object], persistence: int
) -> None:
    with _store(home, psrtycnt=2, **attributes) as store:
        processor = _stuck(store, persistence=persistence)
        for _ in range(5):
            with pytest.raises(UndeliverableError):
                processor.drain()
        assert _depths(store, STREAM, "T") == [2, 0]


# PSNPRES: what becomes of a non-persistent response that the reply queue refuses (6.5.1).
PSNPRES = [
    ("NORMAL", True, {"waits": False, "dead": 1}),
    ("NORMAL", False, {"waits": False, "dead": 0}),
    ("SAFE", True, {"waits": False, "dead": 1}),
    ("SAFE", False, {"waits": True, "dead": 0}),
    ("DISCARD", True, {"waits": False, "dead": 0}),
    ("KEEP", True, {"waits": True, "dead": 0}),
]


@pytest.mark.rule("RESP-7", "QM-3")
@pytest.mark.parametrize(("mode", "dead_letter_queue", "wanted"), PSNPRES)
def test_6_5_1_psnpres(home: Home, mode: str, dead_letter_queue: bool, wanted: dict[str, object]) -> None:
    with _store(home, psnpres=mode) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("REPLY", put_enabled=False))
            unit.save_definition(LocalQueue(DEAD, put_enabled=dead_letter_queue))
            psc = "<Command>RegSub</Command><Topic>a</Topic><QName>S</QName>"
            _put(unit, CONTROL, psc, persistence=0, msg_type=1, reply_to_q="REPLY")
        processor = Processor(store, lambda: NOW)
        waits = False
        try:
            processor.drain()
        except UndeliverableError:
            waits = True
        depths = _depths(store, CONTROL, DEAD)
        assert {"waits": waits, "dead": depths[1]} == wanted
        assert depths[0] == int(waits)
        with store.unit_of_work() as unit:
            assert len(unit.load_state()[1]) == (0 if waits else 1)


@pytest.mark.parametrize("mode", ["SAFE", "KEEP"])
def test_6_5_1_a_response_that_psnpres_keeps_is_never_given_up_by_psnpmsg(home: Home, mode: str) -> None:
    with _store(home, psnpres=mode, psnpmsg="DISCARD", psrtycnt=1) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("REPLY", put_enabled=False))
            unit.save_definition(LocalQueue(DEAD, put_enabled=False))
            psc = "<Command>RegSub</Command><Topic>a</Topic><QName>S</QName>"
            _put(unit, CONTROL, psc, persistence=0, msg_type=1, reply_to_q="REPLY")
        processor = Processor(store, lambda: NOW)
        for _ in range(4):
            with pytest.raises(UndeliverableError):
                processor.drain()
        assert (_depths(store, CONTROL), processor.tally.discarded) == ([1], 0)
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("REPLY"))
        assert (processor.drain(), _depths(store, CONTROL, "REPLY")) == (1, [0, 1])


@pytest.mark.rule("PS-16")
def test_2_5_4_wildcard_block_leaves_existing_subscriptions_alone_until_a_restart(home: Home) -> None:
    with _store(home) as store:
        with store.unit_of_work() as unit:
            _register(unit, "OLD", "a/#")
        processor = Processor(store, lambda: NOW)
        processor.drain()
        with store.unit_of_work() as unit:
            unit.save_definition(TopicObject("B", "a/b", wildcard=Wildcard.BLOCK))
            _register(unit, "NEW", "a/#")
            _publish(unit, "a/b/c")
        processor.drain()
        assert _depths(store, "OLD", "NEW") == [1, 0]
        with store.unit_of_work() as unit:
            _publish(unit, "a/b/c")
        Processor(store, lambda: NOW).drain()
        assert _depths(store, "OLD", "NEW") == [1, 0]


@pytest.mark.rule("PUB-17")
def test_a_subscriber_on_another_queue_manager_is_reached_by_transmission_queue(home: Home) -> None:
    with _store(home) as store:
        with store.unit_of_work() as unit:
            psc = "<Command>RegSub</Command><Topic>a</Topic><QName>S</QName><QMgrName>QM2</QMgrName>"
            _put(unit, CONTROL, psc)
            _publish(unit)
        Processor(store, lambda: NOW).drain()
        with store.unit_of_work() as unit:
            (waiting,) = unit.browse("QM2")
    assert waiting.body[:4] == b"XQH "
    assert (waiting.body[8:9], waiting.body[56:59]) == (b"S", b"QM2")
    assert waiting.body.endswith(b"data")


@pytest.mark.rule("QM-1")
@pytest.mark.parametrize("mode", ["COMPAT", "DISABLED"])
def test_psmode_other_than_enabled_leaves_commands_where_they_are(home: Home, mode: str) -> None:
    """6.3: messages put to the queues will not be acted upon."""
    with _store(home, psmode=mode) as store:
        with store.unit_of_work() as unit:
            _register(unit, "S")
        assert Processor(store, lambda: NOW).drain() == 0
        assert _depths(store, CONTROL) == [1]


@pytest.mark.parametrize(
    ("is_awaited", "commits"), [(False, [250]), (True, [100, 200, 250])], ids=["alone", "another-process-waits"]
)
def test_a_batch_ends_early_where_another_process_waits(
    home: Home, monkeypatch: pytest.MonkeyPatch, is_awaited: bool, commits: list[int]
) -> None:
    monkeypatch.setattr(EmbeddedUnitOfWork, "is_awaited", is_awaited)
    with _store(home) as store:
        with store.unit_of_work() as unit:
            for _ in range(250):
                _publish(unit)
        seen: list[int] = []
        Processor(store, lambda: NOW, committed=lambda tally: seen.append(tally.commands)).drain()
    assert seen == commits


@pytest.mark.parametrize("home", ["sqlite"], indirect=True)
def test_queues_that_were_found_empty_are_not_looked_at_once_more(home: Home) -> None:
    """A unit of work has the database alone: other programs would wait for one that does nothing."""
    with _store(home) as store:
        with store.unit_of_work() as unit:
            _register(unit, "S")
            for _ in range(5):
                _publish(unit)
        statements: list[str] = []
        store.database.connection.set_trace_callback(statements.append)
        Processor(store, lambda: NOW, settings=ProcessorSettings(batch=2)).drain()
        assert statements.count("BEGIN IMMEDIATE") == 4, "2, 2, 2, and one that finds nothing"
        with store.unit_of_work() as unit:
            _publish(unit)
        statements.clear()
        Processor(store, lambda: NOW, settings=ProcessorSettings(batch=2)).drain()
        store.database.connection.set_trace_callback(None)
        assert statements.count("BEGIN IMMEDIATE") == 1
        assert _depths(store, "S") == [6]


def test_a_batch_ends_where_it_grows_too_large(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commands.qmgr.processor.BATCH_BYTES", 1000)
    with _store(home) as store:
        with store.unit_of_work() as unit:
            _register(unit, "S")
            for _ in range(6):
                unit.put(STREAM, None, _command("<Command>Publish</Command><Topic>a</Topic>")[1] + bytes(300))
        seen: list[int] = []
        Processor(store, lambda: NOW, committed=lambda tally: seen.append(tally.commands)).drain()
    assert seen == [3, 5, 7]


def _fails_in_translating(monkeypatch: pytest.MonkeyPatch) -> None:
    from commands.broker import core

    real = core.translate  # type: ignore[attr-defined]

    def failing(command: Any, context: Any) -> object:
        if command.topics == ("poison",):
            raise ZeroDivisionError("a fault of ours")
        return real(command, context)

    monkeypatch.setattr(core, "translate", failing)


def _fails_in_putting(monkeypatch: pytest.MonkeyPatch) -> None:
    from commands.qmgr.delivery import Cause, Deliverer

    real = Deliverer.deliver

    def failing(self: Deliverer, put: Outgoing, cause: Cause) -> Outgoing | None:
        done = real(self, put, cause)
        if put.topic == "poison" and put.queue == "T":
            raise ZeroDivisionError("a fault of ours, after S had its copy")
        return done

    monkeypatch.setattr(Deliverer, "deliver", failing)


def _fails_in_saving(monkeypatch: pytest.MonkeyPatch) -> None:
    from commands.qmgr.store import state_table

    real = state_table.publication_row  # type: ignore[attr-defined]

    def failing(publication: Published) -> object:
        if b"<Topic>poison</Topic>" in encode(publication.message):
            raise ZeroDivisionError("a fault of ours")
        return real(publication)

    monkeypatch.setattr(state_table, "publication_row", failing)


@pytest.mark.rule("RC-3008")
@pytest.mark.parametrize("fails", [_fails_in_translating, _fails_in_putting, _fails_in_saving])
def test_6_7_7_3008_an_internal_error_sets_the_message_aside_and_goes_on(
    home: Home, monkeypatch: pytest.MonkeyPatch, fails: Callable[[pytest.MonkeyPatch], None]
) -> None:
    fails(monkeypatch)
    with _store(home) as store:
        with store.unit_of_work() as unit:
            for queue in ("S", "T"):
                _register(unit, queue, "#")
            retained = "<Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>poison</Topic>"
            _put(unit, STREAM, retained)
            _publish(unit, "a")
        processor = Processor(store, lambda: NOW)
        assert processor.drain() == 4
        assert _depths(store, "S", "T", DEAD, STREAM) == [1, 1, 1, 0]
        with store.unit_of_work() as unit:
            (dead,) = unit.browse(DEAD)
            assert unit.load_state()[2] == []
        assert decode(dead.body, dead.md).headers[0].reason == 3008  # type: ignore[attr-defined]
        wanted = ProcessorTally(commands=4, publications=2, dead_letters=1, errors=1)
        assert processor.tally == wanted


def test_6_7_7_3008_waits_where_the_dead_letter_queue_refuses(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    _fails_in_translating(monkeypatch)
    with _store(home) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue(DEAD, put_enabled=False))
            _publish(unit, "poison")
        with pytest.raises(UndeliverableError):
            Processor(store, lambda: NOW).drain()
        assert _depths(store, STREAM) == [1]


def _load(store: QueueManagerStore, commands: int) -> None:
    with store.unit_of_work() as unit:
        for n in range(commands):
            if n % 10 == 0:
                _register(unit, f"S{n % 7}", f"t/{n % 50}")
            elif n % 33 == 0:
                psc = f"<Command>DeregSub</Command><Topic>t/{n % 50}</Topic><QName>S{n % 7}</QName>"
                _put(unit, CONTROL, psc, msg_type=1, reply_to_q="REPLIES")
            else:
                retain = "<PubOpt>RetainPub</PubOpt>" if n % 5 == 0 else ""
                _put(unit, STREAM, f"<Command>Publish</Command>{retain}<Topic>t/{n % 50}</Topic>")


def _everything(store: QueueManagerStore) -> Counter[tuple[object, ...]]:
    """Every message on every queue, save when it was put."""
    out: Counter[tuple[object, ...]] = Counter()
    with store.unit_of_work() as unit:
        objects, subscriptions, retained = unit.load_state()
        for queue in objects.queues:
            for message in unit.browse(queue):
                md = Mqmd.decode(message.md)
                out[(queue, md.msg_id, md.correl_id, md.msg_type, message.body)] += 1
        out.update(("subscription", s.sub_id, s.topic_string, s.dest_queue) for s in subscriptions)
        out.update(("retained", r.topic_string, r.publication.message.body) for r in retained)
    return out


def test_sigterm_stops_a_waiting_processor_and_a_new_message_wakes_it(home: Home) -> None:
    with _store(home) as store:
        with store.unit_of_work() as unit:
            _register(unit, "S")
        arguments = [sys.executable, "-m", "commands.cli", "run", "-m", "QM1", "--home", str(home)]
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            until(lambda: _depths(store, CONTROL) == [0])
            with store.unit_of_work() as unit:
                _publish(unit)
            until(lambda: _depths(store, "S") == [1])
        finally:
            process.send_signal(signal.SIGTERM)
            _out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert "2 commands (0 in error): 1 publication delivered" in err
