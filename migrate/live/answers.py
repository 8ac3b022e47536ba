"""The answers of a broker to commands in MQRFH, on a reply queue: responses, and what is no response."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from commands.broker.objects import CONTROL_QUEUE
from commands.qmgr.store.port import StoredMessage
from migrate.live.loading import Messages
from rfh2.errors import MigrationError, QPubSubError
from rfh2.message import decode
from rfh2.mqps import MQPS_COMP_CODE, MQPS_REASON

_PAUSE_S: Final = 0.05


def reason_of(message: StoredMessage) -> int | None:
    """MQPSReason of a response, 0 for success; None for a message that is no response."""
    try:
        decoded = decode(message.body, message.md)
        pairs = {} if decoded.rfh1 is None else dict(decoded.rfh1.pairs())
    except QPubSubError:
        return None
    if MQPS_COMP_CODE not in pairs:
        return None
    reason = pairs.get(MQPS_REASON, "0")
    return int(reason) if reason.isdecimal() else 0


def answers_until_response(messages: Messages, queue: str, wait_s: float, take: Callable[[StoredMessage], None]) -> int:
    """Take messages off *queue* until a response arrives, giving each of them to *take*; the response's reason.

    Raises MigrationError where none arrives in *wait_s* seconds after the last message.
    """
    end = time.monotonic() + wait_s
    while True:
        with messages.unit_of_work() as unit:
            found = unit.get(queue)
        if found is None:
            if time.monotonic() >= end:
                why = f"no answer on {queue} in {wait_s:g} s: see that the broker processes {CONTROL_QUEUE}"
                raise MigrationError(why)
            time.sleep(_PAUSE_S)
            continue
        take(found)
        reason = reason_of(found)
        if reason is not None:
            return reason
        end = time.monotonic() + wait_s
