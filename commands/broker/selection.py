"""Filters at work: whether a subscription's selector lets a publication through."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from rfh2.message import Message
from streams.operations import Published
from streams.selectors import Lookup, Selector, compile_selector, message_properties
from streams.subscriptions import Subscription


@lru_cache(maxsize=10_000)
def _compiled(text: str) -> Selector:
    return compile_selector(text)


# The message that was asked about last. A publication to many topics is asked about once for each, and read once only.
# It is compared by identity: comparing the contents of two messages costs as much as reading them.
_LAST: Final[list[tuple[Message, Lookup]]] = []


def _properties(message: Message) -> Lookup:
    for known, lookup in _LAST:
        if known is message:
            return lookup
    lookup = message_properties(message)
    _LAST[:] = [(message, lookup)]
    return lookup


def selects(subscription: Subscription, publication: Published, _topic_string: str) -> bool:
    """Whether the selector of *subscription* is true of *publication*; it has one, and it compiled when it was made."""
    return _compiled(subscription.selector or "").matches(_properties(publication.message))
