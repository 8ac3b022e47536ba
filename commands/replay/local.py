"""The local replay: one broker for each queue manager in the capture, all in this process, in the order of ``seq``.

Every other engine must give the same result: the same capture gives the same puts, byte for byte, on every machine and
in every replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from commands.broker.core import Outcome
from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.broker.puts import Put, PutKind
from commands.headers.registry import parse
from commands.headers.response import Completion
from commands.model import Command
from commands.mqsc.broker import Broker, BrokerState
from commands.qmgr.cached_puts import CachedPuts
from commands.qmgr.publication_cache import PublicationCache
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError

DEFAULT_QMGR = "QM1"


@dataclass(slots=True)
class ReplayCounts:
    """The result of a replay. passed_over: messages on queues that a broker does not read, by queue."""

    messages: int = 0
    puts: dict[PutKind, int] = field(default_factory=lambda: dict.fromkeys(PutKind, 0))
    errors: int = 0
    passed_over: dict[str, int] = field(default_factory=dict)


class OutOfOrderError(QPubSubError):
    """A message has a lower ``seq`` than the one before it: the capture has to be sorted first."""


class LocalReplay:
    """Replays captured messages. setup: MQSC text that every queue manager starts with. semantics: ``v7`` or ``v6``."""

    def __init__(self, setup: str = "", semantics: str = "v7") -> None:
        self._setup, self._semantics = setup, semantics
        self._brokers: dict[str, Broker] = {}
        self._caches: dict[str, PublicationCache] = {}
        self._last = -1
        self.counts = ReplayCounts()

    @property
    def brokers(self) -> Mapping[str, Broker]:
        """The broker of each queue manager that had a message."""
        return self._brokers

    @property
    def last_seq(self) -> int:
        """The number of the last message; -1 before the first one."""
        return self._last

    @classmethod
    def resumed(cls, setup: str, semantics: str, last_seq: int, states: Mapping[str, BrokerState]) -> Self:
        """The replay that goes on behind message *last_seq*. states: of each queue manager. Its counts begin anew.

        Raises what ``Broker.of_state`` does.
        """
        replay = cls(setup, semantics)
        replay._last = last_seq
        replay._brokers = {qmgr: Broker.of_state(qmgr, setup, semantics, state) for qmgr, state in states.items()}
        return replay

    def puts(self, messages: Iterable[CapturedMessage]) -> Iterator[Put]:
        """The puts of *messages*, which are in the order of ``seq``. Raises what ``replay`` does."""
        for message in messages:
            yield from self.replay(message)[1]

    def replay(self, message: CapturedMessage, *, counted: bool = True) -> tuple[Outcome, list[Put]]:
        """Replay one message: its outcome and its puts. counted: whether it is in ``counts``.

        Raises OutOfOrderError where it came before the last one; QPubSubError where the setup fails.
        """
        outcome, puts = self._next(message).replay(message)
        if counted:
            self._count(message, outcome)
        return outcome, puts

    def replay_again(self, message: CapturedMessage) -> Outcome | CachedPuts:
        """The same for a caller that needs the puts alone of publications like one before."""
        broker = self._next(message)
        cache = self._caches.get(broker.qmgr)
        if cache is None:
            cache = self._caches[broker.qmgr] = PublicationCache(broker, effects=True)
        arrival = broker.arrival(message)
        made = cache.process(arrival)
        if isinstance(made, CachedPuts):
            for retained in made.kept.retained_by(arrival):
                broker.space.retain(retained)
            self.counts.messages += 1
            for kind in made.kept.kinds:
                self.counts.puts[kind] += 1
        else:
            self._count(message, made)
        return made

    def _next(self, message: CapturedMessage) -> Broker:
        if message.seq < self._last:
            raise OutOfOrderError(f"seq {message.seq} comes after seq {self._last}")
        self._last = message.seq
        return self._broker(message.qmgr or DEFAULT_QMGR)

    def _broker(self, qmgr: str) -> Broker:
        broker = self._brokers.get(qmgr)
        if broker is None:
            broker = self._brokers[qmgr] = Broker.of_capture(qmgr, self._setup, self._semantics)
        return broker

    def _count(self, message: CapturedMessage, outcome: Outcome) -> None:
        counts = self.counts
        counts.messages += 1
        if outcome.completion is None:
            counts.passed_over[message.queue] = counts.passed_over.get(message.queue, 0) + 1
        for put in outcome.puts:
            counts.puts[put.kind] += 1
        counts.errors += outcome.completion is Completion.ERROR


def natural_queue(message: CapturedMessage) -> str:
    """The queue that a message of a capture without queue names must have been put to, by the command in it."""
    try:
        command: Command = parse(message.decode())
    except QPubSubError:
        return DEFAULT_STREAM
    return CONTROL_QUEUE if command.on_control_queue else DEFAULT_STREAM
