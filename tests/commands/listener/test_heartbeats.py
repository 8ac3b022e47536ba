"""Heartbeats: when a quiet client is asked whether it is there, and what becomes of one that does not answer.

Rows of docs/conformance.md: LSN-23.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.qmgr.store import QueueManagerStore
from rfh2.channel.segments import CONFIRM, WHOLE, Beat, Pulse, SegmentHeader, SegmentType
from rfh2.mqi_constants import MQGMO_SYNCPOINT, MQOO_INPUT_SHARED, MQOO_OUTPUT, MQPMO_SYNCPOINT
from tests.commands.listener.conftest import listener_at
from tests.commands.listener.mqi_client import MqiClient
from tests.waiting import PATIENCE_MS, until


@pytest.mark.rule("LSN-23")
@pytest.mark.parametrize(
    ("interval_s", "steps"),
    [
        # (seconds, whether the client reads) -> what is due, and when to look again; "heard" in between
        (300, [(0, True, Beat.NOTHING, 300), (300, True, Beat.ASK, 360), (360, True, Beat.GONE, 360)]),
        (10, [(10, True, Beat.ASK, 20), (19, True, Beat.NOTHING, 20), (20, True, Beat.GONE, 20)]),
        (10, [(10, True, Beat.ASK, 20), "heard at 15", (20, True, Beat.NOTHING, 25), (25, True, Beat.ASK, 35)]),
        (10, [(10, False, Beat.NOTHING, 15), (15, False, Beat.NOTHING, 20), (20, True, Beat.ASK, 30)]),
        (10, ["heard at 7", (10, True, Beat.NOTHING, 17), (17, True, Beat.ASK, 27)]),
    ],
    ids=["at-most-a-minute-more", "as-long-again", "an-answer-begins-anew", "one-that-does-not-read", "not-quiet"],
)
def test_what_is_due(interval_s: float, steps: list[tuple[float, bool, Beat, float] | str]) -> None:
    pulse = Pulse(interval_s, 0)
    for step in steps:
        if isinstance(step, str):
            pulse.hear(float(step.rpartition(" ")[2]))
        else:
            now_s, reads, beat, next_s = step
            assert pulse.beat(now_s, reads) == (beat, next_s)


@pytest.mark.usefixtures("patient")
def test_a_client_that_waits_for_a_message_is_asked_and_its_wait_goes_on(home: Path) -> None:
    with listener_at(home, heartbeat_s=1) as port, MqiClient(port, heartbeat_s=1) as client:
        assert client.connect() == 0
        assert client.get(client.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT), wait_ms=1_600).reason == 2033
        assert client.heartbeats >= 1


def test_a_client_that_shares_its_connection_is_asked_at_any_time(home: Path) -> None:
    with listener_at(home, heartbeat_s=1) as port, MqiClient(port, heartbeat_s=1, sharing=10) as client:
        client.conversation = 1
        assert client.connect() == 0
        received = client.receive()
        assert received is not None
        header, payload = received
        assert (header.kind, header.flags, header.of_connection) == (SegmentType.HEARTBEAT, CONFIRM | WHOLE, True)
        assert payload == b""


@pytest.mark.parametrize("shared", [True, False])
def test_a_clients_heartbeat_is_answered(port: int, shared: bool) -> None:
    with MqiClient(port, sharing=10 if shared else 0) as client:
        client.send(SegmentHeader(SegmentType.HEARTBEAT, CONFIRM | WHOLE, of_connection=shared).write(b""))
        received = client.receive()
        assert received is not None
        header, payload = received
        assert (header.kind, header.flags, header.of_connection) == (SegmentType.HEARTBEAT, WHOLE, shared)
        assert payload == b""


@pytest.mark.rule("LSN-23")
def test_a_client_that_does_not_answer_is_ended_and_its_unit_of_work_backed_out(home: Path) -> None:
    with listener_at(home, heartbeat_s=1) as port:
        other = MqiClient(port)
        assert other.connect("bob") == 0
        other.put(other.opened("Q", MQOO_OUTPUT), b"got by nobody")
        gone = MqiClient(port, heartbeat_s=1)
        assert gone.connect() == 0
        handle = gone.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT)
        dynamic = gone.opened_name(gone.open("SYSTEM.DEFAULT.MODEL.QUEUE", MQOO_INPUT_SHARED))
        assert gone.get(handle, MQGMO_SYNCPOINT).reason == 0
        gone.put(handle, b"uncommitted", MQPMO_SYNCPOINT)
        gone.request_get(gone.opened("EMPTY", MQOO_INPUT_SHARED | MQOO_OUTPUT), wait_ms=-1)

        back = other.get(other.opened("Q", MQOO_INPUT_SHARED), wait_ms=PATIENCE_MS)
        assert (back.body, back.mqmd.backout_count) == (b"got by nobody", 1)
        assert other.get(other.opened("Q", MQOO_INPUT_SHARED)).reason == 2033
        with QueueManagerStore.open(home, "QM1") as store:
            until(lambda: store.find_queue(dynamic) is None)
        other.close()
        gone.close()
