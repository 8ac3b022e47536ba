"""Two instances of a bridge with an MQTT broker: one works, the other waits (``commands.running.tenure``).

Each is killed, or held up for longer than its lease, at any moment; then the other one takes over, and the first goes
on. Each has a directory of its own, as on two machines. What PostgreSQL does for ``tenure`` is simulated: a lock that
ends with its session, and sessions that are ended where they are silent for too long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from commands.disk.errors import SupersededError
from commands.disk.lock import WriteTurn
from commands.links.mqtt import adapter
from commands.links.mqtt.sender import Filters
from commands.qmgr.store import Durability
from commands.qmgr.store.database import PROCESSOR
from commands.qmgr.store.opening import DATABASE, directory_of
from commands.qmgr.store.sqlite_database import SqliteDatabase
from commands.running import tenure
from tests.simulation.bridge_world import BridgeWorld
from tests.simulation.faults import Fault, Life
from tests.simulation.kernel import Kernel, Process
from tests.simulation.world import HOME, bridge_of

_TICK_S: Final = 0.1


class Server:
    """The part of PostgreSQL: whose session has the lock of the processor, and which sessions are silent."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.active: Session | None = None

    def end_held_up(self) -> None:
        """End the sessions that keep a unit of work open, and whose client is stopped."""
        for process in self.kernel.processes:
            if process.held_until > self.kernel.now:
                for connection in process.connections:
                    if process.is_open(connection) and connection.in_transaction:
                        connection.close()


class Session(SqliteDatabase):
    """What ``tenure`` asks of PostgreSQL. A session that was ended is a new one at the next statement."""

    def __init__(self, server: Server) -> None:
        super().__init__(directory_of(HOME, "QM1") / DATABASE, Durability.NORMAL, 1.0)
        self._server, self.process = server, server.kernel.current.process
        self._lease_s, self._heard_s = 0.0, server.kernel.now

    @property
    def is_alive(self) -> bool:
        """Whether it has asked something a moment ago, and so has its lock."""
        return not self.process.is_dead and self._server.kernel.now - self._heard_s <= self._lease_s

    def require_activity(self, within_s: float) -> None:
        self._lease_s = within_s

    def try_lock(self, number: int) -> bool:
        self._hear()
        active = self._server.active
        if number == PROCESSOR and (active is None or not active.is_alive):
            self._server.active = self
        return self._server.active is self

    def has_lock(self, number: int) -> bool:
        self._hear()
        return self._server.active is self

    def unlock(self, number: int) -> None:
        if self._server.active is self:
            self._server.active = None

    def read_epoch(self) -> int:
        self._hear()
        return super().read_epoch()

    def _hear(self) -> None:
        self._server.kernel.step()
        if self._server.active is self and not self.is_alive:
            self._server.active = None
        self._heard_s = self._server.kernel.now

    def holder(self, number: int) -> str:
        return "" if self._server.active is None else self._server.active.process.name

    def wait_in_line(self) -> None: ...

    def leave_line(self) -> None: ...

    def questions(self) -> list[tuple[int, str]]:
        return []

    def end_idle(self, for_s: float) -> None:
        self._server.kernel.sleep(for_s)
        self._server.end_held_up()


@contextmanager
def _waits(_who: Callable[[], str]) -> Iterator[None]:
    yield


class TakeoverWorld(BridgeWorld):
    """``World``."""

    weights: Mapping[str, float] = {"kill": 1, "hold": 1, "lose": 3, "jump": 1, "cut": 1, "slow": 1}

    def _begin(self) -> None:
        kernel = self._kernel
        self._server = Server(kernel)
        for name in "AB":
            Path(name).mkdir()
        # PostgreSQL has no file of turns; and each machine has its own directory.
        kernel.replace(WriteTurn, take=lambda _turn, _deadline: True, give=lambda _turn: None)
        kernel.replace(adapter, Filters=lambda path: Filters(Path(kernel.current.process.name) / path.name))
        kernel.replace(tenure, connect_postgresql=lambda *_: Session(self._server))
        self._epochs: dict[str, int] = {}  # of the processes that are active, or think so; by their names
        noted = kernel.on_commit

        def committed(path: str) -> None:
            noted(path)
            name = kernel.current.process.name
            if self._epochs.get(name, 0) < max(self._epochs.values(), default=0) and name in self._epochs:
                kernel.broken.append(f"a unit of work of epoch {self._epochs[name]} is committed: {self._epochs}")

        kernel.on_commit = committed
        self._lives = [Life(kernel, name, self._instance) for name in "AB"]

    def _lives_faults(self) -> dict[str, Fault]:
        return {
            "kill": lambda: self._one().kill(),
            "hold": lambda: self._one().hold(),
            "jump": lambda: self._one().jump(),
            "lose": self._lose,
        }

    def _lose(self) -> float:
        """The active one is held up until it has lost its place."""
        session = self._server.active
        active = [life for life in self._lives if session is not None and life.process is session.process]
        return active[0].hold(tenure.LEASE_S) if active and not active[0].process.is_dead else 0.0

    def _one(self) -> Life:
        return self._chance.choice(self._lives)

    def _heal(self) -> None:
        for life in self._lives:
            life.heal()

    def _instance(self, process: Process) -> None:
        self._epochs.pop(process.name, None)
        home: Any = HOME
        place = tenure._in_database(home, "QM1", tenure.LEASE_S, _waits)
        assert place is not None
        self._kernel.note("active, epoch", place.epoch)
        self._epochs[process.name] = place.epoch
        process.start(partial(self._supervise, process, place), "supervisor")
        bridge = bridge_of("QM1", "mqtt://tree:1883")
        bridge._places = replace(bridge._places, epoch=place.epoch)
        with bridge:
            bridge.serve()

    def _supervise(self, process: Process, place: tenure.Tenure) -> None:
        while True:
            self._kernel.sleep(_TICK_S)
            try:
                place.renew()
            except SupersededError as error:
                self._kernel.note("ended", error)
                next(each for each in self._lives if each.process is process).end()
