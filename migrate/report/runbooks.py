"""The hierarchy that several brokers make up: who is whose parent, and what is wrong with it (guide 7.4, 6.5.7).

The runbook for migrating a version 6 hierarchy to version 7, one queue manager at a time (guide 7.4.1).

Runbooks that end in a publish/subscribe cluster: from a hierarchy (guide 7.4.2), from a collective (guide 8.6).

Topic objects of streams have to be defined on every queue manager of the cluster, each copy with CLUSTER: the queued
interface needs a local one. Other clustered topic objects are defined once, on the cluster topic host.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from migrate.checklist import document, in_code, plain
from migrate.legacy_state import LegacyState
from streams.topic_objects import ADMIN_STREAM, DEFAULT_STREAM

_SIGNIFICANT = 12


@dataclass(frozen=True, slots=True)
class Topology:
    """parents: each queue manager with its parent, "" for the root. streams: which named streams each has.
    claims: all parents that the states name. levels: the first levels of the topics of each default stream.
    """

    parents: dict[str, str] = field(default_factory=dict)
    streams: dict[str, tuple[str, ...]] = field(default_factory=dict)
    claims: dict[str, tuple[str, ...]] = field(default_factory=dict)
    levels: dict[str, frozenset[str]] = field(default_factory=dict)

    @property
    def roots(self) -> tuple[str, ...]:
        """Queue managers without a parent."""
        return tuple(qmgr for qmgr, parent in self.parents.items() if not parent)

    def children(self, qmgr: str) -> tuple[str, ...]:
        """Those that have *qmgr* as their parent."""
        return tuple(child for child, parent in self.parents.items() if parent == qmgr)

    def from_the_top(self) -> Iterator[tuple[str, int]]:
        """Every queue manager with its depth, a parent before its children; each once, loops included."""
        seen: set[str] = set()
        stack = [(root, 0) for root in reversed(self.roots)]
        while stack:
            qmgr, depth = stack.pop()
            if qmgr in seen:
                continue
            seen.add(qmgr)
            yield qmgr, depth
            stack += [(child, depth + 1) for child in reversed(self.children(qmgr))]
        yield from ((qmgr, 0) for qmgr in self.parents if qmgr not in seen)


@dataclass(frozen=True, slots=True)
class TopologyProblem:
    """One thing that is wrong. id: of the known problem."""

    id: str
    text: str


def topology_of(states: Iterable[LegacyState]) -> Topology:
    """What the states of several brokers say together. A neighbour of which no state is given is there too."""
    parents: dict[str, str] = {}
    streams: dict[str, tuple[str, ...]] = {}
    claims: dict[str, list[str]] = {}
    levels: dict[str, frozenset[str]] = {}
    for state in states:
        parents.setdefault(state.qmgr, "")
        own = [s.name for s in state.streams if s.name not in (DEFAULT_STREAM, ADMIN_STREAM)]
        streams[state.qmgr] = tuple(dict.fromkeys(own))
        levels[state.qmgr] = frozenset(topic.partition("/")[0] for topic in state.default_topics())
        for relation in state.relations:
            child, parent = (state.qmgr, relation.qmgr) if relation.role == "parent" else (relation.qmgr, state.qmgr)
            parents.setdefault(parent, "")
            claims.setdefault(child, [])
            if parent not in claims[child]:
                claims[child].append(parent)
    for child, named in claims.items():
        parents[child] = named[0]
    return Topology(parents, streams, {child: tuple(named) for child, named in claims.items()}, levels)


def check_topology(topology: Topology) -> list[TopologyProblem]:
    """Two parents, loops, names alike in what identifiers hold of them."""
    found = []
    for child, named in topology.claims.items():
        if len(named) > 1:
            found.append(TopologyProblem("P25", f"{child} has several parents: {', '.join(named)}"))
    for qmgr in topology.parents:
        if _loops(topology, qmgr):
            found.append(TopologyProblem("P25", f"{qmgr} is its own ancestor"))
    first: dict[str, str] = {}
    for qmgr in topology.parents:
        other = first.setdefault(qmgr[:_SIGNIFICANT], qmgr)
        if other != qmgr:
            found.append(
                TopologyProblem("P24", f"{qmgr} and {other} have their first {_SIGNIFICANT} characters in common")
            )
    return found


def _loops(topology: Topology, qmgr: str) -> bool:
    seen = set()
    at = topology.parents.get(qmgr, "")
    while at and at not in seen:
        if at == qmgr:
            return True
        seen.add(at)
        at = topology.parents.get(at, "")
    return False


def hierarchy_runbook(topology: Topology) -> str:
    """Markdown with the commands filled in."""
    return document(_lines(topology))


def _lines(topology: Topology) -> Iterator[str]:
    yield "# From a version 6 hierarchy to a version 7 hierarchy"
    yield ""
    yield "The hierarchy works all the time, some queue managers at version 6 and some at version 7, in any order."
    yield "All queue managers of one installation change together."
    yield ""
    yield "```"
    yield from (f"{'  ' * depth}{in_code(qmgr)}" for qmgr, depth in topology.from_the_top())
    yield "```"
    yield from findings(topology)
    for qmgr, _ in topology.from_the_top():
        parent = topology.parents.get(qmgr, "")
        yield ""
        yield f"## {plain(qmgr)}"
        yield ""
        name = in_code(qmgr)
        yield f"1. `strmqm {name}`: IBM MQ's queue manager, upgraded; PSMODE is COMPAT"
        yield f"2. `qpubsub strmqbrk -m {name} --rehearse --source ...`, and read its report"
        yield f"3. `qpubsub strmqbrk -m {name} --target files --out {name} -l psmigr.log --source ...`, then follow its"
        yield "   `checklist.md`, or send the files with `qpubsub apply`. An embedded queue manager in the place of IBM"
        yield f"   MQ's needs no files: `qpubsub strmqbrk -m {name} -l psmigr.log --source ...`, and no step 1"
        yield "4. read `psmigr.log`"
        yield "5. `DISPLAY QMGR PSMODE PARENT`: PSMODE(ENABLED)" + (
            f", PARENT({plain(parent)})" if parent else ", no parent"
        )
        neighbours = [n for n in (parent, *topology.children(qmgr)) if n]
        if neighbours:
            yield f"6. `DISPLAY PUBSUB TYPE(ALL)`: ACTIVE for {plain(', '.join(neighbours))}, once they are migrated"


def findings(topology: Topology) -> Iterator[str]:
    """What must be corrected first."""
    found = check_topology(topology)
    if not found:
        return
    yield ""
    yield "**First of all:**"
    yield ""
    yield from (f"- {finding.id}: {plain(finding.text)}" for finding in found)


_INTERBROKER: Final = (
    "SYSTEM.BROKER.INTERBROKER.QUEUE.1A",
    "SYSTEM.BROKER.INTERBROKER.QUEUE.1N",
    "SYSTEM.BROKER.INTERBROKER.QUEUE.1T",
    "SYSTEM.BROKER.CONTROL.QUEUE",
)
_AFTER: Final = (
    "SYSTEM.INTER.QMGR.CONTROL",
    "SYSTEM.INTER.QMGR.PUBS",
    "SYSTEM.INTER.QMGR.FANREQ",
    "SYSTEM.CLUSTER.TRANSMIT.QUEUE",
)


def cluster_runbook(topology: Topology, cluster: str, host: str | None = None) -> str:
    """A hierarchy to a cluster. host: the cluster topic host; the root of the hierarchy where none is given."""
    return document(_from_hierarchy(topology, cluster, host))


def collective_runbook(brokers: Mapping[str, str], cluster: str, connections: Mapping[str, str] | None = None) -> str:
    """A collective to a cluster. brokers: broker to queue manager. connections: queue manager to ``host(port)``."""
    return document(_from_collective(brokers, cluster, connections or {}))


def _from_hierarchy(topology: Topology, cluster: str, host: str | None) -> Iterator[str]:
    order = [qmgr for qmgr, _ in topology.from_the_top()]
    topic_host = host or (topology.roots or tuple(order) or ("?",))[0]
    yield f"# From a hierarchy to publish/subscribe cluster {plain(cluster)}"
    yield ""
    yield "Applications are stopped from step 3 to step 6. No publication that is on its way is lost."
    yield from findings(topology)
    yield ""
    yield "## 1 Migrate every queue manager to version 7"
    yield ""
    yield f"Queue managers: {plain(', '.join(order))}. See the runbook for the hierarchy."
    yield ""
    yield f"## 2 Put all of them into cluster {plain(cluster)}"
    yield ""
    yield "On each, until every queue manager is listed: `DISPLAY CLUSQMGR(*)`"
    yield ""
    yield "## 3 Stop applications, let work end"
    yield ""
    yield "Stop publishers. Do not inhibit the stream queues: they are needed for what is on its way. Then on each:"
    yield ""
    yield from _commands(order, "ALTER QMGR PSMODE(COMPAT)")
    yield ""
    yield "Wait until transmission queues and channels between them are empty."
    yield ""
    yield "## 4 Delete channels and transmission queues of the hierarchy"
    yield ""
    yield from _plumbing(topology)
    yield ""
    yield "## 5 Dissolve the hierarchy"
    yield ""
    yield from _commands(order, "ALTER QMGR PSMODE(ENABLED)")
    yield from _commands([qmgr for qmgr in order if topology.parents.get(qmgr)], "ALTER QMGR PARENT('')")
    yield ""
    yield "On each `DISPLAY PUBSUB TYPE(ALL)` shows TYPE(LOCAL) and nothing else."
    yield ""
    yield "## 6 Cluster the topics"
    yield ""
    yield from _stream_topics(topology, order, cluster)
    yield ""
    yield f"Other topics: define each once, on {plain(topic_host)}, near the root of its tree:"
    yield ""
    yield f"    {topic_host}: DEFINE TOPIC(...) TOPICSTR('...') CLUSTER('{cluster}')"
    yield ""
    yield "Applications on the default stream whose topics have no common root are hard to cluster: move them to a"
    yield "stream of their own. Clustering SYSTEM.BASE.TOPIC is a last resort."
    yield ""
    yield "## 7 Restart the applications"


def _stream_topics(topology: Topology, order: list[str], cluster: str) -> Iterator[str]:
    streams = sorted({stream for names in topology.streams.values() for stream in names})
    if not streams:
        yield "There are no named streams."
        return
    yield "Every stream's topic object is local on every queue manager, CLUSTER on each copy (P31). ALTER NAMELIST"
    yield "replaces the whole list: DISPLAY NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) first, add the names that it has."
    yield ""
    for qmgr in order:
        have = topology.streams.get(qmgr, ())
        for stream in streams:
            if stream in have:
                yield f"    {qmgr}: ALTER TOPIC('{stream}') CLUSTER('{cluster}')"
            elif stream in topology.levels.get(qmgr, ()):
                yield f"    {qmgr}: its default stream has topics below {stream}, which would be the stream's (P09)."
                yield f"    {qmgr}: Plan all again with another topic string for the stream: --prefix {stream}=..."
            else:
                yield f"    {qmgr}: DEFINE QLOCAL('{stream}') DEFPSIST(YES)"
                yield f"    {qmgr}: DEFINE TOPIC('{stream}') TOPICSTR('{stream}') WILDCARD(BLOCK) CLUSTER('{cluster}')"
        missing = [each for each in streams if each not in have and each not in topology.levels.get(qmgr, ())]
        if missing:
            names = ["SYSTEM.BROKER.DEFAULT.STREAM", "SYSTEM.BROKER.ADMIN.STREAM", *have, *missing]
            listed = ", ".join(f"'{name}'" for name in names)
            yield f"    {qmgr}: ALTER NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) NAMES({listed})"


def _plumbing(topology: Topology) -> Iterator[str]:
    pairs = [(child, parent) for child, parent in topology.parents.items() if parent]
    if not pairs:
        yield "There are none."
        return
    yield "Channel names are not part of the broker's state: put yours in the place of the angle brackets."
    yield ""
    for child, parent in pairs:
        for here, there in ((child, parent), (parent, child)):
            channel = f"<channel from {here} to {there}>"
            yield f"    {here}: STOP CHANNEL({channel}) MODE(QUIESCE)"
            yield f"    {here}: DELETE CHANNEL({channel})"
            yield f"    {there}: DELETE CHANNEL({channel})"
            yield f"    {here}: DELETE QLOCAL(<transmission queue to {there}>)"


def _from_collective(brokers: Mapping[str, str], cluster: str, connections: Mapping[str, str]) -> Iterator[str]:
    qmgrs = list(brokers.values())
    repositories = qmgrs[:2]
    yield f"# From a collective to publish/subscribe cluster {plain(cluster)}"
    yield ""
    yield "All brokers of the collective migrate together."
    yield ""
    yield "1. Stop all publish/subscribe applications; let what is on its way be processed."
    yield f"2. `DISPLAY QUEUE(*) CURDEPTH` shows 0 for {', '.join(_INTERBROKER)},"
    yield "   for transmission queues and for the input queues of message flows, on each queue manager."
    yield f"3. Upgrade the queue managers: {plain(', '.join(qmgrs))}. Then `ALTER QMGR PSMODE(COMPAT)` on each."
    yield "4. Delete manually defined channels and transmission queues between them. A rollback has to make them again."
    yield f"5. Make cluster {plain(cluster)}, with {plain(' and '.join(repositories))} as full repositories:"
    yield ""
    for qmgr in repositories:
        yield f"       {qmgr}: ALTER QMGR REPOS('{cluster}')"
    for qmgr in qmgrs:
        own = connections.get(qmgr, "hostname(port)")
        repository = next((r for r in repositories if r != qmgr), qmgr)
        theirs = connections.get(repository, "hostname(port)")
        yield (
            f"       {qmgr}: DEFINE CHANNEL('TO.{qmgr}') CHLTYPE(CLUSRCVR) TRPTYPE(TCP) CONNAME('{own}') "
            f"CLUSTER('{cluster}')"
        )
        yield f"       {qmgr}: START CHANNEL('TO.{qmgr}')"
        yield (
            f"       {qmgr}: DEFINE CHANNEL('TO.{repository}') CHLTYPE(CLUSSDR) TRPTYPE(TCP) CONNAME('{theirs}') "
            f"CLUSTER('{cluster}')"
        )
        yield f"       {qmgr}: START CHANNEL('TO.{repository}')"
    yield ""
    yield "6. Cluster the root on each queue manager; or, where every application uses subscription points, their topic"
    yield "   objects alone, once, on the cluster topic host (guide 6.2):"
    yield ""
    yield from (f"       {qmgr}: ALTER TOPIC(SYSTEM.BASE.TOPIC) CLUSTER('{cluster}')" for qmgr in qmgrs)
    yield ""
    yield f"7. Wait; `DISPLAY CLUSQMGR(*)` shows {plain(', '.join(qmgrs))} on each."
    yield "8. Migrate each broker:"
    yield ""
    for broker, qmgr in brokers.items():
        for phase in ("-r", "-t", "-c -o"):
            yield f"       qpubsub migmbbrk {phase} -b {broker} -m {qmgr} --source ..."
    yield ""
    yield "9. `REFRESH QMGR TYPE(PROXYSUB)` on each. After a rollback and another run begin again from here."
    yield "10. Check `DISPLAY SUB(*) SUBTYPE(PROXY)`, `DISPLAY TPSTATUS('#') RETAINED`, and depth 0 of"
    yield f"    {', '.join(_AFTER)}."
    yield "11. `ALTER QMGR PSMODE(ENABLED)` on each; restart the applications."


def _commands(qmgrs: list[str], command: str) -> Iterator[str]:
    yield from (f"    {qmgr}: {command}" for qmgr in qmgrs)
