"""Carries out MQSUB, MQSUBRQ and the removal of subscriptions, in the command processor (guide 2.4, 4.2, 4.8).

    asked                     there is no such name          there is one
    CREATE                    made                           2432
    RESUME, ALTER             2428                           resumed, altered
    CREATE and one of them    made                           resumed, altered

A non-durable subscription goes with its managed queue, a temporary dynamic one. If the program gave the queue, the
program has left a request for the removal with the queue manager.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import ValidationError

from commands.broker.authority import GroupsOf
from commands.broker.core import BrokerCore
from commands.broker.counts import Counts
from commands.broker.descriptor import Ids, Origin
from commands.broker.exit_calls import ExitCalls, PublishExitFailedError, Undo
from commands.broker.forward import Forwarder
from commands.broker.outcome import Arrival
from commands.broker.puts import DeadLetters, Outgoing, PutKind
from commands.broker.respond import reply_descriptor
from commands.headers.response import Completion
from commands.qmgr.delivery import Backlog
from commands.qmgr.link_port import Administered
from commands.qmgr.mqi import subscription_rules as rules
from commands.qmgr.mqi.authority import check_enabled
from commands.qmgr.mqi.refusals import MqiError
from commands.qmgr.store.port import UnitOfWork
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2 import mqi_constants as m
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import (
    MQFMT_STRING,
)
from rfh2.errors import CommandError, QueueError
from rfh2.mqmd import Mqmd
from streams import operations

_EXPIRY_TENTHS: Final = 6_000
"""Of an answer that its program no longer waits for."""


class SubscriptionServer:
    """Of one queue manager. groups_of: the groups of a user. An error is an answer with IBM's reason code."""

    queue = rules.REQUEST_QUEUE
    kind = "MQSUB"

    def __init__(self, groups_of: GroupsOf, backlog: Backlog) -> None:
        del groups_of, backlog  # the broker knows the first, and whoever delivers the second

    def carry_out(self, unit: UnitOfWork, broker: BrokerCore, arrival: Arrival) -> Administered:
        """Do what the request asks for; one that cannot be read is a dead letter."""
        assert isinstance(unit, EmbeddedUnitOfWork)  # programs connect to an embedded queue manager only
        try:
            request = rules.SubscriptionRequest.model_validate_json(arrival.body)
        except ValidationError:
            outcome = broker.set_aside(arrival, m.MQRC_OBJECT_TYPE_ERROR, "it is not a request of MQSUB")
            return Administered(iter(outcome.puts), Completion.ERROR, reason=outcome.reason, why=outcome.why)
        work = _Work(unit, broker, arrival)
        try:
            answer = work.done(request)
        except (MqiError, QueueError, CommandError) as error:
            why = error.why if isinstance(error, MqiError) else str(error)
            answer = rules.SubscriptionAnswer(reason=error.reason, why=why)
        puts = work.puts(answer if request.reply else None)
        # A call that fails tells its program; it is no fault of the queue manager's.
        return Administered(puts, resubscribed=work.resubscribed)


class _Work:
    """One request: what it changes, and what is put because of it."""

    def __init__(self, unit: EmbeddedUnitOfWork, broker: BrokerCore, arrival: Arrival) -> None:
        self._unit, self._broker, self._arrival = unit, broker, arrival
        self._ids = Ids(broker.qmgr, arrival.seq)
        self._rules = rules.SubscriptionRules(broker, unit, arrival.user or "", arrival.now)
        self._deliveries: list[operations.Delivery] = []
        self._passed: list[tuple[operations.Delivery, Outgoing | None]] | None = None
        self.resubscribed = False

    def done(self, request: rules.SubscriptionRequest) -> rules.SubscriptionAnswer:
        """Carry the request out. Raises MqiError, QueueError and CommandError, with nothing changed."""
        self._changed(self._broker.space.expire(self._arrival.now))
        if request.verb is rules.Verb.SUBSCRIBE:
            return self._subscribe(request)
        subscription = self._broker.space.subscription(request.sub_id)
        if subscription is not None:
            self._rules.check_owner(subscription)
        if request.verb is rules.Verb.REMOVE:
            if subscription is not None:
                if request.keeper and subscription.managed and not subscription.temporary:
                    self._unit.dynamic.adopt(subscription.dest_queue, request.keeper)
                self._apply(operations.Unsubscribe(subscription))
            return rules.SubscriptionAnswer()
        if subscription is None:
            raise MqiError(m.MQRC_NO_SUBSCRIPTION, "the subscription does not exist any more")
        self._apply(operations.RequestRetained(subscription))
        if not self._deliveries:
            raise MqiError(m.MQRC_NO_RETAINED_MSG, f"nothing is retained on {subscription.topic_string}")
        return rules.SubscriptionAnswer(count=len(self._deliveries))

    def puts(self, answer: rules.SubscriptionAnswer | None) -> Iterator[Outgoing]:
        """The publications, then the answer."""
        broker, now = self._broker, self._arrival.now
        counts = Counts()
        for delivery, put in self._forwarded() if self._passed is None else self._passed:
            if put is not None and put.kind is PutKind.PUBLICATION:
                counts.add_delivered(delivery.subscription.sub_id, now)
                yield put
            elif put is not None:
                counts.add_dead_letters(delivery.subscription.sub_id)
                yield put
        self._unit.counters.add(counts)
        if answer is None:
            return
        origin = Origin.of(broker.qmgr, now)
        body = answer.model_dump_json().encode()
        asked = Mqmd() if self._arrival.md is None else Mqmd.decode(self._arrival.md)
        made = Mqmd(format=MQFMT_STRING, coded_char_set_id=UTF8_CCSID)
        mqmd = reply_descriptor(asked, made, self._ids(), _EXPIRY_TENTHS, made.priority, made.persistence, origin)
        yield Outgoing(PutKind.RESPONSE, broker.qmgr, rules.REPLY_QUEUE, mqmd.encode(), body)

    def _forwarded(self) -> Iterator[tuple[operations.Delivery, Outgoing]]:
        """The message for each delivery."""
        broker, now = self._broker, self._arrival.now
        forwarder = Forwarder(broker.qmgr, now, Origin.of(broker.qmgr, now))
        for delivery in self._deliveries:
            yield delivery, forwarder.put(delivery, self._ids(), broker.objects)

    def _subscribe(self, request: rules.SubscriptionRequest) -> rules.SubscriptionAnswer:
        wanted, objects = request.descriptor, self._broker.objects
        check_enabled(objects)
        wanted.check()
        existing = self._broker.space.by_name(wanted.name) if wanted.name else None
        if existing is None:
            if not wanted.has(m.MQSO_CREATE):
                raise MqiError(m.MQRC_NO_SUBSCRIPTION, f"there is no subscription {wanted.name}")
            made = self._rules.created(request, self._new_sub_id())
            wants_retained = not (made.options.new_pubs_only or made.options.pub_on_req_only)
            try:
                self._apply(operations.Subscribe(made, send_retained=wants_retained))
            except PublishExitFailedError:
                if wanted.managed and wanted.durable:
                    self._unit.delete_definition("qlocal", made.dest_queue)
                raise
        else:
            if not wanted.has(m.MQSO_ALTER | m.MQSO_RESUME):
                raise MqiError(m.MQRC_SUB_ALREADY_EXISTS, f"there is a subscription {wanted.name} already")
            made = self._rules.resumed(request, existing)
            if made != existing:
                self._apply(operations.AlterSubscription(made, send_retained=False))
        descriptor = rules.described(made)
        return rules.SubscriptionAnswer(
            sub_id=made.sub_id, descriptor=descriptor, qmgr=made.dest_qmgr, queue=made.dest_queue
        )

    def _apply(self, operation: operations.Operation) -> None:
        broker, now = self._broker, self._arrival.now
        undo = Undo(broker.space)
        undo.before(operation, now)
        effects = broker.space.apply(operation, now)
        undo.after(effects)
        self._deliveries += (effect for effect in effects if isinstance(effect, operations.Delivery))
        if broker.publish_exit is not None:
            # Before anything is saved: where the exit fails, the request does nothing.
            calls = ExitCalls(broker.publish_exit, DeadLetters(broker.qmgr, broker.objects.qmgr.deadq), now)
            try:
                self._passed = [(each, calls.passed(put, (each,))[0]) for each, put in self._forwarded()]
            except PublishExitFailedError:
                self._deliveries.clear()
                undo.take_back(now)
                raise
        self._changed([effect for effect in effects if not isinstance(effect, operations.Delivery)])

    def _changed(self, effects: Sequence[operations.Effect]) -> None:
        if effects:
            self.resubscribed = True
            self._unit.save_effects(effects)

    def _new_sub_id(self) -> bytes:
        # The first one is that which its program expects, and has left to be removed.
        sub_id = self._ids()
        while self._broker.space.subscription(sub_id) is not None:
            sub_id = self._ids()
        return sub_id
