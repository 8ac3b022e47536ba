"""The state of a subscriber's queue: whether it takes publications, by its definition or by a dead letter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from commands.broker.objects import Objects
from commands.broker.outcome import Arrival
from commands.explain.why.attempts import attempt
from commands.explain.why.verdict import Reason
from rfh2.constants import MQFMT_DEAD_LETTER_HEADER, MQRC_Q_FULL, MQRC_UNKNOWN_OBJECT_NAME, MQRC_UNKNOWN_REMOTE_Q_MGR
from rfh2.dlh import Dlh
from rfh2.errors import DecodeError
from rfh2.explain.reasons import reason_text
from rfh2.message import decode
from rfh2.mqi_constants import MQRC_Q_DELETED
from rfh2.mqmd import Mqmd, name_of

QueueState = Callable[[str, str], tuple[Reason, str] | None]
"""What keeps a publication from a queue, by queue manager and queue, and the sentence; None where nothing does."""

_BY_CODE: Final = {
    MQRC_Q_FULL: Reason.QUEUE_FULL,
    MQRC_UNKNOWN_OBJECT_NAME: Reason.QUEUE_GONE,
    MQRC_Q_DELETED: Reason.QUEUE_GONE,
    MQRC_UNKNOWN_REMOTE_Q_MGR: Reason.TRANSMISSION,
}


def by_definition(objects: Objects) -> QueueState:
    """What the definitions of a queue manager say, without its messages."""

    def state(qmgr: str, queue: str) -> tuple[Reason, str] | None:
        if qmgr != objects.qmgr.name:
            return Reason.TRANSMISSION, transmission_sentence(objects, qmgr)
        found = objects.queue(queue)
        if found is None:
            if objects.qmgr.strict:
                return Reason.QUEUE_GONE, f"queue {queue} is not defined: DEFINE QLOCAL({queue})"
            return None
        if not found.put_enabled:
            why = f"queue {queue} has PUT(DISABLED), so the publication becomes a dead letter (2051)"
            return Reason.DEAD_LETTER, f"{why}: ALTER QLOCAL({queue}) PUT(ENABLED)"
        if not found.max_depth:
            return Reason.QUEUE_FULL, f"queue {queue} has MAXDEPTH(0): it takes no message"
        return None

    return state


def transmission_sentence(objects: Objects, qmgr: str) -> str:
    """What happens to a publication for another queue manager."""
    queue = objects.queues.get(qmgr)
    goes = f"the subscriber's queue is at queue manager {qmgr}: the publication goes to transmission queue {qmgr} here"
    if queue is None or not queue.transmission:
        return f"{goes}, which is not defined as one; check QMgrName and ReplyToQMgr of the RegSub"
    return f"{goes}, and a channel has to take it"


@dataclass(frozen=True, slots=True)
class DeadPublication:
    """A dead letter that was a publication for a subscriber's queue. topics: as the publication names them."""

    queue: str
    topics: tuple[str, ...]
    reason: Reason
    why: str


def dead_publication(arrival: Arrival) -> DeadPublication | None:
    """What a captured dead letter says about a subscriber's queue; None for another message."""
    if arrival.md is None:
        return None
    try:
        if Mqmd.decode(arrival.md).format != MQFMT_DEAD_LETTER_HEADER:
            return None
        header = decode(arrival.body, arrival.md).headers[0]
    except (DecodeError, IndexError):
        return None
    wanted = attempt(arrival)
    if not isinstance(header, Dlh) or wanted is None or not wanted.topics:
        return None
    queue, code = name_of(header.dest_q_name), header.reason
    why = f"message {arrival.seq} on {arrival.queue} is the dead letter: {code} {reason_text(code)}".rstrip()
    return DeadPublication(queue, wanted.topics, _BY_CODE.get(code, Reason.DEAD_LETTER), f"{why} (queue {queue})")
