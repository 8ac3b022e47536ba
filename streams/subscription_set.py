"""The subscriptions at one place of an index: none, one, or several; most places hold one, and need no container.

Several are a dict by sub_id, so that one among many thousands on the same topic string can be removed at once.
"""

from __future__ import annotations

from typing import cast

from streams.subscriptions import Subscription

Several = dict[bytes, Subscription]
Holding = Subscription | Several | None


def with_added(holding: Holding, subscription: Subscription) -> Subscription | Several:
    """The holding with this subscription in it; one of the same sub_id is replaced."""
    if holding is None:
        return subscription
    if isinstance(holding, dict):
        holding[subscription.sub_id] = subscription
        return holding
    if holding.sub_id == subscription.sub_id:
        return subscription
    return {holding.sub_id: holding, subscription.sub_id: subscription}


def with_removed(holding: Holding, sub_id: bytes) -> Holding:
    """The holding without this subscription. Raises KeyError where it is not there."""
    if isinstance(holding, dict):
        del holding[sub_id]
        return next(iter(holding.values())) if len(holding) == 1 else holding
    if holding is None or holding.sub_id != sub_id:
        raise KeyError(sub_id)
    return None


def flatten(held: list[Subscription | Several]) -> list[Subscription]:
    """All subscriptions of several places, in the places' order."""
    if dict not in map(type, held):
        return cast(list[Subscription], held)
    subscriptions: list[Subscription] = []
    for each in held:
        if isinstance(each, dict):
            subscriptions.extend(each.values())
        else:
            subscriptions.append(each)
    return subscriptions
