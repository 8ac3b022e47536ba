"""The local replay of a network: captured messages in the order of ``seq``, each at the queue manager that it names.

    message at QM2 ── Network.take ──> Step: outcomes at QM2 and wherever it flowed ──> puts, numbered together

Where nobody reads the steps, publications like earlier ones pass by the brokers of the queue managers that get them
from neighbours (``carried``): the same puts.

A network without links gives the puts of the replay of each queue manager alone, byte for byte.

The queue managers are those of ``estate.toml``: their setups run with the topic objects of their clusters.

A publication passes many queue managers, and what it does at each is what an earlier one like it did. So each queue
manager has templates of what neighbours send it (``commands.templates.templates``), learned from its broker:

    flow ── template of its queue manager ──> puts there, and the proxy subscriptions it is for ──> flows

Where none applies, the broker sees the publication as without them. That is so for all publications in a network with
a queue manager of version 6, where topics change on the way; and for those with a correlation identifier, which a
hierarchy takes away and a cluster does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Protocol

from commands.broker.context import Semantics
from commands.broker.objects import Objects, QueueManager
from commands.broker.outcome import Arrival, Outcome
from commands.broker.puts import Outgoing, Put
from commands.broker.times import EPOCH
from commands.mqsc.broker import Broker
from commands.mqsc.execute import run_network_definitions
from commands.network.cluster_topics import ClusterTopics
from commands.network.estate_file import Estate
from commands.network.flows import Flow, PublicationFlow
from commands.network.network import Member, Network, NextChannel, Step
from commands.network.queue_manager import NetworkQueueManager, Ways
from commands.network.topology import Position
from commands.replay.arrivals import DEFAULT_QMGR, Arrivals, in_order
from commands.replay.local import ReplayCounts, transcript_lines
from commands.templates.parts import CORREL_ID, Parts, parts_of
from commands.templates.templates import MOST_TEMPLATE_PUTS, Plan, PublicationTemplates, SeenShapes
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError
from rfh2.mqi_constants import MQCI_NONE
from rfh2.terminal_escape import visible
from streams.delivery_rules import is_home
from streams.topic_objects import DEFAULT_TOPIC_OBJECTS

_DEFAULTS = frozenset(topic.name for topic in DEFAULT_TOPIC_OBJECTS)


@dataclass(frozen=True, slots=True)
class QueueManagerSetup:
    """What a queue manager of the network starts with. setup: MQSC text. semantics: ``v7`` or ``v6``."""

    position: Position
    setup: str = ""
    semantics: str = "v7"


@dataclass(frozen=True, slots=True)
class NetworkSetup:
    """All of them, in the order of the file, as text: a value that goes to Spark's workers."""

    queue_managers: tuple[QueueManagerSetup, ...]

    @classmethod
    def of(cls, estate: Estate, setup: str = "") -> NetworkSetup:
        """Those of an estate. setup: MQSC that runs first on each. Raises TableFileError where a script is missing."""
        return cls(
            tuple(
                QueueManagerSetup(position, "\n".join(filter(None, (setup, estate.setup_of(each)))), each.semantics)
                for position, each in zip(estate.topology.positions, estate.queue_managers, strict=True)
            )
        )

    def build(self, *, next_channel: NextChannel | None = None, explains: bool = False) -> Network:
        """The network, with proxy subscriptions for what the setups define.

        Raises QPubSubError with the queue manager, the line and the command of a setup that fails.
        """
        defined = [_defined(each) for each in self.queue_managers]
        positions = [_placed(each.position, own) for each, own in zip(self.queue_managers, defined, strict=True)]
        by_qmgr = {each.qmgr.name: [topic for topic in each.topics if topic.name not in _DEFAULTS] for each in defined}
        cluster_topics = ClusterTopics.of(positions, by_qmgr)
        members = [
            Member(_broker(each, position, own, cluster_topics), position)
            for each, own, position in zip(self.queue_managers, defined, positions, strict=True)
        ]
        return Network(members, cluster_topics, next_channel=next_channel, explains=explains)


def _defined(of: QueueManagerSetup) -> Objects:
    """The queue manager's own attributes and topic objects."""
    objects = Objects(QueueManager(of.position.qmgr))
    try:
        run_network_definitions(of.setup, objects, EPOCH)
    except QPubSubError as error:
        raise QPubSubError(f"setup of queue manager {of.position.qmgr}: {error}") from error
    return objects


def _placed(position: Position, own: Objects) -> Position:
    """With the setup's PARENT where the file gives none, and with the clusters of its CLUSRCVR channels."""
    clusters = tuple(dict.fromkeys((*position.clusters, *own.clusters)))
    return replace(position, parent=position.parent or own.qmgr.parent, clusters=clusters)


def _broker(of: QueueManagerSetup, position: Position, own: Objects, cluster_topics: ClusterTopics) -> Broker:
    objects = Objects(QueueManager(of.position.qmgr))
    for topic in cluster_topics.copies(position, own.topics):
        objects.topics.define(topic)
    try:
        return Broker(of.position.qmgr, of.setup, of.semantics, objects=objects)
    except QPubSubError as error:
        raise QPubSubError(f"setup of queue manager {of.position.qmgr}: {error}") from error


_MOST_WAYS: Final = 200_000
_MOST_PUTS: Final = 4_194_304
"""For the templates of all queue managers together, in puts; each has a part, but not less than ``_LEAST``."""
_LEAST: Final = 4_096


class CarriedPublications:
    """Those of one network (``Repeats``). made: the puts at other queue managers since ``begin``, in order."""

    def __init__(self, queue_managers: Iterable[NetworkQueueManager]) -> None:
        given = tuple(queue_managers)
        self._is_off = any(each.broker.semantics is Semantics.V6 for each in given)
        most = min(MOST_TEMPLATE_PUTS, max(_LEAST, _MOST_PUTS // max(1, len(given))))
        self._templates = {
            each.name: PublicationTemplates(each.broker, effects=True, carried=True, most=most) for each in given
        }
        self._seen = SeenShapes()
        self._ways: dict[tuple[Plan, str, str], Ways] = {}
        self._arrival: Arrival | None = None
        self._parts: Parts | None = None
        self._is_taken_apart = self._may_learn = self._learns = False
        self.made: list[Sequence[Outgoing]] = []

    def begin(self, arrival: Arrival) -> None:
        """A program has put this message."""
        self._arrival, self._is_taken_apart, self.made = arrival, False, []

    def flows(self, there: NetworkQueueManager, flow: PublicationFlow, now: datetime) -> Iterable[Flow] | None:
        """Have *flow* arrive at a queue manager: what goes on from there; None where its broker has to see it."""
        self._learns = False
        parts, operation = self._taken_apart(), flow.operation
        if parts is None or operation.was_retained or there.name in flow.fingerprints:
            return None
        arrival, space = self._arrival, there.broker.space
        assert arrival is not None
        if there.was_reached_by(arrival.seq) or space.is_due(now):
            return None
        templates = self._templates[there.name]
        plan = templates.plan(arrival, parts)
        if not isinstance(plan, Plan):
            self._learns = self._may_learn and (plan or not templates.knows(parts))
            return None
        if plan.topic != operation.topic_string:  # the stream has another place where it was published
            return None
        puts = templates.outcome(plan, arrival, parts).puts
        self.made.append(puts)
        # The matches of a plan never change, nor do topic objects and links during a replay.
        key = (plan, flow.sender, flow.cluster)
        ways = self._ways.get(key)
        if ways is None:
            proxies = [each for each in plan.matched if each.is_proxy and not is_home(each, operation, None)]
            ways = there.ways(flow, proxies)
            if len(self._ways) >= _MOST_WAYS:
                self._ways.clear()
            self._ways[key] = ways
        return there.repeated(flow, arrival.seq, len(puts), ways)

    def seen(self, there: NetworkQueueManager, _flow: PublicationFlow, outcome: Outcome) -> None:
        """The broker has seen what ``flows`` was asked about just before."""
        self.made.append(outcome.puts)
        if self._learns:
            assert self._arrival is not None
            assert self._parts is not None
            self._templates[there.name].learn(self._arrival, self._parts, outcome)

    def _taken_apart(self) -> Parts | None:
        """The parts of the message that was put; None where no template can apply."""
        if self._is_taken_apart:
            return self._parts
        arrival, self._is_taken_apart, self._parts = self._arrival, True, None
        if self._is_off or arrival is None or arrival.md is None or arrival.md[CORREL_ID] != MQCI_NONE:
            return None
        self._parts = parts = parts_of(arrival)
        if parts is not None:
            self._may_learn = self._seen.add(parts)
        return parts


class PutSink(Protocol):
    """Where puts go: ``PutLines``, ``PutColumns``."""

    def add(self, seq: int, at_qmgr: str, puts: Sequence[Outgoing], begin: int = 0) -> None: ...


class NetworkReplay:
    """Replays captured messages. Raises what ``NetworkSetup.build`` does."""

    def __init__(self, setup: NetworkSetup, *, next_channel: NextChannel | None = None, explains: bool = False) -> None:
        self.network: Network = setup.build(next_channel=next_channel, explains=explains)
        self.counts = ReplayCounts()
        self._arrivals = Arrivals()
        self._carried = CarriedPublications(self.network.queue_managers.values())

    def puts(self, messages: Iterable[CapturedMessage]) -> Iterator[Put]:
        """The puts of *messages*, which are in the order of ``seq``. Raises what ``replay`` and ``in_order`` do."""
        for message in in_order(messages):
            yield from self.replay(message)[1]

    def replay(self, message: CapturedMessage, *, counted: bool = True) -> tuple[Step, list[Put]]:
        """Replay one message: all that it did in the network, and its puts. counted: whether it is in ``counts``.

        Raises OutOfOrderError where it came before the last one; QPubSubError where the network does not have its queue
        manager.
        """
        qmgr, arrival = self._arrivals.of(message)
        step = self.network.take(qmgr, arrival)
        outgoing = step.puts
        if counted:
            self.counts.count(message.queue, step.outcome, outgoing)
        return step, [Put.of(message.seq, qmgr, n, put) for n, put in enumerate(outgoing)]

    def put_all(self, message: CapturedMessage, sink: PutSink) -> Outcome:
        """Replay one message for a caller that needs its puts alone, which go to *sink*; its outcome where it was put.

        Raises what ``replay`` does.
        """
        qmgr, arrival = self._arrivals.of(message)
        self._carried.begin(arrival)
        outcome = self.network.take(qmgr, arrival, self._carried).outcome
        self.counts.count(message.queue, outcome, outcome.puts)
        sink.add(message.seq, qmgr, outcome.puts)
        n, kinds = len(outcome.puts), self.counts.puts
        for made in self._carried.made:
            sink.add(message.seq, qmgr, made, n)
            n += len(made)
            for put in made:
                kinds[put.kind] += 1
        return outcome


# A replay of a network in words: each command, what flowed between queue managers, and who received what where.


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
