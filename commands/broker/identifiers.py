"""The fields that a queue manager sets in a message that it puts: identifiers, origin context, date and time.

Identifiers are made from the arrival number of the command that causes them and a count within it. They are therefore
unique in a queue manager, and the same whenever the same commands arrive in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

from rfh2.constants import MQAT_BROKER

CARRIED_IDS: Final = 1 << 22
"""The count of identifiers for what neighbours send begins here: a command never makes so many itself."""
_PRODUCT = b"AMQ "
_FIVE_BYTES = 0xFF_FFFF_FFFF
_BEYOND_A_NAME = 0x80_0000


def message_id(qmgr: str, seq: int, n: int) -> bytes:
    """24 bytes: ``AMQ ``, the queue manager's name cut to 12 characters, five bytes of *seq*, three of *n*.

    If *seq* needs more than five bytes, as a time stamp in a capture may, its higher bytes replace the end of the name,
    with the top bit set, so that such identifiers still sort after all with a lower *seq*.
    """
    head = _head(qmgr)
    if high := seq >> 40:
        head = head[:13] + (_BEYOND_A_NAME | high).to_bytes(3, "big")
    return head + (seq & _FIVE_BYTES).to_bytes(5, "big") + n.to_bytes(3, "big")


def is_of_a_put(msg_id: bytes, qmgr: str) -> bool:
    """Whether ``message_id`` made it for a put of *qmgr*; where a queue completes a program's, the top bit is set."""
    return msg_id.startswith(_head(qmgr)) and msg_id[16] < 0x80


@lru_cache(maxsize=64)
def _head(qmgr: str) -> bytes:
    return _PRODUCT + qmgr[:12].ljust(12).encode("ascii", "replace")


@lru_cache(maxsize=4096)
def fitting(name: str, size: int) -> str:
    """*name* cut to *size* characters, with a question mark for each that a character field cannot hold.

    A user or a queue in a capture may have a name that no queue manager allows; the message must still be put.
    """
    return name[:size].encode("latin-1", "replace").decode("latin-1")


class Ids:
    """The identifiers of one command: MsgIds for its puts and sub_ids for what it registers, from one count.

    begin: where the count begins. That of a network's publications is far behind those of the queue manager's own.
    """

    def __init__(self, qmgr: str, seq: int, begin: int = 0) -> None:
        self._qmgr, self._seq, self._n = qmgr, seq, begin

    def __call__(self) -> bytes:
        """The next identifier."""
        self._n += 1
        return message_id(self._qmgr, self._seq, self._n)


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin context of all messages that the queue manager puts at one time (guide 6.7.9, 6.7.10)."""

    put_appl_name: str
    put_date: str
    put_time: str
    put_appl_type: int = MQAT_BROKER
    appl_origin_data: str = ""

    @classmethod
    def of(cls, qmgr: str, now: datetime) -> Origin:
        """PutDate and PutTime are UTC, to hundredths of a second."""
        date = f"{now.year:04}{now.month:02}{now.day:02}"
        time = f"{now.hour:02}{now.minute:02}{now.second:02}{now.microsecond // 10_000:02}"
        return cls(fitting(qmgr, 28), date, time)
