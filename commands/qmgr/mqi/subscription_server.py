"""Carries out MQSUB, MQSUBRQ and the removal of subscriptions, in the command processor (guide 2.4, 4.2, 4.8).

    asked                     there is no such name          there is one
    CREATE                    made                           2432
    RESUME, ALTER             2428                           resumed, altered
    CREATE and one of them    made                           resumed, altered

A subscription keeps its topic, selector, durability, kind of destination, level and group: a call that says otherwise
fails with the reason of that attribute. A non-durable subscription goes with its managed queue, a temporary dynamic
one. If the program gave the queue, the program has left a request for the removal with the queue manager.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from pydantic import ValidationError

from commands.broker.authority import Action, GroupsOf
from commands.broker.core import Arrival, BrokerCore
from commands.broker.forward import Forwarder
from commands.broker.identifiers import Ids, Origin
from commands.broker.lifetime import tenths_until
from commands.broker.puts import Outgoing, PutKind
from commands.headers.response import Completion
from commands.qmgr.admin_port import Administered
from commands.qmgr.backlog import Backlog
from commands.qmgr.mqi.errors import MqiError
from commands.qmgr.mqi.subscription_requests import (
    REPLY_QUEUE,
    REQUEST_QUEUE,
    SubscriptionAnswer,
    SubscriptionDescriptor,
    SubscriptionRequest,
    Verb,
)
from commands.qmgr.store.counts import Counts
from commands.qmgr.store.errors import QueueError
from commands.qmgr.store.port import UnitOfWork
from commands.qmgr.store.unit_of_work import SqliteUnitOfWork
from rfh2.constants import (
    MQFMT_STRING,
    MQRC_DURABILITY_NOT_ALLOWED,
    MQRC_NOT_AUTHORIZED,
    MQRC_SELECTOR_NOT_ALTERABLE,
    MQRC_SUB_INHIBITED,
    MQRC_TOPIC_NOT_ALTERABLE,
    MQRC_UNKNOWN_OBJECT_NAME,
)
from rfh2.errors import CommandError
from rfh2.message import Message
from rfh2.mqi_constants import (
    MQPRI_PRIORITY_AS_PUBLISHED,
    MQRC_DEST_CLASS_NOT_ALTERABLE,
    MQRC_DURABILITY_NOT_ALTERABLE,
    MQRC_GROUPING_NOT_ALTERABLE,
    MQRC_HOBJ_ERROR,
    MQRC_IDENTITY_MISMATCH,
    MQRC_INVALID_DESTINATION,
    MQRC_NO_RETAINED_MSG,
    MQRC_NO_SUBSCRIPTION,
    MQRC_OBJECT_TYPE_ERROR,
    MQRC_PUBSUB_INHIBITED,
    MQRC_SELECTION_STRING_ERROR,
    MQRC_SUB_ALREADY_EXISTS,
    MQRC_SUBLEVEL_NOT_ALTERABLE,
    MQSO_ALTER,
    MQSO_ANY_USERID,
    MQSO_CREATE,
    MQSO_DURABLE,
    MQSO_FIXED_USERID,
    MQSO_GROUP_SUB,
    MQSO_MANAGED,
    MQSO_NEW_PUBLICATIONS_ONLY,
    MQSO_PUBLICATIONS_ON_REQUEST,
    MQSO_RESUME,
    MQSO_SCOPE_QMGR,
    MQSO_SET_CORREL_ID,
    MQSO_SET_IDENTITY_CONTEXT,
    MQSO_WILDCARD_CHAR,
    MQSO_WILDCARD_TOPIC,
)
from rfh2.mqmd import Mqmd
from streams.operations import (
    AlterSubscription,
    Delivery,
    Effect,
    Operation,
    RequestRetained,
    Subscribe,
    Unsubscribe,
)
from streams.patterns import add_pattern_prefix, parse_pattern
from streams.selectors import compile_selector
from streams.subscriptions import (
    MANAGED_PREFIX,
    MQCI_NONE,
    DeliveryPersistence,
    PublicationFormat,
    Subscription,
    SubscriptionOptions,
    WildcardScheme,
)
from streams.topic_objects import ResolvedTopic
from streams.topic_strings import MQRC_TOPIC_STRING_ERROR, construct_topic_string

_UTF8: Final = 1208
_EXPIRY_TENTHS: Final = 6_000
"""Of an answer that its program no longer waits for."""


class SubscriptionServer:
    """Of one queue manager. groups_of: the groups of a user. An error is an answer with IBM's reason code."""

    queue = REQUEST_QUEUE

    def __init__(self, groups_of: GroupsOf, backlog: Backlog) -> None:
        del groups_of, backlog  # the broker knows the first, and whoever delivers the second

    def carry_out(self, unit: UnitOfWork, broker: BrokerCore, arrival: Arrival) -> Administered:
        """Do what the request asks for; one that cannot be read is a dead letter."""
        assert isinstance(unit, SqliteUnitOfWork)  # programs connect to an embedded queue manager only
        try:
            request = SubscriptionRequest.model_validate_json(arrival.body)
        except ValidationError:
            outcome = broker.set_aside(arrival, MQRC_OBJECT_TYPE_ERROR, "it is no request of MQSUB")
            return Administered(iter(outcome.puts), Completion.ERROR, reason=outcome.reason, why=outcome.why)
        work = _Work(unit, broker, arrival)
        try:
            answer = work.done(request)
        except (MqiError, QueueError, CommandError) as error:
            why = error.why if isinstance(error, MqiError) else str(error)
            answer = SubscriptionAnswer(reason=error.reason, why=why)
        puts = work.puts(answer if request.reply else None)
        # A call that fails tells its program; it is no fault of the queue manager's.
        return Administered(puts, resubscribed=work.resubscribed)


class _Work:
    """One request: what it changes, and what is put because of it."""

    def __init__(self, unit: SqliteUnitOfWork, broker: BrokerCore, arrival: Arrival) -> None:
        self._unit, self._broker, self._arrival = unit, broker, arrival
        self._ids = Ids(broker.qmgr, arrival.seq)
        self._user = arrival.user or ""
        self._deliveries: list[Delivery] = []
        self.resubscribed = False

    def done(self, request: SubscriptionRequest) -> SubscriptionAnswer:
        """Carry the request out. Raises MqiError, QueueError and CommandError, with nothing changed."""
        self._changed(self._broker.space.expire(self._arrival.now))
        if request.verb is Verb.SUBSCRIBE:
            return self._subscribe(request)
        subscription = self._broker.space.subscription(request.sub_id)
        if subscription is not None:
            self._check_owner(subscription)
        if request.verb is Verb.REMOVE:
            if subscription is not None:
                self._apply(Unsubscribe(subscription))
            return SubscriptionAnswer()
        if subscription is None:
            raise MqiError(MQRC_NO_SUBSCRIPTION, "the subscription does not exist any more")
        self._apply(RequestRetained(subscription))
        if not self._deliveries:
            raise MqiError(MQRC_NO_RETAINED_MSG, f"nothing is retained on {subscription.topic_string}")
        return SubscriptionAnswer(count=len(self._deliveries))

    def puts(self, answer: SubscriptionAnswer | None) -> Iterator[Outgoing]:
        """The publications, then the answer."""
        broker, now = self._broker, self._arrival.now
        origin = Origin.of(broker.qmgr, now)
        forwarder = Forwarder(broker.qmgr, now, origin)
        counts = Counts()
        for delivery in self._deliveries:
            counts.add_delivered(delivery.subscription.sub_id, now)
            yield forwarder.put(delivery, self._ids(), broker.objects)
        self._unit.counters.add(counts)
        if answer is None:
            return
        body = answer.model_dump_json().encode()
        asked = Mqmd() if self._arrival.md is None else Mqmd.decode(self._arrival.md)
        mqmd = Mqmd(
            format=MQFMT_STRING,
            coded_char_set_id=_UTF8,
            expiry=_EXPIRY_TENTHS,
            msg_id=self._ids(),
            correl_id=asked.msg_id,
            put_appl_name=origin.put_appl_name,
            put_appl_type=origin.put_appl_type,
            put_date=origin.put_date,
            put_time=origin.put_time,
        )
        yield Outgoing(PutKind.RESPONSE, broker.qmgr, REPLY_QUEUE, Message(mqmd, (), body), body)

    def _subscribe(self, request: SubscriptionRequest) -> SubscriptionAnswer:
        wanted, objects = request.descriptor, self._broker.objects
        if objects.qmgr.psmode == "DISABLED":
            raise MqiError(MQRC_PUBSUB_INHIBITED, "PSMODE is DISABLED")
        wanted.check()
        existing = self._broker.space.by_name(wanted.name) if wanted.name else None
        if existing is None:
            if not wanted.has(MQSO_CREATE):
                raise MqiError(MQRC_NO_SUBSCRIPTION, f"there is no subscription {wanted.name}")
            made = self._created(request)
            wants_retained = not (made.options.new_pubs_only or made.options.pub_on_req_only)
            self._apply(Subscribe(made, send_retained=wants_retained))
        else:
            if not wanted.has(MQSO_ALTER | MQSO_RESUME):
                raise MqiError(MQRC_SUB_ALREADY_EXISTS, f"there is a subscription {wanted.name} already")
            made = self._resumed(request, existing)
            if made != existing:
                self._apply(AlterSubscription(made, send_retained=False))
        described = _descriptor(made, self._arrival)
        return SubscriptionAnswer(sub_id=made.sub_id, descriptor=described, qmgr=made.dest_qmgr, queue=made.dest_queue)

    def _apply(self, operation: Operation) -> None:
        effects = self._broker.space.apply(operation, self._arrival.now)
        self._deliveries += (effect for effect in effects if isinstance(effect, Delivery))
        self._changed([effect for effect in effects if not isinstance(effect, Delivery)])

    def _changed(self, effects: Sequence[Effect]) -> None:
        if effects:
            self.resubscribed = True
            self._unit.save_effects(effects)

    # A new subscription

    def _created(self, request: SubscriptionRequest) -> Subscription:
        wanted, broker, arrival = request.descriptor, self._broker, self._arrival
        scheme = WildcardScheme.CHAR if wanted.has(MQSO_WILDCARD_CHAR) else WildcardScheme.TOPIC
        topic_string, resolved = self._topic(wanted, scheme)
        self._check_topic(wanted, topic_string, scheme, resolved)
        if wanted.selector:
            _check_selector(wanted.selector)
        sub_id = self._ids()
        while broker.space.subscription(sub_id) is not None:
            sub_id = self._ids()
        made = Subscription(
            sub_id=sub_id,
            topic_string=topic_string,
            dest_queue=request.queue,
            dest_qmgr=request.qmgr or broker.qmgr,
            created=arrival.now,
            name=wanted.name or None,
            wildcard=scheme,
            selector=wanted.selector or None,
            sub_level=wanted.sub_level,
            grouped=wanted.has(MQSO_GROUP_SUB),
            format=PublicationFormat.PROPERTIES,
            topic_object=wanted.topic_object,
            temporary=not wanted.durable,
        )
        made = self._with_attributes(made, wanted)
        return self._at_its_queue(made, wanted, resolved)

    def _topic(self, wanted: SubscriptionDescriptor, scheme: WildcardScheme) -> tuple[str, ResolvedTopic]:
        topics = self._broker.objects.topics
        above = ""
        if wanted.topic_object:
            found = topics.get(wanted.topic_object)
            if found is None:
                raise MqiError(MQRC_UNKNOWN_OBJECT_NAME, f"there is no topic object {wanted.topic_object}")
            above = found.topic_string
        # A topic object's own characters are never wild (guide 2.5.2).
        whole = construct_topic_string(above, wanted.topic)
        if above and whole != above:
            whole = add_pattern_prefix(above, wanted.topic, scheme)
        try:
            parse_pattern(whole, scheme)
            return whole, topics.resolve_subscription(whole, scheme)
        except CommandError as error:
            raise MqiError(MQRC_TOPIC_STRING_ERROR, str(error)) from error

    def _check_topic(
        self, wanted: SubscriptionDescriptor, topic_string: str, scheme: WildcardScheme, resolved: ResolvedTopic
    ) -> None:
        self._check_authority(Action.SUBSCRIBE, topic_string, scheme)
        if not resolved.sub:
            raise MqiError(MQRC_SUB_INHIBITED, f"topic object {resolved.object_name} has SUB(DISABLED)")
        if wanted.durable and not resolved.durable_subs:
            raise MqiError(MQRC_DURABILITY_NOT_ALLOWED, f"topic object {resolved.object_name} has DURSUB(NO)")

    def _check_authority(self, action: Action, topic_string: str, scheme: WildcardScheme) -> None:
        literal = parse_pattern(topic_string, scheme).literal_topic
        if not self._broker.authority.may_use_topic(self._user, action, literal):
            raise MqiError(MQRC_NOT_AUTHORIZED, f"user {self._user} has no {action} authority at '{literal}'")

    def _check_owner(self, subscription: Subscription) -> None:
        if subscription.user != self._user and not subscription.options.variable_user_id:
            raise MqiError(MQRC_IDENTITY_MISMATCH, f"subscription {subscription.name} belongs to {subscription.user}")

    def _at_its_queue(
        self, made: Subscription, wanted: SubscriptionDescriptor, resolved: ResolvedTopic
    ) -> Subscription:
        """*made* with the queue to which its publications go, and the persistence that this allows."""
        unit = self._unit
        if wanted.managed and wanted.durable:
            model = unit.dynamic.model(resolved.durable_model_queue)
            if model is None:
                raise MqiError(MQRC_UNKNOWN_OBJECT_NAME, f"there is no model queue {resolved.durable_model_queue}")
            queue = unit.dynamic.make(model, f"{MANAGED_PREFIX}DURABLE.*", 0)
            return replace(made, dest_queue=queue.name)
        self._check_destination(made, wanted)
        found = unit.find_queue(made.dest_queue) if made.dest_qmgr == self._broker.qmgr else None
        if found is not None and found.is_temporary:
            # Such a queue takes no persistent messages.
            options = replace(made.options, persistence=DeliveryPersistence.NON_PERSISTENT)
            made = replace(made, options=options)
        return made

    def _check_destination(self, made: Subscription, wanted: SubscriptionDescriptor) -> None:
        if not made.dest_queue:
            raise MqiError(MQRC_HOBJ_ERROR, "neither a queue nor MQSO_MANAGED was given")
        if made.dest_qmgr != self._broker.qmgr:
            return
        found = self._unit.find_queue(made.dest_queue)
        if found is None:
            raise MqiError(MQRC_HOBJ_ERROR, f"queue {made.dest_queue} does not exist any more")
        if wanted.managed:
            if not (found.is_temporary and found.name.startswith(MANAGED_PREFIX)):
                raise MqiError(MQRC_INVALID_DESTINATION, f"{found.name} is no managed queue")
            return
        if wanted.durable and found.is_temporary:
            raise MqiError(MQRC_INVALID_DESTINATION, f"{found.name} is a temporary dynamic queue")
        if not self._broker.authority.may_put(self._user, made.dest_queue):
            raise MqiError(MQRC_NOT_AUTHORIZED, f"user {self._user} may not put on {made.dest_queue}")

    def _with_attributes(self, made: Subscription, wanted: SubscriptionDescriptor) -> Subscription:
        """*made* with what MQSO_ALTER can change too."""
        given = wanted.correl_id if wanted.has(MQSO_SET_CORREL_ID) else None
        sets_context = wanted.has(MQSO_SET_IDENTITY_CONTEXT)
        lifetime = None if wanted.expiry < 0 else timedelta(milliseconds=100 * wanted.expiry)
        options = SubscriptionOptions(
            local=wanted.has(MQSO_SCOPE_QMGR),
            new_pubs_only=wanted.has(MQSO_NEW_PUBLICATIONS_ONLY),
            pub_on_req_only=wanted.has(MQSO_PUBLICATIONS_ON_REQUEST),
            variable_user_id=wanted.has(MQSO_ANY_USERID),
            persistence=made.options.persistence,
        )
        return replace(
            made,
            options=options,
            user=self._user,
            user_data=wanted.user_data or None,
            correl_id=given or MQCI_NONE,
            keep_correl_id=given == MQCI_NONE,
            accounting_token=wanted.accounting_token if sets_context else bytes(32),
            appl_identity_data=wanted.identity_data.rstrip() if sets_context else "",
            pub_priority=None if wanted.priority == MQPRI_PRIORITY_AS_PUBLISHED else wanted.priority,
            expires_at=None if lifetime is None else self._arrival.now + lifetime,
        )

    # One that is there

    def _resumed(self, request: SubscriptionRequest, existing: Subscription) -> Subscription:
        wanted = request.descriptor
        self._check_owner(existing)
        self._check_authority(Action.RESUME, existing.topic_string, existing.wildcard)
        self._check_same(wanted, existing)
        if not wanted.has(MQSO_ALTER):
            if request.queue and (request.qmgr, request.queue) != (existing.dest_qmgr, existing.dest_queue):
                raise MqiError(MQRC_HOBJ_ERROR, f"subscription {existing.name} delivers to {existing.dest_queue}")
            return existing
        altered = self._with_attributes(existing, wanted)
        if request.queue:
            altered = replace(altered, dest_qmgr=request.qmgr, dest_queue=request.queue)
        if not wanted.has(MQSO_SET_CORREL_ID):
            altered = replace(altered, correl_id=existing.correl_id, keep_correl_id=existing.keep_correl_id)
        if altered.grouped and altered.correl_id != existing.correl_id:
            raise MqiError(MQRC_GROUPING_NOT_ALTERABLE, "a grouped subscription keeps its CorrelId")
        if altered.dest_queue != existing.dest_queue:
            self._check_destination(altered, wanted)
        return altered

    def _check_same(self, wanted: SubscriptionDescriptor, existing: Subscription) -> None:
        if wanted.topic_object or wanted.topic:
            topic_string, _ = self._topic(wanted, existing.wildcard)
            if topic_string != existing.topic_string:
                why = f"subscription {existing.name} is to {existing.topic_string}"
                raise MqiError(MQRC_TOPIC_NOT_ALTERABLE, why)
        if wanted.selector != (existing.selector or "") and (wanted.selector or wanted.has(MQSO_ALTER)):
            raise MqiError(MQRC_SELECTOR_NOT_ALTERABLE, f"subscription {existing.name} has another selector")
        if wanted.durable == existing.temporary:
            raise MqiError(MQRC_DURABILITY_NOT_ALTERABLE, f"subscription {existing.name} keeps its durability")
        if wanted.has(MQSO_ALTER) and wanted.managed != existing.managed:
            raise MqiError(MQRC_DEST_CLASS_NOT_ALTERABLE, f"subscription {existing.name} keeps its kind of queue")
        if wanted.has(MQSO_ALTER) and wanted.sub_level != existing.sub_level:
            raise MqiError(MQRC_SUBLEVEL_NOT_ALTERABLE, f"subscription {existing.name} keeps its level")
        if wanted.has(MQSO_ALTER) and wanted.has(MQSO_GROUP_SUB) != existing.grouped:
            raise MqiError(MQRC_GROUPING_NOT_ALTERABLE, f"subscription {existing.name} keeps its grouping")


def _check_selector(selector: str) -> None:
    try:
        compile_selector(selector)
    except CommandError as error:
        raise MqiError(MQRC_SELECTION_STRING_ERROR, str(error)) from error


def _descriptor(made: Subscription, arrival: Arrival) -> SubscriptionDescriptor:
    """The MQSD that a program gets back."""
    options = made.options
    words = (
        (MQSO_DURABLE, not made.temporary),
        (MQSO_MANAGED, made.managed),
        (MQSO_GROUP_SUB, made.grouped),
        (MQSO_ANY_USERID, options.variable_user_id),
        (MQSO_FIXED_USERID, not options.variable_user_id),
        (MQSO_PUBLICATIONS_ON_REQUEST, options.pub_on_req_only),
        (MQSO_NEW_PUBLICATIONS_ONLY, options.new_pubs_only),
        (MQSO_WILDCARD_CHAR, made.wildcard is WildcardScheme.CHAR),
        (MQSO_WILDCARD_TOPIC, made.wildcard is WildcardScheme.TOPIC),
        (MQSO_SCOPE_QMGR, options.local),
    )
    keeps = made.keep_correl_id or made.correl_id != MQCI_NONE
    expiry = tenths_until(made.expires_at, arrival.now)
    return SubscriptionDescriptor(
        options=sum(word for word, is_set in words if is_set),
        topic=made.topic_string,
        name=made.name or "",
        user_data=made.user_data or "",
        selector=made.selector or "",
        correl_id=made.correl_id if keeps else made.sub_id,
        expiry=-1 if expiry is None else expiry,
        priority=MQPRI_PRIORITY_AS_PUBLISHED if made.pub_priority is None else made.pub_priority,
        accounting_token=made.accounting_token,
        identity_data=made.appl_identity_data,
        sub_level=made.sub_level,
    )
