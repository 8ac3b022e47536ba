"""What MQSC works on: one queue manager's definitions and topic space, in memory, and the depth of its queues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol

from commands.broker.authority import GroupsOf, no_groups
from commands.broker.connections import Listeners, NoListeners
from commands.broker.counts import Counting
from commands.broker.descriptor import message_id
from commands.broker.objects import Objects, QueueManager
from commands.network.cluster_topics import Repository, RepositoryEntry, give_copies
from commands.network.topology import Relation
from streams.topic_space import TopicSpace


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


# Identifiers that commands make end in a count from 1. Those of MQSC have this bit set, so they are never equal.
_MQSC_COUNT: Final = 0x800000


class QueueAdmin(Protocol):
    """The messages on queues, as far as MQSC is concerned. Part of the unit of work that keeps the changes.

    counters: what is counted of queues, topics and subscriptions; None where nothing is.
    """

    @property
    def counters(self) -> Counting | None: ...

    def depth(self, name: str) -> int:
        """How many messages are on the local queue; 0 for one that has never held any."""

    def clear(self, name: str) -> int:
        """Take all messages off the local queue; returns how many there were."""

    def has_uncommitted(self, name: str) -> bool:
        """Whether the unit of work of a program has messages of the local queue, put or got."""

    def in_doubt(self) -> Sequence[tuple[int, bytes]]:
        """The branches of global transactions that are prepared: numbers and XIDs."""


class NoMessages:
    """Empty queues: those of a queue manager during its setup."""

    counters: Counting | None = None

    def depth(self, name: str) -> int:
        return 0

    def clear(self, name: str) -> int:
        return 0

    def has_uncommitted(self, name: str) -> bool:
        return False

    def in_doubt(self) -> Sequence[tuple[int, bytes]]:
        return ()


@dataclass(slots=True)
class Administration:
    """One queue manager to administer.

    topic_space shares its topic objects with objects. now: UTC, the moment of all that is done. new_sub_id: 24 bytes,
    unique in the queue manager, above those of all subscriptions that there are. user: the administrator's user id.
    groups_of: the groups of a user, for authority records. neighbours: other queue managers. listeners: of programs.
    """

    objects: Objects
    topic_space: TopicSpace
    now: datetime
    queues: QueueAdmin
    new_sub_id: Callable[[], bytes]
    user: str = ""
    groups_of: GroupsOf = no_groups
    neighbours: Neighbours = field(default_factory=Alone)
    listeners: Listeners = field(default_factory=NoListeners)

    @classmethod
    def of(
        cls,
        objects: Objects,
        topic_space: TopicSpace,
        now: datetime,
        queues: QueueAdmin | None = None,
        user: str = "",
        groups_of: GroupsOf = no_groups,
    ) -> Administration:
        """An administration whose subscriptions come after all those that *topic_space* has."""
        new_sub_id = SubIds(objects.qmgr.name, topic_space)
        return cls(objects, topic_space, now, queues or NoMessages(), new_sub_id, user, groups_of)

    def repository(self) -> Repository:
        """What is known of the clusters that the queue manager is in."""
        return Repository(RepositoryEntry.of(self.objects), self.neighbours.repository())

    def renew_copies(self) -> None:
        """Have the copies of cluster topics that count now that the queue manager's own definitions have changed."""
        give_copies(self.objects, self.neighbours.repository())


class SubIds:
    """Identifiers for subscriptions made by MQSC: in the form of the broker's, above all that are in use."""

    def __init__(self, qmgr: str, topic_space: TopicSpace) -> None:
        self._qmgr = qmgr
        prefix = message_id(qmgr, 0, 0)[:16]
        last = max(
            (s.sub_id for s in topic_space.subscriptions() if s.sub_id.startswith(prefix)), default=prefix + bytes(8)
        )
        self._seq = int.from_bytes(last[16:21], "big")
        self._n = max(int.from_bytes(last[21:], "big"), _MQSC_COUNT)

    def __call__(self) -> bytes:
        """The next identifier."""
        self._n += 1
        return message_id(self._qmgr, self._seq, self._n)
