"""A tree that is logs, in memory (``Logs``): the shortest one there can be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from commands.links.engine.adapter import TreeUnreachableError
from commands.links.engine.filters import Positions
from commands.links.engine.log_adapter import Following, Placed
from commands.links.engine.properties import TreeMessage


class MemoryLogs:
    """logs: the records of each, from position 0 on; first: the position of the first one, if that is another.

    Tests put an exception among the records: reading it raises it, each time.
    """

    bridge = "bridge"

    def __init__(self, **logs: list[TreeMessage | Exception]) -> None:
        self.logs, self.first = logs, dict[str, int]()
        self.opened: list[Positions] = []
        self.is_there = True

    def make_ready(self) -> None:
        if not self.is_there:
            raise TreeUnreachableError("the tree is gone")

    def ends(self) -> Positions:
        self.make_ready()
        return {log: len(records) - 1 for log, records in self.logs.items()}

    def begins(self) -> Positions:
        self.make_ready()
        return {log: self.first.get(log, 0) - 1 for log in self.logs}

    def reader(self, positions: Positions, following: Following) -> MemoryReader:
        self.make_ready()
        self.opened.append(positions)
        return MemoryReader(self, positions)

    def follow(self, following: Following) -> None:
        pass

    def waits(self, positions: Positions) -> bool:
        return any(positions.get(log, -1) < end for log, end in self.ends().items())

    def record(self, message: TreeMessage) -> TreeMessage:
        if message.payload == b"a fault":
            raise ZeroDivisionError("injected")
        return message

    def retained(self, filters: Sequence[str]) -> Iterable[TreeMessage]:
        last = {each.topic: each for each in self.logs.get("kept", []) if isinstance(each, TreeMessage)}
        return last.values()

    def close(self) -> None:
        pass


class MemoryReader:
    """``LogReader``."""

    def __init__(self, logs: MemoryLogs, positions: Positions) -> None:
        self._logs, self._at = logs, dict(positions)

    def read(self, limit: int, timeout_s: float) -> list[Placed[TreeMessage]]:
        self._logs.make_ready()
        found = []
        for log, at in self._at.items():
            for position, each in enumerate(self._logs.logs[log][at + 1 :], at + 1):
                if len(found) == limit:
                    break
                if isinstance(each, Exception):
                    if not found:
                        raise each
                    break
                found.append(Placed(log, position, each, each.payload))
                self._at[log] = position
        return found

    def close(self) -> None:
        self._at = {}
