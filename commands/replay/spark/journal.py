"""The journal: what the control plane leaves for one range of the data plane, for each queue manager.

An interval is one value of one subscription with the messages for which it is valid: those with ``seq`` after *after*,
up to and including *until*. For the message that changes or removes the subscription, the old value is valid. A range
gets the intervals in which one of its messages may be: the subscriptions at its start, and what changes in it. No task
has the journal of the whole capture.

A replica is a broker with the state of any position in the order of ``seq``. If the next message follows the last one
that the replica processed, it has that state already. Otherwise all subscriptions of the position are loaded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from commands.broker.forward import MadePuts
from commands.broker.outcome import Arrival, Outcome
from commands.broker.reading import Reading
from commands.broker.state import subscription_of, subscription_state
from commands.mqsc.broker import Broker
from commands.replay.spark.replay_setup import ReplaySetup
from commands.templates.templates import PublicationTemplates
from streams.operations import RetainedPublication
from streams.subscriptions import Subscription
from streams.topic_space import TopicSpace

FOREVER: Final = 2**63 - 1
"""The ``until`` of an interval that nothing ended."""

BEFORE_ALL: Final = -1
"""The ``after`` of a subscription that the setup defined."""


@dataclass
class SubscriptionJournal:
    """Intervals of one queue manager, in any order. after, until, states: of each."""

    after: npt.NDArray[np.int64]
    until: npt.NDArray[np.int64]
    states: list[str]
    _changes: npt.NDArray[np.int64] = field(init=False, repr=False)
    _parsed: dict[int, Subscription] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        places = np.union1d(self.after, self.until)
        self._changes = places[(places != BEFORE_ALL) & (places != FOREVER)]

    @classmethod
    def of(cls, intervals: Iterable[tuple[int, int, str]]) -> SubscriptionJournal:
        """intervals: after, until and state of each."""
        found = list(intervals)
        after, until = (np.array([interval[at] for interval in found], np.int64) for at in (0, 1))
        return cls(after, until, [state for _, _, state in found])

    @property
    def changes(self) -> list[int]:
        """The messages that changed subscriptions, in order."""
        return self._changes.tolist()  # type: ignore[no-any-return]

    def live(self, seq: int) -> list[Subscription]:
        """The subscriptions that message *seq* finds."""
        found = np.flatnonzero((self.after < seq) & (seq <= self.until))
        return [self._subscription(int(at)) for at in found]

    def _subscription(self, at: int) -> Subscription:
        parsed = self._parsed.get(at)
        if parsed is None:
            parsed = self._parsed[at] = subscription_of(self.states[at])
        return parsed


def untouched(space: TopicSpace) -> SubscriptionJournal:
    """The journal of a queue manager without control messages: the definitions of the setup stay valid."""
    return SubscriptionJournal.of((BEFORE_ALL, FOREVER, subscription_state(each)) for each in space.subscriptions())


class Replica:
    """A broker at some place in the order of seq.

    traced: whether outcomes have their trace; where they do not, publications like one before are not worked out again.
    """

    def __init__(self, qmgr: str, setting: ReplaySetup, journal: SubscriptionJournal | None, *, traced: bool) -> None:
        self._pristine = setting.broker(qmgr).space
        self._broker: Broker = setting.broker(qmgr)
        self._templates = None if traced else PublicationTemplates(self._broker, effects=False)
        self._journal = journal if journal is not None else untouched(self._pristine)
        self._changes = self._journal.changes
        # How many of the changes the broker has in it; None: it is nowhere.
        self._done: int | None = None
        self._last = BEFORE_ALL

    @property
    def space(self) -> TopicSpace:
        """The broker's topic space."""
        return self._broker.space

    def process(
        self,
        arrival: Arrival,
        retained: Iterable[RetainedPublication] | None,
        reading: Reading | None = None,
        made: MadePuts | None = None,
    ) -> Outcome:
        """The result of the message, at its place.

        retained: what it finds retained; None for a message that does not look. reading, made: as for ``trace``.
        """
        self.go_to(arrival.seq)
        if retained is not None:
            self._broker.space.forget_retained()
            for each in retained:
                self._broker.space.retain(each)
        if self._templates is None:
            outcome = self._broker.trace(arrival, reading, made=made)
        elif retained is None:
            outcome = self._templates.process(arrival)
        else:
            outcome = self._broker.process(arrival)
        self._last = arrival.seq
        assert self._done is not None
        if self._done < len(self._changes) and self._changes[self._done] == arrival.seq:
            self._done += 1
        return outcome

    def go_to(self, seq: int) -> None:
        """Have the state that message *seq* finds; what is retained is not a part of it."""
        done, changes = self._done, self._changes
        if done is not None and seq > self._last and (done == len(changes) or changes[done] >= seq):
            return
        self._done = bisect_left(changes, seq)
        self._broker.space.restore(self._journal.live(seq), (), self._pristine)
