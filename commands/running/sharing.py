"""A bridge that shares a workload with others: it runs as many of the shares as are its part.

    bridge ── fork ──> run of QM1.SPORT ── fork ──> worker        all of them die with the bridge
           ── fork ──> run of QM1.NEWS  ── fork ──> worker

The bridges know of each other, and of who works for what, from locks of sessions in PostgreSQL, which the server
releases when a session ends, or is silent. Ten times a second a bridge compares what it runs with its part.

    it runs too few     it takes a share that nobody works for
    it runs too many    another bridge has come: it ends one, in order, which that bridge takes then
    one of its own      has lost its place, or is stopped: it ends that one by force, and runs it again

Two bridges that take the same share at once do no harm: the second ``run`` waits, and is ended here.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, Protocol

from commands.config.home import process_here
from commands.links.engine.threads import Backoff
from commands.running.child_processes import die_with
from commands.running.shares_file import Share
from commands.running.supervisor import is_stopped_child
from rfh2.errors import StoreError

TICK_S: Final = 0.1
ENDING_S: Final = 15.0
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 10.0

Serve = Callable[[Share], int]
"""Called in a process of its own: work for the share; the exit code."""


class Membership(Protocol):
    """A bridge among the others (``postgresql_database.Members``)."""

    @property
    def me(self) -> int: ...
    def look(self) -> tuple[list[int], dict[str, str]]: ...


def part_of(shares: int, members: Sequence[int], me: int) -> int:
    """How many of *shares* are the part of *me*: as many as of each other of *members*, or one more.

    >>> [part_of(5, [7, 8, 9], each) for each in (7, 8, 9)]
    [2, 2, 1]
    """
    each, rest = divmod(shares, len(members))
    return each + (members.index(me) < rest)


class _Seat:
    """The place of one share at this bridge. holder: who works for it, as seen last. pid: of its ``run`` here, or 0."""

    def __init__(self, share: Share) -> None:
        self.share = share
        self.holder = ""
        self.pid = 0
        self.is_asked = self.was_active = False
        self.works_s = self.due_s = 0.0
        self.backoff = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)

    def see(self, holder: str) -> None:
        """Note who works for it."""
        self.holder = holder
        self.was_active = self.was_active or self.is_active
        # One that is stopped before it has begun has no place that it could lose.
        if self.pid and not is_stopped_child(self.pid) and (self.is_active or not self.was_active):
            self.works_s = time.monotonic()

    def ask(self) -> None:
        """Have its ``run`` here end, in order."""
        self.is_asked = True
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    @property
    def is_active(self) -> bool:
        """Whether it is this bridge's ``run`` that works for it."""
        return self.pid != 0 and self.holder == process_here(self.pid)


class SharingBridge:
    """One bridge of *shares*, as a member among others. serve: see ``Serve``. say: for people.

    lease_s: for so long one of its own may be stopped, or without its place.
    """

    def __init__(
        self, shares: Sequence[Share], membership: Membership, serve: Serve, say: Callable[[str], None], lease_s: float
    ) -> None:
        self._seats = [_Seat(share) for share in shares]
        self._membership, self._serve, self._say, self._lease_s = membership, serve, say, lease_s
        self._trouble = ""

    def run(self, stop: threading.Event) -> None:
        """Work for a part of the shares until *stop* is set, then give them all up."""
        try:
            while not stop.wait(TICK_S):
                self.step()
        finally:
            self._end()

    def step(self) -> None:
        """Compare what this bridge runs with its part, and begin or end one."""
        self._reap()
        try:
            members, holders = self._membership.look()
        except StoreError as error:
            if not self._trouble:
                self._trouble = str(error)
                self._say(f"{error}; it is tried again")
            return
        self._trouble = ""
        for seat in self._seats:
            seat.see(holders.get(seat.share.qmgr, ""))
        running = [seat for seat in self._seats if seat.pid and not seat.is_asked]
        room = part_of(len(self._seats), members, self._membership.me) - len(running)
        if room < 0:
            self._give_up(running[-1], "another bridge takes it")
        elif room > 0:
            self._take_one(members)
        for seat in running:
            self._look_after(seat)

    @property
    def shares(self) -> dict[str, int]:
        """The process of ``run`` for each queue manager that this bridge works for."""
        return {seat.share.qmgr: seat.pid for seat in self._seats if seat.is_active}

    def _take_one(self, members: Sequence[int]) -> None:
        for seat in self._in_turn(members):
            if not seat.holder:
                self._begin(seat)
                return

    def _in_turn(self, members: Sequence[int]) -> Iterator[_Seat]:
        """Seats to take; each member begins elsewhere, so that two seldom want the same one."""
        count, now = len(self._seats), time.monotonic()
        first = members.index(self._membership.me) * count // len(members)
        for at in range(count):
            seat = self._seats[(first + at) % count]
            if seat.pid == 0 and seat.due_s <= now:
                yield seat

    def _look_after(self, seat: _Seat) -> None:
        if seat.holder and not seat.is_active:
            self._give_up(seat, f"process {seat.holder} works for it")
        elif time.monotonic() - seat.works_s > self._lease_s:
            self._say(f"{seat.share.qmgr}: process {seat.pid} is held up; it is ended")
            os.kill(seat.pid, signal.SIGKILL)

    def _begin(self, seat: _Seat) -> None:
        bridge, process = os.getpid(), os.fork()
        if process == 0:
            code = 1
            try:
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, signal.SIG_DFL if number is signal.SIGTERM else signal.default_int_handler)
                die_with(bridge)
                code = self._serve(seat.share)
            finally:
                os._exit(code)
        seat.pid, seat.is_asked, seat.was_active, seat.works_s = process, False, False, time.monotonic()

    def _give_up(self, seat: _Seat, why: str) -> None:
        self._say(f"{seat.share.qmgr}: {why}")
        seat.ask()

    def _reap(self) -> None:
        for seat in self._seats:
            if not seat.pid or os.waitpid(seat.pid, os.WNOHANG)[0] == 0:
                continue
            if seat.was_active:
                seat.backoff.reset()
            # What it gave up is another bridge's, which needs a moment to take it.
            seat.due_s = time.monotonic() + seat.backoff.next()
            seat.pid = 0

    def _end(self) -> None:
        for seat in self._seats:
            if seat.pid and not seat.is_asked:
                seat.ask()
        end = time.monotonic() + ENDING_S
        while any(seat.pid for seat in self._seats) and time.monotonic() < end:
            self._reap()
            time.sleep(TICK_S / 5)
        for seat in self._seats:
            if seat.pid:
                with suppress(ProcessLookupError):
                    os.kill(seat.pid, signal.SIGKILL)
                os.waitpid(seat.pid, 0)
                seat.pid = 0
