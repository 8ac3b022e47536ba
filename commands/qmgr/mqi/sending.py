"""Messages that the queue manager itself sends: reports, and delayed messages when they are due."""

from __future__ import annotations

from datetime import datetime

from commands.broker.dead_letter import DeadLetters, is_wanted
from commands.broker.puts import Outgoing
from commands.broker.transmission import transmitted
from commands.disk.errors import QueueError
from commands.qmgr.store.unit_of_work import SqliteUnitOfWork
from rfh2.constants import MQRC_UNKNOWN_REMOTE_Q_MGR


def send(unit: SqliteUnitOfWork, put: Outgoing, user: str | None, now: datetime) -> tuple[str, int] | None:
    """Put *put*, or the dead letter in its place; the queue that has it and its number, None where it is discarded.

    user: who puts it. Raises QueueError where the dead-letter queue refuses it too.
    """
    try:
        return _put(unit, put, user)
    except QueueError as refused:
        if not is_wanted(put.mqmd):
            return None
        qmgr = unit.queue_manager()
        letters = DeadLetters(qmgr.name, qmgr.deadq)
        reason, expires_at = refused.reason, put.expires_at
        letter = letters.put(put.mqmd, put.body, reason, put.queue, now, qmgr=put.qmgr, expires_at=expires_at)
        return _put(unit, letter, user)


def _put(unit: SqliteUnitOfWork, put: Outgoing, user: str | None) -> tuple[str, int]:
    if put.qmgr != unit.queue_manager().name:
        behind = unit.find_queue(put.qmgr)
        if behind is None or not behind.transmission:
            raise QueueError(MQRC_UNKNOWN_REMOTE_Q_MGR, put.queue, f"there is no transmission queue {put.qmgr}")
        put = transmitted(put)
    return put.queue, unit.put(put.queue, put.md, put.body, user=user, expires_at=put.expires_at)
