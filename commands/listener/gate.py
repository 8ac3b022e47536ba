"""What tasks of the listener wait for: new messages on a queue; and that messages may be sent for an open queue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TypeAlias

Signal: TypeAlias = asyncio.Future[None]
"""What tasks wait for with ``asyncio.wait``, which leaves it to the others when one of them is cancelled."""


def new_signal() -> Signal:
    """One that is not given yet."""
    return asyncio.get_running_loop().create_future()


def give(signal: Signal) -> None:
    """Let all go on who wait for it."""
    if not signal.done():
        signal.set_result(None)


class MessageWaiters:
    """Wakes those who wait for messages."""

    def __init__(self) -> None:
        self._expected: dict[str, Signal] = {}

    def wake(self, queues: Iterable[str] | None) -> None:
        """There may be new messages on *queues*; None for any queue."""
        for name in list(self._expected) if queues is None else queues:
            expected = self._expected.pop(name, None)
            if expected is not None:
                give(expected)

    def expect(self, queue: str) -> Signal:
        """Given when something may next have come to *queue*; all who wait for one queue share it."""
        expected = self._expected.get(queue)
        if expected is None:
            expected = self._expected[queue] = new_signal()
        return expected


class Gate:
    """Whether messages may be sent for one open queue: a consumer is started and stopped, and its queue is closed.

    Open or not, and ended in the end. Who passes is within it until the message that it takes is on its way.
    """

    def __init__(self, is_open: bool) -> None:
        self._is_open, self._is_ended = is_open, False
        self._passing, self._passed = 0, new_signal()
        self._changed = new_signal()

    @property
    def is_ended(self) -> bool:
        """Whether nothing may pass any more."""
        return self._is_ended

    async def set_open(self, is_open: bool) -> None:
        """Open or close it; when it is closed, whoever was passing has passed."""
        self._is_open = is_open
        self._tell()
        if not is_open:
            await self._until_passed()

    async def end(self) -> None:
        """Let nothing pass any more; whoever was passing has passed."""
        self._is_ended = True
        self._tell()
        await self._until_passed()

    async def _until_passed(self) -> None:
        while self._passing:
            await asyncio.wait((self._passed,))

    def _tell(self) -> None:
        changed, self._changed = self._changed, new_signal()
        give(changed)

    def change(self) -> Signal:
        """Given when the gate is next opened, closed or ended."""
        return self._changed

    async def open(self) -> bool:
        """Wait until it is open; False where it has ended."""
        while not (self._is_open or self._is_ended):
            await asyncio.wait((self._changed,))
        return not self._is_ended

    def enter(self) -> bool:
        """Whether it is open; if so, pass until ``leave``."""
        is_open = self._is_open and not self._is_ended
        self._passing += is_open
        return is_open

    def leave(self) -> None:
        """After ``enter``."""
        self._passing -= 1
        if not self._passing:
            passed, self._passed = self._passed, new_signal()
            give(passed)
