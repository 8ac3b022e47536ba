"""The mixed load of the long runs, and how large a processor and its files are."""

from __future__ import annotations

import random
import resource
from pathlib import Path

from commands.qmgr.store import UnitOfWork
from tests.reliability.workload import CONTROL, STREAM, put

DEAD, REPLIES, ALL = "SYSTEM.DEAD.LETTER.QUEUE", "REPLIES", "ALL"
OWN = tuple(f"OWN.{n}" for n in range(5))
_TOPICS = 200


def mixed(unit: UnitOfWork, producer: int, body: bytes, chance: random.Random) -> bool:
    """Put one message of the load; whether it was a publication, with *body*.

    Publications, a third of them retained, and some answered; registrations that come, go and expire; requests and
    deletions.
    """
    kind, topic = chance.random(), f"s/{producer}/{chance.randrange(_TOPICS)}"
    own = f"<Topic>{topic}</Topic><QName>{chance.choice(OWN)}</QName>"
    if kind < 0.04:
        put(unit, CONTROL, f"<Command>RegSub</Command>{own}", expiry=chance.choice((-1, 100, 600)))
    elif kind < 0.06:
        put(unit, CONTROL, f"<Command>DeregSub</Command>{own}", report=2, reply_to_q=REPLIES)
    elif kind < 0.07:
        put(unit, CONTROL, f"<Command>ReqUpdate</Command>{own}", msg_type=1, reply_to_q=REPLIES)
    elif kind < 0.08:
        put(unit, STREAM, f"<Command>DeletePub</Command><Topic>{topic}</Topic>")
    else:
        retain = "<PubOpt>RetainPub</PubOpt>" if kind < 0.3 else ""
        asks = {"msg_type": 1, "reply_to_q": REPLIES} if kind > 0.9 else {}
        put(unit, STREAM, f"<Command>Publish</Command>{retain}<Topic>{topic}</Topic>", body, **asks)
        return True
    return False


def worker_of(supervisor: int) -> int:
    """The process that works for *supervisor*; 0 in the moment when there is none."""
    found = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    return int(found[0]) if found else 0


def working_set(pid: int) -> int:
    """Bytes of process *pid* that are in memory; 0 where it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def file_size(path: Path) -> int:
    """The size of a file in bytes; 0 where there is none."""
    return path.stat().st_size if path.exists() else 0
