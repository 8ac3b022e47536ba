"""The rule that kept a publication from a subscription whose topic selects it, in words with the values."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from rfh2.captured import iso
from rfh2.errors import QPubSubError
from streams.operations import PassedOver, Published, Rule
from streams.selectors import Value, message_properties, registered_selector
from streams.subscriptions import PublicationFormat, Subscription
from streams.topic_objects import BASE_TOPIC, TopicObjects
from streams.topic_strings import SEPARATOR

_MOST_VALUES: Final = 8
_MOST_TEXT: Final = 60
_PROPERTIES: Final = "usr."


def rule_sentence(passed: PassedOver, topics: TopicObjects) -> str:
    """Why *passed* was passed over."""
    subscription, publication = passed.subscription, passed.publication
    match passed.rule:
        case Rule.BLOCKED:
            return block_sentence(passed.topic_string, topics)
        case Rule.REQUEST_ONLY:
            return "it is registered with PubOnReqOnly: it gets retained publications after ReqUpdate, and no others"
        case Rule.SCOPE:
            ours, theirs = _scope(subscription.options.local), _scope(publication.local)
            return f"the publication is {theirs}, the subscription is {ours}: for version 6 both must be the same"
        case Rule.STREAM | Rule.SUB_POINT:
            return place_sentence(subscription, publication.stream, publication.sub_point)
        case Rule.FILTER:
            return filter_sentence(subscription, publication)
        case Rule.LEVEL:
            level = subscription.sub_level
            return f"it has SUBLEVEL({level}); the subscriptions of another level take the publication first"
        case Rule.GROUP:
            return "another subscription of its group, with the same queue and CorrelId, is closer to the topic"
        case Rule.OWN_PUBLICATION:
            return "the publisher asked for OtherSubsOnly, and this queue is the publisher's own"
        case Rule.NEW_ONLY:
            at = iso(publication.published_at)
            return f"it is registered with NewPubsOnly, and the publication was retained before, at {at}"


def place_sentence(subscription: Subscription, stream: str | None, sub_point: str | None) -> str:
    """How the stream, or else the subscription point, of a publication and of a subscription differ."""
    if subscription.stream != stream:
        ours, theirs = _stream(subscription.stream), _stream(stream)
        header = " in an MQRFH" if subscription.format is PublicationFormat.RFH2 else ""  # MQRFH2 has no StreamName
        register = "without StreamName" if stream is None else f"with StreamName {stream}{header}"
    else:
        ours, theirs = _point(subscription.sub_point), _point(sub_point)
        register = f"with SubPoint {sub_point}" if sub_point else "without SubPoint"
    return f"the publication is on {theirs}, the subscription is to {ours}: register {register}"


def expired_sentence(at: datetime) -> str:
    """When a subscription expired."""
    return f"the subscription expired at {iso(at)}"


def block_sentence(topic: str, topics: TopicObjects) -> str:
    """Which topic object blocks wildcards at *topic*."""
    depth = topics.blocks().depth(topic)
    at = SEPARATOR.join(topic.split(SEPARATOR)[:depth])
    found = topics.at(at) if depth else None
    if found is None:
        return "WILDCARD(BLOCK) of a topic object keeps it from subscriptions with wildcards above it"
    return f"topic object {found.name} has WILDCARD(BLOCK): only subscriptions that name {at!r} itself reach it"


def disabled_sentence(topic: str, topics: TopicObjects) -> str:
    """Which topic object has PUB(DISABLED) for *topic*."""
    found = topics.resolve(topic).object_name
    for name in topics.covering(topic):
        holder = topics.get(name)
        if holder is not None and holder.pub is not None:
            found = name
            break
    where = "" if found == BASE_TOPIC else f" at {topics.require(found).topic_string!r}"
    return f"topic object {found}{where} has PUB(DISABLED): ALTER TOPIC({found}) PUB(ENABLED)"


def filter_sentence(subscription: Subscription, publication: Published) -> str:
    """The Filter of a subscription with the values that the publication has for it."""
    selector = subscription.selector or ""
    try:
        names = sorted(registered_selector(selector).names)
        lookup = message_properties(publication.message)
    except QPubSubError as error:
        return f"the filter {selector} cannot be read: {error}"
    values = ", ".join(_value(name, lookup(name)) for name in names[:_MOST_VALUES])
    more = "" if len(names) <= _MOST_VALUES else f", and {len(names) - _MOST_VALUES} more"
    return f"the filter {selector} is not true: {values}{more}"


def _value(name: str, value: Value | None) -> str:
    name = name.removeprefix(_PROPERTIES)
    if value is None:
        return f"{name} is not set"
    if isinstance(value, str):
        text = value if len(value) <= _MOST_TEXT else f"{value[:_MOST_TEXT]}..."
        return f"{name} is the string {text!r}"
    if isinstance(value, bool):
        return f"{name} is {str(value).upper()}"
    return f"{name} is {value.hex() if isinstance(value, bytes) else value}"


def _scope(local: bool) -> str:
    return "Local" if local else "not Local"


def _stream(stream: str | None) -> str:
    return "the default stream" if stream is None else f"stream {stream}"


def _point(sub_point: str | None) -> str:
    return f"subscription point {sub_point!r}" if sub_point else "the default subscription point"
