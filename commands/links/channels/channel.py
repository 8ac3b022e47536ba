"""Carries the messages on one transmission queue to another embedded queue manager: exactly once.

    here    messages on the transmission queue
    there   put, and recorded as arrived          one unit of work of that database
    here    removed from the transmission queue   one unit of work of this database

A process that ends in between leaves messages that have arrived on the transmission queue. Whoever carries next finds
them recorded there, and only removes them (``commands.qmgr.store.neighbours``). Neither database is ever locked while
the other one is, so two queue managers that carry to each other cannot block each other.

With each batch goes its sequence number, by which a database that was replaced is noticed (``sequence``).

A message arrives as one of the user who put it here, whatever name its descriptor has: that is whose authorities count
if it is a command there. What queue managers send each other is put by mqm. A program's message to their queues, or
to those of the bridge itself, needs authority there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from itertools import islice
from typing import Final

from commands.broker.authority import OWN_PREFIX, GroupsOf, no_groups
from commands.broker.objects import LocalQueue
from commands.broker.puts import DeadLetters, is_wanted
from commands.broker.times import to_microseconds
from commands.disk.errors import SupersededError
from commands.network.topology import NeighbourStatus, Refresh
from commands.qmgr.mqi.authority import TopicDefinitions
from commands.qmgr.network.flow_messages import INTER_QMGR_CONTROL, INTER_QMGR_QUEUES, INTRODUCTIONS, relationship
from commands.qmgr.sending import EXCEPTION, confirm_arrival, report
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.messages import StoredMessage
from commands.qmgr.store.neighbours import Arrived, NeighbourRecord, NeighbourRecords
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2.constants import MQFMT_XMIT_Q_HEADER, MQRC_NOT_AUTHORIZED
from rfh2.errors import DecodeError, MessageRefusedError, QueueError, StoreError
from rfh2.mqi_constants import MQFB_XMIT_Q_MSG_ERROR, MQRO_COA
from rfh2.mqmd import Mqmd, decode_xqh, joined, name_of

# Whether two queue managers that messages are carried between remember the same past.
#
# Each batch of messages has a sequence number. The receiver records it with the batch, and the sender when it removes
# the batch from its transmission queue. So a crash leaves them equal, or the receiver one ahead, with the whole batch
# still on the transmission queue. Anything else means that one of them has another database than before: a backup was
# restored, or it was made anew. It has forgotten proxy subscriptions of the other one, or made some that it does not
# know of; and retained publications of it may be older. Then both send all proxy subscriptions again, and the one
# that remembers more also sends what is retained. The one that is behind does not: it may retain what was deleted
# since.


class SequenceState(StrEnum):
    """What sender and receiver remember of the batches between them."""

    SAME = "the same"
    RECEIVER_BEHIND = "the receiver less"
    SENDER_BEHIND = "the sender less"


def sequence_state(sent: int, received: int, *, is_whole: bool) -> SequenceState:
    """What they remember. is_whole: whether all messages of the last batch are still on the transmission queue."""
    if received == sent or (received == sent + 1 and is_whole):
        return SequenceState.SAME
    return SequenceState.RECEIVER_BEHIND if received < sent else SequenceState.SENDER_BEHIND


def number_after(sent: int, received: int) -> int:
    """The number from which both go on. A crash before both have it must not look like one after a batch."""
    return max(sent, received) + 2


def ask_there(unit: EmbeddedUnitOfWork, sender: str, known: Iterable[NeighbourRecord], found: SequenceState) -> None:
    """Have the receiver, whose *unit* is open, send *sender* everything again. known: what the sender records of it.

    If the sender is its child, or shares a cluster with it, and it has forgotten that, it learns it before the messages
    that wait for it.
    """
    unit.neighbours.ask_refresh(Refresh.PROXIES if found is SequenceState.RECEIVER_BEHIND else Refresh.ALL, sender)
    remembered = {each.cluster for each in unit.neighbours.all() if each.qmgr == sender}
    for each in known:
        word = INTRODUCTIONS.get(each.relation)
        if word is not None and each.status is not NeighbourStatus.REFUSED and each.cluster not in remembered:
            said = relationship(sender, each.link, word)
            unit.put(INTER_QMGR_CONTROL, said.message.mqmd.encode(), said.body)


def ask_here(records: NeighbourRecords, receiver: str, found: SequenceState) -> None:
    """Have the sender send *receiver* everything again."""
    records.ask_refresh(Refresh.PROXIES if found is SequenceState.SENDER_BEHIND else Refresh.ALL, receiver)


_log = logging.getLogger("qpubsub.network")

_OWN_QUEUES: Final = (OWN_PREFIX, "SYSTEM.INTER.QMGR.")
BATCH: Final = 500
BATCH_BYTES: Final = 8 * 1024 * 1024
PATIENCE_S: Final = 2.0
_LOOK_S: Final = 0.1


class ClaimedElsewhereError(StoreError):
    """Another channel has begun to bring messages of *sender* to *receiver*."""

    def __init__(self, sender: str, receiver: str) -> None:
        super().__init__(sender, receiver)
        self.sender, self.receiver = sender, receiver

    def __str__(self) -> str:
        return f"another process carries messages from queue manager {self.sender} to {self.receiver}"


class OutOfSequenceError(StoreError):
    """*receiver* does not have the sequence number that it was left with."""

    def __init__(self, sender: str, receiver: str) -> None:
        super().__init__(sender, receiver)
        self.sender, self.receiver = sender, receiver

    def __str__(self) -> str:
        return f"the database of queue manager {self.receiver} was replaced while {self.sender} worked on it"


class Channel:
    """From the transmission queue *queue* of *here* to the queue manager of that name, which *there* opens.

    For one thread, which owns *here*. It begins anew after any error: another channel may have worked meanwhile.
    groups_of: the groups of a user. patience_s: how long to wait for another program that has the other database
    locked, in seconds.
    """

    def __init__(
        self,
        here: QueueManagerStore,
        queue: str,
        there: Callable[[], QueueManagerStore],
        groups_of: GroupsOf = no_groups,
    ) -> None:
        self._groups_of, self._definitions = groups_of, TopicDefinitions(groups_of)  # those of the other end
        self._here, self._queue, self._open = here, queue, there
        self._claim = str(here.database.epoch)
        self._there: QueueManagerStore | None = None
        self._gone: set[Arrived] = set()
        self._number = 0  # of the last batch that is there
        self.patience_s = PATIENCE_S

    def carry(self) -> int:
        """Carry some messages; returns how many left the transmission queue. Raises StoreError: nothing is lost."""
        if self._there is not None and not self._is_as_left(self._there):
            self.close()
        messages = self._waiting()
        if not messages:
            self._look()
            return 0
        try:
            if self._there is None:
                self._begin(self.patience_s)
                messages = self._waiting()  # those that this channel may bring: it has claimed them since
            self._put(messages)
            with self._here.unit_of_work() as unit:
                unit.discard(self._queue, [message.seq for message in messages])
                unit.neighbours.number_sent(self._queue, self._number)
        except BaseException:
            self.close()
            raise
        self._gone = {_arrived(message) for message in messages}
        return len(messages)

    def _is_as_left(self, there: QueueManagerStore) -> bool:
        """Whether the database that is open is that of the queue manager, and remembers the last batch."""
        return not there.is_replaced and there.sequence(self._here.name).received == self._number

    def _look(self) -> None:
        """See whether the other queue manager is still the one that messages were carried to, if it is at hand."""
        if self._there is None and self._here.sequence(self._queue).sent:
            try:
                self._begin(_LOOK_S)
            except SupersededError:
                raise
            except StoreError as error:
                self.close()
                _log.debug("queue manager %s cannot be looked at: %s", self._queue, error)

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

    def _begin(self, patience_s: float) -> None:
        self._there, self._definitions = self._open(), TopicDefinitions(self._groups_of)
        self._there.database.patience_s = patience_s
        sender, receiver = self._here.name, self._there.name
        with self._here.unit_of_work() as unit:  # which nobody has once another processor works here
            sent = unit.neighbours.sequence(receiver).sent
        with self._there.unit_of_work() as unit:
            arrived = unit.neighbours.claim(sender, self._claim)
            received = unit.neighbours.sequence(sender).received
        # Numbers are never given twice: what is not there now was removed, and can be forgotten.
        here = self._here.numbers_left([seq for seq, _ in arrived])
        self._gone = {each for each in arrived if each[0] not in here}
        self._number = received
        found = sequence_state(sent, received, is_whole=not self._gone)
        if found is not SequenceState.SAME:
            self._synchronise(found, number_after(sent, received))
        elif received != sent:
            with self._here.unit_of_work() as unit:
                unit.neighbours.number_sent(receiver, received)

    def _synchronise(self, found: SequenceState, number: int) -> None:
        """The two queue managers do not remember the same past: have both send each other everything again."""
        assert self._there is not None
        sender, receiver = self._here.name, self._there.name
        older = receiver if found is SequenceState.RECEIVER_BEHIND else sender
        text = "queue manager %s has an older database than before; it and %s synchronise what they have subscribed to"
        _log.warning(text, older, sender if older == receiver else receiver)
        known = [each for each in self._here.neighbours() if each.qmgr == receiver]
        with self._there.unit_of_work() as unit:
            if not unit.neighbours.is_claimed(sender, self._claim):
                raise ClaimedElsewhereError(sender, receiver)
            self._require(unit, INTER_QMGR_CONTROL)
            ask_there(unit, sender, known, found)
            unit.neighbours.number_received(sender, number)
        with self._here.unit_of_work() as unit:
            ask_here(unit.neighbours, receiver, found)
            unit.neighbours.number_sent(receiver, number)
        self._number = number

    def _put(self, messages: Sequence[StoredMessage]) -> None:
        there = self._there
        assert there is not None
        sender, receiver = self._here.name, there.name
        there.database.patience_s = self.patience_s
        with there.unit_of_work() as unit:
            records = unit.neighbours
            if not records.is_claimed(sender, self._claim):
                raise ClaimedElsewhereError(sender, receiver)
            if records.sequence(sender).received != self._number:
                raise OutOfSequenceError(sender, receiver)
            known = records.arrived(sender)
            for message in messages:
                if _arrived(message) not in known:
                    self._deliver(unit, message)
            records.arrive(sender, map(_arrived, messages), self._gone)
            records.number_received(sender, self._number + 1)
        if there.is_replaced:
            raise OutOfSequenceError(sender, receiver)
        self._number += 1

    def _deliver(self, unit: EmbeddedUnitOfWork, message: StoredMessage) -> None:
        """Put *message* where its transmission queue header says; on the dead-letter queue where that is not possible.

        Raises StoreError where the dead-letter queue does not take it either.
        """
        assert self._there is not None
        outer, name, sender = Mqmd.decode(message.md), self._there.name, self._here.name
        try:
            if name_of(outer.format) != name_of(MQFMT_XMIT_Q_HEADER):
                raise DecodeError(0, "MQXQH", "the message has none")
            header = decode_xqh(message.body, 0, outer.coded_char_set_id)
        except DecodeError as error:
            _log.error("message %d on transmission queue %s: %s", message.seq, self._queue, error)
            self._dead(unit, outer, message.body, MQFB_XMIT_Q_MSG_ERROR, message)
            return
        queue, (mqmd, body) = header.remote_q_name, joined(header.mqmd, message.body[header.length :])
        user = message.user or ""
        if header.remote_qmgr_name != name:
            queue, mqmd, body = header.remote_qmgr_name, outer, message.body  # it goes on from there
        if queue.startswith(_OWN_QUEUES) and not self._definitions.authority(unit).may_put(user, queue):
            _log.error("a message of user %s at %s becomes a dead letter: no authority for %s", user, sender, queue)
            self._dead(unit, mqmd, body, MQRC_NOT_AUTHORIZED, message, queue)
            return
        if queue in INTER_QMGR_QUEUES:
            self._require(unit, queue)
        try:
            seq = unit.put(queue, mqmd.encode(), body, user=user, expires_at=message.expires_at)
        except QueueError as refusal:
            if queue in INTER_QMGR_QUEUES and not isinstance(refusal, MessageRefusedError):
                raise  # what is for the network waits here (guide 3.7.1)
            _log.error("a message of queue manager %s becomes a dead letter: %s", sender, refusal)
            self._dead(unit, mqmd, body, refusal.reason, message, queue)
        else:
            if mqmd.report & MQRO_COA:
                confirm_arrival(unit, seq, self._there.clock())

    @staticmethod
    def _require(unit: EmbeddedUnitOfWork, queue: str) -> None:
        if unit.find_queue(queue) is None:
            unit.save_definition(LocalQueue(queue, def_persistent=True))

    def _dead(
        self, unit: EmbeddedUnitOfWork, mqmd: Mqmd, body: bytes, reason: int, message: StoredMessage, queue: str = ""
    ) -> None:
        assert self._there is not None
        report(unit, EXCEPTION, mqmd, body, message.user, self._there.clock(), reason)
        if not is_wanted(mqmd):
            return
        deadq = unit.queue_manager().deadq
        letters = DeadLetters(self._there.name, deadq)
        letter = letters.put(
            mqmd, body, reason, queue or self._queue, self._there.clock(), expires_at=message.expires_at
        )
        md, user = letter.md, message.user or ""
        unit.put(deadq, md, letter.body, user=user, expires_at=letter.expires_at)


def _arrived(message: StoredMessage) -> Arrived:
    return message.seq, to_microseconds(message.time)
