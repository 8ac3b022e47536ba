"""The row that a message becomes when it is put on a queue; the command, when that is an alias of a topic."""

from __future__ import annotations

from datetime import datetime

from commands.broker.descriptor import HIGHEST_PRIORITY, arrive, default_descriptor
from commands.broker.objects import TEMPORARY, LocalQueue
from commands.broker.state import LAST_US, to_microseconds
from commands.disk.errors import MessageRefusedError, QueueError
from commands.headers.put_to_topic import publish_command
from commands.qmgr.store.rows import MessageRow
from rfh2.constants import MQAT_BROKER
from rfh2.errors import DecodeError, EncodeError
from rfh2.inherited_ccsids import put_descriptor, resolved_body
from rfh2.mqi_constants import (
    MQRC_MD_ERROR,
    MQRC_OBJECT_TYPE_ERROR,
    MQRC_PERSISTENT_NOT_ALLOWED,
    MQRC_TOPIC_STRING_ERROR,
)
from rfh2.mqmd import Mqmd


class Arrivals:
    """Makes the rows of one unit of work; many puts have one time."""

    __slots__ = ("_time", "_time_us")

    def __init__(self) -> None:
        self._time: datetime | None = None
        self._time_us = 0

    def time_us(self, time: datetime) -> int:
        """*time* in microseconds."""
        if time is not self._time:
            self._time, self._time_us = time, to_microseconds(time)
        return self._time_us

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

        Raises MessageRefusedError for a descriptor that no queue takes, and for a persistent message to a *queue* that
        is deleted with its program (2048).
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
        time_us = self.time_us(time)
        if expires_at is not None:
            end_us: int | None = to_microseconds(expires_at)
        else:
            end_us = None if arrived.lifetime_us is None else min(time_us + arrived.lifetime_us, LAST_US)
        rank = HIGHEST_PRIORITY - arrived.priority
        descriptor = put_descriptor(arrived.md, body, md)
        body = resolved_body(body, descriptor)
        return (seq, queue.name, rank, time_us, arrived.user, arrived.persistent, end_us, descriptor, body, 0)


def publication(alias: str, topic: str, md: bytes, body: bytes) -> tuple[bytes, bytes]:
    """The Publish command that a message put on *alias*, an alias of a topic object, becomes (guide 7.7).

    topic: the object's topic string. Raises QueueError 2425 where that is empty, 2043 for what a broker puts:
    subscribers and replies are on queues, and a subscription that feeds its own topic would never end;
    MessageRefusedError 2026 for a descriptor or headers that cannot be read.
    """
    if not topic:
        raise QueueError(MQRC_TOPIC_STRING_ERROR, alias, "it is an alias of a topic object without a TOPICSTR")
    try:
        mqmd = Mqmd.decode(md)
        if mqmd.put_appl_type == MQAT_BROKER:
            raise QueueError(MQRC_OBJECT_TYPE_ERROR, alias, "it is an alias of a topic, and takes nothing from brokers")
        mqmd, command = publish_command(topic, mqmd, body)
        return mqmd.encode(), command
    except (DecodeError, EncodeError) as error:
        raise MessageRefusedError(MQRC_MD_ERROR, alias, str(error)) from error
