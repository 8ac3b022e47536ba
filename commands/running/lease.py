"""The lease of the instance of ``run`` that is active: a small file that it renews, and that a standby looks at.

    active      run.lease ── renewed ten times in the lease's seconds, by the supervisor
    standby     sees no renewal for so long ──> begins the next epoch in the database (``commands.qmgr.store.opening``)

The lock of the processor says at once that an active instance has ended. It says nothing of one that is held up, which
keeps it. So the lease says when to take over, and the epoch makes that safe: an instance that goes on later changes
nothing. No clock is compared with another process's: a renewal is a number that has changed, and time is what the
standby itself has spent looking.

A process that does not renew may only be waiting for a busy machine, so a lease lasts for seconds. One that the system
calls stopped (SIGSTOP) is not waiting: its place may be taken after STOPPED_S, however long its lease is.

    supervisor stopped    the standby sees it, and no renewal, at each look for STOPPED_S
    worker stopped        the supervisor sees it, renews no more, and writes that its lease ends after STOPPED_S
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from commands.disk.errors import SupersededError
from commands.disk.lock import PROCESSOR_LOCK, HolderLock, is_held
from commands.running.fixed_file import FixedFile, read_fixed

LEASE_FILE: Final = "run.lease"
STANDBY_LOCK: Final = "standby.lock"
"""Held by the instance that waits."""
ROOM: Final = 1024
STOPPED_S: Final = 1.0
"""Without a renewal for so long, the place of an instance that is stopped may be taken."""
_RENEWALS: Final = 10
# A standby that was held up itself has not seen what happened meanwhile.
_LONGEST_LOOK_S: Final = 0.5
# Where /proc/PID/stat says when a process began, counted from the field behind its state; states of what has ended.
_BEGAN: Final = 18
_GONE: Final = frozenset({"Z", "X"})
_STOPPED: Final = "T"


@dataclass(frozen=True, slots=True)
class Lease:
    """What the active instance says. renewals: how often it has renewed it. pid, began: its process (``began``).

    locked: whether it has the lock of the processor, too; it has not while the instance whose place it took is held up.
    lease_s: without a renewal for so long, its place may be taken. ended: it has given its place up.
    """

    epoch: int
    renewals: int
    pid: int
    began: str
    locked: bool
    lease_s: float
    ended: bool = False


def read_lease(directory: Path) -> Lease | None:
    """The lease of the queue manager in *directory*; None if there never was one."""
    found = read_fixed(directory / LEASE_FILE, ROOM)
    return Lease(**found) if found else None


class Tenure:
    """An instance that is active, from the epoch that it began. lock: that of the processor. Raises OSError.

    took_over: a line about the instance whose place it took; "" for none.
    """

    def __init__(
        self,
        directory: Path,
        lock: HolderLock,
        epoch: int,
        lease_s: float,
        took_over: str = "",
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.epoch, self.took_over = epoch, took_over
        self._directory, self._lock, self._clock_s, self._lease_s = directory, lock, clock_s, lease_s
        self._pid = os.getpid()
        self._file = FixedFile(directory / LEASE_FILE, ROOM)
        self._lease = Lease(epoch, 0, self._pid, began(self._pid), lock.is_held, lease_s)
        self._renewed_s = clock_s()
        self._write()

    def renew(self, works: bool = True) -> None:
        """Renew the lease where it is time for that; call it often. Raises SupersededError once another took over.

        works: False where the worker is stopped, so that another instance should take over.
        """
        if not self._lock.is_held:
            self._lock.take()  # free as soon as the instance that had it has ended
        now = self._clock_s()
        lease_s = self._lease_s if works else min(self._lease_s, STOPPED_S)
        if lease_s == self._lease.lease_s and now - self._renewed_s < self._lease_s / _RENEWALS:
            return
        self._renewed_s = now
        found = read_lease(self._directory)
        if found is not None and found.epoch > self.epoch:
            raise self.superseded(found.epoch)
        if not works and self._lease.lease_s == lease_s:
            return
        renewals, locked = self._lease.renewals + int(works), self._lock.is_held
        self._lease = replace(self._lease, renewals=renewals, locked=locked, lease_s=lease_s)
        # Where it cannot be written, another instance takes over, which may have a disk that works.
        with suppress(OSError):
            self._write()

    def superseded(self, found: int | None = None) -> SupersededError:
        """The error to raise where the worker has seen that another instance took over. found: its epoch."""
        return SupersededError(str(self._directory), self.epoch, self.epoch + 1 if found is None else found)

    def end(self) -> None:
        """Give the place up, unless it is another's by now; nothing in a forked child."""
        if os.getpid() != self._pid:
            return
        with suppress(OSError, SupersededError):
            self._renewed_s = -self._lease_s
            self.renew()
            self._lease = replace(self._lease, ended=True)
            self._write()
        self._file.close()
        self._lock.release()

    def _write(self) -> None:
        self._file.write(asdict(self._lease))


class LeaseWatch:
    """What a standby has seen of the lease of the queue manager in *directory*. clock_s: never back.

    stopped: whether the instance of a lease is stopped (``is_stopped``).
    """

    def __init__(
        self,
        directory: Path,
        clock_s: Callable[[], float] = time.monotonic,
        stopped: Callable[[Lease], bool] | None = None,
    ) -> None:
        self._directory, self._clock_s, self._stopped = directory, clock_s, stopped or is_stopped
        self._looked_s = clock_s()
        self._unrenewed_s = self._stopped_s = 0.0
        self._last: Lease | None = None
        self.has_changed = False

    def look(self) -> Lease | None:
        """The lease now; ``has_changed`` says whether it was renewed since the look before."""
        found, now = read_lease(self._directory), self._clock_s()
        self.has_changed = self._last is not None and found != self._last
        if found is None or found != self._last:
            self._last, self._unrenewed_s, self._stopped_s = found, 0.0, 0.0
        else:
            seen_s = min(now - self._looked_s, _LONGEST_LOOK_S)
            self._unrenewed_s += seen_s
            self._stopped_s = self._stopped_s + seen_s if self._stopped(found) else 0.0
        self._looked_s = now
        return found

    @property
    def has_run_out(self) -> bool:
        """Whether the lease was not renewed for long enough, or was given up."""
        return self.reason != ""

    @property
    def reason(self) -> str:
        """Why the place of the active instance may be taken, for people; "" while it may not."""
        last = self._last
        if last is None:
            return ""
        if last.ended:
            return "which has ended"
        if self._unrenewed_s > last.lease_s:
            return f"which did not renew its lease for {last.lease_s:g} s"
        return "which is stopped" if self._stopped_s > STOPPED_S else ""


def instances(directory: Path) -> list[dict[str, Any]]:
    """The instances for the queue manager in *directory*, the active one first, as ``status --json`` shows them.

    epoch: that the active one began; None for one of an earlier version, or one that has only begun to start.
    """
    found: list[dict[str, Any]] = []
    lease, holder = read_lease(directory), HolderLock(directory / PROCESSOR_LOCK).holder()
    if lease is not None and not lease.ended and (is_held(directory) or not lease.locked):
        found.append({"mode": "active", "pid": lease.pid, "epoch": lease.epoch})
    elif is_held(directory):
        found.append({"mode": "active", "pid": int(holder or 0), "epoch": None})
    standby = directory / STANDBY_LOCK
    if is_held(standby):
        found.append({"mode": "standby", "pid": int(HolderLock(standby).holder() or 0), "epoch": None})
    return found


def began(pid: int) -> str:
    """When process *pid* began, in the system's own count, so that no other one is taken for it; "" for unknown."""
    return _state_and_beginning(pid)[1]


def is_stopped(lease: Lease) -> bool:
    """Whether the supervisor of *lease* is stopped (SIGSTOP), as far as that can be seen from here."""
    state, beginning = _state_and_beginning(lease.pid)
    return state == _STOPPED and _is_seen(lease) and beginning == lease.began


def end_by_force(lease: Lease) -> bool:
    """End the instance of *lease* and all of its processes (SIGKILL); whether it could be found from here."""
    if sys.platform != "linux" or not _is_seen(lease):
        return False
    try:
        process = os.pidfd_open(lease.pid)
    except OSError:
        return False
    try:
        if began(lease.pid) != lease.began:
            return False
        signal.pidfd_send_signal(process, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(process)
    return True


def _is_seen(lease: Lease) -> bool:
    """Whether the process of *lease* may be one that has its number here.

    In two containers both instances have the number 1. They may have begun at the same moment, too.
    """
    return bool(lease.began) and lease.pid != os.getpid()


def _state_and_beginning(pid: int) -> tuple[str, str]:
    """The state of process *pid*, as the system names it, and when it began; "" for unknown or gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "", ""
    state, *others = stat.rpartition(")")[2].split()
    return ("", "") if state in _GONE else (state, others[_BEGAN])
