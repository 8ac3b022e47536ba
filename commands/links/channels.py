"""The thread that carries messages from the transmission queues of one queue manager to others of the same home.

It serves every transmission queue with the name of a queue manager of that home, except those that ``run`` made because
a message named a queue manager nobody had defined a way to. It also looks who is in the clusters.

Carries the messages on one transmission queue to another embedded queue manager: exactly once.

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
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import StrEnum
from itertools import islice
from typing import Final

from commands.broker.authority import OWN_PREFIX, GroupsOf, no_groups
from commands.broker.objects import LocalQueue
from commands.broker.puts import DeadLetters, is_wanted
from commands.broker.times import to_microseconds
from commands.config.home import Home, PostgresqlHome
from commands.disk.errors import SupersededError
from commands.links.engine.threads import Backoff, Threads
from commands.network.cluster_topics import RepositoryEntry
from commands.network.topology import NeighbourStatus, Refresh
from commands.qmgr.delivery import is_stranding
from commands.qmgr.flow_messages import INTER_QMGR_CONTROL, INTER_QMGR_QUEUES, INTRODUCTIONS, relationship
from commands.qmgr.mqi.authority import TopicDefinitions
from commands.qmgr.sending import EXCEPTION, confirm_arrival, report
from commands.qmgr.store import Durability, QueueManagerStore
from commands.qmgr.store.neighbours import Arrived, NeighbourRecord, NeighbourRecords
from commands.qmgr.store.opening import DATABASE, directory_of, is_there, queue_managers
from commands.qmgr.store.port import StoredMessage
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


_OWN_QUEUES: Final = (OWN_PREFIX, "SYSTEM.INTER.QMGR.")
BATCH: Final = 500
BATCH_BYTES: Final = 8 * 1024 * 1024
PATIENCE_S: Final = 2.0


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


# Keeps what a queue manager knows of the other members of its clusters, which are in the same home.
#
# Who is a member, and which cluster topics it defines, is in each queue manager's own database. So nothing has to be
# told to a full repository: every member looks at the others, at most once a second, and only at those whose database
# has changed. What it finds is recorded (``commands.network.cluster_topics``), and counts from the next command on.


EVERY_S: Final = 1.0
# Looking takes at most a fiftieth of the time in a home of many queue managers, and is done every ten seconds at least.
_SHARE: Final = 50
_AT_LEAST_EVERY_S: Final = 10.0
_AFTER_TROUBLE_S: Final = 10.0

_Seen = tuple[int, ...]


class RepositoryManager:
    """That of the queue manager that *here* is the store of. there: opens another one of the home, to read it."""

    def __init__(self, home: Home, here: QueueManagerStore, there: Callable[[str], QueueManagerStore]) -> None:
        self._home, self._here, self._open = home, here, there
        self._own: tuple[int, RepositoryEntry] = (-1, RepositoryEntry(here.name))
        self._entries: dict[str, tuple[_Seen | None, RepositoryEntry]] = {}
        self._due_s = 0.0
        self._troubled: dict[str, float] = {}  # those that could not be read, and until when they are left alone

    def look(self, *, only_due: bool = False) -> int:
        """Look at the others; returns of how many something else is known now. only_due: if it was not done just now.

        Raises StoreError where that cannot be recorded. Of a queue manager that cannot be read, what is known stays.
        """
        begun = time.monotonic()
        if only_due and begun < self._due_s:
            return 0
        known = {entry.qmgr: entry for entry in self._here.repository()}
        clusters = set(self._own_entry().clusters)
        found: dict[str, RepositoryEntry] = {}
        if clusters:
            # One that is known and cannot be seen now has not left.
            for name in {*self._names(known), *known} - {self._here.name}:
                entry = self._entry(name, known.get(name))
                if entry is not None and clusters.intersection(entry.clusters):
                    found[name] = entry
        changes = [
            (known.get(name), found.get(name, RepositoryEntry(name)))
            for name in sorted({*known, *found})
            if known.get(name) != found.get(name)
        ]
        count = self._record(changes) if changes else 0
        ended = time.monotonic()
        self._due_s = ended + min(max(EVERY_S, _SHARE * (ended - begun)), _AT_LEAST_EVERY_S)
        return count

    def _names(self, known: Iterable[str]) -> Iterable[str]:
        try:
            return queue_managers(self._home)
        except OSError as error:
            _log.debug("%s cannot be listed: %s", self._home, error)
            return known

    def _record(self, changes: list[tuple[RepositoryEntry | None, RepositoryEntry]]) -> int:
        count = 0
        with self._here.unit_of_work() as unit:
            now = {entry.qmgr: entry for entry in unit.neighbours.repository()}
            for before, after in changes:
                if now.get(after.qmgr) == before:
                    unit.neighbours.learn(after)
                    count += 1
                else:
                    # It has said something of itself since it was read, and may not be what it was then.
                    self._entries.pop(after.qmgr, None)
        return count

    def _own_entry(self) -> RepositoryEntry:
        version = self._here.definitions_version()
        if version != self._own[0]:
            self._own = version, self._here.repository_entry()
        return self._own[1]

    def _entry(self, name: str, known: RepositoryEntry | None) -> RepositoryEntry | None:
        """What queue manager *name* says of itself; *known* where that cannot be read, None where it is gone."""
        if self._troubled.get(name, 0.0) > time.monotonic():
            return known
        try:
            seen = _seen(self._home, name)
            before = self._entries.get(name)
            if before is not None and seen is not None and before[0] == seen:
                return before[1]
            with self._open(name) as there:
                self._entries[name] = seen, there.repository_entry()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (StoreError, OSError) as error:
            self._troubled[name] = time.monotonic() + _AFTER_TROUBLE_S
            _log.debug("queue manager %s cannot be looked at: %s", name, error)
            return known
        self._troubled.pop(name, None)
        return self._entries[name][1]


def _seen(home: Home, name: str) -> _Seen | None:
    """What changes with each commit; None where only the database can say. Raises FileNotFoundError for none."""
    if isinstance(home, PostgresqlHome):
        if not is_there(home, name):
            raise FileNotFoundError(name)
        return None
    path = directory_of(home, name) / DATABASE
    files = [path.stat()]
    with suppress(FileNotFoundError):
        files.append(path.with_name(f"{path.name}-wal").stat())
    return tuple(number for file in files for number in (file.st_ino, file.st_size, file.st_mtime_ns))


_log = logging.getLogger("qpubsub.network")

IDLE_S: Final = 0.5
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 10.0
_PATIENCE_IN_TROUBLE_S: Final = 0.2
_JOIN_S: Final = 10.0
_LOOK_S: Final = 0.1


class _ChannelState:
    """One transmission queue: its channel, what is in the way, and when to try again (monotonic seconds)."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.trouble = ""
        self.due_s = 0.0
        self._backoff = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)

    def is_free(self) -> None:
        """Nothing is in the way."""
        self.trouble, self.due_s = "", 0.0
        self.channel.patience_s = PATIENCE_S
        self._backoff.reset()

    def is_blocked(self, error: StoreError) -> bool:
        """Note what is in the way; whether that is news. While it is, other ways do not wait long for this one."""
        is_news, self.trouble = self.trouble != str(error), str(error)
        self.due_s = time.monotonic() + self._backoff.next()
        self.channel.patience_s = _PATIENCE_IN_TROUBLE_S
        return is_news


class Channels:
    """Those of one queue manager. home: where it and the others are. here: opens it, as its command processor.

    groups_of: the groups of a user.
    """

    def __init__(
        self,
        home: Home,
        here: Callable[[], QueueManagerStore],
        durability: Durability,
        groups_of: GroupsOf = no_groups,
    ) -> None:
        self._home, self._open, self._durability, self._groups_of = home, here, durability, groups_of
        self._stop = threading.Event()
        self._threads = Threads(_log, "the way to other queue managers")
        self._store: QueueManagerStore | None = None
        self._repository: RepositoryManager | None = None
        self._states: dict[str, _ChannelState] = {}
        self._queues: tuple[int, tuple[str, ...]] = (-1, ())

    def start(self, ended: Callable[[], None]) -> None:
        """Begin to carry. ended: called if the thread ends by a fault."""
        self._threads.start(ended, carriers=self._run)

    def stop(self) -> None:
        """Finish the work in progress, and end."""
        self._stop.set()
        self._threads.join(_JOIN_S)

    @property
    def fault(self) -> str:
        """Why the thread has ended by itself; "" where it has not."""
        return self._threads.fault

    def carry(self, *, only_due: bool = False) -> int:
        """Carry what waits now, from every transmission queue; returns how many messages left.

        What has become known of the members of clusters is counted too.

        For the thread that calls it alone: with ``start``, that is this object's own. only_due: pass over other queue
        managers that did not take messages, or were looked at, a moment ago. Raises SupersededError once another
        command processor works for the queue manager. What another queue manager does not take stays, and does not keep
        others from getting theirs.
        """
        if self._store is None or self._repository is None:
            self._store = self._open()
            self._repository = RepositoryManager(self._home, self._store, lambda name: self._there(name, _LOOK_S))
        carried = self._repository.look(only_due=only_due)
        for queue in self._transmission_queues(self._store):
            state = self._state(self._store, queue)
            if only_due and state.due_s > time.monotonic():
                continue
            try:
                while count := state.channel.carry():
                    carried += count
                state.is_free()
            except SupersededError:
                raise
            except StoreError as error:
                if state.is_blocked(error):
                    _log.error("messages for queue manager %s wait: %s", queue, error)
        return carried

    def close(self) -> None:
        """Close all queue managers."""
        for state in self._states.values():
            state.channel.close()
        self._states.clear()
        if self._store is not None:
            self._store.close()
        self._store = self._repository = None

    def _run(self) -> None:
        backoff = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        try:
            while not self._stop.is_set():
                try:
                    carried = self.carry(only_due=True)
                    backoff.reset()
                    if not carried and self._store is not None:
                        self._store.wait_for_change(self._idle_s())
                except SupersededError:
                    return  # the command processor ends for the same reason, and says so
                except StoreError as error:
                    _log.error("messages for other queue managers wait: %s", error)
                    self.close()
                    self._stop.wait(backoff.next())
        finally:
            self.close()

    def _idle_s(self) -> float:
        """How long there is nothing to do, unless something changes here."""
        due = [state.due_s for state in self._states.values() if state.trouble]
        return max(0.0, min([IDLE_S, *(each - time.monotonic() for each in due)]))

    def _transmission_queues(self, store: QueueManagerStore) -> tuple[str, ...]:
        version = store.definitions_version()
        if version != self._queues[0]:
            found = (each for each in store.local_queues() if each.transmission and not is_stranding(each))
            self._queues = version, tuple(each.name for each in found if each.name != store.name)
        return tuple(name for name in self._queues[1] if name in self._states or self._is_here(name))

    def _is_here(self, name: str) -> bool:
        return is_there(self._home, name)

    def _state(self, store: QueueManagerStore, queue: str) -> _ChannelState:
        if queue not in self._states:
            self._states[queue] = _ChannelState(Channel(store, queue, lambda: self._there(queue), self._groups_of))
        return self._states[queue]

    def _there(self, name: str, patience_s: float = PATIENCE_S) -> QueueManagerStore:
        assert self._store is not None
        clock = self._store.clock
        return QueueManagerStore.open(self._home, name, durability=self._durability, patience_s=patience_s, clock=clock)
