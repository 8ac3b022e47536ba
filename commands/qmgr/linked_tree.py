"""Connects a topic space with the link to a topic tree elsewhere (``commands.qmgr.link_port``).

Before an operation, the link gives the tree's retained publications that the topic space does not know. After a
command, it reads the trace and gives the messages for the tree; they are put in the unit of work of the command.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from commands.broker.puts import Outgoing
from commands.broker.trace import Trace
from commands.qmgr.link_port import TopicLink, TreeNotAskedError
from commands.qmgr.tree_forms import TreeForms
from rfh2.errors import CommandError
from streams.operations import Delivery, Effect, Operation, PublishToTopic
from streams.topic_space import TopicSpace

_log = logging.getLogger("qpubsub.live")


class LinkedTree:
    """The link of one topic space. may_wait: whether it may wait for the tree inside the unit of work.

    forms: how the tree gets publications like one before.
    """

    def __init__(self, space: TopicSpace, link: TopicLink, may_wait: bool) -> None:
        self._space, self._link, self._may_wait = space, link, may_wait
        self.forms = TreeForms()

    def before(self, operation: Operation, now: datetime) -> Sequence[Effect]:
        """Store in the topic space the retained publications of the tree that *operation* needs.

        Returns the effects. Raises TreeNotAskedError before anything is changed.
        """
        effects: list[Effect] = []
        for learnt in self._learnt(operation, now):
            try:
                done = self._space.apply(learnt, now)
            except CommandError as error:
                # The tree decides about these: a topic object here may forbid what native programs retain there.
                _log.warning("a native retained publication is passed over: %s", error)
                continue
            # These are not delivered now: subscribers got them, or will get them, when they were published.
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
        """Announce *operation*, so that the link can ask the tree about it together with others."""
        self._link.prefetch(operation)

    def after(self, trace: Trace, *, is_native: bool) -> tuple[Outgoing, ...]:
        """The messages for the tree that one arrival causes. is_native: whether it came from there.

        A publication that came from the tree never goes back.
        """
        self._link.expired(trace.expired)
        outgoing: list[Outgoing] = []
        for traced in trace.operations:
            operation = traced.operation
            if not is_native:
                outgoing += self._link.after(operation, traced.effects)
            elif isinstance(operation, PublishToTopic):
                self._link.published(operation.retain)
            else:
                self._link.after(operation, traced.effects)
        return tuple(outgoing)

    def repeated(self, *, retain: bool) -> None:
        """Note a publication that a template answered."""
        self._link.published(retain)

    def ended(self, effects: Sequence[Effect]) -> None:
        """Note subscriptions that ended without a command, with their queues."""
        self._link.expired(effects)
