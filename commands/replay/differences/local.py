"""The comparison in this process: both versions side by side, message after message."""

from __future__ import annotations

from dataclasses import dataclass

from commands.broker.outcome import Arrival
from commands.replay.arrivals import Arrivals
from commands.replay.differences.deliveries import Deliveries, not_processed
from commands.replay.differences.explain import Explainer
from commands.replay.differences.model import PutDifference
from commands.replay.differences.observe import BothVersions
from commands.replay.differences.report import DifferenceReport, DifferenceTally
from commands.replay.differences.signs import signs_of
from rfh2.captured import CapturedMessage


@dataclass(slots=True)
class _QueueManager:
    pair: BothVersions
    explainer: Explainer


class LocalDifferences:
    """Compares captured messages. setup: MQSC that every queue manager starts with, in both versions."""

    def __init__(self, setup: str = "") -> None:
        self._setup = setup
        self._qmgrs: dict[str, _QueueManager] = {}
        self._arrivals = Arrivals()
        self._tally, self._deliveries = DifferenceTally(), Deliveries()

    def compare(self, message: CapturedMessage, *, counted: bool = True) -> list[PutDifference]:
        """What differs in what one message leads to.

        counted: whether it is reported. If not, nothing is returned, and both versions process it all the same. Raises
        OutOfOrderError where it came before the last one; QPubSubError where the setup fails.
        """
        return self.arrived(*self._arrivals.of(message), counted=counted)

    def arrived(self, qmgr: str, arrival: Arrival, *, counted: bool) -> list[PutDifference]:
        """The same for what ``Arrivals`` made of a message; the order is not checked again."""
        known = self._qmgrs.get(qmgr)
        if known is None:
            known = self._qmgrs[qmgr] = _QueueManager(BothVersions(qmgr, self._setup), Explainer())
            known.explainer.causes.begin(*known.pair.subscriptions())
        step, explainer = known.pair.step(arrival), known.explainer
        if not counted:
            explainer.causes.learn(step)
            return []
        differences = explainer.step(step)
        self._tally.message(differences, not_processed(step))
        self._deliveries.step(step)
        for rule in signs_of(step):
            self._tally.sign(rule, arrival.seq)
        return differences

    def report(self) -> DifferenceReport:
        """The report on all messages so far."""
        return self._tally.report(self._deliveries.lines())
