"""Answers counted by subscriber queue and reason, with an example of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from commands.explain.why import Reason, Verdict

_MOST_SEQS: Final = 3


@dataclass(slots=True)
class ReasonSum:
    """The answers about one queue with one reason. seqs: of the first ones. example: the first one."""

    example: Verdict
    detail: str
    count: int = 0
    seqs: list[int] = field(default_factory=list)


class Summary:
    """Answers, added up. queues: by queue manager and queue, in the order of their first answers."""

    def __init__(self) -> None:
        self.queues: dict[tuple[str, str], dict[Reason, ReasonSum]] = {}
        self.reasons: Counter[Reason] = Counter()

    def add(self, verdict: Verdict) -> None:
        """Add one answer."""
        of_queue = self.queues.setdefault((verdict.qmgr, verdict.queue), {})
        total = of_queue.get(verdict.reason)
        if total is None:
            total = of_queue[verdict.reason] = ReasonSum(verdict, verdict.detail)
        total.count += 1
        self.reasons[verdict.reason] += 1
        if verdict.seq is not None and len(total.seqs) < _MOST_SEQS:
            total.seqs.append(verdict.seq)

    @property
    def silent(self) -> list[tuple[str, str]]:
        """The queues that nothing was delivered to."""
        return [queue for queue, sums in self.queues.items() if queue[1] and not is_served(sums)]


def is_served(sums: dict[Reason, ReasonSum]) -> bool:
    """Whether anything was delivered to a queue of this queue manager."""
    return Reason.DELIVERED in sums
