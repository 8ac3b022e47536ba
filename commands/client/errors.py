"""What a call of IBM MQ's interface ends with: a reason code, and what a program does about it."""

from __future__ import annotations

from typing import Final

from rfh2 import constants, mqi_constants
from rfh2.errors import QPubSubError, StoreError

CONNECT: Final = "MQCONNX"


# The connection cannot be used any more, or not for long: end it and make another one.
BROKEN: Final = frozenset(
    {
        mqi_constants.MQRC_CONNECTION_BROKEN,
        mqi_constants.MQRC_HCONN_ERROR,
        mqi_constants.MQRC_Q_MGR_NOT_AVAILABLE,
        2161,  # Q_MGR_QUIESCING
        2162,  # Q_MGR_STOPPING
        mqi_constants.MQRC_UNEXPECTED_ERROR,
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
    return (
        BackedOutError(what, reason, name) if reason == mqi_constants.MQRC_BACKED_OUT else MqError(what, reason, name)
    )


class ProtocolError(QPubSubError):
    """The queue manager sends what the protocol does not have. The connection is of no use after it."""


_NAMES: Final = {
    value: name.removeprefix("MQRC_")
    for module in (mqi_constants, constants)
    for name, value in vars(module).items()
    if name.startswith("MQRC_")
} | {
    2059: "Q_MGR_NOT_AVAILABLE",
    2161: "Q_MGR_QUIESCING",
    2202: "CONNECTION_QUIESCING",
    2203: "CONNECTION_STOPPING",
    2393: "SSL_INITIALIZATION_ERROR",
    2398: "SSL_PEER_NAME_MISMATCH",
    2537: "CHANNEL_NOT_AVAILABLE",
    2538: "HOST_NOT_AVAILABLE",
    2539: "CHANNEL_CONFIG_ERROR",
    2540: "UNKNOWN_CHANNEL_NAME",
    2549: "CALL_INTERRUPTED",
}


def reason_word(reason: int) -> str:
    """The name of a reason without ``MQRC_``; its number where it has none here."""
    return _NAMES.get(reason, str(reason))
