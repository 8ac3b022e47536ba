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
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Final

from commands.broker.identity import NAME_SEPARATOR
from commands.broker.objects import (
    Definition,
    Objects,
    is_object_name,
)
from migrate.ledger import Fate, Fates, Reason, Severity, Sums, Verdict
from migrate.legacy_state import Key, LegacyRetained, LegacyState, LegacySubscription, Unread
from streams.operations import RetainedPublication
from streams.subscriptions import Subscription
from streams.topic_objects import Namelist

# The files of a plan for IBM MQ (``plan_files``).
QUEUES: Final = "1-queues.mqsc"
OBJECTS: Final = "2-objects.mqsc"
AUTHORITIES: Final = "3-authorities.mqsc"
AUTHORITY_COMMANDS: Final = "3-authorities.sh"
RETAINED: Final = "4-retained-{:02}.qload"
SUBSCRIPTIONS: Final = "5-subscriptions.mqsc"
REGISTRATIONS: Final = "6-registrations.qload"
ENABLE: Final = "7-enable.mqsc"
NOT_CARRIED: Final = "not-carried.jsonl"
CHECKLIST: Final = "checklist.md"


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


# How a queue manager records that it was migrated: a namelist, committed with everything else.
#
# QPUBSUB.MIGRATION.<tool> has four names: the phase that was done, when, the fingerprint of what was migrated, and the
# broker that it came from. It is an ordinary object: DISPLAY NAMELIST shows it, MQSC defines it on a real queue
# manager, and undoing the migration removes it.
PREFIX: Final = "QPUBSUB.MIGRATION."


@dataclass(frozen=True, slots=True)
class Marker:
    """What the namelist says. broker: "" where an earlier release made it, which did not say."""

    tool: Tool
    phase: Phase
    at: str
    fingerprint: str
    broker: str = ""

    def namelist(self) -> Namelist:
        """The namelist that says it."""
        description = f"qpubsub {self.tool}: {self.phase} phase done {self.at}"
        names = (self.phase.upper(), self.at, self.fingerprint, *([broker_as_name(self.broker)] if self.broker else []))
        return Namelist(name_of(self.tool), names, description)

    def is_of(self, broker: str) -> bool:
        """Whether it records a migration of *broker*; true if it names no broker."""
        return self.broker in ("", broker, broker_as_name(broker))


def broker_as_name(broker: str) -> str:
    """*broker* as a namelist can hold it: a name that no object can have becomes 40 hexadecimal digits."""
    return broker if is_object_name(broker) else sha256(broker.encode()).hexdigest()[:40]


def is_marker(definition: Definition) -> bool:
    """Whether *definition* is one of these namelists."""
    return isinstance(definition, Namelist) and definition.name.startswith(PREFIX)


def marker_of(objects: Objects, tool: Tool) -> Marker | None:
    """The record of *tool*, if there is one that can be read."""
    return read_marker(objects.namelists.get(name_of(tool)), tool)


def name_of(tool: Tool) -> str:
    """The name of the namelist that records a migration by *tool*."""
    return f"{PREFIX}{tool.upper()}"


def read_marker(found: Namelist | None, tool: Tool) -> Marker | None:
    """What the namelist says; None where there is none, or it cannot be read."""
    if found is None or len(found.names) not in (3, 4):
        return None
    phase, at, fingerprint, *broker = found.names
    try:
        return Marker(tool, Phase(phase.lower()), at, fingerprint, *broker)
    except ValueError:
        return None


def moment(now: datetime) -> str:
    """*now* as an object name, to the microsecond: two runs of one second are two."""
    return f"{now:%Y%m%dT%H%M%S%fZ}"
