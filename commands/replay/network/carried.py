"""Publications that queue managers of a network send on, without the broker of each of them.

A publication passes many queue managers, and what it does at each is what an earlier one like it did. So each queue
manager has templates of what neighbours send it (``commands.templates.templates``), learned from its broker:

    flow ── template of its queue manager ──> puts there, and the proxy subscriptions it is for ──> flows

Where none applies, the broker sees the publication as without them. That is so for all publications in a network with
a queue manager of version 6, where topics change on the way; and for those with a correlation identifier, which a
hierarchy takes away and a cluster does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from commands.broker.context import Semantics
from commands.broker.outcome import Arrival, Outcome
from commands.broker.puts import Outgoing
from commands.network.flows import Flow, PublicationFlow
from commands.network.queue_manager import NetworkQueueManager, Ways
from commands.templates.descriptors import CORREL_ID
from commands.templates.parts import Parts, parts_of
from commands.templates.templates import TEMPLATES_ROOM, Plan, PublicationTemplates, SeenShapes
from rfh2.mqi_constants import MQCI_NONE
from streams.delivery_rules import is_home

_MOST_WAYS: Final = 200_000
_ROOM: Final = 4_194_304
"""For the templates of all queue managers together, in puts; each has a part, but not less than ``_LEAST``."""
_LEAST: Final = 4_096


class CarriedPublications:
    """Those of one network (``Repeats``). made: the puts at other queue managers since ``begin``, in order."""

    def __init__(self, queue_managers: Iterable[NetworkQueueManager]) -> None:
        given = tuple(queue_managers)
        self._is_off = any(each.broker.semantics is Semantics.V6 for each in given)
        most = min(TEMPLATES_ROOM, max(_LEAST, _ROOM // max(1, len(given))))
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
