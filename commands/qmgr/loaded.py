"""The broker of a queue manager in memory, loaded from the store, with everything derived from it.

Call ``forget`` where it may contain changes that were backed out: the next unit of work loads it again. It is also
loaded again if another process has changed the state version.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from commands.broker.authority import GroupsOf, RecordedAuthority
from commands.broker.budget import Meter
from commands.broker.core import BrokerCore
from commands.broker.exit_values import PublishExit
from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM, PREDEFINED, LocalQueue, Objects
from commands.broker.outcome import Arrival
from commands.broker.selection import Selection
from commands.qmgr.link_port import TopicLink, came_from_tree
from commands.qmgr.linked_tree import LinkedTree
from commands.qmgr.network.flow_messages import INTER_QMGR_QUEUES
from commands.qmgr.network.live_network import LiveNetwork
from commands.qmgr.store.messages import StoredMessage
from commands.qmgr.store.neighbours import NeighbourRecords
from commands.qmgr.store.port import KnowsNeighbours, PutsRemotely, UnitOfWork
from commands.templates.templates import PublicationTemplates
from streams.mapping import collisions
from streams.topic_objects import QUEUE_NAMELIST, SUB_POINT_NAMELIST
from streams.topic_space import TopicSpace

_log = logging.getLogger("qpubsub.processor")


class LiveQueues(dict[str, LocalQueue]):
    """The local queues of a queue manager; dynamic queues, which change no state version, are looked up each time.

    find: the present queue of a name. Iteration gives all queues but these.
    """

    def __init__(self, queues: Mapping[str, LocalQueue], find: Callable[[str], LocalQueue | None]) -> None:
        super().__init__({name: queue for name, queue in queues.items() if queue.definition_type == PREDEFINED})
        self._find = find

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and self._find(name) is not None)

    def __missing__(self, name: str) -> LocalQueue:
        found = self._find(name)
        if found is None:
            raise KeyError(name)
        return found

    def get(self, name: str, default: LocalQueue | None = None) -> LocalQueue | None:  # type: ignore[override]
        found = super().get(name)
        return (self._find(name) or default) if found is None else found


class _LookedError(Exception):
    pass


class LoadedBroker:
    """One processor's broker. meter: counts what each command uses. link: to a topic tree elsewhere.

    by_template: whether to use templates of publications. doubt: called where another process may have changed the
    state. logged: what was logged once, and is not logged again. publish_exit: called for each message for a
    subscriber. space: None before the first unit of work. tree: of the link. network: None where queues or topics are
    elsewhere.
    """

    def __init__(
        self,
        meter: Meter,
        groups_of: GroupsOf,
        link: TopicLink | None,
        by_template: bool,
        doubt: Callable[[], None],
        logged: set[str],
        publish_exit: PublishExit | None = None,
    ) -> None:
        self._meter, self._groups_of, self._link, self._exit = meter, groups_of, link, publish_exit
        self._doubt, self._logged = doubt, logged
        # An exit may answer otherwise for each message.
        self._may_use_templates = by_template and publish_exit is None
        self._broker: BrokerCore | None = None
        self._unit: UnitOfWork | None = None
        self._version = -1
        self.space: TopicSpace | None = None
        self.tree: LinkedTree | None = None
        self.network: LiveNetwork | None = None
        self._templates: PublicationTemplates | None = None

    @property
    def templates(self) -> PublicationTemplates | None:
        """The templates of publications; None where none apply, and while neighbours may have to get publications."""
        return None if self._has_neighbours else self._templates

    @property
    def _has_neighbours(self) -> bool:
        return self.network is not None and not self.network.is_alone

    @property
    def is_connected(self) -> bool:
        """Whether a link or neighbours have to know which subscriptions there are."""
        return self._link is not None or self._has_neighbours

    @property
    def changes(self) -> int:
        """A number that changes when the topic space changes."""
        return 0 if self.space is None else self.space.changes

    def forget(self) -> None:
        """Load again before the next use: the memory may differ from the store."""
        self._broker = None

    def is_at(self, version: int) -> None:
        """Note that the memory has the state of *version*: one unit of work changed both."""
        self._version = version

    def of(self, unit: UnitOfWork) -> BrokerCore:
        """The broker as *unit* sees its state. Raises StoreError."""
        self._unit = unit
        if self._broker is None or unit.state_version != self._version:
            self._broker = self._load(unit)
            self._version = unit.state_version
        return self._broker

    def _load(self, unit: UnitOfWork) -> BrokerCore:
        objects, subscriptions, retained = unit.load_state()
        self._doubt()
        if not isinstance(unit, PutsRemotely):
            objects.queues = LiveQueues(objects.queues, self._find)
        objects.is_gone = self._is_gone
        is_foreign = came_from_tree if self._link is not None and self._link.keeps_scope else None
        space = TopicSpace(objects.topics, Selection(), is_foreign=is_foreign)
        self.tree = None
        if self._link is not None:
            # If the queues are elsewhere, no program waits for this unit of work, and parts cannot be backed out.
            self.tree = LinkedTree(space, self._link, may_wait=not unit.has_savepoints)
            self._link.load(subscriptions, objects.topics)
        space.restore(subscriptions, retained, self.space)
        self.space = space
        return self._derive(unit, objects, space)

    def queues(self, unit: UnitOfWork) -> tuple[str, ...]:
        """The queues of commands and publications that are read now (guide 6.3, 3.7). PSMODE says which."""
        objects, network = self.of(unit).objects, self.network
        between = INTER_QMGR_QUEUES if network is not None and objects.qmgr.psmode != "DISABLED" else ()
        if objects.qmgr.psmode != "ENABLED":
            return between
        namelist = objects.namelists.get(QUEUE_NAMELIST)
        streams = namelist.names if namelist is not None else (DEFAULT_STREAM,)
        return (CONTROL_QUEUE, *streams, *between)

    def redefined(self, unit: UnitOfWork) -> None:
        """Definitions were changed both in memory and in *unit*: make again what depends on them.

        With a link or neighbours, or in a cluster, everything is loaded again.
        """
        if self._broker is None or self.space is None or self.is_connected or self._broker.objects.clusters:
            self.forget()
        else:
            self._broker = self._derive(unit, self._broker.objects, self.space)

    def _derive(self, unit: UnitOfWork, objects: Objects, space: TopicSpace) -> BrokerCore:
        self._log_collisions(objects)
        authority = RecordedAuthority(objects, self._groups_of)
        before = None if self.tree is None else self.tree.before
        broker = BrokerCore(
            objects, space, authority=authority, meter=self._meter, before=before, publish_exit=self._exit
        )
        knows = self._link is None and isinstance(unit, KnowsNeighbours)
        self.network = LiveNetwork(broker, self._records) if knows else None
        if self.network is None:
            given = [f"PARENT({objects.qmgr.parent})"] if objects.qmgr.parent else []
            for each in (*given, *(f"CLUSTER({cluster})" for cluster in objects.clusters)):
                self._log_once(f"{each} has no effect: the queues or the topic tree are elsewhere")
        # There are none if each put is recorded, goes into a queue manager elsewhere, or passes an exit.
        by_template = self._may_use_templates and not isinstance(unit, PutsRemotely)
        traced = self.tree is not None
        self._templates = PublicationTemplates(broker, effects=True, traced=traced) if by_template else None
        return broker

    def _records(self) -> NeighbourRecords:
        assert isinstance(self._unit, KnowsNeighbours)
        return self._unit.neighbours

    def _find(self, name: str) -> LocalQueue | None:
        assert self._unit is not None
        return self._unit.find_queue(name)

    def _is_gone(self, name: str) -> bool:
        assert self._unit is not None
        return self._unit.is_gone(name)

    def look_ahead(self, unit: UnitOfWork, most: int, arrival: Callable[[StoredMessage], Arrival]) -> None:
        """Announce up to *most* commands on the control queue to the link, so that it asks the tree only once."""
        broker, tree = self.of(unit), self.tree
        assert tree is not None
        with suppress(_LookedError), unit.savepoint():
            for message in _waiting(unit, most):
                for operation in broker.foreseen(arrival(message)):
                    tree.prefetch(operation)
            raise _LookedError  # all of them stay on the queue

    def _log_collisions(self, objects: Objects) -> None:
        """Log each error in the definitions of streams and subscription points once (guide 6.1)."""
        lists = objects.namelists
        for finding in collisions(lists.get(QUEUE_NAMELIST), lists.get(SUB_POINT_NAMELIST), objects.topics):
            self._log_once(finding.text)

    def _log_once(self, text: str) -> None:
        if text not in self._logged:
            self._logged.add(text)
            _log.warning("%s", text)


def _waiting(unit: UnitOfWork, most: int) -> Iterable[StoredMessage]:
    for _ in range(most):
        message = unit.get_next((CONTROL_QUEUE,))
        if message is None:
            return
        yield message
