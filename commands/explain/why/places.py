"""Where topics are: the stream and the subscription point of a publication, and a subscription moved there."""

from __future__ import annotations

from dataclasses import replace

from commands.broker.context import prefix_of_sub_point, stream_prefix
from commands.broker.core import BrokerCore
from streams.operations import Published
from streams.patterns import add_pattern_prefix, written_topic
from streams.subscriptions import Subscription
from streams.topic_strings import add_prefix


def place_prefix(stream: str | None, sub_point: str | None, broker: BrokerCore) -> str:
    """The prefix of what is published on a stream and a subscription point; None is the default one.

    A subscription point that does not exist has none.
    """
    prefix = "" if stream is None else stream_prefix(stream, broker.objects, broker.semantics)
    point = prefix_of_sub_point(sub_point, broker.objects, broker.semantics)
    return add_prefix(prefix, point) if point else prefix


def moved_to(publication: Published, subscription: Subscription, broker: BrokerCore) -> Subscription:
    """*subscription* as it would be if it were registered where *publication* is, for the topic that it names."""
    prefix = place_prefix(publication.stream, publication.sub_point, broker)
    return replace(
        subscription,
        topic_string=add_pattern_prefix(prefix, written_topic(subscription), subscription.wildcard),
        prefix=prefix,
        stream=publication.stream,
        sub_point=publication.sub_point,
    )
