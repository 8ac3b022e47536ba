"""Takes publications from the tree, puts them as commands, and accepts them after that. It takes others again.

If the unit of work in which the publications were got has the queue manager's queues too, the commands are put in it:
no publication is lost or comes twice. Otherwise they are committed here first: after a crash they may come twice,
unless the position behind them is committed with them (``commands.links.engine.position``).
"""

from __future__ import annotations

import logging
import threading

from commands.links.engine.adapter import Receiver
from commands.links.engine.backoff import Backoff
from commands.links.engine.inbound_writer import InboundWriter
from commands.links.engine.link_stores import LinkStores
from commands.links.engine.quiescence import IdleCounter
from rfh2.errors import StoreError

IDLE_S = 0.5
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 30.0


class InboundPump:
    """A thread's work, until *stop* is set. batch: the most publications in one unit of work."""

    def __init__(
        self, receiver: Receiver, stores: LinkStores, batch: int, log: logging.Logger, stop: threading.Event
    ) -> None:
        self._receiver, self._stores, self._batch, self._log, self._stop = receiver, stores, batch, log, stop
        self._writer: InboundWriter | None = None
        self.counter = IdleCounter()

    def run(self) -> None:
        """The thread's work."""
        backoff = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        while not self._stop.is_set():
            try:
                self.counter.found(self._one_batch())
                backoff.reset()
            except StoreError as error:
                self.counter.failed(error)
                self._receiver.undo()
                pause_s = backoff.next()
                self._log.error("native publications wait: %s; the next try is in %.1f seconds", error, pause_s)
                self._stop.wait(pause_s)
        if self._writer is not None:
            self._writer.close()
        self._receiver.close()

    def _one_batch(self) -> int:
        arrivals = self._receiver.take(self._batch, IDLE_S)
        if not arrivals.count and arrivals.position is None:
            return 0
        if arrivals.unit is not None:
            self._stores.putter.put_all(arrivals.unit, arrivals.publications)
        elif arrivals.publications or arrivals.position is not None:
            if self._writer is None:
                self._writer = self._stores.writer()
            self._writer.put(arrivals.publications, arrivals.position)
        self._receiver.accept()
        return arrivals.count
