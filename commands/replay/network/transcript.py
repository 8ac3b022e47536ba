"""A replay of a network in words: each command, what flowed between queue managers, and who received what where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from commands.broker.puts import Put
from commands.network.network import Network, Step
from commands.replay.arrivals import DEFAULT_QMGR
from commands.replay.transcript import transcript_lines
from rfh2.captured import CapturedMessage
from rfh2.terminal_escape import visible


def network_transcript_lines(message: CapturedMessage, step: Step, puts: Sequence[Put]) -> list[str]:
    """The lines about one message: the command with its queue manager, then flows, puts, and what was kept back."""
    if step.outcome.completion is None:
        return []
    own = len(step.outcome.puts)
    first, *here = transcript_lines(message, step.outcome, puts[:own])
    lines = [f"{first} (at {message.qmgr or DEFAULT_QMGR})", *here]
    lines += [visible(f"      {flow}") for flow in step.flows]
    at = own
    for received in step.received[1:]:
        of_it = puts[at : at + len(received.outcome.puts)]
        at += len(of_it)
        lines += [f"{line} (at {received.qmgr})" for line in transcript_lines(message, received.outcome, of_it)[1:]]
    return [*lines, *(visible(f"      {kept}") for kept in step.kept_back)]


def network_problems(network: Network) -> Iterator[str]:
    """What is wrong with the network itself: loops, and definitions of cluster topics that contradict each other."""
    for loop in network.topology.loops():
        yield f"the hierarchy has a loop, {' - '.join(loop)}: subscribers get publications more than once (guide 3.4)"
    yield from network.cluster_topics.conflicts()
