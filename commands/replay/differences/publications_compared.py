"""Which rule explains a publication that a subscription gets in one version only, or with different content.

The subscription is the same in both versions: the caller has asked ``Causes`` before.
"""

from __future__ import annotations

from commands.headers.registry import parse
from commands.model import Command
from commands.replay.differences.commands_compared import Explained, of_publisher, of_unlisted_stream
from commands.replay.differences.model import Change
from commands.replay.differences.observe import ComparedMessage
from rfh2.errors import QPubSubError
from streams.operations import Delivery
from streams.patterns import parse_pattern
from streams.subscriptions import PublicationFormat
from streams.topic_strings import SEPARATOR, is_within


def of_delivery(step: ComparedMessage, delivery: Delivery, change: Change) -> Explained:
    """Why one version alone delivers. change: GAINED or LOST."""
    explained = of_unlisted_stream(step) or of_publisher(step)
    if explained is None and change is Change.GAINED:
        explained = _of_scope(delivery)
    if explained is None:
        explained = _of_place(delivery)
    if explained is None and delivery.from_retained:
        explained = _of_retained(delivery, change)
    return explained


def of_content(step: ComparedMessage, old: Delivery, new: Delivery, together: tuple[Delivery, ...]) -> Explained:
    """Why both deliver, and not the same message. together: what version 6 put in one message with *old*."""
    if (explained := of_publisher(step)) is not None:
        return explained
    if len(together) > 1:
        return "D11", "version 6 names all topics in one message"
    if together and together[0].subscription.sub_id != old.subscription.sub_id:
        return "D12", "version 6 puts one message, as another of its subscriptions has it"
    if old.from_retained and new.from_retained:
        return _of_place(new) or _of_retained(old, Change.LOST)
    return None


def _of_scope(delivery: Delivery) -> Explained:
    subscription, publication = delivery.subscription, delivery.publication
    if publication.local and not subscription.options.local:
        return "D01", "the publication is local, the subscription is not"
    if subscription.options.local and not publication.local:
        return "D02", "the subscription is local, the publication is not"
    return None


def _of_place(delivery: Delivery) -> Explained:
    """Whether version 6 keeps the two apart by subscription point or stream."""
    subscription, publication = delivery.subscription, delivery.publication
    if publication.sub_point != subscription.sub_point:
        return "D22", f"published on subscription point {publication.sub_point or 'none'}"
    if publication.stream is not None and _is_mqrfh2(delivery):
        return "D23", f"an MQRFH2 publisher put to {publication.stream}"
    if publication.stream != subscription.stream:
        where = publication.stream or "the default stream"
        if _from_outside(delivery):
            return "D08", f"published on {where}"
        return "D09", f"the topic is one of {where}, too"
    return None


def _from_outside(delivery: Delivery) -> bool:
    """Whether the stream's topic object, with WILDCARD(BLOCK), would keep the two apart; else their topics are one."""
    subscription, publication = delivery.subscription, delivery.publication
    if publication.stream is None:
        return not subscription.prefix
    command = _command_of(delivery)
    written = command.topics if command is not None else ()
    ends = (SEPARATOR + topic for topic in written if delivery.topic_string.endswith(SEPARATOR + topic))
    prefix = delivery.topic_string.removesuffix(next(ends, delivery.topic_string))
    pattern = parse_pattern(subscription.topic_string, subscription.wildcard)
    return not prefix or not is_within(prefix, pattern.literal_topic)


def _of_retained(delivery: Delivery, change: Change) -> Explained:
    """Why one version alone still has what was published where the subscription is.

    Under version 6 an MQRFH2 publisher's DeletePub, too, is to no stream; a DeletePub otherwise deletes more in version
    7, where a stream's topics may be those of another.
    """
    if change is Change.GAINED:
        return "D23", "version 6 has it deleted by an MQRFH2 publisher who put to a stream queue"
    if _is_mqrfh2(delivery):
        return "D23", "version 7 has it, or had it deleted, on the stream that its MQRFH2 publisher put to"
    if delivery.publication.stream is None:
        return (
            "D33",
            "version 7 had it deleted by a DeletePub of the other scope, or by one on a stream that it is in (D09)",
        )
    return "D09", "version 7 had it deleted or replaced by way of another stream, or by an MQRFH2 publisher"


def _is_mqrfh2(delivery: Delivery) -> bool:
    command = _command_of(delivery)
    return command is not None and command.header is PublicationFormat.RFH2


def _command_of(delivery: Delivery) -> Command | None:
    try:
        return parse(delivery.publication.message)
    except QPubSubError:
        return None
