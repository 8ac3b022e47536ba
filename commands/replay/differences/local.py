"""The comparison in this process: both versions side by side, message after message."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from commands.broker.core import EPOCH, Arrival
from commands.replay.differences.deliveries import Deliveries
from commands.replay.differences.explain import Explainer
from commands.replay.differences.model import PutDifference
from commands.replay.differences.observe import BothVersions, ComparedMessage
from commands.replay.differences.report import DifferenceReport, DifferenceTally
from commands.replay.differences.signs import signs_of
from commands.replay.local import DEFAULT_QMGR, OutOfOrderError
from rfh2.captured import CapturedMessage


@dataclass(slots=True)
class _QueueManager:
    pair: BothVersions
    explainer: Explainer
    now: datetime = EPOCH


class LocalDifferences:
    """Compares captured messages. setup: MQSC that every queue manager starts with, in both versions."""

    def __init__(self, setup: str = "") -> None:
        self._setup = setup
        self._qmgrs: dict[str, _QueueManager] = {}
        self._last = -1
        self._tally, self._deliveries = DifferenceTally(), Deliveries()

    def compare(self, message: CapturedMessage, *, counted: bool = True) -> list[PutDifference]:
        """What differs in what one message leads to.

        counted: whether it is reported. If not, nothing is returned, and both versions process it all the same. Raises
        OutOfOrderError where it came before the last one; QPubSubError where the setup fails.
        """
        if message.seq < self._last:
            raise OutOfOrderError(f"seq {message.seq} comes after seq {self._last}")
        self._last = message.seq
        step = self._step(message)
        explainer = self._qmgrs[step.qmgr].explainer
        if not counted:
            explainer.causes.learn(step)
            return []
        differences = explainer.step(step)
        self._tally.message(differences)
        self._deliveries.step(step)
        for rule in signs_of(step):
            self._tally.sign(rule, message.seq)
        return differences

    def report(self) -> DifferenceReport:
        """The report on all messages so far."""
        return self._tally.report(self._deliveries.lines())

    def _step(self, message: CapturedMessage) -> ComparedMessage:
        qmgr = message.qmgr or DEFAULT_QMGR
        known = self._qmgrs.get(qmgr)
        if known is None:
            known = self._qmgrs[qmgr] = _QueueManager(BothVersions(qmgr, self._setup), Explainer())
            known.explainer.causes.begin(*known.pair.subscriptions())
        # A message without a time has the time of the message before it.
        known.now = message.time if message.time is not None else known.now
        return known.pair.step(Arrival(message.seq, known.now, message.queue, message.md, message.body, message.user))
