"""The target queue manager before the migration: definitions, subscriptions, retained publications."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from commands.broker.objects import Objects, QueueManager, definition_of, kind_of, state_of
from commands.broker.selection import Selection
from commands.qmgr.store.port import LoadedState
from commands.qmgr.store.reading import definitions_in
from streams.operations import RetainedPublication
from streams.subscriptions import Subscription
from streams.topic_space import TopicSpace


@dataclass(frozen=True, slots=True)
class Target:
    """What is there already.

    version: the state's number in an embedded queue manager's store, 0 elsewhere. remote_queues: names that definitions
    of remote queues have, which no local queue can have. passed_over: what a script defines that is no part of
    publish/subscribe, for a person.
    """

    objects: Objects
    subscriptions: tuple[Subscription, ...] = ()
    retained: Mapping[str, RetainedPublication] = field(default_factory=dict)
    version: int = 0
    remote_queues: frozenset[str] = frozenset()
    passed_over: tuple[str, ...] = ()

    @classmethod
    def fresh(cls, qmgr: str) -> Target:
        """A queue manager that was upgraded from version 6 and has nothing of publish/subscribe yet (guide 6.3)."""
        return cls(Objects(QueueManager(qmgr, psmode="COMPAT")))

    @classmethod
    def loaded(cls, state: LoadedState, version: int) -> Target:
        """An embedded queue manager's state."""
        objects, subscriptions, retained = state
        return cls(objects, tuple(subscriptions), {r.topic_string: r for r in retained}, version)

    def scratch(self) -> tuple[Objects, TopicSpace]:
        """A copy to plan on: objects of its own, and a topic space with what there is."""
        objects = copied(self.objects)
        space = TopicSpace(objects.topics, Selection())
        space.restore(self.subscriptions, self.retained.values())
        return objects, space


def copied(objects: Objects) -> Objects:
    """The same definitions, apart."""
    copy = Objects(objects.qmgr)
    theirs = definitions_in(objects)
    keep = {(kind_of(d), d.name) for d in theirs}
    for default in definitions_in(copy):
        if (kind_of(default), default.name) not in keep:
            copy.delete(kind_of(default), default.name)
    for definition in theirs:
        copy.put(definition)
    return copy


def same_definitions(one: Objects, other: Objects) -> Iterable[str]:
    """What differs between two sets of definitions, a line each; nothing where they are the same."""
    mine, yours = ({(kind_of(d), d.name): state_of(d) for d in definitions_in(objects)} for objects in (one, other))
    for key in sorted(mine.keys() | yours.keys()):
        if mine.get(key) != yours.get(key):
            yield f"{key[0]} {key[1]}: {mine.get(key)} against {yours.get(key)}"


__all__ = ["Target", "copied", "definition_of", "same_definitions"]
