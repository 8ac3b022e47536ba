"""Carries the messages on one transmission queue to another embedded queue manager: exactly once.

    here    messages on the transmission queue
    there   put, and recorded as arrived          one unit of work of that database
    here    removed from the transmission queue   one unit of work of this database

A process that ends in between leaves messages that have arrived on the transmission queue. Whoever carries next finds
them recorded there, and only removes them (``commands.qmgr.store.neighbours``). Neither database is ever locked while
the other one is, so two queue managers that carry to each other cannot block each other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

from commands.broker.dead_letter import DeadLetters
from commands.broker.objects import LocalQueue
from commands.qmgr.network.flow_messages import INTER_QMGR_QUEUES
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.errors import MessageRefusedError, QueueError
from commands.qmgr.store.neighbours import Arrived
from commands.qmgr.store.port import StoredMessage
from commands.qmgr.store.state import to_microseconds
from commands.qmgr.store.unit_of_work import SqliteUnitOfWork
from rfh2.constants import MQFMT_XMIT_Q_HEADER
from rfh2.errors import DecodeError, StoreError
from rfh2.mqmd import Mqmd, name_of
from rfh2.xqh import decode_xqh

_log = logging.getLogger("qpubsub.network")

BATCH: Final = 500
BATCH_BYTES: Final = 8 * 1024 * 1024
MQFB_XMIT_Q_MSG_ERROR: Final = 271
"""The feedback code of a message on a transmission queue that has no transmission queue header."""


class ClaimedElsewhereError(StoreError):
    """Another carrier has begun to bring messages of *sender* to *receiver*."""

    def __init__(self, sender: str, receiver: str) -> None:
        super().__init__(sender, receiver)
        self.sender, self.receiver = sender, receiver

    def __str__(self) -> str:
        return f"another process carries messages from queue manager {self.sender} to {self.receiver}"


class Carrier:
    """From the transmission queue *queue* of *here* to the queue manager of that name, which *there* opens.

    For one thread, which owns *here*. It begins anew after any error: another carrier may have worked meanwhile.
    """

    def __init__(self, here: QueueManagerStore, queue: str, there: Callable[[], QueueManagerStore]) -> None:
        self._here, self._queue, self._open = here, queue, there
        self._claim = str(here.database.epoch)
        self._there: QueueManagerStore | None = None
        self._gone: set[Arrived] = set()

    def carry(self) -> int:
        """Carry some messages; returns how many left the transmission queue. Raises StoreError: nothing is lost."""
        messages = self._waiting()
        if not messages:
            return 0
        try:
            if self._there is None:
                self._begin()
                messages = self._waiting()  # those that this carrier may bring: it has claimed them since
            self._put(messages)
            with self._here.unit_of_work() as unit:
                unit.discard(self._queue, [message.seq for message in messages])
        except BaseException:
            self.close()
            raise
        self._gone = {_arrived(message) for message in messages}
        return len(messages)

    def close(self) -> None:
        """Close the other queue manager; the next ``carry`` opens it again."""
        if self._there is not None:
            self._there.close()
        self._there = None

    def _waiting(self) -> list[StoredMessage]:
        messages, size_bytes = [], 0
        for message in islice(self._here.browse(self._queue), BATCH):
            messages.append(message)
            size_bytes += len(message.body)
            if size_bytes >= BATCH_BYTES:
                break
        return messages

    def _begin(self) -> None:
        self._there = self._open()
        with self._there.unit_of_work() as unit:
            arrived = unit.neighbours.claim(self._here.name, self._claim)
        # Numbers are never given twice: what is not there now was removed, and can be forgotten.
        here = self._here.numbers_left([seq for seq, _ in arrived])
        self._gone = {each for each in arrived if each[0] not in here}

    def _put(self, messages: Sequence[StoredMessage]) -> None:
        assert self._there is not None
        sender, receiver = self._here.name, self._there.name
        with self._there.unit_of_work() as unit:
            records = unit.neighbours
            if not records.is_claimed(sender, self._claim):
                raise ClaimedElsewhereError(sender, receiver)
            known = records.arrived(sender)
            for message in messages:
                if _arrived(message) not in known:
                    self._deliver(unit, message)
            records.arrive(sender, map(_arrived, messages), self._gone)

    def _deliver(self, unit: SqliteUnitOfWork, message: StoredMessage) -> None:
        """Put *message* where its transmission queue header says; on the dead-letter queue where that is not possible.

        Raises StoreError where the dead-letter queue does not take it either.
        """
        assert self._there is not None
        outer, name = Mqmd.decode(message.md), self._there.name
        try:
            if name_of(outer.format) != name_of(MQFMT_XMIT_Q_HEADER):
                raise DecodeError(0, "MQXQH", "the message has none")
            header = decode_xqh(message.body, 0, outer.coded_char_set_id)
        except DecodeError as error:
            _log.error("message %d on transmission queue %s: %s", message.seq, self._queue, error)
            self._dead(unit, outer, message.body, MQFB_XMIT_Q_MSG_ERROR, message)
            return
        queue, mqmd, body = header.remote_q_name, header.mqmd, message.body[header.length :]
        if header.remote_qmgr_name != name:
            queue, mqmd, body = header.remote_qmgr_name, outer, message.body  # it goes on from there
        elif queue in INTER_QMGR_QUEUES and unit.find_queue(queue) is None:
            unit.save_definition(LocalQueue(queue, def_persistent=True))
        try:
            unit.put(queue, mqmd.encode(), body, user=mqmd.user_identifier or None, expires_at=message.expires_at)
        except QueueError as refusal:
            if queue in INTER_QMGR_QUEUES and not isinstance(refusal, MessageRefusedError):
                raise  # what is for the network waits here (guide 3.7.1)
            _log.error("a message of queue manager %s becomes a dead letter: %s", self._here.name, refusal)
            self._dead(unit, mqmd, body, refusal.reason, message, queue)

    def _dead(
        self, unit: SqliteUnitOfWork, mqmd: Mqmd, body: bytes, reason: int, message: StoredMessage, queue: str = ""
    ) -> None:
        assert self._there is not None
        deadq = unit.queue_manager().deadq
        letters = DeadLetters(self._there.name, deadq)
        letter = letters.put(
            mqmd, body, reason, queue or self._queue, self._there.clock(), expires_at=message.expires_at
        )
        unit.put(deadq, letter.message.mqmd.encode(), letter.body, expires_at=letter.expires_at)


def _arrived(message: StoredMessage) -> Arrived:
    return message.seq, to_microseconds(message.time)
