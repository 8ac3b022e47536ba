"""The answers of a broker to commands in MQRFH, on a reply queue: responses, and what is no response."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from commands.broker.objects import CONTROL_QUEUE
from commands.qmgr.store.port import StoredMessage
from migrate.live.loading import Messages
from rfh2.constants import MQRCCF_COMMAND_FAILED
from rfh2.errors import MigrationError, QPubSubError
from rfh2.message import decode
from rfh2.mqi_constants import MQCC_OK
from rfh2.rfh1 import MQPS_COMP_CODE, MQPS_REASON

_PAUSE_S: Final = 0.05


def reason_of(message: StoredMessage) -> int | None:
    """MQPSReason of a response, 0 for success; None for a message that is no response.

    A response has a group of pairs for each topic: the first group that has failed counts. One that does not say why
    has MQRCCF_COMMAND_FAILED, and is not taken for a success.
    """
    try:
        decoded = decode(message.body, message.md)
        pairs = () if decoded.rfh1 is None else tuple(decoded.rfh1.pairs())
    except QPubSubError:
        return None
    starts = [at for at, (word, _) in enumerate(pairs) if word == MQPS_COMP_CODE]
    if not starts:
        return None
    for start, end in zip(starts, [*starts[1:], len(pairs)], strict=True):
        if pairs[start][1].strip() != str(MQCC_OK):
            reason = dict(pairs[start:end]).get(MQPS_REASON, "").strip()
            return (int(reason) if reason.isdecimal() else 0) or MQRCCF_COMMAND_FAILED
    return 0


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
