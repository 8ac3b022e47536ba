"""The port to whoever measures a processor: metrics and traces. Without an observer, nothing is done for it.

The observer reads the clock and the results; it decides nothing. Nearly all commands are only counted, with their unit
of work. A few are measured step by step (``Sample``): those go through the broker, and not by a template, which
has no steps. The puts are the same.

    begun() ── sample() ── read() ── worked_out() ── delivered() ──┐
            └─ sample() ── None, for nearly all ───────────────────┴── committing() ── committed(), or backed_out()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Final, Protocol

from commands.broker.core import BrokerCore
from commands.broker.counts import Counts
from commands.broker.outcome import Arrival, Outcome
from commands.broker.puts import Outgoing, PutKind
from commands.broker.reading import Reading
from commands.qmgr.store.port import CountsMessages, StoredMessage, UnitOfWork


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


# Counts the effects of commands: publications sent to each subscription and excluded by its filter, and published on
# each topic.
#
# A command counts when all its messages are put, and with the commit of its unit of work.


def count(counts: Counts, outcome: Outcome, delivered: Sequence[Outgoing | None], now: datetime) -> None:
    """Count one command in *counts*. delivered: what was put in place of each of its puts."""
    for topic_string in outcome.topics:
        counts.add_published(topic_string, now)
    for subscription in outcome.filtered:
        counts.add_filtered(subscription.sub_id)
    if delivered is outcome.puts:
        counts.add_all_delivered([sub_id for put in outcome.puts for sub_id in put.sub_ids], now)
        return
    for wanted, put in zip(outcome.puts, delivered, strict=True):
        for sub_id in wanted.sub_ids:
            if put is not None and put.kind is PutKind.PUBLICATION:
                counts.add_delivered(sub_id, now)
            else:
                counts.add_dead_letters(sub_id)


def forget_unused_topics(unit: UnitOfWork, broker: BrokerCore, now: datetime) -> int:
    """Forget the counts of topics that have left the topic tree; how many (guide 2.5.3.1).

    As in IBM MQ, a topic leaves the tree when nothing exists at it and no program has published on it
    for TREELIFE seconds.
    """
    if not isinstance(unit, CountsMessages):
        return 0
    life_s = broker.objects.qmgr.treelife
    before = now - timedelta(seconds=life_s) if life_s else None

    def in_use() -> set[str]:
        return {each.topic_string for each in (*broker.objects.topics, *broker.space.subscriptions())}

    return unit.counters.forget_topics(before, in_use)


# Counts of the work of a processor.


@dataclass(slots=True)
class ProcessorTally:
    """What a processor has done since it started, or in one unit of work."""

    commands: int = 0
    publications: int = 0
    responses: int = 0
    dead_letters: int = 0
    errors: int = 0
    discarded: int = 0
    linked: int = 0

    def as_dict(self) -> dict[str, int]:
        """Name and count, in order."""
        return {name: getattr(self, name) for name in _NAMES}

    def add(self, other: ProcessorTally) -> None:
        """Count what *other* counted as well."""
        for name in _NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def put(self, kind: PutKind, times: int = 1) -> None:
        """Count one put, or *times* of them."""
        if kind is PutKind.PUBLICATION:
            self.publications += times
        elif kind is PutKind.RESPONSE:
            self.responses += times
        else:
            self.dead_letters += times


_NAMES: Final = tuple(field.name for field in fields(ProcessorTally))
