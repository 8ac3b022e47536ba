"""Takes commands from several queues in the order in which they were put.

MQ orders one queue, by priority and arrival; between queues there is only PutDate and PutTime, to a hundredth of a
second. A program that registers and then publishes must not find its publication processed first. So the first message
of a queue is taken only after a look at every other queue since it was seen: a message put there later is later.

A look is a browse of the first message's descriptor, and each message needs new looks. To browse further ahead would
save looks and be wrong: a message that was put under syncpoint may be committed behind the cursor, and later messages
would overtake it. The processor gets a message, by its token, only when it is its turn: a message that is got and not
processed would be lost with the commit.

So a message costs as many calls as there are queues, and one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from commands.links.ibmmq.connection import Connection, Got
from rfh2.layouts import MQMD1
from rfh2.mqi_constants import MQGMO_SYNCPOINT

_PUT: Final = {name: MQMD1.slices()[name] for name in ("PutDate", "PutTime")}


@dataclass(slots=True)
class _InputQueue:
    """A queue, and what the last look at it saw: the first message's token and moment, or None for no message."""

    name: str
    handle: Any
    looked: int = -1
    token: bytes | None = None
    put: bytes = b""


class InputQueues:
    """The input queues during one unit of work. queues: names, and handles for browsing and for input."""

    def __init__(self, connection: Connection, queues: Sequence[tuple[str, Any]]) -> None:
        self._connection = connection
        self.handles = tuple(queues)
        self._queues = [_InputQueue(name, handle) for name, handle in queues]
        self._looks = 0

    def take(self) -> tuple[str, Got] | None:
        """The next message, got under syncpoint, and its queue; None where there is none."""
        begun = self._looks
        while (queue := self._first(begun)) is not None:
            got = self._connection.get(queue.handle, MQGMO_SYNCPOINT, token=queue.token)
            queue.looked = -1  # it has another first message now, whether this one was got or has expired
            if got is not None:
                return queue.name, got
        return None

    def _first(self, begun: int) -> _InputQueue | None:
        """The queue whose first message is the next one. begun: looks up to this number are too old."""
        while True:
            for queue in self._queues:
                if queue.looked < 0:
                    self._look(queue)
            filled = [queue for queue in self._queues if queue.token is not None]
            if not filled:
                stale = [queue for queue in self._queues if queue.looked <= begun]
                if not stale:
                    return None
            else:
                first = min(filled, key=lambda queue: queue.put)
                if first.looked <= begun:
                    stale = [first]
                else:
                    stale = [queue for queue in self._queues if queue.looked < first.looked]
                if not stale:
                    return first
            for queue in stale:
                self._look(queue)

    def _look(self, queue: _InputQueue) -> None:
        self._looks += 1
        queue.looked = self._looks
        seen = self._connection.glance(queue.handle, first=True)
        queue.token = None if seen is None else seen.token
        queue.put = b"" if seen is None else seen.md[_PUT["PutDate"]] + seen.md[_PUT["PutTime"]]
