"""MQ clients in syncpoint at a listener, which runs on an event loop in simulated time, with a bridge beside it.

Half of the programs put numbered messages, the others move them to a second queue, a unit of work each. Meanwhile the
listener is killed or stopped, and connections are cut or held up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final

from commands.broker.objects import QueueManager
from commands.listener.presence import Presence
from commands.listener.security import Security
from commands.listener.server import Listener, ListenerOptions, _Arrival, serve
from commands.qmgr.store import Durability, QueueManagerStore
from tests.reliability.listener_kills import Programs
from tests.simulation.faults import Fate, Life, Profile, disk_full, some_time
from tests.simulation.kernel import Kernel, Process
from tests.simulation.network import End, Network
from tests.simulation.stand_ins import Event
from tests.simulation.world import HOME

WEIGHTS: Final = {"kill": 4, "hold": 2, "cut": 4, "slow": 3, "full": 2, "jump": 1}
_HOST: Final = "127.0.0.1"
_CLIENTS: Final = 4
_LONG_S: Final = 10.0


class Loop(asyncio.BaseEventLoop):
    """An event loop whose clock and waits are the kernel's. What is for an executor is done by a task, in its turn."""

    def __init__(self, kernel: Kernel, process: Process) -> None:
        super().__init__()
        self._kernel, self._process, self._woken = kernel, process, False
        self._last: dict[Any, Event] = {}
        self._selector = self

    def time(self) -> float:
        return self._kernel.now

    def select(self, timeout_s: float | None) -> list[Any]:
        if timeout_s is None or timeout_s > 0:
            self._kernel.wait(lambda: self._woken, timeout_s)
        else:
            self._kernel.step()
        self._woken = False
        return []

    def _process_events(self, event_list: Any) -> None: ...

    def _write_to_self(self) -> None:
        self._woken = True

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        future = self.create_future()
        before, done = self._last.get(executor), Event()
        self._last[executor] = done

        def work() -> None:
            if before is not None and executor is not None:
                before.wait()
            try:
                result = func(*args)
            except Exception as error:
                self.call_soon_threadsafe(_answered, future, future.set_exception, error)
            else:
                self.call_soon_threadsafe(_answered, future, future.set_result, result)
            done.set()

        self._process.start(work, "executor")
        return future


def _answered(future: asyncio.Future[Any], answer: Callable[[Any], None], what: object) -> None:
    if not future.done():
        answer(what)


class Accepted(asyncio.Transport):
    """The listener's side of a connection."""

    def __init__(self, loop: Loop, number: int) -> None:
        super().__init__({"peername": (_HOST, number)})
        self._loop, self._pauses, self._waiting, self._is_over = loop, True, bytearray(), False
        self._protocol: Any = None
        self.end = End(loop._kernel, self._from_there(self._came), self._from_there(self._ended))
        loop._process.closes.append(self.end.close)

    def _from_there(self, act: Callable[..., None]) -> Callable[..., None]:
        return lambda *args: None if self._loop._process.is_dead else self._later(act, *args)

    def _later(self, act: Callable[..., None], *args: Any) -> None:
        self._loop.call_soon_threadsafe(act, *args)

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._is_over

    def pause_reading(self) -> None:
        self._pauses = True

    def resume_reading(self) -> None:
        self._pauses = False
        if self._waiting or self.end.is_over:
            self._loop.call_soon(self._came, b"")

    def _came(self, data: bytes) -> None:
        self._waiting += data
        if self._waiting and not self._pauses and not self._is_over:
            came, self._waiting = bytes(self._waiting), bytearray()
            self._protocol.data_received(came)

    def _ended(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._protocol.connection_lost(ConnectionResetError(104, "the connection is cut"))

    def write(self, data: Any) -> None:
        if not self.end.is_over:
            self.end.send(data)

    def close(self) -> None:
        if not self._is_over:
            self._is_over = True
            self.end.close()
            self._loop.call_soon(self._protocol.connection_lost, None)

    abort = close


class _Listening(Listener):
    network: Network
    host: str

    async def _listen(self, host: str, port: int) -> tuple[Any, int]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Loop)

        def accept() -> End:
            loop._kernel.made += 1
            transport = Accepted(loop, loop._kernel.made)
            arrival = _Arrival(self._admit)
            transport.set_protocol(arrival)
            loop.call_soon_threadsafe(arrival.connection_made, transport)
            return transport.end

        self.network.listening[_HOST] = accept
        return _Acceptor(), port


class _Acceptor:
    def close(self) -> None: ...


async def _nothing(*_: object) -> None: ...


class ListenerWorld:
    """``World``."""

    def __init__(self, kernel: Kernel, faults_every_s: float) -> None:
        self._kernel = kernel
        self._network = Network(kernel)
        QueueManagerStore.create(HOME, QueueManager("QM1")).close()
        kernel.replace(Presence, serve=_nothing)
        life = self._life = Life(kernel, "listener", self._listener)
        self._fate = Fate(
            kernel,
            Profile(faults_every_s, WEIGHTS),
            {
                "kill": self._kill,
                "hold": life.hold,
                "jump": life.jump,
                "full": lambda: disk_full(kernel),
                "cut": self._network.cut_one,
                "slow": lambda: self._network.slow_one(some_time(kernel)),
            },
        )
        self._programs = Programs((1414,), _CLIENTS, pause_s=0.3)

    @property
    def faults(self) -> int:
        return self._fate.count

    def _kill(self) -> float:
        self._network.listening.pop(_HOST, None)
        return self._life.kill()

    def _listener(self, process: Process) -> None:
        def made() -> QueueManagerStore:
            return QueueManagerStore.open(HOME, "QM1", durability=Durability.NORMAL)

        async def run() -> None:
            listener = _Listening(ListenerOptions(_HOST, 1414), "QM1", made, Security({}, None))
            listener.network = self._network
            await serve(listener, asyncio.Event(), lambda _port: None)

        loop = Loop(self._kernel, process)
        main: Coroutine[Any, Any, None] = run()
        loop.run_until_complete(main)

    def run(self) -> None:
        self._programs.start()
        self._kernel.sleep(_LONG_S)
        self._fate.end()
        self._kernel.full_until = 0.0
        self._life.heal()
        self._kernel.sleep(2.0)
        self._programs.end()
        self._kill()

    def amiss(self) -> Iterator[str]:
        yield from self._kernel.broken
        left = self._programs.left(HOME)
        if not self._programs.committed or not left.moved:
            yield "the programs got nothing done"
        if left.lost or left.twice or left.strange:
            yield f"of {len(self._programs.committed)} messages: {left}"
