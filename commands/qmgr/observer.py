"""The port to whoever measures a processor: metrics and traces. Without an observer, nothing is done for it.

The observer reads the clock and the results; it decides nothing. Nearly all commands are only counted, with their unit
of work. A few are measured step by step (``Sample``): those go through the broker, and not by a template, which
has no steps. The puts are the same.

    begun() ── sample() ── read() ── worked_out() ── delivered() ──┐
            └─ sample() ── None, for nearly all ───────────────────┴── committing() ── committed(), or backed_out()
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from commands.broker.counts import Counts
from commands.broker.outcome import Arrival, Outcome
from commands.broker.reading import Reading
from commands.qmgr.store.port import StoredMessage
from commands.qmgr.tally import ProcessorTally


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended. command: its name, "" for a message that is none; completion: ok, warning, error, "".

    reason: the first reason code; None where there is none.
    """

    command: str
    completion: str
    reason: int | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """One unit of work that is committed. endings: how often; those that are missing in it are a Publish that was ok.

    counts: by subscription and topic. size_bytes: of the messages removed and put.
    """

    tally: ProcessorTally
    endings: Mapping[Ending, int]
    counts: Counts
    size_bytes: int


class Sample(Protocol):
    """One command that is measured step by step."""

    @property
    def explains(self) -> bool:
        """Whether the outcome must have a trace that says whom a publication passed over."""

    def read(self, arrival: Arrival, reading: Reading) -> tuple[Arrival, Reading]:
        """Note that the message was read; what to process: the message, with the trace context of this processor."""

    def worked_out(self, outcome: Outcome) -> Outcome:
        """Note that its effects are known; what to deliver: a dead letter has the message as it came."""

    def delivered(self) -> None:
        """Note that all that it causes is put."""


class Observer(Protocol):
    """Whoever measures. A method must raise nothing."""

    def begun(self, tally: ProcessorTally) -> None:
        """Note that a unit of work has begun; *tally* counts its commands while it grows."""

    def sample(self, message: StoredMessage) -> Sample | None:
        """Note that *message* was got; how to measure it step by step, None for not at all."""

    def committing(self) -> None:
        """Note that the unit of work has all its commands, and its commit begins."""

    def committed(self, unit: Committed) -> None:
        """Note that the commit has ended."""

    def backed_out(self) -> None:
        """Note that the unit of work was backed out."""


class Unobserved:
    """Nobody measures."""

    def begun(self, tally: ProcessorTally) -> None: ...
    def committing(self) -> None: ...
    def committed(self, unit: Committed) -> None: ...
    def backed_out(self) -> None: ...

    def sample(self, _message: StoredMessage) -> Sample | None:
        return None
