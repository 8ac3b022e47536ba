"""A queue manager with commands of every kind to process."""

from __future__ import annotations

from pathlib import Path

from commands.broker.objects import LocalQueue, QueueManager
from commands.qmgr.store import QueueManagerStore, UnitOfWork
from rfh2 import Folder, Mqmd, Rfh2

CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
DEAD = "SYSTEM.DEAD.LETTER.QUEUE"
TRACE_ID, SPAN_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED, UNSAMPLED = f"00-{TRACE_ID}-{SPAN_ID}-01", f"00-{TRACE_ID}-{SPAN_ID}-00"


def put(unit: UnitOfWork, queue: str, psc: str, usr: str = "", data: bytes = b"data", **mqmd: object) -> None:
    """Put a command. usr: what folder usr holds, none if empty."""
    md = Mqmd(**{"format": "MQHRF2", "persistence": 1, "priority": 0, "user_identifier": "app", **mqmd})  # type: ignore[arg-type]
    folders = [f"<psc>{psc}</psc>", *([f"<usr>{usr}</usr>"] if usr else [])]
    unit.put(queue, md.encode(), Rfh2(tuple(map(Folder.of, folders)), format="MQSTR").encode() + data)


def register(unit: UnitOfWork, queue: str, topic: str, more: str = "") -> None:
    put(unit, CONTROL, f"<Command>RegSub</Command>{more}<Topic>{topic}</Topic><QName>{queue}</QName>")


def publish(unit: UnitOfWork, topic: str, usr: str = "", data: bytes = b"data") -> None:
    put(unit, STREAM, f"<Command>Publish</Command><Topic>{topic}</Topic>", usr, data)


def traced(value: str) -> str:
    """A property of folder usr."""
    return f"<traceparent>{value}</traceparent>"


def queue_manager(home: Path) -> QueueManagerStore:
    """QM1 with nothing to do, and FULL, a queue that takes one message."""
    store = QueueManagerStore.create(home, QueueManager("QM1"))
    with store.unit_of_work() as unit:
        unit.save_definition(LocalQueue("FULL", max_depth=1))
    return store
