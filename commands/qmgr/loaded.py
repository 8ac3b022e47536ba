"""The broker of a queue manager in memory, loaded from the store, with everything derived from it.

Call ``forget`` where it may contain changes that were backed out: the next unit of work loads it again. It is also
loaded again if another process has changed the state version.

Connects a topic space with the link to a topic tree elsewhere (``commands.qmgr.link_port``).

Before an operation, the link gives the tree's retained publications that the topic space does not know. After a
command, it reads the trace and gives the messages for the tree; they are put in the unit of work of the command.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from commands.broker.authority import GroupsOf, RecordedAuthority
from commands.broker.budget import Meter
from commands.broker.core import BrokerCore
from commands.broker.exit_values import PublishExit
from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM, PREDEFINED, LocalQueue, Objects
from commands.broker.outcome import Arrival, Outcome, Trace
from commands.broker.puts import Outgoing, PutKind
from commands.broker.selection import Selection
from commands.headers.response import Completion
from commands.model import Publish
from commands.qmgr.flow_messages import INTER_QMGR_QUEUES
from commands.qmgr.link_port import TopicLink, TreeNotAskedError, came_from_tree
from commands.qmgr.live_network import LiveNetwork
from commands.qmgr.store.neighbours import KnowsNeighbours, NeighbourRecords
from commands.qmgr.store.port import PutsRemotely, StoredMessage, UnitOfWork
from commands.templates.parts import Parts, ShapeKey, bodies_of, parts_of
from commands.templates.templates import PublicationTemplates
from rfh2.errors import CommandError
from rfh2.rfh2 import FIXED_LENGTH
from streams.mapping import collisions
from streams.operations import Delivery, Effect, Operation, PublishToTopic
from streams.topic_objects import QUEUE_NAMELIST, SUB_POINT_NAMELIST
from streams.topic_space import TopicSpace

_link_log = logging.getLogger("qpubsub.live")


class LinkedTree:
    """The link of one topic space. may_wait: whether it may wait for the tree inside the unit of work.

    forms: how the tree gets publications like one before.
    """

    def __init__(self, space: TopicSpace, link: TopicLink, may_wait: bool) -> None:
        self._space, self._link, self._may_wait = space, link, may_wait
        self.forms = TreeForms()

    def before(self, operation: Operation, now: datetime) -> Sequence[Effect]:
        """Store in the topic space the retained publications of the tree that *operation* needs.

        Returns the effects. Raises TreeNotAskedError before anything is changed.
        """
        effects: list[Effect] = []
        for learnt in self._learnt(operation, now):
            try:
                done = self._space.apply(learnt, now)
            except CommandError as error:
                # The tree decides about these: a topic object here may forbid what native programs retain there.
                _link_log.warning("a native retained publication is passed over: %s", error)
                continue
            # These are not delivered now: subscribers got them, or will get them, when they were published.
            effects += [effect for effect in done if not isinstance(effect, Delivery)]
        return effects

    def _learnt(self, operation: Operation, now: datetime) -> Sequence[Operation]:
        while True:
            try:
                return self._link.before(operation, self._space, now)
            except TreeNotAskedError:
                if not self._may_wait:
                    raise
                self._link.fetch()

    def prefetch(self, operation: Operation) -> None:
        """Announce *operation*, so that the link can ask the tree about it together with others."""
        self._link.prefetch(operation)

    def after(self, trace: Trace, *, is_native: bool) -> tuple[Outgoing, ...]:
        """The messages for the tree that one arrival causes. is_native: whether it came from there.

        A publication that came from the tree never goes back.
        """
        self._link.expired(trace.expired)
        outgoing: list[Outgoing] = []
        for traced in trace.operations:
            operation = traced.operation
            if not is_native:
                outgoing += self._link.after(operation, traced.effects)
            elif isinstance(operation, PublishToTopic):
                self._link.published(operation.retain)
            else:
                self._link.after(operation, traced.effects)
        return tuple(outgoing)

    def repeated(self, *, retain: bool) -> None:
        """Note a publication that a template answered."""
        self._link.published(retain)

    def ended(self, effects: Sequence[Effect]) -> None:
        """Note subscriptions that ended without a command, with their queues."""
        self._link.expired(effects)


# Forms of the messages for a linked topic tree: how the tree gets publications like one before.
#
# The link makes its message from the broker's outcome (``commands.qmgr.link_port``). Like puts for subscribers, it has
# parts that are the same for all publications of one shape on one topic, and the rest, which passes as it is
# (``commands.templates.parts``):
#
#     descriptor │ MQRFH2, fixed part │ folders of the link, in place of psc │ other folders, data
#
# A form is learned from one such message, and kept only if it makes that message again, byte for byte. There is none
# for publications with a PubTime or a SeqNum, which the link writes in a folder of its own, for those that expire,
# and where another folder has a name that the link uses.

_FIXED: Final = slice(12, FIXED_LENGTH)
_OF_LINKS: Final = (b"<qps", b"<mqps")
_MOST_FORMS: Final = 4_096
"""A form has some 2,000 bytes, and its key a few hundred."""


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of the messages for publications of one shape on one topic.

    begun: fixed part and folders of the link. The rest is that of the put.
    """

    begun: tuple[bytes, bytes]
    qmgr: str
    queue: str
    topic: str | None
    md: bytes


class TreeForms:
    """The forms of one link, for one state of the definitions."""

    def __init__(self) -> None:
        self._forms: dict[tuple[ShapeKey, bytes], _Form | None] = {}  # None: the tree gets nothing

    def answer(self, arrival: Arrival, parts: Parts | None) -> tuple[Outgoing, ...] | None:
        """The messages for the tree, if *arrival* is published; None where no form is known."""
        if parts is None or (parts.key, parts.topic) not in self._forms:
            return None
        form = self._forms[parts.key, parts.topic]
        if form is None:
            return ()
        if _has_folder_of_links(arrival.body, parts):
            return None
        (body,) = bodies_of(arrival.body, parts, [form.begun])
        return (Outgoing(PutKind.PUBLICATION, form.qmgr, form.queue, form.md, body, form.topic),)

    def learn(self, arrival: Arrival, outcome: Outcome, outgoing: Sequence[Outgoing]) -> None:
        """Learn from what the link made of *outcome*, where that is a publication on one topic."""
        if outcome.completion is not Completion.OK or not isinstance(outcome.command, Publish) or len(outgoing) > 1:
            return
        parts = parts_of(arrival)
        if parts is None or len(parts.texts) > 1 or _has_folder_of_links(arrival.body, parts):
            return
        if len(outcome.operations) != 1 or not isinstance(outcome.operations[0], PublishToTopic):
            return
        form = None
        for put in outgoing:
            tail = len(arrival.body) - parts.behind + len(parts.before)
            begun = put.body[_FIXED], put.body[FIXED_LENGTH : len(put.body) - tail]
            if put.expires_at is not None or bodies_of(arrival.body, parts, [begun]) != [put.body]:
                return
            form = _Form(begun, put.qmgr, put.queue, put.topic, put.md)
        if len(self._forms) >= _MOST_FORMS:
            self._forms.clear()
        self._forms[parts.key, parts.topic] = form


def _has_folder_of_links(body: bytes, parts: Parts) -> bool:
    others = parts.before + body[parts.behind : parts.length]
    return any(name in others for name in _OF_LINKS)


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
