"""The clock of the machine is set back, or was far ahead: Expiry stays an MQLONG wherever it is reckoned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.broker.times import tenths_until
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from rfh2 import Folder, Mqmd, Rfh2

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
LONGEST = 2**31 - 1
STEPS = [timedelta(seconds=-0.1), timedelta(days=-1), datetime(1970, 1, 1, tzinfo=UTC) - NOW]


def _psc(text: str) -> bytes:
    return Rfh2((Folder.of(f"<psc>{text}</psc>"),), format="MQSTR").encode() + b"data"


def _md(expiry: int) -> bytes:
    return Mqmd(format="MQHRF2", persistence=1, user_identifier="app", expiry=expiry).encode()


@pytest.mark.parametrize("step", STEPS, ids=str)
@pytest.mark.parametrize("expiry", [1, 600, LONGEST])
def test_get_browse_run_and_what_run_forwards(tmp_path: Path, step: timedelta, expiry: int) -> None:
    now = NOW
    with QueueManagerStore.create(tmp_path, QueueManager("QM1"), clock=lambda: now) as store:
        with store.unit_of_work() as unit:
            subscribe = "<Command>RegSub</Command><Topic>a</Topic><QName>S</QName>"
            unit.put(CONTROL, _md(expiry), _psc(subscribe), time=now)
            publish = "<Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a</Topic>"
            unit.put(STREAM, _md(expiry), _psc(publish), time=now)
            unit.put("OTHER", _md(expiry), b"data", time=now)
        now += step
        assert [Mqmd.decode(message.md).expiry for message in store.browse("OTHER")] == [expiry]
        with store.unit_of_work() as unit:
            got = unit.get("OTHER")
            assert got is not None
            unit.backout()
        assert Mqmd.decode(got.md).expiry == expiry
        assert Processor(store, lambda: now).drain() == 2
        now += step / 2
        late = "<Command>RegSub</Command><Topic>a</Topic><QName>LATE</QName>"
        with store.unit_of_work() as unit:
            unit.put(CONTROL, _md(LONGEST), _psc(late), time=now)
        assert Processor(store, lambda: now).drain() == 1
        for queue in ("S", "LATE"):
            assert [Mqmd.decode(message.md).expiry for message in store.browse(queue)] == [expiry]


def test_a_message_put_while_the_clock_was_in_the_last_year_there_is(tmp_path: Path) -> None:
    now = datetime(9999, 12, 31, tzinfo=UTC)
    with QueueManagerStore.create(tmp_path, QueueManager("QM1"), clock=lambda: now) as store:
        with store.unit_of_work() as unit:
            unit.put("Q", _md(LONGEST), b"data")
        now = NOW
        assert [Mqmd.decode(message.md).expiry for message in store.browse("Q")] == [LONGEST]


@pytest.mark.parametrize(
    ("left", "tenths"),
    [(None, None), (timedelta(days=-1), 1), (timedelta(seconds=1), 10), (timedelta(days=40_000), LONGEST)],
)
def test_what_is_left_of_a_subscription(left: timedelta | None, tenths: int | None) -> None:
    assert tenths_until(None if left is None else NOW + left, NOW) == tenths
