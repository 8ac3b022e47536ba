"""The messages that a replay keeps the results of, where a person selects some: a column of the messages.

All messages are replayed. Up to the last one that a limit allows, the column says of which the results are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import (
    Column,
    DataFrame,
    functions as F,  # noqa: N812 - Spark's own custom
)
from pyspark.sql.types import BooleanType

from commands.explain.selection import MessageSelection
from commands.replay.spark.rows import EPOCH, columns, message_of
from commands.replay.spark.schemas import CAPTURED

CHOSEN: Final = "chosen"
"""The column; messages have it where not all are selected."""

Place = tuple[int, str]
"""The seq and the queue manager of a message: its place in the order of a replay."""


def chosen_column(selection: MessageSelection) -> Column:
    """CHOSEN for messages with the columns of CAPTURED, as they were captured. The limit does not count."""
    if not selection.has_conditions:
        return F.lit(True)

    def is_chosen(seq: int, micros: int | None, *others: Any) -> bool:
        time = None if micros is None else EPOCH + timedelta(microseconds=micros)
        return selection.selects(message_of(seq, time, *others))

    # As a datetime it would be in the zone of the machine.
    given = (F.unix_micros(name) if name == "time" else F.col(name) for name in CAPTURED.names)
    return F.udf(is_chosen, BooleanType(), useArrow=False)(*given)


def selected(captured: DataFrame, selection: MessageSelection) -> DataFrame:
    """The messages of *captured*, which has the columns of CAPTURED, that are selected; none that cannot be read."""
    if selection.is_all:
        return captured
    found = captured.where("body is not null").where(chosen_column(selection))
    return found if selection.limit is None else found.orderBy("seq", "qmgr").limit(selection.limit)


def chosen_of(batch: pa.RecordBatch, selection: MessageSelection) -> pa.Array:
    """The same for a batch."""
    if not selection.has_conditions:
        return pa.array([True] * batch.num_rows, pa.bool_())
    return pa.array([selection.selects(message_of(*row)) for row in columns(batch, *CAPTURED.names)], pa.bool_())


def last_place(chosen: DataFrame, limit: int) -> Place | None:
    """The place of the last message that *limit* allows; None where it allows all of them.

    chosen: the columns seq and qmgr of the messages that are selected.
    """
    first = chosen.orderBy("seq", "qmgr").limit(limit)
    count, last = first.agg(F.count("*"), F.max(F.struct("seq", "qmgr"))).collect()[0]
    return None if count < limit else (last["seq"], last["qmgr"])


def is_up_to(last: Place) -> Column:
    """Whether a message, with the columns seq and qmgr, is at this place or before it."""
    seq, qmgr = last
    return (F.col("seq") < seq) | ((F.col("seq") == seq) & (F.col("qmgr") <= qmgr))


def up_to(batches: Iterable[pa.RecordBatch], last: Place) -> Iterable[pa.RecordBatch]:
    """The messages of *batches*, which are in order, to this place."""
    for batch in batches:
        seq, qmgr = batch.column("seq"), batch.column("qmgr")
        at_last = pc.and_(pc.equal(seq, last[0]), pc.less_equal(qmgr, last[1]))
        left = batch.filter(pc.or_(pc.less(seq, last[0]), at_last))
        if left.num_rows:
            yield left
        if left.num_rows < batch.num_rows:
            return
