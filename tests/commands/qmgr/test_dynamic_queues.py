"""Dynamic queues: opened from a model, closed, lost with their program; and the subscriptions that go with them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands.broker.objects import DEFAULT_MODELS, AliasQueue, ModelQueue, QueueManager
from commands.config.home import Home
from commands.qmgr.processor import Processor, ProcessorSettings
from commands.qmgr.store import Close, OpenQueue, ProgramConnection, QueueError, QueueManagerStore
from rfh2 import Folder, Mqmd, Rfh2, decode
from tests.commands.qmgr.disk_states import disk_states
from tests.commands.qmgr.test_processor import CONTROL, DEAD, NOW, STREAM
from tests.reliability.workload import put

TEMPORARY, PERMANENT = "SYSTEM.DEFAULT.MODEL.QUEUE", "SYSTEM.JMS.MODEL.QUEUE"


@pytest.fixture
def home(home: Home) -> Home:
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    return home


@pytest.fixture
def program(home: Home) -> Iterator[QueueManagerStore]:
    with QueueManagerStore.open(home, "QM1", clock=lambda: NOW) as store:
        yield store


@pytest.fixture
def processor(home: Home) -> Iterator[Processor]:
    with QueueManagerStore.open(home, "QM1", clock=lambda: NOW) as store:
        yield Processor(store, lambda: NOW)


def send(store: QueueManagerStore, queue: str, psc: str, **mqmd: object) -> None:
    given = {"format": "MQHRF2", "persistence": 0, "priority": 0, "user_identifier": "app", **mqmd}
    body = Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + b"data"
    with store.unit_of_work() as unit:
        unit.put(queue, Mqmd(**given).encode(), body)  # type: ignore[arg-type]


def register(store: QueueManagerStore, queue: str, topic: str = "a", option: str = "NonPers", **mqmd: object) -> None:
    registration = f"<Command>RegSub</Command><RegOpt>{option}</RegOpt><Topic>{topic}</Topic><QName>{queue}</QName>"
    send(store, CONTROL, registration, **mqmd)


def publish(store: QueueManagerStore, topic: str = "a", **mqmd: object) -> None:
    send(store, STREAM, f"<Command>Publish</Command><Topic>{topic}</Topic>", **mqmd)


def depth(store: QueueManagerStore, queue: str) -> int:
    return store.depth(queue) if store.find_queue(queue) is not None else 0


def subscribers(store: QueueManagerStore) -> list[str]:
    return [subscription.dest_queue for subscription in store.load_state()[1]]


def rows(store: QueueManagerStore) -> dict[str, int]:
    """What is in the tables that grow as dynamic queues come, and must shrink as they go."""
    tables = ("dynamic_queues", "connections", "temporary_subscriptions", "ended_subscriptions", "subscriptions")
    count = {t: store.database.connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables}
    return {table: number for table, number in count.items() if number}


NAMES = [
    ("a-prefix", "MY.REPLY.*", re.compile(r"MY\.REPLY\.[0-9A-F]{16}")),
    ("nothing-but-the-asterisk", "*", re.compile(r"[0-9A-F]{16}")),
    ("the-longest-prefix", "P" * 32 + "*", re.compile("P{32}[0-9A-F]{16}")),
    ("a-full-name", "MY.REPLY", re.compile(r"MY\.REPLY")),
    ("trailing-blanks", "MY.REPLY.*   ", re.compile(r"MY\.REPLY\.[0-9A-F]{16}")),
]


@pytest.mark.parametrize(("wanted", "name"), [row[1:] for row in NAMES], ids=[row[0] for row in NAMES])
def test_the_name_of_a_dynamic_queue(program: QueueManagerStore, wanted: str, name: re.Pattern[str]) -> None:
    with program.connect() as connection:
        opened = connection.open(TEMPORARY, wanted)
        assert name.fullmatch(opened.name)
        found = program.find_queue(opened.name)
        assert found is not None
        assert found.is_temporary


BAD_NAMES = [
    ("blank", "   ", 2011),
    ("an-asterisk-inside", "A*B", 2011),
    ("a-prefix-too-long", "P" * 33 + "*", 2011),
    ("no-characters-of-a-name", "MY REPLY*", 2011),
    ("taken", CONTROL, 2100),
    ("a-model-has-it", PERMANENT, 2100),
]


@pytest.mark.parametrize(("wanted", "reason"), [row[1:] for row in BAD_NAMES], ids=[row[0] for row in BAD_NAMES])
def test_a_name_that_cannot_be(program: QueueManagerStore, wanted: str, reason: int) -> None:
    connection = program.connect()
    with pytest.raises(QueueError) as refused:
        connection.open(TEMPORARY, wanted)
    assert refused.value.reason == reason
    assert rows(program) == {}
    assert list(program.directory.glob("connection-*")) == []
    connection.open(TEMPORARY)  # and the connection goes on
    connection.disconnect()


def test_names_are_unique_also_after_a_restart(home: Home) -> None:
    names = set()
    for _ in range(2):
        with QueueManagerStore.open(home, "QM1", clock=lambda: NOW) as store, store.connect() as connection:
            names |= {connection.open(TEMPORARY).name for _ in range(3)}
    assert len(names) == 6


def test_the_attributes_are_the_models(program: QueueManagerStore) -> None:
    with program.unit_of_work() as unit:
        unit.save_definition(ModelQueue("M", "of a model", def_priority=3, max_depth=2, definition_type="PERMDYN"))
    with program.connect() as connection:
        found = program.find_queue(connection.open("M", "D").name)
        assert found is not None
        assert (found.description, found.def_priority, found.max_depth, found.definition_type) == (
            "of a model",
            3,
            2,
            "PERMDYN",
        )


# model, messages on it, option of MQCLOSE, by whom: whether it is gone, or the reason
CLOSES = [
    ("temporary", TEMPORARY, 1, Close.NONE, "maker", True),
    ("temporary-delete", TEMPORARY, 1, Close.DELETE, "maker", True),
    ("temporary-purge", TEMPORARY, 1, Close.PURGE, "maker", True),
    ("temporary-by-another", TEMPORARY, 0, Close.NONE, "other", False),
    ("temporary-delete-by-another", TEMPORARY, 0, Close.DELETE, "other", 2045),
    ("temporary-purge-by-another", TEMPORARY, 0, Close.PURGE, "other", 2045),
    ("permanent", PERMANENT, 0, Close.NONE, "maker", False),
    ("permanent-delete", PERMANENT, 0, Close.DELETE, "maker", True),
    ("permanent-delete-by-another", PERMANENT, 0, Close.DELETE, "other", True),
    ("6.7.2-permanent-delete-not-empty", PERMANENT, 1, Close.DELETE, "maker", 2055),
    ("permanent-purge", PERMANENT, 1, Close.PURGE, "maker", True),
    ("predefined", None, 1, Close.NONE, "maker", False),
    ("predefined-delete", None, 0, Close.DELETE, "maker", 2045),
    ("predefined-purge", None, 0, Close.PURGE, "maker", 2045),
]


@pytest.mark.rule("DEREG-30")
@pytest.mark.parametrize(
    ("model", "messages", "option", "who", "outcome"), [row[1:] for row in CLOSES], ids=[row[0] for row in CLOSES]
)
def test_closing(
    home: Home, program: QueueManagerStore, model: str | None, messages: int, option: Close, who: str, outcome: int
) -> None:
    with QueueManagerStore.open(home, "QM1") as another, program.connect() as maker, another.connect() as other:
        made = maker.open(CONTROL if model is None else model)
        for _ in range(messages):
            with program.unit_of_work() as unit:
                unit.put(made.name, None, b"message")
        connection, opened = (maker, made) if who == "maker" else (other, other.open(made.name))
        if isinstance(outcome, bool):
            assert connection.close(opened, option) is outcome
        else:
            with pytest.raises(QueueError) as refused:
                connection.close(opened, option)
            assert refused.value.reason == outcome
        gone = outcome is True
        assert (program.find_queue(made.name) is None) is gone
        assert depth(program, made.name) == (0 if gone else messages)


def test_closed_twice_or_deleted_meanwhile(program: QueueManagerStore) -> None:
    with program.connect() as connection, program.connect() as other:
        opened = connection.open(PERMANENT, "P")
        same = other.open("P")
        connection.close(opened, Close.PURGE)
        for closing, handle, reason in ((connection, opened, 2019), (other, same, 2052), (other, same, 2019)):
            with pytest.raises(QueueError) as refused:
                closing.close(handle)
            assert refused.value.reason == reason


def test_what_ends_with_a_connection(program: QueueManagerStore) -> None:
    with program.connect() as connection:
        temporary, permanent = connection.open(TEMPORARY), connection.open(PERMANENT)
    assert program.find_queue(temporary.name) is None
    found = program.find_queue(permanent.name)
    assert found is not None
    assert found.definition_type == "PERMDYN"
    assert rows(program) == {"dynamic_queues": 1}
    assert list(program.directory.glob("connection-*")) == []


@pytest.mark.parametrize("strict", [False, True])
def test_a_put_to_a_queue_that_is_gone_makes_none(tmp_path: Path, strict: bool) -> None:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1", strict=strict)) as store:
        with store.connect() as connection:
            name = connection.open(TEMPORARY).name
        with store.unit_of_work() as unit, pytest.raises(QueueError) as refused:
            unit.put(name, None, b"late")
        assert refused.value.reason == 2085
        assert store.find_queue(name) is None


def test_a_model_queue_holds_no_messages(program: QueueManagerStore) -> None:
    with program.unit_of_work() as unit, pytest.raises(QueueError) as refused:
        unit.put(TEMPORARY, None, b"message")
    assert refused.value.reason == 2057


def test_a_temporary_queue_takes_no_persistent_messages(program: QueueManagerStore) -> None:
    with program.connect() as connection:
        opened = connection.open(TEMPORARY)
        with program.unit_of_work() as unit:
            with pytest.raises(QueueError) as refused:
                unit.put(opened.name, Mqmd(persistence=1, priority=0).encode(), b"message")
            unit.put(opened.name, Mqmd(persistence=0, priority=0).encode(), b"message")
        assert refused.value.reason == 2048
        assert depth(program, opened.name) == 1


# Subscriptions


def opened_and_registered(
    program: QueueManagerStore, processor: Processor, connection: ProgramConnection, topic: str = "a"
) -> OpenQueue:
    opened = connection.open(TEMPORARY, "SUB.*")
    register(program, opened.name, topic)
    processor.drain()
    return opened


@pytest.mark.rule("REG-3")
def test_6_7_4_the_subscription_goes_when_the_queue_is_closed(program: QueueManagerStore, processor: Processor) -> None:
    register(program, "STAYS", option="PersAsPub")
    with program.connect() as connection:
        opened = opened_and_registered(program, processor, connection)
        publish(program)
        processor.drain()
        assert (depth(program, opened.name), depth(program, "STAYS")) == (1, 1)
        connection.close(opened)
        publish(program)
        processor.drain()
        assert (subscribers(program), depth(program, "STAYS"), depth(program, DEAD)) == (["STAYS"], 2, 0)
        assert program.find_queue(opened.name) is None
    assert rows(program) == {"subscriptions": 1}


@pytest.mark.rule("DEREG-6")
def test_6_7_2_it_is_the_queues_and_not_the_names(program: QueueManagerStore, processor: Processor) -> None:
    """A queue of the same name that is made before the next command inherits no subscription."""
    with program.connect() as connection:
        first = connection.open(TEMPORARY, "SAME")
        register(program, "SAME", "a")
        processor.drain()
        connection.close(first)
        connection.open(TEMPORARY, "SAME")
        register(program, "SAME", "b")
        publish(program, "a")
        publish(program, "b")
        processor.drain()
        assert [s.topic_string for s in program.load_state()[1]] == ["b"]
        assert [b"<Topic>b</Topic>" in message.body for message in program.browse("SAME")] == [True]


@pytest.mark.rule("DEREG-6")
def test_6_7_2_it_can_no_longer_be_deregistered(program: QueueManagerStore, processor: Processor) -> None:
    with program.connect() as connection:
        name = opened_and_registered(program, processor, connection).name
    psc = f"<Command>DeregSub</Command><Topic>a</Topic><QName>{name}</QName>"
    send(program, CONTROL, psc, msg_type=1, reply_to_q="REPLY")
    processor.drain()
    (answer,) = program.browse("REPLY")
    assert b"<Reason>3073</Reason>" in answer.body


def test_one_behind_an_alias_goes_too(program: QueueManagerStore, processor: Processor) -> None:
    with program.connect() as connection:
        opened = connection.open(TEMPORARY)
        with program.unit_of_work() as unit:
            unit.save_definition(AliasQueue("ALIAS", opened.name))
        register(program, "ALIAS")
        processor.drain()
        assert subscribers(program) == ["ALIAS"]
        connection.close(opened)
        processor.drain()
        assert subscribers(program) == []


def test_one_of_a_permanent_queue_stays(program: QueueManagerStore, processor: Processor) -> None:
    with program.connect() as connection:
        opened = connection.open(PERMANENT)
        register(program, opened.name, option="PersAsPub")
        processor.drain()
    publish(program, persistence=1)
    processor.drain()
    assert (subscribers(program), depth(program, opened.name)) == ([opened.name], 1)


# option of RegSub, of an altering one: reason of the answers
PERSISTENCE = [
    ("NonPers", None),
    ("PersAsPub", 3083),
    ("PersAsQueue", 3083),
    ("Pers", 3083),
    ("None", 3083),
]


@pytest.mark.rule("REG-3")
@pytest.mark.parametrize(("option", "reason"), PERSISTENCE)
def test_6_7_4_nonpers_must_be_specified(
    program: QueueManagerStore, processor: Processor, option: str, reason: int | None
) -> None:
    with program.connect() as connection:
        opened = connection.open(TEMPORARY)
        register(program, opened.name, option=option, msg_type=1, reply_to_q="REPLY")
        processor.drain()
        (answer,) = program.browse("REPLY")
        assert (b"<Reason>3083</Reason>" in answer.body) is (reason == 3083)
        assert subscribers(program) == ([] if reason else [opened.name])


GONE = [("gone", 3076), ("model", 3076)]


@pytest.mark.parametrize(("what", "reason"), GONE)
def test_regsub_of_no_queue(program: QueueManagerStore, processor: Processor, what: str, reason: int) -> None:
    with program.connect() as connection:
        name = connection.open(TEMPORARY).name
    register(program, name if what == "gone" else TEMPORARY, msg_type=1, reply_to_q="REPLY")
    processor.drain()
    (answer,) = program.browse("REPLY")
    assert b"<Reason>%d</Reason>" % reason in answer.body
    assert subscribers(program) == []


def test_a_persistent_publication_reaches_a_temporary_queue_not_persistent(
    program: QueueManagerStore, processor: Processor
) -> None:
    with program.connect() as connection:
        opened = opened_and_registered(program, processor, connection)
        publish(program, persistence=1)
        processor.drain()
        (message,) = program.browse(opened.name)
        assert decode(message.body, message.md).mqmd.persistence == 0


# Programs that die, and restarts

DIES = """
import sys, time
from commands.config.home import parse_home
from commands.qmgr.store import QueueManagerStore
store = QueueManagerStore.open(parse_home(sys.argv[1]), "QM1")
connection = store.connect()
print(connection.open("SYSTEM.DEFAULT.MODEL.QUEUE", "DIES.*").name, flush=True)
time.sleep(600)
"""


def test_6_7_2_a_program_that_dies_loses_its_queue_at_restart(home: Home, program: QueueManagerStore) -> None:
    with subprocess.Popen([sys.executable, "-c", DIES, str(home)], stdout=subprocess.PIPE, text=True) as dying:
        assert dying.stdout is not None
        name = dying.stdout.readline().strip()
        register(program, name)
        with QueueManagerStore.open(home, "QM1") as store:
            processor = Processor(store, lambda: datetime.now(UTC))
            processor.start()
            processor.drain()
            publish(program)
            processor.drain()
        assert (subscribers(program), depth(program, name)) == ([name], 1)
        # It lives, and is connected to the database: a restart of the processor takes nothing from it.
        with QueueManagerStore.open(home, "QM1") as store:
            Processor(store, lambda: datetime.now(UTC)).start()
        assert (subscribers(program), depth(program, name)) == ([name], 1)
        os.kill(dying.pid, signal.SIGKILL)
    with QueueManagerStore.open(home, "QM1") as store:
        Processor(store, lambda: datetime.now(UTC)).start()
    assert (subscribers(program), program.find_queue(name), rows(program)) == ([], None, {})
    assert list(program.directory.glob("connection-*")) == []


def test_whoever_ends_at_any_commit_a_restart_takes_off_what_is_left(tmp_path: Path) -> None:
    """Programs open queues, register and go while the processor works: who stays has each publication once."""

    def work(home: Path) -> None:
        with QueueManagerStore.open(home, "QM1") as store, QueueManagerStore.open(home, "QM1") as programs:
            processor = Processor(store, lambda: NOW, settings=ProcessorSettings(batch=2))
            processor.start()
            for number in range(4):
                going = programs.connect()
                for _ in range(2):
                    register(programs, going.open(TEMPORARY, "GOES.*").name)
                with programs.unit_of_work() as unit:
                    put(unit, STREAM, "<Command>Publish</Command><Topic>a</Topic>", b"%d" % number, priority=0)
                if number % 2:
                    processor.drain()
                going.disconnect()
                processor.drain()

    home, numbers = tmp_path / "home", 0
    with QueueManagerStore.create(home, QueueManager("QM1")) as store:
        register(store, "STAYS", option="PersAsPub")
        Processor(store, lambda: NOW).drain()
    for name, left in disk_states(home, work, tmp_path / "states"):
        with QueueManagerStore.open(left, "QM1") as store:
            processor = Processor(store, lambda: NOW)
            processor.start()
            processor.drain()
            assert (subscribers(store), rows(store)) == (["STAYS"], {"subscriptions": 1}), name
            assert [queue for queue in store.load_state()[0].queues if queue.startswith("GOES.")] == [], name
            kept = store.database.connection.execute("SELECT DISTINCT queue FROM messages").fetchall()
            assert {queue for (queue,) in kept} <= {"STAYS", DEAD}, name
            came = store.browse("STAYS") if store.find_queue("STAYS") is not None else ()
            got = [decode(message.body, message.md).body for message in came]
            assert got == [b"%d" % number for number in range(len(got))], name
            assert len(got) >= numbers, name
            numbers = len(got)
    assert numbers == 4


def test_default_models_are_those_of_ibm_mq(program: QueueManagerStore) -> None:
    kinds = {model.name: model.definition_type for model in program.load_state()[0].models.values()}
    assert kinds == {model.name: model.definition_type for model in DEFAULT_MODELS}
    assert (kinds[TEMPORARY], kinds["SYSTEM.JMS.TEMPQ.MODEL"], kinds[PERMANENT]) == ("TEMPDYN", "TEMPDYN", "PERMDYN")
