"""Bridges on PostgreSQL, and the server itself, fail again and again: is a message lost, doubled, out of order?

    python -m tests.reliability.postgresql_faults 440 --promotions 50 --full 10

Two instances of ``run`` work for one queue manager, with a listener and a console each. A program publishes numbers and
has the store find out what became of a commit whose connection was lost; MQ clients put and get in syncpoint. In turn

    kill run        the active instance is killed (kill -9)
    end run         it is asked to end (SIGTERM)
    stop run        it is stopped (SIGSTOP), and goes on once the other one works
    stop supervisor, stop worker    the same of one of its processes alone
    kill listener   its listener is killed
    kill console    its console is killed, while it makes a page
    cut             the server ends all sessions, wherever they are: in the middle of a commit, too
    kill server     the server is killed (kill -9, all of its processes) and started again
    stop server     pg_ctl stop -m immediate, and started again

With --promotions there are two servers after that, the second one with a synchronous copy. The first one is killed, and
the second one promoted; the next copy is made of that. With --full (as root, which may mount disks) the disk of the
tables and that of the server's log are full in turn. At the end the subscriber has each number once and in order, and
each message that an MQ client has committed is on one of their two queues, once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Final, TypeVar

import psycopg

from commands.broker.objects import LocalQueue
from commands.config.home import PostgresqlHome
from commands.disk.errors import StoreFullError
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.database import PROCESSOR
from rfh2.errors import StoreError
from tests.commands.links.mosquitto import free_port, listens
from tests.postgresql import PostgresqlServer, postgresql_server
from tests.reliability.disk import small_disk
from tests.reliability.figures import median_and_longest
from tests.reliability.listener_kills import Programs
from tests.reliability.takeovers import QUEUE, Instance, children_of, create, with_signal
from tests.reliability.workload import STREAM, put
from tests.waiting import PATIENCE_S, until

OF_RUN: Final = ("kill run", "end run", "stop run", "stop supervisor", "stop worker", "kill listener", "kill console")
KINDS: Final = (*OF_RUN, "cut", "kill server", "stop server")
FULL: Final = ("full disk", "full log")
_DISK_MB: Final = 256
LEASE: Final = ("--lease", "1", "--durability", "full")
# For so long the store tries to find out what became of a commit.
_PATIENCE_S: Final = 120.0
# Between two units of work of a program: it is to be at work, and to leave the processors to the others.
_PAUSE_S: Final = 0.01
_CUT: Final = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name LIKE 'qpubsub%' AND pid <> pg_backend_pid()"""

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Figures:
    """What was seen. seconds_to_delivery: by kind, from a fault to a delivery after it, median and longest.

    ended: instances that ended by themselves. committed, unanswered: units of work of MQ clients.
    """

    faults: dict[str, int]
    seconds_to_delivery: dict[str, tuple[float, float]]
    published: int
    failed_units: int
    unknown_units: int
    committed: int
    unanswered: int
    ended: int
    lost: int
    twice: int
    out_of_order: int
    seconds: float


class Publisher(threading.Thread):
    """Publishes numbers, one in a unit of work. published: how many are committed; failed: how many were not.

    full: for the disk was. unknown: what the store could not find out.
    """

    def __init__(self, home: PostgresqlHome) -> None:
        super().__init__(daemon=True)
        self._home = home
        self.ended = threading.Event()
        self.published = self.failed = self.full = self.unknown = 0

    def run(self) -> None:
        while not self.ended.is_set():
            with suppress(StoreError), QueueManagerStore.open(self._home, "QM1", patience_s=_PATIENCE_S) as store:
                while not self.ended.wait(_PAUSE_S):
                    self._publish(store)

    def _publish(self, store: QueueManagerStore) -> None:
        try:
            with store.unit_of_work() as unit:
                put(unit, STREAM, "<Command>Publish</Command><Topic>t</Topic>", b"%d" % (self.published + 1))
        except StoreError as error:
            self.failed += 1
            self.full += isinstance(error, StoreFullError)
            self.unknown += "look at the queues" in str(error)
            time.sleep(0.02)
        else:
            self.published += 1


class Trial:
    """Two instances, a publisher and MQ clients. home: reaches the server that works. ended: see ``Figures``."""

    def __init__(self, home: PostgresqlHome, place: Path) -> None:
        self.home, self._place, self._made, self.ended = home, place, 0, 0
        create(home)
        with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
            for queue in ("IN", "OUT"):
                unit.save_definition(LocalQueue(queue, max_depth=999_999_999))
        self._watching = ExitStack()
        self._store: QueueManagerStore | None = None
        self._ports = [free_port() for _ in range(4)]
        self.instances = [self._begin(number) for number in (0, 1)]
        self.publisher, self.programs = Publisher(home), Programs(self._ports[:2], clients=4, pause_s=_PAUSE_S)

    def _begin(self, number: int) -> Instance:
        self._made += 1
        options = ("--listen", str(self._ports[number]), "--console", str(self._ports[2 + number]))
        return Instance(self.home, self._place, f"instance-{self._made}", *LEASE, *options)

    def asked(self, question: Callable[[QueueManagerStore], _Answer], meanwhile: _Answer) -> _Answer:
        """What a session that is kept gives. meanwhile: the answer while the server is away."""
        try:
            if self._store is None:
                self._store = self._watching.enter_context(QueueManagerStore.open(self.home, "QM1"))
            return question(self._store)
        except StoreError:
            self._watching.close()
            self._store = None
            return meanwhile

    def active(self) -> Instance | None:
        """The instance that works."""
        holder = self.asked(lambda store: store.database.holder(PROCESSOR), "").partition(" ")[0]
        return next((each for each in self.instances if str(each.pid) == holder), None)

    def wait_for_active(self) -> Instance:
        until(lambda: self.active() is not None, "an instance that works")
        return self.active() or self.wait_for_active()

    def of_run(self, kind: str) -> None:
        """Kill or stop the active instance, or a server beside it."""
        active = self.wait_for_active()
        if kind in ("kill listener", "kill console"):
            self._kill_server(active, kind)
            return
        if kind == "kill run":
            active.end()
            self._replace(active)
            return
        # The worker is started last.
        one = {"stop supervisor": active.pid, "stop worker": children_of(active.pid)[-1], "end run": active.pid}.get(
            kind
        )
        number = signal.SIGTERM if kind == "end run" else signal.SIGSTOP
        os.killpg(active.pid, number) if one is None else os.kill(one, number)
        until(lambda: self.active() not in (None, active), "the other instance to work")
        if kind == "end run":
            active.process.wait(PATIENCE_S)
            self._replace(active)
        else:
            os.killpg(active.pid, signal.SIGCONT)

    def _kill_server(self, active: Instance, kind: str) -> None:
        port = self._ports[self.instances.index(active) + 2 * (kind == "kill console")]
        until(lambda: listens(port) or self.active() is not active, f"what is to be killed ({kind})")
        with socket.create_connection(("127.0.0.1", port)) as asked:
            if kind == "kill console":
                asked.sendall(b"GET /queues HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                time.sleep(0.01)
            # Each is the child of a process that guards it. The listener's is started first, the worker last.
            guards = children_of(active.pid)
            for server in children_of(guards[kind == "kill console"]) if len(guards) > 1 else ():
                with_signal(server, signal.SIGKILL)
        until(lambda: listens(port) or self.active() is not active, f"it to be there again ({kind})")

    def _replace(self, instance: Instance) -> None:
        at = self.instances.index(instance)
        self.instances[at] = self._begin(at)

    def mend(self) -> bool:
        """Start others for the instances that have ended."""
        for each in list(self.instances):
            if each.has_ended:
                self.ended += 1
                print(f"ended with {each.process.returncode}: {each.said[-600:]}", file=sys.stderr, flush=True)
                each.end()
                self._replace(each)
        return True

    def wait_for_delivery(self) -> None:
        """Wait until something was delivered that is published from now on."""
        before = self.publisher.published
        until(lambda: self.publisher.published > before, "a publication")
        until(lambda: self.mend() and self._depth(QUEUE) > before, "a delivery")

    def _depth(self, queue: str) -> int:
        return self.asked(lambda store: store.depth(queue), -1)

    def came(self) -> list[int]:
        """When all is delivered: the numbers, in their order."""
        self.publisher.ended.set()
        self.publisher.join()
        self.programs.end()
        until(lambda: self._depth(STREAM) == 0 and self._depth(QUEUE) >= self.publisher.published, "the rest")
        with QueueManagerStore.open(self.home, "QM1") as store:
            return [int(message.body.rpartition(b">")[2].strip()) for message in store.browse(QUEUE)]

    def close(self) -> None:
        self.publisher.ended.set()
        for each in self.instances:
            each.end()
        self._watching.close()


def of_server(server: PostgresqlServer, kind: str) -> None:
    """Let the server or its sessions fail."""
    if kind == "cut":
        with psycopg.connect(server.home().url, autocommit=True) as session:
            session.execute(_CUT)
        return
    server.kill() if kind == "kill server" else server.stop("immediate")
    server.start()


def trial(server: PostgresqlServer, place: Path, faults: int, seed: int = 1) -> Figures:
    """Let something fail *faults* times."""
    with ExitStack() as stack:
        it = Trial(server.home(), place)
        stack.callback(it.close)

        def fail(kind: str) -> None:
            it.of_run(kind) if kind in OF_RUN else of_server(server, kind)

        return _tried(it, list(islice(cycle(KINDS), faults)), fail, seed)


def replica_trial(place: Path, faults: int, seed: int = 1) -> Figures:
    """Kill the server and promote its copy *faults* times."""
    with ExitStack() as stack:
        servers = [stack.enter_context(postgresql_server(synchronous_standby_names="'*'"))]
        servers.append(stack.enter_context(postgresql_server(copy_of=servers[0])))
        sockets = ",".join(str(each.data.parent) for each in servers)
        home = PostgresqlHome(f"postgresql://tester@/postgres?host={sockets}&target_session_attrs=read-write")
        it = Trial(home, place)
        stack.callback(it.close)

        def fail(_kind: str) -> None:
            servers[0].kill()
            servers[1].promote()
            servers.reverse()
            servers[1].copy(servers[0])

        return _tried(it, ["promote"] * faults, fail, seed)


def full_trial(place: Path, faults: int, seed: int = 1) -> Figures | None:
    """Let the disk of the tables and that of the server's log be full in turn; None where none can be mounted."""
    with ExitStack() as stack:
        disks = {kind: stack.enter_context(small_disk(place / kind.replace(" ", "-"), _DISK_MB)) for kind in FULL}
        tables, log = (disk / "it" if disk else None for disk in disks.values())
        if tables is None or log is None:
            return None
        place.chmod(0o711)
        for each in (tables, log):
            each.mkdir()
            each.parent.chmod(0o711)
        # Little that is kept for later, so that the next segment needs room.
        sizes = {"min_wal_size": "2MB", "max_wal_size": "8MB"}
        server = stack.enter_context(postgresql_server(log=log, **sizes))
        server.give(tables)
        with psycopg.connect(server.home().url, autocommit=True) as session:
            session.execute(f"CREATE TABLESPACE small LOCATION '{tables}'")
            session.execute("CREATE DATABASE mq TABLESPACE small")
        it = Trial(server.home("mq"), place)
        stack.callback(it.close)

        def fail(kind: str) -> None:
            disk, before = disks[kind], (it.publisher.failed, it.publisher.full)
            assert disk is not None
            with filled(disk):
                # Without room for its log the server ends, and the publisher asks on what became of its last commit.
                ends = kind == "full log"
                if ends:
                    _use_up_log(server)
                until(lambda: it.publisher.failed > before[0] + 2 or (ends and not server.is_running), "a failure")
                until(lambda: ends or it.publisher.full > before[1], "the publisher to be told why")
            until(lambda: _is_back(server), "the server")

        return _tried(it, list(islice(cycle(FULL), faults)), fail, seed)


def _use_up_log(server: PostgresqlServer) -> None:
    """Have the server go on with the next file of its log, until there is none that it could use again."""
    with suppress(psycopg.Error), psycopg.connect(server.home("mq").url, autocommit=True) as session:
        while server.is_running:
            session.execute("SELECT pg_switch_wal()")
            time.sleep(0.01)


def _is_back(server: PostgresqlServer) -> bool:
    """Whether it takes connections; it is started where it has ended."""
    if not server.is_running:
        server.start()
    with suppress(psycopg.Error), psycopg.connect(server.home().url):
        return True
    return False


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """No room is left on *disk*."""
    filler = disk / "filler"
    with filler.open("wb") as file:
        while (room := os.statvfs(disk)).f_bavail:
            with suppress(OSError):  # others want it too
                os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size + room.f_bavail * room.f_bsize)
    try:
        yield
    finally:
        filler.unlink()


def _tried(it: Trial, kinds: Sequence[str], fail: Callable[[str], None], seed: int) -> Figures:
    began, chance, took = time.monotonic(), random.Random(seed), defaultdict[str, list[float]](list)
    it.wait_for_active()
    it.publisher.start()
    it.programs.start()
    it.wait_for_delivery()
    for kind in kinds:
        time.sleep(chance.uniform(0.05, 0.5))
        begun = time.monotonic()
        fail(kind)
        it.mend()
        it.wait_for_delivery()
        took[kind].append(time.monotonic() - begun)
        try:
            it.programs.wait_for_commits(1)
        except AssertionError:
            for each in it.instances:
                print(f"process {each.pid} said: ... {each.said[-3000:]}", file=sys.stderr)
            raise
        print(f"{kind}: {took[kind][-1]:.1f} s", file=sys.stderr, flush=True)
    came, published, left = it.came(), it.publisher.published, it.programs.left(it.home)
    return Figures(
        faults=dict(Counter(kinds)),
        seconds_to_delivery={kind: median_and_longest(each) for kind, each in took.items()},
        published=published,
        failed_units=it.publisher.failed,
        unknown_units=it.publisher.unknown,
        committed=len(it.programs.committed),
        unanswered=len(it.programs.doubtful),
        ended=it.ended,
        lost=len(set(range(1, published + 1)) - set(came)) + left.lost,
        twice=len(came) - len(set(came)) + left.twice + left.strange,
        out_of_order=sum(later < earlier for earlier, later in pairwise(came)),
        seconds=round(time.monotonic() - began, 1),
    )


def _together(first: Figures, second: Figures) -> Figures:
    """Of both, which have no kind in common."""
    both = zip(asdict(first).items(), asdict(second).values(), strict=True)
    return Figures(**{name: one | two if isinstance(one, dict) else round(one + two, 1) for (name, one), two in both})


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was seen; 1 where a message was lost, doubled or out of order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", type=int, nargs="?", default=450)
    parser.add_argument("--promotions", type=int, default=50)
    parser.add_argument("--full", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    with ExitStack() as stack:
        one, two, three = (Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(3))
        os.environ["XDG_STATE_HOME"] = str(one)
        with postgresql_server() as server:
            seen = trial(server, one, asked.faults, asked.seed)
        print(json.dumps(asdict(seen)), file=sys.stderr, flush=True)
        if asked.promotions:
            os.environ["XDG_STATE_HOME"] = str(two)
            seen = _together(seen, replica_trial(two, asked.promotions, asked.seed))
            print(json.dumps(asdict(seen)), file=sys.stderr, flush=True)
        if asked.full:
            os.environ["XDG_STATE_HOME"] = str(three)
            more = full_trial(three, asked.full, asked.seed)
            seen = seen if more is None else _together(seen, more)
    print(json.dumps(asdict(seen)))
    return int(bool(seen.lost or seen.twice or seen.out_of_order or seen.unknown_units))


if __name__ == "__main__":
    sys.exit(main())
