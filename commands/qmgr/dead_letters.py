"""A dead letter, put again to where it was to go, as a dead-letter handler's ACTION(RETRY) does.

The message that follows the MQDLH goes to DestQName, with the Format, CodedCharSetId and Encoding that the MQDLH keeps
for it; it keeps MsgId, CorrelId, user and persistence. Get and put are one unit of work: where the queue refuses the
message, the dead letter stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from commands.broker.state import from_microseconds, to_microseconds
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.messages import EXPIRES_AT, message_of
from commands.qmgr.store.uncommitted import Match
from rfh2.dlh import Dlh, decode_dlh
from rfh2.errors import DecodeError, QPubSubError
from rfh2.mqmd import Mqmd, name_of


class NotPutAgainError(QPubSubError):
    """A dead letter cannot be put again. why: one clause."""

    def __init__(self, seq: int, why: str) -> None:
        super().__init__(seq, why)
        self.seq, self.why = seq, why

    def __str__(self) -> str:
        return f"message {self.seq} was not put again: {self.why}"


@dataclass(frozen=True, slots=True)
class Revived:
    """What is behind the MQDLH of a dead letter."""

    header: Dlh
    mqmd: Mqmd
    body: bytes


def revived(md: bytes, body: bytes) -> Revived:
    """The message of a dead letter. Raises DecodeError where *body* does not begin with an MQDLH."""
    mqmd = Mqmd.decode(md)
    header = decode_dlh(body, 0, mqmd.coded_char_set_id)
    own = replace(mqmd, format=header.format, encoding=header.encoding, coded_char_set_id=header.coded_char_set_id)
    return Revived(header, own, body[header.length :])


def put_again(store: QueueManagerStore, queue: str, seq: int, now: datetime) -> str:
    """Move message *seq* of dead-letter queue *queue* to where it was to go; the name of that queue. now: UTC.

    Raises NotPutAgainError, UnknownQueueError; QueueError and MessageRefusedError where the queue does not take it.
    """
    with store.unit_of_work() as unit:
        found = unit.find_queue(queue)
        now_us = to_microseconds(now)
        row = None if found is None else unit.uncommitted.find(found.name, now_us, Match(seq=seq))
        if found is None or row is None:
            raise NotPutAgainError(seq, f"it is not on {queue} any more")
        message = message_of(store.database, row, now_us)
        try:
            letter = revived(message.md, message.body)
        except DecodeError as error:
            raise NotPutAgainError(seq, f"it does not begin with a dead-letter header ({error})") from error
        wanted, qmgr = name_of(letter.header.dest_q_name), name_of(letter.header.dest_qmgr_name)
        if qmgr and qmgr != store.name:
            raise NotPutAgainError(seq, f"it was for queue {wanted} of queue manager {qmgr}, not of this one")
        if not wanted or wanted == found.name:
            raise NotPutAgainError(seq, "its dead-letter header names no other queue")
        expires_at = row[EXPIRES_AT]
        unit.put(
            wanted,
            letter.mqmd.encode(),
            letter.body,
            user=message.user,
            expires_at=None if expires_at is None else from_microseconds(expires_at),
        )
        unit.uncommitted.remove(found.name, seq)
    return wanted
