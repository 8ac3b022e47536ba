"""One message after another, with what it changes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Final

from commands.headers.response import Completion
from commands.replay.arrivals import DEFAULT_QMGR
from commands.replay.local import LocalReplay
from commands.replay.step.breakpoints import StepFacts
from commands.replay.step.snapshot import resumed, snapshot_of, state_of
from commands.replay.step.state import Change, StepState, difference
from commands.replay.transcript import transcript_lines
from rfh2.captured import CapturedMessage

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
