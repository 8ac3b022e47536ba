"""What MQGET gives of a message: all of it or its beginning, and in the character set and encoding that are asked for.

A message that is longer than the program takes is cut behind its conversion, so that what the program gets is the
beginning of the converted message. Its length is said as it is on the queue (IBM's "Processing conventions").
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rfh2.constants import MQENC_NATIVE
from rfh2.conversion import convert
from rfh2.mqi_constants import (
    MQCC_WARNING,
    MQGMO_ACCEPT_TRUNCATED_MSG,
    MQGMO_CONVERT,
    MQRC_CONVERTED_MSG_TOO_BIG,
    MQRC_TRUNCATED_MSG_ACCEPTED,
    MQRC_TRUNCATED_MSG_FAILED,
)
from rfh2.mqmd import Mqmd

NO_ID = bytes(24)


@dataclass(frozen=True, slots=True)
class GetOptions:
    """What MQGET asks for. options: MQGMO_*. match: MQMO_*, of the ids below. longest: bytes of data; None for any.

    seq: of the message that the caller was shown before, as its token says; 0 for none. ccsid, encoding: in which
    MQGMO_CONVERT gives the data.
    """

    options: int
    match: int
    msg_id: bytes = NO_ID
    correl_id: bytes = NO_ID
    group_id: bytes = NO_ID
    longest: int | None = None
    seq: int = 0
    ccsid: int = 0
    encoding: int = MQENC_NATIVE


@dataclass(frozen=True, slots=True)
class Got:
    """A message that MQGET gives. length: of all data, also where *body* is cut. reason: of a warning, or 0."""

    mqmd: Mqmd
    body: bytes
    length: int
    queue: str
    seq: int
    reason: int = 0

    @property
    def comp_code(self) -> int:
        """MQCC_OK or MQCC_WARNING."""
        return MQCC_WARNING if self.reason else 0


def as_asked(mqmd: Mqmd, body: bytes, asked: GetOptions, queue: str, seq: int) -> Got:
    """What MQGET gives of a message on *queue*; its MQMD says in which character set and encoding it is given."""
    whole = Got(mqmd, body, len(body), queue, seq)
    longest, accepts = asked.longest, asked.options & MQGMO_ACCEPT_TRUNCATED_MSG
    if longest is not None and len(body) > longest and not accepts:
        return replace(whole, body=body[:longest], reason=MQRC_TRUNCATED_MSG_FAILED)
    if asked.options & MQGMO_CONVERT and longest != 0:
        converted = convert(body, mqmd, asked.ccsid, asked.encoding)
        if longest is not None and max(len(body), len(converted.body)) > longest and not accepts:
            return replace(whole, reason=MQRC_CONVERTED_MSG_TOO_BIG)
        whole = Got(converted.mqmd, converted.body, len(converted.body), queue, seq, converted.reason)
    if longest is not None and max(len(body), len(whole.body)) > longest:
        return replace(whole, body=whole.body[:longest], length=len(body), reason=MQRC_TRUNCATED_MSG_ACCEPTED)
    return whole
