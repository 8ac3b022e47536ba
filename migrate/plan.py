"""A plan: what a migration will do, decided completely before anything is done.

Steps are in the order in which they work: queues, topic objects, namelists, then subscriptions, retained publications,
authorities, and the queue manager's own attributes last (guide 2.5.4, 6.5.4, 7.4.1). Both targets, the embedded queue
manager and the files for IBM MQ, are made from the same steps.

The outcome of a migration in one word, for a script that migrates many brokers.

    refused    a run would be, or was, refused: nothing is changed
    lost       something of the broker's state is not in the new state, or is lost unless a person acts
    changed    everything is there, but something has another meaning: a subscription, a topic, an authority
    warned     everything is there and means the same; a person should read the warnings
    done       there is nothing to read

The first that applies holds.

A plan that is not complete: the legacy state, the target with the steps so far, the steps, and the remarks.

Every definition of a plan is made at once on a scratch copy of the target's objects. Therefore planning refuses
whatever the target's own rules would refuse, and later parts see what earlier ones have made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from commands.broker.identity import NAME_SEPARATOR
from commands.broker.objects import Definition, LocalQueue, Objects, is_object_name, kind_of, state_of
from commands.mqsc.administration import SubIds
from migrate.ledger import Fate, Fates, Ledger, Reason, Severity, Sums, Verdict
from migrate.legacy_state import Key, LegacyRetained, LegacyState, LegacySubscription, Unread
from migrate.target import Target
from streams.operations import RetainedPublication
from streams.subscriptions import Subscription
from streams.topic_objects import DEFAULT_STREAM


class Tool(StrEnum):
    """Which migration: of version 6's own broker, or of Event Broker and Message Broker."""

    STRMQBRK = "strmqbrk"
    MIGMBBRK = "migmbbrk"


class Phase(StrEnum):
    """How much is done: nothing, topic objects for ACLs (guide 8, initial phase), or everything."""

    REHEARSE = "rehearse"
    INITIAL = "initial"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Store:
    """Define an object, or replace it. anew: it has to be deleted first, for its topic string changes."""

    definition: Definition
    keys: tuple[Key, ...] = ()
    replaces: bool = False
    anew: bool = False


@dataclass(frozen=True, slots=True)
class AddSubscription:
    """Make a subscription. number: in the log. replaces: the one that is there under its name or identity."""

    subscription: Subscription
    number: int
    replaces: Subscription | None = None

    @property
    def key(self) -> Key:
        """The item that it is made of."""
        return (LegacySubscription.kind, self.number)

    @property
    def becomes(self) -> str:
        """What the item is in the new state."""
        made = self.subscription
        what = f"subscription {made.name}" if made.name else "a subscription without a name"
        return f"{what} to {made.topic_string}"


@dataclass(frozen=True, slots=True)
class KeepRetained:
    """Store a retained publication on a topic; the migration delivers it to nobody."""

    retained: RetainedPublication
    number: int
    stream: str
    sub_point: str | None = None
    replaces: bool = False

    @property
    def key(self) -> Key:
        """The item that it is made of."""
        return (LegacyRetained.kind, self.number)

    @property
    def becomes(self) -> str:
        """What the item is in the new state."""
        return f"the retained publication of {self.retained.topic_string}"


Step = Store | AddSubscription | KeepRetained


@dataclass(frozen=True, slots=True)
class Visibility:
    """A subscription that sees other topics than before: gained and lost, the first few of each."""

    key: Key
    pattern: str
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    gained_count: int = 0
    lost_count: int = 0


@dataclass(frozen=True, slots=True)
class Collision:
    """Different topics that are one in the new topic tree. each: stream, subscription point and topic."""

    topic_string: str
    each: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class TopicGrant:
    """What an access control list says of a principal on a topic object. granted, denied: of ``SUB`` and ``PUB``."""

    object_name: str
    principal: str
    granted: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    is_everybody: bool = False


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """All that will be done, and what becomes of every item of *state*.

    options: as the log shows them. warnings: what concerns the migration as a whole. security: the security command
    file, line by line. grants: what its commands grant, and what it says of denials.
    """

    tool: Tool
    phase: Phase
    qmgr: str
    now: datetime
    state: LegacyState
    options: tuple[str, ...]
    steps: tuple[Step, ...]
    fates: Fates
    warnings: tuple[Reason, ...] = ()
    visibility: tuple[Visibility, ...] = ()
    collisions: tuple[Collision, ...] = ()
    security: tuple[str, ...] = ()
    fingerprint: str = ""
    base_version: int = 0
    grants: tuple[TopicGrant, ...] = ()

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many items have each verdict."""
        sums = self.sums
        reported = sums.refused + sums.left
        return {Verdict.MIGRATED: sums.migrated, Verdict.CHANGED: sums.changed, Verdict.REPORTED: reported}

    @property
    def sums(self) -> Sums:
        """How many items there are, and what becomes of them. Raises MigrationError if an item is in no sum."""
        return Sums.of((fate.result for fate in self.fates), sum(1 for _ in self.state.items()))

    @property
    def warning_count(self) -> int:
        """How many warnings and errors there are, of items and of the whole."""
        reasons = [reason for fate in self.fates for reason in fate.reasons] + list(self.warnings)
        return sum(reason.severity is not Severity.INFO for reason in reasons)

    @property
    def subscriptions(self) -> tuple[AddSubscription, ...]:
        """The steps that make subscriptions, by number."""
        return tuple(step for step in self.steps if isinstance(step, AddSubscription))

    @property
    def retained(self) -> tuple[KeepRetained, ...]:
        """The steps that keep publications."""
        return tuple(step for step in self.steps if isinstance(step, KeepRetained))

    @property
    def definitions(self) -> tuple[Store, ...]:
        """The steps that define objects."""
        return tuple(step for step in self.steps if isinstance(step, Store))

    def problem_counts(self) -> Counter[str]:
        """How often each known problem and difference is named."""
        found: Counter[str] = Counter()
        for fate in self.fates:
            for reason in fate.reasons:
                found.update(reason.ids)
        for reason in self.warnings:
            found.update(reason.ids)
        return found


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What an administrator chooses."""

    parent: str | None = None  # -p
    overwrite: bool = False  # -f of strmqbrk, -o of migmbbrk
    separator: str = NAME_SEPARATOR  # between a subscription's name and its stream
    prefixes: dict[str, str] = field(default_factory=dict)  # of streams whose own name will not do (guide 6.1)
    shown: tuple[str, ...] = ()  # as the log shows the options
    accept_unread: bool = False  # migrate without what could not be read
    from_qmgr: str | None = None  # the queue manager whose state is migrated, if an administrator named it
    accept_changed: bool = False  # the state may differ from that of the phase before


class Outcome(StrEnum):
    """See the module."""

    REFUSED = "refused"
    LOST = "lost"
    CHANGED = "changed"
    WARNED = "warned"
    DONE = "done"


def outcome_of(plan: MigrationPlan) -> Outcome:
    """The outcome of *plan* when it is applied."""
    if any(reason.is_refusal for reason in plan.warnings):
        return Outcome.REFUSED
    is_changed = bool(plan.visibility or plan.collisions)
    for fate in plan.fates:
        if fate.severity is Severity.INFO or _is_remark(plan, fate):
            continue
        if fate.verdict is Verdict.REPORTED or fate.severity is Severity.ERROR:
            return Outcome.LOST
        is_changed = is_changed or fate.verdict is Verdict.CHANGED
    if is_changed:
        return Outcome.CHANGED
    return Outcome.WARNED if plan.warning_count else Outcome.DONE


def _is_remark(plan: MigrationPlan, fate: Fate) -> bool:
    """Whether it is about a piece of a source that was no state: nothing is lost with it."""
    kind, number = fate.key
    return kind == Unread.kind and not plan.state.unread[number - 1].is_state


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
