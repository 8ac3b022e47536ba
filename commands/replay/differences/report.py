"""All differences of a workload, counted by rule, by subscriber and by topic, with examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from pydantic import BaseModel, ConfigDict

from commands.replay.differences.model import FINDING, Change, PutDifference
from commands.replay.differences.rules import RULES
from commands.replay.periods import PeriodCounts

_EXAMPLES: Final = 3
_CHANGES: Final = tuple(Change)
_MOST_PLACES: Final = 1_000_000
_ON: Final = " on "


class ReportLine(BaseModel):
    """One line of a table: how often each change was met. name: of the rule, the subscriber or the topic.

    first: the first difference of a subscriber.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    total: int
    changes: dict[Change, int]
    rules: dict[str, int]
    first: PutDifference | None = None


class RuleLine(ReportLine):
    """A rule, or the differences without a rule, with examples: the first of each change, then others."""

    title: str
    old: str
    new: str
    advice: str
    examples: tuple[PutDifference, ...]


class SignLine(BaseModel):
    """A rule for which the capture has signs. first_seq: the message with the first sign."""

    model_config = ConfigDict(frozen=True)

    name: str
    title: str
    advice: str
    count: int
    first_seq: int


class DeliveryLine(BaseModel):
    """A queue with captured deliveries, and how many each version puts there.

    missing: of those captured, which the version does not put. only: which it puts, and which were not captured.
    """

    model_config = ConfigDict(frozen=True)

    qmgr: str
    queue: str
    captured: int
    old: int
    new: int
    missing_in_old: int
    only_in_old: int
    missing_in_new: int
    only_in_new: int

    @property
    def as_captured(self) -> bool:
        """Whether version 7 puts what was captured, no more and no less."""
        return not self.missing_in_new and not self.only_in_new


class DifferencePeriod(BaseModel):
    """Differences of a stretch of captured time that begins at *start*."""

    model_config = ConfigDict(frozen=True)

    start: datetime
    changes: dict[Change, int]


class DifferenceReport(BaseModel):
    """What would change. messages: replayed. differing: commands of which the puts differ. findings: without a rule.

    subscribers, topics: those with differences, most first. deliveries: compared with what was captured on subscriber
    queues, if anything was. not_processed: how many commands of each stream neither version knew: nothing was compared
    for them. timeline: periods of equal length, as ``commands.replay.periods`` chooses it; those
    without a difference are left out.
    """

    model_config = ConfigDict(frozen=True)

    messages: int
    differing: int
    differences: int
    findings: int
    rules: tuple[RuleLine, ...]
    subscribers: tuple[ReportLine, ...]
    topics: tuple[ReportLine, ...]
    signs: tuple[SignLine, ...]
    timeline: tuple[DifferencePeriod, ...] = ()
    period_s: int = 1
    deliveries: tuple[DeliveryLine, ...] = ()
    not_processed: dict[str, int] = {}


class DifferenceTally:
    """Counts differences, one after the other."""

    def __init__(self) -> None:
        self._messages = self._differing = self._total = 0
        self._by: dict[str, dict[str, Counter[tuple[str, Change]]]] = {"rule": {}, "subscriber": {}, "topic": {}}
        self._examples: dict[tuple[str, Change], list[PutDifference]] = {}
        self._first: dict[str, PutDifference] = {}
        self._signs: dict[str, tuple[int, int]] = {}
        self._not_processed: Counter[str] = Counter()
        self._periods = PeriodCounts(len(_CHANGES))

    def message(self, differences: Iterable[PutDifference], not_processed: str | None = None) -> None:
        """One message, and what differs in what it leads to. not_processed: the stream, if neither version knew it."""
        self._messages += 1
        if not_processed is not None:
            self._not_processed[not_processed] += 1
        found = list(differences)
        self._differing += bool(found)
        for difference in found:
            self._take(difference)

    def sign(self, rule: str, seq: int) -> None:
        """A command that is a sign of a rule."""
        count, first = self._signs.get(rule, (0, seq))
        self._signs[rule] = (count + 1, min(first, seq))

    def add(self, other: DifferenceTally) -> None:
        """Add the counts of *other*; examples are the first by seq."""
        self._messages += other._messages
        self._differing += other._differing
        self._total += other._total
        for table, lines in other._by.items():
            for name, counts in lines.items():
                self._by[table].setdefault(name, Counter()).update(counts)
        for kind, examples in other._examples.items():
            mine = [*self._examples.get(kind, ()), *examples]
            self._examples[kind] = sorted(mine, key=_place)[:_EXAMPLES]
        for subscriber, difference in other._first.items():
            earliest = self._first.get(subscriber)
            if earliest is None or _place(difference) < _place(earliest):
                self._first[subscriber] = difference
        self._periods.merge(other._periods)
        self._not_processed.update(other._not_processed)
        for rule, (count, first) in other._signs.items():
            before, earlier = self._signs.get(rule, (0, first))
            self._signs[rule] = (before + count, min(first, earlier))

    def report(self, deliveries: Iterable[DeliveryLine] = ()) -> DifferenceReport:
        """The sum."""
        findings = sum(self._by["rule"].get(FINDING, Counter()).values())
        return DifferenceReport(
            messages=self._messages,
            differing=self._differing,
            differences=self._total,
            findings=findings,
            rules=tuple(
                self._rule(name) for name in sorted(self._by["rule"], key=lambda name: (name == FINDING, name))
            ),
            subscribers=self._subscribers(),
            topics=self._lines("topic"),
            signs=tuple(
                SignLine(name=rule, title=RULES[rule].title, advice=RULES[rule].advice, count=count, first_seq=first)
                for rule, (count, first) in sorted(self._signs.items())
            ),
            timeline=self._timeline(),
            period_s=self._periods.length_s,
            deliveries=tuple(deliveries),
            not_processed=dict(sorted(self._not_processed.items())),
        )

    def _timeline(self) -> tuple[DifferencePeriod, ...]:
        return tuple(
            DifferencePeriod(start=start, changes={change: n for change, n in zip(_CHANGES, sums, strict=True) if n})
            for start, sums in self._periods.periods().items()
        )

    def _take(self, difference: PutDifference) -> None:
        self._total += 1
        what = (difference.rule, difference.change)
        self._by["rule"].setdefault(difference.rule, Counter())[what] += 1
        subscriber = f"{difference.queue}{_ON}{difference.qmgr}"
        self._by["subscriber"].setdefault(subscriber, Counter())[what] += 1
        self._first.setdefault(subscriber, difference)
        if difference.time is not None:
            self._periods.add(difference.time, [int(change is difference.change) for change in _CHANGES])
        topics = self._by["topic"]
        if difference.topic is not None and (difference.topic in topics or len(topics) < _MOST_PLACES):
            topics.setdefault(difference.topic, Counter())[what] += 1
        examples = self._examples.setdefault((difference.rule, difference.change), [])
        if len(examples) < _EXAMPLES:
            examples.append(difference)

    def _rule(self, name: str) -> RuleLine:
        rule = RULES.get(name)
        title = rule.title if rule is not None else "no rule explains these"
        return RuleLine(
            **self._line("rule", name).model_dump(),
            title=title,
            old=rule.old if rule is not None else "",
            new=rule.new if rule is not None else "",
            advice=rule.advice if rule is not None else "",
            examples=self._examples_of(name),
        )

    def _examples_of(self, rule: str) -> tuple[PutDifference, ...]:
        found = [self._examples.get((rule, change), []) for change in Change]
        firsts = [examples[0] for examples in found if examples]
        others = sorted((each for examples in found for each in examples[1:]), key=_place)
        return tuple(sorted([*firsts, *others][: max(_EXAMPLES, len(firsts))], key=_place))

    def _subscribers(self) -> tuple[ReportLine, ...]:
        """The name, without that of the queue manager if there is only one."""
        several = len({name.partition(_ON)[2] for name in self._by["subscriber"]}) > 1
        return tuple(
            line.model_copy(
                update={"name": line.name if several else line.name.partition(_ON)[0], "first": self._first[line.name]}
            )
            for line in self._lines("subscriber")
        )

    def _lines(self, table: str) -> tuple[ReportLine, ...]:
        lines = (self._line(table, name) for name in self._by[table])
        return tuple(sorted(lines, key=lambda line: (-line.total, line.name)))

    def _line(self, table: str, name: str) -> ReportLine:
        counts = self._by[table][name]
        changes: Counter[Change] = Counter()
        rules: Counter[str] = Counter()
        for (rule, change), count in counts.items():
            changes[change] += count
            rules[rule] += count
        return ReportLine(name=name, total=sum(counts.values()), changes=dict(changes), rules=dict(rules))


def _place(difference: PutDifference) -> tuple[int, str]:
    return difference.seq, difference.qmgr
