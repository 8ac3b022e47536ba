"""One connection's calls on an embedded queue manager, as IBM's interface has them.

Each call works in a unit of work of the store that its caller commits; the program's own unit of work may last longer,
and is on lanes of its own (``commands.qmgr.store.uncommitted``). A call that fails raises MqiError or QueueError, and
has changed nothing that its caller may not commit. Nothing here waits: MQGET says that there is no message (2033), and
whoever calls tries again when there may be one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from commands.broker.objects import DEFAULT_STREAM, LocalQueue
from commands.broker.puts import Outgoing, PutKind
from commands.broker.state import to_microseconds
from commands.broker.transmission import transmitted
from commands.disk.errors import QueueError, UnknownQueueError
from commands.headers.put_to_topic import publish_command
from commands.model import TopicPut
from commands.qmgr.mqi.async_puts import AsyncPuts
from commands.qmgr.mqi.attributes import QueueUse, Values, changed_queue, of_queue, of_queue_manager
from commands.qmgr.mqi.authority import OpenAuthority
from commands.qmgr.mqi.context import OF_CONTEXT, Application, put_descriptor, require_context
from commands.qmgr.mqi.errors import MqiError
from commands.qmgr.mqi.got import NO_ID, GetOptions, Got, as_asked
from commands.qmgr.mqi.handles import Handle, Handles, OpenQueues
from commands.qmgr.mqi.properties import given
from commands.qmgr.mqi.refusals import check_get, check_put
from commands.qmgr.mqi.subscriptions import Subscriber
from commands.qmgr.mqi.topic_definitions import TopicDefinitions
from commands.qmgr.store.connection import ProgramConnection
from commands.qmgr.store.dynamic_queues import Close
from commands.qmgr.store.reading import message_of
from commands.qmgr.store.rows import BODY, MD, QUEUE, RANK, SEQ, MessageRow
from commands.qmgr.store.search import Search
from commands.qmgr.store.sqlite import QueueManagerStore
from commands.qmgr.store.uncommitted import BEFORE_ALL, Came, Match
from commands.qmgr.store.unit_of_work import Begin, SqliteUnitOfWork
from rfh2.constants import MQRC_UNKNOWN_REMOTE_Q_MGR
from rfh2.errors import CommandError, DecodeError
from rfh2.message import decode
from rfh2.mqi_constants import (
    MQCC_WARNING,
    MQCO_DELETE,
    MQCO_DELETE_PURGE,
    MQCO_REMOVE_SUB,
    MQGMO_ANY_BROWSE,
    MQGMO_BROWSE_FIRST,
    MQGMO_BROWSE_MSG_UNDER_CURSOR,
    MQGMO_LOCK,
    MQGMO_MSG_UNDER_CURSOR,
    MQGMO_SYNCPOINT,
    MQGMO_SYNCPOINT_IF_PERSISTENT,
    MQGMO_UNLOCK,
    MQGMO_UNMARKED_BROWSE_MSG,
    MQMO_MATCH_CORREL_ID,
    MQMO_MATCH_GROUP_ID,
    MQMO_MATCH_MSG_ID,
    MQMO_MATCH_MSG_TOKEN,
    MQOO_ALTERNATE_USER_AUTHORITY,
    MQOO_ANY_INPUT,
    MQOO_BROWSE,
    MQOO_INQUIRE,
    MQOO_OUTPUT,
    MQOO_SAVE_ALL_CONTEXT,
    MQOO_SET,
    MQPMO_NO_CONTEXT,
    MQPMO_NOT_OWN_SUBS,
    MQPMO_PASS_ALL_CONTEXT,
    MQPMO_PASS_IDENTITY_CONTEXT,
    MQPMO_RETAIN,
    MQPMO_SCOPE_QMGR,
    MQPMO_SUPPRESS_REPLYTO,
    MQPMO_SYNCPOINT,
    MQRC_CONTEXT_HANDLE_ERROR,
    MQRC_CONTEXT_NOT_AVAILABLE,
    MQRC_GET_INHIBITED,
    MQRC_NO_MSG_AVAILABLE,
    MQRC_NO_MSG_LOCKED,
    MQRC_NO_MSG_UNDER_CURSOR,
    MQRC_NOT_OPEN_FOR_BROWSE,
    MQRC_NOT_OPEN_FOR_INPUT,
    MQRC_NOT_OPEN_FOR_INQUIRE,
    MQRC_NOT_OPEN_FOR_OUTPUT,
    MQRC_NOT_OPEN_FOR_SET,
    MQRC_OBJECT_TYPE_ERROR,
    MQRC_OPTIONS_ERROR,
    MQRC_PMO_ERROR,
    MQRC_SELECTOR_SYNTAX_ERROR,
    MQRC_TOPIC_STRING_ERROR,
    MQRC_TRUNCATED_MSG_FAILED,
)
from rfh2.mqmd import Mqmd
from rfh2.pcf_admin_names import MQOT_Q, MQOT_Q_MGR, MQOT_TOPIC
from streams.operations import HIGHEST_PUB_LEVEL
from streams.selectors import Selector, compile_selector, message_properties


@dataclass(frozen=True, slots=True)
class Target:
    """What is opened: as MQOD says. topic: ObjectString. selector: SelectionString, which messages a get gives.

    alternate_user: whose authorities count, where the options ask for that.
    """

    object_type: int = MQOT_Q
    name: str = ""
    qmgr: str = ""
    topic: str = ""
    selector: str = ""
    alternate_user: str = ""


@dataclass(frozen=True, slots=True)
class PutFields:
    """What MQPMO says beside its options. level: PubLevel. context: the handle whose message's context is passed on."""

    level: int = HIGHEST_PUB_LEVEL
    context: int = 0


NO_FIELDS: Final = PutFields()


class Program:
    """One connection. number: of its conversation, with its process the owner of its uncommitted messages.

    open_queues, topics: of all programs. new_id: gives 24 bytes that no other message has. clock: UTC.
    """

    def __init__(
        self,
        qmgr: str,
        connection: ProgramConnection,
        holder: ProgramConnection,
        number: int,
        application: Application,
        open_queues: OpenQueues,
        new_id: Callable[[], bytes],
        clock: Callable[[], datetime],
        topics: TopicDefinitions,
    ) -> None:
        self.application = application
        self._qmgr, self._connection, self._holder, self._number = qmgr, connection, holder, number
        self._open_queues, self._new_id, self._clock, self._topics = open_queues, new_id, clock, topics
        self._handles, self._may = Handles(), OpenAuthority(topics, application.user)
        self._in_syncpoint = self._defers = False
        self.async_puts = AsyncPuts()
        self.subscriber = Subscriber(
            qmgr, connection, holder, self._handles, open_queues, application, self._owner, clock, topics
        )

    # Opening and closing: each in a unit of work of its own

    def open(self, target: Target, options: int, dynamic_name: str, unit_of_work: Begin) -> int:
        """MQOPEN; the number of the handle, an even one. Raises MqiError, QueueError, StoreError."""
        return self._handles.add(self._opened(target, options, dynamic_name, unit_of_work))

    def _opened(self, target: Target, options: int, dynamic_name: str, unit_of_work: Begin) -> Handle:
        if target.object_type == MQOT_Q_MGR:
            if options & ~(MQOO_INQUIRE | 0x2000 | 0x4000):
                raise MqiError(MQRC_OPTIONS_ERROR, "a queue manager can be opened for inquiry only")
            with unit_of_work() as unit:
                self._may.queue_manager(unit, options, self.application.user)
            return Handle(MQOT_Q_MGR, self._qmgr, options)
        if target.object_type == MQOT_TOPIC:
            if options & (MQOO_ANY_INPUT | MQOO_BROWSE):
                raise MqiError(MQRC_OPTIONS_ERROR, "a topic can be opened for output only")
            with unit_of_work() as unit:
                return self._of_topic(unit, target, options)
        if target.object_type != MQOT_Q:
            raise MqiError(MQRC_OBJECT_TYPE_ERROR, f"object type {target.object_type} cannot be opened")
        if target.qmgr not in ("", self._qmgr):
            with unit_of_work() as unit:
                return self._remote(unit, target, options)
        owner = None
        with unit_of_work() as unit:
            if unit.dynamic.model(target.name) is None:
                handle = self._local(unit, target, options)
            else:
                owner = self._may.acting_user(unit, options, target.alternate_user)
                self._may.model(unit, target.name, options, owner)
        if owner is not None:
            made = self._connection.open(target.name, dynamic_name, owner)
            handle = Handle(MQOT_Q, made.name, options, queue=made.name, made=made)
        if target.selector:
            handle.selector = _selector(target.selector)
        self._open_queues.opened(handle.queue, options)
        return handle

    def _local(self, unit: SqliteUnitOfWork, target: Target, options: int) -> Handle:
        """The local queue that *target* is or stands for, made for output if it is missing; or the alias of a topic."""
        name, user = target.name, self._may.acting_user(unit, options, target.alternate_user)
        self._may.queue(unit, name, options, user)
        topic = unit.topic_behind(name)
        if topic is not None:
            if options & (MQOO_ANY_INPUT | MQOO_BROWSE):
                raise MqiError(MQRC_OPTIONS_ERROR, f"{name} is an alias of a topic, and can be opened for output only")
            if topic:
                self._may.topic(unit, topic, options, user)
            return Handle(MQOT_Q, name, options, topic=topic)
        found = unit.ensure_queue(name) if options & MQOO_OUTPUT else unit.find_queue(name)
        if found is None:
            raise UnknownQueueError(name)
        return Handle(MQOT_Q, name, options, queue=found.name)

    def _of_topic(self, unit: SqliteUnitOfWork, target: Target, options: int) -> Handle:
        topic = self._topic(unit, target)
        self._may.topic(unit, topic, options, self._may.acting_user(unit, options, target.alternate_user))
        return Handle(MQOT_TOPIC, target.name, options, topic=topic)

    def _remote(self, unit: SqliteUnitOfWork, target: Target, options: int) -> Handle:
        """A queue of another queue manager, behind the transmission queue of that name."""
        if options & (MQOO_ANY_INPUT | MQOO_BROWSE | MQOO_INQUIRE | MQOO_SET):
            raise MqiError(MQRC_OPTIONS_ERROR, "a queue of another queue manager can be opened for output only")
        found = unit.find_queue(target.qmgr)
        if found is None or not found.transmission:
            raise MqiError(MQRC_UNKNOWN_REMOTE_Q_MGR, f"there is no transmission queue {target.qmgr}")
        user = self._may.acting_user(unit, options, target.alternate_user)
        self._may.transmission(unit, target.qmgr, options, user)
        return Handle(MQOT_Q, target.name, options, queue=found.name, qmgr=target.qmgr)

    def _topic(self, unit: SqliteUnitOfWork, target: Target) -> str:
        """The topic string: that of the object, a slash, and the one given (IBM's description of MQOD)."""
        prefix = unit.topic_string_of(target.name) if target.name else ""
        whole = f"{prefix}/{target.topic}" if prefix and target.topic else prefix or target.topic
        if not whole:
            raise MqiError(MQRC_TOPIC_STRING_ERROR, "neither a topic object nor a topic string is given")
        return whole

    def handle(self, number: int) -> Handle:
        """The object open under *number*. Raises MqiError 2019."""
        return self._handles[number]

    def close(self, number: int, options: int) -> None:
        """MQCLOSE; a dynamic queue goes as its kind and *options* say (MQCO_*). Raises MqiError, StoreError."""
        handle = self.handle(number)
        if handle.made is not None:
            self._connection.close(handle.made, _close_option(options))
        if handle.subscription is not None and options & MQCO_REMOVE_SUB:
            self.subscriber.removed(number)
        self._forget(number)

    def _forget(self, number: int) -> None:
        handle = self._handles.pop(number)
        self._open_queues.unlock(handle)
        if handle.queue:
            self._open_queues.closed(handle.queue, handle.options)
        if handle.subscription is not None:
            self._open_queues.unsubscribed(handle.subscription.name)
        if handle.managed is not None:
            with suppress(QueueError):  # it may have been deleted by other means
                handle.managed.release()

    def disconnect(self, unit_of_work: Begin, commit: bool) -> list[str]:
        """MQDISC, or the end of a broken connection: what is uncommitted is committed or backed out.

        Returns the queues that have more messages. Raises StoreError.
        """
        queues: list[str] = []
        if self._in_syncpoint or self._defers or self.subscriber.defers:
            with unit_of_work() as unit:
                if commit:
                    queues += self.commit(unit)
                queues += self._came(unit.uncommitted.end(self._owner(unit)))
        self.subscriber.abandon()
        for number in self._handles:
            self._forget(number)
        self._connection.disconnect()
        return queues

    # Messages

    def put(
        self,
        unit: SqliteUnitOfWork,
        number: int,
        mqmd: Mqmd,
        options: int,
        body: bytes,
        deferred: bool = False,
        fields: PutFields = NO_FIELDS,
    ) -> Mqmd:
        """MQPUT; the descriptor as it was put. Raises MqiError, QueueError, StoreError.

        deferred: the message stays hidden until the connection ends, or ``activate`` is called for it.
        """
        handle = self.handle(number)
        handle.requires(MQOO_OUTPUT, MQRC_NOT_OPEN_FOR_OUTPUT)
        return self._put(unit, handle, mqmd, options, body, fields, deferred)

    def activate(self, unit: SqliteUnitOfWork, msg_id: bytes, put: bool) -> list[str]:
        """Put a deferred message, or with *put* false take it back; returns the queues that have it."""
        return self._came(unit.uncommitted.activate(self._owner(unit), msg_id, put))

    def put1(
        self,
        unit: SqliteUnitOfWork,
        target: Target,
        mqmd: Mqmd,
        options: int,
        body: bytes,
        fields: PutFields = NO_FIELDS,
    ) -> Mqmd:
        """MQPUT1; the descriptor as it was put. Raises MqiError, QueueError, StoreError."""
        opened = MQOO_OUTPUT | options & (OF_CONTEXT | MQOO_ALTERNATE_USER_AUTHORITY)
        if target.object_type == MQOT_TOPIC:
            handle = self._of_topic(unit, target, opened)
        elif target.qmgr not in ("", self._qmgr):
            handle = self._remote(unit, target, opened)
        else:
            handle = self._local(unit, target, opened)
        return self._put(unit, handle, mqmd, options, body, fields)

    def _put(
        self,
        unit: SqliteUnitOfWork,
        handle: Handle,
        mqmd: Mqmd,
        options: int,
        body: bytes,
        fields: PutFields,
        deferred: bool = False,
    ) -> Mqmd:
        require_context(handle.options, options)
        check_put(mqmd, options, body, on_topic=bool(handle.topic), leaves=bool(handle.qmgr))
        if handle.topic:
            self._topics.check_topic(unit, handle.topic)
        passed = self._passed(options, fields.context)
        mqmd = put_descriptor(mqmd, options, self.application, self._new_id(), passed)
        queue, described = handle.queue, mqmd
        user: str | None = self.application.user
        if handle.topic:
            queue = DEFAULT_STREAM
            retain, local = bool(options & MQPMO_RETAIN), bool(options & MQPMO_SCOPE_QMGR)
            put = self._topic_put(options, fields.level)
            described, body = publish_command(handle.topic, mqmd, body, retain, local, put)
        elif not queue:
            queue = handle.name  # an alias of a topic without a topic string, which takes nothing
        elif handle.qmgr:
            sent = transmitted(Outgoing(PutKind.PUBLICATION, handle.qmgr, handle.name, mqmd.encode(), body))
            described, body = sent.mqmd, sent.body
        application = self.application.name
        if options & MQPMO_NO_CONTEXT and not handle.topic:
            user, application = None, ""  # nobody is named; who publishes is known all the same
        seq = unit.put(queue, described.encode(), body, user=user, application=application)
        row = unit.uncommitted.message(seq)
        if deferred:
            self._defers = True
            unit.uncommitted.defer(row[QUEUE], seq, self._owner(unit))
        elif options & MQPMO_SYNCPOINT:
            self._in_syncpoint = True
            unit.uncommitted.put(row[QUEUE], seq, self._owner(unit))
        kept = Mqmd.decode(row[MD])
        return replace(
            mqmd,
            msg_id=kept.msg_id,
            user_identifier=kept.user_identifier,
            put_appl_type=kept.put_appl_type,
            put_appl_name=kept.put_appl_name,
            put_date=kept.put_date,
            put_time=kept.put_time,
        )

    def _passed(self, options: int, number: int) -> Mqmd | None:
        """The descriptor whose context is passed on; None where none is. Raises MqiError 2097, 2098."""
        if not options & (MQPMO_PASS_IDENTITY_CONTEXT | MQPMO_PASS_ALL_CONTEXT):
            return None
        try:
            source = self.handle(number)
        except MqiError as error:
            raise MqiError(MQRC_CONTEXT_HANDLE_ERROR, f"MQPMO Context: {error.why}") from error
        if not source.options & MQOO_SAVE_ALL_CONTEXT:
            raise MqiError(MQRC_CONTEXT_HANDLE_ERROR, f"{source.name} is not open with MQOO_SAVE_ALL_CONTEXT")
        if source.passed is None:
            raise MqiError(MQRC_CONTEXT_NOT_AVAILABLE, f"nothing was got from {source.name} that has a context")
        return source.passed

    def _topic_put(self, options: int, level: int) -> TopicPut:
        """What no command says of a publication. Raises MqiError 2173."""
        if not 0 <= level <= HIGHEST_PUB_LEVEL:
            raise MqiError(MQRC_PMO_ERROR, f"PubLevel is {level}, not 0 to 9")
        opened = (self._handles[number].subscription for number in self._handles)
        own = sorted(each.sub_id.hex().upper() for each in opened if each is not None)
        return TopicPut(
            level=level,
            suppress_reply_to=bool(options & MQPMO_SUPPRESS_REPLYTO),
            own_subs=tuple(own) if options & MQPMO_NOT_OWN_SUBS else (),
        )

    def chooses(self, number: int, asked: GetOptions) -> bool:
        """Whether MQGET is to give one of many messages, for which ``look`` looks first. Raises MqiError."""
        if asked.options & (MQGMO_UNLOCK | MQGMO_MSG_UNDER_CURSOR | MQGMO_BROWSE_MSG_UNDER_CURSOR):
            return False
        match = _match(asked)
        return match.seq is None and bool(match.ids or self.handle(number).selector is not None)

    def look(self, store: QueueManagerStore, number: int, asked: GetOptions) -> tuple[int | None, bool]:
        """Look at some messages of the queue, without a unit of work, for that which MQGET is to give.

        Returns its number, or None, and whether there is anything left to look at. What was looked at for one MQGET is
        not looked at for the next that asks for the same. Raises MqiError, StoreError.
        """
        handle = self.handle(number)
        check_get(asked.options, asked.match)
        _gettable(store, handle, asked.options)
        match, after = _match(asked), _after(handle, asked.options)
        search = handle.search
        if search is None or (search.match, search.after) != (match, after):
            search = handle.search = Search(handle.queue, match, after)
            self._open_queues.searched(search)
        locks, now_us = self._open_queues.locks, to_microseconds(self._clock())

        def fits(row: MessageRow) -> bool:
            is_free = locks.get(row[SEQ], handle) is handle and not self._is_passed(handle, row, asked.options, now_us)
            return is_free and _is_selected(handle, row)

        seq, is_over = search.turn(store.database, now_us, fits)
        if is_over and asked.options & MQGMO_UNMARKED_BROWSE_MSG:
            handle.search = None  # a mark ends by itself: the next MQGET looks at all again
        return seq, not is_over

    def get(self, unit: SqliteUnitOfWork, number: int, asked: GetOptions, seq: int | None = None) -> Got:
        """MQGET without its wait. Raises MqiError 2033 where there is no such message, and as the others do.

        seq: the message that ``look`` has found.
        """
        handle, options = self.handle(number), asked.options
        check_get(options, asked.match)
        if options & MQGMO_UNLOCK:
            return self._unlocked(handle)
        browses = options & MQGMO_ANY_BROWSE
        queue = _gettable(unit, handle, options)
        row = self._found(unit, handle, asked, seq)
        message = message_of(unit.database, row, to_microseconds(self._clock()))
        try:
            mqmd, body = given(Mqmd.decode(message.md), message.body, options)
        except DecodeError:
            mqmd, body = Mqmd(), message.body
        got = as_asked(mqmd, body, asked, queue.name, message.seq)
        self._open_queues.unlock(handle)
        if browses:
            handle.cursor = (row[RANK], row[SEQ])
            self._open_queues.mark(handle, message.seq, options, to_microseconds(self._clock()))
            if options & MQGMO_LOCK:
                self._open_queues.locks[message.seq] = handle
        elif got.reason != MQRC_TRUNCATED_MSG_FAILED:
            self._take(unit, queue.name, got, options)
            if handle.options & MQOO_SAVE_ALL_CONTEXT:
                handle.passed = mqmd
        return got

    def _found(self, unit: SqliteUnitOfWork, handle: Handle, asked: GetOptions, seq: int | None) -> MessageRow:
        options, now_us = asked.options, to_microseconds(self._clock())
        match, after = _match(asked) if seq is None else Match(seq=seq), BEFORE_ALL
        under_cursor = options & (MQGMO_MSG_UNDER_CURSOR | MQGMO_BROWSE_MSG_UNDER_CURSOR)
        if under_cursor:
            match = Match(seq=handle.cursor[1])
        elif seq is None:
            after = _after(handle, options)
        locks = self._open_queues.locks
        while (row := unit.uncommitted.find(handle.queue, now_us, match, after)) is not None:
            if locks.get(row[SEQ], handle) is handle and not self._is_passed(handle, row, options, now_us):
                return row
            after = (row[RANK], row[SEQ])
        if under_cursor:
            raise MqiError(MQRC_NO_MSG_UNDER_CURSOR, "no message is under the cursor")
        raise MqiError(MQRC_NO_MSG_AVAILABLE, f"{handle.queue} has no such message")

    def _is_passed(self, handle: Handle, row: MessageRow, options: int, now_us: int) -> bool:
        """Whether a browse of unmarked messages passes this one."""
        return bool(options & MQGMO_UNMARKED_BROWSE_MSG) and self._open_queues.is_marked(handle, row[SEQ], now_us)

    def _unlocked(self, handle: Handle) -> Got:
        if not self._open_queues.unlock(handle):
            raise MqiError(MQRC_NO_MSG_LOCKED, "no message is locked", MQCC_WARNING)
        return Got(Mqmd(), b"", 0, handle.queue, 0)

    def _take(self, unit: SqliteUnitOfWork, queue: str, got: Got, options: int) -> None:
        in_syncpoint = options & MQGMO_SYNCPOINT or (
            options & MQGMO_SYNCPOINT_IF_PERSISTENT and got.mqmd.persistence == 1
        )
        if in_syncpoint:
            self._in_syncpoint = True
            unit.uncommitted.got(queue, got.seq, self._owner(unit))
        else:
            unit.uncommitted.remove(queue, got.seq)
        # Counted when it is got, as a put is; LGETDATE is that of the last MQGET, whatever becomes of it.
        unit.counters.got.append(queue)
        unit.counters.got_us.append(to_microseconds(self._clock()))

    # Units of work

    def commit(self, unit: SqliteUnitOfWork) -> list[str]:
        """MQCMIT; returns the queues that have more messages. Raises StoreError."""
        return self._ended(unit, commit=True)

    def backout(self, unit: SqliteUnitOfWork) -> list[str]:
        """MQBACK; returns the queues to which messages came back. Raises StoreError."""
        return self._ended(unit, commit=False)

    def _ended(self, unit: SqliteUnitOfWork, commit: bool) -> list[str]:
        if not self._in_syncpoint:
            return []
        owner = self._owner(unit)
        self._in_syncpoint = False
        return self._came(unit.uncommitted.commit(owner) if commit else unit.uncommitted.backout(owner))

    def _came(self, came: Came) -> list[str]:
        self._open_queues.came(came)
        return list(came)

    def _owner(self, unit: SqliteUnitOfWork) -> str:
        return f"{self._holder.number(unit)} {self._number}"

    # Inquiry

    def inquire(self, unit: SqliteUnitOfWork, number: int, selectors: list[int]) -> Values:
        """MQINQ: integers, and characters with their lengths. Raises MqiError 2038, 2067, QueueError, StoreError."""
        handle = self.handle(number)
        handle.requires(MQOO_INQUIRE, MQRC_NOT_OPEN_FOR_INQUIRE)
        if handle.object_type == MQOT_Q_MGR:
            return of_queue_manager(unit.queue_manager(), selectors)
        queue = unit.find_queue(handle.queue)
        if queue is None:
            raise UnknownQueueError(handle.queue or handle.name)
        opened = self._open_queues
        use = QueueUse(queue, unit.depth(queue.name), opened.inputs[queue.name], opened.outputs[queue.name])
        return of_queue(use, selectors)

    def set(self, unit: SqliteUnitOfWork, number: int, values: Iterable[tuple[int, int]]) -> None:
        """MQSET of a local queue: selectors and values. Raises MqiError 2040, 2067, 2020, QueueError, StoreError."""
        handle = self.handle(number)
        handle.requires(MQOO_SET, MQRC_NOT_OPEN_FOR_SET)
        queue = unit.find_queue(handle.queue)
        if queue is None:
            raise UnknownQueueError(handle.queue or handle.name)
        changed = changed_queue(queue, values)
        if changed != queue:
            unit.save_definition(changed)


def _gettable(queues: SqliteUnitOfWork | QueueManagerStore, handle: Handle, options: int) -> LocalQueue:
    """The queue from which a get with *options* gives messages. Raises MqiError, QueueError."""
    if options & MQGMO_ANY_BROWSE:
        handle.requires(MQOO_BROWSE, MQRC_NOT_OPEN_FOR_BROWSE)
    else:
        handle.requires(MQOO_ANY_INPUT, MQRC_NOT_OPEN_FOR_INPUT)
    queue = queues.find_queue(handle.queue)
    if queue is None:
        raise UnknownQueueError(handle.queue)
    if not queue.get_enabled:
        raise QueueError(MQRC_GET_INHIBITED, queue.name, "getting is inhibited")
    return queue


def _match(asked: GetOptions) -> Match:
    return Match(
        msg_id=asked.msg_id if asked.match & MQMO_MATCH_MSG_ID and asked.msg_id != NO_ID else None,
        correl_id=asked.correl_id if asked.match & MQMO_MATCH_CORREL_ID and asked.correl_id != NO_ID else None,
        group_id=asked.group_id if asked.match & MQMO_MATCH_GROUP_ID and asked.group_id != NO_ID else None,
        seq=asked.seq if asked.match & MQMO_MATCH_MSG_TOKEN and asked.seq else None,
    )


def _after(handle: Handle, options: int) -> tuple[int, int]:
    """Behind which place a get looks."""
    return handle.cursor if options & MQGMO_ANY_BROWSE and not options & MQGMO_BROWSE_FIRST else BEFORE_ALL


def _selector(text: str) -> Selector:
    try:
        return compile_selector(text)
    except CommandError as error:
        raise MqiError(MQRC_SELECTOR_SYNTAX_ERROR, str(error)) from error


def _is_selected(handle: Handle, row: MessageRow) -> bool:
    if handle.selector is None:
        return True
    try:
        message = decode(row[BODY] or b"", row[MD])
    except DecodeError:
        return False
    return handle.selector.matches(message_properties(message))


def _close_option(options: int) -> Close:
    if options & MQCO_DELETE_PURGE:
        return Close.PURGE
    return Close.DELETE if options & MQCO_DELETE else Close.NONE
