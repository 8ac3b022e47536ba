"""Lists in pages, and the topic tree by levels: the same as what the state itself says, however it is cut."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from commands.broker.counts import Counts
from commands.broker.objects import QueueManager
from commands.config.home import Home
from commands.explain.pictures import Outline, outline
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.listing import SUBSCRIPTION_SORTS, TOPIC_SORTS, Listing, TopicLevels, Wanted
from rfh2.message import decode
from streams.operations import Publication, RetainedPublication, RetainedStored, SubscriptionAdded, SubscriptionRemoved
from streams.subscriptions import Subscription
from streams.topic_objects import TopicObject

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def _subscription(number: int, topic: str, queue: str = "Q", name: str | None = None) -> Subscription:
    return Subscription(number.to_bytes(24, "big"), topic, queue, "QM1", NOW, name, user="alice")


@pytest.fixture
def store(home: Home) -> Iterator[QueueManagerStore]:
    with QueueManagerStore.create(home, QueueManager("QM1"), clock=lambda: NOW) as made:
        yield made


def _keep(store: QueueManagerStore, topics: list[str], subscribed: list[str] = [], defined: list[str] = []) -> None:  # noqa: B006 - read only
    publication = Publication(decode(b"data"), NOW)
    with store.unit_of_work() as unit:
        unit.save_effects([RetainedStored(RetainedPublication(topic, publication)) for topic in topics])
        unit.save_effects([SubscriptionAdded(_subscription(n, topic)) for n, topic in enumerate(subscribed, 1)])
        for n, topic in enumerate(defined):
            unit.save_definition(TopicObject(f"T{n}", topic))


def test_subscriptions_are_searched_sorted_and_cut(store: QueueManagerStore) -> None:
    counts = Counts()
    with store.unit_of_work() as unit:
        for n in range(1, 8):
            unit.save_effects([SubscriptionAdded(_subscription(n, f"Sport/{n % 3}", f"Q{9 - n}", f"50%_{n}"))])
            counts.add_delivered(n.to_bytes(24, "big"), NOW, n * 10)
        unit.counters.add(counts)
    listing = Listing(store)
    rows, count = listing.subscriptions(Wanted(sort="delivered", descending=True, first=1, most=2))
    assert ([row.delivered for row in rows], count) == ([60, 50], 7)
    assert rows[0].last == NOW
    cases = {"sport/1": [1, 4, 7], "Q2": [7], "50%_3": [3], "%_4": [4], "ALICE": [1, 2, 3, 4, 5, 6, 7], "\\": []}
    for search, numbers in cases.items():
        rows, count = listing.subscriptions(Wanted(search, most=50))
        assert sorted(int.from_bytes(row.sub_id, "big") for row in rows) == numbers, search
        assert count == len(numbers)
    for sort in SUBSCRIPTION_SORTS:
        for descending in (False, True):
            whole = listing.subscriptions(Wanted("", sort, descending))[0]
            parts = [listing.subscriptions(Wanted("", sort, descending, first, 3))[0] for first in (0, 3, 6)]
            assert [row for part in parts for row in part] == whole, sort


def test_a_listing_shows_what_has_changed_since(store: QueueManagerStore) -> None:
    listing = Listing(store)
    assert listing.subscriptions(Wanted())[1] == 0
    _keep(store, [], ["a"])
    listing._not_before = 0
    assert [row.topic for row in listing.subscriptions_at("a", 9)] == ["a"]
    with store.unit_of_work() as unit:
        unit.save_effects([SubscriptionRemoved(_subscription(1, "a"))])
    # Of a large queue manager copies are rare: until the time has come, the list is the old one.
    listing._not_before = float("inf")
    assert listing.subscriptions(Wanted())[1] == 1
    assert listing.subscription((1).to_bytes(24, "big")) is None
    listing._not_before = 0
    assert listing.subscriptions(Wanted())[1] == 0


def test_topics_are_those_with_publications_counted_or_retained(store: QueueManagerStore) -> None:
    _keep(store, ["b", "c"])
    counts = Counts()
    counts.add_published("a", NOW, 3)
    counts.add_published("b", NOW, 5)
    with store.unit_of_work() as unit:
        unit.counters.add(counts)
    listing = Listing(store)
    rows, count = listing.topics(Wanted())
    assert [(row.topic, row.published, row.retained) for row in rows] == [
        ("a", 3, False),
        ("b", 5, True),
        ("c", 0, True),
    ]
    assert count == 3
    assert listing.topics(Wanted("B")) == ([rows[1]], 1)
    for sort in TOPIC_SORTS:
        assert {row.topic for row in listing.topics(Wanted("", sort, True))[0]} == {"a", "b", "c"}
    found = listing.retained("c")
    assert found is not None
    assert (found[0], found[2]) == (NOW, b"data")
    assert listing.retained("a") is None


def test_messages_come_in_the_order_of_the_queue_page_by_page(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        for n in range(7):
            unit.put("Q", None, b"%d" % n * 20, time=NOW)
    listing, place, found = Listing(store), (-1, -1), []
    while rows := listing.messages("Q", place, 3, 5, NOW):
        found += rows
        place = rows[-1].place
    assert [row.head for row in found] == [b"%d" % n * 5 for n in range(7)]
    assert {row.size_bytes for row in found} == {20}
    message = listing.message("Q", found[2].seq, NOW)
    assert message is not None
    assert message.body == b"2" * 20
    assert listing.message("OTHER", found[2].seq, NOW) is None


LEVELS = st.sampled_from(["", "a", "a!", "a0", "é", "\U0001f600", "b b"])
TOPICS = st.lists(st.lists(LEVELS, min_size=1, max_size=4).map("/".join).filter(bool), max_size=12)


def _walked(levels: TopicLevels, under: str | None, most: int) -> Iterator[tuple[str, str, bool, int, int]]:
    after = ""
    while True:
        nodes, after = levels.below(under, after, most)
        assert len(nodes) <= most
        for node in nodes:
            objects = len([name for name in node.objects.split(", ") if name.startswith("T")])
            yield node.label, node.topic, node.retained, node.subscriptions, objects
            if node.has_children:
                yield from _walked(levels, node.topic, most)
        if not after:
            return


def _expected(node: Outline) -> Iterator[tuple[str, str, bool, int, int]]:
    for child in node.children:
        yield child.label, child.topic_string, child.retained, len(child.subscriptions), len(child.objects)
        yield from _expected(child)


@given(TOPICS, TOPICS, TOPICS, st.integers(1, 3))
@example([], [], ["/a", "/a/", "/a!"], 1)
@example(["x/y/a", "x/y/a/b"], ["x/y/a!"], ["x/y/a/"], 2)
@example([], [], ["/", "a/", "a/a", "a!"], 1)
def test_the_tree_by_levels_is_the_outline(
    retained: list[str], subscribed: list[str], defined: list[str], most: int
) -> None:
    defined = list(dict.fromkeys(defined))
    with (
        tempfile.TemporaryDirectory() as home,
        QueueManagerStore.create(Path(home), QueueManager("QM1"), clock=lambda: NOW) as store,
    ):
        _keep(store, list(dict.fromkeys(retained)), subscribed, defined)
        objects, subscriptions, kept = store.load_state()
        others = [made for made in objects.topics if not made.name.startswith("T")]
        with store.unit_of_work() as unit:
            for made in others:
                unit.delete_definition("topic", made.name)
        mine = [made for made in objects.topics if made.name.startswith("T")]
        wanted = outline(mine, subscriptions, [each.topic_string for each in kept])
        assert sorted(_walked(TopicLevels(Listing(store)), None, most)) == sorted(_expected(wanted))


def test_a_topic_of_thousands_of_levels_is_one_node(store: QueueManagerStore) -> None:
    deep = "/" * 10_239 + "x"
    _keep(store, [deep, "a", "a/b"])
    levels = TopicLevels(Listing(store))
    nodes, rest = levels.below(None, "", 10)
    assert rest == ""
    assert [node.topic for node in nodes if node.retained] == [deep, "a"]
    assert replace(levels.at("a"), objects="").has_children
