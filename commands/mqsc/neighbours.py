"""The port to other queue managers: a parent and children (guide 3.2.2), and members of clusters (guide 3.2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from commands.broker.objects import QueueManager
from commands.network.repository import RepositoryEntry
from commands.network.topology import Relation


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
