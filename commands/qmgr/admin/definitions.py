"""The definitions of an embedded queue manager as an MQSC script, read without holding up its processor."""

from __future__ import annotations

from datetime import datetime

from commands.mqsc.export import exported
from commands.qmgr.store import QueueManagerStore


def definitions_of(store: QueueManagerStore, now: datetime) -> str:
    """The script: it makes the same objects in another queue manager. now: UTC, from which EXPIRY counts."""
    with store.one_moment():
        objects, subscriptions, _ = store.load_state()
    return "".join(f"{line}\n" for line in exported(objects, subscriptions, now))
