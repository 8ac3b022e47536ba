"""What a replay is told beside the messages, in a form that travels to the workers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from commands.broker import Broker
from commands.context import Semantics
from commands.objects import CONTROL_QUEUE, Objects, QueueManager
from commands.replay.local import DEFAULT_QMGR
from commands.selection import selects
from streams.namelists import QUEUE_NAMELIST
from streams.topic_space import TopicSpace


@dataclass(frozen=True)
class Setting:
    """setup: MQSC that every queue manager starts with. semantics: ``v7`` or ``v6``."""

    setup: str = ""
    semantics: str = Semantics.V7.value

    def broker(self, qmgr: str, kind: type[TopicSpace] = TopicSpace) -> Broker:
        """A new broker whose topic space is of this *kind*. Raises QPubSubError where the setup fails."""
        objects = Objects(QueueManager(qmgr))
        space = kind(objects.topics, selects, self.semantics)
        return Broker(qmgr, self.setup, self.semantics, objects=objects, space=space)

    @cached_property
    def stream_queues(self) -> tuple[str, ...]:
        """The queues that publications are taken from; nothing that is captured changes them."""
        namelist = self.broker(DEFAULT_QMGR).objects.namelists.get(QUEUE_NAMELIST)
        names = namelist.names if namelist is not None else ()
        return tuple(name for name in names if name and name != CONTROL_QUEUE)
