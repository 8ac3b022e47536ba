"""A queue manager in memory, administered as a live one."""

from __future__ import annotations

from commands.broker.objects import Objects, QueueManager
from commands.broker.selection import Selection
from commands.mqsc import Administration, run_setup
from migrate.live.administrator import MemoryAdministrator
from streams.topic_space import TopicSpace
from tests.migrate.legacy_messages import NOW


def memory(script: str, psmode: str = "ENABLED") -> MemoryAdministrator:
    """A queue manager that *script* has set up."""
    objects = Objects(QueueManager("QM1", psmode=psmode))
    space = TopicSpace(objects.topics, Selection())
    run_setup(script, objects, space, NOW)
    return MemoryAdministrator(Administration.of(objects, space, NOW))
