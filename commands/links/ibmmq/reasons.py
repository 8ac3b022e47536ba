"""Reason codes of the MQI, grouped by what the bridge does about them."""

from __future__ import annotations

from typing import Final

from commands.disk.errors import MessageRefusedError, QueueError
from rfh2.constants import MQRC_NOT_AUTHORIZED, MQRC_UNKNOWN_OBJECT_NAME
from rfh2.errors import StoreError
from rfh2.mqi_constants import (
    MQRC_BACKED_OUT,
    MQRC_CONNECTION_BROKEN,
    MQRC_HCONN_ERROR,
    MQRC_Q_MGR_NOT_AVAILABLE,
    MQRC_UNEXPECTED_ERROR,
)

CONNECT: Final = "MQCONNX"


# The connection cannot be used any more, or not for long: end it and make another one.
BROKEN: Final = frozenset(
    {
        MQRC_CONNECTION_BROKEN,
        MQRC_HCONN_ERROR,
        MQRC_Q_MGR_NOT_AVAILABLE,
        2161,  # Q_MGR_QUIESCING
        2162,  # Q_MGR_STOPPING
        MQRC_UNEXPECTED_ERROR,
        2202,  # CONNECTION_QUIESCING
        2203,  # CONNECTION_STOPPING
        2223,  # Q_MGR_NOT_ACTIVE
        2273,  # CONNECTION_ERROR
        2537,  # CHANNEL_NOT_AVAILABLE
        2538,  # HOST_NOT_AVAILABLE
        2539,  # CHANNEL_CONFIG_ERROR
        2548,  # RECONNECT_FAILED
        2009,
        2279,  # CHANNEL_STOPPED_BY_USER
    }
)

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
    MQRC_NOT_AUTHORIZED: "the bridge is not authorized to put there",
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


# The usual causes of a failed MQCONNX.
CONNECTING: Final = {
    2035: "user, password or channel authentication (CHLAUTH); AMQERR01.LOG says which",
    2058: "the queue manager at that address has another name",
    2059: "nothing listens there, or the queue manager is not running",
    2085: "the queue manager's name is unknown to the client",
    2393: "TLS: key repository, cipher or certificate",
    2397: "TLS: the handshake failed",
    2537: "the channel is stopped or in use to its limit",
    2538: "the host does not answer",
    2539: "the channel's definition does not fit, or there is none",
    2540: "there is no such channel at the queue manager",
}

_OF_THE_MESSAGE: Final = frozenset({2005, 2010, 2013, 2026, 2027, 2029, 2030, 2031, 2047, 2048, 2050, 2149})


class MqError(StoreError):
    """IBM MQ refuses a call. reason: MQRC_*. what: the call and its object."""

    def __init__(self, what: str, reason: int, name: str) -> None:
        super().__init__(what, reason, name)
        self.what, self.reason, self.name = what, reason, name

    def __str__(self) -> str:
        hint = CONNECTING.get(self.reason) if self.what.startswith(CONNECT) else None
        return f"{self.what}: reason {self.reason} ({self.name})" + (f"; {hint}" if hint else "")


class ConnectionLostError(MqError):
    """The connection to the queue manager is lost, or must be ended; what was not committed is backed out."""


class BackedOutError(MqError):
    """MQCMIT backed out instead: nothing of the unit of work happened."""


def failure(what: str, reason: int, name: str) -> MqError:
    """The exception for a call that ended with *reason*, whose name is MQRC_ *name*."""
    if reason in BROKEN:
        return ConnectionLostError(what, reason, name)
    return BackedOutError(what, reason, name) if reason == MQRC_BACKED_OUT else MqError(what, reason, name)


def refusal(queue: str, error: MqError) -> QueueError | None:
    """What a put's *error* says of *queue*; None where it is no fault of queue or message."""
    why = REFUSED.get(error.reason)
    if why is None:
        return None
    kind = MessageRefusedError if error.reason in _OF_THE_MESSAGE else QueueError
    return kind(error.reason, queue, why)
