"""A bridge that shares a workload with others: it runs as many of the shares as are its part (``membership``).

    bridge ── fork ──> run of QM1.SPORT ── fork ──> worker        all of them die with the bridge
           ── fork ──> run of QM1.NEWS  ── fork ──> worker

Ten times a second it compares what it runs with its part.

    it runs too few     it takes a share that nobody works for: the lock of its processor is free, or its lease ran out
    it runs too many    another bridge has come: it ends one, in order, which that bridge takes then
    one of its own      is stopped, or does not renew its lease: it ends that one by force, and runs it again

Two bridges that take the same share at once do no harm: the second ``run`` is refused, or waits as its standby and is
ended here. The epoch in the database fences one that was held up, as it does for a standby.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from commands.config.home import Home, PostgresqlHome
from commands.disk.lock import HolderLock, is_held, require_locks
from commands.disk.permissions import make_directory
from commands.links.engine.threads import Backoff
from commands.qmgr.store.opening import directory_of
from commands.running.child_processes import die_with
from commands.running.fixed_file import FixedFile, read_fixed
from commands.running.lease import STOPPED_S, Lease, LeaseWatch, Tenure
from commands.running.shares_file import Share
from commands.running.supervisor import is_stopped_child
from rfh2.errors import StoreError

# Which bridges share the workload now: each has a directory, with a lock, a lease, and what it works for.
#
#     HOME/.bridges/NAME/4711-1c0ffee0/   member.lock   held while the bridge is there
#                                         run.lease     renewed by it: one that is stopped, or held up, counts no more
#                                         holds         its shares, for people
#
# No bridge speaks to another one. Each counts those that are there, and takes as many shares as are its part; what
# keeps two from working for one share is the lock and the lease of its queue manager (``commands.running.lease``),
# not this.

BRIDGES: Final = ".bridges"
_LOCK: Final = "member.lock"
_HOLDS: Final = "holds"
_ROOM: Final = 65_536


@dataclass(frozen=True, slots=True)
class Member:
    """A bridge that is there. pid: its process. shares: the process of ``run`` for each queue manager it works for."""

    pid: int
    shares: Mapping[str, int]


class Membership:
    """A bridge among the others of workload *name* in *home*, until ``leave``.

    lease_s: without a renewal for so long, the others count it no more. Raises OSError,
    SystemUnsuitableError.
    """

    def __init__(self, home: Home, name: str, lease_s: float) -> None:
        require_locks(f"workload {name}")
        self._directory = _directory(home, name)
        self.id = f"{os.getpid()}-{uuid4().hex[:8]}"
        made = self._directory / f".{self.id}"
        make_directory(made)
        self._lock = HolderLock(made / _LOCK)
        self._lock.take()
        # It appears with its lock: one without is that of a bridge that has ended.
        self._own = made.rename(self._directory / self.id)
        self._tenure = Tenure(self._own, self._lock, 0, lease_s)
        self._holds = FixedFile(self._own / _HOLDS, _ROOM)
        self._watches: dict[str, LeaseWatch] = {}

    def members(self) -> list[str]:
        """Renew the lease of this one, and give all that are there, in the same order to each of them."""
        self._tenure.renew()
        found = [self.id]
        for other in _present(self._directory):
            if other.name == self.id:
                continue
            if not is_held(other / _LOCK):
                shutil.rmtree(other, ignore_errors=True)
                continue
            watch = self._watches.setdefault(other.name, LeaseWatch(other))
            watch.look()
            if not watch.has_run_out:
                found.append(other.name)
        self._watches = {name: watch for name, watch in self._watches.items() if (self._directory / name).is_dir()}
        return sorted(found)

    def note(self, shares: Mapping[str, int]) -> None:
        """Write down what this one works for (``Member.shares``)."""
        self._holds.write({"pid": os.getpid(), "shares": dict(shares)})

    def leave(self) -> None:
        """Be no member any more."""
        self._holds.close()
        self._tenure.end()
        shutil.rmtree(self._own, ignore_errors=True)

    def forget(self) -> None:
        """In a forked child: not to be this member, which may end before the child does."""
        self._lock.release()


def present(home: Home, name: str) -> list[Member]:
    """The bridges of workload *name* that are there, for people."""
    found = []
    for each in _present(_directory(home, name)):
        holds = read_fixed(each / _HOLDS, _ROOM)
        if holds and is_held(each / _LOCK):
            found.append(Member(holds["pid"], holds["shares"]))
    return sorted(found, key=lambda member: member.pid)


def part_of(shares: int, members: Sequence[str], me: str) -> int:
    """How many of *shares* are the part of *me*: as many as of each other of *members*, or one more.

    >>> [part_of(5, ["a", "b", "c"], each) for each in "abc"]
    [2, 2, 1]
    """
    each, rest = divmod(shares, len(members))
    return each + (members.index(me) < rest)


def _directory(home: Home, name: str) -> Path:
    if isinstance(home, PostgresqlHome):
        raise StoreError(
            f"{home}: bridges share queue managers in a directory only; start qpubsub run for each of them"
        )
    return directory_of(home / BRIDGES, name)


def _present(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return []
    return [each for each in directory.iterdir() if each.is_dir() and not each.name.startswith(".")]


TICK_S: Final = 0.1
ENDING_S: Final = 15.0
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 10.0

Serve = Callable[[Share, bool], int]
"""Called in a process of its own: work for the share, as its standby if the second is True; the exit code."""


class _Seat:
    """The place of one share at this bridge. lease: as it was seen last. pid: of its ``run`` here; 0 for none."""

    def __init__(self, share: Share, directory: Path) -> None:
        self.share, self._directory = share, directory
        self._watch = LeaseWatch(directory)
        self.lease: Lease | None = None
        self.pid = 0
        self.is_standby = self.is_asked = self.was_active = False
        self.stopped = 0  # at how many looks it was
        self.due_s = 0.0
        self.backoff = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)

    def look(self) -> None:
        """See who works for it."""
        self.lease = self._watch.look()
        self.was_active = self.was_active or self.is_active

    def ask(self) -> None:
        """Have its ``run`` here end, in order."""
        self.is_asked = True
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    @property
    def has_run_out(self) -> bool:
        """Whether who works for it is held up."""
        return self._watch.has_run_out

    @property
    def is_active(self) -> bool:
        """Whether it is this bridge's ``run`` that works for it."""
        return self.pid != 0 and self.lease is not None and not self.lease.ended and self.lease.pid == self.pid

    @property
    def is_free(self) -> bool:
        """Whether no bridge works for it, so that a ``run`` can begin at once."""
        return not is_held(self._directory)


class SharingBridge:
    """One bridge of *shares* in *home*, as a member among others. serve: see ``Serve``. say: for people."""

    def __init__(
        self, home: Home, shares: Sequence[Share], membership: Membership, serve: Serve, say: Callable[[str], None]
    ) -> None:
        self._seats = [_Seat(share, directory_of(home, share.qmgr)) for share in shares]
        self._membership, self._serve, self._say = membership, serve, say
        self._noted: dict[str, int] | None = None

    def run(self, stop: threading.Event) -> None:
        """Work for a part of the shares until *stop* is set, then give them all up."""
        try:
            while not stop.wait(TICK_S):
                self.step()
        finally:
            self._end()

    def step(self) -> None:
        """Compare what this bridge runs with its part, and begin or end one."""
        members = self._membership.members()
        self._reap()
        for seat in self._seats:
            seat.look()
        running = [seat for seat in self._seats if seat.pid and not seat.is_asked]
        room = part_of(len(self._seats), members, self._membership.id) - len(running)
        if room < 0:
            self._give_up(running[-1], "another bridge takes it")
        elif room > 0:
            self._take_one(members)
        for seat in running:
            self._look_after(seat)
        self._note()

    @property
    def shares(self) -> dict[str, int]:
        """The process of ``run`` for each queue manager that this bridge works for."""
        return {seat.share.qmgr: seat.pid for seat in self._seats if seat.is_active}

    def _take_one(self, members: Sequence[str]) -> None:
        for seat in self._in_turn(members):
            is_free = seat.is_free
            if is_free or seat.has_run_out:
                self._begin(seat, as_standby=not is_free)
                return

    def _in_turn(self, members: Sequence[str]) -> Iterator[_Seat]:
        """Seats to take; each member begins elsewhere, so that two seldom want the same one."""
        count, now = len(self._seats), time.monotonic()
        first = members.index(self._membership.id) * count // len(members)
        for at in range(count):
            seat = self._seats[(first + at) % count]
            if seat.pid == 0 and seat.due_s <= now:
                yield seat

    def _look_after(self, seat: _Seat) -> None:
        seat.stopped = seat.stopped + 1 if is_stopped_child(seat.pid) else 0
        # One that is stopped before it has begun has no lease that could run out.
        if (seat.is_active and seat.has_run_out) or seat.stopped * TICK_S > STOPPED_S:
            self._say(f"{seat.share.qmgr}: process {seat.pid} is held up; it is ended")
            os.kill(seat.pid, signal.SIGKILL)
        elif seat.is_standby and not seat.is_active and not seat.has_run_out and not seat.is_free:
            self._give_up(seat, "another process works for it")

    def _begin(self, seat: _Seat, *, as_standby: bool) -> None:
        bridge, process = os.getpid(), os.fork()
        if process == 0:
            code = 1
            try:
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, signal.SIG_DFL if number is signal.SIGTERM else signal.default_int_handler)
                die_with(bridge)
                self._membership.forget()
                code = self._serve(seat.share, as_standby)
            finally:
                os._exit(code)
        seat.pid, seat.is_standby, seat.is_asked, seat.was_active = process, as_standby, False, False

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

    def _note(self) -> None:
        if self._noted != self.shares:
            self._noted = self.shares
            self._membership.note(self._noted)

    def _end(self) -> None:
        for seat in self._seats:
            if seat.pid and not seat.is_asked:
                seat.ask()
        end = time.monotonic() + ENDING_S
        while any(seat.pid for seat in self._seats) and time.monotonic() < end:
            self._membership.members()
            self._reap()
            time.sleep(TICK_S / 5)
        for seat in self._seats:
            if seat.pid:
                with suppress(ProcessLookupError):
                    os.kill(seat.pid, signal.SIGKILL)
                os.waitpid(seat.pid, 0)
                seat.pid = 0
