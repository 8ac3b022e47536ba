"""Combine items into one state: each kind in its order, and the items that others imply.

A stream that only a subscription names exists all the same; so does a subscription point. Such an item has the source
of the item that implies it. An item that two sources contain stays two items: the plan decides what
becomes of the second one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from commands.broker.objects import ADMIN_STREAM
from migrate.legacy_state import (
    FIELD_OF_KIND,
    AclEntry,
    BrokerItem,
    Item,
    LegacyAuthority,
    LegacyRetained,
    LegacyState,
    LegacySubscription,
    Principal,
    Product,
    Publisher,
    Source,
    Stream,
    SubPoint,
)
from migrate.names import split_stream
from streams.topic_objects import DEFAULT_STREAM

COMMAND_LINE: Final = "the command line"
_BORN_WITH = (DEFAULT_STREAM, ADMIN_STREAM)


def assemble(
    items: Iterable[Item],
    qmgr: str,
    product: Product = Product.MQ,
    notes: Iterable[str] = (),
    times: Iterable[datetime] = (),
) -> LegacyState:
    """The state of queue manager *qmgr* that *items* make up. product: whose broker. notes, times: of the sources."""
    by_field: dict[str, list[Item]] = {field: [] for field in FIELD_OF_KIND.values()}
    for item in items:
        by_field[FIELD_OF_KIND[item.kind]].append(_normal(item, qmgr, product))
    streams = {item.name for item in by_field["streams"] if isinstance(item, Stream)}
    points = {item.name for item in by_field["sub_points"] if isinstance(item, SubPoint)}
    for field in ("subscriptions", "retained", "publishers", "acl"):
        for item in by_field[field]:
            if not isinstance(item, LegacySubscription | LegacyRetained | Publisher | AclEntry):
                continue
            if item.stream not in streams and item.stream not in _BORN_WITH:
                streams.add(item.stream)
                by_field["streams"].append(Stream(source=item.source, name=item.stream))
            point = getattr(item, "sub_point", None)
            if point and point not in points:
                points.add(point)
                by_field["sub_points"].append(SubPoint(source=item.source, name=point))
    fields = {field: tuple(values) for field, values in by_field.items()}
    until = max((*times, *_times(fields)), default=None)
    return LegacyState(qmgr=qmgr, notes=tuple(notes), until=until, **fields)


def _times(fields: Mapping[str, tuple[Any, ...]]) -> Iterator[datetime]:
    """When subscriptions were made, and what is retained was published."""
    yield from (item.created for item in fields["subscriptions"] if item.created is not None)
    yield from (item.published_at for item in fields["retained"] if item.published_at is not None)


def _normal(item: Item, qmgr: str, product: Product) -> Item:
    """*item* with one spelling for its own queue manager, its CorrelId, a stream's topics, and who has authority."""
    if product is Product.WMB and isinstance(item, LegacySubscription | LegacyRetained | AclEntry):
        stream, topic = split_stream(item.topic)
        if item.stream == DEFAULT_STREAM != stream and (topic or isinstance(item, AclEntry)):
            item = replace(item, stream=stream, topic=topic)
    if isinstance(item, LegacyAuthority):
        return replace(item, entity=_without_domain(item.entity))
    if isinstance(item, AclEntry):
        return replace(item, principal=_without_domain(item.principal))
    if isinstance(item, Principal):
        return replace(item, name=_without_domain(item.name), groups=tuple(map(_without_domain, item.groups)))
    if not isinstance(item, LegacySubscription):
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


def of_product(state: LegacyState, broker: str, product: Product) -> LegacyState:
    """*state* as that of *broker*, which comes first; an item of the command line where no source names it."""
    named = [found for found in state.brokers if found.name == broker]
    if named:
        others = [found for found in state.brokers if found.name != broker]
        return state.model_copy(update={"brokers": (*named, *others)})
    source = Source(file=COMMAND_LINE)
    item = BrokerItem(source=source, name=broker, product=product, qmgr=state.qmgr)
    return state.model_copy(update={"brokers": (item, *state.brokers)})
