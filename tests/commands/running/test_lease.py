"""The lease of the active instance, as it renews it and as a standby sees it. Time is a number in a list."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from commands.disk.lock import PROCESSOR_LOCK, HolderLock
from commands.qmgr.store import SupersededError
from commands.running.lease import (
    STANDBY_LOCK,
    Lease,
    LeaseWatch,
    Tenure,
    began,
    end_by_force,
    instances,
    is_stopped,
    read_lease,
)

LEASE_S = 3.0


class Clock:
    """Seconds, as a test sets them."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lock(tmp_path: Path) -> HolderLock:
    taken = HolderLock(tmp_path / PROCESSOR_LOCK, with_directory=True)
    assert taken.take()
    return taken


def tenure(directory: Path, lock: HolderLock, clock: Clock, epoch: int = 7) -> Tenure:
    return Tenure(directory, lock, epoch, LEASE_S, clock_s=clock)


def test_a_lease_is_renewed_ten_times_in_its_seconds(tmp_path: Path, lock: HolderLock, clock: Clock) -> None:
    active = tenure(tmp_path, lock, clock)
    for _ in range(60):
        clock.now += 0.1
        active.renew()
    lease = read_lease(tmp_path)
    assert lease is not None
    assert (lease.epoch, lease.pid, lease.locked, lease.ended) == (7, os.getpid(), True, False)
    assert 15 <= lease.renewals <= 20


# What the active instance does in each tenth of a second, how long the standby looks, whether the lease has run out.
SIGHTS = [
    ("renewed", "r" * 60, 0.1, False),
    ("held up for less", "." * 29, 0.1, False),
    ("held up", "." * 32, 0.1, True),
    ("held up, and renewed at last", "." * 29 + "r" + "." * 20, 0.1, False),
    ("the standby was held up itself, not the active one", ".", 60.0, False),
    ("given up", "e", 0.1, True),
]


# docs/conformance.md: QM-17
@pytest.mark.rule("QM-17")
@pytest.mark.parametrize(("_what", "does", "tick_s", "has_run_out"), SIGHTS, ids=[row[0] for row in SIGHTS])
def test_when_a_lease_has_run_out(
    tmp_path: Path, lock: HolderLock, clock: Clock, _what: str, does: str, tick_s: float, has_run_out: bool
) -> None:
    active, watch = tenure(tmp_path, lock, clock), LeaseWatch(tmp_path, clock)
    watch.look()
    for each in does:
        clock.now += tick_s
        if each == "r":
            active.renew()
        if each == "e":
            active.end()
        watch.look()
    assert watch.has_run_out is has_run_out


# What a standby sees in each tenth of a second: a renewal, none, none of an instance that is stopped; and its reason.
STOPS = [
    ("stopped for less", "s" * 9, ""),
    ("stopped", "s" * 12, "which is stopped"),
    ("stopped, and renewed at last", "s" * 9 + "r" + "s" * 9, ""),
    ("slow, and stopped for a moment now and then", ("." * 2 + "s" * 7) * 3, ""),
    ("slow, then stopped", "." * 15 + "s" * 12, "which is stopped"),
    ("slow for long", "." * 32, "which did not renew its lease for 3 s"),
    ("stopped for longer than its lease", "s" * 32, "which did not renew its lease for 3 s"),
]


@pytest.mark.parametrize(("_what", "sees", "reason"), STOPS, ids=[row[0] for row in STOPS])
def test_an_instance_that_is_stopped_is_not_waited_for(
    tmp_path: Path, lock: HolderLock, clock: Clock, _what: str, sees: str, reason: str
) -> None:
    active, state = tenure(tmp_path, lock, clock), "."
    watch = LeaseWatch(tmp_path, clock, lambda _lease: state == "s")
    watch.look()
    for state in sees:
        clock.now += 0.1
        if state == "r":
            active.renew()
        watch.look()
    assert (watch.reason, watch.has_run_out) == (reason, reason != "")


def test_a_supervisor_whose_worker_is_stopped_shortens_its_lease(
    tmp_path: Path, lock: HolderLock, clock: Clock
) -> None:
    active, watch = tenure(tmp_path, lock, clock), LeaseWatch(tmp_path, clock, lambda _lease: False)
    seen = []
    for works in (True,) * 10 + (False,) * 9 + (True,) * 9 + (False,) * 20:
        clock.now += 0.1
        active.renew(works)
        watch.look()
        seen.append(watch.has_run_out)
    assert seen[:38] == [False] * 38, "a second has not passed, and it went on in between"
    assert seen[-1]
    assert watch.reason == "which did not renew its lease for 1 s"
    clock.now += 1
    active.renew()
    lease = read_lease(tmp_path)
    assert lease is not None
    assert lease.lease_s == LEASE_S, "it works again"


@pytest.fixture
def other() -> Iterator[Lease]:
    """The lease of another process, which does nothing."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield Lease(7, 0, process.pid, began(process.pid), True, LEASE_S)
        process.kill()


def test_a_stopped_worker_shortens_the_longest_lease_at_once(tmp_path: Path, lock: HolderLock, clock: Clock) -> None:
    """An hour's lease is renewed every six minutes; nobody waits for that."""
    active = Tenure(tmp_path, lock, 7, 3600.0, clock_s=clock)
    shown = []
    for works in (True, False, False, True, True):
        clock.now += 0.1
        active.renew(works)
        lease = read_lease(tmp_path)
        assert lease is not None
        shown.append((lease.lease_s, lease.renewals))
    assert shown == [(3600.0, 0), (1.0, 0), (1.0, 0), (3600.0, 1), (3600.0, 1)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says so")
def test_a_process_is_seen_to_be_stopped(other: Lease) -> None:
    assert not is_stopped(other)
    os.kill(other.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, other.pid, os.WSTOPPED | os.WNOWAIT)
    assert is_stopped(other)
    assert not is_stopped(replace(other, began="1")), "another process, which had this number before"
    assert not is_stopped(replace(other, began="")), "unknown"
    os.kill(other.pid, signal.SIGCONT)
    os.waitid(os.P_PID, other.pid, os.WCONTINUED | os.WNOWAIT)
    assert not is_stopped(other)


def test_there_is_nothing_to_run_out_where_there_was_no_lease(tmp_path: Path, clock: Clock) -> None:
    watch = LeaseWatch(tmp_path, clock)
    for _ in range(100):
        clock.now += 0.5
        assert watch.look() is None
    assert not watch.has_run_out


def test_an_instance_whose_place_was_taken_learns_it_at_the_next_renewal(
    tmp_path: Path, lock: HolderLock, clock: Clock
) -> None:
    old = tenure(tmp_path, lock, clock)
    new = Tenure(tmp_path, HolderLock(tmp_path / PROCESSOR_LOCK, with_directory=True), 8, LEASE_S, clock_s=clock)
    lease = read_lease(tmp_path)
    assert lease is not None
    assert (lease.epoch, lease.locked) == (8, False), "the lock is still that of the instance that is held up"
    clock.now += 1
    with pytest.raises(SupersededError, match="epoch 8"):
        old.renew()
    old.end()
    assert read_lease(tmp_path) == lease, "it does not end what is another instance's"
    assert [(each["pid"], each["epoch"]) for each in instances(tmp_path)] == [(os.getpid(), 8)], "without the lock too"
    clock.now += 1
    new.renew()
    renewed = read_lease(tmp_path)
    assert renewed is not None
    assert renewed.locked, "it takes the lock as soon as it is free"
    new.end()


def test_a_child_does_not_end_the_lease_of_its_parent(tmp_path: Path, lock: HolderLock, clock: Clock) -> None:
    active = tenure(tmp_path, lock, clock)
    child = os.fork()
    if child == 0:
        active.end()
        os._exit(0)
    os.waitpid(child, 0)
    lease = read_lease(tmp_path)
    assert lease is not None
    assert not lease.ended
    assert not HolderLock(tmp_path / PROCESSOR_LOCK, with_directory=True).take()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says when a process began")
def test_only_the_process_of_the_lease_is_ended(other: Lease) -> None:
    assert other.began != ""
    assert not end_by_force(replace(other, began="1")), "another process, which had this number before"
    itself = replace(other, pid=os.getpid(), began=began(os.getpid()))
    assert not end_by_force(itself), "in two containers, both have the same number"
    assert end_by_force(other)


def test_the_instances_are_shown(tmp_path: Path, lock: HolderLock, clock: Clock) -> None:
    assert instances(tmp_path) == [{"mode": "active", "pid": os.getpid(), "epoch": None}], "an earlier version"
    active = tenure(tmp_path, lock, clock)
    standby = HolderLock(tmp_path / STANDBY_LOCK)
    assert standby.take()
    both = [
        {"mode": "active", "pid": os.getpid(), "epoch": 7},
        {"mode": "standby", "pid": os.getpid(), "epoch": None},
    ]
    assert instances(tmp_path) == both
    active.end()
    standby.release()
    assert instances(tmp_path) == []
