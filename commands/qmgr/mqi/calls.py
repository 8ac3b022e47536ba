"""One connection's calls on an embedded queue manager, as IBM's interface has them.

Each call works in a unit of work of the store that its caller commits; the program's own unit of work may last longer,
and is on lanes of its own (``commands.qmgr.store.uncommitted``). A call that fails raises MqiError or QueueError, and
has changed nothing that its caller may not commit. Nothing here waits: MQGET says that there is no message (2033), and
whoever calls tries again when there may be one.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from commands.broker.objects import DEFAULT_STREAM, DELAY_QUEUE, AliasQueue
from commands.broker.puts import Outgoing, PutKind
from commands.broker.times import to_microseconds
from commands.disk.errors import UnknownQueueError
from commands.headers.psc_commands import publish_command
from commands.model import TopicPut
from commands.qmgr.mqi.attributes import QueueUse, Values, changed_queue, of_queue, of_queue_manager
from commands.qmgr.mqi.authority import OpenAuthority
from commands.qmgr.mqi.getting import NO_ID, Ahead, GetOptions, Getting, Got, size_of
from commands.qmgr.mqi.handles import (
    AsyncPuts,
    ConnectedProgram,
    Current,
    Defaults,
    Handle,
    Handles,
    Target,
    defaults_of,
    input_options,
    numbered,
)
from commands.qmgr.mqi.putting import OF_CONTEXT, as_put, delay_of, delayed, put_descriptor, require_context
from commands.qmgr.mqi.refusals import MqiError, check_put
from commands.qmgr.mqi.subscriptions import Subscriber
from commands.qmgr.mqi.transactions import Transactions, XaCall
from commands.qmgr.sending import confirm_arrival, transmitted
from commands.qmgr.store.port import MD, QUEUE
from commands.qmgr.store.queue_manager import QueueManagerStore
from commands.qmgr.store.state_table import Close
from commands.qmgr.store.uncommitted import Came
from commands.qmgr.store.unit_of_work import Begin, EmbeddedUnitOfWork
from rfh2 import mqi_constants as m
from rfh2.constants import MQRC_UNKNOWN_REMOTE_Q_MGR
from rfh2.errors import CommandError, QueueError
from rfh2.mqmd import Mqmd, RawMqmd
from rfh2.pcf_admin_names import MQOT_Q, MQOT_Q_MGR, MQOT_TOPIC
from streams.selectors import Selector, compile_selector
from streams.subscriptions import HIGHEST_PUB_LEVEL


class PutFields(NamedTuple):
    """What MQPMO says beside its options. level: PubLevel. context: the handle whose message's context is passed on."""

    level: int = HIGHEST_PUB_LEVEL
    context: int = 0


NO_FIELDS: Final = PutFields()


class Program:
    """The calls of one connection.

    more: queues that have more messages by the calls. since: since when it is connected, UTC. puts,
    gets: how many messages.
    """

    def __init__(self, connected: ConnectedProgram) -> None:
        self._connected, self.application = connected, connected.application
        self._handles, self._may = Handles(), OpenAuthority(connected.topics, connected.application.user)
        self.transactions = Transactions(connected)
        self._getting, self.more = Getting(connected, self.transactions.owner), connected.more
        self._defers = False
        self.async_puts = AsyncPuts()
        self.since = connected.clock()
        self.puts = self.gets = 0
        self.subscriber = Subscriber(connected, self._handles)

    # Opening and closing: each in a unit of work of its own

    def open(self, target: Target, options: int, dynamic_name: str, unit_of_work: Begin) -> int:
        """MQOPEN; the number of the handle, an even one. Raises MqiError, QueueError, StoreError."""
        return self._handles.add(self._opened(target, options, dynamic_name, unit_of_work))

    def _opened(self, target: Target, options: int, dynamic_name: str, unit_of_work: Begin) -> Handle:
        if target.object_type == MQOT_Q_MGR:
            if options & ~(m.MQOO_INQUIRE | 0x2000 | 0x4000):
                raise MqiError(m.MQRC_OPTIONS_ERROR, "a queue manager can be opened for inquiry only")
            with unit_of_work() as unit:
                self._may.queue_manager(unit, options, self.application.user)
            return Handle(MQOT_Q_MGR, self._connected.qmgr, options)
        if target.object_type == MQOT_TOPIC:
            if options & (m.MQOO_ANY_INPUT | m.MQOO_BROWSE):
                raise MqiError(m.MQRC_OPTIONS_ERROR, "a topic can be opened for output only")
            with unit_of_work() as unit:
                return self._of_topic(unit, target, options)
        if target.object_type != MQOT_Q:
            raise MqiError(m.MQRC_OBJECT_TYPE_ERROR, f"object type {target.object_type} cannot be opened")
        if target.qmgr not in ("", self._connected.qmgr):
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
            made = self._connected.connection.open(target.name, dynamic_name, owner)
            with unit_of_work() as unit:
                queue = unit.find_queue(made.name)
            assert queue is not None
            handle = Handle(
                MQOT_Q, queue.name, input_options(queue, options), queue.name, defaults=defaults_of(queue), made=made
            )
        if target.selector:
            handle.selector = _selector(target.selector)
        self._connected.open_queues.opened(handle.queue, handle.options)
        return handle

    def _local(self, unit: EmbeddedUnitOfWork, target: Target, options: int) -> Handle:
        """The local queue that *target* is or stands for, made for output if it is missing; or the alias of a topic."""
        name, user = target.name, self._may.acting_user(unit, options, target.alternate_user)
        self._may.queue(unit, name, options, user)
        topic = unit.topic_behind(name)
        if topic is not None:
            if options & (m.MQOO_ANY_INPUT | m.MQOO_BROWSE):
                raise MqiError(
                    m.MQRC_OPTIONS_ERROR, f"{name} is an alias of a topic, and can be opened for output only"
                )
            if topic:
                self._may.topic(unit, topic, options, user)
            return Handle(MQOT_Q, name, options, topic=topic, defaults=self._of_topic_string(unit, topic, name))
        found = unit.ensure_queue(name) if options & m.MQOO_OUTPUT else unit.find_queue(name)
        if found is None:
            raise UnknownQueueError(name)
        alias = unit.look_up(name) if name != found.name else None
        return Handle(MQOT_Q, name, input_options(found, options), found.name, defaults=defaults_of(found, alias))

    def _of_topic(self, unit: EmbeddedUnitOfWork, target: Target, options: int) -> Handle:
        topic = self._topic(unit, target)
        self._may.topic(unit, topic, options, self._may.acting_user(unit, options, target.alternate_user))
        return Handle(MQOT_TOPIC, target.name, options, topic=topic, defaults=self._of_topic_string(unit, topic))

    def _of_topic_string(self, unit: EmbeddedUnitOfWork, topic: str, alias: str = "") -> Defaults:
        """What the topic objects say for what a publisher leaves to them; an alias says how puts are answered."""
        resolved, by = self._connected.topics.topics(unit).resolve(topic), unit.look_up(alias)
        response = by.def_put_response if isinstance(by, AliasQueue) else resolved.def_put_response.value
        return Defaults(resolved.def_persistence, response)

    def _remote(self, unit: EmbeddedUnitOfWork, target: Target, options: int) -> Handle:
        """A queue of another queue manager, behind the transmission queue of that name."""
        if options & (m.MQOO_ANY_INPUT | m.MQOO_BROWSE | m.MQOO_INQUIRE | m.MQOO_SET):
            raise MqiError(m.MQRC_OPTIONS_ERROR, "a queue of another queue manager can be opened for output only")
        found = unit.find_queue(target.qmgr)
        if found is None or not found.transmission:
            raise MqiError(MQRC_UNKNOWN_REMOTE_Q_MGR, f"there is no transmission queue {target.qmgr}")
        user = self._may.acting_user(unit, options, target.alternate_user)
        self._may.transmission(unit, target.qmgr, options, user)
        return Handle(MQOT_Q, target.name, options, queue=found.name, qmgr=target.qmgr)

    def _topic(self, unit: EmbeddedUnitOfWork, target: Target) -> str:
        """The topic string: that of the object, a slash, and the one given (IBM's description of MQOD)."""
        prefix = unit.topic_string_of(target.name) if target.name else ""
        whole = f"{prefix}/{target.topic}" if prefix and target.topic else prefix or target.topic
        if not whole:
            raise MqiError(m.MQRC_TOPIC_STRING_ERROR, "neither a topic object nor a topic string is given")
        return whole

    def handle(self, number: int) -> Handle:
        """The object open under *number*. Raises MqiError 2019."""
        return self._handles[number]

    @property
    def handles(self) -> list[tuple[int, Handle]]:
        """The open objects, by number. Any thread may ask."""
        return self._handles.all()

    def close(self, number: int, options: int) -> None:
        """MQCLOSE; a dynamic queue goes as its kind and *options* say (MQCO_*). Raises MqiError, StoreError."""
        handle = self.handle(number)
        if handle.made is not None:
            self._connected.connection.close(handle.made, _close_option(options))
        if handle.subscription is not None and options & m.MQCO_REMOVE_SUB:
            self.subscriber.removed(number)
        self._forget(number)

    def _forget(self, number: int) -> None:
        handle = self._handles.pop(number)
        self._connected.open_queues.unlock(handle)
        if handle.queue:
            self._connected.open_queues.closed(handle.queue, handle.options)
        if handle.subscription is not None:
            self._connected.open_queues.unsubscribed(handle.subscription.name)
            self._connected.open_queues.joinable.pop(handle.subscription.sub_id, None)
        if handle.managed is not None:
            with suppress(QueueError):  # it may have been deleted by other means
                handle.managed.release()
        if handle.groups.putting.group_id:
            raise MqiError(m.MQRC_INCOMPLETE_GROUP, f"a group on {handle.name} has no last message", m.MQCC_WARNING)

    def disconnect(self, unit_of_work: Begin, commit: bool) -> tuple[bool, list[str]]:
        """MQDISC, or the end of a broken connection: what is uncommitted is committed or backed out.

        Returns whether it is done, and the queues that have more messages. Raises StoreError; then call it again.
        """
        is_done, queues, since = True, list[str](), self.transactions.since
        self._defers |= self.transactions.disconnect()
        if self.transactions.in_syncpoint or self._defers or self.subscriber.defers:
            try:
                with unit_of_work() as unit:
                    if commit:
                        is_done, queues = self.end_unit(unit, commit)
                    queues += self._came(unit.uncommitted.end(self._connected.owner(unit)))
            except Exception:
                self.transactions.stay(since, commit)
                raise
        self.subscriber.abandon()
        for number in self._handles:
            with suppress(MqiError):  # a warning
                self._forget(number)
        self._connected.connection.disconnect()
        return is_done, queues

    # Messages

    def put(
        self,
        unit: EmbeddedUnitOfWork,
        number: int,
        mqmd: RawMqmd,
        options: int,
        body: bytes,
        deferred: bool = False,
        fields: PutFields = NO_FIELDS,
    ) -> bytes:
        """MQPUT; the descriptor as it was put. Raises MqiError, QueueError, StoreError.

        deferred: the message stays hidden until the connection ends, or ``activate`` is called for it.
        """
        handle = self.handle(number)
        handle.requires(m.MQOO_OUTPUT, m.MQRC_NOT_OPEN_FOR_OUTPUT)
        return self._put(unit, handle, mqmd, options, body, fields, deferred)

    def activate(self, unit: EmbeddedUnitOfWork, msg_id: bytes, put: bool) -> list[str]:
        """Put a deferred message, or with *put* false take it back; returns the queues that have it."""
        return self._came(unit.uncommitted.activate(self._connected.owner(unit), msg_id, put))

    def put1(
        self,
        unit: EmbeddedUnitOfWork,
        target: Target,
        mqmd: RawMqmd,
        options: int,
        body: bytes,
        fields: PutFields = NO_FIELDS,
    ) -> bytes:
        """MQPUT1; the descriptor as it was put. Raises MqiError, QueueError, StoreError."""
        if options & m.MQPMO_LOGICAL_ORDER:
            raise MqiError(m.MQRC_OPTIONS_ERROR, "MQPUT1 puts no more than one message of a group")
        opened = m.MQOO_OUTPUT | options & (OF_CONTEXT | m.MQOO_ALTERNATE_USER_AUTHORITY)
        if target.object_type == MQOT_TOPIC:
            handle = self._of_topic(unit, target, opened)
        elif target.qmgr not in ("", self._connected.qmgr):
            handle = self._remote(unit, target, opened)
        else:
            handle = self._local(unit, target, opened)
        return self._put(unit, handle, mqmd, options, body, fields)

    def _put(
        self,
        unit: EmbeddedUnitOfWork,
        handle: Handle,
        mqmd: RawMqmd,
        options: int,
        body: bytes,
        fields: PutFields,
        deferred: bool = False,
    ) -> bytes:
        require_context(handle.options, options)
        check_put(mqmd, options, on_topic=bool(handle.topic))
        if handle.topic:
            self._connected.topics.check_topic(unit, handle.topic)
        passed = self._passed(options, fields.context)
        md = put_descriptor(mqmd, options, self.application, self._connected.new_id(), passed)
        putting: Current | None = None
        if options & m.MQPMO_LOGICAL_ORDER:
            putting = replace(handle.groups.putting)
            md = putting.put(Mqmd.decode(md), bool(options & m.MQPMO_SYNCPOINT), self._connected.new_id()).encode()
        elif mqmd.msg_flags:
            md = numbered(Mqmd.decode(md), self._connected.new_id()).encode()
        queue, delay_ms = handle.queue, delay_of(mqmd, body)
        user: str | None = self.application.user
        described = md
        if handle.topic:
            queue = DEFAULT_STREAM
            retain, local = bool(options & m.MQPMO_RETAIN), bool(options & m.MQPMO_SCOPE_QMGR)
            put = self._topic_put(options, fields.level)
            command, body = publish_command(handle.topic, Mqmd.decode(md), body, retain, local, put)
            described = command.encode()
        elif not queue:
            queue = handle.name  # an alias of a topic without a topic string, which takes nothing
        elif handle.qmgr:
            md = self._leaving(Mqmd.decode(md)).encode()
            sent = transmitted(Outgoing(PutKind.PUBLICATION, handle.qmgr, handle.name, md, body))
            described, body = sent.md, sent.body
        application = self.application.name
        if options & m.MQPMO_NO_CONTEXT and not handle.topic:
            user, application = None, ""  # nobody is named; who publishes is known all the same
        if delay_ms:
            queue, described, body = self._delayed(unit, queue, described, body, delay_ms)
        seq = unit.put(queue, described, body, user=user, application=application)
        if putting is not None:
            handle.groups.changing(bool(options & m.MQPMO_SYNCPOINT))
            handle.groups.putting = putting
        row = unit.uncommitted.message(seq)
        if not (deferred or options & m.MQPMO_SYNCPOINT):
            self.more.append(row[QUEUE])
        if deferred:
            self._defers = True
            unit.uncommitted.defer(row[QUEUE], seq, self._connected.owner(unit))
        elif options & m.MQPMO_SYNCPOINT:
            unit.uncommitted.put(row[QUEUE], seq, self.transactions.owner(unit))
            self.transactions.worked()
        if mqmd.report & m.MQRO_COA and not (handle.qmgr or delay_ms or deferred):
            confirmed = confirm_arrival(unit, seq, self._connected.clock())
            self._connected.sent(
                unit, confirmed, self.transactions.owner(unit) if options & m.MQPMO_SYNCPOINT else None
            )
        self.puts += 1
        return as_put(md, row[MD])

    def _leaving(self, mqmd: Mqmd) -> Mqmd:
        """The descriptor of a message for another queue manager: replies and reports come back to this one."""
        to_qmgr = mqmd.reply_to_qmgr or (self._connected.qmgr if mqmd.reply_to_q else "")
        msg_id = mqmd.msg_id if mqmd.msg_id != NO_ID else self._connected.new_id()
        return replace(mqmd, reply_to_qmgr=to_qmgr, msg_id=msg_id)

    def _delayed(
        self, unit: EmbeddedUnitOfWork, queue: str, md: bytes, body: bytes, delay_ms: int
    ) -> tuple[str, bytes, bytes]:
        """What is put now, and where, for a message that goes to *queue* later."""
        self.more.append(DELAY_QUEUE)
        put = Outgoing(PutKind.PUBLICATION, self._connected.qmgr, queue, md, body)
        due_us = to_microseconds(self._connected.clock()) + delay_ms * 1000
        kept = delayed(put, due_us, unit.ensure_queue(queue).def_persistent)
        return kept.queue, kept.md, kept.body

    def _passed(self, options: int, number: int) -> bytes | None:
        """The descriptor whose context is passed on; None where none is. Raises MqiError 2097, 2098."""
        if not options & (m.MQPMO_PASS_IDENTITY_CONTEXT | m.MQPMO_PASS_ALL_CONTEXT):
            return None
        try:
            source = self.handle(number)
        except MqiError as error:
            raise MqiError(m.MQRC_CONTEXT_HANDLE_ERROR, f"MQPMO Context: {error.why}") from error
        if not source.options & m.MQOO_SAVE_ALL_CONTEXT:
            raise MqiError(m.MQRC_CONTEXT_HANDLE_ERROR, f"{source.name} is not open with MQOO_SAVE_ALL_CONTEXT")
        if source.passed is None:
            raise MqiError(m.MQRC_CONTEXT_NOT_AVAILABLE, f"nothing was got from {source.name} that has a context")
        return source.passed

    def _topic_put(self, options: int, level: int) -> TopicPut:
        """What no command says of a publication. Raises MqiError 2173."""
        if not 0 <= level <= HIGHEST_PUB_LEVEL:
            raise MqiError(m.MQRC_PMO_ERROR, f"PubLevel is {level}, not 0 to 9")
        opened = (self._handles[number].subscription for number in self._handles)
        own = sorted(each.sub_id.hex().upper() for each in opened if each is not None)
        return TopicPut(
            level=level,
            suppress_reply_to=bool(options & m.MQPMO_SUPPRESS_REPLYTO),
            own_subs=tuple(own) if options & m.MQPMO_NOT_OWN_SUBS else (),
        )

    def chooses(self, number: int, asked: GetOptions) -> bool:
        """Whether MQGET is to give one of many messages, for which ``look`` looks first. Raises MqiError."""
        return self._getting.chooses(self.handle(number), asked)

    def look(self, store: QueueManagerStore, number: int, asked: GetOptions) -> tuple[int | None, bool]:
        """Look for the message that MQGET is to give, without a unit of work: as ``Getting.look`` says."""
        return self._getting.look(store, self.handle(number), asked)

    def comes(self, unit: EmbeddedUnitOfWork, number: int, asked: GetOptions) -> tuple[int | None, bool]:
        """Whether MQGET, for which ``look`` found nothing, is to give what was just put: as ``Getting.comes`` says."""
        return self._getting.comes(unit, self.handle(number), asked)

    def get(self, unit: EmbeddedUnitOfWork, number: int, asked: GetOptions, seq: int | None = None) -> Got:
        """MQGET without its wait. Raises MqiError 2033 where there is no such message, and as the others do.

        seq: the message that ``look`` has found.
        """
        got, in_syncpoint = self._getting.get(unit, self.handle(number), asked, seq)
        if in_syncpoint:
            self.transactions.worked()
        if got.seq and not asked.options & m.MQGMO_ANY_BROWSE:
            self.gets += 1
        return got

    def get_ahead(self, unit: EmbeddedUnitOfWork, number: int, asked: GetOptions, got: Got, ahead: Ahead) -> None:
        """Get what a program that reads ahead has room for beside the message that it *got*."""
        left = ahead.room() - size_of(got)
        while left > 0 and self._getting.is_next_volatile(unit, self.handle(number), asked, left):
            more = self.get(unit, number, asked)
            ahead.messages.append(more)
            left -= size_of(more)

    # Units of work

    def transact(self, call: XaCall, unit: EmbeddedUnitOfWork, xid: bytes, flags: int) -> tuple[int, list[str]]:
        """An XA call: what it returns, and the queues that have more messages. Raises StoreError."""
        value, came = call(self.transactions, unit, xid, flags)
        return value, self._came(came)

    def end_unit(self, unit: EmbeddedUnitOfWork, commit: bool) -> tuple[bool, list[str]]:
        """MQCMIT, or MQBACK: whether it is done, and the queues that have more messages. Raises MqiError, StoreError.

        A unit of work that cannot be committed is backed out. One that *unit* does not keep goes on: ``stay``.
        """
        if self.transactions.current is not None:
            raise MqiError(m.MQRC_ENVIRONMENT_ERROR, "the unit of work is a global transaction's")
        if not self.transactions.in_syncpoint:
            return True, []
        is_done, came = self.transactions.leave(unit, commit)
        for number in self._handles:
            self._handles[number].groups.ended(commit and is_done)
        return is_done, self._came(came)

    def _came(self, came: Came) -> list[str]:
        self._connected.open_queues.came(came)
        return list(came)

    # Inquiry

    def inquire(self, unit: EmbeddedUnitOfWork, number: int, selectors: list[int]) -> Values:
        """MQINQ: integers, and characters with their lengths. Raises MqiError 2038, 2067, QueueError, StoreError."""
        handle = self.handle(number)
        handle.requires(m.MQOO_INQUIRE, m.MQRC_NOT_OPEN_FOR_INQUIRE)
        if handle.object_type == MQOT_Q_MGR:
            return of_queue_manager(unit.queue_manager(), selectors)
        queue = unit.find_queue(handle.queue)
        if queue is None:
            raise UnknownQueueError(handle.queue or handle.name)
        opened = self._connected.open_queues
        use = QueueUse(queue, unit.depth(queue.name), opened.inputs[queue.name], opened.outputs[queue.name])
        return of_queue(use, selectors)

    def set(self, unit: EmbeddedUnitOfWork, number: int, values: Iterable[tuple[int, int]]) -> None:
        """MQSET of a local queue: selectors and values. Raises MqiError 2040, 2067, 2020, QueueError, StoreError."""
        handle = self.handle(number)
        handle.requires(m.MQOO_SET, m.MQRC_NOT_OPEN_FOR_SET)
        queue = unit.find_queue(handle.queue)
        if queue is None:
            raise UnknownQueueError(handle.queue or handle.name)
        changed = changed_queue(queue, values)
        if changed != queue:
            unit.save_definition(changed)


def _selector(text: str) -> Selector:
    try:
        return compile_selector(text)
    except CommandError as error:
        raise MqiError(m.MQRC_SELECTOR_SYNTAX_ERROR, str(error)) from error


def _close_option(options: int) -> Close:
    if options & m.MQCO_DELETE_PURGE:
        return Close.PURGE
    return Close.DELETE if options & m.MQCO_DELETE else Close.NONE
