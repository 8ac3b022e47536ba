"""The end of the listener: programs that asked for it are told, others may go on for a while, then all are ended.

Rows of docs/conformance.md: LSN-24.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commands.qmgr.store import QueueManagerStore
from rfh2.channel.segments import CLOSE, ERROR, SegmentType
from rfh2.mqi_constants import (
    MQGMO_FAIL_IF_QUIESCING,
    MQGMO_SYNCPOINT,
    MQOO_INPUT_SHARED,
    MQOO_OUTPUT,
    MQPMO_SYNCPOINT,
)
from tests.commands.listener.conftest import listener_at
from tests.commands.listener.mqi_client import MqiClient

IN, OUT = MQOO_INPUT_SHARED, MQOO_OUTPUT
QUIESCING, TERMINATING = 2161, 5
WAIT = 60_000


@contextmanager
def ending(home: Path, quiesce_s: float, *clients: str) -> Iterator[tuple[list[MqiClient], threading.Event]]:
    """Connected programs; when the event is set, the listener is asked to end."""
    begin, listener = threading.Event(), listener_at(home, quiesce_s=quiesce_s)
    port = listener.__enter__()

    def end() -> None:
        begin.wait()
        listener.__exit__(None, None, None)

    thread = threading.Thread(target=end)
    thread.start()
    programs = [MqiClient(port) for _ in clients]
    try:
        for program, user in zip(programs, clients, strict=True):
            assert program.connect(user) == 0
        yield programs, begin
    finally:
        begin.set()
        for program in programs:
            program.close()
        thread.join()


@pytest.mark.rule("LSN-24")
def test_a_wait_that_may_fail_ends_with_2161_and_the_program_ends_in_order(home: Path) -> None:
    with ending(home, 60, "alice") as ((program,), begin):
        handle = program.opened("Q", IN | OUT)
        threading.Timer(0.2, begin.set).start()
        assert program.get(handle, MQGMO_FAIL_IF_QUIESCING, wait_ms=WAIT).reason == QUIESCING
        assert program.put(handle, b"last", MQPMO_SYNCPOINT | MQGMO_FAIL_IF_QUIESCING)[0] == QUIESCING
        assert program.open("Q", IN | MQGMO_FAIL_IF_QUIESCING).reason == QUIESCING
        assert program.put(handle, b"last", MQPMO_SYNCPOINT)[0] == 0
        assert (program.commit(), program.disconnect()) == (0, 0)
    with QueueManagerStore.open(home, "QM1") as store:
        assert [message.body for message in store.browse("Q")] == [b"last"]


@pytest.mark.rule("LSN-24")
@pytest.mark.parametrize("waits", [True, False])
def test_what_goes_on_is_ended_with_a_status_and_backed_out(home: Path, waits: bool) -> None:
    with ending(home, 0.3, "alice") as ((program,), begin):
        handle = program.opened("Q", IN | OUT)
        program.put(handle, b"committed")
        assert program.get(handle, MQGMO_SYNCPOINT).reason == 0
        if waits:
            program.request_get(handle, wait_ms=WAIT)
        begin.set()
        received = program.receive()
        assert received is not None
        header, body = received
        assert (header.kind, header.flags) == (SegmentType.STATUS, ERROR | CLOSE)
        assert int.from_bytes(body[4:8], header.order) == TERMINATING
        assert program.receive() is None
    with QueueManagerStore.open(home, "QM1") as store:
        assert [message.body for message in store.browse("Q")] == [b"committed"]
        assert store.end_lost_connections() == 0
