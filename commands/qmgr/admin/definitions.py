"""The definitions of an embedded queue manager as an MQSC script, read without holding up its processor."""

from __future__ import annotations

from datetime import datetime

from commands.broker.selection import Selection
from commands.mqsc.administration import Administration
from commands.mqsc.objects_script import script_of, shown_by
from commands.qmgr.store import QueueManagerStore
from streams.topic_space import TopicSpace


def definitions_of(store: QueueManagerStore, now: datetime) -> str:
    """The script: it makes the same objects in another queue manager. now: UTC, from which EXPIRY counts."""
    with store.one_moment():
        objects, subscriptions, retained = store.load_state()
    space = TopicSpace(objects.topics, Selection())
    space.restore(subscriptions, retained)
    shown = shown_by(Administration.of(objects, space, now))
    return "".join(f"{line}\n" for line in script_of(shown, objects.qmgr.name))
