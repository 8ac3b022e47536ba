"""The outgoing queue for the link: take messages, send them to the tree, then remove them or leave them.

    taken = spool.take(500) ── the tree has them ──> spool.done()
                            └─ it does not ───────> spool.undo()

Only one link takes from the queue. It never holds a unit of work open while it waits for the tree: in the embedded
queue manager the processor would wait too. ``LinkStores`` has the queue, and all else that a link uses there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Final, Protocol

from commands.broker.puts import DeadLetters
from commands.links.engine.filters import Positions
from commands.links.engine.inbound_writer import CommandPutter, InboundWriter
from commands.qmgr.store.port import Queues, StoredMessage
from commands.qmgr.store.queue_manager import QueueManagerStore
from rfh2.layouts import MQMD1
from rfh2.mqmd import Mqmd
from streams.operations import RetainedPublication

_MSG_ID: Final = MQMD1.slices()["MsgId"]


@dataclass(frozen=True, slots=True)
class Refused:
    """A message that the tree will never take, and the reason code that says why."""

    message: StoredMessage
    reason: int


def message_key(message: StoredMessage) -> bytes:
    """Identifies the message when it is taken again: a queue of IBM MQ gives it another seq then."""
    return message.md[_MSG_ID].strip(b"\0") or message.seq.to_bytes(8, "big")


class Spool(Protocol):
    """The outgoing queue. Raises StoreError."""

    def take(self, limit: int) -> list[StoredMessage]:
        """The first messages, in order; the same ones until ``done`` or ``undo`` is called."""

    def done(self, refused: Sequence[Refused] = ()) -> None:
        """Remove the messages taken; those refused are on the dead-letter queue."""

    def undo(self) -> None:
        """Leave the messages taken on the queue."""

    def wait(self, timeout_s: float) -> None:
        """Wait until there may be more."""

    def close(self) -> None:
        """Release the queue."""


class EmbeddedSpool:
    """The outgoing queue of the embedded queue manager (``Spool``). store: for this spool alone."""

    def __init__(self, store: QueueManagerStore, queue: str, dead_letter_queue: str) -> None:
        self._store, self._queue, self._dead = store, queue, dead_letter_queue
        self._taken: list[StoredMessage] = []

    def take(self, limit: int) -> list[StoredMessage]:
        if not self._taken and self._store.find_queue(self._queue) is not None:
            self._taken = list(islice(self._store.browse(self._queue), limit))
        return list(self._taken)

    def done(self, refused: Sequence[Refused] = ()) -> None:
        with self._store.unit_of_work() as unit:
            # Whatever the tree has goes, also if it has expired meanwhile.
            unit.discard(self._queue, [message.seq for message in self._taken])
            for one in refused:
                put_dead(unit, one, self._store.name, self._dead)
        self._taken = []

    def undo(self) -> None:
        self._taken = []

    def wait(self, timeout_s: float) -> None:
        self._store.wait_for_change(timeout_s)

    def close(self) -> None:
        self._store.close()


def put_dead(unit: Queues, refused: Refused, qmgr: str, queue: str) -> None:
    """Put what was refused on the dead-letter queue *queue*, behind its header."""
    message = refused.message
    now = datetime.now(UTC)
    mqmd = Mqmd.decode(message.md)
    letter = DeadLetters(qmgr, queue).put(mqmd, message.body, refused.reason, message.queue, now)
    unit.put(letter.queue, letter.md, letter.body, time=now)


@dataclass(frozen=True, slots=True)
class LinkStores:
    """writer: puts native publications. putter: puts them in a unit of work of the tree, if it has the queues too.

    spool: the outgoing queue. retained: what is retained here, as kept, for as long as one is inside.
    """

    writer: Callable[[], InboundWriter]
    putter: CommandPutter
    spool: Callable[[], Spool]
    retained: Callable[[], AbstractContextManager[list[RetainedPublication]]]

    def position(self) -> Positions | None:
        """The position in the tree's logs behind the last commands from it; None for none. Raises StoreError."""
        writer = self.writer()
        try:
            return writer.position()
        finally:
            writer.close()
