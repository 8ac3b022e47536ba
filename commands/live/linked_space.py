"""The topic space of a queue manager that is linked to a topic tree elsewhere (``commands.topics_port``).

It is the embedded topic space, and tells the link of what happens to it. What has to go out is collected here until the
processor takes it, to put it in the unit of work of the command that caused it.
"""

from __future__ import annotations

from datetime import datetime

from commands.puts import Outgoing
from commands.topics_port import TopicLink
from streams.operations import Delivery, Effect, Operation, RequestRetained
from streams.topic_objects import TopicObjects
from streams.topic_space import Select, TopicSpace


class LinkedTopicSpace(TopicSpace):
    """A ``TopicSpacePort``: the embedded topic space with a link. Raises what the embedded one does."""

    def __init__(self, topic_objects: TopicObjects, select: Select | None, link: TopicLink) -> None:
        super().__init__(topic_objects, select)
        self._link = link
        self._outgoing: list[Outgoing] = []
        self._owed: list[Effect] = []

    def apply(self, operation: Operation, now: datetime) -> list[Effect]:
        for told in self._link.before(operation, self, now):
            # What is retained there goes to no one yet: whom it concerned got it, or gets it, when it was published.
            self._owed += [effect for effect in super().apply(told, now) if not isinstance(effect, Delivery)]
        # Where the operation raises, what was learnt before it stays true, and is told with the next effects.
        done = super().apply(operation, now)
        self._outgoing += self._link.after(operation, done)
        # The broker takes no effect at all for "nothing is retained" (3077).
        return done if isinstance(operation, RequestRetained) else self._paid(done)

    def expire(self, now: datetime) -> list[Effect]:
        gone = super().expire(now)
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
