"""What clients may use of the listener: connections, and memory for calls that are received or answered.

Memory is counted by the bytes of messages. A client that sends more than is left is sent away; a message that there is
no room for stays on its queue, and the program gets 2102. So the listener never holds more than the limit, whatever
clients send and however slowly they read.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

from commands.qmgr.mqi.refusals import MqiError
from rfh2.constants import MQRC_RESOURCE_PROBLEM
from rfh2.mqi_constants import MQRC_CONNECTION_BROKEN


@dataclass(slots=True)
class Connections:
    """The connections that there are. most: in all. most_of_address: of one address."""

    most: int
    most_of_address: int
    count: int = 0
    of_address: Counter[str] = field(default_factory=Counter)

    def refusal(self, address: str) -> str | None:
        """Why no further one of *address* may come; None where it may."""
        if self.count >= self.most:
            return f"there are {self.count} connections, the most that may be (connections)"
        if self.of_address[address] >= self.most_of_address:
            return (
                f"{address} has {self.of_address[address]} connections, the most that it may (connections_of_address)"
            )
        return None

    def begin(self, address: str) -> None:
        """One of *address* has come."""
        self.count += 1
        self.of_address[address] += 1

    def end(self, address: str) -> None:
        """One of *address* has gone."""
        self.count -= 1
        self.of_address[address] -= 1
        if not self.of_address[address]:
            del self.of_address[address]


class Instances:
    """The connections of each channel, which may have limits (MAXINST, MAXINSTC)."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def begin(self, channel: str, address: str, most: int, most_of_address: int) -> bool:
        """Count one of *address* more; false, and nothing is counted, where a limit is reached."""
        keys = ((channel, ""), (channel, address))
        if any(self._counts[key] >= limit for key, limit in zip(keys, (most, most_of_address), strict=True)):
            return False
        self._counts.update(keys)
        return True

    def end(self, channel: str, address: str) -> None:
        """One of *address* has gone."""
        for key in ((channel, ""), (channel, address)):
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]


class Memory:
    """Bytes that all connections together may hold. It is used by several threads."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes, self.used_bytes = limit_bytes, 0
        self.lock = threading.Lock()


class Held:
    """What one call holds of the memory, from its first segment until its reply is sent."""

    __slots__ = ("_is_released", "_memory", "_size_bytes")

    def __init__(self, memory: Memory) -> None:
        self._memory, self._size_bytes, self._is_released = memory, 0, False

    def add(self, size_bytes: int) -> None:
        """Hold *size_bytes* more. Raises MqiError 2102 where there is no room, 2009 where nobody waits any more."""
        memory = self._memory
        with memory.lock:
            if self._is_released:
                raise MqiError(MQRC_CONNECTION_BROKEN, "the connection has ended")
            if memory.used_bytes + size_bytes > memory.limit_bytes:
                why = f"all clients together would hold more than {memory.limit_bytes} bytes (memory_megabytes)"
                raise MqiError(MQRC_RESOURCE_PROBLEM, why)
            memory.used_bytes += size_bytes
            self._size_bytes += size_bytes

    def release(self) -> None:
        """Hold nothing any more, for good."""
        with self._memory.lock:
            self._memory.used_bytes -= self._size_bytes
            self._size_bytes, self._is_released = 0, True
