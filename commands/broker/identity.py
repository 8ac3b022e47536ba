"""Which registered subscription a command refers to, and whether its sender may change it (guide 6.7.2, 6.7.4, 6.7.5).

A subscription is found in one of two ways. By name: SubName takes precedence over everything except the user id. By
traditional identity: queue manager, queue and correlation identifier, then topic string, subscription point and filter.
Where the guide contradicts itself, docs/conformance.md has the decision:

    asked                                        version 7                    version 6
    named subscription, by identity alone        not found                    found
    identity belongs to another user             3151; RegSub makes another   3078
    SubName of another user, no VariableUserId   3078                         3078

Also which stream an MQRFH or PCF command means by MQPSStreamName (guide 6.1, 7.2; wire formats 2.5). The stream of a
subscriber determines the prefix of its topics. The queue to which a publisher puts determines its stream; a different
stream name in the command is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from commands.broker.authority import queue_on_the_way
from commands.broker.context import Context, Destination, Semantics
from commands.broker.objects import DEFAULT_STREAM, is_object_name
from commands.model import DeletePublication, Publish, QueuedCommand, RegOpt
from rfh2 import constants as mq
from rfh2.errors import CommandError
from streams.patterns import is_read_alike, written_topic
from streams.subscriptions import PublicationFormat, Subscription, WildcardScheme

NAME_SEPARATOR: Final = ":"


def stream_of(command: QueuedCommand, context: Context) -> str | None:
    """The stream that a subscriber's command means; None for the default one.

    Raises CommandError 3071 for a name that is not valid for a stream, 3082 for a stream that does not exist.
    """
    name = command.stream_name
    if name is None or name == DEFAULT_STREAM:
        return None
    _check_name(name)
    if not context.is_stream(name):
        tags = (("StreamName", name),)
        raise CommandError(mq.MQRCCF_UNKNOWN_STREAM, why="it is not in the queue namelist", tags=tags)
    return name


def check_stream(command: Publish | DeletePublication, context: Context) -> None:
    """Raise CommandError 3071 or 3075 where a command names a stream other than that of the queue it was put to."""
    name = command.stream_name
    if name is None:
        return
    _check_name(name)
    if name != context.queue:
        tags = (("StreamName", name),)
        raise CommandError(mq.MQRCCF_INCORRECT_STREAM, why=f"it was put to {context.queue}", tags=tags)


def name_in_stream(name: str, stream: str) -> str:
    """The name in version 7 of what version 6 called *name* on a stream other than the default one (guide 7.6.1).

    Names were unique in a stream, and are now unique in the queue manager; migration appends the stream's name. The
    guide does not say which characters stand between the two.
    """
    return f"{name}{NAME_SEPARATOR}{stream}"


def name_without_stream(name: str, stream: str | None) -> str:
    """A program's own name for a subscription that migration may have renamed: the inverse of ``name_in_stream``."""
    return name if stream is None else name.removesuffix(f"{NAME_SEPARATOR}{stream}")


def _check_name(name: str) -> None:
    if not is_object_name(name):
        raise CommandError(mq.MQRCCF_STREAM_ERROR, why="not a valid name", tags=(("StreamName", name),))


@dataclass(frozen=True, slots=True)
class SubscriptionQuery:
    """The values by which a command finds a subscription; None in topic, selector, sub_point or stream means any.

    topic: as the subscriber wrote it, without the prefix of a stream or a subscription point. selector: the Filter, ""
    for a subscription without one. sub_point, stream: "" for the default one. scheme: of the wildcards in topic.
    header: of the command; None for any.
    """

    destination: Destination
    topic: str | None
    selector: str | None = ""
    sub_point: str | None = ""
    stream: str | None = ""
    variable_user: bool = False
    scheme: WildcardScheme = WildcardScheme.TOPIC
    header: PublicationFormat | None = None

    def fits(self, subscription: Subscription) -> bool:
        """Whether *subscription*, found by its traditional identity, also has the other values."""
        return (
            (self.topic is None or self._is_topic_of(subscription))
            and (self.selector is None or (subscription.selector or "") == self.selector)
            and (self.sub_point is None or (subscription.sub_point or "") == self.sub_point)
            and (self.stream is None or (subscription.stream or "") == self.stream)
        )

    def _is_topic_of(self, subscription: Subscription) -> bool:
        """Whether the topics are the same: the same text, and also the same meaning if the schemes differ.

        A subscription that was migrated from version 6 keeps the character-based wildcards that an MQRFH2 had there
        (guide 2.5.1.1). For its program, which uses the same header as when it registered, the same text is enough.
        """
        if written_topic(subscription) != self.topic:
            return False
        if subscription.wildcard is self.scheme or subscription.format is self.header:
            return True
        return is_read_alike(subscription.topic_string)


def by_name(context: Context, name: str, stream: str | None) -> Subscription | None:
    """The subscription called *name*, if its user asks for it, or any user with VariableUserId.

    stream: what it subscribes to, None for the default one. In version 6, names were unique for each stream. Migration
    appends the stream's name (guide 7.6.1); such a subscription is found by either name.

    Raises CommandError 3078 where it belongs to another user, 3081 where VariableUserId allows the other user but
    authority does not.
    """
    subscription = _named(context, name, stream)
    if subscription is None or subscription.user == context.user:
        return subscription
    if not subscription.options.variable_user_id:
        raise belongs_to(subscription.user, f"subscription {name}", (("SubName", name),))
    _check_authority(context, subscription, (("SubName", name),))
    return subscription


def belongs_to(owner: str, what: str, tags: tuple[tuple[str, str], ...] = ()) -> CommandError:
    """3078 with the user id of the owner, which a JMS client of version 6 uses (IBM MQ, reason code 3078)."""
    why = f"{what} belongs to user {owner}"
    return CommandError(mq.MQRCCF_DUPLICATE_IDENTITY, why=why, tags=(*tags, ("UserId", owner)))


def _named(context: Context, name: str, stream: str | None) -> Subscription | None:
    space = context.space
    if stream is not None and context.semantics is Semantics.V7:
        migrated = space.by_name(name_in_stream(name, stream))
        if migrated is not None and migrated.stream == stream:
            return migrated
    return space.by_name(name, stream)


def by_identity(context: Context, wanted: SubscriptionQuery) -> list[Subscription]:
    """The subscriptions that fit *wanted* and that its sender may change, in the order of registration.

    Raises CommandError 3151 (version 6: 3078) where some fit but all belong to other users.
    """
    fitting = _fitting(context, wanted)
    if context.semantics is Semantics.V7:
        fitting = [s for s in fitting if s.name is None]
    own = [s for s in fitting if _may_change(context, s, wanted.variable_user)]
    if fitting and not own:
        if context.semantics is Semantics.V6:
            raise belongs_to(fitting[0].user, "what is registered")
        raise CommandError(mq.MQRCCF_WRONG_USER, why=f"registered by user {fitting[0].user}")
    return own


def named_twin(context: Context, wanted: SubscriptionQuery) -> Subscription | None:
    """A named subscription of this user with the same traditional identity, topic and filter."""
    for subscription in _fitting(context, wanted):
        if subscription.name is not None and subscription.user == context.user:
            return subscription
    return None


def _fitting(context: Context, wanted: SubscriptionQuery) -> list[Subscription]:
    return [s for s in context.space.by_identity(wanted.destination.key, wanted.topic) if wanted.fits(s)]


def addressed(
    context: Context, name: str | None, wanted: SubscriptionQuery, everything: bool = False
) -> list[Subscription]:
    """The subscriptions that DeregSub and ReqUpdate mean: the named one, or those of the traditional identity.

    everything: DeregAll. Otherwise, if several users have such a subscription, VariableUserId or the user decides.

    Raises CommandError 3153 where *name* is given, no subscription has it, and a subscription of that traditional
    identity has no name; 3081 where VariableUserId allows the sender but authority does not; and what ``by_name`` and
    ``by_identity`` raise.
    """
    if name is None:
        fitting = by_identity(context, wanted)
        if not everything:
            fitting = _meant(context, fitting, wanted)
        for subscription in fitting:
            _check_authority(context, subscription)
        return fitting
    named = by_name(context, name, wanted.stream or None)
    if named is not None:
        return [named]
    if any(subscription.name is None for subscription in _fitting(context, wanted)):
        why = "a matching subscription has no name"
        raise CommandError(mq.MQRCCF_SUB_NAME_ERROR, why=why, tags=(("SubName", name),))
    return []


def _meant(context: Context, fitting: list[Subscription], wanted: SubscriptionQuery) -> list[Subscription]:
    """Choose by VariableUserId if the command has it, otherwise by the user id (guide 6.7.2, VariableUserId)."""
    if wanted.variable_user:
        fitting = [s for s in fitting if s.options.variable_user_id] or fitting
    return [s for s in fitting if s.user == context.user] or fitting


def variable_user(options: tuple[RegOpt, ...] | None) -> bool:
    """Whether the command says VariableUserId."""
    return options is not None and RegOpt.VARIABLE_USER_ID in options


def _check_authority(context: Context, subscription: Subscription, tags: tuple[tuple[str, str], ...] = ()) -> None:
    """Check that a user other than the subscription's may put to its queue (guide 6.7.5, SubName)."""
    queue = queue_on_the_way(subscription.dest_qmgr, subscription.dest_queue, context.qmgr)
    if subscription.user != context.user and not context.authority.may_put(context.user, queue):
        raise CommandError(mq.MQRCCF_NOT_AUTHORIZED, why=f"no authority to put to {queue}", tags=tags)


def _may_change(context: Context, subscription: Subscription, says_variable: bool) -> bool:
    if subscription.user == context.user:
        return True
    return subscription.options.variable_user_id and says_variable
