"""``qpubsub run`` killed again and again under a mixed load, over each transport: its own queues, MQTT, IBM MQ.

    python -m tests.reliability transports

Before each kill, programs put a burst of registrations, publications and requests; every publication has a number. The
kill (SIGKILL) comes at a random moment of the work, at any time from the start of the process on. Every third time it
ends the processor alone, whose supervisor starts another, and then both. Killed processes are forked, so that a kill
costs less than a second. At the end a subscriber must have seen every number once and in order. What passes MQTT
(mosquitto, QoS 1) must have come at least once. IBM MQ is the stand-in of the tests.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from commands.broker.objects import QueueManager
from commands.cli import run as _loaded_before_the_forks  # noqa: F401
from commands.disk.lock import is_held
from commands.qmgr.store import QueueManagerStore, UnitOfWork
from rfh2 import decode
from tests.commands.links.mosquitto import Native, mosquitto
from tests.commands.links.mqi.harness import StandIn, stand_in
from tests.commands.links.test_mq_queues import World
from tests.reliability.figures import Table
from tests.reliability.kills import begun, ended, verb
from tests.reliability.workload import CONTROL, STREAM, put
from tests.soak.load import ALL, OWN, REPLIES, mixed, worker_of
from tests.soak.programs import Seen, publication
from tests.waiting import until

COLUMNS: Final = ("transport", "kills", "of them with deliveries", "flow", "published", "lost", "twice", "late")
_ADDRESS: Final = "ibmmq://127.0.0.1:1414/QM1?channel=C"
_BURST: Final = 40
_MOST_WAITING: Final = 10 * _BURST
_EARLIEST_S, _LATEST_S = 0.05, 0.8
_NATIVE, _PRODUCER = "NATIVE", "0"


@dataclass(slots=True)
class Flow:
    """One way of publications. once: whether each must come exactly once; else at least once."""

    name: str
    once: bool
    published: int = 0
    seen: Seen = field(default_factory=Seen)

    def note(self, body: bytes) -> None:
        """A publication has come."""
        if body:  # none: a native program sees that a retained publication was deleted
            producer, number, _ = json.loads(body)
            self.seen.note(str(producer), number)

    def lost(self, producer: str) -> int:
        """How many of that producer have not come."""
        return self.seen.lost({producer: self.published})


class Embedded:
    """The queues of the queue manager itself. What other transports do otherwise they override."""

    name = "its own queues"

    def __init__(self, home: Path, chance: random.Random) -> None:
        self.home, self._chance = home, chance
        self.queues = Flow("from queue to queue", once=True)
        QueueManagerStore.create(home, QueueManager("QM1")).close()
        self._in_a_unit_of_work(self._register)

    @property
    def options(self) -> tuple[str, ...]:
        """Of ``run``."""
        return ()

    @property
    def flows(self) -> dict[str, Flow]:
        """What is checked, by producer."""
        return {_PRODUCER: self.queues}

    def _in_a_unit_of_work(self, work: Callable[[Any], None]) -> None:
        # Closed again before a fork: SQLite's connections must not be carried across one.
        with QueueManagerStore.open(self.home, "QM1") as store, store.unit_of_work() as unit:
            work(unit)

    def _register(self, unit: UnitOfWork) -> None:
        put(unit, CONTROL, f"<Command>RegSub</Command><Topic>s/#</Topic><QName>{ALL}</QName>")

    def feed(self) -> None:
        """Put a burst of the load."""
        number = self.queues.published

        def work(unit: UnitOfWork) -> None:
            nonlocal number
            for _ in range(_BURST):
                number += mixed(unit, int(_PRODUCER), publication(_PRODUCER, number), self._chance)

        self._in_a_unit_of_work(work)
        self.queues.published = number

    def meanwhile(self, seconds: float) -> None:
        """What programs do while ``run`` is at work."""
        time.sleep(seconds)

    def collect(self) -> None:
        """Get what has come."""

        def work(unit: UnitOfWork) -> None:
            for flow, queue in self._arriving():
                for body in _got(unit, queue):
                    flow.note(body)
            for queue in (REPLIES, *OWN):
                _got(unit, queue)

        self._in_a_unit_of_work(work)

    def waiting(self) -> int:
        """How many commands are on the input queues."""
        with QueueManagerStore.open(self.home, "QM1") as store:
            return store.depth(CONTROL) + store.depth(STREAM)

    def _arriving(self) -> Iterator[tuple[Flow, str]]:
        yield self.queues, ALL

    def is_done(self) -> bool:
        """Whether all has come."""
        self.collect()
        return not any(flow.lost(producer) for producer, flow in self.flows.items())


class OverMqtt(Embedded):
    """The topic tree is mosquitto: native programs publish and subscribe there."""

    name = "MQTT"

    def __init__(self, home: Path, chance: random.Random, stack: ExitStack) -> None:
        self._broker = stack.enter_context(mosquitto(home.parent / "mosquitto"))
        self.inward, self.outward = Flow("from MQTT to a queue", once=False), Flow("from a queue to MQTT", once=False)
        super().__init__(home, chance)
        subscriber = Native(self._broker, "subscriber", "s/#", lasting=True)
        subscriber.client.on_message = lambda _client, _data, message: self.outward.note(message.payload)
        self._speaker = Native(self._broker, "speaker")
        stack.callback(subscriber.close)
        stack.callback(self._speaker.close)

    @property
    def options(self) -> tuple[str, ...]:
        return ("--topics", self._broker.url)

    @property
    def flows(self) -> dict[str, Flow]:
        return {_PRODUCER: self.queues, "n": self.inward}

    def _register(self, unit: UnitOfWork) -> None:
        super()._register(unit)
        put(unit, CONTROL, f"<Command>RegSub</Command><Topic>n/#</Topic><QName>{_NATIVE}</QName>")

    def meanwhile(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left_s := end - time.monotonic()) > 0:
            # What is published before its subscriber is registered is nobody's.
            if self.queues.seen.got:
                self._speaker.insist("n/1", publication("n", self.inward.published).decode())
                self.inward.published += 1
            time.sleep(min(left_s, 0.05))

    def _arriving(self) -> Iterator[tuple[Flow, str]]:
        yield self.queues, ALL
        yield self.inward, _NATIVE

    def is_done(self) -> bool:
        self.outward.published = self.queues.published
        return super().is_done() and not self.outward.lost(_PRODUCER)


class OverMq(Embedded):
    """The queues are those of IBM MQ."""

    name = "IBM MQ's queues (stand-in)"

    def __init__(self, home: Path, chance: random.Random, stack: ExitStack) -> None:
        queues: dict[str, dict[str, Any]] = {name: {} for name in (ALL, REPLIES, *OWN)}
        running: StandIn = stack.enter_context(stand_in(home.parent / "mq", queues))
        self._world = World(home, running)
        stack.callback(self._world.programs.close)
        self.home, self._chance = home, chance
        self.queues = Flow("from queue to queue", once=True)
        self._in_a_unit_of_work(self._register)

    @property
    def options(self) -> tuple[str, ...]:
        return ("--queues", _ADDRESS)

    def _in_a_unit_of_work(self, work: Callable[[Any], None]) -> None:
        with self._world.programs.unit_of_work() as unit:
            work(unit)
        self._world.programs.close()  # its connection is not the child's

    def waiting(self) -> int:
        return self._world.mq.depth(CONTROL) + self._world.mq.depth(STREAM)


def _got(unit: UnitOfWork, queue: str) -> list[bytes]:
    bodies = []
    while unit.find_queue(queue) is not None and (message := unit.get(queue)) is not None:
        bodies.append(decode(message.body, message.md).body)
    return bodies


def killed(transport: Embedded, kills: int, chance: random.Random) -> tuple[int, int]:
    """Kill ``run`` so often, then let it finish; how many kills found it running, and came after deliveries."""
    work = verb("--quiet", "run", "-m", "QM1", "--home", str(transport.home), *transport.options)
    done = fruitful = 0
    while done < kills:
        transport.feed()
        before, got = done, transport.queues.seen.got
        child = begun(work)
        if transport.waiting() > _MOST_WAITING:  # killed too soon, too often: on a busy machine it may never commit
            until(lambda: transport.waiting() < _BURST, "the commands of many bursts to be processed")
        transport.meanwhile(chance.uniform(_EARLIEST_S, _LATEST_S))
        if chance.random() < 1 / 3 and (worker := worker_of(child)):
            os.kill(worker, signal.SIGKILL)
            done += 1
            transport.meanwhile(chance.uniform(_EARLIEST_S, _LATEST_S))
        os.kill(child, signal.SIGKILL)
        done += not ended(child)
        until(lambda: not is_held(transport.home / "QM1" / "run.lock"), "the killed processor to be gone")
        transport.collect()
        fruitful += (done - before) * (transport.queues.seen.got > got)
    child = begun(work)
    with suppress(AssertionError):  # what is missing is said by the flows
        until(transport.is_done, "all to arrive")
    os.kill(child, signal.SIGTERM)
    ended(child)
    transport.collect()
    return done, fruitful


TRANSPORTS: Final[dict[str, Callable[[Path, random.Random, ExitStack], Embedded]]] = {
    "embedded": lambda home, chance, _stack: Embedded(home, chance),
    "mqtt": OverMqtt,
    "mq": OverMq,
}


def transports(kills: int, seed: int, names: Sequence[str] = tuple(TRANSPORTS)) -> Table:
    """*kills* in all, on each of *names* in equal parts."""
    rows: list[tuple[str, ...]] = []
    broken = []
    for name in names:
        chance = random.Random(f"{name} {seed}")
        with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
            transport = TRANSPORTS[name](Path(directory) / "qmgrs", chance, stack)
            done, fruitful = killed(transport, -(-kills // len(names)), chance)
            flows = list(transport.flows.items())
            if isinstance(transport, OverMqtt):
                flows.append((_PRODUCER, transport.outward))
            for producer, flow in flows:
                lost, seen = flow.lost(producer), flow.seen
                row = (transport.name, f"{done:,}", f"{fruitful:,}", flow.name, f"{flow.published:,}")
                rows.append((*row, f"{lost:,}", f"{seen.twice:,}", f"{seen.late:,}"))
                print(*rows[-1], sep=", ", file=sys.stderr, flush=True)
                if lost or (flow.once and (seen.twice or seen.late)):
                    broken.append(f"{transport.name}, {flow.name}: {lost} lost, {seen.twice} twice, {seen.late} late")
    return Table("Kills over all transports", COLUMNS, rows, broken)
