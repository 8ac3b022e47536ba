"""From a command to operations: what the queued interface's rules make of it (guide 6.7; the table in 7.2).

``translate`` only reads. It ends in a plan, or in the CommandError that answers the command, with nothing done. Warnings
belong to single topics; the rest of the command stands.
"""

from __future__ import annotations

from dataclasses import replace

from commands.authority import Action
from commands.context import Context, Place
from commands.identity import Wanted, addressed, variable_user
from commands.model import (
    Command,
    DeletePublication,
    DelOpt,
    DeregisterSubscriber,
    Publish,
    PubOpt,
    RegisterSubscriber,
    RegOpt,
    RequestUpdate,
)
from commands.plan import Plan, Warned, not_authorized, warnings_or_error
from commands.registration import is_metatopic, register, scheme_of, sub_point_prefix
from rfh2.constants import (
    MQRC_PUT_INHIBITED,
    MQRCCF_CORREL_ID_ERROR,
    MQRCCF_DUPLICATE_IDENTITY,
    MQRCCF_INCORRECT_Q,
    MQRCCF_NO_RETAINED_MSG,
    MQRCCF_NOT_AUTHORIZED,
    MQRCCF_NOT_REGISTERED,
    MQRCCF_SUB_IDENTITY_ERROR,
    MQRCCF_WRONG_USER,
)
from rfh2.errors import CommandError
from streams.operations import (
    AlterSubscription,
    ClearRetained,
    Publication,
    PublishToTopic,
    RequestRetained,
    Unsubscribe,
)
from streams.patterns import parse_pattern
from streams.subscriptions import MQCI_NONE, Subscription
from streams.topic_strings import add_prefix, check_topic_string
from streams.topic_wildcards import check_publication_topic


def translate(command: Command, context: Context) -> Plan:
    """The operations that carry out *command*. Raises CommandError: then nothing is to be done (guide 6.7.6)."""
    wanted = Place.CONTROL if command.on_control_queue else Place.STREAM
    if context.place is not wanted:
        place = "the control queue" if wanted is Place.CONTROL else "a stream queue"
        raise CommandError(MQRCCF_INCORRECT_Q, why=f"{command.word} belongs on {place}, not on {context.queue}")
    if isinstance(command, Publish):
        return _publish(command, context)
    if isinstance(command, RegisterSubscriber):
        return register(command, context)
    if isinstance(command, DeregisterSubscriber):
        return _deregister(command, context)
    if isinstance(command, RequestUpdate):
        return _request_update(command, context)
    if isinstance(command, DeletePublication):
        return _delete(command, context)
    return Plan()  # RegPub and DeregPub do nothing, successfully (guide 7.5)


def _publish(command: Publish, context: Context) -> Plan:
    correl_as_id = command.has(PubOpt.CORREL_AS_ID)
    if correl_as_id and context.mqmd.correl_id == MQCI_NONE:
        raise CommandError(MQRCCF_CORREL_ID_ERROR, why="CorrelAsId, and the CorrelId of the message is zero")
    own = command.has(PubOpt.OTHER_SUBS_ONLY)
    destination = context.subscriber_queue(command, correl_as_id, needed=own)
    sub_point = sub_point_prefix(command.sub_point, context)
    prefix = add_prefix(context.stream_prefix, sub_point) if sub_point else context.stream_prefix
    mqmd = replace(context.mqmd, priority=context.priority, persistence=context.persistence)
    publication = Publication(
        replace(context.message, mqmd=mqmd), context.now, context.expires_at, command.has(PubOpt.LOCAL)
    )
    operations = []
    refused: list[Warned] = []
    for topic in command.topics:
        check_publication_topic(topic)
        full = add_prefix(prefix, topic)
        if not context.objects.topics.resolve(full).pub:
            raise CommandError(MQRC_PUT_INHIBITED, topic, "PUB(DISABLED)", (("Topic", topic),))
        if not context.authority.may_use_topic(context.user, Action.PUBLISH, full):
            refused.append(not_authorized(topic))
            continue
        operations.append(
            PublishToTopic(full, publication, command.has(PubOpt.RETAIN_PUB), destination.key if own else None)
        )
    return Plan(tuple(operations), warnings_or_error(refused, bool(operations)))


def _delete(command: DeletePublication, context: Context) -> Plan:
    operations = []
    refused: list[Warned] = []
    scheme = scheme_of(command.header)
    for topic in command.topics:
        full = add_prefix(context.stream_prefix, check_topic_string(topic))
        parse_pattern(full, scheme)
        if not context.authority.may_use_topic(context.user, Action.PUBLISH, full):
            refused.append(not_authorized(topic))
            continue
        operations.append(ClearRetained(full, scheme, DelOpt.LOCAL in command.options))
    return Plan(tuple(operations), warnings_or_error(refused, bool(operations)))


def _deregister(command: DeregisterSubscriber, context: Context) -> Plan:
    everything = command.has(RegOpt.DEREG_ALL)
    wanted = _wanted(command, context)
    sub_point = command.sub_point or (None if everything else "")
    selectors: tuple[str | None, ...] = command.filters or ((None,) if everything else ("",))
    targets: dict[bytes, Subscription] = {}
    failures: list[CommandError] = []
    for topic in dict.fromkeys(command.topics) or (None,):
        for selector in selectors:
            asked = replace(wanted, topic=topic, selector=selector, sub_point=sub_point)
            try:
                found = addressed(context, command.sub_name, asked)
                if not found and (topic is not None or selector is not None or sub_point is not None):
                    raise CommandError(MQRCCF_NOT_REGISTERED, topic, "nothing of the kind is registered")
            except CommandError as error:
                if error.reason not in _PER_TOPIC:
                    raise
                failures.append(_about(error, topic, selector))
            else:
                targets.update((subscription.sub_id, subscription) for subscription in found)
    if failures and not targets:
        raise failures[0]
    operations = [_leave(subscription, command) for subscription in targets.values()]
    done = tuple(operation for operation in operations if operation is not None)
    full = next(iter(targets.values())) if targets and command.has(RegOpt.FULL_RESP) else None
    return Plan(done, tuple(Warned(e.reason, e.tags) for e in failures), full)


_PER_TOPIC = (MQRCCF_NOT_REGISTERED, MQRCCF_WRONG_USER, MQRCCF_DUPLICATE_IDENTITY)


def _about(error: CommandError, topic: str | None, selector: str | None) -> CommandError:
    tags = [("Topic", topic)] if topic is not None else []
    if selector:
        tags.append(("Filter", selector))
    return CommandError(error.reason, topic, error.why, (*tags, *error.tags))


def _leave(subscription: Subscription, command: DeregisterSubscriber) -> Unsubscribe | AlterSubscription | None:
    """What deregistering one subscription comes to: its identity set may keep it (guide 6.7.2, SubIdentity)."""
    identity = command.sub_identity
    if identity is None:
        return Unsubscribe(subscription)
    if identity not in subscription.identities:
        why = f"{identity!r} is not in the identity set"
        raise CommandError(MQRCCF_SUB_IDENTITY_ERROR, why=why, tags=(("SubIdentity", identity),))
    left = tuple(other for other in subscription.identities if other != identity)
    if not left and not command.has(RegOpt.LEAVE_ONLY):
        return Unsubscribe(subscription)
    return AlterSubscription(replace(subscription, identities=left, exclusive=False), send_retained=False)


def _request_update(command: RequestUpdate, context: Context) -> Plan:
    if is_metatopic(command.topics[0]):
        raise CommandError(MQRCCF_NO_RETAINED_MSG, command.topics[0], "metatopics are not provided (guide 7.5)")
    wanted = replace(_wanted(command, context), topic=command.topics[0], selector=command.filter or "")
    found = addressed(context, command.sub_name, wanted)
    if not found:
        raise CommandError(
            MQRCCF_NOT_REGISTERED,
            command.topics[0],
            "nothing of the kind is registered",
            (("Topic", command.topics[0]),),
        )
    subscription = found[0]
    if not context.authority.may_use_topic(context.user, Action.RESUME, subscription.topic_string):
        raise CommandError(MQRCCF_NOT_AUTHORIZED, command.topics[0], "not authorized", (("Topic", command.topics[0]),))
    return Plan((RequestRetained(subscription),))


def _wanted(command: DeregisterSubscriber | RequestUpdate, context: Context) -> Wanted:
    correl_as_id = command.has(RegOpt.CORREL_AS_ID)
    if correl_as_id and context.mqmd.correl_id == MQCI_NONE:
        raise CommandError(MQRCCF_CORREL_ID_ERROR, why="CorrelAsId, and the CorrelId of the message is zero")
    destination = context.subscriber_queue(command, correl_as_id, needed=command.sub_name is None)
    for topic in command.topics:
        check_topic_string(topic)
    sub_point_prefix(command.sub_point, context)
    return Wanted(destination, None, sub_point=command.sub_point or "", variable_user=variable_user(command.options))
