"""A fault without which clients would wait for ever ends the listener, and their connections with it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from commands.listener import conversation
from commands.listener.worker import Worker
from commands.qmgr.mqi.calls import Program
from rfh2.channel.segments import SegmentType
from rfh2.errors import StoreError
from rfh2.mqi_constants import MQGMO_WAIT, MQOO_INPUT_SHARED, MQOO_OUTPUT
from tests.commands.listener.conftest import listener_at
from tests.commands.listener.mqi_client import MqiClient
from tests.commands.listener.test_limits import is_ended


def fault(*_: Any) -> Any:
    raise RuntimeError("a fault of the test")


def away_and_then_a_fault() -> Callable[..., Any]:
    away = iter((StoreError("the database is away"),))

    def disconnect(*_: Any) -> Any:
        raise next(away, RuntimeError("a fault of the test"))

    return disconnect


@pytest.mark.parametrize(
    ("broken", "name", "by", "call"),
    [
        (Worker, "_gather", fault, SegmentType.MQCMIT),
        (Worker, "_look_around", fault, SegmentType.MQCMIT),
        (Program, "disconnect", away_and_then_a_fault(), SegmentType.MQDISC),
        (Program, "disconnect", fault, SegmentType.MQDISC),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_it_ends(
    home: Path, monkeypatch: pytest.MonkeyPatch, broken: type, name: str, by: Callable[..., Any], call: SegmentType
) -> None:
    monkeypatch.setattr(conversation, "_ENDED_AGAIN_S", 0.0)

    def break_it() -> None:
        with listener_at(home, quiesce_s=600) as port, MqiClient(port) as waits, MqiClient(port) as calls:
            assert (waits.connect(), calls.connect()) == (0, 0)
            waits.request_get(waits.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT), MQGMO_WAIT, wait_ms=-1)
            monkeypatch.setattr(broken, name, by)
            with suppress(OSError):
                calls.request(call)
            assert is_ended(waits.socket)
            assert is_ended(calls.socket)

    with pytest.raises(RuntimeError, match="a fault of the test"):
        break_it()
