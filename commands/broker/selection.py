"""Applies filters: whether a publication matches the selection string of a subscription."""

from __future__ import annotations

from rfh2.message import Message
from streams.operations import Published
from streams.selectors import Lookup, compile_selector, message_properties
from streams.subscriptions import Subscription


class Selection:
    """Answers for the filters of one topic space, which owns it.

    Of the message that was asked about last the properties are kept: a publication to many topics is asked about once
    for each, and read once only.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[Message, Lookup] | None = None

    def __call__(self, subscription: Subscription, publication: Published, _topic_string: str) -> bool:
        """Whether the selector of *subscription* is true of *publication*; it compiled when it was made."""
        return compile_selector(subscription.selector or "").matches(self._properties(publication.message))

    def _properties(self, message: Message) -> Lookup:
        last = self._last
        # By identity: comparing the contents of two messages costs as much as reading them.
        if last is not None and last[0] is message:
            return last[1]
        lookup = message_properties(message)
        self._last = (message, lookup)
        return lookup
