"""All differences of a workload, counted by rule, by subscriber and by topic, with examples; and how many are accepted.

The rules are those that are known (guide 7.5, 8.5; migration sources 13), D01 to D34. A rule explains puts that differ
(PUTS), or is known by its sign in the capture (SIGN), or cannot be seen in a capture at all (ELSEWHERE). D03, and some
others that are listed for completeness, are the same in both.

What a pipeline accepts of a report is a file that says how many differences of each rule there may be:

    # rule      most
    finding     0
    D01         12       differences of D01, put by put
    sign:D17    0        commands that are a sign of D17
    unprocessed 0        messages that neither version processed; 0 also if no line says so
    *           0        every other rule, and every other sign

A rule or sign without a number may not occur. What no line names is accepted, unless there is ``*``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from pydantic import BaseModel

from commands.replay.periods import PeriodCounts
from rfh2.errors import QPubSubError

# One difference between what version 6 and version 7 put, and its columns in a file.

FINDING: Final = "finding"
"""The name in place of a rule for a difference that no rule explains."""


class Change(StrEnum):
    """What is different, seen from version 6.

    GAINED, LOST: a publication that version 7 alone, or version 6 alone, puts. SPLIT: publications that are one message
    in version 6 and several in version 7. CONTENT: the same publication, put with different content. ANSWER: another
    response, or dead letter, or none.
    """

    GAINED = "gained"
    LOST = "lost"
    SPLIT = "split"
    CONTENT = "content"
    ANSWER = "answer"


class PutDifference(BaseModel, frozen=True):
    """One difference, in what one command leads to, for one subscriber or for the command's sender.

    seq, time, qmgr, user, program, command: of the command; program is PutApplName. rule: D01 to D34, or ``finding``.
    since: the earlier command that made the two differ, where it was one. queue, sub_name, sub_user: the subscriber's;
    for an answer, where it goes, without sub_user. topic: as the subscriber sees. old, new: how many messages each
    version puts or, of an answer, what it says. why: for people.
    """

    seq: int
    time: datetime | None
    qmgr: str
    user: str
    program: str
    command: str | None
    rule: str
    since: int | None
    change: Change
    queue: str
    sub_name: str | None
    sub_user: str | None
    topic: str | None
    old: str
    new: str
    why: str


class Seen(StrEnum):
    """Where the effect of a rule can be seen."""

    PUTS = "puts"
    SIGN = "sign"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class DifferenceRule:
    """One known difference. old, new: what version 6 (or a message broker), and version 7, does. advice: what to do."""

    id: str
    title: str
    old: str
    new: str
    seen: Seen
    advice: str = ""


def _rule(number: int, seen: Seen, title: str, old: str, new: str) -> DifferenceRule:
    name = f"D{number:02}"
    return DifferenceRule(name, title, old, new, seen, _ADVICE.get(name, ""))


_ADVICE: Final = {
    "D01": "use another topic for what these subscribers must not get",
    "D02": "use another topic for what these subscribers must not get",
    "D04": "ask with DISPLAY SUB, DISPLAY TPSTATUS or PCF instead",
    "D05": "ask with DISPLAY PUBSUB instead",
    "D06": "make sure that no program waits for events about publishers",
    "D08": "define a topic object with WILDCARD(BLOCK) for each stream",
    "D09": "give the stream's topic object another TOPICSTR",
    "D10": "deregister, then register the name again",
    "D11": "expect one message for each topic",
    "D12": "remove one of the subscriptions that overlap, or expect duplicates",
    "D13": "give each user a queue",
    "D14": "use MQSO_WILDCARD_CHAR or WSCHEMA(CHAR) where you rewrite the subscriber",
    "D15": "use names that are unique in the queue manager",
    "D17": "deregister before the queue is deleted",
    "D18": "use a permanent or a managed queue where you rewrite the subscriber",
    "D20": "deregister with the SubName",
    "D21": "add a topic object with the subscription point as its TOPICSTR to SYSTEM.QPUBSUB.SUBPOINT.NAMELIST",
    "D22": "set WILDCARD(BLOCK) on the point's topic object, and use no other topics below its TOPICSTR",
    "D23": "put the stream's prefix in the topics of MQRFH2 subscribers, or publish to the default stream",
    "D24": "ask with DISPLAY SUB or PCF from time to time instead",
    "D25": "deregister the old name first",
    "D28": "make publications persistent that must survive a restart",
    "D30": "use only message properties in a Filter: MQSUB selects by nothing else",
    "D31": "set PSPROP of the subscription where you rewrite the subscriber",
    "D32": "keep the queued interface: MQSUB has no identity sets",
    "D33": "publish again what must stay retained",
    "D34": "add the stream's queue to SYSTEM.QPUBSUB.QUEUE.NAMELIST, and define a topic object with its name",
}

_P, _S, _E = Seen.PUTS, Seen.SIGN, Seen.ELSEWHERE

RULES: Final[dict[str, DifferenceRule]] = {
    rule.id: rule
    for rule in (
        _rule(1, _P, "local publication, global subscription", "not delivered", "delivered"),
        _rule(2, _P, "global publication, local subscription", "not delivered", "delivered"),
        _rule(3, _E, "publication and subscription of the same scope", "delivered", "delivered"),
        _rule(4, _P, "subscription to a metatopic", "registered", "accepted, but not kept"),
        _rule(5, _S, "events on the admin stream", "published", "none"),
        _rule(6, _S, "registered publishers", "kept, and published on metatopics", "a response, and nothing else"),
        _rule(7, _E, "routing exit", "may change what is delivered", "none; publish exits, subscription levels"),
        _rule(8, _P, "streams", "kept apart", "kept apart by topic objects with WILDCARD(BLOCK)"),
        _rule(9, _P, "topics below a stream's prefix", "other topics", "the stream's topics"),
        _rule(10, _P, "registering a name again, with another topic or filter", "altered", "refused"),
        _rule(11, _P, "one publication to several topics", "one message per subscriber", "one message per topic"),
        _rule(12, _P, "several subscriptions that match", "one message per subscriber", "one message per subscription"),
        _rule(13, _P, "a second user of one identity", "refused", "a second subscription"),
        _rule(14, _S, "wildcards by character", "the only kind", "of MQRFH; elsewhere wildcards are by level"),
        _rule(15, _P, "a SubName on two streams", "two subscriptions", "refused: names are unique in a queue manager"),
        _rule(16, _E, "deleting a hierarchy", "children first", "in any order"),
        _rule(17, _S, "subscriber queue that is a temporary dynamic one", "stays subscribed", "deleted with its queue"),
        _rule(18, _S, "durable subscription with a temporary dynamic queue", "possible", "2522 for MQSUB"),
        _rule(19, _E, "subscriptions between queue managers", "as they are", "widened to #"),
        _rule(20, _P, "identity that has named subscriptions", "means them too", "leaves them alone"),
        _rule(21, _P, "subscription point that is not defined", "works", "3072"),
        _rule(22, _P, "subscription points", "kept apart", "topics below their prefix"),
        _rule(23, _P, "publisher with MQRFH2 on a stream queue", "on no stream", "on that stream"),
        _rule(24, _P, "subscription to $SYS topics", "events come", "accepted, but not kept"),
        _rule(25, _S, "giving a named subscription another name", "possible", "refused"),
        _rule(26, _E, "as D11, of the message brokers", "one message", "one message per topic"),
        _rule(27, _E, "as D13, of the message brokers", "refused", "a second subscription"),
        _rule(28, _S, "non-persistent retained publications", "survive a restart", "do not"),
        _rule(29, _E, "wildcard subscription that is denied in part", "the rest is delivered", "refused"),
        _rule(30, _S, "filters on content", "everywhere", "where the header is MQRFH2"),
        _rule(31, _S, "publisher and subscriber with different headers", "converted", "as PSPROP says"),
        _rule(32, _S, "shared subscriptions (SubIdentity)", "their own reasons", "kept here; MQSUB has none of it"),
        _rule(33, _P, "DeletePub of an MQRFH publisher", "what has its scope, local or not", "all that is retained"),
        _rule(34, _P, "stream queue that is not in the namelist", "a stream", "not read"),
    )
}


_EXAMPLES: Final = 3
_CHANGES: Final = tuple(Change)
_MOST_PLACES: Final = 1_000_000
_ON: Final = " on "


class ReportLine(BaseModel, frozen=True):
    """One line of a table: how often each change was met. name: of the rule, the subscriber or the topic.

    first: the first difference of a subscriber.
    """

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


class SignLine(BaseModel, frozen=True):
    """A rule for which the capture has signs. first_seq: the message with the first sign."""

    name: str
    title: str
    advice: str
    count: int
    first_seq: int


class DeliveryLine(BaseModel, frozen=True):
    """A queue with captured deliveries, and how many each version puts there.

    missing: of those captured, which the version does not put. only: which it puts, and which were not captured.
    """

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


class DifferencePeriod(BaseModel, frozen=True):
    """Differences of a stretch of captured time that begins at *start*."""

    start: datetime
    changes: dict[Change, int]


class DifferenceReport(BaseModel, frozen=True):
    """What would change. messages: replayed. differing: commands of which the puts differ. findings: without a rule.

    subscribers, topics: those with differences, most first. deliveries: compared with what was captured on subscriber
    queues, if anything was. not_processed: how many commands of each stream neither version knew: nothing was compared
    for them. timeline: periods of equal length, as ``commands.replay.periods`` chooses it; those
    without a difference are left out.
    """

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


_SIGN: Final = "sign:"
_EVERY: Final = "*"
_UNPROCESSED: Final = "unprocessed"


@dataclass(frozen=True, slots=True)
class Gate:
    """How many differences, by rule, and how many signs, by ``sign:`` and rule, are accepted."""

    most: Mapping[str, int]

    def exceeded(self, report: DifferenceReport) -> Iterator[str]:
        """What of *report* is more than accepted, a line each."""
        counts = {line.name: line.total for line in report.rules}
        counts |= {f"{_SIGN}{sign.name}": sign.count for sign in report.signs}
        for name, count in counts.items():
            most = self.most.get(name, self.most.get(_EVERY))
            if most is not None and count > most:
                what = "signs" if name.startswith(_SIGN) else "differences"
                yield f"{name.removeprefix(_SIGN)}: {count:,} {what}, of which {most:,} are accepted"
        count, most = sum(report.not_processed.values()), self.most.get(_UNPROCESSED, 0)
        if count > most:
            yield f"{_UNPROCESSED}: {count:,} messages, of which {most:,} are accepted"


def parse_gate(text: str) -> Gate:
    """The gate that *text* describes. Raises QPubSubError with the line that is wrong."""
    most: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        name, count = words[0], words[1] if len(words) > 1 else "0"
        if name not in (_EVERY, FINDING, _UNPROCESSED) and name.removeprefix(_SIGN) not in RULES:
            raise QPubSubError(
                f"line {number}: {name} is not a rule; a rule is D01 to D34, sign:D01, {FINDING}, {_UNPROCESSED} or *"
            )
        if len(words) > 2 or not count.isdecimal():
            raise QPubSubError(f"line {number}: a rule and a number are expected, such as D01 12")
        if name in most:
            raise QPubSubError(f"line {number}: {name} is given twice")
        most[name] = int(count)
    return Gate(most)
