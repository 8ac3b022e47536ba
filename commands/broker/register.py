"""RegSub: makes a subscription, or finds the one that the command refers to and changes it (guide 6.7.4).

A registration is found by SubName, or else by traditional identity, topic, subscription point and filter
(``identity``). The command alters it: attributes in the command replace the existing ones, omitted options stay, and
``None`` resets them. In each case, the expiry starts again. Version 7 refuses to alter what MQSUB cannot alter: topic
(2510) and filter (2524) of a named subscription (guide 7.5, 8.5).

With NoAlter, the name is enough: if the subscription exists, topic and queue of the command are ignored, and FullResp
reports the real ones. A JMS client unsubscribes in this way, because it knows only the name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypedDict

from commands.broker import subscription_attributes
from commands.broker.authority import Action, queue_on_the_way
from commands.broker.context import CommandPlan, Context, Destination, Semantics, not_authorized, warnings_or_error
from commands.broker.identity import (
    SubscriptionQuery,
    belongs_to,
    by_identity,
    by_name,
    named_twin,
    stream_of,
    variable_user,
)
from commands.headers.response import Warned
from commands.model import RegisterSubscriber, RegOpt
from rfh2 import constants as mq
from rfh2.errors import CommandError
from rfh2.mqi_constants import MQCI_NONE
from rfh2.mqmd import name_of
from streams.operations import AlterSubscription, Subscribe
from streams.patterns import add_pattern_prefix, parse_pattern, written_topic
from streams.selectors import compile_selector
from streams.subscriptions import (
    DeliveryPersistence,
    PublicationFormat,
    Subscription,
    SubscriptionOptions,
    WildcardScheme,
)
from streams.topic_strings import add_prefix, check_topic_string

_METATOPICS = ("MQ/", "$SYS/")
_NO_OPTIONS = SubscriptionOptions()


@dataclass(frozen=True, slots=True)
class _Request:
    """One topic of a RegSub, with everything that does not depend on existing subscriptions.

    owner: under version 6, another user to whom this traditional identity belongs.
    """

    command: RegisterSubscriber
    topic: str
    full: str
    prefix: str
    stream: str | None
    destination: Destination
    owner: str | None


def register(command: RegisterSubscriber, context: Context) -> CommandPlan:
    """The operations of a RegSub: one Subscribe or AlterSubscription a topic. Raises CommandError."""
    correl_as_id = command.has(RegOpt.CORREL_AS_ID)
    if correl_as_id and context.mqmd.correl_id == MQCI_NONE:
        raise no_correl_id("RegOpt")
    if command.filter is not None:
        compile_selector(command.filter)
    stream = stream_of(command, context)
    prefix = subscriber_prefix(stream, command.sub_point, context)
    named = by_name(context, command.sub_name, stream) if command.sub_name is not None else None
    moves = bool(command.q_name or name_of(context.mqmd.reply_to_q))
    resumed = named if command.has(RegOpt.NO_ALTER) else None
    destination = context.subscriber_queue(command, correl_as_id, needed=named is None or moves)
    if destination.queue and resumed is None:
        context.check_reachable(destination)
        _check_may_put(destination, context)
    topics = tuple(dict.fromkeys(command.topics))
    if command.sub_name is not None and len(topics) > 1:
        why = "a SubName names one subscription, so the command can have one Topic only"
        raise CommandError(mq.MQRCCF_SUB_NAME_ERROR, why=why, tags=(("SubName", command.sub_name),))
    owner = _owner(destination, context) if named is None else None
    operations: list[Subscribe | AlterSubscription] = []
    refused: list[Warned] = []
    joined: list[Warned] = []
    ignored = False
    for topic in topics:
        if is_metatopic(topic) and context.semantics is Semantics.V7:
            ignored = True
            continue
        scheme = context.scheme_of(command.header)
        topic_string = full_pattern(prefix, topic, scheme)
        request = _Request(command, topic, topic_string, prefix, stream, destination, owner)
        if not _is_authorized(request, resumed, scheme, context):
            refused.append(not_authorized(topic))
            continue
        if resumed is None:
            _check_topic_object(request, context)
        operation = _on_its_queue(_one(request, named, context), context)
        operations.append(operation)
        if command.sub_identity is not None and (again := _already_joined(operation, command, context)) is not None:
            joined.append(again if len(topics) == 1 else replace(again, tags=(("Topic", topic), *again.tags)))
    warnings = (*warnings_or_error(refused, bool(operations) or ignored), *joined)
    full = operations[0].subscription if operations and command.has(RegOpt.FULL_RESP) else None
    return CommandPlan(tuple(operations), warnings, full)


def _is_authorized(request: _Request, resumed: Subscription | None, scheme: WildcardScheme, context: Context) -> bool:
    """Whether the sender may subscribe to the topic or, with NoAlter, resume what exists (guide 7.2.8)."""
    if resumed is not None:
        return context.may(Action.RESUME, resumed.topic_string, resumed.wildcard)
    return context.may(Action.SUBSCRIBE, request.full, scheme)


def _already_joined(
    operation: Subscribe | AlterSubscription, command: RegisterSubscriber, context: Context
) -> Warned | None:
    before = context.space.subscription(operation.subscription.sub_id)
    return None if before is None else already_joined(before, command)


def _on_its_queue(operation: Subscribe | AlterSubscription, context: Context) -> Subscribe | AlterSubscription:
    """*operation*, whose subscription ends with its queue if that is a temporary dynamic one (guide 6.7.4).

    Raises CommandError 3083 where an MQRFH2 subscriber there does not ask for NonPers; the other headers cannot say it.
    """
    made = operation.subscription
    queue = context.objects.queue(made.dest_queue) if made.dest_qmgr == context.qmgr else None
    temporary = queue is not None and queue.is_temporary
    persistence = made.options.persistence
    if temporary and made.format is PublicationFormat.RFH2 and persistence is not DeliveryPersistence.NON_PERSISTENT:
        why = f"{made.dest_queue} is a temporary dynamic queue, which needs NonPers"
        raise CommandError(mq.MQRCCF_REG_OPTIONS_ERROR, why=why, tags=(("QName", made.dest_queue),))
    return (
        operation
        if temporary == made.temporary
        else replace(operation, subscription=replace(made, temporary=temporary))
    )


def _check_may_put(destination: Destination, context: Context) -> None:
    queue = queue_on_the_way(destination.qmgr, destination.queue, context.qmgr)
    if not context.authority.may_put(context.user, queue):
        why = f"user {context.user} is not authorized to put to {queue}"
        raise CommandError(mq.MQRCCF_NOT_AUTHORIZED, why=why, tags=(("QName", destination.queue),))


def sub_point_prefix(sub_point: str | None, context: Context) -> str:
    """The prefix that a command's SubPoint stands for. Raises CommandError 3072 where no subscription point has it."""
    prefix = context.sub_point_prefix(sub_point)
    if prefix is None:
        why = f"SubPoint '{sub_point}' is unknown: no object in SYSTEM.QPUBSUB.SUBPOINT.NAMELIST has that TOPICSTR"
        raise CommandError(mq.MQRCCF_TOPIC_ERROR, why=why, tags=(("SubPoint", sub_point or ""),))
    return prefix


def subscriber_prefix(stream: str | None, sub_point: str | None, context: Context) -> str:
    """The prefix of a subscriber's topics: its stream's or its subscription point's; no header has both."""
    return sub_point_prefix(sub_point, context) if stream is None else context.prefix_of_stream(stream)


def full_pattern(prefix: str, topic: str, scheme: WildcardScheme) -> str:
    """*topic*, which may have wildcards, as it lies below *prefix*, which has none.

    Raises CommandError 3072, with *topic* as the topic in error, where it is not a topic.
    """
    try:
        full = check_topic_string(add_pattern_prefix(prefix, check_topic_string(topic), scheme))
        parse_pattern(full, scheme)
    except CommandError as error:
        raise CommandError(error.reason, topic, error.why, (("Topic", topic),)) from error
    return full


def full_topic(prefix: str, topic: str, check: Callable[[str], str]) -> str:
    """*topic* as it lies below *prefix*. Raises CommandError 3072 for *topic* where *check* does."""
    try:
        return check(add_prefix(prefix, check(topic)))
    except CommandError as error:
        raise CommandError(error.reason, topic, error.why, (("Topic", topic),)) from error


def no_correl_id(tag: str) -> CommandError:
    """The error for CorrelAsId in *tag* without a CorrelId."""
    why = "CorrelAsId is given, but the CorrelId of the message is zero"
    return CommandError(mq.MQRCCF_CORREL_ID_ERROR, why=why, tags=((tag, RegOpt.CORREL_AS_ID.value),))


def is_metatopic(topic: str) -> bool:
    """Whether version 6 published about the broker itself on *topic*; version 7 does not (guide 7.5)."""
    return topic.startswith(_METATOPICS)


def options_of(command: RegisterSubscriber) -> SubscriptionOptions:
    """The lasting options of a RegSub."""
    options = subscription_attributes.options_of(command.options or ())
    # Most subscribers ask for nothing special: those share one value, however many there are.
    return _NO_OPTIONS if options == _NO_OPTIONS else options


def _check_topic_object(request: _Request, context: Context) -> None:
    resolved = context.objects.topics.resolve_subscription(request.full, context.scheme_of(request.command.header))
    tags = (("Topic", request.topic),)
    if not resolved.sub:
        raise CommandError(mq.MQRC_SUB_INHIBITED, request.topic, f"{resolved.object_name} has SUB(DISABLED)", tags)
    if not resolved.durable_subs:
        raise CommandError(
            mq.MQRC_DURABILITY_NOT_ALLOWED, request.topic, f"{resolved.object_name} has DURSUB(NO)", tags
        )


def _one(request: _Request, named: Subscription | None, context: Context) -> Subscribe | AlterSubscription:
    if named is not None:
        return _alter(request, named, _moved(request, named, context), context)
    command = request.command
    wanted = SubscriptionQuery(
        request.destination,
        request.topic,
        command.filter or "",
        command.sub_point or "",
        request.stream or "",
        variable_user=variable_user(command.options),
        scheme=context.scheme_of(command.header),
        header=command.header,
    )
    existing = _existing(context, wanted, request.owner)
    if command.sub_name is None:
        return _create(request, context) if existing is None else _alter(request, existing, existing, context)
    if existing is not None:
        if existing.name is not None or not command.has(RegOpt.ADD_NAME):
            which = "without a name" if existing.name is None else f"under the name {existing.name}"
            raise _duplicate(command.sub_name, f"a matching subscription exists {which}")
        return _alter(request, existing, replace(existing, name=command.sub_name), context)
    twin = named_twin(context, wanted)
    if twin is not None:
        raise _duplicate(command.sub_name, f"a matching subscription exists under the name {twin.name}")
    return _create(request, context)


def _owner(destination: Destination, context: Context) -> str | None:
    """The user to whom an identity belongs under version 6; asked once a command, as there may be many topics."""
    if context.semantics is not Semantics.V6 or not context.space.users_of(destination.key) - {context.user}:
        return None
    others = (s for s in context.space.by_identity(destination.key) if s.user != context.user)
    return next((other.user for other in others if not other.options.variable_user_id), None)


def _existing(context: Context, wanted: SubscriptionQuery, owner: str | None) -> Subscription | None:
    if context.semantics is Semantics.V6:
        if owner is not None:
            raise belongs_to(owner, "this identity")
        return _own_first(by_identity(context, wanted), context)
    try:
        return _own_first(by_identity(context, wanted), context)
    except CommandError:
        return None  # another user's: version 7 gives this one a subscription of its own (guide 7.5)


def _own_first(fitting: list[Subscription], context: Context) -> Subscription | None:
    # A user who registers again means his own subscription, even if VariableUserId lets him change others.
    return next((s for s in fitting if s.user == context.user), next(iter(fitting), None))


def _create(request: _Request, context: Context) -> Subscribe:
    command, mqmd = request.command, context.mqmd
    members = on_creation(command)
    options = options_of(command)
    subscription = Subscription(
        sub_id=context.new_id(),
        topic_string=request.full,
        dest_queue=request.destination.queue,
        dest_qmgr=request.destination.qmgr,
        created=context.now,
        name=command.sub_name,
        wildcard=context.scheme_of(command.header),
        prefix=request.prefix,
        stream=request.stream,
        sub_point=command.sub_point,
        correl_id=request.destination.correl_id,
        user=context.user,
        accounting_token=mqmd.accounting_token,
        appl_identity_data=name_of(mqmd.appl_identity_data),
        user_data=command.sub_user_data,
        selector=command.filter,
        options=options,
        format=command.header,
        identities=members.identities,
        exclusive=members.exclusive,
        expires_at=context.expires_at,
    )
    return Subscribe(subscription, send_retained=not (options.new_pubs_only or options.pub_on_req_only))


def _moved(request: _Request, named: Subscription, context: Context) -> Subscription:
    """*named* with the topic, filter and subscriber queue that the command gives. Raises 2510, 2524, 3152."""
    command = request.command
    if command.has(RegOpt.NO_ALTER):
        return named
    moved = named
    if request.full != named.topic_string:
        if context.semantics is Semantics.V7:
            why = f"subscription {named.name} is to {named.topic_string}"
            raise CommandError(mq.MQRC_TOPIC_NOT_ALTERABLE, request.topic, why, (("Topic", request.topic),))
        moved = replace(
            moved,
            topic_string=request.full,
            prefix=request.prefix,
            sub_point=command.sub_point,
            stream=request.stream,
            wildcard=context.scheme_of(command.header),
        )
    if command.filter is not None and command.filter != named.selector:
        if context.semantics is Semantics.V7:
            why = f"subscription {named.name} has another filter"
            raise CommandError(mq.MQRC_SELECTOR_NOT_ALTERABLE, request.topic, why, (("Filter", command.filter),))
        moved = replace(moved, selector=command.filter)
    destination = request.destination
    if destination.queue:
        moved = replace(moved, dest_qmgr=destination.qmgr, dest_queue=destination.queue)
    elif command.qmgr_name:
        moved = replace(moved, dest_qmgr=destination.qmgr)
    if command.options is not None:
        moved = replace(moved, correl_id=destination.correl_id)
    if moved == named:
        return named  # version 7 allows an equal second subscription; to register again must still cause no error
    for other in context.space.by_identity(moved.traditional_identity, written_topic(moved)):
        same = (other.topic_string, other.selector, other.sub_point) == (
            moved.topic_string,
            moved.selector,
            moved.sub_point,
        )
        if other.sub_id != named.sub_id and same and other.user == context.user:
            raise _duplicate(named.name or "", "the change would make it the same as another subscription")
    return moved


def _alter(request: _Request, before: Subscription, moved: Subscription, context: Context) -> AlterSubscription:
    """*before* becomes *moved*, with the options, user data, user and expiry of the command."""
    command = request.command
    members = on_registration(before, command)
    if command.has(RegOpt.NO_ALTER):
        return AlterSubscription(replace(before, **members.fields()), send_retained=False)
    after = replace(
        moved,
        options=before.options if command.options is None else options_of(command),
        format=command.header,
        user=context.user,
        user_data=before.user_data if command.sub_user_data is None else command.sub_user_data,
    )
    check_alteration(before, after, command, members)
    again = before.options.new_pubs_only and not after.options.new_pubs_only and not after.options.pub_on_req_only
    renewed = None if context.expires_at is None else context.now
    after = replace(after, expires_at=context.expires_at, renewed=renewed, **members.fields())
    return AlterSubscription(after, send_retained=again)


def _duplicate(name: str, why: str) -> CommandError:
    return CommandError(mq.MQRCCF_DUPLICATE_SUBSCRIPTION, why=why, tags=(("SubName", name),))


# Identity sets: which applications share a subscription, or hold it alone (guide 6.7.4, SubIdentity, Join options).
#
# set before            JoinShared by B                    JoinExcl by B
# empty                 {B}                                {B} locked
# {B}                   3157                               {B} locked
# {B} locked            {B}                                3157
# {A}                   {A, B}                             3155
# {A} locked            3156                               3156
# {A, B}                3157                               3155
#
# 3157 is a warning: the set stays as it is, and the rest of the command is done (IBM MQ, reason code 3157).


class _Fields(TypedDict):
    identities: tuple[str, ...]
    exclusive: bool


@dataclass(frozen=True, slots=True)
class Members:
    """An identity set: its members, and whether its only member holds it exclusively."""

    identities: tuple[str, ...] = ()
    exclusive: bool = False

    def fields(self) -> _Fields:
        """As the fields of a Subscription."""
        return {"identities": self.identities, "exclusive": self.exclusive}


def on_creation(command: RegisterSubscriber) -> Members:
    """The identity set of a new subscription. Raises CommandError 3154 for an identity that does not join."""
    return _joined(Members(), command)


def on_registration(before: Subscription, command: RegisterSubscriber) -> Members:
    """The identity set of an existing subscription after *command*. Raises CommandError 3154, 3155, 3156."""
    return _joined(Members(before.identities, before.exclusive), command)


def already_joined(before: Subscription, command: RegisterSubscriber) -> Warned | None:
    """The warning 3157 if the identity of *command* has already joined *before* in the same way; None otherwise."""
    identity = command.sub_identity
    if identity is None or identity not in before.identities:
        return None
    joins = RegOpt.JOIN_EXCL if before.exclusive else RegOpt.JOIN_SHARED
    return Warned(mq.MQRCCF_ALREADY_JOINED, (("SubIdentity", identity),)) if command.has(joins) else None


def check_alteration(before: Subscription, after: Subscription, command: RegisterSubscriber, members: Members) -> None:
    """Check that no member changes a subscription that other members use.

    Raises CommandError 3155 where *command* gives an identity that would not be the only member, 3156 where it gives
    none and another holds the subscription exclusively. To renew Expiry is not a change.
    """
    if before == after:
        return
    identity = command.sub_identity
    if identity is not None and members.identities != (identity,):
        raise _error(mq.MQRCCF_SUBSCRIPTION_IN_USE, identity, "other identities use the subscription")
    if identity is None and before.exclusive:
        raise _error(mq.MQRCCF_SUBSCRIPTION_LOCKED, before.identities[0], "another identity holds the subscription")


def _joined(before: Members, command: RegisterSubscriber) -> Members:
    identity = command.sub_identity
    if identity is None:
        return before
    member = identity in before.identities
    alone = before.identities == (identity,)
    if command.has(RegOpt.JOIN_SHARED):
        if before.exclusive and not alone:
            raise _error(mq.MQRCCF_SUBSCRIPTION_LOCKED, identity, "another identity holds the subscription")
        return Members(before.identities if member else (*before.identities, identity))
    if command.has(RegOpt.JOIN_EXCL):
        if before.exclusive and not alone:
            raise _error(mq.MQRCCF_SUBSCRIPTION_LOCKED, identity, "another identity holds the subscription")
        if before.identities and not alone:
            raise _error(mq.MQRCCF_SUBSCRIPTION_IN_USE, identity, "other identities use the subscription")
        return Members((identity,), exclusive=True)
    if not member:
        why = "the identity is not in the set, and the command has no join option"
        raise _error(mq.MQRCCF_SUB_IDENTITY_ERROR, identity, why)
    return before


def _error(reason: int, identity: str, why: str) -> CommandError:
    return CommandError(reason, why=why, tags=(("SubIdentity", identity),))
