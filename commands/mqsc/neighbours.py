"""The port to other queue managers: a parent and children (guide 3.2.2), and members of clusters (guide 3.2.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from commands.broker.objects import QueueManager
from commands.network.neighbours import Refresh, Relation
from commands.network.repository import RepositoryEntry
from commands.qmgr.store.neighbours import NeighbourRecord, NeighbourRecords
from commands.qmgr.store.port import KnowsNeighbours, UnitOfWork


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A queue manager that this one is directly connected with. status: STATUS of DISPLAY PUBSUB.

    cluster: of a member; "" for parent and child.
    """

    qmgr: str
    relation: Relation
    status: str
    cluster: str = ""


class Neighbours(Protocol):
    """Those of one queue manager."""

    def of(self, qmgr: QueueManager) -> tuple[Neighbour, ...]:
        """The parent, then the children by name. qmgr: the definition, with PARENT as it is now."""

    def members(self) -> tuple[Neighbour, ...]:
        """The other members of each cluster, by name and cluster, as far as a command processor has met them."""

    def refresh_proxies(self) -> int:
        """Send all proxy subscriptions to each of them again (guide 8.6); returns to how many."""

    def refresh_cluster(self, cluster: str) -> int:
        """Send all members of *cluster* all proxy subscriptions, and what is retained for them, again.

        Returns to how many.
        """

    def repository(self) -> Sequence[RepositoryEntry]:
        """What is known of other queue managers that share a cluster, by name."""


class Alone:
    """The neighbours of a queue manager that keeps up no links: the parent that was defined, if any."""

    def of(self, qmgr: QueueManager) -> tuple[Neighbour, ...]:
        return (Neighbour(qmgr.parent, Relation.PARENT, "INACTIVE"),) if qmgr.parent else ()

    def members(self) -> tuple[Neighbour, ...]:
        return ()

    def refresh_proxies(self) -> int:
        return 0

    def refresh_cluster(self, cluster: str) -> int:
        return 0

    def repository(self) -> Sequence[RepositoryEntry]:
        return ()


def neighbours_of(unit: UnitOfWork) -> Neighbours:
    """Those of the queue manager that *unit* works on."""
    return RecordedNeighbours(unit.neighbours) if isinstance(unit, KnowsNeighbours) else Alone()


def recorded(qmgr: QueueManager, records: Iterable[NeighbourRecord]) -> tuple[Neighbour, ...]:
    """The parent that the definition *qmgr* names, and the children of *records*."""
    known = {each.qmgr: each for each in records if not each.cluster}
    shown = []
    if qmgr.parent:
        record = known.get(qmgr.parent)
        # Without a record, no command processor has worked since PARENT was altered.
        is_parent = record is not None and record.relation is Relation.PARENT
        status = record.status.value if record is not None and is_parent else "INACTIVE"
        shown.append(Neighbour(qmgr.parent, Relation.PARENT, status))
    children = (each for each in known.values() if each.relation is Relation.CHILD)
    return (*shown, *(Neighbour(each.qmgr, each.relation, each.status.value) for each in children))


def recorded_members(records: Iterable[NeighbourRecord]) -> tuple[Neighbour, ...]:
    """The members of clusters among *records*."""
    return tuple(
        Neighbour(each.qmgr, each.relation, each.status.value, each.cluster) for each in records if each.cluster
    )


class RecordedNeighbours:
    """Those that an embedded queue manager has recorded. records: as one unit of work sees them."""

    def __init__(self, records: NeighbourRecords) -> None:
        self._records = records

    def of(self, qmgr: QueueManager) -> tuple[Neighbour, ...]:
        return recorded(qmgr, self._records.all())

    def members(self) -> tuple[Neighbour, ...]:
        return recorded_members(self._records.all())

    def refresh_proxies(self) -> int:
        return self._records.ask_refresh(Refresh.PROXIES)

    def refresh_cluster(self, cluster: str) -> int:
        return self._records.ask_refresh(Refresh.ALL, cluster=cluster)

    def repository(self) -> Sequence[RepositoryEntry]:
        return self._records.repository()
