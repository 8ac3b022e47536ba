"""What Spark does between the tasks of a replay, by hand: so many captures can be tried without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from commands.broker.objects import CONTROL_QUEUE
from commands.broker.times import to_microseconds
from commands.replay.arrivals import Arrivals
from commands.replay.spark.capture_scan import _out_of_time
from commands.replay.spark.control import (
    KEY_FIELDS,
    NOTES,
    ControlPlaneSetup,
    ControlTasks,
    Keys,
    deal_out,
    keyed,
    notes_of,
    with_task,
)
from commands.replay.spark.prepare import TICK, Clock, FirstPassRole, Roles, expiry_of
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.schemas import COLUMNS, batch_of, columns
from commands.replay.spark.twopass import TICKS, ticking
from rfh2.captured import CapturedMessage

Row = tuple[Any, ...]
SEQ, NOW, QMGR, QUEUE, USER, MD, BODY = range(len(COLUMNS))
ROWS: Final = pa.schema(
    [
        ("seq", pa.int64()),
        ("now", pa.timestamp("us", tz="UTC")),
        *((name, pa.string()) for name in ("qmgr", "queue", "user")),
        *((name, pa.binary()) for name in ("md", "body")),
    ]
)


def prepared_rows(capture: Iterable[CapturedMessage], *, clocks_go_back: bool = False) -> list[Row]:
    """Prepared messages. clocks_go_back: whether they may; else each shows the latest moment so far."""
    arrivals = Arrivals()
    latest: dict[str, datetime] = {}
    rows = []
    for message in capture:
        qmgr, arrival = arrivals.of(message)
        latest[qmgr] = arrival.now if clocks_go_back else max(arrival.now, latest.get(qmgr, arrival.now))
        rows.append((arrival.seq, latest[qmgr], qmgr, arrival.queue, arrival.user, arrival.md, arrival.body))
    return rows


def microseconds(row: Row) -> int:
    """The moment of a message."""
    return to_microseconds(row[NOW])


def by_role(rows: Iterable[Row], setting: ReplaySetup) -> dict[FirstPassRole, list[Row]]:
    """The rows that a broker reads, each role in order."""
    roles = Roles()
    found: dict[FirstPassRole, list[Row]] = {role: [] for role in FirstPassRole}
    for row in sorted(rows, key=lambda row: (row[QMGR], row[SEQ])):
        if row[QUEUE] == CONTROL_QUEUE or row[QUEUE] in setting.stream_queues:
            found[roles.of(row[QUEUE], row[MD], row[BODY])].append(row)
    return found


def run(work: Any, rows: list[Row], schema: pa.Schema, names: Iterable[str]) -> list[Row]:
    """What a task makes of *rows*: these columns of it."""
    given_batches = [batch_of(rows, schema)] if rows else []
    return [row for batch in work(given_batches) for row in columns(batch, *names)]


def plane_of(rows: Iterable[Row], setting: ReplaySetup, starts: tuple[int, ...]) -> ControlPlaneSetup:
    """What a task of the control plane knows of *rows*, with the clocks."""
    clocks: dict[str, dict[int, Clock]] = {}
    for row in rows:
        number, at = range_of(row, starts), microseconds(row)
        by_range = clocks.setdefault(row[QMGR], {})
        known = by_range.get(number, Clock(at, at, at, 0))
        by_range[number] = Clock(min(known.least, at), max(known.most, at), at, known.back + (at < known.most))
    return ControlPlaneSetup(setting, starts, expiry_of(clocks, clocks, len(starts) - 1))


def range_of(row: Row, starts: tuple[int, ...]) -> int:
    """The range of a message."""
    return max(at for at, start in enumerate(starts[:-1]) if start <= row[SEQ])


def ticks_in(rows: Iterable[Row], plane: ControlPlaneSetup) -> list[Row]:
    """TICKS, of *rows* in order."""
    found: list[Row] = []
    schema = ROWS.append(pa.field("range", pa.int32()))
    for number in range(len(plane.starts) - 1):
        behind = {qmgr: by_range[number] for qmgr, by_range in plane.expiry.behind.items() if number in by_range}
        theirs = [(*row, number) for row in rows if range_of(row, plane.starts) == number]
        if behind and theirs:
            (wanted,) = _out_of_time([batch_of(theirs, schema)], behind)
            left = [row for row, is_wanted in zip(theirs, wanted.to_pylist(), strict=True) if is_wanted]
            found += run(ticking(plane.setting), left, schema, TICKS.names)
    return found


def control_tasks(control: list[Row], setting: ReplaySetup, count: int) -> tuple[ControlTasks, list[int]]:
    """Control messages, some at least, dealt out: to which task each goes."""
    (with_keys,) = keyed([batch_of(control, ROWS)])
    names = [field.name for field in KEY_FIELDS]
    rows = columns(with_keys, "qmgr", *names)
    counted = Counter((qmgr, Keys(key, tuple(of_names), *more)) for qmgr, key, of_names, *more in rows)
    dealt = deal_out(counted, lambda qmgr: setting.broker(qmgr).space.subscriptions(), count)
    (placed,) = with_task(dealt)([with_keys])
    return dealt, placed.column("task").to_pylist()


def notes_in_tasks(control: list[Row], plane: ControlPlaneSetup, count: int, ticks: Iterable[Row] = ()) -> list[Row]:
    """The notes of the control plane in so many tasks. ticks: TICKS."""
    through = [(seq, now, qmgr, TICK, None, None, b"") for qmgr, seq, now, for_retained in ticks if not for_retained]
    if count == 1 or not control:
        return run(notes_of(plane), sorted([*control, *through], key=_place), ROWS, NOTES.names)
    dealt, tasks = control_tasks(control, plane.setting, count)
    work = notes_of(plane, dealt)
    schema = ROWS.append(pa.field("task", pa.int32()))
    notes = []
    for number in range(count):
        theirs = [(*row, task) for row, task in zip(control, tasks, strict=True) if task == number]
        theirs += [(*row, number) for row in through]
        notes += run(work, sorted(theirs, key=_place), schema, NOTES.names)
    return notes


def _place(row: Row) -> tuple[str, int, str]:
    return row[QMGR], row[SEQ], row[QUEUE]
