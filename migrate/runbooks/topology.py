"""The hierarchy that several brokers make up: who is whose parent, and what is wrong with it (guide 7.4, 6.5.7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from migrate.legacy_state import LegacyState
from streams.topic_objects import ADMIN_STREAM, DEFAULT_STREAM

_SIGNIFICANT = 12


@dataclass(frozen=True, slots=True)
class Topology:
    """parents: each queue manager with its parent, "" for the root. streams: which named streams each has."""

    parents: dict[str, str] = field(default_factory=dict)
    streams: dict[str, tuple[str, ...]] = field(default_factory=dict)
    claims: dict[str, tuple[str, ...]] = field(default_factory=dict)

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
    for state in states:
        parents.setdefault(state.qmgr, "")
        own = [s.name for s in state.streams if s.name not in (DEFAULT_STREAM, ADMIN_STREAM)]
        streams[state.qmgr] = tuple(dict.fromkeys(own))
        for relation in state.relations:
            child, parent = (state.qmgr, relation.qmgr) if relation.role == "parent" else (relation.qmgr, state.qmgr)
            parents.setdefault(parent, "")
            claims.setdefault(child, [])
            if parent not in claims[child]:
                claims[child].append(parent)
    for child, named in claims.items():
        parents[child] = named[0]
    return Topology(parents, streams, {child: tuple(named) for child, named in claims.items()})


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
