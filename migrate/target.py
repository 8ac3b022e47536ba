"""The target queue manager before the migration: definitions, subscriptions, retained publications.

The objects of a queue manager of IBM MQ, from the script of all its objects that dmpmqcfg or saveqmgr writes.

Queues, topics, namelists, subscriptions, authorities and the queue manager's attributes are read. Channels and all
other objects are skipped, with a note; the names of remote queues are kept, because no local queue can have them. If a
command about an object that is read fails, this is an error: the plan would depend on an object that does not exist.

A plan that is not complete: the legacy state, the target with the steps so far, the steps, and the remarks.

Every definition of a plan is made at once on a scratch copy of the target's objects. Therefore planning refuses
whatever the target's own rules would refuse, and later parts see what earlier ones have made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from commands.broker.objects import Definition, LocalQueue, Objects, QueueManager, is_object_name, kind_of, state_of
from commands.broker.selection import Selection
from commands.mqsc.administration import Administration, SubIds
from commands.mqsc.execute import execute
from commands.mqsc.script import parse
from commands.qmgr.store.port import LoadedState
from commands.qmgr.store.reading import definitions_in
from migrate.ledger import Ledger, Reason, Severity
from migrate.legacy_state import Key, LegacyState
from migrate.plan import PlanOptions, Step, Store, TopicGrant
from rfh2.errors import MigrationError
from rfh2.message import encode
from streams.operations import Effect, RetainedPublication, RetainedStored, SubscriptionAdded
from streams.subscriptions import Subscription
from streams.topic_objects import DEFAULT_STREAM
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

    @property
    def effects(self) -> list[Effect]:
        """What gives a queue manager with the same definitions its subscriptions and retained publications."""
        kept = [RetainedStored(each) for each in self.retained.values()]
        return [*(SubscriptionAdded(each) for each in self.subscriptions), *kept]

    @property
    def definitions(self) -> dict[tuple[str, str], Definition]:
        """All definitions, by kind and name."""
        return definitions_of(self.objects)

    def scratch(self) -> tuple[Objects, TopicSpace]:
        """A copy to plan on: objects of its own, and a topic space with what there is."""
        objects = copied(self.objects)
        space = TopicSpace(objects.topics, Selection())
        space.restore(self.subscriptions, self.retained.values())
        return objects, space


def definitions_of(objects: Objects) -> dict[tuple[str, str], Definition]:
    """All definitions, by kind and name."""
    return {(kind_of(each), each.name): each for each in definitions_in(objects)}


def copied(objects: Objects) -> Objects:
    """The same definitions, apart."""
    copy = Objects(objects.qmgr)
    theirs = definitions_of(objects)
    for kind, name in [key for key in definitions_of(copy) if key not in theirs]:
        copy.delete(kind, name)
    for definition in theirs.values():
        copy.put(definition)
    return copy


def same_definitions(one: Objects, other: Objects) -> Iterable[str]:
    """What differs between two sets of definitions, a line each; nothing where they are the same."""
    mine, yours = ({key: state_of(each) for key, each in definitions_of(objects).items()} for objects in (one, other))
    for key in sorted(mine.keys() | yours.keys()):
        if mine.get(key) != yours.get(key):
            yield f"{key[0]} {key[1]}: {mine.get(key)} against {yours.get(key)}"


_OTHER: Final = "it is another one, or only one of the two has it"


def same_state(one: Target, other: Target) -> Iterable[str]:
    """The same for all that two queue managers have."""
    yield from same_definitions(one.objects, other.objects)
    mine, yours = ({each.sub_id: each for each in target.subscriptions} for target in (one, other))
    for sub_id in mine.keys() | yours.keys():
        found = mine.get(sub_id)
        if found != yours.get(sub_id):
            yield f"subscription to {(found or yours[sub_id]).topic_string}: {_OTHER}"
    for topic in one.retained.keys() | other.retained.keys():
        if _kept(one.retained.get(topic)) != _kept(other.retained.get(topic)):
            yield f"retained publication on {topic}: {_OTHER}"


def _kept(retained: RetainedPublication | None) -> tuple[object, ...]:
    if retained is None:
        return ()
    kept = retained.publication
    return kept.message.mqmd, encode(kept.message), kept.published_at, kept.expires_at, kept.local


_TAKEN_OVER: Final = frozenset(
    {"QMGR", "QLOCAL", "QL", "QALIAS", "QA", "QMODEL", "QM", "TOPIC", "NAMELIST", "NL", "SUB"}
)
_DEFINING: Final = frozenset({"DEFINE", "ALTER"})
_REMOTE_QUEUE: Final = frozenset({"QREMOTE", "QR"})


def existing_target(qmgr: str, script: str, now: datetime) -> Target:
    """The queue manager that *script* defines. now: UTC.

    Raises MigrationError with the line, the command and IBM MQ's message where a command fails that should not.
    """
    objects = Objects(QueueManager(qmgr, psmode="COMPAT"))
    space = TopicSpace(objects.topics, Selection())
    administration = Administration.of(objects, space, now)
    passed_over: Counter[str] = Counter()
    remote_queues: set[str] = set()
    for statement in parse(script):
        answer = execute(statement, administration)
        command = statement.command
        if answer.ok:
            continue
        if command is None or (command.verb in _DEFINING and command.target in _TAKEN_OVER):
            said = " ".join(answer.lines)
            raise MigrationError(f"--existing, line {statement.line}: {statement.text}: {said}. Nothing was changed")
        if command.target in _REMOTE_QUEUE and command.verb in _DEFINING:
            remote_queues.add("" if command.name is None else command.name.text)
        passed_over[f"{command.verb} {command.target}"] += 1
    notes = tuple(
        f"--existing: {count} {what} passed over, which the migration does not depend on"
        for what, count in passed_over.items()
    )
    retained = {publication.topic_string: publication for publication in space.retained_publications()}
    return Target(objects, space.subscriptions(), retained, remote_queues=frozenset(remote_queues), passed_over=notes)


MAX_NAMELIST_NAMES = 256


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stream or a subscription point lies in the topic space; the default ones at the root, ""."""

    prefix: str
    object_name: str = ""


@dataclass(slots=True)
class Draft:
    """What planning works on.

    streams, sub_points: where each lies; those that do not exist have no place. theirs: the subscriptions that the
    target had before, by name, or those without one by ``same_registration``. now: UTC. progress: called with how
    many more items are done.
    """

    state: LegacyState
    target: Target
    options: PlanOptions
    now: datetime
    ledger: Ledger
    objects: Objects
    new_sub_id: Callable[[], bytes]
    progress: Callable[[int], None]
    steps: list[Step] = field(default_factory=list)
    warnings: list[Reason] = field(default_factory=list)
    streams: dict[str, Place] = field(default_factory=lambda: {DEFAULT_STREAM: Place("")})
    sub_points: dict[str, Place] = field(default_factory=dict)
    security: list[str] = field(default_factory=list)
    grants: list[TopicGrant] = field(default_factory=list)
    theirs: dict[str | tuple[object, ...], Subscription] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        state: LegacyState,
        target: Target,
        options: PlanOptions,
        now: datetime,
        progress: Callable[[int], None] | None = None,
    ) -> Draft:
        """An empty plan."""
        objects, space = target.scratch()
        ids = SubIds(objects.qmgr.name, space)
        draft = cls(state, target, options, now, Ledger(state), objects, ids, progress or (lambda _more: None))
        for subscription in target.subscriptions:
            name = subscription.name
            draft.theirs[name if name is not None else same_registration(subscription)] = subscription
        return draft

    @property
    def qmgr(self) -> str:
        """The target's name."""
        return self.objects.qmgr.name

    def warn(self, text: str, *ids: str, severity: Severity = Severity.WARNING) -> None:
        """Something about the migration as a whole."""
        self.warnings.append(Reason(text, severity, ids))

    def refuse(self, text: str, *ids: str) -> None:
        """What a run is refused for, in a rehearsal."""
        self.warnings.append(Reason(f"a run is refused: {text}", Severity.ERROR, ids, is_refusal=True))

    def define(self, definition: Definition, *keys: Key, anew: bool = False) -> None:
        """A step that stores *definition*; none where the target has exactly this. Raises CommandError."""
        before = self._existing(definition)
        if before is not None and state_of(before) == state_of(definition):
            return
        if anew:
            self.objects.delete(kind_of(definition), definition.name)
        self.objects.put(definition)
        self.steps.append(Store(definition, keys, replaces=before is not None, anew=anew))

    def ensure_queue(self, name: str, *keys: Key, persistent: bool = False) -> bool:
        """Make a queue of that name if none exists; whether there is one now."""
        if name in self.objects.queues or name in self.objects.aliases:
            return True
        if not is_object_name(name):
            return False
        self.define(LocalQueue(name, def_persistent=persistent), *keys)
        return True

    def alter_qmgr(self, **changes: object) -> None:
        """A step that gives the queue manager these attributes."""
        self.define(replace(self.objects.qmgr, **changes))  # type: ignore[arg-type]

    def _existing(self, definition: Definition) -> Definition | None:
        kind, name = kind_of(definition), definition.name
        if kind == "qmgr":
            return self.objects.qmgr
        if kind == "topic":
            return self.objects.topics.get(name)
        found: Definition | None = self.objects.of_kind(kind).get(name)
        return found


def same_registration(subscription: Subscription) -> tuple[object, ...]:
    """What two subscriptions without names have in common if they are one registration, made twice."""
    return (
        subscription.traditional_identity,
        subscription.topic_string,
        subscription.selector,
        subscription.user,
        subscription.stream,
        subscription.sub_point,
    )
