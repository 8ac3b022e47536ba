"""What the log says of messages that their queue refused: at once, then a sum a minute, and the rest at the end."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commands.broker.objects import LocalQueue, QueueManager
from commands.broker.puts import PutKind
from commands.qmgr.delivery import Refusal, RefusalLog
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from tests.commands.monitoring.traffic import CONTROL, STREAM, publish, put, register

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FULL = Refusal(PutKind.PUBLICATION, "BOARD", 2053)
ONE = "queue BOARD refused 1 publication with reason 2053: put on the dead-letter queue"


def _many(count: int) -> str:
    return ONE.replace("1 publication", f"{count} publications")


# Seconds, and what was refused then; the lines so far.
COURSE: list[tuple[str, list[tuple[float, dict[Refusal, int] | None]], list[str]]] = [
    ("once", [(0, {FULL: 1})], [ONE]),
    ("again within a minute", [(0, {FULL: 1}), (1, {FULL: 2}), (59, {FULL: 3})], [ONE]),
    ("the sum after a minute", [(0, {FULL: 1}), (1, {FULL: 2}), (60, {FULL: 3})], [ONE, _many(5)]),
    ("the sum where nothing more comes", [(0, {FULL: 1}), (1, {FULL: 2}), (61, None)], [ONE, _many(2)]),
    ("at once after a pause", [(0, {FULL: 1}), (61, None), (62, {FULL: 1})], [ONE, ONE]),
    ("the clock was set back", [(0, {FULL: 1}), (-900, {FULL: 2})], [ONE, _many(2)]),
]


@pytest.mark.parametrize(("course", "lines"), [row[1:] for row in COURSE], ids=[row[0] for row in COURSE])
def test_the_course_of_refusals(
    caplog: pytest.LogCaptureFixture, course: list[tuple[float, dict[Refusal, int] | None]], lines: list[str]
) -> None:
    log = RefusalLog()
    for seconds, refusals in course:
        now = NOW + timedelta(seconds=seconds)
        if refusals is None:
            log.flush(now)
        else:
            log.committed(refusals, now)
    assert [record.getMessage() for record in caplog.records] == lines


def test_the_rest_is_said_at_the_end_and_the_memory_has_a_bound(caplog: pytest.LogCaptureFixture) -> None:
    log = RefusalLog()
    for n in range(1500):
        log.committed({Refusal(PutKind.PUBLICATION, f"Q{n}", 2053): 1}, NOW)
    assert len(log._known) <= 1000
    log.committed({FULL: 1}, NOW)
    log.committed({FULL: 4}, NOW)
    log.end()
    assert [record.getMessage() for record in caplog.records][-1] == _many(4)


@pytest.mark.parametrize(("like_before", "count"), [(False, 1), (True, 30)])
def test_a_processor_names_the_queue_the_reason_and_ibms_numbers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, like_before: bool, count: int
) -> None:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("FULL", max_depth=0))
            unit.save_definition(LocalQueue("ANSWERS", max_depth=0))
            register(unit, "FULL", "a")
            for _ in range(count):
                publish(unit, "a")
            put(unit, CONTROL, "<Command>DeregSub</Command><Topic>b</Topic>", msg_type=1, reply_to_q="ANSWERS")
            put(unit, STREAM, "<Command>RegSub</Command><Topic>b</Topic>")
        caplog.set_level(logging.INFO)
        Processor(store, lambda: NOW).drain()
    said = {record.__dict__["numbers"]: record.__dict__ for record in caplog.records if "numbers" in record.__dict__}
    assert set(said) == {(5882,), (5864, 5882), (5857,), (5856, 5882)}
    assert [said[5882,][key] for key in ("queue", "reason", "count")] == ["FULL", 2053, count]
    assert said[5864, 5882]["queue"] == "ANSWERS"
