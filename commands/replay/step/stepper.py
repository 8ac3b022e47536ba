"""One message after another, with what it changes.

A breakpoint is a condition like that of ``--where``, which also knows the result of a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from commands.broker.outcome import Outcome
from commands.broker.puts import Put
from commands.explain.selection import MessageValues, Where
from commands.headers.response import Completion
from commands.replay.arrivals import DEFAULT_QMGR
from commands.replay.local import LocalReplay
from commands.replay.step.state import Change, StepState, difference, resumed, snapshot_of, state_of
from commands.replay.transcript import transcript_lines
from rfh2.captured import CapturedMessage
from streams.selectors import Value


class StepFacts(NamedTuple):
    """The values of one step for conditions; they are kept with checkpoints, so that a search decodes nothing.

    topics, queues: of the command, and of its puts. reason: of the result; else the one that the message carries.
    """

    seq: int
    seconds: float | None
    command: str | None
    topics: tuple[str, ...]
    queues: tuple[str, ...]
    qmgr: str | None
    user: str | None
    program: str | None
    reason: int | None
    size: int

    @classmethod
    def of(cls, message: CapturedMessage, outcome: Outcome, puts: Sequence[Put]) -> StepFacts:
        """Those of *message*, and of what came of it."""
        values = MessageValues(message)
        command = outcome.command
        word = values.command if command is None else command.word
        topics = values.topics if command is None else command.topics
        reason = outcome.reason if command is not None else outcome.reason or values.reason
        return cls(
            message.seq,
            values.seconds,
            word,
            tuple(dict.fromkeys([*topics, *(put.topic for put in puts if put.topic is not None)])),
            tuple(dict.fromkeys([*([message.queue] if message.queue else []), *(put.queue for put in puts)])),
            message.qmgr,
            values.user,
            values.program,
            reason,
            len(message.body_hex) // 2,
        )


def needs_message(where: Where) -> bool:
    """Whether a condition asks for properties of the message, which facts do not have."""
    return not where.names <= _NAMES


_NAMES = frozenset({"command", "topic", "queue", "qmgr", "user", "program", "reason", "time", "size", "seq"})


def stops_at(where: Where, facts: StepFacts, message: CapturedMessage | None = None) -> bool:
    """Whether the condition is TRUE of a step, with any of its topics and any of its queues.

    message: needed where ``needs_message``.
    """
    topics: Sequence[str | None] = (facts.topics or (None,)) if "topic" in where.names else (None,)
    queues: Sequence[str | None] = (facts.queues or (None,)) if "queue" in where.names else (None,)
    properties = None if message is None else MessageValues(message)
    for topic in topics:
        for queue in queues:
            known: dict[str, Value | None] = {
                "seq": facts.seq,
                "time": facts.seconds,
                "command": facts.command,
                "topic": topic,
                "queue": queue,
                "qmgr": facts.qmgr,
                "user": facts.user,
                "program": facts.program,
                "reason": facts.reason,
                "size": facts.size,
            }

            def lookup(name: str, known: dict[str, Value | None] = known) -> Value | None:
                if name in known:
                    return known[name]
                return None if properties is None else properties(name)

            if where.test(lookup):
                return True
    return False


MOST_LINES: Final = 200
"""So many lines of a transcript are kept of one message; a publication can have 100,000 receivers."""


@dataclass(frozen=True, slots=True)
class Step:
    """One message, its result, and what it changed.

    completion: ``ok``, ``warning`` or ``error``; None where the message was not processed, and *why* says so. lines:
    the transcript. puts: how many messages were put.
    """

    message: CapturedMessage
    completion: Completion | None
    reason: int | None
    why: str
    lines: tuple[str, ...]
    puts: int
    changes: tuple[Change, ...]
    facts: StepFacts


class Stepper:
    """A replay that keeps its state as items. replay, state: where it begins; a new replay by default."""

    def __init__(self, replay: LocalReplay, state: StepState | None = None) -> None:
        self._replay = replay
        self.state = state if state is not None else StepState()

    @classmethod
    def of_snapshot(cls, data: bytes, setup: str, semantics: str) -> Stepper:
        """The stepper that a snapshot was taken of. Raises SnapshotError."""
        return cls(*resumed(data, setup, semantics))

    def snapshot(self) -> bytes:
        """The state between two messages, for ``of_snapshot``."""
        return snapshot_of(self._replay, self.state.queues)

    def step(self, message: CapturedMessage) -> Step:
        """Replay one message. Raises what ``LocalReplay.replay`` does."""
        qmgr = message.qmgr or DEFAULT_QMGR
        is_new = qmgr not in self._replay.brokers
        outcome, puts = self._replay.replay(message)
        if is_new:
            # The setup has run, too; and what it defined has begun to expire, which is no effect of a command.
            after = self.state.copy()
            after.apply(self.state.changes(qmgr, (), puts))
            now = state_of(self._replay, after.queues)
            changes = tuple(difference(self.state, now))
        else:
            changes = tuple(self.state.changes(qmgr, outcome.effects, puts))
        self.state.apply(changes)
        shown = tuple(islice(transcript_lines(message, outcome, puts[: MOST_LINES + 1]), MOST_LINES))
        return Step(
            message,
            outcome.completion,
            outcome.reason,
            outcome.why,
            shown,
            len(puts),
            changes,
            StepFacts.of(message, outcome, puts),
        )
