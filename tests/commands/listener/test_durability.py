"""Which calls wait for the disk: those whose effect a power failure must not undo.

Rows of docs/conformance.md: LSN-27.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.qmgr.store import Durability, QueueManagerStore, sqlite_database
from commands.qmgr.store.sqlite_database import WriteAheadLog
from rfh2.channel.layouts import MQPMO
from rfh2.channel.segments import TMSUCCESS, SegmentType, Xid
from rfh2.mqi_constants import (
    MQGMO_BROWSE_FIRST,
    MQGMO_SYNCPOINT,
    MQOO_BROWSE,
    MQOO_INPUT_SHARED,
    MQOO_INQUIRE,
    MQOO_OUTPUT,
    MQPMO_SYNCPOINT,
)
from rfh2.mqmd import Mqmd
from tests.commands.listener.conftest import listener_at
from tests.commands.listener.mqi_client import MqiClient
from tests.waiting import PATIENCE_S

FULL, NORMAL = 2, 1
MAX_DEPTH = 15
BRANCH = Xid(1, b"a", b"b").write("little")


@pytest.mark.parametrize(("durability", "lasting"), [(Durability.FULL, FULL), (Durability.NORMAL, NORMAL)])
def test_a_commit_that_need_not_last_does_not_wait_and_the_next_one_does(
    tmp_path: Path, durability: Durability, lasting: int
) -> None:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1"), durability=durability) as store:

        def synchronous_in(unit_lasts: bool) -> int:
            with store.unit_of_work(unit_lasts) as unit:
                unit.put("Q", Mqmd().encode(), b"")
            (level,) = store.database.connection.execute("PRAGMA synchronous").fetchone()
            return int(level)

        assert [synchronous_in(lasts) for lasts in (True, False, False, True)] == [lasting, NORMAL, NORMAL, lasting]
        store.connect().disconnect()
        (level,) = store.database.connection.execute("PRAGMA synchronous").fetchone()
        assert level == lasting


Program = Callable[[MqiClient, int], object]
CALLS: list[tuple[str, Program, bool]] = [
    ("persistent put", lambda client, q: client.put(q, b"", persistence=1), True),
    ("put as the queue says", lambda client, q: client.put(q, b"", persistence=2), True),
    ("put that is not persistent", lambda client, q: client.put(q, b"", persistence=0), False),
    ("put in syncpoint", lambda client, q: client.put(q, b"", MQPMO_SYNCPOINT, persistence=1), False),
    ("get", lambda client, q: client.get(q), True),
    ("get in syncpoint", lambda client, q: client.get(q, MQGMO_SYNCPOINT), False),
    ("browse", lambda client, q: client.get(q, MQGMO_BROWSE_FIRST), False),
    ("inquire", lambda client, q: client.inquire(q, MAX_DEPTH, integers=1), False),
    ("commit", lambda client, q: client.commit(), True),
    ("backout", lambda client, q: client.backout(), True),
    ("start of a branch", lambda client, q: client.call(SegmentType.XA_START, BRANCH), False),
    ("its end", lambda client, q: client.call(SegmentType.XA_END, BRANCH, flags=TMSUCCESS), False),
    ("prepare", lambda client, q: client.call(SegmentType.XA_PREPARE, BRANCH), True),
]


@pytest.mark.rule("LSN-27")
def test_what_need_not_last(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []
    sync = WriteAheadLog.sync

    def noted(log: WriteAheadLog) -> None:
        sync(log)
        synced.append(True)

    monkeypatch.setattr(WriteAheadLog, "sync", noted)
    found: list[tuple[str, bool]] = []
    with listener_at(home) as port, MqiClient(port) as client:
        client.connect()
        handle = client.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT | MQOO_BROWSE | MQOO_INQUIRE)
        for name, call, _ in CALLS:
            synced.clear()
            call(client, handle)
            found.append((name, any(synced)))
    assert found == [(name, lasts) for name, _, lasts in CALLS]


@pytest.mark.rule("LSN-27")
def test_one_wait_for_the_disk_serves_all_and_nobody_is_answered_before_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs = 0
    turns = {1: threading.Event(), 2: threading.Event()}

    def wait(_: WriteAheadLog) -> None:
        nonlocal syncs
        syncs += 1
        assert turns[syncs].wait(PATIENCE_S)

    with listener_at(home) as port, ExitStack() as stack:
        clients = [stack.enter_context(MqiClient(port)) for _ in range(4)]
        for client in clients:
            client.connect()
        handles = [client.opened("Q", MQOO_OUTPUT | MQOO_INPUT_SHARED) for client in clients]
        monkeypatch.setattr(WriteAheadLog, "sync", wait)
        pmo = bytes(clients[0].structure(MQPMO[2], "PMO ", 2))
        for client, handle in zip(clients[:3], handles, strict=False):
            client.request(SegmentType.MQPUT, client.md(persistence=1) + pmo + client.long(0), handle)
            # The first message is there for a program that need not wait; those behind it wait for the next turn.
            while client is clients[0] and clients[3].get(handles[3], MQGMO_SYNCPOINT).reason:
                pass
        assert clients[3].get(handles[3], MQGMO_SYNCPOINT).reason == 2033
        for client in clients[:3]:
            client.socket.settimeout(0)
            with pytest.raises(BlockingIOError):
                client.receive()
            client.socket.settimeout(PATIENCE_S)
        turns[1].set()
        assert clients[0].reply(SegmentType.MQPUT).reason == 0
        turns[2].set()
        assert [client.reply(SegmentType.MQPUT).reason for client in clients[1:3]] == [0, 0]
        assert syncs == 2


@pytest.mark.rule("LSN-27")
def test_after_a_failed_wait_for_the_disk_nothing_is_promised(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may call written the next time what it could not write: the log is written anew, before SQLite writes
    it back into the database. What need not last goes on.
    """
    failed: list[int] = []
    anew: list[str] = []

    def fail_once(_: int) -> None:
        if not failed:
            failed.append(1)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with listener_at(home) as port, MqiClient(port) as client:
        client.connect()
        q = client.opened("Q", MQOO_OUTPUT | MQOO_INPUT_SHARED)
        assert client.put(q, b"before", persistence=1)[0] == 0
        monkeypatch.setattr(sqlite_database.os, "fdatasync", fail_once)
        monkeypatch.setattr(
            sqlite_database.os, "fsync", lambda fd: anew.append(Path(f"/proc/self/fd/{fd}").readlink().name)
        )
        refused = [client.put(q, data, persistence=1)[0] for data in (b"lost, perhaps", b"after")]
        assert 0 not in refused
        assert failed == [1]
        assert anew == ["qmgr.sqlite3-wal"]
        assert client.put(q, b"not persistent", persistence=0)[0] == 0


def test_the_log_is_written_into_the_database_beside_who_works_and_begins_anew(tmp_path: Path) -> None:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        log = store.database.take_log()
        assert log is not None
        sizes = []
        for _ in range(3):
            for n in range(40):
                with store.unit_of_work(False) as unit:
                    unit.put("Q", Mqmd().encode(), bytes(2_000))
                    if n == 20:
                        log.checkpoint()
                    for _ in range(3):
                        unit.put("Q", Mqmd().encode(), bytes(2_000))
            log.checkpoint()
            sizes.append(Path(f"{store.database.path}-wal").stat().st_size)
        assert max(sizes) < 1.5 * sizes[0]
        assert store.depth("Q") == 3 * 40 * 4
