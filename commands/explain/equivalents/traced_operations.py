"""Captured commands, run on a queue manager in memory, with the operations that they lead to.

State builds up across a capture: a RegSub that finds its subscription is an alteration, a DeregSub takes away what an
earlier RegSub made. Operations are taken where the topic space carries them out: they are those of the live processor.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from commands.broker.broker import EPOCH, Arrival, Broker, Outcome
from commands.broker.context import Semantics
from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM, Objects, QueueManager
from commands.broker.selection import selects
from commands.explain.reading import command_of
from commands.model import Command
from rfh2.captured import CapturedMessage
from rfh2.explain.reading import read_message
from rfh2.message import Message
from streams.operations import (
    AlterSubscription,
    ClearRetained,
    Effect,
    Operation,
    PublishToTopic,
    RequestRetained,
    RetainedCleared,
    Subscribe,
    Unsubscribe,
)
from streams.subscriptions import Subscription
from streams.topic_space import TopicSpace


@dataclass(frozen=True, slots=True)
class Scene:
    """What a dialect needs to know beside an operation.

    qmgr: the queue manager's name. now: when it is carried out, UTC. before: the subscription as it was, if there was
    one. cleared: the topics whose retained publications it took away.
    """

    qmgr: str
    now: datetime
    before: Subscription | None = None
    cleared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One operation, and its scene."""

    operation: Operation
    scene: Scene


@dataclass(frozen=True, slots=True)
class Occasion:
    """One captured message and what it came to. command: None where it carries none that can be parsed."""

    captured: CapturedMessage
    message: Message
    command: Command | None
    steps: tuple[Step, ...]
    outcome: Outcome


class Stage:
    """A queue manager in memory for captures; its state is what the messages so far have made of it.

    setup: MQSC text, run first. semantics: ``v7`` or ``v6``. Raises QPubSubError where *setup* fails.
    """

    def __init__(self, qmgr: str = "QM1", setup: str = "", semantics: str = "v7") -> None:
        objects = Objects(QueueManager(qmgr))
        self.space = _RecordingSpace(objects, Semantics(semantics))
        self.broker = Broker(qmgr, setup, semantics, objects=objects, space=self.space)
        self._now = EPOCH
        self._arrivals = 0

    def play(self, captured: CapturedMessage) -> Occasion:
        """Process one message.

        One without a time comes when the last one came; one without a queue is put where its command belongs.
        """
        self._now = captured.time if captured.time is not None else self._now
        partial = read_message(captured)
        found = command_of(partial)
        queue = captured.queue or (CONTROL_QUEUE if found is None or found.on_control_queue else DEFAULT_STREAM)
        self.space.steps = []
        # Counted here: messages of several captures may have the same seq, and identifiers are made of it.
        self._arrivals += 1
        outcome = self.broker.process(
            Arrival(self._arrivals, self._now, queue, captured.md, captured.body, captured.user)
        )
        command = outcome.command if outcome.command is not None else found
        return Occasion(captured, partial.message, command, tuple(self.space.steps), outcome)


class _RecordingSpace(TopicSpace):
    """A topic space that keeps what it is told to do."""

    def __init__(self, objects: Objects, semantics: Semantics) -> None:
        super().__init__(objects.topics, selects, semantics.value)
        self._objects = objects
        self.steps: list[Step] = []

    def apply(self, operation: Operation, now: datetime) -> list[Effect]:
        before = None
        if not isinstance(operation, PublishToTopic | ClearRetained):
            before = self.subscription(operation.subscription.sub_id)
        effects = super().apply(operation, now)
        cleared = tuple(effect.topic_string for effect in effects if isinstance(effect, RetainedCleared))
        self.steps.append(Step(operation, Scene(self._objects.qmgr.name, now, before, cleared)))
        return effects


def subject(operation: Operation) -> Subscription | None:
    """The subscription that an operation is about; None for one about a topic."""
    if isinstance(operation, Subscribe | AlterSubscription | Unsubscribe | RequestRetained):
        return operation.subscription
    return None
