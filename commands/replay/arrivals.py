"""Captured messages as they arrive: in the order of ``seq``, each at its queue manager and at its time."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from commands.broker.outcome import EPOCH, Arrival
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError

DEFAULT_QMGR: Final = "QM1"
"""The queue manager of messages that name none."""


class OutOfOrderError(QPubSubError):
    """A message has a lower ``seq`` than the one before it: the capture has to be sorted first."""


class Arrivals:
    """What captured messages become, one after another."""

    def __init__(self) -> None:
        self._last = -1
        self._times: dict[str, datetime] = {}

    def of(self, message: CapturedMessage) -> tuple[str, Arrival]:
        """The queue manager of *message*, and its arrival there. Raises OutOfOrderError.

        A message without a time has the time of the message before it at its queue manager.
        """
        seq, time = message.seq, message.time
        if seq < self._last:
            raise OutOfOrderError(f"seq {seq} comes after seq {self._last}")
        self._last = seq
        qmgr = message.qmgr or DEFAULT_QMGR
        if time is None:
            time = self._times.get(qmgr, EPOCH)
        else:
            self._times[qmgr] = time
        # Not message.md and message.body, which the message would keep: most messages are read this once.
        md = None if message.md_hex is None else bytes.fromhex(message.md_hex)
        return qmgr, Arrival(seq, time, message.queue, md, bytes.fromhex(message.body_hex), message.user)
