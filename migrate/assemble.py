"""Combine items into one state: each kind in its order, and the items that others imply.

A stream that only a subscription names exists all the same; so does a subscription point. Such an item has the source
of the item that implies it. An item that two sources contain stays two items: the plan decides what
becomes of the second one.

Names that a migration makes: for subscriptions whose names were unique only in a stream, and for topic objects.

A topic object for a subscription point has the point's name. If that is longer than an object name, or an object with
another topic string has it, the name is made of the first 23 characters, two hexadecimal digits counting from 00, and
the last 23 (guide 6.2; IBM's sample programs have the rule):

    Prices/Europe/Frankfurt/Equities/RealTime/VeryLongSubscriptionPoint
    Prices/Europe/Frankfurt00ryLongSubscriptionPoint

A short name gets the digits at its end. Characters that no object name may have become ``_``.

Topics in Event Broker and Message Broker: those of a stream lie below ``$SYS/STREAM/<stream>`` (guide 8.4).

$SYS/STREAM/Sport/Soccer/Results    topic Soccer/Results of stream Sport
$SYS/STREAM/Sport                   the root of stream Sport: an access control list may stand there
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from commands.broker.objects import ADMIN_STREAM, is_object_name
from migrate import legacy_state as legacy
from rfh2.constants import MQ_OBJECT_NAME_LENGTH
from streams.topic_objects import DEFAULT_STREAM

ACL_TOPIC: Final = "MIGMBBRK.TOPIC."
_HALF: Final = 23
_NOT_ALLOWED: Final = re.compile(r"[^A-Za-z0-9._/%]")


def subscription_name(name: str, stream: str, separator: str) -> str:
    """The name in version 7: unchanged on the default stream, else with the stream's name appended (guide 7.6.1)."""
    return name if stream == DEFAULT_STREAM else f"{name}{separator}{stream}"


def sub_point_object_name(point: str, is_taken: Callable[[str], bool]) -> str | None:
    """The name of the topic object for a subscription point; None where none of 256 made names is free.

    is_taken: whether an object of that name is in the way.
    """
    if is_object_name(point) and not is_taken(point):
        return point
    base = _NOT_ALLOWED.sub("_", point)
    for counter in range(256):
        digits = f"{counter:02X}"
        fits = len(base) + 2 <= MQ_OBJECT_NAME_LENGTH
        name = base + digits if fits else base[:_HALF] + digits + base[-_HALF:]
        if not is_taken(name):
            return name
    return None


def acl_object_names(first: int, is_taken: Callable[[str], bool]) -> Callable[[], str]:
    """Names of topic objects made for access control lists: five digits from *first*, those in use left out (8.4)."""
    number = first - 1

    def following() -> str:
        nonlocal number
        number += 1
        while is_taken(f"{ACL_TOPIC}{number:05}"):
            number += 1
        return f"{ACL_TOPIC}{number:05}"

    return following


STREAM_TOPICS: Final = "$SYS/STREAM/"
SYSTEM_TOPICS: Final = ("$SYS", "$SYS/STREAM")


def split_stream(topic: str) -> tuple[str, str]:
    """(stream, topic) of a topic string inside the broker; "" for the topic where it is the root of a stream."""
    if not topic.startswith(STREAM_TOPICS):
        return DEFAULT_STREAM, topic
    stream, _, own = topic.removeprefix(STREAM_TOPICS).partition("/")
    return (stream, own) if stream else (DEFAULT_STREAM, topic)


def broker_topic(stream: str, topic: str, product: legacy.Product) -> str:
    """A topic as the broker had it: Message Broker's under the name of its stream."""
    if stream == DEFAULT_STREAM or product is not legacy.Product.WMB:
        return topic
    return f"{STREAM_TOPICS}{stream}/{topic}" if topic else f"{STREAM_TOPICS}{stream}"


COMMAND_LINE: Final = "the command line"
_BORN_WITH = (DEFAULT_STREAM, ADMIN_STREAM)


def assemble(
    items: Iterable[legacy.Item],
    qmgr: str,
    product: legacy.Product = legacy.Product.MQ,
    notes: Iterable[str] = (),
    times: Iterable[datetime] = (),
) -> legacy.LegacyState:
    """The state of queue manager *qmgr* that *items* make up. product: whose broker. notes, times: of the sources."""
    by_field: dict[str, list[legacy.Item]] = {field: [] for field in legacy.FIELD_OF_KIND.values()}
    for item in items:
        by_field[legacy.FIELD_OF_KIND[item.kind]].append(_normal(item, qmgr, product))
    streams = {item.name for item in by_field["streams"] if isinstance(item, legacy.Stream)}
    points = {item.name for item in by_field["sub_points"] if isinstance(item, legacy.SubPoint)}
    for field in ("subscriptions", "retained", "publishers", "acl"):
        for item in by_field[field]:
            if not isinstance(
                item, legacy.LegacySubscription | legacy.LegacyRetained | legacy.Publisher | legacy.AclEntry
            ):
                continue
            if item.stream not in streams and item.stream not in _BORN_WITH:
                streams.add(item.stream)
                by_field["streams"].append(legacy.Stream(source=item.source, name=item.stream))
            point = getattr(item, "sub_point", None)
            if point and point not in points:
                points.add(point)
                by_field["sub_points"].append(legacy.SubPoint(source=item.source, name=point))
    fields = {field: tuple(values) for field, values in by_field.items()}
    until = max((*times, *_times(fields)), default=None)
    return legacy.LegacyState(qmgr=qmgr, notes=tuple(notes), until=until, **fields)


def _times(fields: Mapping[str, tuple[Any, ...]]) -> Iterator[datetime]:
    """When subscriptions were made, and what is retained was published."""
    yield from (item.created for item in fields["subscriptions"] if item.created is not None)
    yield from (item.published_at for item in fields["retained"] if item.published_at is not None)


def _normal(item: legacy.Item, qmgr: str, product: legacy.Product) -> legacy.Item:
    """*item* with one spelling for its own queue manager, its CorrelId, a stream's topics, and who has authority."""
    if product is legacy.Product.WMB and isinstance(
        item, legacy.LegacySubscription | legacy.LegacyRetained | legacy.AclEntry
    ):
        stream, topic = split_stream(item.topic)
        if item.stream == DEFAULT_STREAM != stream and (topic or isinstance(item, legacy.AclEntry)):
            item = replace(item, stream=stream, topic=topic)
    if isinstance(item, legacy.LegacyAuthority):
        return replace(item, entity=_without_domain(item.entity))
    if isinstance(item, legacy.AclEntry):
        return replace(item, principal=_without_domain(item.principal))
    if isinstance(item, legacy.Principal):
        return replace(item, name=_without_domain(item.name), groups=tuple(map(_without_domain, item.groups)))
    if not isinstance(item, legacy.LegacySubscription):
        return item
    update: dict[str, Any] = {}
    if not item.qmgr:
        update["qmgr"] = qmgr
    if item.correl_id is not None:
        if not item.correl_id.strip("0"):
            update["correl_id"] = None
        elif item.correl_id != item.correl_id.upper():
            update["correl_id"] = item.correl_id.upper()
    return replace(item, **update) if update else item


def _without_domain(entity: str) -> str:
    """The user or group alone: Windows names its domain, as ``user@DOMAIN`` or ``DOMAIN\\user``."""
    return entity.partition("@")[0].rpartition("\\")[2]


def of_product(state: legacy.LegacyState, broker: str, product: legacy.Product) -> legacy.LegacyState:
    """*state* as that of *broker*, which comes first; an item of the command line where no source names it."""
    named = [found for found in state.brokers if found.name == broker]
    if named:
        others = [found for found in state.brokers if found.name != broker]
        return state.model_copy(update={"brokers": (*named, *others)})
    source = legacy.Source(file=COMMAND_LINE)
    item = legacy.BrokerItem(source=source, name=broker, product=product, qmgr=state.qmgr)
    return state.model_copy(update={"brokers": (item, *state.brokers)})
