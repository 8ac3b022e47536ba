"""IBM MQ's queues through the official package, on the stand-in (tests/commands/mqi)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from commands.broker.objects import QueueManager
from commands.client.errors import ConnectionLostError, MqError
from commands.config.home import Home
from commands.config.settings import QueuesConfig
from commands.config.urls import parse_address
from commands.disk.errors import QueueManagerInUseError, UndeliverableError
from commands.links.ibmmq.manager import MqMessages, MqQueueManager
from commands.links.ibmmq.undelivered import RecordError
from commands.qmgr.processor import Processor, ProcessorSettings
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.opening import is_there
from rfh2 import Folder, Mqmd, Rfh2, decode
from rfh2.errors import StoreError
from rfh2.message import Message
from tests.commands.links.mqi.harness import CONTROL, DEAD, OWED, RECORD, STREAM
from tests.commands.links.mqi.listening import Running, queue_manager

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class World:
    """A queue manager, the bridge's state beside it, and programs on its queues."""

    def __init__(self, home: Home, mq: Running, **config: Any) -> None:
        self.home, self.mq, self.config = home, mq, QueuesConfig(**config)
        if not is_there(home, "QM1"):
            QueueManagerStore.create(home, QueueManager("QM1")).close()
        self.address = parse_address(mq.url, "--queues")
        self.programs = MqMessages(self.address, self.config)
        self.manager: MqQueueManager | None = None

    def open(self) -> MqQueueManager:
        self.close()
        self.manager = MqQueueManager(QueueManagerStore.open(self.home, "QM1"), self.address, self.config)
        return self.manager

    def processor(self, **how: Any) -> Processor:
        return Processor(self.manager or self.open(), lambda: datetime.now(UTC), **how)

    def close(self) -> None:
        if self.manager is not None:
            self.manager.close()
            self.manager = None

    def put(self, queue: str, psc: str, data: bytes = b"data", **mqmd: Any) -> None:
        md = Mqmd(**{"format": "MQHRF2", "persistence": 1, "priority": 0, "user_identifier": "app", **mqmd})
        body = Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + data
        with self.programs.unit_of_work() as unit:
            unit.put(queue, md.encode(), body, user="app", application="program")

    def register(self, queue: str, topic: str = "a", **mqmd: Any) -> None:
        self.put(CONTROL, f"<Command>RegSub</Command><Topic>{topic}</Topic><QName>{queue}</QName>", **mqmd)

    def publish(self, topic: str = "a", data: bytes = b"data", options: str = "", **mqmd: Any) -> None:
        self.put(STREAM, f"<Command>Publish</Command>{options}<Topic>{topic}</Topic>", data, **mqmd)

    def browse(self, queue: str) -> list[Message]:
        with self.programs.unit_of_work() as unit:
            return [decode(m.body, m.md) for m in unit.browse(queue)]

    def data(self, queue: str) -> list[bytes]:
        return [message.body for message in self.browse(queue)]


@pytest.fixture
def mq(tmp_path: Path, kind: str) -> Iterator[Running]:
    queues: dict[str, dict[str, Any]] = {name: {} for name in ("S", "T", "REPLY", "BACK")}
    with queue_manager(kind, tmp_path / "mq", queues) as running:
        yield running


@pytest.fixture
def world(tmp_path: Path, mq: Running) -> Iterator[World]:
    made = World(tmp_path / "qmgrs", mq)
    yield made
    made.close()
    made.programs.close()


def test_commands_come_from_mq_and_publications_go_there(world: World) -> None:
    world.register("S", msg_type=1, reply_to_q="REPLY", msg_id=b"1" * 24)
    world.publish("a", b"one")
    assert world.processor().drain() == 2
    (reply,) = world.browse("REPLY")
    assert reply.mqmd.correl_id == b"1" * 24
    assert b"<Completion>ok" in reply.rfh2.folders[0].data  # type: ignore[union-attr]
    (publication,) = world.browse("S")
    assert publication.body == b"one"
    assert publication.mqmd.user_identifier == "app"
    assert publication.mqmd.put_appl_type == 26, "6.7.9: the broker's origin context, set with MQPMO_SET_ALL_CONTEXT"
    assert world.mq.depth(CONTROL) == world.mq.depth(STREAM) == 0


def test_what_was_put_first_is_processed_first_whichever_queue_it_is_on(world: World) -> None:
    """A program registers, publishes, deregisters, publishes: the subscriber gets the first publication alone."""
    world.register("S")
    time.sleep(0.02)
    world.publish("a", b"wanted")
    time.sleep(0.02)
    world.put(CONTROL, "<Command>DeregSub</Command><Topic>a</Topic><QName>S</QName>")
    time.sleep(0.02)
    world.publish("a", b"unwanted")
    world.processor().drain()
    assert world.data("S") == [b"wanted"]


def test_what_comes_while_a_batch_is_worked_on_is_not_overtaken(world: World) -> None:
    """A command put before a publication still comes before it, though its queue was empty at first."""
    manager = world.open()
    for n in range(3):
        world.publish("a", str(n).encode())
    with manager.unit_of_work() as unit:
        first = unit.get_next([CONTROL, STREAM])
        time.sleep(0.02)
        world.register("S")
        time.sleep(0.02)
        world.publish("a", b"after")
        rest = []
        while (message := unit.get_next([CONTROL, STREAM])) is not None:
            rest.append(message)
    assert first is not None
    bodies = [decode(m.body, m.md).body for m in (first, *rest)]
    assert bodies == [b"0", b"1", b"2", b"data", b"after"]
    assert rest[2].queue == CONTROL


def test_what_was_put_first_and_committed_late_is_not_overtaken_by_its_own_unit_of_work(world: World) -> None:
    """A cursor would have passed the place of the first of two, when both become visible behind and before it."""
    manager = world.open()
    psc = "<Command>Publish</Command><Topic>a</Topic>"
    other = MqMessages(world.address, world.config)
    late = other.unit_of_work()

    def put_late(data: bytes) -> None:
        body = Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + data
        late.put(STREAM, Mqmd(format="MQHRF2", persistence=1, priority=0).encode(), body, user="app")

    world.publish("a", b"before")
    with manager.unit_of_work() as unit:
        put_late(b"first")
        world.publish("a", b"between")
        taken = [unit.get_next([CONTROL, STREAM])]
        put_late(b"second")
        late.commit()
        while (message := unit.get_next([CONTROL, STREAM])) is not None:
            taken.append(message)
    other.close()
    bodies = [decode(m.body, m.md).body for m in taken if m is not None]
    assert bodies == [b"before", b"first", b"between", b"second"]


def test_2053_a_full_queue_makes_a_dead_letter_with_the_reason(world: World) -> None:
    world.register("S")
    world.processor().drain()
    world.mq.tell(alter={"S": {"max_depth": 1}})
    world.publish("a", b"fits")
    world.publish("a", b"does not")
    world.processor(settings=ProcessorSettings(batch=1)).drain()
    (dead,) = world.browse(DEAD)
    header = dead.headers[0]
    assert (header.kind, header.reason, header.dest_q_name) == ("MQDLH", 2053, "S")  # type: ignore[attr-defined]
    assert world.data("S") == [b"fits"]


def test_3076_a_subscriber_queue_has_to_be_there(world: World) -> None:
    world.register("NOT.THERE", msg_type=1, reply_to_q="REPLY")
    world.processor().drain()
    (reply,) = world.browse("REPLY")
    assert b"<Reason>3076</Reason>" in reply.rfh2.folders[0].data  # type: ignore[union-attr]


def test_a_message_backed_out_too_often_goes_to_the_backout_queue(world: World) -> None:
    world.mq.tell(alter={STREAM: {"bothresh": 3, "boqname": "BACK"}})
    world.register("S")
    world.processor().drain()
    world.mq.tell(alter={queue: {"put_inhibited": 1} for queue in ("S", DEAD, OWED)})
    world.open()
    world.publish("a", b"stuck")
    for _ in range(3):
        with pytest.raises(UndeliverableError):
            world.processor().drain()
    world.processor().drain()
    assert world.data("BACK") == [b"stuck"]
    assert world.mq.depth(STREAM) == 0


def test_without_savepoints_what_came_before_a_stuck_command_is_done_once(world: World) -> None:
    world.register("S")
    world.register("T", "b")
    world.processor().drain()
    world.mq.tell(alter={queue: {"put_inhibited": 1} for queue in ("S", DEAD, OWED)})
    world.open()
    for topic in ("b", "b", "a", "b"):
        world.publish(topic, topic.encode())
    for _ in range(2):
        with pytest.raises(UndeliverableError):
            world.processor().drain()
    assert (world.data("T"), world.mq.depth(STREAM)) == ([b"b", b"b"], 2)
    world.mq.tell(alter={"S": {"put_inhibited": 0}})
    world.open()
    world.processor().drain()
    assert (world.data("T"), world.data("S"), world.mq.depth(STREAM)) == ([b"b"] * 3, [b"a"], 0)


def test_6_5_1_psnpmsg_discards_a_non_persistent_command_after_psrtycnt_tries(world: World) -> None:
    world.register("S")
    world.processor().drain()
    world.mq.tell(alter={queue: {"put_inhibited": 1} for queue in ("S", DEAD, OWED)})
    world.open()
    world.publish("a", persistence=0)
    processor = world.processor()
    for _ in range(5):
        with pytest.raises(UndeliverableError):
            processor.drain()
    assert processor.drain() == 1
    assert (processor.tally.discarded, world.mq.depth(STREAM)) == (1, 0)


def test_a_message_larger_than_the_buffer_is_got_whole(world: World) -> None:
    world.register("S")
    world.publish("a", b"x" * 300_000)
    world.processor().drain()
    assert [len(data) for data in world.data("S")] == [300_000]


def test_2033_a_message_that_expires_before_it_is_got_is_passed_over(world: World) -> None:
    world.register("S")
    world.publish("a", b"gone", expiry=1)
    world.publish("a", b"there")
    time.sleep(0.15)
    world.processor().drain()
    assert world.data("S") == [b"there"]


def test_a_publication_for_another_queue_manager_is_put_there(world: World) -> None:
    world.mq.tell(alter={"QM2": {"kind": "local", "usage": "XMITQ"}})
    psc = "<Command>RegSub</Command><Topic>a</Topic><QName>FAR</QName><QMgrName>QM2</QMgrName>"
    world.put(CONTROL, psc)
    world.publish("a", b"far")
    world.processor().drain()
    assert world.data("QM2") == [b"far"], "MQPUT1 with ObjectQMgrName; the transmission header is MQ's business"


def test_pers_as_queue_takes_the_default_of_mqs_queue(world: World) -> None:
    world.mq.tell(alter={"S": {"def_persistence": 1}})
    options = "<RegOpt>PersAsQueue</RegOpt>"
    world.put(CONTROL, f"<Command>RegSub</Command>{options}<Topic>a</Topic><QName>S</QName>")
    world.publish("a", persistence=0)
    world.processor().drain()
    assert [m.mqmd.persistence for m in world.browse("S")] == [1]


# Crashes


def _scenario(world: World) -> None:
    """Commands that change state, commands that do not, and both at once."""
    world.register("S", "a/#", msg_type=1, reply_to_q="REPLY")
    time.sleep(0.011)
    world.publish("a/b", b"1", "<PubOpt>RetainPub</PubOpt>")
    world.publish("a/c", b"2")
    time.sleep(0.011)
    world.register("T", "a/+")
    time.sleep(0.011)
    world.publish("a/b", b"3", "<PubOpt>RetainPub</PubOpt>")
    time.sleep(0.011)
    world.put(CONTROL, "<Command>DeregSub</Command><Topic>a/#</Topic><QName>S</QName>")
    time.sleep(0.011)
    world.publish("a/d", b"4")
    world.put(STREAM, "<Command>DeletePub</Command><Topic>a/b</Topic>")


def _everything(world: World) -> dict[str, Any]:
    world.close()
    with QueueManagerStore.open(world.home, "QM1") as store:
        _, subscriptions, retained = store.load_state()
    found: dict[str, Any] = {queue: Counter(world.data(queue)) for queue in ("S", "T", "REPLY", DEAD)}
    found |= {queue: world.mq.depth(queue) for queue in (CONTROL, STREAM)}
    found["subscriptions"] = sorted((s.topic_string, s.dest_queue) for s in subscriptions)
    found["retained"] = sorted((r.topic_string, r.publication.message.body) for r in retained)
    return found


def _until_done(world: World, batch: int) -> int:
    """What ``run`` does, without the waiting; returns how often it failed."""
    failures = 0
    while True:
        try:
            processor = world.processor(settings=ProcessorSettings(batch=batch))
            processor.drain()
            return failures
        except StoreError:
            failures += 1
            assert failures < 50
            world.close()
            time.sleep(0.01)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, kind: str) -> dict[str, Any]:
    """What the scenario comes to."""
    directory = tmp_path_factory.mktemp("undisturbed")
    with queue_manager(kind, directory / "mq", {name: {} for name in ("S", "T", "REPLY", "BACK")}) as mq:
        world = World(directory / "qmgrs", mq)
        _scenario(world)
        world.processor().drain()
        found = _everything(world)
        world.programs.close()
    assert found["subscriptions"] == [("a/+", "T")]
    assert found["T"] == Counter({b"1": 1, b"3": 1, b"4": 1})
    return found


# Which call breaks, before or after it is carried out, how many such calls go well first, commands to a unit of work.
QUICK = [(op, when, 0, 200) for op in "G1MO" for when in ("before", "after")]
SWEEP = [
    *((op, when, skip, 200) for op in "G1" for when in ("before", "after") for skip in range(1, 12)),
    *((op, when, skip, 1) for op in "G1M" for when in ("before", "after") for skip in range(9)),
    *(("O", when, skip, 200) for when in ("before", "after") for skip in range(1, 6)),
]


def _id(case: tuple[str, str, int, int]) -> str:
    return "{}-{}-{}-batch-{}".format(*case)


@pytest.mark.faults
@pytest.mark.parametrize(
    "case", [*QUICK, *(pytest.param(case, marks=pytest.mark.slow) for case in SWEEP)], ids=map(_id, (*QUICK, *SWEEP))
)
def test_2009_wherever_the_connection_breaks_nothing_is_lost_or_repeated(
    world: World, undisturbed: dict[str, Any], case: tuple[str, str, int, int]
) -> None:
    op, when, skip, batch = case
    _scenario(world)
    with world.open().unit_of_work():
        pass
    world.mq.fault(op, when=when, skip=skip)
    _until_done(world, batch)
    assert world.mq.tell()["faults"] == [], "the connection did not break"
    assert _everything(world) == undisturbed


ENDING = [("G", 2009), ("1", 2195), ("M", 2161), ("O", 2162)]
MORE = [(op, reason) for op in "G1MO" for reason in (2009, 2161, 2162, 2195, 2202) if (op, reason) not in ENDING]


@pytest.mark.faults
@pytest.mark.parametrize(("op", "reason"), [*ENDING, *(pytest.param(*m, marks=pytest.mark.slow) for m in MORE)])
def test_a_reason_that_ends_the_connection_ends_it_and_work_goes_on(
    world: World, undisturbed: dict[str, Any], op: str, reason: int
) -> None:
    _scenario(world)
    with world.open().unit_of_work():
        pass
    world.mq.fault(op, reason)
    assert _until_done(world, 200) >= 1
    assert _everything(world) == undisturbed


@pytest.mark.faults
def test_2003_a_commit_that_backs_out_is_tried_again(world: World, undisturbed: dict[str, Any]) -> None:
    _scenario(world)
    world.open()
    world.mq.fault("M", 2003)
    _until_done(world, 200)
    assert _everything(world) == undisturbed


@pytest.mark.faults
def test_the_queue_manager_killed_and_started_again(world: World, undisturbed: dict[str, Any]) -> None:
    _scenario(world)
    manager = world.open()
    unit = manager.unit_of_work()
    assert unit.get_next([CONTROL, STREAM]) is not None
    world.mq.kill()
    with pytest.raises(ConnectionLostError):
        unit.get_next([CONTROL, STREAM])
    unit.backout()
    with pytest.raises(MqError, match=r"2059|2538"):
        manager.unit_of_work()
    world.mq.start()
    world.programs.close()
    _until_done(world, 200)
    assert _everything(world) == undisturbed


def _killed_when(world: World, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """The bridge ends just before SQLite commits what IBM MQ has committed, or just before MQ does."""

    class EndError(BaseException):
        pass

    def end(*_: object) -> None:
        raise EndError

    from commands.links.ibmmq.channel import ChannelConnection, LibraryConnection
    from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork

    with monkeypatch.context() as patch:
        target: Callable[..., None] = end
        if moment == "between":
            patch.setattr(EmbeddedUnitOfWork, "commit", target)
        else:
            for connection in (LibraryConnection, ChannelConnection):
                patch.setattr(connection, "commit", target)
        processor = world.processor()
        with pytest.raises(EndError):
            processor.drain()
    world.close()


@pytest.mark.faults
@pytest.mark.parametrize("moment", ["before", "between"])
def test_the_bridge_ends_on_either_side_of_mqcmit(
    world: World, undisturbed: dict[str, Any], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    world.open()
    _scenario(world)
    _killed_when(world, monkeypatch, moment)
    assert world.mq.depth(STREAM) == (0 if moment == "between" else 5)
    _until_done(world, 200)
    assert _everything(world) == undisturbed


@pytest.mark.faults
def test_nothing_is_processed_while_the_queue_manager_has_not_decided(
    world: World, undisturbed: dict[str, Any], kind: str
) -> None:
    """The unit of work of a broken connection may still hold the record: then its fate is not known yet."""
    if kind == "mq":
        pytest.skip("a listener backs a broken connection out at once")
    _scenario(world)
    world.open()
    world.mq.tell(decides=False)
    world.mq.fault("M", when="before")
    with pytest.raises(ConnectionLostError):
        world.processor().drain()
    world.close()
    with pytest.raises((RecordError, QueueManagerInUseError)):
        world.processor().drain()
    world.close()
    world.mq.tell(decides=True)
    _until_done(world, 200)
    assert _everything(world) == undisturbed


def test_a_second_bridge_is_refused(world: World, tmp_path: Path) -> None:
    manager = world.open()
    with manager.processor_lock():
        other = World(tmp_path / "elsewhere", world.mq)
        with pytest.raises(QueueManagerInUseError), other.open().processor_lock():
            pass
        other.close()
        other.programs.close()


def test_the_record_of_another_state_is_refused(world: World, tmp_path: Path) -> None:
    world.register("S")
    world.processor().drain()
    world.close()
    other = World(tmp_path / "elsewhere", world.mq)
    with pytest.raises(RecordError, match="another bridge's state"):
        other.processor().drain()
    other.close()
    other.programs.close()


def test_a_record_that_was_cleared_stops_the_bridge(world: World) -> None:
    world.register("S")
    world.processor().drain()
    world.close()
    with world.programs.unit_of_work() as unit:
        assert unit.clear_queue(RECORD) == 1
    world.programs.close()
    with pytest.raises(RecordError, match=r"is not on SYSTEM\.QPUBSUB\.RECORD"):
        world.processor().drain()


def test_messages_that_wait_on_embedded_queues_are_told_of(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with QueueManagerStore.open(world.home, "QM1") as store, store.unit_of_work() as unit:
        unit.put(STREAM, None, b"from before")
    with world.open().processor_lock():
        pass
    assert f"not read while the queues are IBM MQ's ({STREAM}: 1)" in caplog.text
