"""Publications that IBM MQ has put on the incoming queue, got in a unit of work (``Receiver``)."""

from __future__ import annotations

import logging

from commands.config.settings import TopicsConfig
from commands.links.engine.adapter import Arrivals
from commands.links.engine.command_from_native import NativePublication
from commands.links.engine.inbound_writer import CommandPutter
from commands.links.ibmmq.manager import MqMessages
from commands.links.ibmmq.publications import native_of
from commands.links.ibmmq.unit import MqUnit
from commands.qmgr.store.port import StoredMessage
from rfh2.constants import MQRCCF_COMMAND_FAILED
from rfh2.errors import DecodeError
from rfh2.mqmd import Mqmd

_log = logging.getLogger("qpubsub.mq")


class MqReceiver:
    """For one thread. messages: for this receiver alone. putter: sets aside what is no publication.

    together: whether the unit of work has the queue manager's queues too, so that commands are put in it. bridge: the
    queue manager whose bridge it is.
    """

    def __init__(
        self, messages: MqMessages, config: TopicsConfig, putter: CommandPutter, together: bool, bridge: str
    ) -> None:
        self._messages, self._config, self._putter, self._together = messages, config, putter, together
        self._bridge = bridge
        self._unit: MqUnit | None = None

    @property
    def is_waiting(self) -> bool:
        """What waits on the queue is found by the next ``take``."""
        return False

    def take(self, limit: int, timeout_s: float) -> Arrivals:
        arrivals = self._taken(limit)
        if arrivals.count:
            return arrivals
        self.accept()
        if self._messages.wait_for_message(self._config.in_queue, timeout_s):
            arrivals = self._taken(limit)
            if not arrivals.count:
                self.accept()
        return arrivals

    def accept(self) -> None:
        unit, self._unit = self._unit, None
        if unit is not None:
            unit.commit()

    def undo(self) -> None:
        unit, self._unit = self._unit, None
        if unit is not None:
            unit.backout()

    def close(self) -> None:
        self.undo()
        self._messages.close()

    def _taken(self, limit: int) -> Arrivals:
        unit = self._unit = self._messages.unit_of_work()
        natives: list[NativePublication] = []
        count = 0
        while count < limit and (message := unit.get(self._config.in_queue)) is not None:
            count += 1
            native = self._native(unit, message)
            if native is not None:
                natives.append(native)
        return Arrivals(natives, count, unit if self._together else None)

    def _native(self, unit: MqUnit, message: StoredMessage) -> NativePublication | None:
        """The publication; None for what this bridge had sent itself, and for what is no publication."""
        try:
            native, bridge = native_of(message.md, message.body, self._config.default_format)
        except Exception as error:
            # A fault of ours, unless it is a DecodeError: it must not keep what is behind it waiting.
            expected = isinstance(error, DecodeError)
            text = "a message on %s is no publication, and is put on the dead-letter queue: %s"
            _log.error(text, message.queue, error, exc_info=None if expected else error)
            reason = error.reason if isinstance(error, DecodeError) else MQRCCF_COMMAND_FAILED
            self._putter.set_aside(unit, Mqmd.decode(message.md), message.body, reason, message.queue)
            return None
        return None if bridge == self._bridge else native
