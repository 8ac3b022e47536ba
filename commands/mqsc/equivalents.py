"""Operations as MQSC commands (migration sources, 9.2, 11); what MQSC cannot say is a comment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from commands.broker.attribute_kinds import Choice, Number
from commands.broker.subscription_attributes import BY_KEYWORD, SubscriptionAttribute, in_scripts, values_of
from commands.broker.times import tenths_until
from commands.mqsc.script import Attribute, NoMqscFormError, Word, comment, keyword, statement
from rfh2.constants import MQ_SUB_NAME_LENGTH
from rfh2.mqi_constants import MQCI_NONE
from streams import operations as op
from streams.patterns import has_char_wildcards, has_topic_wildcards, parse_pattern
from streams.subscriptions import DeliveryPersistence, Subscription, WildcardScheme
from streams.topic_strings import is_present

# Unnamed subscriptions get names: MQSC, PCF and MQSUB know a durable subscription by its name alone.
PREFIX: Final = "QPS"
_HASH_DIGITS: Final = 8
BLANK_TOPIC: Final = "a topic string that begins with a blank counts as none (guide 2.5.2)"
# The order of attributes in a script.
_IN_SCRIPTS: Final = in_scripts(
    "TOPICSTR",
    "WSCHEMA",
    "DEST",
    "DESTQMGR",
    "DESTCORL",
    "PSPROP",
    "VARUSER",
    "SUBUSER",
    "SELECTOR",
    "USERDATA",
    "SUBSCOPE",
    "REQONLY",
    "PUBACCT",
    "PUBAPPID",
    "PUBPRTY",
    "SUBLEVEL",
    "EXPIRY",
)
_FIXED: Final = tuple(each.keyword for each in _IN_SCRIPTS if each.fixed)


@dataclass(frozen=True, slots=True)
class OperationContext:
    """What a dialect needs to know beside an operation.

    qmgr: the queue manager's name. now: when it is carried out, UTC. before: the subscription as it was, if there was
    one. cleared: the topics whose retained publications it took away. no_alter: the RegSub said NoAlter.
    """

    qmgr: str
    now: datetime
    before: Subscription | None = None
    cleared: tuple[str, ...] = ()
    no_alter: bool = False


@dataclass(frozen=True, slots=True)
class OperationInContext:
    """One operation, and what is around it."""

    operation: op.Operation
    context: OperationContext


def to_mqsc(operation: op.Operation, context: OperationContext) -> list[str]:
    """The lines of *operation* in an MQSC script."""
    try:
        return _lines(operation, context)
    except NoMqscFormError as error:
        return [comment(f"{type(operation).__name__}: {error}")]


def _lines(operation: op.Operation, context: OperationContext) -> list[str]:
    match operation:
        case op.Subscribe(subscription):
            notes = list(_lost(subscription))
            if subscription.options.new_pubs_only and not subscription.options.pub_on_req_only:
                notes.append("DEFINE SUB delivers what is retained; NewPubsOnly has no keyword")
            head = f"DEFINE {keyword('SUB', sub_name(subscription))}"
            return [comment(note) for note in notes] + statement(head, attributes(subscription, context))
        case op.AlterSubscription(subscription):
            return _alter(subscription, context)
        case op.Unsubscribe(subscription):
            return statement(f"DELETE {keyword('SUB', sub_name(subscription))}", ())
        case op.ClearRetained():
            return _clear(operation, context)
        case op.PublishToTopic(topic_string):
            return [comment(f"no MQSC command publishes; see --to mqi: a put to topic '{topic_string}'")]
        case op.RequestRetained(subscription):
            name = sub_name(subscription)
            return [comment(f"no MQSC command asks for retained publications; see --to mqi: MQSUBRQ on '{name}'")]


def attributes(subscription: Subscription, context: OperationContext) -> list[Attribute]:
    """What DEFINE SUB says of *subscription*: everything that its defaults would make different (9.2).

    Raises NoMqscFormError for a topic string that counts as none.
    """
    if not is_present(subscription.topic_string):
        raise NoMqscFormError(BLANK_TOPIC)
    return [(each.keyword, _written(each, value)) for each, value in said(subscription, context, _IN_SCRIPTS)]


def said(
    subscription: Subscription,
    context: OperationContext,
    attributes: Iterable[SubscriptionAttribute],
    always: frozenset[str] = frozenset(),
) -> Iterator[tuple[SubscriptionAttribute, Any]]:
    """Those *attributes* that differ from what DEFINE SUB gives, with their values; those in *always* in any case."""
    values = values_of(subscription, tenths_until(subscription.expires_at, context.now))
    values["SELECTOR"] = subscription.selector or None
    for each in attributes:
        value = values[each.keyword]
        default = context.qmgr if each.keyword == "DESTQMGR" else each.default
        keeps_correl_id = each.keyword == "DESTCORL" and subscription.keep_correl_id
        if value != default or each.always or keeps_correl_id or each.keyword in always:
            yield each, value


def _written(attribute: SubscriptionAttribute, value: Any) -> str | int:
    """The value as a script has it: words of MQSC go without quotes."""
    shown = attribute.kind.show(value)
    if isinstance(shown, int):
        return shown
    return Word(shown) if isinstance(attribute.kind, Choice | Number) else str(shown)


def _default(keyword: str) -> str | int:
    """What ALTER SUB says of an attribute that DEFINE SUB leaves out."""
    attribute = BY_KEYWORD[keyword]
    return _written(attribute, attribute.default) if isinstance(attribute.kind, Choice | Number) else ""


def _alter(subscription: Subscription, context: OperationContext) -> list[str]:
    """ALTER SUB with what changes; without the subscription as it was, with everything that can change."""
    before = context.before
    notes = list(_lost(subscription)) if before is None else list(_lost_by_altering(before, subscription))
    wanted = dict(attributes(subscription, context))
    had = {} if before is None else dict(attributes(before, context))
    changed = [(name, value) for name, value in wanted.items() if had.get(name) != value and name not in _FIXED]
    gone = [(name, _default(name)) for name in had if name not in wanted and name not in _FIXED]
    for name in _FIXED:
        if before is not None and wanted.get(name) != had.get(name):
            notes.append(f"ALTER SUB cannot change {name}: delete the subscription and define it again")
    lines = [comment(note) for note in notes]
    name = sub_name(subscription if before is None else before)
    if not changed and not gone:
        return [*lines, comment(f"nothing that MQSC knows changes in subscription '{name}'")]
    return lines + statement(f"ALTER {keyword('SUB', name)}", [*changed, *gone])


def _clear(operation: op.ClearRetained, context: OperationContext) -> list[str]:
    lines = []
    topics, wild = topics_cleared(operation, context)
    if wild:
        lines.append(comment(f"CLEAR TOPICSTR: {wildcards_note(operation, topics)}"))
    if operation.local:
        lines.append(comment("Local: MQSC has no keyword for it; see --to pcf, ClearScope"))
    for topic in topics:
        lines += statement(f"CLEAR {keyword('TOPICSTR', topic)} CLRTYPE(RETAINED)", ())
    return lines


def _lost(subscription: Subscription) -> list[str]:
    """What DEFINE SUB cannot say of *subscription* (migration sources, 9.3)."""
    options = subscription.options
    notes = []
    if is_made_up(subscription):
        notes.append("the subscription has no name; this one is made of its traditional identity")
    if options.persistence is not DeliveryPersistence.AS_PUBLISHED:
        notes.append(f"persistence {options.persistence}: DEFINE SUB delivers as published")
    if subscription.identities:
        kind = "exclusive" if subscription.exclusive else "shared"
        notes.append(f"identity set ({kind}) {', '.join(subscription.identities)}: has no equivalent")
    if options.incl_stream_name:
        notes.append("InclStreamName: subscribers that read MQPSStreamName find the stream in the topic string")
    return notes


def _lost_by_altering(before: Subscription, after: Subscription) -> list[str]:
    notes = []
    if before.name != after.name:
        notes.append(f"MQSC cannot name a subscription that has no name: '{after.name}'")
    if (before.identities, before.exclusive) != (after.identities, after.exclusive):
        notes.append(f"identity set becomes {', '.join(after.identities) or 'empty'}: has no equivalent")
    if before.options.persistence is not after.options.persistence:
        notes.append(f"persistence becomes {after.options.persistence}: has no keyword")
    return notes


def sub_name(subscription: Subscription) -> str:
    """The subscription's name, or one made of its traditional identity, stream and topic string.

    Generated names differ where a queue manager sees a difference: two subscriptions of one identity to one topic
    differ in user, selector or subscription point, of which the digits at the end are a digest. Too long a name is cut,
    and then the digits are a digest of all of it.
    """
    if subscription.name is not None:
        return subscription.name
    correl_id = "-" if subscription.correl_id == MQCI_NONE else subscription.correl_id.hex().upper()
    parts = (subscription.dest_qmgr, subscription.dest_queue, correl_id, subscription.stream or "-")
    whole = ":".join((PREFIX, *parts, subscription.topic_string))
    rest = (subscription.user, subscription.selector or "", subscription.sub_point or "")
    digest = sha256("\0".join((whole, *rest)).encode()).hexdigest()[:_HASH_DIGITS]
    return f"{whole[: MQ_SUB_NAME_LENGTH - _HASH_DIGITS - 1]}:{digest}"


def is_made_up(subscription: Subscription) -> bool:
    """Whether the name of *subscription* is one that ``sub_name`` makes."""
    return subscription.name is None


def wildcards_note(operation: op.ClearRetained, topics: tuple[str, ...]) -> str:
    """What is said where wildcards stood for *topics*."""
    count = "one topic" if len(topics) == 1 else f"{len(topics) or 'no'} topics"
    return f"wildcards cannot be given; '{operation.topic_string}' stood for {count} with something retained"


def topics_cleared(operation: op.ClearRetained, context: OperationContext) -> tuple[tuple[str, ...], bool]:
    """The topic strings to clear, and whether they come from wildcards.

    Wildcards stand for the topics that had a retained publication when the command came.
    """
    topic = operation.topic_string
    wild = has_topic_wildcards(topic) if operation.wildcard is WildcardScheme.TOPIC else has_char_wildcards(topic)
    if wild:
        return context.cleared, True
    return (parse_pattern(topic, operation.wildcard).literal_topic,), False
