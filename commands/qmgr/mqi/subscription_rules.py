"""What MQSUB makes of a request: the subscription that is made, resumed or altered, or IBM's reason against it.

A subscription keeps its topic, selector, durability, kind of destination, level and group: a call that says otherwise
fails with the reason of that attribute. Nothing is changed here, except that a managed queue of a durable subscription
is made, when everything else is right.

What MQSUB, MQSUBRQ and MQCLOSE ask of the command processor about subscriptions, and what it answers.

Only the processor changes the topic space. So a call that changes it is a message on a queue, as an administration
command is, and has its place among the commands and publications that programs have put. The answer is a message too,
with the MsgId of the request as its CorrelId. Both are JSON. A request has the rights of the user who put it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

from pydantic import BaseModel, ConfigDict

from commands.broker.authority import Action, queue_on_the_way
from commands.broker.context import input_queue
from commands.broker.core import BrokerCore
from commands.broker.descriptor import HIGHEST_PRIORITY
from commands.broker.subscription_attributes import options_of_mqso, subscription_options
from commands.broker.times import tenths_until
from commands.qmgr.mqi.refusals import MqiError
from commands.qmgr.store.port import Queues
from commands.qmgr.store.state_table import DynamicQueues
from rfh2 import constants as mq, mqi_constants as m
from rfh2.errors import CommandError
from streams.patterns import add_pattern_prefix, parse_pattern
from streams.selectors import compile_selector
from streams.subscriptions import (
    MANAGED_PREFIX,
    DeliveryPersistence,
    PublicationFormat,
    Subscription,
    SubscriptionOptions,
    WildcardScheme,
)
from streams.topic_objects import ResolvedTopic, TopicObjects
from streams.topic_strings import construct_topic_string

REQUEST_QUEUE: Final = "SYSTEM.QPUBSUB.MQSUB.REQUEST"
REPLY_QUEUE: Final = "SYSTEM.QPUBSUB.MQSUB.REPLY"
_HIGHEST_LEVEL: Final = 9
_ONE_OF: Final = (
    (m.MQSO_ALTER, m.MQSO_RESUME),
    (m.MQSO_ANY_USERID, m.MQSO_FIXED_USERID),
    (m.MQSO_NEW_PUBLICATIONS_ONLY, m.MQSO_PUBLICATIONS_ON_REQUEST),
    (m.MQSO_WILDCARD_CHAR, m.MQSO_WILDCARD_TOPIC),
    (m.MQSO_READ_AHEAD, m.MQSO_NO_READ_AHEAD),
    (m.MQSO_GROUP_SUB, m.MQSO_MANAGED),
    (m.MQSO_SET_CORREL_ID, m.MQSO_MANAGED),
)


class Verb(StrEnum):
    """What is asked for. RETAINED: MQSUBRQ. REMOVE: MQCLOSE with MQCO_REMOVE_SUB, and the end of a program."""

    SUBSCRIBE = "subscribe"
    RETAINED = "retained"
    REMOVE = "remove"


class SubscriptionDescriptor(BaseModel):
    """An MQSD. topic_object, topic: ObjectName and ObjectString. expiry: tenths of a second, -1 for none.

    accounting_token, identity_data: as given; they count with MQSO_SET_IDENTITY_CONTEXT alone. shared: whether several
    programs may have the subscription open, as JMS can ask beside the MQSD. alternate_user: AlternateUserId, which
    counts with MQSO_ALTERNATE_USER_AUTHORITY alone.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="hex", val_json_bytes="hex")

    options: int = 0
    topic_object: str = ""
    topic: str = ""
    name: str = ""
    user_data: str = ""
    selector: str = ""
    correl_id: bytes = bytes(24)
    expiry: int = -1
    priority: int = m.MQPRI_PRIORITY_AS_PUBLISHED
    accounting_token: bytes = bytes(32)
    identity_data: str = ""
    sub_level: int = 1
    shared: bool = False
    alternate_user: str = ""

    def has(self, option: int) -> bool:
        """Whether *option* (MQSO_*) is set."""
        return bool(self.options & option)

    @property
    def durable(self) -> bool:
        """Whether the subscription outlives its program."""
        return self.has(m.MQSO_DURABLE)

    @property
    def managed(self) -> bool:
        """Whether the queue manager provides the queue."""
        return self.has(m.MQSO_MANAGED)

    def check(self) -> None:
        """Raises MqiError for what can be no subscription: 2425, 2440, 2431, 2050, 2424, and 2046 as below."""
        self._check_options()
        for text, most, reason in (
            (self.topic, mq.MQ_TOPIC_STR_LENGTH, m.MQRC_TOPIC_STRING_ERROR),
            (self.name, mq.MQ_SUB_NAME_LENGTH, m.MQRC_SUB_NAME_ERROR),
            (self.user_data, mq.MQ_USER_DATA_LENGTH, m.MQRC_SUB_USER_DATA_ERROR),
            (self.selector, mq.MQ_SELECTOR_LENGTH, m.MQRC_SELECTION_STRING_ERROR),
        ):
            if len(text) > most or "\0" in text:
                raise MqiError(reason, f"a string is longer than {most} characters, or has a null in it")
        if not m.MQPRI_PRIORITY_AS_PUBLISHED <= self.priority <= HIGHEST_PRIORITY:
            raise MqiError(m.MQRC_PRIORITY_ERROR, f"PubPriority is {self.priority}")
        if not 0 <= self.sub_level <= _HIGHEST_LEVEL:
            raise MqiError(m.MQRC_SD_ERROR, f"SubLevel is {self.sub_level}")

    def _check_options(self) -> None:
        """Raises MqiError 2046 for options that do not go together (IBM's rules for validating MQI options)."""
        if not self.has(m.MQSO_CREATE | m.MQSO_ALTER | m.MQSO_RESUME):
            raise MqiError(m.MQRC_OPTIONS_ERROR, "one of MQSO_CREATE, MQSO_ALTER and MQSO_RESUME must be set")
        for one, other in _ONE_OF:
            if self.has(one) and self.has(other):
                raise MqiError(m.MQRC_OPTIONS_ERROR, f"options {one:#x} and {other:#x} cannot be used together")
        if self.has(m.MQSO_GROUP_SUB) and not self.has(m.MQSO_SET_CORREL_ID):
            raise MqiError(m.MQRC_OPTIONS_ERROR, "MQSO_GROUP_SUB needs MQSO_SET_CORREL_ID")
        if self.has(m.MQSO_NEW_PUBLICATIONS_ONLY) and not self.has(m.MQSO_CREATE):
            raise MqiError(m.MQRC_OPTIONS_ERROR, "MQSO_NEW_PUBLICATIONS_ONLY needs MQSO_CREATE")


class SubscriptionRequest(BaseModel):
    """One request. sub_id: of the subscription; not for ``SUBSCRIBE``.

    qmgr, queue: where the publications go; "" if an existing subscription says it, or the processor makes a managed
    queue. reply: whether the program waits for the answer. keeper: the number of the connection that has the managed
    queue of a durable subscription open; the queue stays until it is closed there, 0 for none.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="hex", val_json_bytes="hex")

    verb: Verb
    sub_id: bytes = b""
    descriptor: SubscriptionDescriptor = SubscriptionDescriptor()
    qmgr: str = ""
    queue: str = ""
    reply: bool = True
    keeper: int = 0


class SubscriptionAnswer(BaseModel):
    """The result. reason: 0 where it is done. why: for people. count: publications that were sent (MQSUBRQ).

    descriptor: the subscription as it now is; topic is its whole topic string. qmgr, queue: where its publications go.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="hex", val_json_bytes="hex")

    reason: int = 0
    why: str = ""
    sub_id: bytes = b""
    descriptor: SubscriptionDescriptor = SubscriptionDescriptor()
    qmgr: str = ""
    queue: str = ""
    count: int = 0


class MakesQueues(Queues, Protocol):
    """A unit of work that makes queues for programs."""

    @property
    def dynamic(self) -> DynamicQueues: ...


class SubscriptionRules:
    """For one request. user: who asks. unit: knows the queues, and makes the managed one."""

    def __init__(self, broker: BrokerCore, unit: MakesQueues, user: str, now: datetime) -> None:
        self._broker, self._unit, self._user, self._now = broker, unit, user, now

    def created(self, request: SubscriptionRequest, sub_id: bytes) -> Subscription:
        """The subscription that is made. Raises MqiError, QueueError, CommandError."""
        wanted, broker = request.descriptor, self._broker
        scheme = scheme_of(wanted)
        topic_string, resolved = topic_of(wanted, broker.objects.topics, scheme)
        self._check_topic(wanted, topic_string, scheme, resolved)
        if wanted.selector:
            _check_selector(wanted.selector)
        made = Subscription(
            sub_id=sub_id,
            topic_string=topic_string,
            dest_queue=request.queue,
            dest_qmgr=request.qmgr or broker.qmgr,
            created=self._now,
            name=wanted.name or None,
            wildcard=scheme,
            selector=wanted.selector or None,
            sub_level=wanted.sub_level,
            grouped=wanted.has(m.MQSO_GROUP_SUB),
            format=PublicationFormat.PROPERTIES,
            topic_object=wanted.topic_object,
            temporary=not wanted.durable,
        )
        made = self._with_attributes(made, wanted)
        return self._at_its_queue(made, wanted, resolved)

    def _check_topic(
        self, wanted: SubscriptionDescriptor, topic_string: str, scheme: WildcardScheme, resolved: ResolvedTopic
    ) -> None:
        self._check_authority(Action.SUBSCRIBE, topic_string, scheme)
        if not resolved.sub:
            raise MqiError(mq.MQRC_SUB_INHIBITED, f"topic object {resolved.object_name} has SUB(DISABLED)")
        if wanted.durable and not resolved.durable_subs:
            raise MqiError(mq.MQRC_DURABILITY_NOT_ALLOWED, f"topic object {resolved.object_name} has DURSUB(NO)")

    def _check_authority(self, action: Action, topic_string: str, scheme: WildcardScheme) -> None:
        literal = parse_pattern(topic_string, scheme).literal_topic
        if not self._broker.authority.may_use_topic(self._user, action, literal):
            raise MqiError(mq.MQRC_NOT_AUTHORIZED, f"user {self._user} has no {action} authority at '{literal}'")

    def check_owner(self, subscription: Subscription) -> None:
        """Raises MqiError 2434 for a subscription of another user that only he may change."""
        if subscription.user != self._user and not subscription.options.variable_user_id:
            raise MqiError(m.MQRC_IDENTITY_MISMATCH, f"subscription {subscription.name} belongs to {subscription.user}")

    def _at_its_queue(
        self, made: Subscription, wanted: SubscriptionDescriptor, resolved: ResolvedTopic
    ) -> Subscription:
        """*made* with the queue to which its publications go, and the persistence that this allows."""
        unit = self._unit
        if wanted.managed and wanted.durable:
            model = unit.dynamic.model(resolved.durable_model_queue)
            if model is None:
                raise MqiError(mq.MQRC_UNKNOWN_OBJECT_NAME, f"there is no model queue {resolved.durable_model_queue}")
            queue = unit.dynamic.make(model, f"{MANAGED_PREFIX}DURABLE.*", 0, self._user)
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
            raise MqiError(m.MQRC_HOBJ_ERROR, "neither a queue nor MQSO_MANAGED was given")
        if not wanted.managed:
            self._check_may_put(made)
            self._check_context(made, wanted)
        if made.dest_qmgr != self._broker.qmgr:
            return
        found = self._unit.find_queue(made.dest_queue)
        if found is None:
            raise MqiError(m.MQRC_HOBJ_ERROR, f"queue {made.dest_queue} does not exist any more")
        if wanted.managed:
            if not (found.is_temporary and found.name.startswith(MANAGED_PREFIX)):
                raise MqiError(m.MQRC_INVALID_DESTINATION, f"{found.name} is not a managed queue")
            return
        if wanted.durable and found.is_temporary:
            raise MqiError(m.MQRC_INVALID_DESTINATION, f"{found.name} is a temporary dynamic queue")
        if (queue := input_queue(made.dest_queue, self._broker.objects)) is not None:
            why = f"the queue manager takes commands from {queue}, so no subscription can deliver to it"
            raise MqiError(m.MQRC_INVALID_DESTINATION, why)

    def _check_may_put(self, made: Subscription) -> None:
        """Raises MqiError 2035 where the user may put neither to the destination nor to an alias of it.

        To another queue manager the transmission queue leads, which has its name.
        """
        if not any(self._broker.authority.may_put(self._user, name) for name in self._names(made)):
            raise MqiError(mq.MQRC_NOT_AUTHORIZED, f"user {self._user} may not put to {made.dest_queue}")

    def _check_context(self, made: Subscription, wanted: SubscriptionDescriptor) -> None:
        """Raises MqiError 2035 where the program sets the context of what its queue gets, and its user may not."""
        if wanted.has(m.MQSO_SET_IDENTITY_CONTEXT) and not any(
            self._broker.authority.may_set_identity(self._user, name) for name in self._names(made)
        ):
            raise MqiError(mq.MQRC_NOT_AUTHORIZED, f"user {self._user} may not set the context on {made.dest_queue}")

    def _names(self, made: Subscription) -> tuple[str, ...]:
        """The queue here that publications are put to, and the aliases by which the program may have opened it."""
        queue = queue_on_the_way(made.dest_qmgr, made.dest_queue, self._broker.qmgr)
        aliases = self._broker.objects.aliases.items()
        return (queue, *(name for name, alias in aliases if alias.target == queue))

    def _with_attributes(self, made: Subscription, wanted: SubscriptionDescriptor) -> Subscription:
        """*made* with what MQSO_ALTER can change too."""
        given = wanted.correl_id if wanted.has(m.MQSO_SET_CORREL_ID) else None
        sets_context = wanted.has(m.MQSO_SET_IDENTITY_CONTEXT)
        lifetime = None if wanted.expiry < 0 else timedelta(milliseconds=100 * wanted.expiry)
        options = SubscriptionOptions(
            **options_of_mqso(wanted.options),
            persistence=made.options.persistence,
        )
        return replace(
            made,
            options=options,
            user=self._user,
            user_data=wanted.user_data or None,
            correl_id=given or m.MQCI_NONE,
            keep_correl_id=given == m.MQCI_NONE,
            accounting_token=wanted.accounting_token if sets_context else bytes(32),
            appl_identity_data=wanted.identity_data.rstrip() if sets_context else "",
            pub_priority=None if wanted.priority == m.MQPRI_PRIORITY_AS_PUBLISHED else wanted.priority,
            expires_at=None if lifetime is None else self._now + lifetime,
            renewed=None if lifetime is None or made.created == self._now else self._now,
        )

    # One that is there

    def resumed(self, request: SubscriptionRequest, existing: Subscription) -> Subscription:
        """*existing*, altered if the request says so. Raises MqiError, QueueError, CommandError."""
        wanted = request.descriptor
        self.check_owner(existing)
        self._check_authority(Action.RESUME, existing.topic_string, existing.wildcard)
        self._check_same(wanted, existing)
        if not wanted.has(m.MQSO_ALTER):
            if request.queue and (request.qmgr, request.queue) != (existing.dest_qmgr, existing.dest_queue):
                raise MqiError(m.MQRC_HOBJ_ERROR, f"subscription {existing.name} delivers to {existing.dest_queue}")
            if existing.user == self._user:
                return existing
            # Its publications now have the default identity context of the user who has it (guide 5.2).
            return replace(existing, user=self._user, accounting_token=bytes(32), appl_identity_data="")
        altered = self._with_attributes(existing, wanted)
        if request.queue:
            altered = replace(altered, dest_qmgr=request.qmgr, dest_queue=request.queue)
        if not wanted.has(m.MQSO_SET_CORREL_ID):
            altered = replace(altered, correl_id=existing.correl_id, keep_correl_id=existing.keep_correl_id)
        if altered.grouped and altered.correl_id != existing.correl_id:
            raise MqiError(m.MQRC_GROUPING_NOT_ALTERABLE, "a grouped subscription keeps its CorrelId")
        if (altered.dest_qmgr, altered.dest_queue) != (existing.dest_qmgr, existing.dest_queue):
            self._check_destination(altered, wanted)
        elif not wanted.managed:
            self._check_context(altered, wanted)
        return altered

    def _check_same(self, wanted: SubscriptionDescriptor, existing: Subscription) -> None:
        if wanted.topic_object or wanted.topic:
            topic_string, _ = topic_of(wanted, self._broker.objects.topics, existing.wildcard)
            if topic_string != existing.topic_string:
                why = f"subscription {existing.name} is to {existing.topic_string}"
                raise MqiError(mq.MQRC_TOPIC_NOT_ALTERABLE, why)
        if wanted.selector != (existing.selector or "") and (wanted.selector or wanted.has(m.MQSO_ALTER)):
            raise MqiError(mq.MQRC_SELECTOR_NOT_ALTERABLE, f"subscription {existing.name} has another selector")
        if wanted.durable == existing.temporary:
            raise MqiError(m.MQRC_DURABILITY_NOT_ALTERABLE, f"subscription {existing.name} keeps its durability")
        if wanted.has(m.MQSO_ALTER) and wanted.managed != existing.managed:
            raise MqiError(m.MQRC_DEST_CLASS_NOT_ALTERABLE, f"subscription {existing.name} keeps its kind of queue")
        if wanted.has(m.MQSO_ALTER) and wanted.sub_level != existing.sub_level:
            raise MqiError(m.MQRC_SUBLEVEL_NOT_ALTERABLE, f"subscription {existing.name} keeps its level")
        if wanted.has(m.MQSO_ALTER) and wanted.has(m.MQSO_GROUP_SUB) != existing.grouped:
            raise MqiError(m.MQRC_GROUPING_NOT_ALTERABLE, f"subscription {existing.name} keeps its grouping")


def topic_of(wanted: SubscriptionDescriptor, topics: TopicObjects, scheme: WildcardScheme) -> tuple[str, ResolvedTopic]:
    """The whole topic string of an MQSD, and what holds there. Raises MqiError 2085, 2425."""
    above = ""
    if wanted.topic_object:
        found = topics.get(wanted.topic_object)
        if found is None:
            raise MqiError(mq.MQRC_UNKNOWN_OBJECT_NAME, f"there is no topic object {wanted.topic_object}")
        above = found.topic_string
    try:
        whole = construct_topic_string(above, wanted.topic)
        if above and whole != above:
            # A topic object's own characters are never wild (guide 2.5.2).
            whole = add_pattern_prefix(above, wanted.topic, scheme)
        parse_pattern(whole, scheme)
        return whole, topics.resolve_subscription(whole, scheme)
    except CommandError as error:
        raise MqiError(m.MQRC_TOPIC_STRING_ERROR, str(error)) from error


def scheme_of(wanted: SubscriptionDescriptor) -> WildcardScheme:
    """That of the wildcards in an MQSD."""
    return WildcardScheme.CHAR if wanted.has(m.MQSO_WILDCARD_CHAR) else WildcardScheme.TOPIC


def _check_selector(selector: str) -> None:
    try:
        compile_selector(selector)
    except CommandError as error:
        raise MqiError(m.MQRC_SELECTOR_SYNTAX_ERROR, str(error)) from error


def described(made: Subscription) -> SubscriptionDescriptor:
    """The MQSD that a program gets back. SubExpiry is the whole time, not what is left of it (guide 2.4.2)."""
    keeps = made.keep_correl_id or made.correl_id != m.MQCI_NONE
    expiry = tenths_until(made.expires_at, made.renewed or made.created)
    return SubscriptionDescriptor(
        options=subscription_options(made),
        topic=made.topic_string,
        name=made.name or "",
        user_data=made.user_data or "",
        selector=made.selector or "",
        correl_id=made.correl_id if keeps else made.sub_id,
        expiry=-1 if expiry is None else expiry,
        priority=m.MQPRI_PRIORITY_AS_PUBLISHED if made.pub_priority is None else made.pub_priority,
        accounting_token=made.accounting_token,
        identity_data=made.appl_identity_data,
        sub_level=made.sub_level,
    )
