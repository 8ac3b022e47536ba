"""Answers for a terminal: for each subscriber queue the sum of each reason, and what it means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from commands.explain.why import Reason
from commands.replay.why.summary import ReasonSum, Summary, is_served

_MANY_QUEUES: Final = 10
_ORDER: Final = {reason: at for at, reason in enumerate(Reason)}
_UNKNOWN: Final = "(subscribers not known)"


def lines_of(summary: Summary) -> Iterator[str]:
    """The answers, line by line; the totals first where there are many queues. Queues that got nothing come first."""
    if not summary.queues:
        yield "nothing was published, and nobody subscribed"
        return
    queues = [queue for queue in summary.queues if queue[1]]
    yield f"{_counted(len(queues), 'subscriber queue')}, {len(summary.silent):,} of them without a publication"
    if len(queues) > _MANY_QUEUES:
        yield from _sums(summary.reasons)
    order = sorted(summary.queues, key=lambda queue: (is_served(summary.queues[queue]), queue[1] == "", queue))
    for queue in order:
        yield ""
        yield _name(*queue)
        of_queue = summary.queues[queue]
        width = max(map(len, of_queue))
        digits = max(len(_count(total)) for total in of_queue.values())
        for reason in sorted(of_queue, key=_ORDER.__getitem__):
            total = of_queue[reason]
            yield f"  {reason.value:<{width}}  {_count(total):>{digits}}  {_what(total)}".rstrip()


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
    name = "" if total.example.sub_name is None else f"subscription {total.example.sub_name}"
    head = "; ".join(filter(None, (where, name)))
    return ": ".join(filter(None, (head, total.detail)))


def _count(total: ReasonSum) -> str:
    return f"{total.count:,}"


def _name(qmgr: str, queue: str) -> str:
    if not queue:
        return _UNKNOWN
    return f"{queue} at queue manager {qmgr}" if qmgr else queue


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
