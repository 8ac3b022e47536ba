"""Heartbeats: whether the other end of a connection that is quiet is still there (HBINT).

A listener asks a client that shares its connection, and so reads at any time, when that was quiet for the interval. A
client that does not share it reads only while it waits for a reply: it is asked while a call waits for a message. A
client asks its queue manager in the same way. Who is asked and sends nothing, as long again or a minute, is taken for
gone.

    quiet for HBINT: ask ──> anything received: begin anew
                       └──> nothing for HBINT, at most 60 s more: gone
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from rfh2.ccsid import ENCODINGS
from rfh2.channel.segments import SegmentHeader, SegmentType

_LONGEST_PATIENCE_S: Final = 60.0


class Beat(Enum):
    """What is due."""

    NOTHING = "nothing"
    ASK = "ask"
    GONE = "gone"


@dataclass(slots=True)
class Pulse:
    """One connection's. interval_s: HBINT, above 0. heard_s: the clock when the other end last sent something."""

    interval_s: float
    heard_s: float
    asked_s: float | None = None

    @property
    def patience_s(self) -> float:
        """How long the other end, once asked, may send nothing."""
        return min(self.interval_s, _LONGEST_PATIENCE_S)

    def hear(self, now_s: float) -> None:
        """The other end has sent something."""
        self.heard_s, self.asked_s = now_s, None

    def beat(self, now_s: float, reads: bool) -> tuple[Beat, float]:
        """What is due, and when to look again. reads: whether the other end would read a heartbeat now."""
        if self.asked_s is not None:
            gone_s = self.asked_s + self.patience_s
            return (Beat.GONE, gone_s) if now_s >= gone_s else (Beat.NOTHING, gone_s)
        due_s = self.heard_s + self.interval_s
        if now_s < due_s:
            return Beat.NOTHING, due_s
        if not reads:
            return Beat.NOTHING, now_s + self.interval_s / 2
        self.asked_s = now_s
        return Beat.ASK, now_s + self.patience_s


def heartbeat(latest: SegmentHeader, flags: int) -> bytes:
    """A HEARTBEAT segment; it belongs to the connection, in the byte order of the *latest* segment that came."""
    is_shared = latest.of_connection or latest.conversation is not None
    order = latest.order
    header = SegmentHeader(
        SegmentType.HEARTBEAT, flags, order=order, encoding=ENCODINGS[order], of_connection=is_shared
    )
    return header.write(b"")
