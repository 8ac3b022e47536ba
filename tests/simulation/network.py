"""Connections in simulated time: bytes take a while, in order, and a connection can be cut or held up at any moment.

``Socket`` is an end that a task reads, as far as paho and the MQ client use a socket. The other end may be one too, or
a partner that is called for what comes (``End``).
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final

from paho.mqtt import client as paho

from tests.simulation.kernel import Kernel
from tests.simulation.stand_ins import STANDS, Stand

_QUICK_S, _SLOW_S = 0.000_2, 0.02
_SLOW: Final = 0.05


class End:
    """One end of a connection. received, ended: called for what comes, and where the other end is gone."""

    def __init__(
        self,
        kernel: Kernel,
        received: Callable[[bytes], None] = lambda data: None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self.kernel, self.received, self.ended = kernel, received, ended
        self.peer: End | None = None
        self.is_over = False
        self._free_at = 0.0

    def hold(self, seconds: float) -> None:
        """What is sent from now on arrives so much later."""
        self._free_at = max(self._free_at, self.kernel.now) + seconds

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """It arrives after a while, if the connection lasts so long."""
        if self.is_over:
            raise ConnectionResetError(104, "the connection is cut")
        sent, peer = bytes(data), self.peer
        assert peer is not None

        def arrives() -> None:
            if not peer.is_over:
                self.kernel.note("arrives", len(sent), sent[:48].hex())
                peer.received(sent)

        self._later(arrives)
        return len(sent)

    def close(self) -> None:
        """End it in order: the other end gets what was sent, then learns of it."""
        peer = self.peer
        if self.is_over or peer is None:
            return
        self.is_over = True
        self._later(peer.lose)

    def cut(self) -> None:
        """Nothing that is under way arrives any more."""
        for end in (self, self.peer):
            if end is not None:
                end.lose()

    def lose(self) -> None:
        """The connection is over."""
        if not self.is_over:
            self.is_over = True
            self.ended()

    def _later(self, act: Callable[[], None]) -> None:
        chance = self.kernel.chance
        takes_s = chance.random() * (_SLOW_S if chance.random() < _SLOW else _QUICK_S)
        self._free_at = max(self._free_at, self.kernel.now + takes_s)
        self.kernel.at(self._free_at, act)


class Socket(End):
    """An end that is read."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel, self._came)
        self._inbox = bytearray()
        self._blocks, self._timeout_s = True, None
        kernel.made += 1
        self._number = kernel.made
        kernel.current.process.closes.append(self.close)

    def _came(self, data: bytes) -> None:
        self._inbox += data

    @property
    def is_readable(self) -> bool:
        return bool(self._inbox) or self.is_over

    def recv(self, size: int, flags: int = 0) -> bytes:
        del flags
        if not self._inbox and not self.is_over:
            if not self._blocks:
                raise BlockingIOError(11, "nothing has come")
            if not self.kernel.wait(lambda: self.is_readable, self._timeout_s):
                raise TimeoutError("timed out")
        data = bytes(self._inbox[:size])
        del self._inbox[:size]
        return data

    def sendall(self, data: bytes) -> None:
        self.send(data)

    def setblocking(self, blocks: bool) -> None:
        self._blocks = blocks

    def settimeout(self, timeout_s: Any) -> None:
        self._timeout_s, self._blocks = timeout_s, timeout_s != 0

    def fileno(self) -> int:
        return self._number

    def setsockopt(self, *_: object) -> None: ...

    def getpeername(self) -> tuple[str, int]:
        return "127.0.0.1", self._number

    getsockname = getpeername

    def shutdown(self, _how: int) -> None:
        self.close()


Accept = Callable[[], End]


class Network:
    """Who listens where, by host, and which connections there are. Hosts in *down* cannot be reached."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.listening: dict[str, Accept] = {}
        self.down: set[str] = set()
        self.connections: list[Socket] = []
        NETWORKS[:] = [self]

    def connect(self, host: str) -> Socket:
        """Raises OSError."""
        self._kernel.sleep(self._kernel.chance.random() * _QUICK_S)
        accept = self.listening.get(host)
        if accept is None or host in self.down:
            raise ConnectionRefusedError(111, "nobody listens")
        here, there = Socket(self._kernel), accept()
        here.peer, there.peer = there, here
        self.connections = [*(each for each in self.connections if not each.is_over), here]
        return here

    def one(self) -> Socket | None:
        """One of the connections that there are."""
        there = [each for each in self.connections if not each.is_over]
        return self._kernel.chance.choice(there) if there else None

    def cut_one(self) -> float:
        """Cut a connection; for how long it is felt."""
        found = self.one()
        if found is not None:
            found.cut()
        return 1.0

    def slow_one(self, seconds: float) -> float:
        """Hold one direction of a connection up for so long."""
        found = self.one()
        if found is not None and found.peer is not None:
            self._kernel.chance.choice((found, found.peer)).hold(seconds)
        return seconds + 1.0


NETWORKS: Final[list[Network]] = []


def socket_pair() -> tuple[Socket, Socket]:
    """Both ends here."""
    kernel = NETWORKS[0]._kernel
    one, two = Socket(kernel), Socket(kernel)
    one.peer, two.peer = two, one
    one.setblocking(False)
    two.setblocking(False)
    return one, two


def _selected(
    read: Sequence[Any], write: Sequence[Any], _failed: Sequence[Any], timeout: float | None = None
) -> tuple[list[Any], list[Any], list[Any]]:
    if any(not isinstance(each, Socket) for each in (*read, *write)):
        raise TypeError("not a socket")
    if not write:
        NETWORKS[0]._kernel.wait(lambda: any(each.is_readable for each in read), timeout)
    return [each for each in read if each.is_readable], list(write), []


class _Poll:
    def __init__(self) -> None:
        self._socket: Any = None

    def register(self, which: Any, _events: int) -> None:
        self._socket = which

    def poll(self, timeout_ms: float | None = None) -> list[tuple[Any, int]]:
        timeout_s = None if timeout_ms is None or timeout_ms < 0 else timeout_ms / 1_000
        NETWORKS[0]._kernel.wait(lambda: self._socket.is_readable, timeout_s)
        return [(self._socket, select.POLLIN)] if self._socket.is_readable else []


STANDS[paho._socketpair_compat] = socket_pair
STANDS[select] = Stand(select, select=_selected, poll=_Poll)
STANDS[socket] = Stand(
    socket, create_connection=lambda address, *_, **__: NETWORKS[0].connect(address[0]), socket=Socket
)
