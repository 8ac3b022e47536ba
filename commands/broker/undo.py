"""Takes back what one command changed in the topic space, where the publish exit fails after that (guide 4.6.2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from streams.operations import (
    AlterSubscription,
    ClearRetained,
    Effect,
    Operation,
    PublishToTopic,
    RetainedCleared,
    RetainedPublication,
    RetainedStored,
    Subscribe,
    SubscriptionAdded,
    SubscriptionAltered,
    SubscriptionRemoved,
    Unsubscribe,
)
from streams.subscriptions import WildcardScheme
from streams.topic_space import TopicSpace


class Undo:
    """The changes of one command in *space*.

    Each operation is announced before it is carried out, because its effects do not say what was retained before it.
    """

    def __init__(self, space: TopicSpace) -> None:
        self._space = space
        self._done: list[tuple[Effect, RetainedPublication | None]] = []
        self._retained: dict[str, RetainedPublication] = {}

    def before(self, operation: Operation, now: datetime) -> None:
        """*operation* is about to be carried out."""
        match operation:
            case PublishToTopic(topic_string, _, True):
                pattern, scheme = topic_string, WildcardScheme.TOPIC
            case ClearRetained(pattern, scheme):
                pass
            case _:
                self._retained = {}
                return
        found = self._space.retained(pattern, scheme, now, heed_blocks=False)
        self._retained = {each.topic_string: each for each in found}

    def after(self, effects: Sequence[Effect]) -> None:
        """It had these effects."""
        for effect in effects:
            topic = None
            if isinstance(effect, RetainedStored):
                topic = effect.retained.topic_string
            elif isinstance(effect, RetainedCleared):
                topic = effect.topic_string
            self._done.append((effect, None if topic is None else self._retained.get(topic)))

    def take_back(self, now: datetime) -> list[Effect]:
        """Restore the state before the first operation; returns the effects that count no more."""
        space, taken = self._space, []
        for effect, retained in reversed(self._done):
            taken.append(effect)
            match effect:
                case SubscriptionAdded(subscription):
                    space.apply(Unsubscribe(subscription), now)
                case SubscriptionAltered(before, _):
                    space.apply(AlterSubscription(before, send_retained=False), now)
                case SubscriptionRemoved(subscription):
                    space.apply(Subscribe(subscription, send_retained=False), now)
                case RetainedStored(stored) if retained is None:
                    space.apply(ClearRetained(stored.topic_string, stream=stored.publication.stream), now)
                case RetainedStored() | RetainedCleared():
                    assert retained is not None
                    space.retain(retained)
        self._done.clear()
        return taken
