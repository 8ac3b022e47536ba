"""Subscriptions by traditional identity (guide 6.7.2): found as a plain list finds them, however they come and go."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from streams.subscribers import Subscribers
from streams.subscriptions import Subscription, WildcardScheme

Make = Callable[..., Subscription]

PLACES = st.tuples(
    st.sampled_from(["Q", "R"]),
    st.sampled_from([bytes(24), b"c" * 24]),
    st.sampled_from(["a", "b", "a*"]),
    st.sampled_from(["", "Sport"]),
    st.sampled_from(list(WildcardScheme)),
    st.sampled_from(["alice", "bob"]),
)
# True adds a subscription there; False takes out the one that an index, modulo their number, points to.
STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 50), PLACES), max_size=40)


def _placed(subscription: Make, number: int, place: tuple[str, bytes, str, str, WildcardScheme, str]) -> Subscription:
    queue, correl_id, topic, prefix, scheme, user = place
    full = f"{prefix}/{topic}" if prefix else topic
    return subscription(
        number, full, dest_queue=queue, correl_id=correl_id, prefix=prefix, wildcard=scheme, user=user, stream=prefix
    )


@given(STEPS)
def test_they_are_found_as_a_list_finds_them(subscription: Make, steps: list[tuple[bool, int, tuple]]) -> None:  # type: ignore[type-arg]
    subscribers, there = Subscribers(), list[tuple[Subscription, str]]()
    for number, (add, which, place) in enumerate(steps, 1):
        if add:
            one = _placed(subscription, number, place)
            subscribers.add(one)
            there.append((one, place[2]))
        elif there:
            subscribers.remove(there.pop(which % len(there))[0])
        for identity in {("QM1", queue, correl_id) for queue in "QR" for correl_id in (bytes(24), b"c" * 24)}:
            mine = [(s, topic) for s, topic in there if s.traditional_identity == identity]
            assert subscribers.of(identity) == tuple(s for s, _ in mine)
            assert subscribers.users(identity) == {s.user for s, _ in mine}
            for wanted in ("a", "b", "a*", "Sport/a"):
                assert subscribers.of(identity, wanted) == tuple(s for s, topic in mine if topic == wanted)


def test_what_is_not_there_cannot_be_taken_out(subscription: Make) -> None:
    subscribers, one = Subscribers(), subscription(1, "a", dest_queue="Q")
    with pytest.raises(KeyError):
        subscribers.remove(one)
    subscribers.add(one)
    with pytest.raises(KeyError):
        subscribers.remove(subscription(2, "a", dest_queue="Q"))
    subscribers.add(subscription(3, "b", dest_queue="Q"))
    with pytest.raises(KeyError):
        subscribers.remove(subscription(4, "a", dest_queue="Q"))
