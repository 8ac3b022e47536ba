"""The local replay of a network: captured messages in the order of ``seq``, each at the queue manager that it names.

    message at QM2 ── Network.take ──> Step: outcomes at QM2 and wherever it flowed ──> puts, numbered together

A network without links gives the puts of the replay of each queue manager alone, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from commands.broker.puts import Put
from commands.network.network import Network, NextChannel, Step
from commands.replay.arrivals import Arrivals
from commands.replay.local import ReplayCounts
from commands.replay.network.building import NetworkSetup
from rfh2.captured import CapturedMessage


class NetworkReplay:
    """Replays captured messages. Raises what ``NetworkSetup.build`` does."""

    def __init__(self, setup: NetworkSetup, *, next_channel: NextChannel | None = None, explains: bool = False) -> None:
        self.network: Network = setup.build(next_channel=next_channel, explains=explains)
        self.counts = ReplayCounts()
        self._arrivals = Arrivals()

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
