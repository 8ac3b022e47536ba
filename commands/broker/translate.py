"""From a command to operations, by the rules of the queued interface (guide 6.7; the table in 7.2).

``translate`` only reads. It returns a plan, or raises the CommandError for the response, and changes nothing.
A warning is about a single topic; the rest of the command is carried out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Final

from commands import model
from commands.broker.authority import Action
from commands.broker.context import CommandPlan, Context, InputQueueKind, Semantics, not_authorized, warnings_or_error
from commands.broker.identity import SubscriptionQuery, addressed, check_stream, stream_of, variable_user
from commands.broker.register import (
    full_pattern,
    full_topic,
    is_metatopic,
    no_correl_id,
    register,
    sub_point_prefix,
    subscriber_prefix,
)
from commands.headers.response import Warned
from rfh2 import constants as mq
from rfh2.errors import CommandError
from rfh2.mqi_constants import MQCI_NONE
from streams import operations as op
from streams.patterns import MANY, ONE, check_publication_topic
from streams.selectors import registered_selector
from streams.subscriptions import HIGHEST_PUB_LEVEL, PublicationFormat, Subscription, WildcardScheme
from streams.topic_strings import add_prefix


def translate(command: model.Command, context: Context) -> CommandPlan:
    """The operations that carry out *command*. If it raises CommandError, there are none (guide 6.7.6)."""
    wanted = InputQueueKind.CONTROL if command.on_control_queue else InputQueueKind.STREAM
    if context.place is not wanted:
        place = "the control queue" if wanted is InputQueueKind.CONTROL else "a stream queue"
        why = f"{command.word} must be put to {place}, not to {context.queue}"
        raise CommandError(mq.MQRCCF_INCORRECT_Q, why=why, tags=(("Command", command.word),))
    if context.is_own_publication:
        # RegSub refuses such a queue, but a namelist or an alias can be altered after it.
        why = f"this queue manager put it for a subscriber whose queue is {context.queue}: it is not published again"
        raise CommandError(mq.MQRCCF_INCORRECT_Q, why=why, tags=(("Command", command.word),))
    if isinstance(command, model.Publish):
        return _publish(command, context)
    if isinstance(command, model.RegisterSubscriber):
        return register(command, context)
    if isinstance(command, model.DeregisterSubscriber):
        return _deregister(command, context)
    if isinstance(command, model.RequestUpdate):
        return _request_update(command, context)
    if isinstance(command, model.DeletePublication):
        return _delete(command, context)
    return CommandPlan()  # RegPub and DeregPub do nothing, successfully (guide 7.5)


def _publish(command: model.Publish, context: Context) -> CommandPlan:
    prefix, publication, not_to = _publication(command, context)
    level = _level(command)
    scheme = context.scheme_of(command.header)
    operations = []
    refused: list[Warned] = []
    for topic in command.topics:
        if scheme is WildcardScheme.CHAR and (MANY in topic or ONE in topic):
            why = "a publication needs a topic without wildcards"
            raise CommandError(mq.MQRCCF_TOPIC_ERROR, topic, why, (("Topic", topic),))
        full = full_topic(prefix, topic, check_publication_topic)
        if not context.authority.may_use_topic(context.user, Action.PUBLISH, full):
            refused.append(not_authorized(topic))
            continue
        if not context.objects.topics.resolve(full).pub:
            raise CommandError(mq.MQRC_PUT_INHIBITED, topic, "PUB(DISABLED)", (("Topic", topic),))
        operations.append(op.PublishToTopic(full, publication, command.has(model.PubOpt.RETAIN_PUB), not_to, level))
    return CommandPlan(tuple(operations), warnings_or_error(refused, bool(operations)))


def _level(command: model.Publish) -> int:
    return HIGHEST_PUB_LEVEL if command.put is None else command.put.level


def _publication(command: model.Publish, context: Context) -> tuple[str, op.Publication, op.Excluded]:
    """What a Publish does not repeat for each topic: prefix, publication, and what is left out."""
    if command.user_tags and context.objects.qmgr.strict_tags:
        raise CommandError(mq.MQRC_RFH_PARM_ERROR, why=f"Publish takes no {command.user_tags[0][0]}")
    check_stream(command, context)
    correl_as_id = command.has(model.PubOpt.CORREL_AS_ID)
    if correl_as_id and context.mqmd.correl_id == MQCI_NONE:
        raise no_correl_id("PubOpt")
    own = command.has(model.PubOpt.OTHER_SUBS_ONLY)
    destination = context.subscriber_queue(command, correl_as_id, needed=own)
    sub_point = sub_point_prefix(command.sub_point, context)
    stream = context.stream_of_publisher(command.header)
    prefix = context.prefix_of_stream(stream)
    prefix = add_prefix(prefix, sub_point) if sub_point else prefix
    message, resolved = context.message, (context.priority, context.persistence)
    if (context.mqmd.priority, context.mqmd.persistence) != resolved:
        message = replace(message, mqmd=replace(context.mqmd, priority=resolved[0], persistence=resolved[1]))
    local = command.has(model.PubOpt.LOCAL)
    publication = op.Publication(message, context.now, context.expires_at, local, stream, command.sub_point)
    if command.put is not None and command.put.own_subs:
        return prefix, publication, frozenset(map(bytes.fromhex, command.put.own_subs))
    return prefix, publication, destination.key if own else None


def unrefused(command: model.Publish, context: Context) -> tuple[op.PublishToTopic, ...]:
    """The operation of each topic of a Publish, in order, as if no topic were refused: for an explanation.

    Raises CommandError where the command is refused for anything else but its topics.
    """
    prefix, publication, not_to = _publication(command, context)
    retain = command.has(model.PubOpt.RETAIN_PUB)
    level = _level(command)
    return tuple(
        op.PublishToTopic(add_prefix(prefix, topic), publication, retain, not_to, level) for topic in command.topics
    )


def _delete(command: model.DeletePublication, context: Context) -> CommandPlan:
    check_stream(command, context)
    operations = []
    refused: list[Warned] = []
    scheme, stream = context.scheme_of(command.header), context.stream_of_publisher(command.header)
    # Version 6's own broker kept the two scopes apart; the message brokers, which had MQRFH2, did not (guide 6.7.1).
    of_scope = context.semantics is Semantics.V6 and command.header is not PublicationFormat.RFH2
    for topic in command.topics:
        full = full_pattern(context.prefix_of_stream(stream), topic, scheme)
        if not context.may(Action.PUBLISH, full, scheme):
            refused.append(not_authorized(topic))
            continue
        operations.append(op.ClearRetained(full, scheme, model.DelOpt.LOCAL in command.options, stream, of_scope))
    return CommandPlan(tuple(operations), warnings_or_error(refused, bool(operations)))


def _deregister(command: model.DeregisterSubscriber, context: Context) -> CommandPlan:
    subscriptions, failures = (
        _named(command, context) if command.sub_name is not None else _by_combination(command, context)
    )
    operations: dict[bytes, op.Unsubscribe | op.AlterSubscription] = {}
    for topic, selector, subscription in subscriptions:
        try:
            operations[subscription.sub_id] = _leave(subscription, command)
        except CommandError as error:
            failures.append(_about(error, topic, selector))
    if failures and not operations:
        raise failures[0]
    done = tuple(operations.values())
    full = done[0].subscription if done and command.has(model.RegOpt.FULL_RESP) else None
    return CommandPlan(done, tuple(Warned(e.reason, e.tags) for e in failures), full)


_Found = list[tuple[str | None, str | None, Subscription]]
_PER_TOPIC = (mq.MQRCCF_NOT_REGISTERED, mq.MQRCCF_WRONG_USER, mq.MQRCCF_DUPLICATE_IDENTITY, mq.MQRCCF_NOT_AUTHORIZED)


def _named(command: model.DeregisterSubscriber, context: Context) -> tuple[_Found, list[CommandError]]:
    """The subscription of that name; topics and filters are used only for the error if the name is wrong."""
    wanted = _wanted(command, context)
    name = command.sub_name or ""
    for topic in command.topics or (None,):
        matching = addressed(context, name, replace(wanted, topic=topic, selector=None))
        if matching:
            return [(topic, None, matching[0])], []
    raise CommandError(mq.MQRCCF_NOT_REGISTERED, why="the subscription does not exist", tags=(("SubName", name),))


def _by_combination(command: model.DeregisterSubscriber, context: Context) -> tuple[_Found, list[CommandError]]:
    """The subscriptions for each combination of topic and filter, and an error for each without (guide 6.7.7, 3073).

    Each combination must find a subscription; under DeregAll it is enough that each topic and each filter finds one.
    """
    everything = command.has(model.RegOpt.DEREG_ALL)
    wanted = replace(_wanted(command, context), sub_point=command.sub_point or (None if everything else ""))
    topics: tuple[str | None, ...] = tuple(dict.fromkeys(command.topics)) or (None,)
    selectors: tuple[str | None, ...] = tuple(dict.fromkeys(command.filters)) or ((None,) if everything else ("",))
    if command.filters:
        _check_combinations(topics, selectors)
    found: _Found = []
    failures: list[CommandError] = []
    vain: list[tuple[str | None, str | None]] = []
    for topic, selector in product(topics, selectors):
        try:
            matching = addressed(context, None, replace(wanted, topic=topic, selector=selector), everything)
        except CommandError as error:
            if error.reason not in _PER_TOPIC:
                raise
            failures.append(_about(error, topic, selector))
            continue
        found += [(topic, selector, subscription) for subscription in matching]
        if not matching:
            vain.append((topic, selector))
    if everything:
        found_topics, found_selectors = {topic for topic, _, _ in found}, {selector for _, selector, _ in found}
        vain = [(t, f) for t, f in vain if t not in found_topics or f not in found_selectors]
        if command.sub_point is None:
            vain = [(t, f) for t, f in vain if (t, f) != (None, None)]
    damaged = {selector: _damage(selector) for selector in {selector for _, selector in vain}}
    failures += [damaged[selector] or _not_registered(topic, selector, command.sub_point) for topic, selector in vain]
    return found, failures


def _check_combinations(topics: Sequence[str | None], selectors: Sequence[str | None]) -> None:
    """Raise CommandError 3150 where the response for all combinations of topic and filter could be too long.

    The response names each combination that finds nothing. Therefore the product counts, not the length of the command.
    The guide sets no limit; this one is far more than any program needs.
    """
    if len(topics) * sum(len(selector or "") + _COMBINATION for selector in selectors) > _MOST_COMBINED:
        why = f"{len(topics)} topics with {len(selectors)} filters are more combinations than one command may name"
        raise CommandError(mq.MQRCCF_FILTER_ERROR, why=why)


# In characters of the response: the size of one combination without its filter, and the most for all of them.
_COMBINATION: Final = 100
_MOST_COMBINED: Final = 10_000_000


def _damage(selector: str | None) -> CommandError | None:
    """3150 where the filter is not valid, so that no subscription can have it."""
    if selector:
        try:
            registered_selector(selector)
        except CommandError as error:
            return error
    return None


def _not_registered(topic: str | None, selector: str | None, sub_point: str | None) -> CommandError:
    tags = (("SubPoint", sub_point),) if sub_point else ()
    return _about(
        CommandError(mq.MQRCCF_NOT_REGISTERED, topic, "no matching registration exists", tags), topic, selector
    )


def _about(error: CommandError, topic: str | None, selector: str | None) -> CommandError:
    """*error* with the topic and the filter that caused it."""
    tags = [("Topic", topic)] if topic is not None else []
    if selector:
        tags.append(("Filter", selector))
    return CommandError(error.reason, topic, error.why, (*tags, *error.tags))


def _leave(subscription: Subscription, command: model.DeregisterSubscriber) -> op.Unsubscribe | op.AlterSubscription:
    """The result of deregistering one subscription: its identity set may keep it (guide 6.7.2, SubIdentity)."""
    identity = command.sub_identity
    if identity is None:
        return op.Unsubscribe(subscription)
    if identity not in subscription.identities:
        why = f"{identity!r} is not in the identity set"
        raise CommandError(mq.MQRCCF_SUB_IDENTITY_ERROR, why=why, tags=(("SubIdentity", identity),))
    left = tuple(other for other in subscription.identities if other != identity)
    if not left and not command.has(model.RegOpt.LEAVE_ONLY):
        return op.Unsubscribe(subscription)
    return op.AlterSubscription(replace(subscription, identities=left, exclusive=False), send_retained=False)


def _request_update(command: model.RequestUpdate, context: Context) -> CommandPlan:
    topic = command.topics[0]
    if is_metatopic(topic) and context.semantics is Semantics.V7:
        raise CommandError(mq.MQRCCF_NO_RETAINED_MSG, topic, "metatopics are not provided (guide 7.5)")
    wanted = replace(_wanted(command, context), topic=topic, selector=command.filter or "")
    try:
        matching = addressed(context, command.sub_name, wanted)
    except CommandError as error:
        raise _about(error, topic, command.filter) from error
    if not matching:
        raise _damage(command.filter) or _not_registered(topic, command.filter, command.sub_point)
    subscription = matching[0]
    if not context.may(Action.RESUME, subscription.topic_string, subscription.wildcard):
        raise CommandError(mq.MQRCCF_NOT_AUTHORIZED, topic, "not authorized")
    return CommandPlan((op.RequestRetained(subscription),))


def _wanted(command: model.DeregisterSubscriber | model.RequestUpdate, context: Context) -> SubscriptionQuery:
    correl_as_id = command.has(model.RegOpt.CORREL_AS_ID)
    if correl_as_id and context.mqmd.correl_id == MQCI_NONE:
        raise no_correl_id("RegOpt")
    destination = context.subscriber_queue(command, correl_as_id, needed=command.sub_name is None)
    stream, scheme = stream_of(command, context), context.scheme_of(command.header)
    prefix = subscriber_prefix(stream, command.sub_point, context)
    for topic in command.topics:
        full_pattern(prefix, topic, scheme)
    return SubscriptionQuery(
        destination,
        None,
        sub_point=command.sub_point or "",
        stream=stream or "",
        variable_user=variable_user(command.options),
        scheme=scheme,
        header=command.header,
    )
