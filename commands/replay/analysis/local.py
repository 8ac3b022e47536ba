"""The analysis in this process: message after message, in the order of ``seq``."""

from __future__ import annotations

from collections.abc import Sequence

from commands.broker.context import Semantics
from commands.broker.outcome import Arrival
from commands.mqsc.broker import Broker
from commands.replay.analysis.facts import defined, facts_of
from commands.replay.analysis.tables import Row, Table, TableCounts, TableView
from commands.replay.arrivals import Arrivals
from rfh2.captured import CapturedMessage


class LocalAnalysis:
    """Analyses captured messages. setup: MQSC that every queue manager starts with. semantics: ``v7`` or ``v6``."""

    def __init__(self, setup: str = "", semantics: str = "v7") -> None:
        self._setup, self._semantics = setup, Semantics(semantics)
        self._brokers: dict[str, Broker] = {}
        self._arrivals = Arrivals()
        self._counts = TableCounts()

    def take(self, message: CapturedMessage, *, counted: bool = True) -> None:
        """Analyse one message. counted: whether it is in the tables; it changes the broker in either case.

        Raises OutOfOrderError if it came before the last one, QPubSubError if the setup fails.
        """
        self.arrived(*self._arrivals.of(message), counted=counted)

    def arrived(self, qmgr: str, arrival: Arrival, *, counted: bool) -> None:
        """The same for what ``Arrivals`` made of a message; the order is not checked again."""
        broker = self._brokers.get(qmgr)
        if broker is None:
            broker = self._brokers[qmgr] = Broker.of_capture(qmgr, self._setup, self._semantics.value)
            self._counts.add(defined(qmgr, broker.space.subscriptions()))
        if counted:
            self._counts.add(facts_of(qmgr, arrival, broker.trace(arrival)))
        else:
            broker.process(arrival)

    def rows(self, of: Table | TableView) -> list[Row]:
        """All rows of a table or a view, sorted."""
        return self._counts.rows(of)

    def look(self, of: Table | TableView, most: int | None) -> tuple[int, Sequence[Row]]:
        """How many rows a table or a view has, and the first *most* of them (None: all)."""
        rows = self.rows(of)
        return len(rows), rows[:most]
