"""The table of messages in a unit of work: put, get, browse, remove.

What is read of it stays true until the unit of work ends, so the first messages of queues, their depths and the number
of the last message are read once, and then counted in memory.

Publications that neither their queue nor the dead-letter queue took: kept until one of them does.

They are ordinary messages in the database's own table, on lanes that no program can name: ``owed `` and the name of the
queue, or no name for dead letters, whose queue may change. A lane is in the order of arrival, and no later message is
put on its queue before those in the lane. They expire as messages do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Final

from commands.broker.descriptor import HIGHEST_PRIORITY, TENTH_US, arrive, default_descriptor, reports_expiration
from commands.broker.objects import DEFAULT_STREAM, TEMPORARY, UNLIMITED_DEPTH, LocalQueue
from commands.broker.puts import Outgoing
from commands.broker.times import LAST_US, to_microseconds
from commands.headers.psc_commands import publish_command
from commands.qmgr.store.counters import Counters
from commands.qmgr.store.database import FAILURES, Connection, Database
from commands.qmgr.store.definitions import QueueDefinitions
from commands.qmgr.store.port import (
    BEFORE_ALL,
    BODY,
    BODY_OF_MESSAGE,
    FIRST_MESSAGES,
    NEXT_SHORT_MESSAGES,
    QUEUE,
    RANK,
    SEQ,
    TIME,
    MessageRow,
    StoredMessage,
    browse_queue,
    check,
    message_of,
    queue_depth,
)
from commands.qmgr.store.write_buffer import WriteBuffer
from rfh2 import mqi_constants as m
from rfh2.constants import MQAT_BROKER, MQRC_MSG_TOO_BIG_FOR_Q, MQRC_PUT_INHIBITED, MQRC_Q_FULL
from rfh2.errors import DecodeError, EncodeError, MessageRefusedError, QueueError
from rfh2.message import put_descriptor, resolved_body
from rfh2.mqmd import Mqmd

_COUNT_BACKOUT: Final = "UPDATE messages SET backout_count = backout_count + 1 WHERE seq = ?"
_AHEAD: Final = 256
_QUEUE_OF: Final = itemgetter(QUEUE)


class ReadAhead:
    """The first messages of queues, in queue order: priority descending, then arrival; until a unit of work ends.

    No other process gets or puts while that is open. The first look at a queue reads one message, for a caller that
    needs no more. Each further look reads sixteen times as many behind these, so that a deep queue needs one statement
    for many messages, and a caller that needs some does not read many; what was taken need not be written before that.
    Long bodies are read only when their message is taken. A put to the queue may have to come before all of these: then
    they are read again.
    """

    __slots__ = ("_database", "_looked", "_pending", "_whole", "rows")

    def __init__(self, pending: WriteBuffer) -> None:
        self._database, self._pending = pending.database, pending
        self.rows: dict[str, list[MessageRow]] = {}  # by queue; the last one is its first
        # How many messages the last look at a queue was for, and the place of the last one that it found.
        self._looked: dict[str, tuple[int, tuple[int, int]]] = {}
        self._whole: set[str] = set()  # queues with nothing behind what is in rows

    def first(self, queue: str) -> int | None:
        """The seq of the first message of a local queue, expired or not; None where it is empty."""
        ahead = self.rows.get(queue)
        if ahead:
            return ahead[-1][SEQ]
        if queue in self._whole:
            return None
        if ahead is None:
            self.look_at_each((queue,))
        else:
            self._pending.flush_if_many_taken()
            limit, after = self._looked[queue]
            self._look((queue,), min(16 * limit, _AHEAD), after)
        ahead = self.rows[queue]
        return ahead[-1][SEQ] if ahead else None

    def look_at_each(self, queues: Sequence[str]) -> None:
        """Have the first message of each, where it is not known."""
        unknown = [queue for queue in queues if queue not in self.rows]
        if unknown:
            self._pending.flush_messages()
            self._look(unknown, 1, BEFORE_ALL)

    def first_of(self, queues: Sequence[str]) -> str | None:
        """Of these local queues the one whose first message came before those of the others; None where all are empty.

        A processor asks before each message: what is known already is looked at here, without a call for each queue.
        """
        known, whole = self.rows, self._whole
        first: int | None = None
        of: str | None = None
        for queue in queues:
            ahead = known.get(queue)
            if ahead:
                seq: int | None = ahead[-1][SEQ]
            else:
                seq = None if queue in whole else self.first(queue)
            if seq is not None and (first is None or seq < first):
                first, of = seq, queue
        return of

    def take(self, queue: str) -> MessageRow:
        """The row of the first message of a local queue that is not empty; it is first no more.

        The caller has the message removed.
        """
        row = self.rows[queue].pop()
        if row[BODY] is None:
            # Read to the end: a statement left half-read would keep the transaction from committing.
            ((body,),) = self._database.connection.execute(BODY_OF_MESSAGE, (row[SEQ],)).fetchall()
            seq, name, rank, time, user, persistent, expires_at, md, _, backout_count = row
            row = (seq, name, rank, time, user, persistent, expires_at, md, body, backout_count)
        return row

    def peek(self, queue: str) -> MessageRow | None:
        """The first message of a local queue, with its body, expired or not; None where it is empty."""
        if self.first(queue) is None:
            return None
        row = self.take(queue)
        self.rows[queue].append(row)
        return row

    def changed(self, queue: str) -> None:
        """A message was put on *queue*, or its messages were removed."""
        if queue in self.rows:
            del self.rows[queue]
            self._whole.discard(queue)

    def forget(self) -> None:
        """Anything may have changed."""
        self.rows.clear()
        self._whole.clear()

    def _look(self, queues: Sequence[str], limit: int, after: tuple[int, int]) -> None:
        values = [(queue, *after, limit) for queue in queues]
        for queue, rows in zip(queues, self._database.read_each(NEXT_SHORT_MESSAGES, values), strict=True):
            for row in rows:
                check(self._database, row)
            last = (rows[-1][RANK], rows[-1][SEQ]) if rows else after
            rows.reverse()
            self.rows[queue], self._looked[queue] = rows, (limit, last)
            if len(rows) < limit:
                self._whole.add(queue)


class MessageTable:
    """All messages of a queue manager. Its methods are for an open unit of work, and raise ``FAILURES``.

    got: the numbers of the messages that the unit of work got. last: the number of the last message, before: of the
    last one of earlier units of work; None until they are needed.
    """

    __slots__ = (
        "_asked",
        "_clock",
        "_connection",
        "_counters",
        "_database",
        "_definitions",
        "_depths",
        "_pending",
        "_read_ahead",
        "_time",
        "before",
        "got",
        "last",
    )

    def __init__(
        self,
        pending: WriteBuffer,
        definitions: QueueDefinitions,
        counters: Counters,
        clock: Callable[[], datetime],
    ) -> None:
        self._database, self._connection = pending.database, pending.database.connection
        self._pending, self._definitions, self._counters, self._clock = pending, definitions, counters, clock
        self._read_ahead = ReadAhead(pending)
        # The queues of the last get_next, and the local queues that they were, until a definition changes.
        self._asked: tuple[Sequence[str], int, list[str]] = ((), -1, [])
        self._time: tuple[datetime | None, int] = (None, 0)  # of the last put, for many puts have one time
        self._depths: dict[str, int] = {}
        self.got: list[int] = []
        self.last: int | None = None
        self.before: int | None = None

    def begin(self) -> None:
        """A unit of work begins: anything may have changed."""
        self.forget()
        self.got.clear()
        self.last = self.before = None

    def forget(self) -> None:
        """The messages on the queues may be others."""
        self._depths.clear()
        self._read_ahead.forget()

    def first(self, queue: str) -> MessageRow | None:
        """The first message of a local queue, expired or not; None where it is empty."""
        return self._read_ahead.peek(queue)

    def removed(self, queue: str, seq: int) -> None:
        """Message number *seq* of a local queue, and no other one, has gone from it."""
        ahead = self._read_ahead.rows.get(queue)
        if ahead and ahead[-1][SEQ] == seq:
            ahead.pop()
            self._depths.pop(queue, None)
        else:
            self.changed(queue)

    def changed(self, queue: str) -> None:
        """The messages of a local queue are others."""
        self._depths.pop(queue, None)
        self._read_ahead.changed(queue)

    def get(self, queue: str) -> StoredMessage | None:
        """As in ``Queues``."""
        local = self._definitions.known(queue)
        if not local.get_enabled:
            raise QueueError(m.MQRC_GET_INHIBITED, local.name, "getting is inhibited")
        return self._taken_first([local.name])

    def get_next(self, queues: Sequence[str]) -> StoredMessage | None:
        """As in ``Queues``."""
        asked, changes, names = self._asked
        if asked is not queues or changes != self._definitions.changes:
            names = [queue.name for queue in self._definitions.find_each(queues) if queue.get_enabled]
            self._asked = queues, self._definitions.changes, names
            self._read_ahead.look_at_each(names)
        return self._taken_first(names)

    def _taken_first(self, names: Sequence[str]) -> StoredMessage | None:
        """The message that arrived first among the first ones of these local queues, removed; expired ones go too."""
        read_ahead, now_us = self._read_ahead, to_microseconds(self._clock())
        while (queue := read_ahead.first_of(names)) is not None:
            row = read_ahead.take(queue)
            seq, _, _, _, _, _, expires_at, md, _, _ = row
            is_expired = expires_at is not None and expires_at <= now_us
            if is_expired and reports_expiration(md):
                continue  # it stays for ``discard_expired``, before which there is a report
            self._pending.take(seq)
            if is_expired:
                # It may or may not have been among those counted.
                self._depths.pop(queue, None)
                continue
            self.got.append(seq)
            self._counters.got.append(queue)
            self._counters.got_us.append(now_us)
            if queue in self._depths:
                self._depths[queue] -= 1
            return message_of(self._database, row, now_us)
        return None

    def put(
        self,
        queue: str,
        md: bytes | None,
        body: bytes,
        *,
        time: datetime | None = None,
        user: str | None = None,
        application: str = "",
        expires_at: datetime | None = None,
    ) -> int:
        """As in ``Queues``."""
        definitions = self._definitions
        local = definitions.queues.get(queue)
        if type(local) is not LocalQueue:
            topic = definitions.topic_behind(queue)
            if topic is not None:
                md, body = _publication(queue, topic, default_descriptor(body) if md is None else md, body)
                queue = DEFAULT_STREAM
            local = definitions.ensure(queue)
        name = local.name
        if not local.put_enabled:
            raise QueueError(MQRC_PUT_INHIBITED, name, "putting is inhibited")
        if len(body) > local.max_message_length:
            why = f"the message has {len(body)} bytes, MAXMSGL is {local.max_message_length}"
            raise MessageRefusedError(MQRC_MSG_TOO_BIG_FOR_Q, name, why)
        if local.max_depth < UNLIMITED_DEPTH and self._counted(name) >= local.max_depth:
            raise QueueError(MQRC_Q_FULL, name, f"it is full (MAXDEPTH {local.max_depth})")
        if time is None:
            time = self._clock()
        seq = self._next()
        arrived = arrive(
            default_descriptor(body) if md is None else md,
            queue=name,
            def_priority=local.def_priority,
            def_persistent=local.def_persistent,
            qmgr=definitions.qmgr().name,
            unique=seq,
            time=time,
            user=user,
            application=application,
        )
        if arrived.persistent and local.definition_type == TEMPORARY:
            why = "it is a temporary dynamic queue, which takes no persistent messages"
            raise MessageRefusedError(m.MQRC_PERSISTENT_NOT_ALLOWED, name, why)
        time_us = self._time_us(time)
        if expires_at is not None:
            end_us: int | None = to_microseconds(expires_at)
        else:
            end_us = None if arrived.lifetime_us is None else min(time_us + arrived.lifetime_us, LAST_US)
        descriptor = put_descriptor(arrived.md, body, md)
        body = resolved_body(body, descriptor)
        # FIFO: as if each message had the priority that is the default when it comes; its descriptor keeps its own.
        rank = HIGHEST_PRIORITY - (local.def_priority if local.in_order_of == "FIFO" else arrived.priority)
        self._add([(seq, name, rank, time_us, arrived.user, arrived.persistent, end_us, descriptor, body, 0)])
        return seq

    def put_alike(self, puts: Sequence[Outgoing], first: int, time: datetime) -> int:
        """As in ``PutsAlike``."""
        known = self._definitions.queues
        time_us = self._time_us(time)
        seq = self._next()
        rows: list[MessageRow] = []
        for put in puts[first:] if first else puts:
            columns, local, body = put.accepted, known.get(put.queue), put.body
            if (
                columns is None
                or type(local) is not LocalQueue
                or not local.put_enabled
                or len(body) > local.max_message_length
                or local.max_depth < UNLIMITED_DEPTH
                or local.in_order_of == "FIFO"
            ):
                break
            rank, persistent, user, lifetime_us = columns
            if persistent and local.definition_type == TEMPORARY:
                break
            end_us = None if lifetime_us is None else min(time_us + lifetime_us, LAST_US)
            rows.append((seq, local.name, rank, time_us, user, persistent, end_us, put.md, body, 0))
            seq += 1
        if rows:
            self._add(rows)
        return first + len(rows)

    def _add(self, rows: Sequence[MessageRow]) -> None:
        """Put *rows*, which have one time."""
        self._pending.put(rows)
        self.last = rows[-1][SEQ]
        names, counters, known, depths = [*map(_QUEUE_OF, rows)], self._counters, self._read_ahead.rows, self._depths
        counters.put += names
        counters.put_us += [rows[0][TIME]] * len(rows)
        for name in names:
            if name in known:
                self._read_ahead.changed(name)
            if name in depths:
                depths[name] += 1

    def keep(
        self,
        channel: str,
        md: bytes,
        body: bytes,
        *,
        time: datetime,
        user: str | None,
        persistent: bool,
        expires_at_us: int | None,
    ) -> None:
        """Put a message as it is where no program can get it, after those that are there."""
        self.last = seq = self._next()
        self._pending.put([(seq, channel, 0, self._time_us(time), user, persistent, expires_at_us, md, body, 0)])

    def browse(self, queue: str) -> Iterator[StoredMessage]:
        """As in ``Queues``."""
        self._pending.flush()
        return browse_queue(self._database, self._definitions.known(queue).name, to_microseconds(self._clock()))

    def depth(self, queue: str) -> int:
        """As in ``Queues``."""
        return self._depth(self._definitions.known(queue).name)

    def clear_queue(self, queue: str) -> int:
        """As in ``Queues``."""
        name = self._definitions.known(queue).name
        self.changed(name)
        self._pending.flush()
        return self._connection.execute("DELETE FROM messages WHERE queue = ?", (name,)).rowcount

    def discard(self, queue: str, seqs: Sequence[int]) -> int:
        """Remove these messages of *queue*, wherever they are on it; returns how many were there.

        Raises UnknownQueueError. It is no get: nothing is counted where the unit of work is backed out.
        """
        name = self._definitions.known(queue).name
        self.changed(name)
        self._pending.flush()
        rows = [(seq, name) for seq in seqs]
        return self._connection.executemany("DELETE FROM messages WHERE seq = ? AND queue = ?", rows).rowcount

    def discard_expired(self, now: datetime | None = None) -> int:
        """As in ``Queues``."""
        self.forget()
        self._pending.flush()
        now_us = to_microseconds(now or self._clock())
        return self._connection.execute("DELETE FROM messages WHERE expires_at <= ?", (now_us,)).rowcount

    def is_empty(self, queue: str) -> bool:
        """Whether a local queue has no message, not even an expired one."""
        return self._read_ahead.first(queue) is None

    def count_backouts(self, seqs: Sequence[int]) -> None:
        """Note that the gets of these messages, which are on their queues again, were backed out."""
        self._database.write(_COUNT_BACKOUT, [(seq,) for seq in seqs])

    def _depth(self, name: str) -> int:
        self._pending.flush()
        return queue_depth(self._connection, name, to_microseconds(self._clock()))

    def _counted(self, name: str) -> int:
        count = self._depths.get(name)
        if count is None:
            count = self._depths[name] = self._depth(name)
        return count

    def _next(self) -> int:
        if self.last is None:
            self.last = self.before = self._database.highest("messages")
        return self.last + 1

    def newest(self) -> int | None:
        """The number of the message that was put last in this unit of work; None where it has put none."""
        return self.last if self.last is not None and self.is_new(self.last) else None

    def is_new(self, seq: int) -> bool:
        """Whether message number *seq* was put in this unit of work, so that no commit has left it on its queue."""
        return self.before is not None and seq > self.before

    def _time_us(self, time: datetime) -> int:
        if time is not self._time[0]:
            self._time = time, to_microseconds(time)
        return self._time[1]


def _publication(alias: str, topic: str, md: bytes, body: bytes) -> tuple[bytes, bytes]:
    """The Publish command that a message put on *alias*, an alias of a topic object, becomes (guide 7.7).

    topic: the object's topic string. Raises QueueError 2425 where that is empty, 2043 for what a broker puts:
    subscribers and replies are on queues, and a subscription that feeds its own topic would never end;
    MessageRefusedError 2026 for a descriptor or headers that cannot be read.
    """
    if not topic:
        raise QueueError(m.MQRC_TOPIC_STRING_ERROR, alias, "it is an alias of a topic object without a TOPICSTR")
    try:
        mqmd = Mqmd.decode(md)
        if mqmd.put_appl_type == MQAT_BROKER:
            raise QueueError(
                m.MQRC_OBJECT_TYPE_ERROR, alias, "it is an alias of a topic, and takes nothing from brokers"
            )
        mqmd, command = publish_command(topic, mqmd, body)
        return mqmd.encode(), command
    except (DecodeError, EncodeError) as error:
        raise MessageRefusedError(m.MQRC_MD_ERROR, alias, str(error)) from error


_LANE: Final = "owed "
_BEFORE, _BEHIND = "owed", "owed!"
_NEXT_LANE: Final = "SELECT min(queue) FROM messages WHERE queue > ? AND queue < ?"
_TOTAL: Final = "SELECT count(*), coalesce(sum(length(body)), 0) FROM messages WHERE queue > ? AND queue < ?"
_TRIED: Final = "UPDATE messages SET backout_count = backout_count + 1 WHERE queue = ? AND persistent = 0"
_GIVEN_UP: Final = "DELETE FROM messages WHERE queue = ? AND persistent = 0 AND backout_count >= ?"


class UndeliveredMessages:
    """What is undelivered, in units of work (``Undelivered``)."""

    __slots__ = ("_connection", "_database", "_lanes", "_messages", "_pending")

    def __init__(self, pending: WriteBuffer, messages: MessageTable) -> None:
        self._database, self._connection, self._pending = pending.database, pending.database.connection, pending
        self._messages = messages
        self._lanes: set[str] | None = None

    def queues(self) -> set[str]:
        """The queues for which something is undelivered."""
        if self._lanes is None:
            self._pending.flush()
            self._lanes = set()
            after = _BEFORE
            while (row := self._connection.execute(_NEXT_LANE, (after, _BEHIND)).fetchone())[0] is not None:
                (after,) = row
                self._lanes.add(after.removeprefix(_LANE))
        return self._lanes

    def keep(
        self,
        queue: str,
        md: bytes,
        body: bytes,
        *,
        time: datetime,
        user: str | None,
        expires_at: datetime | None,
        persistent: bool,
    ) -> None:
        """Keep a message for *queue*. persistent: whether it may never be given up."""
        end_us = None if expires_at is None else to_microseconds(expires_at)
        if end_us is None and (expiry := Mqmd.decode(md).expiry) > 0:
            end_us = min(to_microseconds(time) + expiry * TENTH_US, LAST_US)
        self.queues().add(queue)
        lane = _LANE + queue
        self._messages.keep(lane, md, body, time=time, user=user, persistent=persistent, expires_at_us=end_us)

    def first(self, queue: str, limit: int, now: datetime) -> list[StoredMessage]:
        """The first *limit* undelivered for *queue*, expired ones too, with the Expiry that is left."""
        self._pending.flush()
        now_us = to_microseconds(now)
        rows = self._connection.execute(FIRST_MESSAGES, (_LANE + queue, limit)).fetchall()
        return [message_of(self._database, row, now_us) for row in rows]

    def is_temporary(self, queue: str) -> bool:
        """False: those for a temporary dynamic queue are deleted with it (``dynamic_queues``)."""
        del queue
        return False

    def remove(self, message: StoredMessage) -> None:
        """It was delivered, or has expired."""
        self._pending.take(message.seq)
        self._lanes = None

    def tried(self, queue: str, most: int | None) -> int:
        """A try failed; returns how many are discarded: not persistent and tried *most* times (None: none)."""
        self._pending.flush()
        self._connection.execute(_TRIED, (_LANE + queue,))
        if most is None:
            return 0
        self._lanes = None
        return self._connection.execute(_GIVEN_UP, (_LANE + queue, most)).rowcount

    def total(self) -> tuple[int, int]:
        """How many messages, and how many bytes, are undelivered in all."""
        self._pending.flush()
        count, size_bytes = self._connection.execute(_TOTAL, (_BEFORE, _BEHIND)).fetchone()
        return int(count), int(size_bytes)

    def drop(self, queue: str) -> None:
        """Delete all that is undelivered for *queue*; nothing is pending."""
        self._connection.execute("DELETE FROM messages WHERE queue = ?", (_LANE + queue,))
        self._lanes = None

    def forget(self) -> None:
        """Forget what is known: anything may have changed."""
        self._lanes = None


def undelivered_overview(connection: Connection) -> list[tuple[str, int, int]]:
    """Queue, how many messages are undelivered for it, and when the first of them arrived, in microseconds.

    Of what is kept elsewhere, as of the last time that ``note_undelivered_elsewhere`` noted it.
    """
    statement = "SELECT queue, count(*), min(time) FROM messages WHERE queue > ? AND queue < ? GROUP BY queue"
    rows = connection.execute(statement, (_BEFORE, _BEHIND)).fetchall()
    rows += connection.execute("SELECT queue, count, since FROM owed_elsewhere ORDER BY queue").fetchall()
    return [(name.removeprefix(_LANE), int(count), int(time_us)) for name, count, time_us in rows]


def note_undelivered_elsewhere(database: Database, rows: Iterable[tuple[str, int, datetime]]) -> None:
    """Note, for ``status``, what is kept where the queues are another queue manager's: queue, how many, since when.

    In the open transaction. The note is only for display: the messages themselves say what is kept. Raises StoreError.
    """
    connection = database.connection
    noted = [(queue, count, to_microseconds(since)) for queue, count, since in rows]
    try:
        connection.execute("DELETE FROM owed_elsewhere")
        connection.executemany("INSERT INTO owed_elsewhere (queue, count, since) VALUES (?, ?, ?)", noted)
    except FAILURES as error:
        raise database.translated(error) from error
