"""Publications like an earlier one: the broker need not translate them again to say whom they reach.

What a Publish does depends on its queue and user, its descriptor without MsgId, PutDate and PutTime, the fixed part of
its header and its psc folder without PubTime and SeqNum. Publications with the same of all these have the same
operation, but for the message in it. Whom it reaches, and whom it passes over, is decided anew for each.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from commands.broker.context import Semantics
from commands.broker.copies import copies
from commands.broker.core import BrokerCore
from commands.broker.outcome import Arrival, Outcome
from commands.broker.reading import decoded
from commands.broker.trace import Tracer
from commands.headers.response import Completion
from commands.model import Publish
from commands.templates.parts import Parts, parts_of
from commands.templates.templates import has_no_other_header
from rfh2.bounded_cache import BoundedCache
from rfh2.errors import DecodeError
from rfh2.inherited_ccsids import is_resolved
from rfh2.mqmd import Mqmd
from streams.operations import Delivery, Effect, Publication, PublishToTopic

_ROOM_BYTES: Final = 16 << 20
_ENTRY_BYTES: Final = 3_000


class _Known(NamedTuple):
    """What such publications do."""

    operation: PublishToTopic
    command: Publish


class KnownPublications:
    """Those of one broker. is_live: whether what is defined changes, so that none is known.

    A publish exit, and version 6, look at more than the publication: then none is known either.
    """

    def __init__(self, broker: BrokerCore, *, is_live: bool = False) -> None:
        self._broker = broker
        self._known: BoundedCache[tuple[object, ...], _Known] = BoundedCache(_ROOM_BYTES)
        # Version 6 looks at the publishers that are registered.
        self._is_off = is_live or broker.semantics is Semantics.V6 or broker.publish_exit is not None

    def trace(self, arrival: Arrival) -> Outcome:
        """What the broker does with a message, explained, but for responses; messages for subscribers for an exit."""
        parts = None if self._is_off or self._broker.space.is_due(arrival.now) else parts_of(arrival)
        if parts is None:
            return self._traced(arrival)
        key = (*parts.key, parts.topic)
        known = self._known.get(key)
        if known is not None and (operation := _again(known.operation, arrival)) is not None:
            return self._published(known.command, operation, arrival)
        outcome = self._traced(arrival)
        if known is None:
            self._learn(key, arrival, parts, outcome)
        return outcome

    def _traced(self, arrival: Arrival) -> Outcome:
        return self._broker.trace(arrival, explains=True, forwards=self._broker.publish_exit is not None)

    # ``BrokerCore.publish`` would do, but takes longer: it prepares messages for subscribers.
    def _published(self, command: Publish, operation: PublishToTopic, arrival: Arrival) -> Outcome:
        space, tracer = self._broker.space, Tracer(explains=True, forwards=False, reached=True)
        deliveries: list[Delivery] = []
        effects: list[Effect] = []
        for effect in tracer.apply(space, operation, arrival.now):
            if isinstance(effect, Delivery):
                deliveries.append(effect)
            else:
                effects.append(effect)
        return Outcome(
            effects=tuple(effects),
            command=command,
            completion=Completion.OK,
            trace=tracer.trace(),
            operations=(operation,),
            copies=tuple(copies(deliveries, self._broker.semantics)),
            filtered=tuple(space.filtered),
        )

    def _learn(self, key: tuple[object, ...], arrival: Arrival, parts: Parts, outcome: Outcome) -> None:
        command = outcome.command
        if outcome.completion is not Completion.OK or len(outcome.operations) != 1 or not isinstance(command, Publish):
            return
        (operation,) = outcome.operations
        if not isinstance(operation, PublishToTopic) or operation.publication.expires_at is not None:
            return
        if has_no_other_header(operation.publication.message, parts):
            self._known.keep(key, _Known(operation, command), _ENTRY_BYTES + 2 * len(arrival.body))


def _again(operation: PublishToTopic, arrival: Arrival) -> PublishToTopic | None:
    """*operation* with the message that arrived; None where the broker has to look at that."""
    assert arrival.md is not None
    try:
        message = decoded(arrival.md, arrival.body, Mqmd.decode(arrival.md))
    except DecodeError:
        return None
    if not is_resolved(message):
        return None
    first = operation.publication
    publication = Publication(message, arrival.now, None, first.local, first.stream, first.sub_point)
    return PublishToTopic(operation.topic_string, publication, operation.retain, operation.not_to, operation.pub_level)
