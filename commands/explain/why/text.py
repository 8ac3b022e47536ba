"""Answers for a terminal: counted by subscriber queue and reason, with an example of each, and what it means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
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


_MANY_QUEUES: Final = 10
_ORDER: Final = {reason: at for at, reason in enumerate(Reason)}
_UNKNOWN: Final = "(subscribers not known)"
_NOBODY: Final = "(no subscriber)"


def lines_of(summary: Summary) -> Iterator[str]:
    """The answers, line by line; the totals first where there are many queues. Queues that got nothing come first."""
    if not summary.queues:
        yield "nothing was published, and no program subscribed"
        return
    queues = [queue for queue in summary.queues if queue[1]]
    if queues:
        yield f"{_counted(len(queues), 'subscriber queue')}, {len(summary.silent):,} of them without a publication"
    if len(queues) > _MANY_QUEUES:
        yield from _sums(summary.reasons)
    order = sorted(summary.queues, key=lambda queue: (is_served(summary.queues[queue]), queue[1] == "", queue))
    for queue in order:
        if queues:
            yield ""
        of_queue = summary.queues[queue]
        yield _name(*queue, of_queue)
        width = max(map(len, of_queue))
        digits = max(len(_count(total)) for total in of_queue.values())
        for reason in sorted(of_queue, key=_ORDER.__getitem__):
            total = of_queue[reason]
            yield f"  {reason.value:<{width}}  {_count(total):>{digits}}  {_what(total)}".rstrip()


def lines_of_each(verdicts: Iterable[Verdict], *, publication: bool) -> Iterator[str]:
    """A line for each answer, by queue; queues that get nothing come first.

    publication: whether the answers are about one; otherwise they are about subscriptions, whatever is published.
    """
    found = list(verdicts)
    there = [verdict for verdict in found if verdict.queue]
    if len(there) > 1:
        reached = sum(verdict.delivered for verdict in there)
        can = "can receive publications" if not publication else "gets it" if reached == 1 else "get it"
        yield f"{_counted(len(there), 'subscription')}, {f'{reached:,}' if reached else 'none'} of them {can}"
    served = {_queue_of(verdict) for verdict in found if verdict.delivered}
    order = sorted(found, key=lambda verdict: (_queue_of(verdict) in served, _queue_of(verdict)))
    for queue, answers in groupby(order, _queue_of):
        if len(there) > 1:
            yield ""
        yield _name(*queue)
        of_queue = list(answers)
        width = max(len(verdict.reason) for verdict in of_queue)
        for verdict in of_queue:
            whose = subscription_words(verdict, named_by_topic=not publication)
            what = ": ".join(filter(None, (whose, verdict.detail)))
            yield f"  {verdict.reason.value:<{width}}  {what}".rstrip()


def subscription_words(verdict: Verdict, *, named_by_topic: bool = False) -> str:
    """The subscription of an answer, by its name. named_by_topic: by its topic string if it has no name."""
    if verdict.sub_name is not None:
        return f"subscription {verdict.sub_name}"
    return f"subscription to {verdict.topic!r}" if named_by_topic and verdict.queue and verdict.topic else ""


def _queue_of(verdict: Verdict) -> tuple[str, str]:
    return verdict.qmgr, verdict.queue


def _sums(reasons: Mapping[Reason, int]) -> Iterator[str]:
    width = max(map(len, reasons))
    digits = max(len(f"{count:,}") for count in reasons.values())
    for reason in sorted(reasons, key=_ORDER.__getitem__):
        yield f"  {reason.value:<{width}}  {reasons[reason]:>{digits},}"


def _what(total: ReasonSum) -> str:
    where = ""
    if total.seqs:
        more = ", ..." if total.count > len(total.seqs) else ""
        where = f"seq {', '.join(map(str, total.seqs))}{more}"
    head = "; ".join(filter(None, (where, subscription_words(total.example))))
    return ": ".join(filter(None, (head, total.detail)))


def _count(total: ReasonSum) -> str:
    return f"{total.count:,}"


def _name(qmgr: str, queue: str, reasons: Container[Reason] = (Reason.NO_MATCH,)) -> str:
    if not queue:
        return _NOBODY if Reason.NO_MATCH in reasons else _UNKNOWN
    return f"{queue} at queue manager {qmgr}" if qmgr else queue


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
