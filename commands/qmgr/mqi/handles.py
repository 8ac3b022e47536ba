"""What programs have open."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from commands.qmgr.mqi.errors import MqiError
from commands.qmgr.store.connection import OpenQueue
from commands.qmgr.store.uncommitted import BEFORE_ALL
from rfh2.mqi_constants import (
    MQOO_ANY_INPUT,
    MQOO_INPUT_EXCLUSIVE,
    MQOO_OUTPUT,
    MQRC_OBJECT_IN_USE,
)
from rfh2.mqmd import Mqmd
from streams.selectors import Selector


@dataclass(slots=True)
class Handle:
    """One open object. name: as opened, which may be an alias. queue: the local queue, "" for no queue.

    qmgr: another queue manager, to which the messages go; "" for this one. made: the dynamic queue that was made.
    cursor: rank and seq of the message browsed last. passed: descriptor of the message got last, where its context is
    saved.
    """

    object_type: int
    name: str
    options: int
    queue: str = ""
    qmgr: str = ""
    topic: str = ""
    made: OpenQueue | None = None
    cursor: tuple[int, int] = BEFORE_ALL
    passed: Mqmd | None = None
    selector: Selector | None = None

    def requires(self, options: int, reason: int) -> None:
        """Raises MqiError with *reason* where the object was opened with none of *options*."""
        if not self.options & options:
            raise MqiError(reason, f"{self.name} is not open for that")


class OpenQueues:
    """How often each local queue is open, by all programs together: OpenInputCount, OpenOutputCount, exclusive use."""

    def __init__(self) -> None:
        self.inputs: Counter[str] = Counter()
        self.outputs: Counter[str] = Counter()
        self._exclusive: set[str] = set()
        self.locks: dict[int, Handle] = {}  # messages that a program has browsed with MQGMO_LOCK, by seq

    def unlock(self, handle: Handle) -> bool:
        """Let go of what *handle* has locked; whether there was anything."""
        held = [seq for seq, holder in self.locks.items() if holder is handle]
        for seq in held:
            del self.locks[seq]
        return bool(held)

    def opened(self, queue: str, options: int) -> None:
        """*queue* is opened. Raises MqiError 2042 where its use is exclusive, or cannot be."""
        if options & MQOO_ANY_INPUT:
            if queue in self._exclusive or (options & MQOO_INPUT_EXCLUSIVE and self.inputs[queue]):
                raise MqiError(MQRC_OBJECT_IN_USE, f"another program has {queue} open for input")
            self.inputs[queue] += 1
            if options & MQOO_INPUT_EXCLUSIVE:
                self._exclusive.add(queue)
        if options & MQOO_OUTPUT:
            self.outputs[queue] += 1

    def closed(self, queue: str, options: int) -> None:
        """What ``opened`` was called for is closed."""
        if options & MQOO_ANY_INPUT:
            self.inputs[queue] -= 1
            if options & MQOO_INPUT_EXCLUSIVE:
                self._exclusive.discard(queue)
        if options & MQOO_OUTPUT:
            self.outputs[queue] -= 1
