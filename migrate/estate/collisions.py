"""What brokers do to each other: names, topics and topic strings that are apart today and meet after the migration.

Publications go from broker to broker within a network, by hierarchy or cluster. There a stream must have the same topic
string on every broker, no two streams may lie one in the other, and no program may use topics of a stream on the
default stream of another broker (guide 6.1, 7.4). A stream that collides gets a proposal, which is free everywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from commands.broker.objects import ADMIN_STREAM, DEFAULT_STREAM
from migrate.estate.records import Survey
from migrate.ledger import Severity
from migrate.legacy_state import LegacyState, Relation, Source
from migrate.report.runbooks import check_topology, topology_of

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
