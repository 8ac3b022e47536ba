"""A program that waits for a message gets it in the unit of work that puts it.

Rows of docs/conformance.md: LSN-27.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from commands.broker.objects import AliasQueue
from commands.client import calls
from commands.listener.conversation import Conversation
from commands.qmgr.mqi.calls import Program
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.sqlite_database import SqliteDatabase, WriteAheadLog
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2.channel.segments import SegmentType
from rfh2.errors import StoreError
from rfh2.mqi_constants import (
    MQGMO_SYNCPOINT,
    MQGMO_WAIT,
    MQMO_MATCH_CORREL_ID,
    MQOO_INPUT_SHARED,
    MQOO_OUTPUT,
    MQPMO_SYNCPOINT,
    MQRO_COD,
)
from tests.commands.listener.conftest import listener_at
from tests.commands.listener.mqi_client import MqiClient
from tests.waiting import PATIENCE_S

NONE_YET = 2033
ID, OTHER = b"a" * 24, b"b" * 24


class Waiters:
    """Programs that wait for messages of a listener."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack) -> None:
        self._stands = threading.Semaphore(0)
        wait = Conversation._wait

        async def noted(conversation: Conversation, *of: Any) -> None:
            self._stands.release()
            await wait(conversation, *of)

        monkeypatch.setattr(Conversation, "_wait", noted)
        self._stack, self._port = stack, stack.enter_context(listener_at(home))

    def program(self) -> MqiClient:
        client = self._stack.enter_context(MqiClient(self._port))
        assert client.connect() == 0
        return client

    def waiting(self, queue: str, options: int = 0, **matched: Any) -> MqiClient:
        client = self.program()
        match = MQMO_MATCH_CORREL_ID if matched else 0
        client.request_get(
            client.opened(queue, MQOO_INPUT_SHARED), MQGMO_WAIT | options, wait_ms=-1, match=match, **matched
        )
        assert self._stands.acquire(timeout=PATIENCE_S)
        return client


@pytest.fixture
def waiters(home: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        for queue in ("Q", "R"):
            unit.ensure_queue(queue)
    with ExitStack() as stack:
        yield Waiters(home, monkeypatch, stack)


Put = Callable[[MqiClient, int], object]
VOLATILE: Put = lambda client, q: client.put(q, b"m", persistence=0, correl_id=ID)  # noqa: E731
LASTING: Put = lambda client, q: client.put(q, b"m", persistence=1, correl_id=ID)  # noqa: E731
COMMITTED: Put = lambda client, q: (client.put(q, b"m", MQPMO_SYNCPOINT, persistence=0), client.commit())  # noqa: E731


@pytest.mark.rule("LSN-27")
@pytest.mark.parametrize(
    ("put", "asked", "syncs"),
    [
        pytest.param(VOLATILE, {}, 0, id="after a power failure there is no message, got or not"),
        pytest.param(VOLATILE, {"options": MQGMO_SYNCPOINT}, 0, id="not persistent, got in syncpoint"),
        pytest.param(VOLATILE, {"correl_id": ID}, 0, id="by its CorrelId"),
        pytest.param(LASTING, {}, 1, id="one wait for the disk for both"),
        pytest.param(LASTING, {"correl_id": ID}, 1, id="one for both, by its CorrelId"),
        pytest.param(COMMITTED, {}, 1, id="MQCMIT"),
    ],
)
def test_one_wait_for_the_disk_or_none(
    waiters: Waiters, monkeypatch: pytest.MonkeyPatch, put: Put, asked: dict[str, Any], syncs: int
) -> None:
    waits, puts = waiters.waiting("Q", **asked), waiters.program()
    q, synced, sync = puts.opened("Q", MQOO_OUTPUT), 0, WriteAheadLog.sync

    def counted(log: WriteAheadLog) -> None:
        nonlocal synced
        sync(log)
        synced += 1

    monkeypatch.setattr(WriteAheadLog, "sync", counted)
    put(puts, q)
    assert waits.reply(SegmentType.MQGET).reason == 0
    assert synced == syncs


def test_each_message_is_one_programs_and_the_others_wait_on(waiters: Waiters) -> None:
    waiting, puts = [waiters.waiting("Q") for _ in range(3)], waiters.program()
    q = puts.opened("Q", MQOO_OUTPUT | MQOO_INPUT_SHARED)
    for client in waiting:
        puts.put(q, b"")
        assert client.reply(SegmentType.MQGET).reason == 0
    assert puts.get(q).reason == NONE_YET


def test_who_chooses_gets_what_it_chooses_and_the_older_first(waiters: Waiters) -> None:
    chooses, puts = waiters.waiting("Q", correl_id=ID), waiters.program()
    q = puts.opened("Q", MQOO_OUTPUT | MQOO_INPUT_SHARED)
    puts.put(q, b"another's", correl_id=OTHER)
    puts.put(q, b"first", MQPMO_SYNCPOINT, correl_id=ID)
    assert puts.commit() == 0
    puts.put(q, b"second", correl_id=ID)
    assert calls.got(chooses.reply(SegmentType.MQGET)).body == b"first"
    assert [puts.get(q).body for _ in range(2)] == [b"another's", b"second"]


def test_a_confirmation_of_delivery_reaches_who_waits_for_it(waiters: Waiters) -> None:
    confirmed, waits, puts = waiters.waiting("R"), waiters.waiting("Q"), waiters.program()
    puts.put(puts.opened("Q", MQOO_OUTPUT), b"", report=MQRO_COD, reply_to_q="R")
    assert [client.reply(SegmentType.MQGET).reason for client in (waits, confirmed)] == [0, 0]


def test_mqput1_to_an_alias_wakes_who_waits_on_its_queue(home: Path, waiters: Waiters) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        unit.save_definition(AliasQueue("A", target="Q"))
    waits, puts = waiters.waiting("Q"), waiters.program()
    assert puts.put1("A", b"") == 0
    assert waits.reply(SegmentType.MQGET).reason == 0


def _full_at_the_commit(database: SqliteDatabase) -> None:
    raise sqlite3.OperationalError("database or disk is full")


def _full_at_the_get(_: Program, unit: EmbeddedUnitOfWork, *_of: Any) -> None:
    unit.backout()
    raise StoreError("database or disk is full")


@pytest.mark.parametrize(
    ("where", "name", "failure"),
    [(SqliteDatabase, "commit", _full_at_the_commit), (Program, "get", _full_at_the_get)],
    ids=["commit", "get"],
)
def test_a_unit_of_work_that_fails_ends_no_wait(
    waiters: Waiters, monkeypatch: pytest.MonkeyPatch, where: type, name: str, failure: Callable[..., None]
) -> None:
    waiting, puts = [waiters.waiting("Q") for _ in range(2)], waiters.program()
    q, works, fails = puts.opened("Q", MQOO_OUTPUT), getattr(where, name), [True]

    def once(*of: Any) -> Any:
        return (failure if fails and fails.pop() else works)(*of)

    monkeypatch.setattr(where, name, once)
    reasons = [puts.put(q, b"")[0] for _ in range(3)]
    assert [reason == 0 for reason in reasons] == [False, True, True]
    assert [client.reply(SegmentType.MQGET).reason for client in waiting] == [0, 0]
