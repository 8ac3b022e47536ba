"""Taking commands off several queues in the order in which they were put, by browsing ahead.

MQ orders one queue, by priority and arrival; between queues there is only PutDate and PutTime, to a hundredth of a
second. A program that registers and then publishes must not find its publication processed first. So a message is only
taken when every other queue has been looked at since that message was seen: what is put there later is later.

Looking is cheap: the descriptors alone are browsed, many ahead, and a queue that was empty is looked at again once for
all of those. A message is got, under syncpoint and by its token, when it is its turn and no sooner: what is got and not
processed would be gone with the commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from commands.live.ibmmq.connection import Connection, Got
from rfh2.layouts import MQMD1

AHEAD: Final = 50
_PUT: Final = {name: slice(at, at + size) for name, at, size in MQMD1.spans() if name in ("PutDate", "PutTime")}


@dataclass(slots=True)
class _Seen:
    """A message that was browsed. at: the look with which it was."""

    put: bytes
    token: bytes
    at: int


@dataclass(slots=True)
class _Lane:
    queue: str
    handle: Any
    ahead: deque[_Seen] = field(default_factory=deque)
    empty_at: int = -1


class Lanes:
    """The input queues during one unit of work. handles: open for browsing and for input; those missing are passed."""

    def __init__(self, connection: Connection, queues: Sequence[tuple[str, Any]]) -> None:
        self._connection = connection
        self.handles = tuple(queues)
        self._lanes = [_Lane(queue, handle) for queue, handle in queues]
        self._looks = 0
        # Whether all were looked at since the last message was taken.
        self._looked = False

    def take(self) -> tuple[str, Got] | None:
        """The next message, got under syncpoint, and its queue; None where there is none."""
        cmqc = self._connection.mq.CMQC
        while (lane := self._next()) is not None:
            seen = lane.ahead.popleft()
            got = self._connection.get(lane.handle, cmqc.MQGMO_SYNCPOINT, token=seen.token)
            if got is not None:
                self._looked = False
                return lane.queue, got
        return None

    def _next(self) -> _Lane | None:
        while True:
            filled = [lane for lane in self._lanes if lane.ahead]
            if filled:
                first = min(filled, key=lambda lane: lane.ahead[0].put)
                stale = [lane for lane in self._lanes if not lane.ahead and lane.empty_at <= first.ahead[0].at]
                if not stale:
                    return first
            elif self._looked:
                return None
            else:
                stale, self._looked = self._lanes, True
            for lane in stale:
                self._look(lane)

    def _look(self, lane: _Lane) -> None:
        # From the beginning: what was taken is not seen again, and what was put before the cursor is not missed.
        self._looks += 1
        first = True
        while len(lane.ahead) < AHEAD:
            seen = self._connection.glance(lane.handle, first)
            if seen is None:
                break
            lane.ahead.append(_Seen(seen.md[_PUT["PutDate"]] + seen.md[_PUT["PutTime"]], seen.token, self._looks))
            first = False
        if not lane.ahead:
            lane.empty_at = self._looks
