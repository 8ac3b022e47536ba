"""Which of IBM MQ's reasons refuse one put, so that the dead-letter queue may take the message instead."""

from __future__ import annotations

from typing import Final

from commands.client.errors import MqError
from commands.disk.errors import MessageRefusedError, QueueError
from rfh2.constants import MQRC_NOT_AUTHORIZED, MQRC_UNKNOWN_OBJECT_NAME

# The put failed because of the queue or this message: the dead-letter queue may take the message instead.
REFUSED: Final = {
    2001: "it is an alias of an alias",
    2005: "the message is too long for the buffer",
    2010: "the message has an invalid length",
    2013: "its Expiry is invalid",
    2026: "its MQMD is invalid",
    2027: "its ReplyToQ is missing",
    2029: "its MsgType is invalid",
    2030: "the message is longer than the queue's MAXMSGL",
    2031: "the message is longer than the queue manager's MAXMSGL",
    MQRC_NOT_AUTHORIZED: "not authorized to put there with the message's own context, which takes +setall",
    2043: "it is not a queue to put to",
    2047: "its Persistence is invalid",
    2048: "the queue is temporary and the message persistent",
    2050: "its Priority is invalid",
    2051: "putting is inhibited",
    2052: "it has been deleted",
    2053: "it is full",
    2056: "there is no space on disk for it",
    2057: "its queue type is invalid",
    2082: "it is an alias of a queue that does not exist",
    MQRC_UNKNOWN_OBJECT_NAME: "there is no such queue",
    2086: "there is no such queue manager",
    2087: "there is no way to that queue manager",
    2092: "its transmission queue is a queue of another kind",
    2098: "the context of the message may not be set",
    2115: "the queue's transmission queue is unknown",
    2149: "the message is malformed",
    2189: "its cluster cannot be resolved",
    2192: "the storage for it is full",
    2196: "the transmission queue of that queue manager is unknown",
    2197: "the default transmission queue is unknown",
    2198: "the default transmission queue is not local",
    2199: "the default transmission queue is used otherwise",
    2218: "the message is longer than the channel takes",
    2269: "its cluster has no queue for it now",
}


_OF_THE_MESSAGE: Final = frozenset({2005, 2010, 2013, 2026, 2027, 2029, 2030, 2031, 2047, 2048, 2050, 2149})


def refusal(queue: str, error: MqError) -> QueueError | None:
    """What a put's *error* says of *queue*; None where it is no fault of queue or message."""
    why = REFUSED.get(error.reason)
    if why is None:
        return None
    kind = MessageRefusedError if error.reason in _OF_THE_MESSAGE else QueueError
    return kind(error.reason, queue, why)
