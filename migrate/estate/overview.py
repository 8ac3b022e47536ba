"""The whole estate at one moment: each broker with its state, the sums, what collides, the topic strings in use.

The estate for a terminal: a line for each broker, the sums, and what collides.

What brokers do to each other: names, topics and topic strings that are apart today and meet after the migration.

Publications go from broker to broker within a network, by hierarchy or cluster. There a stream must have the same topic
string on every broker, no two streams may lie one in the other, and no program may use topics of a stream on the
default stream of another broker (guide 6.1, 7.4). A stream that collides gets a proposal, which is free everywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final

from commands.broker.objects import ADMIN_STREAM, DEFAULT_STREAM
from commands.network.estate_file import Estate, EstateQueueManager
from migrate.contents import unpacked
from migrate.estate.jobs import BrokerResult
from migrate.estate.records import PLANS, TOPICS, WORK, BrokerFiles, BrokerState, Record, Survey
from migrate.ledger import Severity, Sums, total
from migrate.legacy_state import LegacyState, Relation, Source
from migrate.plan import Outcome
from migrate.report.runbooks import check_topology, topology_of
from rfh2.terminal_escape import one_line, printable

_SHOWN: Final = 5
_BORN_WITH: Final = (DEFAULT_STREAM, ADMIN_STREAM)


@dataclass(frozen=True, slots=True)
class EstateFinding:
    """One collision. kind: ``topics``, ``names`` or ``prefixes``. advice: what to do about it."""

    kind: str
    severity: Severity
    text: str
    advice: str
    qmgrs: tuple[str, ...]
    stream: str = ""


@dataclass(frozen=True, slots=True)
class Crossing:
    """The surveys of an estate. networks: groups of queue managers. parents: as estate.toml has them, "" for none.

    topics: the topics of a queue manager's default stream; asked for only where they may collide.
    """

    surveys: Mapping[str, Survey]
    networks: Iterable[tuple[str, ...]]
    parents: Mapping[str, str]
    prefixes: Mapping[str, str] = field(default_factory=dict)
    topics: Callable[[str], Iterable[str]] = lambda _qmgr: ()


def estate_findings(crossing: Crossing) -> list[EstateFinding]:
    """Everything that collides, errors first."""
    found = [*_hierarchy(crossing), *_unused_prefixes(crossing)]
    for network in crossing.networks:
        members = [qmgr for qmgr in network if qmgr in crossing.surveys]
        found += _different_prefixes(crossing, members)
        found += _nested_prefixes(crossing, members)
        found += _points(crossing, members)
        found += _topics(crossing, members)
        found += _objects(crossing, members)
    order = list(reversed(Severity))
    return sorted(found, key=lambda each: (order.index(each.severity), each.kind, each.text))


def proposed_prefixes(crossing: Crossing, findings: Iterable[EstateFinding]) -> dict[str, str]:
    """Topic strings for the streams that collide, which nobody uses on any broker of the estate."""
    taken = {level for survey in crossing.surveys.values() for level in survey.levels}
    for survey in crossing.surveys.values():
        taken |= {each.split("/", 1)[0] for each in (*survey.streams.values(), *survey.objects.values())}
        taken |= set(survey.points)
    proposed: dict[str, str] = {}
    for stream in sorted({each.stream for each in findings if each.stream and each.kind != "names"}):
        number = 1
        while (made := f"{stream.replace('/', '.')}.stream{number if number > 1 else ''}") in taken:
            number += 1
        taken.add(made)
        proposed[stream] = made
    return proposed


def prefixes_in_use(crossing: Crossing) -> dict[str, tuple[str, ...]]:
    """Each stream of the estate with the topic strings that it gets: one, if they are consistent."""
    found: dict[str, set[str]] = defaultdict(set)
    for survey in crossing.surveys.values():
        for stream, prefix in survey.streams.items():
            if stream not in _BORN_WITH:
                found[stream].add(prefix)
    return {stream: tuple(sorted(each)) for stream, each in sorted(found.items())}


def _hierarchy(crossing: Crossing) -> Iterator[EstateFinding]:
    """Names that are too alike, and neighbours that estate.toml has otherwise than the brokers (guide 6.5.7, 7.4)."""
    states = [_topology_state(qmgr, survey) for qmgr, survey in crossing.surveys.items()]
    for problem in check_topology(topology_of(states)):
        qmgrs = tuple(qmgr for qmgr in crossing.surveys if qmgr in problem.text.split())
        advice = "correct the hierarchy first (guide 7.4.1)" if problem.id == "P25" else "rename one of them"
        yield EstateFinding("names", Severity.ERROR, f"{problem.text} [{problem.id}]", advice, qmgrs)
    for qmgr, survey in crossing.surveys.items():
        named = crossing.parents.get(qmgr, "")
        recorded = survey.parents[0] if survey.parents else ""
        if recorded and named != recorded:
            text = f"the parent of {qmgr} is {recorded} in its sources, and {named or 'not given'} in estate.toml"
            yield EstateFinding("names", Severity.WARNING, text, f"write parent = '{recorded}'", (qmgr,))


def _topology_state(qmgr: str, survey: Survey) -> LegacyState:
    source = Source(file="survey")
    relations = [Relation(source=source, role="parent", qmgr=each) for each in survey.parents]
    relations += [Relation(source=source, role="child", qmgr=each) for each in survey.children]
    return LegacyState(qmgr=qmgr, relations=tuple(relations))


def _unused_prefixes(crossing: Crossing) -> Iterator[EstateFinding]:
    streams = {stream for survey in crossing.surveys.values() for stream in survey.streams}
    for stream in sorted(crossing.prefixes.keys() - streams):
        text = f"[migration] prefixes has {stream}, and no broker has a stream of that name"
        yield EstateFinding("prefixes", Severity.WARNING, text, "correct or remove it", ())


def _by_stream(crossing: Crossing, members: Iterable[str]) -> dict[str, dict[str, list[str]]]:
    """Stream, topic string, and the brokers that have it there."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for qmgr in members:
        for stream, prefix in crossing.surveys[qmgr].streams.items():
            if stream not in _BORN_WITH:
                found[stream][prefix].append(qmgr)
    return found


def _different_prefixes(crossing: Crossing, members: list[str]) -> Iterator[EstateFinding]:
    for stream, prefixes in _by_stream(crossing, members).items():
        if len(prefixes) > 1:
            each = "; ".join(f"{prefix or '(root)'} on {some(qmgrs)}" for prefix, qmgrs in sorted(prefixes.items()))
            text = f"stream {stream} has several topic strings in one network: {each}. Its publications do not meet"
            advice = "give it one in [migration] prefixes, or change the topic objects that are there"
            qmgrs = tuple(qmgr for named in prefixes.values() for qmgr in named)
            yield EstateFinding("prefixes", Severity.ERROR, text, advice, qmgrs, stream)


def _nested_prefixes(crossing: Crossing, members: list[str]) -> Iterator[EstateFinding]:
    streams = _by_stream(crossing, members)
    owner: dict[str, list[str]] = defaultdict(list)
    for stream, prefixes in streams.items():
        for prefix in prefixes:
            owner[prefix].append(stream)
    for prefix, same in sorted(owner.items()):
        qmgrs = tuple(dict.fromkeys(qmgr for stream in same for qmgr in streams[stream][prefix]))
        advice = "give one of them another topic string in [migration] prefixes"
        if len(same) > 1:
            text = f"streams {' and '.join(sorted(same))} both have topic string {prefix}"
            yield EstateFinding("prefixes", Severity.ERROR, text, advice, qmgrs, sorted(same)[1])
        levels = prefix.split("/")
        for depth in range(1, len(levels)):
            for outer in owner.get("/".join(levels[:depth]), ()):
                text = f"stream {same[0]} at {prefix} lies in stream {outer}: programs of {outer} publish on its topics"
                yield EstateFinding("prefixes", Severity.WARNING, text, advice, qmgrs, same[0])


def _points(crossing: Crossing, members: list[str]) -> Iterator[EstateFinding]:
    """A subscription point and a stream whose topics would be the same."""
    streams = _by_stream(crossing, members)
    for qmgr in members:
        for point in crossing.surveys[qmgr].points:
            for stream, prefixes in streams.items():
                if point in prefixes:
                    text = f"subscription point {point} of {qmgr} and stream {stream} have the same topic string"
                    advice = "give the stream another one in [migration] prefixes"
                    yield EstateFinding("prefixes", Severity.ERROR, text, advice, (qmgr,), stream)


def _topics(crossing: Crossing, members: list[str]) -> Iterator[EstateFinding]:
    """Topics of the default stream of one broker that lie in a stream of another one (guide 6.1)."""
    streams = _by_stream(crossing, members)
    for stream, prefixes in sorted(streams.items()):
        for prefix in sorted(prefixes):
            first = prefix.split("/", 1)[0]
            mixed: dict[str, list[str]] = {}
            for qmgr in members:
                if prefix and first in crossing.surveys[qmgr].levels:
                    inside = [
                        topic for topic in crossing.topics(qmgr) if topic == prefix or topic.startswith(f"{prefix}/")
                    ]
                    if inside:
                        mixed[qmgr] = inside
            if mixed:
                count = sum(map(len, mixed.values()))
                example = next(iter(mixed.values()))[0]
                text = (
                    f"{count} topics of the default stream of {some(mixed)} lie below {prefix}, the topic string of "
                    f"stream {stream}: {example!r} for example. They would become topics of the stream"
                )
                advice = "give the stream another topic string in [migration] prefixes"
                yield EstateFinding("topics", Severity.WARNING, text, advice, tuple(mixed), stream)


def _objects(crossing: Crossing, members: list[str]) -> Iterator[EstateFinding]:
    """Topic objects of one name and different topic strings: in a cluster one of them hides the other."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for qmgr in members:
        survey = crossing.surveys[qmgr]
        for name, topic_string in survey.objects.items():
            if name not in survey.streams:
                found[name][topic_string].append(qmgr)
    for name, strings in sorted(found.items()):
        if len(strings) > 1:
            each = "; ".join(f"{string or '(root)'} on {some(qmgrs)}" for string, qmgrs in sorted(strings.items()))
            text = f"topic object {name} has several topic strings in one network: {each}"
            qmgrs = tuple(qmgr for named in strings.values() for qmgr in named)
            advice = "rename one of them before the objects are clustered"
            yield EstateFinding("names", Severity.WARNING, text, advice, qmgrs)


def some(qmgrs: Collection[str], most: int = _SHOWN) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(qmgrs) - most} more" if len(qmgrs) > most else ""
    return ", ".join(islice(qmgrs, most)) + more


_OF_CONCERN = frozenset({Outcome.LOST, Outcome.CHANGED, Outcome.REFUSED})


@dataclass(frozen=True, slots=True)
class EstateOverview:
    """records: in the order of waves. waves: of each queue manager. findings: collisions, errors first.

    prefixes: of each stream, one or several topic strings. proposed: for streams that collide.
    """

    records: tuple[Record, ...]
    waves: Mapping[str, int]
    findings: tuple[EstateFinding, ...]
    prefixes: Mapping[str, tuple[str, ...]]
    proposed: Mapping[str, str]

    @property
    def sums(self) -> Sums:
        """Of all brokers that were planned."""
        return total(record.sums for record in self.records)

    def by_state(self) -> dict[BrokerState, tuple[int, Sums]]:
        """For each state how many brokers have it, and their items; together these are all brokers and all items."""
        found = {}
        for state in BrokerState:
            there = [record.sums for record in self.records if record.state is state]
            found[state] = (len(there), total(there))
        return found

    @property
    def needs_a_person(self) -> bool:
        """Whether something is lost, changed in meaning, refused or collides."""
        return any(finding.severity is not Severity.INFO for finding in self.findings) or any(
            record.plan and (record.outcome in _OF_CONCERN or record.said) for record in self.records
        )


def overview(estate: Estate, records: Iterable[Record]) -> EstateOverview:
    """The overview of brokers with these records."""
    known = {record.qmgr: record for record in records}
    waves = {each.name: each.wave for each in estate.queue_managers}
    ordered = sorted(known.values(), key=lambda record: waves[record.qmgr])

    @lru_cache(maxsize=4)
    def topics(qmgr: str) -> tuple[str, ...]:
        return tuple(unpacked(BrokerFiles(estate.directory, qmgr).plan(known[qmgr].plan) / TOPICS))

    crossing = Crossing(
        {record.qmgr: record.survey for record in ordered if record.plan},
        estate.networks(),
        {each.name: each.parent for each in estate.queue_managers},
        estate.migration.prefixes,
        topics,
    )
    is_planned_whole = all(record.plan for record in ordered)
    findings = [
        each for each in estate_findings(crossing) if is_planned_whole or not each.text.startswith("[migration]")
    ]
    return EstateOverview(
        tuple(ordered),
        waves,
        tuple(findings),
        prefixes_in_use(crossing),
        proposed_prefixes(crossing, findings),
    )


def as_json(found: EstateOverview) -> dict[str, Any]:
    """Everything as JSON values."""
    return {
        "queue_managers": [
            record.model_dump(mode="json", exclude={"survey"}) | {"wave": found.waves[record.qmgr]}
            for record in found.records
        ],
        "states": {
            str(state): {"brokers": brokers, **sums.model_dump()} for state, (brokers, sums) in found.by_state().items()
        },
        "sums": found.sums.model_dump(),
        "findings": [finding_json(finding) for finding in found.findings],
        "prefixes": {stream: list(each) for stream, each in found.prefixes.items()},
        "proposed_prefixes": dict(found.proposed),
    }


def finding_json(finding: EstateFinding) -> dict[str, Any]:
    """A collision as JSON values."""
    return {
        "kind": finding.kind,
        "severity": str(finding.severity),
        "text": finding.text,
        "advice": finding.advice,
        "queue_managers": list(finding.qmgrs),
        "stream": finding.stream or None,
    }


_SHOWN_FINDINGS: Final = 40
_SHOWN_LINES: Final = 10
_MANY: Final = 40
_COLUMNS: Final = ("items", "migrated", "changed", "refused", "left")
_TO_LOOK_AT: Final = {
    Outcome.REFUSED: "refused",
    Outcome.LOST: "losses",
    Outcome.CHANGED: "other meanings",
    Outcome.WARNED: "warnings",
    Outcome.DONE: "nothing",
}


def of_overview(found: EstateOverview, chosen: Iterable[EstateQueueManager], with_collisions: bool) -> Iterator[str]:
    """The lines of *found*. chosen: the brokers that have a line; the sums are those of all."""
    return map(one_line, _of_overview(found, {each.name for each in chosen}, with_collisions))


def of_result(result: BrokerResult) -> Iterator[str]:
    """What a person must read of one broker's result."""
    if result.refused:
        yield f"{result.qmgr}: {printable(result.refused)}"
    for line in result.said[:_SHOWN_LINES]:
        yield f"{result.qmgr}: {printable(line)}"
    if len(result.said) > _SHOWN_LINES:
        yield f"{result.qmgr}: and {len(result.said) - _SHOWN_LINES} more; estate status --json has them all"


def of_reports(records: Iterable[Record], directory: Path) -> Iterator[str]:
    """Where a person reads what is lost or otherwise than before; nothing if there is no such thing.

    directory: the estate's.
    """
    looked_at = [record for record in records if record.plan and record.outcome is not Outcome.DONE]
    if looked_at:
        first = looked_at[0]
        yield (
            f"{some([record.qmgr for record in looked_at])}: read "
            f"{directory / WORK / first.qmgr / PLANS / f'{first.plan:04}'}/report.html"
            f"{' and those of the others' * (len(looked_at) > 1)}; estate pack has the losses of all by application"
        )


def of_checkpoints(records: Iterable[Record], names: set[str]) -> Iterator[str]:
    """Which checkpoint follows on which live queue managers; *names*: those that were chosen."""
    following: dict[str, list[str]] = {}
    for record in records:
        if record.checkpoint and record.qmgr in names:
            following.setdefault(record.checkpoint, []).append(record.qmgr)
    yield from (f"next: checkpoint {checkpoint} of {some(qmgrs)}" for checkpoint, qmgrs in following.items())


def _of_overview(found: EstateOverview, names: set[str], with_collisions: bool) -> Iterator[str]:
    width = max(13, *(len(record.qmgr) for record in found.records))
    numbers = "".join(f"{word:>10}" for word in _COLUMNS)
    yield f"{'wave':>4}  {'queue manager':{width}}  {'state':10}{numbers}  to look at"
    chosen = [record for record in found.records if record.qmgr in names]
    for _, group in groupby(chosen, partial(_alike, found, len(chosen) > _MANY)):
        first, *others = group
        who = f"{len(others) + 1} brokers" if others else first.qmgr
        place = f"{found.waves[first.qmgr]:>4}  {who:{width}}  {first.state:10}"
        yield f"{place}{_numbers(total(each.sums for each in (first, *others)))}{_outcome(first)}"
    yield f"{'':>4}  {f'all {len(found.records)}':{width}}  {'':10}{_numbers(found.sums)}"
    yield ""
    for state, (brokers, sums) in found.by_state().items():
        if brokers:
            yield f"{'':>4}  {brokers:>{width}}  {state:10}{_numbers(sums)}"
    if with_collisions:
        yield from _collisions(found)


def _alike(found: EstateOverview, is_folded: bool, record: Record) -> tuple[object, ...]:
    """What the brokers of one line have in common: of many, those without anything to look at share lines."""
    if is_folded and record.plan and record.outcome is Outcome.DONE and not record.checkpoint and not record.said:
        return found.waves[record.qmgr], record.state
    return (record.qmgr,)


def _collisions(found: EstateOverview) -> Iterator[str]:
    if found.prefixes:
        odd = {stream: each for stream, each in found.prefixes.items() if each != (stream,)}
        yield ""
        yield f"Topic strings of {len(found.prefixes)} streams: the stream's name" + (", but for:" if odd else "")
        yield from (f"  {stream}: {', '.join(each) or '(root)'}" for stream, each in odd.items())
    if not found.findings:
        return
    yield ""
    yield f"Collisions across brokers: {len(found.findings)}"
    for finding in found.findings[:_SHOWN_FINDINGS]:
        yield f"  {finding.severity}, {finding.kind}: {printable(finding.text)}"
        yield f"      {finding.advice}"
    if len(found.findings) > _SHOWN_FINDINGS:
        yield f"  ... and {len(found.findings) - _SHOWN_FINDINGS} more: --json has them all"
    if found.proposed:
        yield ""
        yield "Topic strings that are free on all brokers, for estate.toml:"
        yield ""
        yield "  [migration.prefixes]"
        yield from (f'  "{stream}" = "{prefix}"' for stream, prefix in found.proposed.items())


def _numbers(sums: Sums) -> str:
    return "".join(f"{getattr(sums, word):>10,}" for word in _COLUMNS)


def _outcome(record: Record) -> str:
    follows = f", next: {record.checkpoint}" if record.checkpoint else ""
    return f"  {_TO_LOOK_AT[record.outcome]}{follows}" if record.plan else ""
