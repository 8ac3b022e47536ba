"""The error codes of STATUS, by which a queue manager ends a channel (docs/wire-formats.md)."""

from __future__ import annotations

from typing import Final

NO_SUCH_CHANNEL, WRONG_CHANNEL_TYPE, TERMINATING, BAD_SEGMENT, CHANNEL_UNAVAILABLE = 0x01, 0x02, 0x05, 0x0D, 0x16

STATUS_CODES: Final[dict[int, tuple[int, str]]] = {
    NO_SUCH_CHANNEL: (2540, "there is no such channel"),
    WRONG_CHANNEL_TYPE: (2539, "the channel is not a server-connection channel"),
    0x03: (2059, "the queue manager is not available"),
    TERMINATING: (2161, "the queue manager is ending"),
    0x07: (2009, "the channel was stopped"),
    **dict.fromkeys((*range(10, 17), 29, 31), (2009, "the queue manager does not understand the client")),
    0x14: (2035, "security refuses the connection"),
    CHANNEL_UNAVAILABLE: (2537, "the channel is stopped, or has all its instances"),
    0x17: (2537, "a channel exit closed the channel"),
    0x18: (2393, "the channel requires TLS, or another cipher"),
    0x19: (2398, "the channel requires a certificate with another name"),
    0x1A: (2393, "the channel requires a certificate"),
    0x1E: (2009, "the conversation is not known"),
    0x20: (2059, "the queue manager is a standby instance"),
    **dict.fromkeys((0xF0, 0xF1, 0xF2, 0xF3), (2539, "the negotiation failed")),
}
"""By code: the reason that a program gets, and what it means."""
