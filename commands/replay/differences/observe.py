"""The same message put to both versions, and what each made of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from commands.broker import Arrival, Broker, Outcome
from commands.context import Semantics
from commands.copies import copies
from commands.objects import Objects, QueueManager
from commands.puts import Outgoing, PutKind
from commands.selection import selects
from streams.operations import Delivery, Effect, Operation
from streams.subscriptions import Subscription
from streams.topic_space import TopicSpace


class ObservingSpace(TopicSpace):
    """A topic space that keeps which publication went to which subscription."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.deliveries: list[Delivery] = []

    def apply(self, operation: Operation, now: datetime) -> list[Effect]:
        """As it is; deliveries are kept."""
        effects = super().apply(operation, now)
        self.deliveries += [effect for effect in effects if isinstance(effect, Delivery)]
        return effects

    def take(self) -> tuple[Delivery, ...]:
        """The deliveries since the last time."""
        taken = tuple(self.deliveries)
        self.deliveries.clear()
        return taken


@dataclass(frozen=True, slots=True)
class Observed:
    """What one version made of a message.

    deliveries: which publications went to which subscriptions. copies: those of each publication that was put, in
    order; of several that a subscriber is told at once, not all.
    """

    outcome: Outcome
    deliveries: tuple[Delivery, ...]
    copies: tuple[tuple[Delivery, ...], ...]

    @classmethod
    def of(cls, outcome: Outcome, space: TopicSpace, semantics: Semantics) -> Observed:
        """From an outcome, just after the message. Deliveries that a refused command led to were never put."""
        assert isinstance(space, ObservingSpace)
        deliveries = space.take()
        put = any(put.kind is PutKind.PUBLICATION for put in outcome.puts)
        return cls(outcome, deliveries, tuple(copies(deliveries, semantics))) if put else cls(outcome, (), ())

    @property
    def publications(self) -> tuple[Outgoing, ...]:
        """The publications that it put, one for each of ``copies``."""
        return tuple(put for put in self.outcome.puts if put.kind is PutKind.PUBLICATION)

    @property
    def answers(self) -> tuple[Outgoing, ...]:
        """Responses and dead letters."""
        return tuple(put for put in self.outcome.puts if put.kind is not PutKind.PUBLICATION)


@dataclass(frozen=True, slots=True)
class Step:
    """One message, and what version 6 (old) and version 7 (new) made of it."""

    arrival: Arrival
    qmgr: str
    old: Observed
    new: Observed


class Pair:
    """A queue manager in both versions. setup: MQSC for both. Raises QPubSubError where the setup fails."""

    def __init__(self, qmgr: str, setup: str = "") -> None:
        self._qmgr = qmgr
        self._old, self._new = (_broker(qmgr, setup, semantics) for semantics in (Semantics.V6, Semantics.V7))

    def subscriptions(self) -> tuple[tuple[Subscription, ...], tuple[Subscription, ...]]:
        """Those of version 6, and those of version 7."""
        return self._old.space.subscriptions(), self._new.space.subscriptions()

    def step(self, arrival: Arrival) -> Step:
        """Put one message to both."""
        old = Observed.of(self._old.process(arrival), self._old.space, Semantics.V6)
        new = Observed.of(self._new.process(arrival), self._new.space, Semantics.V7)
        return Step(arrival, self._qmgr, old, new)


def _broker(qmgr: str, setup: str, semantics: Semantics) -> Broker:
    objects = Objects(QueueManager(qmgr))
    space = ObservingSpace(objects.topics, selects, semantics.value)
    return Broker(qmgr, setup, semantics.value, objects=objects, space=space)
