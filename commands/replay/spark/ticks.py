"""The moments at which things expire although a later message is earlier: *ticks*, for clocks that go back.

    seq   1      2      3      4      5      6
    now   10:00  10:01  10:05  10:02  10:04  10:06
                        tick

What expires expires with the first message whose moment is not before it. As long as no message after that one is
earlier, it does not matter which message that was: whichever looks for what expired comes later, and does not find it.
It matters for a message that is later than one after it, and then only if it reached the topic space. Such messages
are ticks. Of several, the control plane needs the latest one between two of its messages, and what is retained the
last one in each range that no later one exceeds.

They are looked for in the ranges in which there may be any, on queue managers where something expires.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType, TimestampType

from commands.broker.objects import CONTROL_QUEUE
from commands.broker.outcome import Arrival
from commands.broker.reading import decoded
from commands.mqsc.broker import Broker
from commands.replay.spark.prepare import Prepared, Work
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.spark.schemas import COLUMNS, arrow_schema, batches_of, columns
from commands.templates.templates import PublicationTemplates
from rfh2.errors import DecodeError

TICKS: Final = StructType(
    [
        StructField("qmgr", StringType()),
        StructField("seq", LongType()),
        StructField("now", TimestampType()),
        StructField("for_retained", BooleanType()),
    ]
)
"""for_retained: whether the tick is for what is retained; the others are for the control plane."""

_ARROW_TICKS: Final = arrow_schema(TICKS)


def ticks_of(prepared: Prepared) -> DataFrame | None:
    """The ticks, kept on disk when they are first made; None where there are none."""
    if not prepared.expiry.behind:
        return None
    return prepared.out_of_time(ticking(prepared.setting), TICKS).persist(StorageLevel.DISK_ONLY)


def ticking(setting: ReplaySetup) -> Work:
    """What a task for it does.

    The messages later than one after them and all on the control queue, in order and whole ranges, with the columns
    COLUMNS and range, in; TICKS out.
    """

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
        places: dict[tuple[str, int], _Place] = {}
        for batch in batches:
            for seq, now, qmgr, queue, user, md, body, number in columns(batch, *COLUMNS, "range"):
                place = places.get((qmgr, number))
                if place is None:
                    place = places[qmgr, number] = _Place(setting.broker(qmgr))
                if queue == CONTROL_QUEUE:
                    yield from ((qmgr, *tick, False) for tick in place.gap())
                place.look(Arrival(seq, now, queue, md, body, user))
        yield from ((qmgr, *tick) for (qmgr, _), place in places.items() for tick in place.end())

    return lambda batches: batches_of(rows(batches), _ARROW_TICKS)


_Tick = tuple[int, datetime]


class _Place:
    """The messages of one queue manager in one range. broker: what they find there makes no difference."""

    def __init__(self, broker: Broker) -> None:
        self._space = broker.space
        self._space.restore((), ())
        self._templates = PublicationTemplates(broker, effects=True, traced=True)
        self._latest: _Tick | None = None
        # Each later than all after it.
        self._unexceeded: list[_Tick] = []

    def look(self, arrival: Arrival) -> None:
        """Take one message."""
        if not self._reached(arrival):
            return
        tick = (arrival.seq, arrival.now)
        while self._unexceeded and self._unexceeded[-1][1] <= arrival.now:
            self._unexceeded.pop()
        self._unexceeded.append(tick)
        # With one of the control plane's own messages things expire there anyway.
        if arrival.queue != CONTROL_QUEUE and (self._latest is None or self._latest[1] < arrival.now):
            self._latest = tick

    def _reached(self, arrival: Arrival) -> bool:
        if arrival.queue == CONTROL_QUEUE:
            try:
                decoded(arrival.md, arrival.body)
            except DecodeError:
                return False
            return True
        outcome = self._templates.process(arrival)
        self._space.forget_retained()
        return outcome.trace is None or outcome.trace.reached

    def gap(self) -> Iterator[_Tick]:
        """The tick for the control plane since the last time, if there is one."""
        if self._latest is not None:
            yield self._latest
        self._latest = None

    def end(self) -> Iterator[tuple[int, datetime, bool]]:
        """What is left."""
        yield from ((*tick, False) for tick in self.gap())
        yield from ((*tick, True) for tick in self._unexceeded)
