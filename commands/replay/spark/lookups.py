"""Who looks at what is retained, and when, in little memory: a number of four bytes for each lookup.

It decides which retained publications are kept for the lookups (``retained``). One that nobody looks at may be kept, at
the cost of some time. One that somebody looks at is never left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from pyspark.sql import (
    DataFrame,
    functions as F,  # noqa: N812 - Spark's own custom
)

from commands.broker.outcome import EPOCH
from commands.replay.spark.control import LOOKUP
from streams.index import SubscriptionIndex
from streams.subscriptions import Subscription, WildcardScheme

_BITS: Final = 32


@dataclass(frozen=True, slots=True)
class PatternLookups:
    """The lookups with one pattern. places: of those who look, ascending."""

    pattern: str
    scheme: WildcardScheme
    places: npt.NDArray[np.uint32]


@dataclass(frozen=True)
class LookupTable:
    """The lookups of all queue managers, by queue manager. least, shift: a seq less *least*, shifted, is a place."""

    least: int
    shift: int
    lookups: dict[str, list[PatternLookups]]

    def place(self, seq: int) -> int:
        """The place of a message: the later message never has the lower place."""
        return (seq - self.least) >> self.shift


def lookup_table(notes: DataFrame, starts: Sequence[int], *, clears: bool) -> LookupTable:
    """The lookups in *notes*. starts: those of ``Prepared``. clears: those of DeletePub, too."""
    least, shift = starts[0], max(0, (starts[-1] - starts[0]).bit_length() - _BITS)
    looking = notes.where(F.col("kind") == LOOKUP)
    if not clears:
        looking = looking.where("operation is null")
    place = F.shiftright(F.col("after") - F.lit(least).cast("long"), shift)
    patterns = looking.groupBy("qmgr", "text", "scheme").agg(F.sort_array(F.collect_set(place)).alias("places"))
    lookups: dict[str, list[PatternLookups]] = {}
    for batch in patterns.toArrow().to_batches():
        rows = zip(*(batch.column(name) for name in ("qmgr", "text", "scheme", "places")), strict=True)
        for qmgr, text, scheme, places in rows:
            found = PatternLookups(
                text.as_py(), WildcardScheme(scheme.as_py()), places.values.to_numpy().astype(np.uint32)
            )
            lookups.setdefault(qmgr.as_py(), []).append(found)
    return LookupTable(least, shift, lookups)


class LooksByTopic:
    """Who looks at a topic of one queue manager, and when."""

    def __init__(self, table: LookupTable, qmgr: str) -> None:
        self._table, self._lookups = table, table.lookups.get(qmgr, [])
        self._index = SubscriptionIndex()
        for number, each in enumerate(self._lookups):
            sub_id = number.to_bytes(24, "big")
            self._index.add(Subscription(sub_id, each.pattern, "", "", EPOCH, wildcard=each.scheme))

    def any_between(self, topic: str, after: int, before: int | None) -> bool:
        """Whether anybody looks at *topic* between message *after* and message *before*, or ever; maybe if it says so.

        Neither of the two looks.
        """
        first = self._table.place(after)
        last = None if before is None else self._table.place(before)
        for pattern in self._index.match(topic):
            places = self._lookups[int.from_bytes(pattern.sub_id, "big")].places
            at = int(np.searchsorted(places, first))
            if at < len(places) and (last is None or places[at] <= last):
                return True
        return False
