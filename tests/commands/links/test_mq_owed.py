"""With IBM MQ's queues too, a subscriber whose queue and dead-letter queue refuse holds nobody up and loses nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from commands.client.errors import ConnectionLostError
from commands.disk.errors import QueueManagerInUseError, UndeliverableError
from commands.links.ibmmq.channel import ChannelConnection, LibraryConnection
from commands.links.ibmmq.undelivered import RecordError
from commands.qmgr.delivery import Backlog
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2.errors import StoreError
from tests.commands.links.mqi.harness import CONTROL, DEAD, OWED, STREAM
from tests.commands.links.mqi.listening import Running, queue_manager
from tests.commands.links.test_mq_queues import World

TEMPORARY = "AMQ.6921F3A520000B02"


@pytest.fixture
def mq(tmp_path: Path, kind: str) -> Iterator[Running]:
    queues: dict[str, dict[str, Any]] = {"S": {}, "T": {}, "REPLY": {}, TEMPORARY: {"kind": "dynamic"}}
    with queue_manager(kind, tmp_path / "mq", queues) as running:
        yield running


@pytest.fixture
def world(tmp_path: Path, mq: Running) -> Iterator[World]:
    """S and T subscribe to topic a; S and the dead-letter queue take nothing."""
    made = World(tmp_path / "qmgrs", mq)
    made.register("S")
    made.register("T")
    made.processor().drain()
    refuse(mq, "S", DEAD)
    yield made
    made.close()
    made.programs.close()


def refuse(mq: Running, *queues: str) -> None:
    mq.tell(alter={queue: {"put_inhibited": 1} for queue in queues})


def accept(mq: Running, *queues: str) -> None:
    mq.tell(alter={queue: {"put_inhibited": 0, "max_depth": 5_000} for queue in queues})


def publish(world: World, *data: bytes, **mqmd: Any) -> None:
    for each in data:
        world.publish("a", each, **mqmd)


def drain(world: World, **how: Any) -> None:
    """Once, by a processor that was just started."""
    world.close()
    world.processor(**how).drain()


def owed(world: World) -> dict[str, int]:
    """As ``status`` says."""
    with QueueManagerStore.open(world.home, "QM1") as store:
        return {name: count for name, count, _ in store.overview().undelivered}


@pytest.mark.rule("RESP-13")
@pytest.mark.parametrize(
    "refusing",
    [{"alter": {"S": {"max_depth": 0, "put_inhibited": 0}}}, {"delete": ["S"]}, {}],
    ids=["2053 full", "2085 gone", "2051 inhibited"],
)
def test_6_7_6_others_have_theirs_and_it_gets_all_in_order_later(world: World, refusing: dict[str, Any]) -> None:
    world.mq.tell(**refusing)
    processor = world.processor()
    for data in (b"1", b"2", b"3"):
        publish(world, data)
        assert processor.drain() == 1
    assert (world.data("T"), processor.undelivered, owed(world)) == ([b"1", b"2", b"3"], 3, {"S": 3})
    assert (world.mq.depth(OWED), world.mq.depth(STREAM), world.mq.depth(DEAD)) == (3, 0, 0)
    accept(world.mq, "S")
    publish(world, b"4")
    processor.drain()
    assert (world.data("S"), world.data("T")) == ([b"1", b"2", b"3", b"4"],) * 2
    assert (processor.undelivered, world.mq.depth(OWED), owed(world)) == (0, 0, {})


def test_what_it_gets_later_is_what_it_would_have_got(world: World) -> None:
    publish(world, b"1", correl_id=b"c" * 24, priority=7, report=1, reply_to_q="REPLY", format="MQHRF2")
    drain(world)
    accept(world.mq, "S")
    drain(world)
    (late,), (early,) = world.browse("S"), world.browse("T")
    # Each subscriber's publication has identifiers of its own.
    identifiers = {"msg_id": early.mqmd.msg_id, "correl_id": early.mqmd.correl_id}
    assert replace(late.mqmd, **identifiers) == early.mqmd
    assert late.mqmd.msg_id[:20] == early.mqmd.msg_id[:20]
    assert (late.headers, late.body) == (early.headers, early.body)


def test_a_restart_finds_what_is_owed(world: World) -> None:
    publish(world, b"1", b"2")
    drain(world)
    publish(world, b"3")
    drain(world)
    assert owed(world) == {"S": 3}
    accept(world.mq, "S")
    publish(world, b"4")
    drain(world)
    assert (world.data("S"), owed(world)) == ([b"1", b"2", b"3", b"4"], {})


@pytest.mark.faults
def test_the_queue_manager_killed_finds_it_too(world: World) -> None:
    publish(world, b"1", b"2")
    drain(world)
    world.close()
    world.programs.close()
    world.mq.kill()
    world.mq.start()
    accept(world.mq, "S")
    drain(world)
    assert world.data("S") == [b"1", b"2"]


def test_a_refusing_command_does_not_undo_what_was_paid(world: World) -> None:
    """Without savepoints: what is owed has a unit of work of its own."""
    publish(world, b"1")
    drain(world)
    accept(world.mq, "S")
    world.put(STREAM, "<Command>Publish</Command><Topic>a</Topic>", msg_type=1, reply_to_q="NOT.THERE")
    world.close()
    with pytest.raises(UndeliverableError):
        world.processor().drain()
    assert (world.data("S"), world.mq.depth(STREAM), owed(world)) == ([b"1"], 1, {})


def test_a_message_that_its_queue_can_never_take_holds_none_behind_it_up(world: World) -> None:
    accept(world.mq, "S")
    world.mq.tell(alter={"S": {"max_length": 300}})
    publish(world, b"1", b"x" * 1_000, b"2")
    drain(world)
    assert (world.data("S"), owed(world)) == ([b"1", b"2"], {"": 1})
    accept(world.mq, DEAD)
    drain(world)
    (dead,) = world.browse(DEAD)
    assert (dead.headers[0].reason, dead.headers[0].dest_q_name) == (2030, "S")  # type: ignore[attr-defined]
    assert owed(world) == {}


def test_queues_of_one_name_at_two_queue_managers_are_two(world: World) -> None:
    world.mq.tell(alter={"QM2": {"kind": "local", "usage": "XMITQ", "put_inhibited": 1}})
    psc = "<Command>RegSub</Command><Topic>a</Topic><QName>S</QName><QMgrName>QM2</QMgrName>"
    world.put(CONTROL, psc)
    drain(world)
    publish(world, b"1", b"2")
    drain(world)
    assert owed(world) == {"S": 2, "S@QM2": 2}
    accept(world.mq, "QM2")
    publish(world, b"3")
    drain(world)
    assert (world.data("QM2"), owed(world)) == ([b"1", b"2", b"3"], {"S": 3})
    accept(world.mq, DEAD)
    world.mq.tell(delete=["QM2"])
    publish(world, b"4")
    drain(world)
    lost = [h.dest_qmgr_name for h in (m.headers[0] for m in world.browse(DEAD)) if h.reason == 2087]  # type: ignore[attr-defined]
    assert lost == ["QM2"]


def test_a_deregistered_subscriber_still_gets_what_was_published_before(world: World) -> None:
    """As on embedded queues."""
    publish(world, b"1")
    drain(world)
    world.put(CONTROL, "<Command>DeregSub</Command><Topic>a</Topic><QName>S</QName>")
    drain(world)
    publish(world, b"2")
    drain(world)
    accept(world.mq, "S")
    drain(world)
    assert (world.data("S"), world.data("T"), owed(world)) == ([b"1"], [b"1", b"2"], {})


@pytest.mark.rule("RESP-15")
def test_6_7_2_what_is_owed_to_a_temporary_queue_goes_with_it(world: World) -> None:
    accept(world.mq, "S")
    options = "<RegOpt>NonPers</RegOpt>"
    world.put(CONTROL, f"<Command>RegSub</Command>{options}<Topic>a</Topic><QName>{TEMPORARY}</QName>")
    drain(world)
    refuse(world.mq, TEMPORARY)
    publish(world, b"1", b"2")
    drain(world)
    assert owed(world) == {TEMPORARY: 2}
    world.mq.tell(delete=[TEMPORARY])
    accept(world.mq, DEAD)
    drain(world)
    assert (owed(world), world.mq.depth(DEAD), world.mq.depth(OWED)) == ({}, 0, 0)
    publish(world, b"3")
    drain(world)
    world.close()
    with QueueManagerStore.open(world.home, "QM1") as store:
        assert [subscription.dest_queue for subscription in store.load_state()[1]] == ["S", "T"]
    assert world.mq.depth(DEAD) == 0


def test_what_is_owed_expires_and_its_expiry_runs_on(world: World) -> None:
    publish(world, b"1", expiry=3)
    publish(world, b"2", expiry=600)
    drain(world)
    time.sleep(0.4)
    accept(world.mq, "S")
    drain(world)
    (message,) = world.browse("S")
    assert (message.body, owed(world)) == (b"2", {})
    assert 0 < message.mqmd.expiry <= 597


def test_where_all_has_expired_nothing_is_owed_any_more(world: World) -> None:
    processor = world.processor()
    publish(world, b"1", expiry=2)
    processor.drain()
    time.sleep(0.3)
    processor.drain()
    assert (processor.undelivered, owed(world)) == (0, {})
    accept(world.mq, "S")
    publish(world, b"2")
    processor.drain()
    assert world.data("S") == [b"2"]


@pytest.mark.parametrize(("persistence", "left"), [(0, {}), (1, {"S": 1})], ids=["non-persistent", "persistent"])
def test_6_5_1_psnpmsg_what_is_not_persistent_is_given_up_after_psrtycnt_tries(
    world: World, persistence: int, left: dict[str, int]
) -> None:
    processor = world.processor()
    publish(world, b"1", persistence=persistence)
    processor.drain()
    for _ in range(2):
        processor.drain()
    publish(world, b"2", persistence=persistence)
    processor.drain()
    assert owed(world) == {"S": 2}
    for _ in range(2):
        processor.drain()
    assert owed(world) == ({"S": 1} if not persistence else {"S": 2}), "each has tries of its own"
    for _ in range(4):
        processor.drain()
    assert owed(world) == ({} if not persistence else {"S": 2})
    accept(world.mq, "S")
    processor.drain()
    assert world.data("S") == ([b"1", b"2"] if left else [])


def owed_is_full(world: World) -> None:
    world.mq.tell(alter={OWED: {"max_depth": 2}})


def owed_is_missing(world: World) -> None:
    world.mq.tell(delete=[OWED])


def owed_is_inhibited(world: World) -> None:
    refuse(world.mq, OWED)


@pytest.mark.rule("RESP-14")
@pytest.mark.parametrize(
    ("how", "kept", "why"),
    [
        (owed_is_full, 2, f"queue {OWED} is full"),
        (owed_is_missing, 0, f"queue {OWED}: there is no such queue"),
        (owed_is_inhibited, 0, f"queue {OWED}: putting is inhibited"),
    ],
    ids=["full", "missing", "inhibited"],
)
def test_6_7_6_where_no_more_can_be_owed_the_command_waits_whole_and_says_why(
    world: World, how: Any, kept: int, why: str
) -> None:
    how(world)
    publish(world, b"1", b"2", b"3")
    world.close()
    for _ in range(2):
        assert f"it cannot be kept for its subscriber: {why}" in _until_stuck(world)
    assert (len(world.data("T")), world.mq.depth(STREAM), world.mq.depth(OWED)) == (kept, 3 - kept, kept)
    accept(world.mq, "S")
    world.close()
    world.processor().drain()
    assert (world.data("S"), world.data("T")) == ([b"1", b"2", b"3"],) * 2
    assert owed(world) == {}


def _until_stuck(world: World, **how: Any) -> str:
    """What the command waits for that cannot be carried out; those before it are."""
    processor = world.processor(**how)
    for _ in range(10):
        try:
            processor.drain()
        except UndeliverableError as error:
            return str(error)
    return "nothing"


def test_a_missing_queue_is_said_at_start_with_the_line_that_mends_it(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    owed_is_missing(world)
    drain(world)
    assert f"{OWED} is missing" in caplog.text
    assert f"DEFINE QLOCAL('{OWED}') DEFPSIST(YES) SHARE" in caplog.text


def test_the_bound_of_the_backlog_holds_too(world: World) -> None:
    publish(world, b"1", b"2", b"3")
    world.close()
    why = _until_stuck(world, backlog=Backlog(lambda: datetime.now(UTC), 1.0, most_messages=2))
    assert "no more undelivered publications can be kept" in why
    assert (world.mq.depth(OWED), world.mq.depth(STREAM)) == (2, 1)


def test_getting_from_it_inhibited_keeps_what_is_there_and_stops_nobody(world: World) -> None:
    processor = world.processor()
    publish(world, b"1")
    processor.drain()
    accept(world.mq, "S")
    world.mq.tell(alter={OWED: {"get_inhibited": 1}})
    publish(world, b"2")
    processor.drain()
    assert (world.data("T"), world.data("S"), world.mq.depth(OWED)) == ([b"1", b"2"], [], 2)
    world.mq.tell(alter={OWED: {"get_inhibited": 0}})
    processor.drain()
    assert world.data("S") == [b"1", b"2"]


def test_what_is_on_it_and_is_not_the_bridges_stops_it_by_name(world: World) -> None:
    with world.programs.unit_of_work() as unit:
        unit.put(OWED, None, b"x" * 200)
    world.close()
    with pytest.raises(StoreError, match=f"{OWED} holds a message that the bridge did not put there"):
        world.processor().drain()


@pytest.mark.parametrize("limit", [6, 7, 20])
def test_2024_what_is_owed_is_paid_in_parts_where_maxumsgs_is_low(world: World, limit: int) -> None:
    wanted = [str(n).encode() for n in range(40)]
    publish(world, *wanted)
    drain(world)
    accept(world.mq, "S")
    world.mq.tell(define={"max_umsgs": limit})
    failures = _until_done(world)
    assert failures <= 3
    assert (world.data("S"), owed(world)) == (wanted, {})


# Crashes


def _ended_at(world: World, monkeypatch: pytest.MonkeyPatch, where: type, name: str) -> None:
    class EndError(BaseException):
        pass

    def end(*_: object) -> None:
        raise EndError

    processor = world.processor()
    with monkeypatch.context() as patch:
        patch.setattr(where, name, end)
        with pytest.raises(EndError):
            processor.drain()
    world.close()


@pytest.mark.faults
@pytest.mark.parametrize("moment", ["before MQCMIT", "between MQCMIT and SQLite"])
@pytest.mark.parametrize("paying", [False, True], ids=["undelivered", "paying"])
def test_the_bridge_ends_on_either_side_of_mqcmit(
    world: World, monkeypatch: pytest.MonkeyPatch, kind: str, moment: str, paying: bool
) -> None:
    publish(world, b"1", b"2")
    if paying:
        drain(world)
        accept(world.mq, "S")
    with world.open().unit_of_work():
        pass
    connection = LibraryConnection if kind == "ibmmq" else ChannelConnection
    where = connection if moment == "before MQCMIT" else EmbeddedUnitOfWork
    _ended_at(world, monkeypatch, where, "commit")
    if not paying:
        drain(world)
        assert owed(world) == {"S": 2}
        accept(world.mq, "S")
    publish(world, b"3")
    drain(world)
    assert (world.data("S"), world.data("T")) == ([b"1", b"2", b"3"],) * 2
    assert (owed(world), world.mq.depth(OWED), world.mq.depth(STREAM)) == ({}, 0, 0)


@pytest.mark.rule("RESP-13")
@pytest.mark.faults
@pytest.mark.parametrize("op", ["G", "1", "M"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("skip", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, 10))])
@pytest.mark.parametrize("paying", [False, True], ids=["undelivered", "paying"])
def test_2009_wherever_the_connection_breaks_all_arrives_in_order_and_once(
    world: World, op: str, when: str, skip: int, paying: bool
) -> None:
    publish(world, b"1", b"2", b"3")
    if paying:
        drain(world)
        accept(world.mq, "S")
        publish(world, b"4")
    with world.open().unit_of_work():
        pass
    world.mq.fault(op, when=when, skip=0 if op == "M" else skip)
    failures = _until_done(world)
    assert failures == 1 or (failures == 0 and skip)
    world.mq.tell(clear_faults=True)
    accept(world.mq, "S")
    drain(world)
    wanted = [b"1", b"2", b"3", *([b"4"] if paying else [])]
    assert (world.data("S"), world.data("T"), owed(world)) == (wanted, wanted, {})


def _until_done(world: World) -> int:
    """What ``run`` does, without the waiting; returns how often it failed."""
    failures, processor = 0, world.processor()
    while True:
        try:
            processor.drain()
            return failures
        except StoreError:
            failures += 1
            assert failures < 50
            time.sleep(0.01)


@pytest.mark.rule("RESP-13")
@pytest.mark.faults
@pytest.mark.parametrize("paying", [False, True], ids=["undelivered", "paying"])
def test_nothing_is_delivered_past_what_the_queue_manager_has_not_decided(world: World, paying: bool) -> None:
    """The unit of work of a broken connection holds what is owed: it is on no queue then, and yet it comes first."""
    publish(world, b"1", b"2")
    if paying:
        drain(world)
        accept(world.mq, "S")
    with world.open().unit_of_work():
        pass
    world.mq.tell(decides=False)
    world.mq.fault("M", when="before")
    with pytest.raises(ConnectionLostError):
        world.processor().drain()
    world.close()
    publish(world, b"3")
    with pytest.raises((RecordError, QueueManagerInUseError)):
        world.processor().drain()
    world.close()
    world.mq.tell(decides=True)
    _until_done(world)
    accept(world.mq, "S")
    drain(world)
    assert (world.data("S"), world.data("T")) == ([b"1", b"2", b"3"],) * 2
