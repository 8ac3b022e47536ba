"""The neighbours that a queue manager of a home has recorded, as DISPLAY PUBSUB and REFRESH see them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from commands.broker.objects import QueueManager
from commands.mqsc.administration import Alone, Neighbour, Neighbours
from commands.network.neighbours import Refresh, Relation
from commands.network.repository import RepositoryEntry
from commands.qmgr.store.neighbours import NeighbourRecord, NeighbourRecords
from commands.qmgr.store.port import KnowsNeighbours, UnitOfWork


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
