"""From the outgoing queue to IBM MQ's topic tree.

Where the queue is IBM MQ's too, got and published in one unit of work. PCF commands are in none: to clear a topic waits
until all that was published before is committed, and is done again should the queue not have heard of it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from commands.links.engine.config import TopicsConfig
from commands.links.engine.message_for_tree import ForTree, for_tree
from commands.links.engine.quiescence import Looks
from commands.links.engine.spool import Refused, Spool
from commands.links.ibmmq.manager import MqMessages
from commands.links.ibmmq.publications import put_for
from commands.links.ibmmq.reasons import REFUSED, ConnectionLostError, MqError
from commands.links.ibmmq.spool import MqSpool
from commands.links.ibmmq.tree import Tree
from commands.qmgr.store.port import StoredMessage
from rfh2.constants import MQRC_FORMAT_ERROR, MQRCCF_COMMAND_FAILED
from rfh2.errors import DecodeError, StoreError

_log = logging.getLogger("qpubsub.mq")

_IDLE_S: Final = 0.5
# Beside what a queue may say: the topic is inhibited (2051), not valid (2425), or nobody's (2502 asks to be told).
_TOPIC_REFUSED: Final = frozenset({2425, 2085, 2502, 2503, 2494})


class MqOutflow:
    """Publishes what waits on the outgoing queue, in a thread of its own, until *stop* is set."""

    def __init__(
        self,
        messages: Callable[[], MqMessages],
        config: TopicsConfig,
        spool: Callable[[], Spool],
        together: bool,
        stop: threading.Event,
    ) -> None:
        self._messages, self._config, self._spool, self._stop = messages, config, spool, stop
        self._together = together
        # PCF is in no unit of work, and has a connection of its own: ibmmq 2.1.2 may mistake buffers where a queue that
        # was read is closed while another one stays open.
        self._tree = Tree(messages(), config)
        self.looks = Looks()

    def run(self) -> None:
        """The thread's work."""
        spool: Spool | None = None
        own: MqMessages | None = None
        pause_s = 0.1
        while not self._stop.is_set():
            try:
                if spool is None:
                    spool = self._spool()
                    own = None if self._together else self._messages()
                if self._one_batch(spool, own) == 0:
                    spool.wait(_IDLE_S)
                pause_s = 0.1
            except StoreError as error:
                self.looks.failed(error)
                _log.error("publications wait for IBM MQ: %s; the next try is in %.1f s", error, pause_s)
                if spool is not None:
                    spool.undo()
                self._stop.wait(pause_s)
                pause_s = min(pause_s * 2, 30.0)
        if spool is not None:
            spool.close()
        if own is not None:
            own.close()
        self._tree.close()

    def _one_batch(self, spool: Spool, own: MqMessages | None) -> int:
        wanted = [self._read(message) for message in spool.take(self._config.batch)]
        until = next((at for at, (_, each) in enumerate(wanted) if each is not None and each.clear), len(wanted))
        if until < len(wanted):
            # What comes before the first clear goes alone, or the clear does.
            until = max(until, 1)
            spool.undo()
            wanted = [self._read(message) for message in spool.take(until)]
        refused = [Refused(message, MQRC_FORMAT_ERROR) for message, each in wanted if each is None]
        if own is None:
            assert isinstance(spool, MqSpool)
            self._carry_out(spool.messages, wanted, refused)
        elif wanted:
            with own.unit_of_work():
                self._carry_out(own, wanted, refused)
        if wanted:
            spool.done(refused)
            self.looks.refused += len(refused)
        self.looks.found(len(wanted))
        return len(wanted)

    def _read(self, message: StoredMessage) -> tuple[StoredMessage, ForTree | None]:
        try:
            return message, for_tree(message.md, message.body)
        except Exception as error:
            # A fault of ours, unless it is a DecodeError: it must not keep what is behind it waiting.
            expected = isinstance(error, DecodeError)
            text = "message %d on %s is put on the dead-letter queue: %s"
            _log.error(text, message.seq, message.queue, error, exc_info=None if expected else error)
            return message, None

    def _carry_out(
        self, messages: MqMessages, wanted: list[tuple[StoredMessage, ForTree | None]], refused: list[Refused]
    ) -> None:
        for message, each in wanted:
            if each is None:
                continue
            try:
                if each.clear:
                    self._tree.clear(each.topic, each.local)
                    continue
                md, body, options = put_for(each, messages.name)
                messages.connection.publish(each.topic, md, body, options)
            except ConnectionLostError:
                raise
            except MqError as error:
                if error.reason not in REFUSED and error.reason not in _TOPIC_REFUSED:
                    raise
                _log.error("IBM MQ refuses what is to be done on topic %s: %s", each.topic, error)
                refused.append(Refused(message, error.reason))
            except StoreError:
                raise
            except Exception as error:
                text = "message %d on %s is put on the dead-letter queue: it cannot be published"
                _log.error(text, message.seq, message.queue, exc_info=error)
                refused.append(Refused(message, MQRCCF_COMMAND_FAILED))
            if each.other:
                _log.warning("topic %s: to IBM MQ without %s", each.topic, ", ".join(each.other))
