"""What a command changed is taken back: the topic space is as it was before (guide 4.6.2.1)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from commands.broker.exit_calls import Undo
from rfh2.message import Message
from rfh2.mqmd import Mqmd
from streams.operations import (
    AlterSubscription,
    ClearRetained,
    Operation,
    Publication,
    PublishToTopic,
    Subscribe,
    Unsubscribe,
)
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_objects import TopicObject, TopicObjects, Wildcard
from streams.topic_space import TopicSpace

NOW = datetime(2009, 1, 28, tzinfo=UTC)
TOPICS = ("a", "a/b", "a/b/c", "d")
PATTERNS = (*TOPICS, "#", "a/#", "+/b")


@st.composite
def _operations(draw: st.DrawFn, known: frozenset[int] = frozenset()) -> tuple[list[Operation], frozenset[int]]:
    """Operations that succeed one after another; known: the subscriptions there are before and after them."""
    numbers, done = set(known), list[Operation]()
    for data in draw(st.lists(st.binary(min_size=1, max_size=2), max_size=6)):
        kind = draw(st.sampled_from(["publish", "subscribe", "clear", *(["alter", "remove"] if numbers else [])]))
        if kind == "publish":
            publication = Publication(Message(Mqmd(), (), data), NOW, stream=draw(st.sampled_from([None, "S"])))
            done.append(PublishToTopic(draw(st.sampled_from(TOPICS)), publication, retain=draw(st.booleans())))
        elif kind == "clear":
            done.append(ClearRetained(draw(st.sampled_from(PATTERNS)), WildcardScheme.TOPIC))
        elif kind == "subscribe":
            number = max(numbers, default=0) + 1
            numbers.add(number)
            done.append(Subscribe(_subscription(number, draw(st.sampled_from(PATTERNS))), send_retained=True))
        else:
            number = draw(st.sampled_from(sorted(numbers)))
            subscription = _subscription(number, draw(st.sampled_from(PATTERNS)))
            if kind == "alter":
                done.append(AlterSubscription(subscription, send_retained=True))
            else:
                numbers.remove(number)
                done.append(Unsubscribe(subscription))
    return done, frozenset(numbers)


def _subscription(number: int, topic: str) -> Subscription:
    return Subscription(number.to_bytes(24, "big"), topic, f"Q{number}", "QM1", NOW, f"N{number}")


def _state(space: TopicSpace) -> object:
    matches = [space.match(topic, NOW) for topic in TOPICS]
    found = [space.retained(pattern, WildcardScheme.TOPIC, NOW) for pattern in PATTERNS]
    names = [space.by_name(f"N{number}") for number in range(12)]
    identities = [space.by_identity(("QM1", f"Q{number}", bytes(24))) for number in range(12)]
    return space.subscriptions(), space.retained_publications(), matches, found, names, identities


@pytest.mark.rule("APP-5e")
@given(st.data(), st.sampled_from(["v7", "v6"]))
def test_the_state_before_comes_back(data: st.DataObject, semantics: str) -> None:
    objects = TopicObjects([TopicObject("B", "a/b", wildcard=Wildcard.BLOCK)])
    space = TopicSpace(objects, semantics=semantics)
    before, known = data.draw(_operations())
    for operation in before:
        space.apply(operation, NOW)
    state, undo = _state(space), Undo(space)
    command, _ = data.draw(_operations(known))
    made = []
    for operation in command:
        undo.before(operation, NOW)
        effects = space.apply(operation, NOW)
        undo.after(effects)
        made += effects
    assert undo.take_back(NOW) == made[::-1]
    assert _state(space) == state
