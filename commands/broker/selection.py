"""Applies filters: whether a publication matches the selection string of a subscription."""

from __future__ import annotations

from rfh2.message import Message
from streams.operations import Published
from streams.selectors import Lookup, message_properties, registered_selector
from streams.subscriptions import Subscription


class Selection:
    """Applies the filters of one topic space, which owns it.

    It keeps the properties of the last message: a publication to many topics is then read only once, although the topic
    space asks for each topic.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[Message, Lookup] | None = None

    def __call__(self, subscription: Subscription, publication: Published, _topic_string: str) -> bool:
        """Whether *publication* matches the selector of *subscription*, which was checked when it was registered."""
        return registered_selector(subscription.selector or "").matches(self._properties(publication.message))

    def _properties(self, message: Message) -> Lookup:
        last = self._last
        # By identity: to compare the contents of two messages takes as long as to read them.
        if last is not None and last[0] is message:
            return last[1]
        lookup = message_properties(message)
        self._last = (message, lookup)
        return lookup
