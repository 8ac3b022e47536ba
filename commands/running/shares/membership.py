"""Which bridges share the workload now: each has a directory, with a lock, a lease, and what it works for.

    HOME/.bridges/NAME/4711-1c0ffee0/   member.lock   held while the bridge is there
                                        run.lease     renewed by it: one that is stopped, or held up, counts no more
                                        holds         its shares, for people

No bridge speaks to another one. Each counts those that are there, and takes as many shares as are its part; what keeps
two from working for one share is the lock and the lease of its queue manager (``commands.running.lease``), not this.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from commands.disk.lock import HolderLock, is_held, require_locks
from commands.disk.permissions import make_directory
from commands.qmgr.store.opening import directory_of
from commands.running.fixed_file import FixedFile, read_fixed
from commands.running.lease import LeaseWatch, Tenure

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

    def __init__(self, home: Path, name: str, lease_s: float) -> None:
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


def present(home: Path, name: str) -> list[Member]:
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


def _directory(home: Path, name: str) -> Path:
    return directory_of(home / BRIDGES, name)


def _present(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return []
    return [each for each in directory.iterdir() if each.is_dir() and not each.name.startswith(".")]
