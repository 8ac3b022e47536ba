"""The outgoing queue in IBM MQ (``Spool``): got under syncpoint, and committed once the tree has what was got."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from commands.links.engine.spool import Refused, put_dead
from commands.links.ibmmq.manager import MqMessages
from commands.links.ibmmq.unit import MqUnit
from commands.qmgr.store.messages import StoredMessage
from rfh2.errors import StoreError


class MqSpool:
    """The outgoing queue *queue* of IBM MQ. messages: for this spool alone."""

    def __init__(self, messages: MqMessages, queue: str, dead_letter_queue: str) -> None:
        self._messages, self._queue, self._dead = messages, queue, dead_letter_queue
        self._unit: MqUnit | None = None
        self._taken: list[StoredMessage] = []

    @property
    def messages(self) -> MqMessages:
        """The connection, for those whose tree is IBM MQ too: what they do in the unit of work commits with it."""
        return self._messages

    def take(self, limit: int) -> list[StoredMessage]:
        if self._unit is None:
            self._unit = self._messages.unit_of_work()
        while len(self._taken) < limit and (message := self._unit.get(self._queue)) is not None:
            self._taken.append(message)
        return list(self._taken)

    def done(self, refused: Sequence[Refused] = ()) -> None:
        unit, self._unit, self._taken = self._unit, None, []
        if unit is None:
            return
        try:
            for one in refused:
                put_dead(unit, one, self._messages.name, self._dead)
            unit.commit()
        except BaseException:
            with suppress(StoreError):
                unit.backout()
            raise

    def undo(self) -> None:
        unit, self._unit, self._taken = self._unit, None, []
        if unit is not None:
            with suppress(StoreError):
                unit.backout()

    def wait(self, timeout_s: float) -> None:
        self.done()
        self._messages.wait_for_message(self._queue, timeout_s)

    def close(self) -> None:
        self.undo()
        self._messages.close()
