"""How many messages one publication makes for one subscriber (guide 7.5, 8.5: publication to multiple topics).

Version 7 sends a copy for each topic and each subscription that match. Version 6 sends a subscriber one message,
even if several of its subscriptions match, unless it registered with DupsOK. If the publication has several topics, the
message names all that the subscriber gets. A subscriber is its traditional identity there.
"""

from __future__ import annotations

from collections.abc import Sequence

from commands.broker.context import Semantics
from streams.operations import Delivery

Copies = tuple[Delivery, ...]
"""The deliveries that one put combines; the first decides the descriptor."""

_Key = tuple[int, bool, tuple[str, str, bytes]]


def copies(deliveries: Sequence[Delivery], semantics: Semantics) -> list[Copies]:
    """*deliveries* in groups, one for each message to put; the first of a group decides its descriptor."""
    if semantics is Semantics.V7:
        return [(delivery,) for delivery in deliveries]
    groups: list[dict[str, Delivery]] = []  # by topic
    of_subscriber: dict[_Key, dict[str, Delivery]] = {}
    for delivery in deliveries:
        subscription = delivery.subscription
        if subscription.options.dups_ok:
            groups.append({delivery.topic_string: delivery})
            continue
        key = (id(delivery.publication), delivery.from_retained, subscription.traditional_identity)
        group = of_subscriber.get(key)
        if group is None:
            group = of_subscriber[key] = {}
            groups.append(group)
        group.setdefault(delivery.topic_string, delivery)
    return [tuple(group.values()) for group in groups]
