"""The row that a message becomes when it is put on a queue."""

from __future__ import annotations

from datetime import datetime

from commands.broker.objects import TEMPORARY, LocalQueue
from commands.qmgr.store.descriptor import HIGHEST_PRIORITY, arrive, default_descriptor
from commands.qmgr.store.errors import MQRC_PERSISTENT_NOT_ALLOWED, MessageRefusedError
from commands.qmgr.store.rows import MessageRow
from commands.qmgr.store.state import LAST_US, to_microseconds


class Arrivals:
    """Makes the rows of one unit of work; many puts have one time."""

    __slots__ = ("_time", "_time_us")

    def __init__(self) -> None:
        self._time: datetime | None = None
        self._time_us = 0

    def row(
        self,
        queue: LocalQueue,
        qmgr: str,
        seq: int,
        md: bytes | None,
        body: bytes,
        time: datetime,
        user: str | None,
        application: str,
        expires_at: datetime | None,
    ) -> MessageRow:
        """Message number *seq*, put on *queue* of queue manager *qmgr*; the rest is as for ``Queues.put``.

        Raises MessageRefusedError for a descriptor that no queue takes, and for a persistent message where *queue* goes
        with a program (2048).
        """
        arrived = arrive(
            default_descriptor(body) if md is None else md,
            queue=queue.name,
            def_priority=queue.def_priority,
            def_persistent=queue.def_persistent,
            qmgr=qmgr,
            unique=seq,
            time=time,
            user=user,
            application=application,
        )
        if arrived.persistent and queue.definition_type == TEMPORARY:
            why = "it is a temporary dynamic queue, which takes no persistent messages"
            raise MessageRefusedError(MQRC_PERSISTENT_NOT_ALLOWED, queue.name, why)
        if time is not self._time:
            self._time, self._time_us = time, to_microseconds(time)
        time_us = self._time_us
        if expires_at is not None:
            end_us: int | None = to_microseconds(expires_at)
        else:
            end_us = None if arrived.lifetime_us is None else min(time_us + arrived.lifetime_us, LAST_US)
        rank = HIGHEST_PRIORITY - arrived.priority
        return (seq, queue.name, rank, time_us, arrived.user, arrived.persistent, end_us, arrived.md, body, 0)
