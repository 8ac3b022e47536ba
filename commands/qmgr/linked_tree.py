"""The link of a topic space to a topic tree elsewhere (``commands.qmgr.link_port``): what it is asked and gets.

Before an operation the link says what is retained there that the topic space does not know; after a command it reads
the trace, and says what has to go into the tree: that is put in the unit of work of the command.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from commands.broker.puts import Outgoing
from commands.broker.trace import Trace
from commands.qmgr.link_port import TopicLink, TreeNotAskedError
from rfh2.errors import CommandError
from streams.operations import Delivery, Effect, Operation
from streams.topic_space import TopicSpace

_log = logging.getLogger("qpubsub.live")


class LinkedTree:
    """The link of one topic space. may_wait: whether the tree may be waited for at once, inside the unit of work."""

    def __init__(self, space: TopicSpace, link: TopicLink, may_wait: bool) -> None:
        self._space, self._link, self._may_wait = space, link, may_wait

    def before(self, operation: Operation, now: datetime) -> Sequence[Effect]:
        """Have the topic space learn what is retained in the tree, as far as it matters for *operation*.

        The effects of that. Raises TreeNotAskedError before anything is changed.
        """
        effects: list[Effect] = []
        for learnt in self._learnt(operation, now):
            try:
                done = self._space.apply(learnt, now)
            except CommandError as error:
                # The tree's affair: a topic object here may forbid what natives retain there.
                _log.warning("a native retained publication is passed over: %s", error)
                continue
            # What is retained there goes to no one yet: whom it concerned got it, or gets it, when it was published.
            effects += [effect for effect in done if not isinstance(effect, Delivery)]
        return effects

    def _learnt(self, operation: Operation, now: datetime) -> Sequence[Operation]:
        while True:
            try:
                return self._link.before(operation, self._space, now)
            except TreeNotAskedError:
                if not self._may_wait:
                    raise
                self._link.fetch()

    def prefetch(self, operation: Operation) -> None:
        """*operation* is about to come: the tree may be asked about it along with the rest."""
        self._link.prefetch(operation)

    def after(self, trace: Trace) -> tuple[Outgoing, ...]:
        """What has to go into the tree of what one arrival came to."""
        self._link.expired(trace.expired)
        return tuple(put for traced in trace.operations for put in self._link.after(traced.operation, traced.effects))

    def ended(self, effects: Sequence[Effect]) -> None:
        """Subscriptions went without a command: with their queues."""
        self._link.expired(effects)
