"""The analysis in this process: message after message, in the order of ``seq``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from commands.broker.context import Semantics
from commands.broker.core import EPOCH, Arrival
from commands.mqsc.broker import Broker
from commands.replay.analysis.facts import defined, facts_of
from commands.replay.analysis.tables import Row, Table, TableCounts, TableView
from commands.replay.local import DEFAULT_QMGR, OutOfOrderError
from rfh2.captured import CapturedMessage


@dataclass(slots=True)
class _QueueManager:
    broker: Broker
    now: datetime = EPOCH


class LocalAnalysis:
    """Analyses captured messages. setup: MQSC that every queue manager starts with. semantics: ``v7`` or ``v6``."""

    def __init__(self, setup: str = "", semantics: str = "v7") -> None:
        self._setup, self._semantics = setup, Semantics(semantics)
        self._qmgrs: dict[str, _QueueManager] = {}
        self._last = -1
        self._counts = TableCounts()

    def take(self, message: CapturedMessage, *, counted: bool = True) -> None:
        """Analyse one message. counted: whether it is in the tables; it changes the broker in either case.

        Raises OutOfOrderError if it came before the last one, QPubSubError if the setup fails.
        """
        if message.seq < self._last:
            raise OutOfOrderError(f"seq {message.seq} comes after seq {self._last}")
        self._last = message.seq
        qmgr = message.qmgr or DEFAULT_QMGR
        known = self._qmgrs.get(qmgr)
        if known is None:
            known = self._qmgrs[qmgr] = _QueueManager(Broker.of_capture(qmgr, self._setup, self._semantics.value))
            self._counts.add(defined(qmgr, known.broker.space.subscriptions()))
        # A message without a time has the time of the message before it.
        known.now = message.time if message.time is not None else known.now
        arrival = Arrival(message.seq, known.now, message.queue, message.md, message.body, message.user)
        if counted:
            self._counts.add(facts_of(qmgr, arrival, known.broker.trace(arrival)))
        else:
            known.broker.process(arrival)

    def rows(self, of: Table | TableView) -> list[Row]:
        """All rows of a table or a view, sorted."""
        return self._counts.rows(of)

    def look(self, of: Table | TableView, most: int | None) -> tuple[int, Sequence[Row]]:
        """How many rows a table or a view has, and the first *most* of them (None: all)."""
        rows = self.rows(of)
        return len(rows), rows[:most]
