"""The topic space of a queue manager that is linked to a topic tree elsewhere (``commands.qmgr.link_port``).

It is the embedded topic space, and tells the link of what happens to it. What has to go out is collected here until the
processor takes it, to put it in the unit of work of the command that caused it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from commands.broker.puts import Outgoing
from commands.qmgr.link_port import TopicLink, TreeNotAskedError
from rfh2.errors import CommandError
from streams.operations import Delivery, Effect, Operation, RequestRetained
from streams.topic_objects import TopicObjects
from streams.topic_space import Select, TopicSpace

_log = logging.getLogger("qpubsub.live")


class LinkedTopicSpace(TopicSpace):
    """The embedded topic space with a link. Raises what the embedded one does, and
    TreeNotAskedError before it has changed anything for the operation.

    may_wait: whether the tree may be waited for at once, inside the unit of work. changes: compare it with what it was:
    the same number means that nothing was changed.
    """

    def __init__(
        self, topic_objects: TopicObjects, select: Select | None, link: TopicLink, may_wait: bool = False
    ) -> None:
        super().__init__(topic_objects, select)
        self._link, self._may_wait = link, may_wait
        self._outgoing: list[Outgoing] = []
        self._owed: list[Effect] = []
        self.changes = 0

    def apply(self, operation: Operation, now: datetime) -> list[Effect]:
        for told in self._before(operation, now):
            self._learn(told, now)
        # Where the operation raises, what was learnt before it stays true, and is told with the next effects.
        done = super().apply(operation, now)
        self.changes += 1
        self._outgoing += self._link.after(operation, done)
        # The broker takes no effect at all for "nothing is retained" (3077).
        return done if isinstance(operation, RequestRetained) else self._paid(done)

    def _before(self, operation: Operation, now: datetime) -> Sequence[Operation]:
        while True:
            try:
                return self._link.before(operation, self, now)
            except TreeNotAskedError:
                if not self._may_wait:
                    raise
                self._link.ask()

    def _learn(self, told: Operation, now: datetime) -> None:
        try:
            effects = super().apply(told, now)
        except CommandError as error:
            # The tree's affair: a topic object here may forbid what natives retain there.
            _log.warning("a native retained publication is passed over: %s", error)
            return
        self.changes += 1
        # What is retained there goes to no one yet: whom it concerned got it, or gets it, when it was published.
        self._owed += [effect for effect in effects if not isinstance(effect, Delivery)]

    def foresee(self, operation: Operation) -> None:
        """*operation* is about to come: the tree may be asked about it along with the rest."""
        self._link.foresee(operation)

    def expire(self, now: datetime) -> list[Effect]:
        gone = super().expire(now)
        self.changes += len(gone)
        self._link.noticed(gone)
        return self._paid(gone)

    def take_outgoing(self) -> tuple[Outgoing, ...]:
        """What has to go into the tree since this was last asked."""
        taken = tuple(self._outgoing)
        self._outgoing.clear()
        return taken

    def _paid(self, effects: list[Effect]) -> list[Effect]:
        if not self._owed:
            return effects
        owed, self._owed = self._owed, []
        return owed + effects
