"""A plan that is not complete: the legacy state, the target with the steps so far, the steps, and the remarks.

Every definition of a plan is made at once on a scratch copy of the target's objects. Therefore planning refuses
whatever the target's own rules would refuse, and later parts see what earlier ones have made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from commands.broker.objects import Definition, LocalQueue, Objects, is_object_name, kind_of, state_of
from commands.mqsc.administration import SubIds
from migrate.ledger import Ledger, Reason, Severity
from migrate.legacy_state import Key, LegacyState
from migrate.plan import PlanOptions, Step, Store, TopicGrant
from migrate.target import Target
from streams.subscriptions import Subscription
from streams.topic_objects import DEFAULT_STREAM

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
