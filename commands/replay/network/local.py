"""The local replay of a network: captured messages in the order of ``seq``, each at the queue manager that it names.

    message at QM2 ── Network.take ──> Step: outcomes at QM2 and wherever it flowed ──> puts, numbered together

Where nobody reads the steps, publications like earlier ones pass by the brokers of the queue managers that get them
from neighbours (``carried``): the same puts.

A network without links gives the puts of the replay of each queue manager alone, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from commands.broker.outcome import Outcome
from commands.broker.puts import Outgoing, Put
from commands.network.network import Network, NextChannel, Step
from commands.replay.arrivals import Arrivals
from commands.replay.local import ReplayCounts
from commands.replay.network.building import NetworkSetup
from commands.replay.network.carried import CarriedPublications
from rfh2.captured import CapturedMessage


class PutSink(Protocol):
    """Where puts go: ``PutLines``, ``PutColumns``."""

    def add(self, seq: int, puts: Sequence[Outgoing], begin: int = 0) -> None: ...


class NetworkReplay:
    """Replays captured messages. Raises what ``NetworkSetup.build`` does."""

    def __init__(self, setup: NetworkSetup, *, next_channel: NextChannel | None = None, explains: bool = False) -> None:
        self.network: Network = setup.build(next_channel=next_channel, explains=explains)
        self.counts = ReplayCounts()
        self._arrivals = Arrivals()
        self._carried = CarriedPublications(self.network.queue_managers.values())

    def puts(self, messages: Iterable[CapturedMessage]) -> Iterator[Put]:
        """The puts of *messages*, which are in the order of ``seq``. Raises what ``replay`` does."""
        for message in messages:
            yield from self.replay(message)[1]

    def replay(self, message: CapturedMessage, *, counted: bool = True) -> tuple[Step, list[Put]]:
        """Replay one message: all that it did in the network, and its puts. counted: whether it is in ``counts``.

        Raises OutOfOrderError where it came before the last one; QPubSubError where the network does not have its queue
        manager.
        """
        step = self.network.take(*self._arrivals.of(message))
        outgoing = step.puts
        if counted:
            self.counts.count(message.queue, step.outcome, outgoing)
        return step, [Put.of(message.seq, n, put) for n, put in enumerate(outgoing)]

    def put_all(self, message: CapturedMessage, sink: PutSink) -> Outcome:
        """Replay one message for a caller that needs its puts alone, which go to *sink*; its outcome where it was put.

        Raises what ``replay`` does.
        """
        qmgr, arrival = self._arrivals.of(message)
        self._carried.begin(arrival)
        outcome = self.network.take(qmgr, arrival, self._carried).outcome
        self.counts.count(message.queue, outcome, outcome.puts)
        sink.add(message.seq, outcome.puts)
        n, kinds = len(outcome.puts), self.counts.puts
        for made in self._carried.made:
            sink.add(message.seq, made, n)
            n += len(made)
            for put in made:
                kinds[put.kind] += 1
        return outcome
