"""Servers beside ``run``, each a process of its own: neither a hanging command nor its restart touches clients.

    run (supervisor) ── fork ──> listener        on SIGTERM it takes no more connections and ends; it dies with run
                     ── fork ──> console         the same
                     ── fork ──> worker

A server that ends by itself, killed or by a fault, is started again, unless it does so many times in a minute.

Child processes: they must not outlive the one that started them, and are started again, but not for ever.

What systemd learns of ``run``: ready, alive, ending. A datagram to the socket in $NOTIFY_SOCKET (sd_notify).
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Final

from commands.disk.errors import ListenError, ServerAwayError
from rfh2.errors import QPubSubError, system_words

_SET_PDEATHSIG: Final = 1


def die_with(supervisor: int) -> None:
    """Make the system kill this process when its supervisor ends."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415

        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, int(signal.SIGKILL))
    else:
        threading.Thread(target=_wait_for_orphanhood, args=(supervisor,), daemon=True).start()
    if os.getppid() != supervisor:
        os.kill(os.getpid(), signal.SIGKILL)


def _wait_for_orphanhood(supervisor: int) -> None:
    while os.getppid() == supervisor:
        time.sleep(_TICK_S)
    os.kill(os.getpid(), signal.SIGKILL)


# How often a process that ended by a signal is started again: ``run``'s worker, and its listener.

MOST_CRASHES: Final = 5
_WITHIN_S: Final = 60.0


class Crashes:
    """The ends of one process. clock: in seconds, never back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends: deque[float] = deque(maxlen=MOST_CRASHES)

    def may_restart(self) -> bool:
        """The process has ended by a signal; whether it is started again: not after the fifth such end in a minute."""
        self._ends.append(self._clock())
        return len(self._ends) < MOST_CRASHES or self._ends[-1] - self._ends[0] >= _WITHIN_S


_EVERY_S: Final = 1.0


def notify(state: str) -> None:
    """Send *state*, such as ``READY=1``; nothing without a service manager. Raises nothing: a service goes on."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address:
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(state.encode(), f"\0{address[1:]}" if address.startswith("@") else address)


class Heartbeat:
    """Says once a second, while it is asked to, that a loop goes on (``WatchdogSec``)."""

    def __init__(self) -> None:
        self._next = 0.0

    def beat(self) -> None:
        """The loop has come round."""
        if "WATCHDOG_USEC" in os.environ and (now := time.monotonic()) >= self._next:
            self._next = now + _EVERY_S
            notify("WATCHDOG=1")


_log: Final = logging.getLogger("qpubsub.listener")
Serve = Callable[[asyncio.Event, Callable[[int], None]], Awaitable[None]]
_PAUSE_S: Final = 0.2
_TICK_S: Final = 0.1
_ENDING_S: Final = 10.0
_STAYS_DOWN: Final = "the %s ended by %s, %d times in a minute; it is not started again"
_STARTED_AGAIN: Final = "the %s ended by %s, and is started again"
# How a server ends, and the process that starts it: in order; after it said what is wrong; and in any other way.
_ENDED, _SAID, _FAULT = 0, 1, 70


@dataclass(frozen=True, slots=True)
class Service:
    """A server to be run beside others.

    where: HOST:PORT. option: says so. serve: serves until its event is set, and calls the function with the port. It
    raises OSError, ListenError or StoreError where it cannot begin.
    """

    where: str
    option: str
    serve: Serve


def where_of(host: str, port: int) -> str:
    """HOST:PORT, with brackets where the host is an address of IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(frozen=True, slots=True)
class Beside:
    """A server for a process of its own. name: for the log. make: called there. told: what people read of HOST:PORT.

    make raises ListenError, StoreError where it cannot listen. reported: entered in that process; takes its log.
    """

    name: str
    make: Callable[[], Service]
    told: str
    reported: Callable[[], AbstractContextManager[None]] = nullcontext


@contextmanager
def beside(server: Beside, meanwhile: Callable[[], None] = lambda: None) -> Iterator[Guardian]:
    """A server in a process of its own while inside; call its ``look_after`` now and then.

    meanwhile: called ten times a second until it listens. Raises ListenError, StoreError where it cannot listen.
    """
    guardian = Guardian(server, meanwhile)
    guardian.start()
    try:
        yield guardian
    finally:
        guardian.stop()


class Guardian:
    """Has a process that starts a server again when it ends. where: HOST:PORT."""

    def __init__(self, server: Beside, meanwhile: Callable[[], None]) -> None:
        self._server, self._meanwhile = server, meanwhile
        self._parent, self._child = os.getpid(), 0
        self._crashes = Crashes()
        self.where = ""

    def look_after(self) -> None:
        """Start that process again where it was killed, and the server, which dies with it."""
        if not self._child or os.getpid() != self._parent:
            return
        ended, status = os.waitpid(self._child, os.WNOHANG)
        if not ended:
            return
        self._child, code = 0, os.waitstatus_to_exitcode(status)
        if code in (_ENDED, _SAID):
            return
        name = self._server.name
        if not self._crashes.may_restart():
            _log.error(_STAYS_DOWN, name, _how(code), MOST_CRASHES)
            return
        _log.error(_STARTED_AGAIN, name, _how(code))
        try:
            self.start()
        except QPubSubError as error:
            _log.error("the %s stays down: %s", name, error)

    def start(self) -> None:
        """Fork, and wait until the listener listens."""
        heard, says = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            os.close(heard)
            code = _FAULT
            try:
                die_with(self._parent)
                with self._server.reported():
                    code = self._guard(says)
            except Exception as error:
                self._log_fault(error)
            finally:
                os._exit(code)
        os.close(says)
        with os.fdopen(heard, "rb") as pipe:
            while not select.select([pipe], [], [], _TICK_S)[0]:
                self._meanwhile()
            said = pipe.read()
        where, why, option, away = (*said.decode("utf-8", "replace").split("\n"), "", "", "")[:4]
        if why or not where:
            if not why:  # it may be about to try again
                os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
            self._child = 0
            if away:
                raise ServerAwayError(why)
            raise ListenError(where, why or "it ended at once", option)
        self.where = where

    def stop(self) -> None:
        """Ask the listener to end, and wait for that; by force where it does not."""
        if not self._child or os.getpid() != self._parent:
            return
        with suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGTERM)
        end = time.monotonic() + _ENDING_S
        while time.monotonic() < end:
            if os.waitpid(self._child, os.WNOHANG)[0]:
                return
            time.sleep(0.02)
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)

    def _guard(self, says: int) -> int:
        """In the child: run listeners, one after the other, until one ends in order."""
        crashes = Crashes()
        first, is_asked = True, False

        def end(worker: int) -> None:
            nonlocal is_asked
            is_asked = True
            _end(worker)

        while True:
            parent, worker = os.getpid(), os.fork()
            if worker == 0:
                code = _FAULT
                try:
                    for number in (signal.SIGTERM, signal.SIGINT):
                        signal.signal(number, signal.SIG_DFL)  # and not what its guardian does then
                    die_with(parent)
                    code = self._listen(says if first else None)
                except Exception as error:
                    self._log_fault(error)
                finally:
                    os._exit(code)
            if first:
                os.close(says)
            first = False
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: end(worker))  # noqa: B023
            _, status = os.waitpid(worker, 0)
            code = os.waitstatus_to_exitcode(status)
            if code in (_ENDED, _SAID) or is_asked:
                return max(code, _ENDED)
            if not crashes.may_restart():
                _log.error(_STAYS_DOWN, self._server.name, _how(code), MOST_CRASHES)
                return _SAID
            _log.error(_STARTED_AGAIN, self._server.name, _how(code))
            time.sleep(_PAUSE_S)

    def _log_fault(self, error: Exception) -> None:
        _log.critical("the %s: %r", self._server.name, error, exc_info=error)

    def _listen(self, says: int | None) -> int:
        where, option, is_started = "", "", False

        def started(port: int) -> None:
            nonlocal is_started
            is_started = True
            if says is not None:
                _say(says, f"{where.rpartition(':')[0]}:{port}" if port else "no port, as no LISTENER is started")

        async def run(serve: Serve) -> None:
            ended = asyncio.Event()
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, ended.set)
            await serve(ended, started)

        try:
            service = self._server.make()
            where, option = service.where, service.option
            asyncio.run(run(service.serve))
        except (QPubSubError, OSError) as error:
            if says is None or is_started:
                _log.error("%s", error)
                return _FAULT
            if isinstance(error, ListenError):
                where, option = error.where, error.option
            why = error.why if isinstance(error, ListenError) else system_words(error)
            _say(says, f"{where}\n{why}\n{option}\n{'away' if isinstance(error, ServerAwayError) else ''}")
            return _SAID
        return _ENDED


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else "a fault"


def _say(pipe: int, text: str) -> None:
    with os.fdopen(pipe, "wb") as stream:
        stream.write(text.encode())


def _end(process: int) -> None:
    if process:  # 0 in a server that has just been forked: it would be all of ``run``
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
