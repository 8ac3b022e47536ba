"""What IBM MQ may answer in each phase of a unit of work, on the stand-in: nothing is lost, nothing done twice.

The phases: get (MQGET), put (MQPUT1), commit (MQCMIT). Reason codes by what they say: the connection is gone (2009), is
to be given up (2161, 2195), there is nothing (2033), the queue is full (2053). Some make no sense in a phase; a queue
manager that answers so all the same must not cost a message either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from commands.disk.errors import UndeliverableError
from commands.qmgr.processor import Processor, ProcessorSettings
from rfh2.errors import StoreError
from tests.commands.links.mqi.harness import CONTROL, DEAD, OWED, STREAM
from tests.commands.links.mqi.listening import Running, queue_manager
from tests.commands.links.test_mq_queues import World, _everything, _scenario
from tests.waiting import until

pytestmark = pytest.mark.faults

QUEUES: dict[str, dict[str, Any]] = {name: {} for name in ("S", "T", "REPLY", "BACK")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, kind: str) -> dict[str, Any]:
    """What the scenario comes to."""
    directory = tmp_path_factory.mktemp("undisturbed")
    with queue_manager(kind, directory / "mq", QUEUES) as mq:
        world = World(directory / "qmgrs", mq)
        _scenario(world)
        world.processor().drain()
        found = _everything(world)
        world.programs.close()
    return found


@pytest.fixture
def mq(tmp_path: Path, kind: str) -> Iterator[Running]:
    with queue_manager(kind, tmp_path / "mq", QUEUES) as running:
        yield running


@pytest.fixture
def world(tmp_path: Path, mq: Running) -> Iterator[World]:
    made = World(tmp_path / "qmgrs", mq)
    yield made
    made.close()
    made.programs.close()


def _work_off(world: World) -> int:
    """What ``run`` does: try until nothing waits; a queue manager that died is started again. How often it failed."""
    failures, again = 0, False
    while _waits(world) or again:
        try:
            world.processor().drain()
            again = False
        except StoreError:
            failures, again = failures + 1, True
            assert failures < 20
    return failures


def _waits(world: World) -> bool:
    while True:
        if world.mq.is_dead:
            world.mq.start()
        try:
            return bool(world.mq.depth(CONTROL) or world.mq.depth(STREAM))
        except OSError:
            until(lambda: world.mq.is_dead, "its end")


PHASES = {"get": "G", "put": "1", "commit": "M"}
REASONS = (2009, 2033, 2053, 2161, 2195)


@pytest.mark.parametrize(
    "skip", [0, pytest.param(1, marks=pytest.mark.nightly), pytest.param(3, marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("phase", PHASES)
def test_a_reason_in_a_phase_of_a_unit_of_work(
    world: World, undisturbed: dict[str, Any], phase: str, reason: int, skip: int
) -> None:
    _scenario(world)
    with world.open().unit_of_work():
        pass
    if phase == "commit":
        skip = 0  # all of the scenario is one unit of work
    world.mq.fault(PHASES[phase], reason, skip=skip)
    failures = _work_off(world)
    assert world.mq.tell()["faults"] == []
    found = _everything(world)
    if (phase, reason) == ("put", 2053):
        # Full is an answer: the put goes on the dead-letter queue, and the rest is done.
        assert failures == 0
        assert sum(found[DEAD].values()) == 1
        missing = sum((undisturbed[queue] - found[queue] for queue in ("S", "T", "REPLY")), Counter())
        assert sum(missing.values()) == 1
        assert {**found, **dict.fromkeys(("S", "T", "REPLY", DEAD))} == {
            **undisturbed,
            **dict.fromkeys(("S", "T", "REPLY", DEAD)),
        }
        return
    # Nothing there is no failure of a get: what is there is got by and by.
    assert failures == (0 if (phase, reason) == ("get", 2033) else 1)
    assert found == undisturbed


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("phase", PHASES)
def test_the_queue_manager_dies_in_a_phase_of_a_unit_of_work(
    world: World, undisturbed: dict[str, Any], phase: str, when: str
) -> None:
    _scenario(world)
    with world.open().unit_of_work():
        pass
    world.programs.close()
    world.mq.fault(PHASES[phase], when=when, end=True, skip=0 if phase == "commit" else 2)
    assert _work_off(world) == 1
    assert _everything(world) == undisturbed


class _Waits:
    """Says when to stop, and notes how long it was waited: *then* is done after the waits that are wanted."""

    def __init__(self, count: int, then: Any) -> None:
        self.waited: list[float] = []
        self._count, self._then = count, then
        self.stopped = False

    def is_set(self) -> bool:
        return self.stopped

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.waited.append(timeout)
        if len(self.waited) == self._count:
            self._then()
        return self.stopped


def test_connecting_again_is_tried_ever_more_slowly_and_work_goes_on(world: World) -> None:
    """reconnect_s is the longest pause; once there is a connection the next break begins with a short one again."""
    world.register("S")
    manager = world.open()
    with manager.unit_of_work():
        pass
    world.programs.close()
    waits = _Waits(7, world.mq.start)
    processor = Processor(manager, lambda: datetime.now(UTC), settings=ProcessorSettings(longest_pause_s=2.0))
    world.mq.kill()

    def told(_tally: object) -> None:
        if processor.tally.commands == 1:
            world.publish("a", b"again")
        waits.stopped = processor.tally.commands >= 2

    processor._committed = told
    processor.run(waits, idle_s=0.01)
    assert waits.waited == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    assert world.data("S") == [b"again"]


def test_a_backout_queue_that_takes_nothing_leaves_the_message_where_it_is(world: World) -> None:
    """Then it is tried again, as without one; and done once its queue takes what comes of it."""
    world.mq.tell(alter={STREAM: {"bothresh": 2, "boqname": "BACK"}, "BACK": {"put_inhibited": 1}})
    world.register("S")
    world.processor().drain()
    world.mq.tell(alter={queue: {"put_inhibited": 1} for queue in ("S", DEAD, OWED)})
    world.open()
    world.publish("a", b"stuck")
    for _ in range(4):
        with pytest.raises(UndeliverableError):
            world.processor().drain()
    assert world.mq.depth(STREAM) == 1
    world.mq.tell(alter={"S": {"put_inhibited": 0}})
    world.open()
    world.processor().drain()
    assert (world.data("S"), world.mq.depth(STREAM), world.mq.depth("BACK")) == ([b"stuck"], 0, 0)


def test_a_message_that_another_program_takes_between_look_and_get_is_passed_over(world: World) -> None:
    """2033 for a message that was seen a moment ago; what is behind it is got."""
    world.register("S")
    world.processor().drain()
    manager = world.open()
    world.publish("a", b"taken")
    world.publish("a", b"left")
    # The record and what is owed are read first, then both input queues are looked at; then comes the get.
    world.mq.fault("G", 2033, skip=5)
    with manager.unit_of_work() as unit:
        message = unit.get_next([CONTROL, STREAM])
        assert message is not None
        assert world.mq.tell()["faults"] == []
        assert message.body.endswith(b"taken")


@pytest.mark.parametrize("limit", [7, 8, 9, 10, 11, 12])
def test_2024_a_unit_of_work_is_as_large_as_maxumsgs_lets_it_be(world: World, limit: int) -> None:
    """A get, a response and two deliveries to a command: whichever call it is that finds no room, all is done once."""
    world.register("S")
    world.register("T")
    world.processor().drain()
    for n in range(10):
        world.publish("a", str(n).encode(), report=1, msg_type=1, reply_to_q="REPLY")
    world.mq.tell(define={"max_umsgs": limit})
    world.processor().drain()
    wanted = [str(n).encode() for n in range(10)]
    assert (world.data("S"), world.data("T")) == (wanted, wanted)
    assert (world.mq.depth("REPLY"), world.mq.depth(DEAD), world.mq.depth(STREAM)) == (10, 0, 0)


def test_2024_what_is_too_large_alone_waits_for_an_administrator(world: World) -> None:
    for queue in ("S", "T", "BACK"):
        world.register(queue)
    world.processor().drain()
    world.publish("a", b"wide")
    world.mq.tell(define={"max_umsgs": 3})
    for _ in range(2):
        with pytest.raises(UndeliverableError, match="MAXUMSGS is too low"):
            world.processor().drain()
    assert (world.mq.depth("S"), world.mq.depth(STREAM), world.mq.depth(DEAD)) == (0, 1, 0)
    world.mq.tell(define={"max_umsgs": 100})
    world.processor().drain()
    assert [world.data(queue) for queue in ("S", "T", "BACK")] == [[b"wide"]] * 3
