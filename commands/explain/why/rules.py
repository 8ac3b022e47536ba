"""What kept a publication back, in words with the values: a rule, the publish exit, or the state of a queue.

The reasons are fixed, and none of them is the exit's own (guide 4.6.2): what it discards is ``blocked``, for it stands
between topic and subscription as a WILDCARD(BLOCK) does; what it has put on the dead-letter queue is ``dead-letter``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from commands.broker.objects import Objects
from commands.broker.puts import Exited, ExitFate
from commands.explain.why.verdict import Reason
from rfh2.captured import iso
from rfh2.constants import feedback_text
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


def exit_reason(exited: Exited) -> Reason:
    """The reason of the answer about *exited*; one that was sent elsewhere is delivered."""
    if exited.fate is ExitFate.DISCARDED:
        return Reason.BLOCKED
    return Reason.DEAD_LETTER if exited.fate is ExitFate.DEAD_LETTER else Reason.DELIVERED


def exit_sentence(exited: Exited, here: str) -> str:
    """What the exit did. here: the queue manager."""
    if exited.fate is ExitFate.DIVERTED:
        there = "" if exited.qmgr == here else f" of queue manager {exited.qmgr}"
        return f"the publish exit sent it to queue {exited.queue}{there}"
    text = feedback_text(exited.feedback)
    because = f"Feedback {exited.feedback}{text and f', {text}'}"
    if exited.fate is ExitFate.DISCARDED:
        return f"the publish exit suppressed it, and Report says MQRO_DISCARD_MSG ({because})"
    return f"the publish exit suppressed it: it is on {exited.queue} ({because})"


QueueState = Callable[[str, str], tuple[Reason, str] | None]
"""What keeps a publication from a queue, by queue manager and queue, and the sentence; None where nothing does."""


def by_definition(objects: Objects) -> QueueState:
    """What the definitions of a queue manager say, without its messages."""

    def state(qmgr: str, queue: str) -> tuple[Reason, str] | None:
        if qmgr != objects.qmgr.name:
            return Reason.TRANSMISSION, transmission_sentence(objects, qmgr)
        found = objects.queue(queue)
        if found is None:
            if objects.qmgr.strict:
                return Reason.QUEUE_GONE, f"queue {queue} is not defined: DEFINE QLOCAL({queue})"
            return None
        if not found.put_enabled:
            why = f"queue {queue} has PUT(DISABLED), so the publication becomes a dead letter (2051)"
            return Reason.DEAD_LETTER, f"{why}: ALTER QLOCAL({queue}) PUT(ENABLED)"
        if not found.max_depth:
            return Reason.QUEUE_FULL, f"queue {queue} has MAXDEPTH(0): it takes no message"
        return None

    return state


def transmission_sentence(objects: Objects, qmgr: str) -> str:
    """What happens to a publication for another queue manager."""
    queue = objects.queues.get(qmgr)
    goes = f"the subscriber's queue is at queue manager {qmgr}: the publication goes to transmission queue {qmgr} here"
    if queue is None or not queue.transmission:
        return f"{goes}, which is not defined as one; check QMgrName and ReplyToQMgr of the RegSub"
    return f"{goes}, and a channel has to take it"
