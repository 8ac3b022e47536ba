"""Who is connected to whom: parent and child in a hierarchy, all members of a cluster with each other (guide 3.2).

Loops do no harm: fingerprints end them (guide 3.4). But subscribers get some publications twice, so they are reported.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum


@dataclass(frozen=True, slots=True)
class Link:
    """A connection of one queue manager. neighbour: the other one. cluster: "" for parent and child."""

    neighbour: str
    cluster: str = ""

    def __str__(self) -> str:
        return f"{self.neighbour} ({f'cluster {self.cluster}' if self.cluster else 'hierarchy'})"


class Relation(StrEnum):
    """What another queue manager is to this one: TYPE of DISPLAY PUBSUB, which does not show members of clusters."""

    PARENT = "PARENT"
    CHILD = "CHILD"
    MEMBER = "MEMBER"


class NeighbourStatus(StrEnum):
    """STATUS of DISPLAY PUBSUB.

    STARTING: the parent has not answered yet. REFUSED: the parent does not want this queue manager as its child.
    """

    STARTING = "STARTING"
    ACTIVE = "ACTIVE"
    REFUSED = "REFUSED"


class Refresh(IntEnum):
    """What a neighbour is to be sent again.

    PROXIES: all proxy subscriptions. ALL: also what is retained here and it has subscribed to; it may have lost some.
    """

    NOTHING = 0
    PROXIES = 1
    ALL = 2


@dataclass(frozen=True, slots=True)
class Position:
    """A queue manager's place in the network. parent: "" for none."""

    qmgr: str
    parent: str = ""
    clusters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Topology:
    """The queue managers of a network, in the order of the file.

    A parent that is not among them connects nothing.
    """

    positions: tuple[Position, ...]

    @property
    def clusters(self) -> Mapping[str, tuple[str, ...]]:
        """The members of each cluster, in order."""
        members: dict[str, list[str]] = {}
        for each in self.positions:
            for cluster in dict.fromkeys(each.clusters):
                members.setdefault(cluster, []).append(each.qmgr)
        return {cluster: tuple(qmgrs) for cluster, qmgrs in members.items()}

    @property
    def hierarchy(self) -> tuple[tuple[str, str], ...]:
        """Each child with its parent, every pair once."""
        known = {each.qmgr for each in self.positions}
        pairs: dict[frozenset[str], tuple[str, str]] = {}
        for each in self.positions:
            if each.parent in known and each.parent != each.qmgr:
                pairs.setdefault(frozenset((each.qmgr, each.parent)), (each.qmgr, each.parent))
        return tuple(pairs.values())

    def links(self) -> Mapping[str, tuple[Link, ...]]:
        """The links of each queue manager: hierarchy first, then clusters."""
        links: dict[str, list[Link]] = {each.qmgr: [] for each in self.positions}
        for child, parent in self.hierarchy:
            links[child].append(Link(parent))
            links[parent].append(Link(child))
        for cluster, members in self.clusters.items():
            for qmgr in members:
                links[qmgr] += [Link(other, cluster) for other in members if other != qmgr]
        return {qmgr: tuple(found) for qmgr, found in links.items()}

    def networks(self) -> tuple[tuple[str, ...], ...]:
        """Queue managers whose publications can reach each other, in order."""
        links = self.links()
        found: list[tuple[str, ...]] = []
        seen: set[str] = set()
        for each in self.positions:
            if each.qmgr not in seen:
                reached = _reached(each.qmgr, links)
                seen |= reached
                found.append(tuple(other.qmgr for other in self.positions if other.qmgr in reached))
        return tuple(found)

    def loops(self) -> tuple[tuple[str, ...], ...]:
        """Paths on which a publication can come back: each ends where it begins.

        A parent and a child that are also in one cluster are no loop: a publication goes to each once (guide 3.3.4).
        Nor are clusters that overlap, since nothing is sent on from cluster to cluster (guide 3.2.1.3).
        """
        edges: dict[str, list[str]] = {each.qmgr: [] for each in self.positions}
        for members in self.clusters.values():
            for qmgr in members:
                edges[qmgr] += [other for other in members if other != qmgr]
        loops = []
        for child, parent in self.hierarchy:
            if parent in edges[child]:
                continue  # in one cluster
            path = _path(child, parent, edges)
            if path:
                loops.append((*path, child))
            edges[child].append(parent)
            edges[parent].append(child)
        return tuple(loops)


def _reached(start: str, links: Mapping[str, Sequence[Link]]) -> set[str]:
    reached, waiting = {start}, [start]
    while waiting:
        for link in links[waiting.pop()]:
            if link.neighbour not in reached:
                reached.add(link.neighbour)
                waiting.append(link.neighbour)
    return reached


def _path(start: str, end: str, edges: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """A shortest path; empty where there is none."""
    before: dict[str, str] = {start: ""}
    waiting = deque([start])
    while waiting:
        at = waiting.popleft()
        if at == end:
            path = [at]
            while before[path[-1]]:
                path.append(before[path[-1]])
            return tuple(reversed(path))
        for other in edges[at]:
            if other not in before:
                before[other] = at
                waiting.append(other)
    return ()
