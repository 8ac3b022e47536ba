"""Which subscriptions are not the same in both versions, by which rule, and since which command.

If only one version delivers a publication, the cause can be an earlier registration that only this version accepted.
The same is true for a command that finds a subscription in one version and not in the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from commands.replay.differences.commands_compared import of_answers, of_command, of_metatopics
from commands.replay.differences.model import FINDING
from commands.replay.differences.observe import ComparedMessage
from commands.replay.differences.subscribers import ForSubscriber, Key, identity_of, key_of, same
from streams.operations import Effect, SubscriptionAdded, SubscriptionAltered, SubscriptionRemoved
from streams.subscriptions import Subscription

NO_RULE = (FINDING, "no rule explains it")


@dataclass(frozen=True, slots=True)
class Cause:
    """Why the versions differ, and since which command."""

    rule: str
    why: str
    since: int


@dataclass
class Causes:
    """The subscriptions of one queue manager that are not the same in both versions."""

    known: dict[Key, Cause] = field(default_factory=dict)
    _old: dict[Key, Subscription] = field(default_factory=dict)
    _new: dict[Key, Subscription] = field(default_factory=dict)
    _healed: set[Key] = field(default_factory=set)

    def begin(self, old: Iterable[Subscription], new: Iterable[Subscription]) -> None:
        """Start from what the setup defined."""
        self._old = {key_of(subscription): subscription for subscription in old}
        self._new = {key_of(subscription): subscription for subscription in new}

    def learn(self, step: ComparedMessage) -> list[tuple[Key, Cause | None]]:
        """Note what a command did to subscriptions. Returns the new causes; None where there is no longer one.

        A cause without effect any more stays known while the command that ended it is explained.
        """
        for key in self._healed:
            self.known.pop(key, None)
        self._healed.clear()
        touched = {*_applied(step.old.outcome.effects, self._old), *_applied(step.new.outcome.effects, self._new)}
        learnt: list[tuple[Key, Cause | None]] = []
        for key in touched:
            if same(self._old.get(key), self._new.get(key)):
                if key in self.known:
                    self._healed.add(key)
                    learnt.append((key, None))
            elif key not in self.known:
                self.known[key] = self._origin(step, key)
                learnt.append((key, self.known[key]))
        return learnt

    def explained(self, step: ComparedMessage) -> Cause | None:
        """Why the versions process a command differently: its own rule, or the result of an earlier command."""
        found = of_command(step)
        if found is None:
            earlier = self._of_name(step)
            if earlier is not None:
                return earlier
            found = of_answers(step)
        return self._of_identity(step) if found is None else Cause(*found, step.arrival.seq)

    def _origin(self, step: ComparedMessage, key: Key) -> Cause:
        """The cause for a subscription that is no longer the same: the rule of the earlier cause that led to it."""
        found = of_metatopics((key[4],))
        cause = self.explained(step) if found is None else None
        if cause is not None:
            found = cause.rule, cause.why
        return Cause(*(found or NO_RULE), step.arrival.seq)

    def _of_name(self, step: ComparedMessage) -> Cause | None:
        """The cause for the subscription that the command names."""
        command = step.new.outcome.command or step.old.outcome.command
        if not isinstance(command, ForSubscriber) or command.sub_name is None:
            return None
        for subscription in (step.old.named, step.new.named):
            if subscription is not None and (cause := self._before(step, key_of(subscription))) is not None:
                return cause
        return None

    def _of_identity(self, step: ComparedMessage) -> Cause | None:
        """The causes for subscriptions that the command means without a name."""
        for side in (step.old, step.new):
            for subscription in (*side.touched, *(delivery.subscription for copy in side.copies for delivery in copy)):
                if (cause := self._before(step, key_of(subscription))) is not None:
                    return cause
        command = step.new.outcome.command or step.old.outcome.command
        if not isinstance(command, ForSubscriber):
            return None
        identity = identity_of(command, step.arrival, step.qmgr)
        for key in self.known:
            meant = key[:3] == identity and (key[4] in command.topics or not command.topics)
            if meant and (cause := self._before(step, key)) is not None:
                return cause
        return None

    def _before(self, step: ComparedMessage, key: Key) -> Cause | None:
        cause = self.known.get(key)
        return cause if cause is not None and cause.since < step.arrival.seq else None


def _applied(effects: Iterable[Effect], to: dict[Key, Subscription]) -> Iterator[Key]:
    for effect in effects:
        match effect:
            case SubscriptionAdded(subscription):
                to[key_of(subscription)] = subscription
                yield key_of(subscription)
            case SubscriptionAltered(before, after):
                to.pop(key_of(before), None)
                to[key_of(after)] = after
                yield from (key_of(before), key_of(after))
            case SubscriptionRemoved(subscription):
                to.pop(key_of(subscription), None)
                yield key_of(subscription)
