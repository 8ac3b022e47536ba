"""The flags of REQUEST_MSGS and the codes of NOTIFICATION (docs/wire-formats.md)."""

from __future__ import annotations

from typing import Final

from rfh2.mqi_constants import (
    MQMO_MATCH_CORREL_ID,
    MQMO_MATCH_GROUP_ID,
    MQMO_MATCH_MSG_ID,
    MQMO_MATCH_MSG_TOKEN,
)

HAS_SELECTION: Final = 0x10
CHECKS: Final = 0x02
"""The program asks for what there is now, and waits for the notification behind it."""
CALL: Final = 0x08
"""A call waits for the message; else it is for a consumer, whenever it comes."""
STREAM_REQUEST: Final = 1
"""The request id of messages that are streamed."""
IDENTIFIERS: Final = (
    (MQMO_MATCH_MSG_ID, "msg_id", 24),
    (MQMO_MATCH_CORREL_ID, "correl_id", 24),
    (MQMO_MATCH_GROUP_ID, "group_id", 24),
    (MQMO_MATCH_MSG_TOKEN, "token", 16),
)
"""What a selection matches by, in this order: match option, name, bytes."""
CONN_STATE, CONN_STATE_REPLY, Q_STATE, Q_STATE_REPLY, QUIESCING, CHECK_MSG, FAILURE = 3, 4, 5, 6, 7, 11, 14
