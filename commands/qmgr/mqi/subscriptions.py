"""One program's subscriptions: MQSUB, MQSUBRQ, and MQCLOSE of what MQSUB gave.

Each call has two parts, and between them waits for the command processor: ``begin`` puts a request on its queue, and
``finish`` opens what the answer says (``commands.qmgr.mqi.subscription_rules``). A managed queue of a non-durable
subscription is a temporary dynamic one, made here before: it goes with the program, and the subscription with it. For a
non-durable subscription to the program's own queue a request for its removal is deferred until the program ends.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from commands.broker.descriptor import message_id
from commands.broker.objects import TEMPORARY, new_queue
from commands.broker.times import to_microseconds
from commands.disk.errors import UnknownQueueError
from commands.qmgr.mqi import handles as programs
from commands.qmgr.mqi.authority import OpenAuthority
from commands.qmgr.mqi.refusals import MqiError
from commands.qmgr.mqi.subscription_rules import (
    REPLY_QUEUE,
    REQUEST_QUEUE,
    SubscriptionAnswer,
    SubscriptionDescriptor,
    SubscriptionRequest,
    Verb,
    scheme_of,
    topic_of,
)
from commands.qmgr.store.connection import OpenQueue, ProgramConnection
from commands.qmgr.store.port import BODY, MD, SEQ
from commands.qmgr.store.state_table import Close
from commands.qmgr.store.uncommitted import Match
from commands.qmgr.store.unit_of_work import Begin, EmbeddedUnitOfWork
from rfh2 import mqi_constants as m
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import MQFMT_STRING, MQRC_RESOURCE_PROBLEM, MQRC_UNKNOWN_OBJECT_NAME
from rfh2.errors import QueueError
from rfh2.mqmd import Mqmd
from rfh2.pcf_admin_names import MQOT_Q, MQOT_TOPIC
from streams.subscriptions import MANAGED_PREFIX

ANSWER_WITHIN_S: Final = 60
"""How long a request stays on its queue. The command processor does not carry it out after that."""
NO_HANDLE: Final = 0
_MANAGED_OPTIONS: Final = m.MQOO_INPUT_AS_Q_DEF | m.MQOO_BROWSE | m.MQOO_INQUIRE


@dataclass(frozen=True, slots=True)
class Pending:
    """A request that waits for its answer, which has *msg_id* as its CorrelId.

    managed: the queue of a non-durable subscription. deferred: MsgId of the request to remove the subscription when its
    program ends. hobj: the handle that the program gave. user: with whose authorities it asks.
    """

    msg_id: bytes
    user: str
    name: str = ""
    managed: programs.ManagedQueue | None = None
    deferred: bytes | None = None
    hobj: int = NO_HANDLE


class Subscriber:
    """The subscriptions of one connection. handles: what the program has open."""

    def __init__(self, connected: programs.ConnectedProgram, handles: programs.Handles) -> None:
        self._connected, self._handles = connected, handles
        self._may, self.defers = OpenAuthority(connected.topics, connected.application.user), False
        self._pending: list[Pending] = []

    def begin(self, descriptor: SubscriptionDescriptor, hobj: int, unit_of_work: Begin) -> Pending:
        """MQSUB. hobj: the queue that the program gives, ``NO_HANDLE`` for none.

        Raises MqiError, QueueError, StoreError.
        """
        descriptor.check()
        name = descriptor.name
        if not name and (descriptor.durable or not descriptor.has(m.MQSO_CREATE)):
            raise MqiError(m.MQRC_SUB_NAME_ERROR, "a durable subscription needs a name")
        given = None if hobj <= NO_HANDLE or descriptor.managed else self._handles[hobj]
        if given is not None and given.object_type != MQOT_Q:
            raise MqiError(m.MQRC_HOBJ_ERROR, f"{given.name} is not a queue")
        if given is None and not descriptor.managed and not descriptor.has(m.MQSO_RESUME | m.MQSO_ALTER):
            raise MqiError(m.MQRC_HOBJ_ERROR, "neither a queue nor MQSO_MANAGED was given")
        user = self._acting_user(descriptor, unit_of_work)
        use = self._connected.open_queues.subscribed(name, descriptor.shared) if name else None
        managed = None if use is None else use.managed
        if managed is None and descriptor.managed and not descriptor.durable:
            maker = self._connected.holder if descriptor.shared else self._connected.connection
            managed = programs.ManagedQueue(self._made(descriptor, maker, user, unit_of_work), maker)
        if use is None:
            use = programs.SubscriptionUse(descriptor.shared, managed)
        qmgr, queue = self._destination(given, managed)
        request = SubscriptionRequest(verb=Verb.SUBSCRIBE, descriptor=descriptor, qmgr=qmgr, queue=queue)
        try:
            with unit_of_work() as unit:
                seq, msg_id = self._put(unit, request, user)
                deferred = None
                if not descriptor.durable and managed is None:
                    deferred = self._defer_removal(unit, message_id(self._connected.qmgr, seq, 1), user)
        except BaseException:
            if managed is not None and not managed.users:
                managed.maker.close(managed.opened)
            raise
        if managed is not None:
            managed.users += 2  # of the subscription, and of the queue
        if name:
            use.users += 1
            self._connected.open_queues.subscriptions[name] = use
        pending = Pending(msg_id, user, name, managed, deferred, NO_HANDLE if given is None else hobj)
        self._pending.append(pending)
        return pending

    def abandon(self) -> None:
        """The program ends: nobody waits any more for what it has begun."""
        for pending in list(self._pending):
            self._let_go(pending)

    def _acting_user(self, descriptor: SubscriptionDescriptor, unit_of_work: Begin) -> str:
        """Whose authorities count, and whose the subscription is. Raises MqiError 2035, StoreError."""
        if not descriptor.has(m.MQSO_ALTERNATE_USER_AUTHORITY):
            return self._connected.application.user
        with unit_of_work() as unit:
            return self._may.acting_user(unit, m.MQOO_ALTERNATE_USER_AUTHORITY, descriptor.alternate_user)

    def _made(
        self, descriptor: SubscriptionDescriptor, maker: ProgramConnection, user: str, unit_of_work: Begin
    ) -> OpenQueue:
        """A new temporary dynamic queue of *user*. Raises MqiError, QueueError, StoreError."""
        with unit_of_work() as unit:
            _, resolved = topic_of(descriptor, self._connected.topics.topics(unit), scheme_of(descriptor))
            model = resolved.non_durable_model_queue
            found = unit.dynamic.model(model)
        if found is None or found.definition_type != TEMPORARY:
            raise MqiError(MQRC_UNKNOWN_OBJECT_NAME, f"there is no model queue {model} for temporary queues")
        return maker.open(model, f"{MANAGED_PREFIX}NDURABLE.*", user)

    def _destination(self, given: programs.Handle | None, managed: programs.ManagedQueue | None) -> tuple[str, str]:
        """Queue manager and queue; blanks where the processor knows them."""
        if managed is not None:
            return self._connected.qmgr, managed.opened.name
        if given is None:
            return "", ""
        return (given.qmgr, given.name) if given.qmgr else (self._connected.qmgr, given.queue)

    def finish(self, pending: Pending, answer: SubscriptionAnswer | None, unit_of_work: Begin) -> tuple[int, int]:
        """The handles of the subscription and of its queue; the latter is 0 for a queue of another queue manager.

        answer: None where none has come in time. Raises MqiError with the reason of the answer, or 2042 and QueueError
        where the queue cannot be opened; StoreError.
        """
        if answer is None or answer.reason:
            self._undo(pending, answered=answer is not None, unit_of_work=unit_of_work)
            if answer is None:
                raise MqiError(MQRC_RESOURCE_PROBLEM, "the command processor has not answered in time")
            raise MqiError(answer.reason, answer.why)
        hobj, managed = pending.hobj, pending.managed
        if hobj == NO_HANDLE and answer.qmgr == self._connected.qmgr:
            try:
                hobj = self._opened(answer, pending.user, managed, unit_of_work)
            except (MqiError, QueueError):
                self._let_go(pending)
                raise
            self._handles[hobj].sub_id = answer.sub_id
        self._connected.open_queues.joinable[answer.sub_id] = programs.JoinableSubscription(
            answer, pending.user, managed
        )
        self._pending.remove(pending)
        durable, user = answer.descriptor.durable, pending.user
        made = programs.OpenSubscription(answer.sub_id, pending.name, durable, hobj, pending.deferred, user)
        subscription = programs.Handle(MQOT_TOPIC, pending.name, 0, subscription=made, managed=managed)
        return self._handles.add(subscription), hobj

    def join(self, sub_id: bytes, unit_of_work: Begin) -> tuple[int, int, SubscriptionAnswer]:
        """MQSUB by the identifier of a subscription that another program of this user has open: its queue, opened too.

        So the sessions of a connection consumer of JMS get what that has found. Closing the handles does nothing to the
        subscription. Returns the two of them, and what the subscription is. Raises MqiError, QueueError, StoreError.
        """
        found, user = self._connected.open_queues.joinable.get(sub_id), self._connected.application.user
        if found is None or found.user != user:
            raise MqiError(m.MQRC_NO_SUBSCRIPTION, f"no program of user {user} has subscription {sub_id.hex()} open")
        if found.answer.qmgr != self._connected.qmgr:
            raise MqiError(m.MQRC_HOBJ_ERROR, f"its publications go to {found.answer.qmgr}")
        hobj = self._opened(found.answer, user, found.managed, unit_of_work)
        if found.managed is not None:
            found.managed.users += 2
        name = found.answer.descriptor.name
        return self._handles.add(programs.Handle(MQOT_TOPIC, name, 0, managed=found.managed)), hobj, found.answer

    def _opened(
        self, answer: SubscriptionAnswer, user: str, managed: programs.ManagedQueue | None, unit_of_work: Begin
    ) -> int:
        """The handle of the local queue to which the subscription of *answer* delivers, now open for input.

        Raises MqiError 2035 for a queue of a program from which *user* may not get.
        """
        name = answer.queue
        with unit_of_work() as unit:
            queue = unit.find_queue(name)
            if queue is not None and not answer.descriptor.managed:
                self._may.queue(unit, name, _MANAGED_OPTIONS, user)
        if queue is None:
            raise UnknownQueueError(name)
        options = programs.input_options(queue, _MANAGED_OPTIONS)
        self._connected.open_queues.opened(queue.name, options)
        return self._handles.add(
            programs.Handle(MQOT_Q, name, options, queue.name, defaults=programs.defaults_of(queue), managed=managed)
        )

    def _undo(self, pending: Pending, answered: bool, unit_of_work: Begin) -> None:
        self._let_go(pending)
        if pending.deferred is not None and answered:
            with unit_of_work() as unit:
                unit.uncommitted.activate(self._connected.owner(unit), pending.deferred, put=False)

    def _let_go(self, pending: Pending) -> None:
        self._pending.remove(pending)
        self._connected.open_queues.unsubscribed(pending.name)
        if pending.managed is not None:
            with suppress(QueueError):  # it may have been deleted by other means
                pending.managed.release()
                pending.managed.release()

    def begin_retained(self, number: int, action: int, unit: EmbeddedUnitOfWork) -> Pending:
        """MQSUBRQ; its answer says how many publications were sent. Raises MqiError."""
        subscription = self._subscription(number)
        if action != m.MQSR_ACTION_PUBLICATION:
            raise MqiError(m.MQRC_ACTION_ERROR, f"action {action} is not MQSR_ACTION_PUBLICATION")
        request = SubscriptionRequest(verb=Verb.RETAINED, sub_id=subscription.sub_id)
        return Pending(self._put(unit, request, subscription.user)[1], subscription.user)

    def begin_close(self, number: int, options: int, unit: EmbeddedUnitOfWork) -> Pending | None:
        """MQCLOSE of a subscription; None where it stays, and there is nothing to wait for. Raises MqiError."""
        subscription = self._subscription(number)
        keeps, removes = options & m.MQCO_KEEP_SUB, options & m.MQCO_REMOVE_SUB
        if keeps and removes:
            raise MqiError(m.MQRC_OPTIONS_ERROR, "MQCO_KEEP_SUB and MQCO_REMOVE_SUB cannot be used together")
        if keeps and not subscription.durable:
            raise MqiError(m.MQRC_OPTION_NOT_VALID_FOR_TYPE, "a non-durable subscription cannot be kept")
        use = self._connected.open_queues.subscriptions.get(subscription.name)
        if subscription.durable and not removes:
            return None
        if not subscription.durable and use is not None and use.users > 1:
            return None  # other programs share it
        keeper = self._connected.connection.number(unit) if self._kept_queues(subscription) else 0
        request = SubscriptionRequest(verb=Verb.REMOVE, sub_id=subscription.sub_id, keeper=keeper)
        if subscription.deferred is not None:
            unit.uncommitted.activate(self._connected.owner(unit), subscription.deferred, put=False)
        return Pending(self._put(unit, request, subscription.user)[1], subscription.user)

    def removed(self, number: int) -> None:
        """A subscription was removed: its managed queue, if it was durable, goes when the program closes that too."""
        handles = self._kept_queues(self._subscription(number))
        if handles:
            opened = self._connected.connection.adopted(handles[0].queue)
            kept = programs.ManagedQueue(opened, self._connected.connection, users=len(handles), option=Close.PURGE)
            for handle in handles:
                handle.managed = kept

    def _kept_queues(self, subscription: programs.OpenSubscription) -> list[programs.Handle]:
        """What the program still has open of the managed queue of a durable subscription (guide 4.3)."""
        if not subscription.durable:
            return []
        opened = (self._handles[number] for number in self._handles)
        return [each for each in opened if each.sub_id == subscription.sub_id and each.queue.startswith(MANAGED_PREFIX)]

    def take_answer(self, pending: Pending, unit: EmbeddedUnitOfWork) -> SubscriptionAnswer | None:
        """The answer, which leaves its queue; None while there is none."""
        now_us = to_microseconds(self._connected.clock())
        row = unit.uncommitted.find(REPLY_QUEUE, now_us, Match(correl_id=pending.msg_id))
        if row is None:
            return None
        unit.uncommitted.remove(REPLY_QUEUE, row[SEQ])
        return SubscriptionAnswer.model_validate_json(row[BODY] or b"")

    def _subscription(self, number: int) -> programs.OpenSubscription:
        subscription = self._handles[number].subscription
        if subscription is None:
            raise MqiError(m.MQRC_HOBJ_ERROR, f"handle {number} is not a subscription")
        return subscription

    def _defer_removal(self, unit: EmbeddedUnitOfWork, sub_id: bytes, user: str) -> bytes:
        """Leave a request to remove a subscription with the queue manager; its MsgId."""
        request = SubscriptionRequest(verb=Verb.REMOVE, sub_id=sub_id, reply=False)
        seq, msg_id = self._put(unit, request, user, expires=False)
        unit.uncommitted.defer(REQUEST_QUEUE, seq, self._connected.owner(unit))
        self.defers = True
        return msg_id

    def _put(
        self, unit: EmbeddedUnitOfWork, request: SubscriptionRequest, user: str, expires: bool = True
    ) -> tuple[int, bytes]:
        """Put *request*, which acts as *user*; its number and its MsgId."""
        for queue in (REQUEST_QUEUE, REPLY_QUEUE):
            if unit.find_queue(queue) is None:
                unit.save_definition(replace(new_queue(queue), description="Subscriptions of programs"))
        mqmd = Mqmd(format=MQFMT_STRING, coded_char_set_id=UTF8_CCSID, persistence=int(not expires))
        if expires:
            mqmd = replace(mqmd, expiry=10 * ANSWER_WITHIN_S)
        body = request.model_dump_json().encode()
        seq = unit.put(REQUEST_QUEUE, mqmd.encode(), body, user=user, application=self._connected.application.name)
        return seq, Mqmd.decode(unit.uncommitted.message(seq)[MD]).msg_id
