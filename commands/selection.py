"""Filters at work: whether a subscription's selector lets a publication through."""

from __future__ import annotations

from functools import lru_cache

from streams.operations import Published
from streams.selectors import Selector, compile_selector, message_properties
from streams.subscriptions import Subscription


@lru_cache(maxsize=10_000)
def _compiled(text: str) -> Selector:
    return compile_selector(text)


def selects(subscription: Subscription, publication: Published, _topic_string: str) -> bool:
    """Whether the selector of *subscription* is true of *publication*; it has one, and it compiled when it was made."""
    return _compiled(subscription.selector or "").matches(message_properties(publication.message))
