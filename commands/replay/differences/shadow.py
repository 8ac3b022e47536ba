"""The old queue manager goes on, and this program does the same beside it: what differs is told while it happens.

A capture has the commands that the old queue manager got, and what it put on subscriber queues. Each command is carried
out in both versions (``LocalDifferences``), and what version 7 would put waits for its copy in the capture:

    captured and put by version 7          the same: both go
    put by version 7, and not captured     a difference when the time of grace is over
    captured, and not put by version 7     a difference when the time of grace is over

The reason is that of the two versions' own difference for the same command and queue. Where version 6 as replayed does
not do what was captured, no rule explains it: a finding. Queues on which nothing was ever captured are not compared,
but for those that are named: whether their messages are in the capture is not known.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias

from pydantic import BaseModel

from commands.broker.outcome import Arrival
from commands.explain.problems import command_of
from commands.model import Publish
from commands.replay.differences.deliveries import LocalDifferences, Whose, marks_of, read_arrival
from commands.replay.differences.observe import ComparedMessage
from commands.replay.differences.report import FINDING, Change, DifferenceReport, DifferenceTally, PutDifference
from rfh2.captured import CapturedMessage

_Place: TypeAlias = tuple[str, str, bytes]

_MISSING = "both versions put it, and it was not captured: taken from the queue before, expired, or lost"
_UNKNOWN = (
    "it was captured, and neither version puts it: an earlier command is not in the capture, or the setup differs"
)


class ShadowReport(BaseModel, frozen=True):
    """What a shadow has seen. since, until: the times of the first and the last message, None for none.

    messages: of the capture. same: how many captured publications version 7 puts as well. differences, findings: how
    many, and how many of them no rule explains. rules: how many of each. open: how many wait for their copy at the end.
    unwatched: publications for queues on which nothing was captured, by queue. not_processed: messages on streams that
    neither version knows.
    """

    since: datetime | None
    until: datetime | None
    messages: int
    same: int
    differences: int
    findings: int
    rules: dict[str, int]
    open: int
    unwatched: dict[str, int]
    not_processed: dict[str, int]


@dataclass(slots=True)
class _Put:
    """A delivery that waits for its counterpart. found: how the two versions differ for its queue."""

    arrival: Arrival
    found: tuple[PutDifference, ...] = ()


@dataclass(slots=True)
class _Waiting:
    """Equal deliveries on one queue, oldest first. old: those of version 6, which only give reasons."""

    captured: deque[_Put] = field(default_factory=deque)
    old: deque[_Put] = field(default_factory=deque)
    new: deque[_Put] = field(default_factory=deque)


class Shadow:
    """Takes captured messages in order. setup, old: as for ``LocalDifferences``.

    grace_s: for how many seconds of the capture a delivery waits for its counterpart. queues: those that are compared
    although nothing was captured on them yet.
    """

    def __init__(self, setup: str = "", old: str = "v6", grace_s: float = 60.0, queues: Collection[str] = ()) -> None:
        self._versions = LocalDifferences(setup, old, self._learn)
        self._grace, self._named = timedelta(seconds=grace_s), frozenset(queues)
        self._waiting: dict[_Place, _Waiting] = {}
        self._due: deque[tuple[datetime, _Place]] = deque()
        self._watched: set[tuple[str, str]] = set()
        self._unwatched: Counter[str] = Counter()
        self._tally = DifferenceTally()
        self._same = self._messages = 0
        self._since: datetime | None = None
        self._until: datetime | None = None
        self._rules: Counter[str] = Counter()

    def take(self, message: CapturedMessage) -> Iterator[PutDifference]:
        """Process one message; the differences that are certain now.

        Raises OutOfOrderError where it came before the last one; QPubSubError where the setup fails.
        """
        if message.time is not None:
            yield from self._judged(message.time - self._grace)
        self._versions.compare(message)

    def end(self) -> Iterator[PutDifference]:
        """The differences of all that still waits, when no more is to come."""
        yield from self._judged(None)

    def report(self) -> ShadowReport:
        """The sum so far."""
        compared = self._versions.report()
        return ShadowReport(
            since=self._since,
            until=self._until,
            messages=self._messages,
            same=self._same,
            differences=self._rules.total(),
            findings=self._rules[FINDING],
            rules=dict(sorted(self._rules.items())),
            open=sum(len(each.captured) + len(each.new) for each in self._waiting.values()),
            unwatched=dict(self._unwatched.most_common()),
            not_processed=dict(compared.not_processed),
        )

    def judged(self) -> DifferenceReport:
        """The differences as a gate judges them, with the signs of the commands."""
        compared = self._versions.report()
        update = {"signs": compared.signs, "not_processed": compared.not_processed}
        return self._tally.report(()).model_copy(update=update)

    def _learn(self, step: ComparedMessage, found: Sequence[PutDifference]) -> None:
        now = step.arrival.now
        self._messages += 1
        self._since, self._until = self._since or now, now
        for qmgr, queue, digest, whose in marks_of(step):
            place = (qmgr, queue, digest)
            waiting = self._waiting.setdefault(place, _Waiting())
            put = _Put(
                step.arrival, tuple(each for each in found if each.queue == queue and each.change is not Change.ANSWER)
            )
            if whose == Whose.CAPTURED:
                self._watched.add((qmgr, queue))
                waiting.captured.append(put)
            else:
                (waiting.old if whose == Whose.OLD else waiting.new).append(put)
            self._due.append((now, place))
            self._match(place, waiting)

    def _match(self, place: _Place, waiting: _Waiting) -> None:
        if waiting.captured and waiting.new:
            waiting.captured.popleft()
            waiting.new.popleft()
            if waiting.old:
                waiting.old.popleft()
            self._same += 1
        if not (waiting.captured or waiting.new or waiting.old):
            del self._waiting[place]

    def _judged(self, until: datetime | None) -> Iterator[PutDifference]:
        """What has waited for too long; all of it for None."""
        while self._due and (until is None or self._due[0][0] <= until):
            at, place = self._due.popleft()
            waiting = self._waiting.get(place)
            if waiting is None:
                continue
            for difference in self._unmatched(place, waiting, at):
                self._tally.message([difference], None)
                self._rules[difference.rule] += 1
                yield difference
            if not (waiting.captured or waiting.new or waiting.old):
                del self._waiting[place]

    def _unmatched(self, place: _Place, waiting: _Waiting, until: datetime) -> Iterator[PutDifference]:
        qmgr, queue, _ = place
        while waiting.captured and waiting.captured[0].arrival.now <= until:
            put = waiting.captured.popleft()
            cause = waiting.old.popleft() if waiting.old else None
            yield _difference(put, cause, Change.LOST, qmgr, queue)
        while waiting.new and waiting.new[0].arrival.now <= until:
            put = waiting.new.popleft()
            cause = None if waiting.old else put
            if waiting.old:
                waiting.old.popleft()
            if (qmgr, queue) in self._watched or queue in self._named:
                yield _difference(put, cause, Change.GAINED, qmgr, queue)
            else:
                self._unwatched[queue] += 1
        while waiting.old and waiting.old[0].arrival.now <= until:
            waiting.old.popleft()


def _difference(put: _Put, cause: _Put | None, change: Change, qmgr: str, queue: str) -> PutDifference:
    """What to say of one delivery. cause: the command's put in the version whose difference explains it."""
    old, new = ("1", "0") if change is Change.LOST else ("0", "1")
    if cause is not None and cause.found:
        return cause.found[0].model_copy(update={"change": change, "old": old, "new": new})
    partial = read_arrival(put.arrival)
    command = command_of(partial)
    return PutDifference(
        seq=put.arrival.seq,
        time=put.arrival.now,
        qmgr=qmgr,
        user=put.arrival.user or "",
        program=partial.assumed.put_appl_name.strip(),
        command=None if command is None else type(command).__name__,
        rule=FINDING,
        since=None,
        change=change,
        queue=queue,
        sub_name=None,
        sub_user=None,
        topic=command.topics[0] if isinstance(command, Publish) and command.topics else None,
        old=old,
        new=new,
        why=_UNKNOWN if change is Change.LOST else _MISSING,
    )
