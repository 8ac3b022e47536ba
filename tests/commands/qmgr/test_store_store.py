"""The embedded queue manager: queues, units of work, and the state that survives."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from commands.broker.objects import (
    DEFAULT_MODELS,
    DEFAULT_QUEUES,
    SYSTEM_QUEUES,
    AliasQueue,
    AuthorityRecord,
    Definition,
    LocalQueue,
    QueueManager,
)
from commands.broker.state import publication_of, publication_row, subscription_of, subscription_state
from commands.config.home import Home
from commands.qmgr.store import (
    MessageRefusedError,
    QueueError,
    QueueManagerExistsError,
    QueueManagerNotFoundError,
    QueueManagerStore,
    StoreBusyError,
    StoreDamagedError,
    StoreFullError,
    UnknownQueueError,
    queue_managers,
    reading,
)
from rfh2.errors import StoreError
from rfh2.message import decode
from rfh2.mqmd import Mqmd
from streams.operations import (
    Delivery,
    Publication,
    RetainedCleared,
    RetainedPublication,
    RetainedStored,
    SubscriptionAdded,
    SubscriptionAltered,
    SubscriptionRemoved,
)
from streams.subscriptions import DeliveryPersistence, Subscription, SubscriptionOptions, WildcardScheme
from streams.topic_objects import DEFAULT_TOPIC_OBJECTS, SUB_POINT_NAMELIST, Namelist, TopicObject

START = datetime(2009, 1, 28, 11, 43, 0, tzinfo=UTC)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def pass_s(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(home: Home, clock: Clock) -> Iterator[QueueManagerStore]:
    with QueueManagerStore.create(home, QueueManager("QM1"), clock=clock, patience_s=0.05) as made:
        yield made


def again(store: QueueManagerStore, clock: Clock) -> QueueManagerStore:
    """A second opening of the same queue manager."""
    return QueueManagerStore.open(store.home, store.name, clock=clock, patience_s=0.05)


def put(store: QueueManagerStore, queue: str, *bodies: bytes, **fields: object) -> list[int]:
    md = replace(Mqmd(), **fields).encode()  # type: ignore[arg-type]
    with store.unit_of_work() as unit:
        return [unit.put(queue, md, body) for body in bodies]


def bodies(store: QueueManagerStore, queue: str) -> list[bytes]:
    return [message.body for message in store.browse(queue)]


# Order


def test_priority_first_then_arrival(store: QueueManagerStore) -> None:
    put(store, "Q", b"five", b"five again", priority=5)
    put(store, "Q", b"zero", priority=0)
    put(store, "Q", b"nine", priority=9)
    put(store, "Q", b"five at last", priority=5)

    expected = [b"nine", b"five", b"five again", b"five at last", b"zero"]
    assert bodies(store, "Q") == expected
    with store.unit_of_work() as unit:
        assert [m.body for m in iter(lambda: unit.get("Q"), None)] == expected


def test_get_next_follows_arrival_across_queues(store: QueueManagerStore) -> None:
    put(store, "A", b"1")
    put(store, "B", b"2")
    put(store, "A", b"3")
    with store.unit_of_work() as unit:
        unit.save_definition(replace(LocalQueue("C"), get_enabled=False))
        unit.put("C", None, b"stays")
        assert [m.body for m in iter(lambda: unit.get_next(("B", "A", "C", "NONE")), None)] == [b"1", b"2", b"3"]


def test_what_is_put_meanwhile_comes_in_its_place_on_a_deep_queue(store: QueueManagerStore) -> None:
    put(store, "Q", *(b"%d" % n for n in range(200)), priority=5)
    with store.unit_of_work() as unit:
        got = [unit.get("Q") for _ in range(70)]
        put_into = {"md": Mqmd(priority=9).encode(), "body": b"urgent"}
        unit.put("Q", **put_into)  # type: ignore[arg-type]
        got += [unit.get("Q") for _ in range(3)]
        with suppress(UndoneError), unit.savepoint():
            assert unit.get("Q") is not None
            unit.put("Q", **put_into)  # type: ignore[arg-type]
            raise UndoneError
        got += iter(lambda: unit.get("Q"), None)
    assert [m.body for m in got if m is not None] == [
        *(b"%d" % n for n in range(70)),
        b"urgent",
        *(b"%d" % n for n in range(70, 200)),
    ]


class UndoneError(Exception):
    """What makes a part of a unit of work fail."""


MOVES = st.lists(
    st.tuples(st.sampled_from(["put", "get", "look"]), st.sampled_from("AB"), st.integers(-1, 9)), max_size=6
)
# What becomes of a part; None is for moves outside any.
PARTS = st.lists(st.tuples(MOVES, st.sampled_from([None, "done", "fails"])), max_size=5)


Parts = list[tuple[list[tuple[str, str, int]], str | None]]


@given(st.lists(st.tuples(PARTS, st.booleans()), max_size=5))
def test_equals_a_sorted_list_with_undo(
    tmp_path_factory: pytest.TempPathFactory, units: list[tuple[Parts, bool]]
) -> None:
    held: dict[str, list[tuple[int, bytes]]] = {"A": [], "B": []}  # (9 - priority, number) of each message
    numbers = (n.to_bytes(2, "big") for n in range(1_000))
    with QueueManagerStore.create(tmp_path_factory.mktemp("home"), QueueManager("QM1")) as store:
        with store.unit_of_work() as unit:
            unit.ensure_queue("A")
            unit.ensure_queue("B")
        for parts, commits in units:
            before = {name: list(messages) for name, messages in held.items()}
            unit = store.unit_of_work()
            for moves, end in parts:
                before_part = {name: list(messages) for name, messages in held.items()}
                with suppress(UndoneError), nullcontext() if end is None else unit.savepoint():
                    for move, queue, priority in moves:
                        if move == "put":
                            body = next(numbers)
                            unit.put(queue, replace(Mqmd(), priority=priority).encode(), body)
                            held[queue] = sorted([*held[queue], (9 - max(priority, 0), body)])
                        elif move == "look":
                            assert (unit.depth(queue), store.depth(queue)) == (len(held[queue]), len(held[queue]))
                            assert [m.body for m in unit.browse(queue)] == [body for _, body in held[queue]]
                        else:
                            got = unit.get(queue)
                            expected = held[queue].pop(0)[1] if held[queue] else None
                            assert (None if got is None else got.body) == expected
                    if end == "fails":
                        raise UndoneError
                if end == "fails":
                    held = before_part
            if commits:
                unit.commit()
            else:
                unit.backout()
                held = before
            assert {name: bodies(store, name) for name in held} == {n: [b for _, b in m] for n, m in held.items()}
            assert {name: store.depth(name) for name in held} == {
                name: len(messages) for name, messages in held.items()
            }


# Units of work


def test_a_unit_of_work_sees_itself_and_nobody_else_sees_it(store: QueueManagerStore, clock: Clock) -> None:
    put(store, "Q", b"before")
    with again(store, clock) as other, store.unit_of_work() as unit:
        unit.get("Q")
        unit.put("Q", None, b"after")

        assert [m.body for m in unit.browse("Q")] == [b"after"]
        assert bodies(other, "Q") == [b"before"]
        unit.commit()
        assert bodies(other, "Q") == [b"after"]


def test_backout_brings_back_what_was_got_in_its_place_and_counts(store: QueueManagerStore, clock: Clock) -> None:
    put(store, "Q", b"1", b"2", b"3")
    unit = store.unit_of_work()
    unit.get("Q")
    unit.get("Q")
    unit.put("Q", None, b"never")
    unit.backout()

    with again(store, clock) as other:
        assert [(m.body, m.backout_count) for m in other.browse("Q")] == [(b"1", 1), (b"2", 1), (b"3", 0)]
        assert [Mqmd.decode(m.md).backout_count for m in other.browse("Q")] == [1, 1, 0]


def test_an_exception_backs_out(store: QueueManagerStore) -> None:
    put(store, "Q", b"1")
    with suppress(UndoneError), store.unit_of_work() as unit:
        unit.get("Q")
        raise UndoneError

    assert [(m.body, m.backout_count) for m in store.browse("Q")] == [(b"1", 1)]


def test_a_failed_part_is_backed_out_alone_and_counts(store: QueueManagerStore) -> None:
    put(store, "Q", b"1", b"2")
    with store.unit_of_work() as unit:
        unit.get("Q")
        with suppress(UndoneError), unit.savepoint():
            unit.get("Q")
            unit.put("OTHER", None, b"never")
            raise UndoneError
        unit.put("DONE", None, b"1")

    assert [(m.body, m.backout_count) for m in store.browse("Q")] == [(b"2", 1)]
    assert bodies(store, "DONE") == [b"1"]
    assert store.find_queue("OTHER") is None


def test_parts_do_not_lie_in_one_another(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit, unit.savepoint(), pytest.raises(StoreError, match="a part"):
        unit.savepoint().__enter__()


@pytest.mark.parametrize("size", [10, 100_000], ids=["short", "long"])
def test_messages_of_any_length_come_back_whole(store: QueueManagerStore, size: int) -> None:
    put(store, "Q", *(bytes([n]) * size for n in range(5)))
    with store.unit_of_work() as unit:
        assert [m.body for m in iter(lambda: unit.get("Q"), None)] == [bytes([n]) * size for n in range(5)]


def test_text_that_cannot_be_kept_is_refused_at_once(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        with suppress(UnicodeEncodeError), unit.savepoint():
            unit.put("Q", None, b"never", user="\ud800")
        with suppress(UnicodeEncodeError), unit.savepoint():
            unit.save_effects([RetainedCleared("\ud800")])
            raise AssertionError
        unit.put("Q", None, b"1", user="Zoë")
    assert [(m.body, m.user) for m in store.browse("Q")] == [(b"1", "Zoë")]


def test_effects_of_a_failed_part_are_not_kept(store: QueueManagerStore) -> None:
    one, other = SUBSCRIPTION, replace(OTHER, name=None)
    with store.unit_of_work() as unit:
        before = unit.state_version
        with suppress(UndoneError), unit.savepoint():
            unit.save_effects([SubscriptionAdded(one)])
            raise UndoneError
        assert unit.state_version == before
        unit.save_effects([SubscriptionAdded(other)])
        with suppress(UndoneError), unit.savepoint():
            unit.save_effects([SubscriptionRemoved(other)])
            assert unit.load_state()[1] == []
            raise UndoneError
        assert unit.load_state()[1] == [other]
    assert store.load_state()[1] == [other]


@pytest.mark.parametrize("later", [False, True], ids=["nothing-open", "a-later-one-open"])
def test_a_unit_of_work_that_is_over_does_nothing_more(store: QueueManagerStore, later: bool) -> None:
    unit = store.unit_of_work()
    unit.commit()
    with store.unit_of_work() if later else nullcontext():
        for call in (
            unit.commit,
            unit.backout,
            unit.savepoint,
            unit.load_state,
            lambda: unit.put("Q", None, b""),
            lambda: unit.get("Q"),
            lambda: unit.find_queue("Q"),
            lambda: unit.save_effects([]),
            lambda: unit.save_definition(LocalQueue("Q")),
            lambda: unit.counters,
            lambda: unit.dynamic,
            lambda: unit.neighbours,
            lambda: unit.undelivered,
            lambda: unit.uncommitted,
        ):
            with pytest.raises(StoreError, match="over"):
                call()


def test_a_read_after_sqlite_ended_the_unit_of_work_writes_nothing_of_it(store: QueueManagerStore) -> None:
    """As where the disk is full: what is pending would commit by itself."""
    put(store, "Q", b"0")
    unit = store.unit_of_work()
    unit.put("Q", None, b"1")
    store.database.connection.execute("ROLLBACK")
    assert store.depth("Q") == 1
    unit.backout()
    assert store.depth("Q") == 1


def test_one_unit_of_work_at_a_time(store: QueueManagerStore) -> None:
    with store.unit_of_work(), pytest.raises(StoreError, match="open"):
        store.unit_of_work()


def test_closing_backs_out(store: QueueManagerStore, clock: Clock) -> None:
    put(store, "Q", b"1")
    other = again(store, clock)
    other.unit_of_work().get("Q")
    other.close()

    assert bodies(store, "Q") == [b"1"]


def test_arrival_numbers_are_never_given_twice(store: QueueManagerStore, clock: Clock) -> None:
    first = put(store, "Q", b"1", b"2")
    with store.unit_of_work() as unit:
        unit.clear_queue("Q")
    with again(store, clock) as other:
        second = put(other, "R", b"3")
        put(store, "Q", b"4")

        assert (first, second, [m.seq for m in other.browse("Q")]) == ([1, 2], [3], [4])


# What a message carries


def test_a_stored_message_as_a_captured_one(store: QueueManagerStore, clock: Clock) -> None:
    md = Mqmd(msg_id=b"\1" * 24, persistence=1, put_appl_name="a", put_date="20081231", put_time="00000000").encode()
    with store.unit_of_work() as unit:
        unit.put("Q", md, b"\0\xff", user="app1")
    (message,) = store.browse("Q")

    assert (message.persistent, message.priority, message.expires_at) == (True, 0, None)
    captured = message.captured("QM1")
    assert captured == type(captured).model_validate_json(captured.model_dump_json())
    assert captured.model_dump(exclude={"md_hex"}) == {
        "seq": 1,
        "time": "2009-01-28T11:43:00.000Z",
        "qmgr": "QM1",
        "queue": "Q",
        "user": "app1",
        "body_hex": "00ff",
    }
    assert captured.descriptor() == replace(Mqmd.decode(md), coded_char_set_id=1208, priority=0, user_identifier="app1")


def test_the_queues_defaults_count(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        unit.save_definition(LocalQueue("Q", def_priority=6, def_persistent=True))
        unit.put("Q", None, b"")
    (message,) = store.browse("Q")

    assert (message.priority, message.persistent) == (6, True)


# Expiry (guide 6.7.9: the time outstanding)


def test_expiry_counts_down(store: QueueManagerStore, clock: Clock) -> None:
    put(store, "Q", b"1", expiry=50)
    clock.pass_s(2)

    (message,) = store.browse("Q")
    assert Mqmd.decode(message.md).expiry == 30
    assert message.expires_at == START + timedelta(seconds=5)


def test_an_expired_message_is_passed_over_and_gone(store: QueueManagerStore, clock: Clock) -> None:
    put(store, "Q", b"expires", expiry=50)
    put(store, "Q", b"stays")
    clock.pass_s(5)

    assert (bodies(store, "Q"), store.depth("Q")) == ([b"stays"], 1)
    with store.unit_of_work() as unit:
        first, second = unit.get_next(["Q"]), unit.get("Q")
    assert (first and first.body, second) == (b"stays", None)


def test_the_caller_may_know_the_end_better_than_tenths_say(store: QueueManagerStore, clock: Clock) -> None:
    end = START + timedelta(seconds=1.25)
    with store.unit_of_work() as unit:
        unit.put("Q", Mqmd(expiry=13).encode(), b"", expires_at=end)
    (message,) = store.browse("Q")
    assert (message.expires_at, Mqmd.decode(message.md).expiry) == (end, 13)
    clock.pass_s(1.25)

    assert bodies(store, "Q") == []


def test_expired_messages_are_discarded_on_request(store: QueueManagerStore, clock: Clock) -> None:
    put(store, "Q", b"1", b"2", expiry=1)
    put(store, "R", b"3", expiry=100)
    clock.pass_s(1)
    with store.unit_of_work() as unit:
        assert unit.discard_expired() == 2
        assert unit.discard_expired() == 0


# Queues, and what they refuse


def test_a_queue_comes_into_being_by_being_named(store: QueueManagerStore) -> None:
    assert store.find_queue("NEW") is None
    put(store, "NEW", b"1")

    assert store.find_queue("NEW") == LocalQueue("NEW")
    assert "NEW" in store.load_state()[0].queues


def test_a_strict_queue_manager_makes_no_queue_2085(home: Home) -> None:
    with QueueManagerStore.create(home, QueueManager("QM1", strict=True)) as store:
        with pytest.raises(UnknownQueueError) as refused, store.unit_of_work() as unit:
            unit.put("NEW", None, b"1")
        assert refused.value.reason == 2085
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("NEW"))
            unit.put("NEW", None, b"1")
        assert bodies(store, "NEW") == [b"1"]


def test_strictness_can_be_changed(store: QueueManagerStore, clock: Clock) -> None:
    put(store, "A")
    with again(store, clock) as other, other.unit_of_work() as unit:
        unit.save_definition(QueueManager("QM1", strict=True))
    with pytest.raises(UnknownQueueError):
        put(store, "B", b"1")


ALIASES = [
    ("to-a-queue", AliasQueue("AL", "Q"), "Q", None),
    ("to-a-queue-to-be", AliasQueue("AL", "NEW"), "NEW", None),
    ("to-a-topic-object-that-is-not-there-2082", AliasQueue("AL", "T", "TOPIC"), None, 2082),
    ("to-an-alias-2001", AliasQueue("AL", "AL2"), None, 2001),
]


@pytest.mark.parametrize(("alias", "queue", "reason"), [c[1:] for c in ALIASES], ids=[c[0] for c in ALIASES])
def test_an_alias(store: QueueManagerStore, alias: AliasQueue, queue: str | None, reason: int | None) -> None:
    with store.unit_of_work() as unit:
        for definition in (LocalQueue("Q"), AliasQueue("AL2", "Q"), alias):
            unit.save_definition(definition)
        if queue is not None:
            unit.put("AL", None, b"1")
            got = unit.get("AL")
            assert got is not None
            assert got.queue == queue
        else:
            with pytest.raises(QueueError) as refused:
                unit.put("AL", None, b"1")
            assert refused.value.reason == reason


def test_an_alias_of_nothing_in_a_strict_queue_manager_2082(home: Home) -> None:
    with QueueManagerStore.create(home, QueueManager("QM1", strict=True)) as store, store.unit_of_work() as unit:
        unit.save_definition(AliasQueue("AL", "NEW"))
        with pytest.raises(QueueError) as refused:
            unit.put("AL", None, b"1")
        assert refused.value.reason == 2082


REFUSALS = [
    ("put-inhibited-2051", LocalQueue("Q", put_enabled=False), QueueError, 2051),
    ("full-2053", LocalQueue("Q", max_depth=2), QueueError, 2053),
    ("too-long-2030", LocalQueue("Q", max_message_length=1), MessageRefusedError, 2030),
]


@pytest.mark.parametrize(("queue", "kind", "reason"), [c[1:] for c in REFUSALS], ids=[c[0] for c in REFUSALS])
def test_a_refused_put_leaves_the_unit_of_work_going(
    store: QueueManagerStore, queue: LocalQueue, kind: type[QueueError], reason: int
) -> None:
    put(store, "Q", b"1", b"2")
    with store.unit_of_work() as unit:
        unit.save_definition(queue)
        unit.put("OTHER", None, b"3")
        with pytest.raises(QueueError) as refused:
            unit.put("Q", None, b"33")
        assert (type(refused.value), refused.value.reason) == (kind, reason)

    assert (bodies(store, "Q"), bodies(store, "OTHER")) == ([b"1", b"2"], [b"3"])


def test_loading_leaves_the_garbage_collector_on(store: QueueManagerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It belongs to the process: other threads of it make garbage meanwhile."""
    seen: list[bool] = []

    def noting(state: str) -> Subscription:
        seen.append(gc.isenabled())
        return subscription_of(state)

    monkeypatch.setattr(reading, "subscription_of", noting)
    with store.unit_of_work() as unit:
        unit.save_effects([SubscriptionAdded(Subscription(bytes(24), "a", "QM1", "Q", created=START))])
        unit.load_state()
    assert (seen, gc.isenabled()) == ([True], True)


def test_maxdepth_counts_nothing_of_a_part_that_was_backed_out(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        unit.save_definition(LocalQueue("Q", max_depth=2))
        unit.put("Q", None, b"1")
        with suppress(UndoneError), unit.savepoint():
            unit.put("Q", None, b"never")
            raise UndoneError
        unit.put("Q", None, b"2")
        with suppress(UndoneError), unit.savepoint():
            unit.get("Q")
            raise UndoneError
        with pytest.raises(QueueError) as refused:
            unit.put("Q", None, b"3")
        assert refused.value.reason == 2053
    assert bodies(store, "Q") == [b"1", b"2"]


def test_a_full_queue_has_room_again_after_a_get_or_an_expiry(store: QueueManagerStore, clock: Clock) -> None:
    with store.unit_of_work() as unit:
        unit.save_definition(LocalQueue("Q", max_depth=2))
        unit.put("Q", None, b"1")
        unit.put("Q", Mqmd(expiry=10).encode(), b"2")
        with pytest.raises(QueueError):
            unit.put("Q", None, b"3")
        unit.get("Q")
        unit.put("Q", None, b"3")
        with pytest.raises(QueueError):
            unit.put("Q", None, b"4")
    clock.pass_s(1)
    with store.unit_of_work() as unit:
        unit.put("Q", None, b"4")
        with pytest.raises(QueueError):
            unit.put("Q", None, b"5")
        assert unit.clear_queue("Q") == 3
        unit.put("Q", None, b"5")


def test_get_inhibited_2016(store: QueueManagerStore) -> None:
    put(store, "Q", b"1")
    with store.unit_of_work() as unit:
        unit.save_definition(LocalQueue("Q", get_enabled=False))
        with pytest.raises(QueueError) as refused:
            unit.get("Q")

    assert refused.value.reason == 2016
    assert bodies(store, "Q") == [b"1"]


def test_looking_at_an_unknown_queue_2085(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        for call in (unit.get, unit.browse, unit.depth, unit.clear_queue, store.browse, store.depth):
            with pytest.raises(UnknownQueueError):
                call("NONE")


@pytest.mark.parametrize("name", ["", "A B", "A" * 49, "Ä"])
def test_what_cannot_name_a_queue_makes_none(store: QueueManagerStore, name: str) -> None:
    with pytest.raises(UnknownQueueError):
        put(store, name, b"1")


# Definitions, subscriptions, retained publications

SUBSCRIPTION = Subscription(
    sub_id=b"\xff" * 24,
    topic_string="a/ä/#",
    dest_queue="Q",
    dest_qmgr="QM1",
    created=START,
    name="a name",
    wildcard=WildcardScheme.CHAR,
    correl_id=b"\1" * 24,
    selector="x = 'y'",
    options=SubscriptionOptions(local=True, persistence=DeliveryPersistence.PERSISTENT),
    identities=("one", "two"),
    expires_at=START + timedelta(microseconds=1),
)
OTHER = replace(SUBSCRIPTION, sub_id=b"\0" * 24, name=None, expires_at=None)


def publication(body: bytes = b"data", persistence: int = 1) -> Publication:
    return Publication(decode(body, Mqmd(persistence=persistence, msg_id=b"\1" * 24)), START, None, True)


WITH_HEADER = bytes.fromhex("52464820000000020000002400000111000003334d51535452202020000000000000 04b8") + b"data"
RETAINED = RetainedPublication("a/b", publication())


def state(store: QueueManagerStore) -> tuple[list[Subscription], list[RetainedPublication]]:
    subscriptions, retained = store.load_state()[1:]
    return subscriptions, [fetched(each) for each in retained]


def fetched(retained: RetainedPublication) -> RetainedPublication:
    """The same with its message in it."""
    kept = retained.publication
    return RetainedPublication(
        retained.topic_string, Publication(kept.message, kept.published_at, kept.expires_at, kept.local)
    )


def test_effects_survive_a_restart(store: QueueManagerStore, clock: Clock) -> None:
    altered = replace(SUBSCRIPTION, dest_queue="R")
    with store.unit_of_work() as unit:
        unit.save_effects([SubscriptionAdded(SUBSCRIPTION), SubscriptionAdded(OTHER), RetainedStored(RETAINED)])
        unit.save_effects([Delivery(OTHER, "a/b", RETAINED.publication), SubscriptionAltered(SUBSCRIPTION, altered)])

    with again(store, clock) as other:
        assert state(other) == ([OTHER, altered], [RETAINED])
        with other.unit_of_work() as unit:
            subscriptions, retained = unit.load_state()[1:]
            assert (subscriptions, [fetched(each) for each in retained]) == state(other)


def test_effects_take_away_what_they_end(store: QueueManagerStore) -> None:
    newer = RetainedPublication("a/b", publication(b"newer"))
    with store.unit_of_work() as unit:
        unit.save_effects([SubscriptionAdded(SUBSCRIPTION), RetainedStored(RETAINED), RetainedStored(newer)])
        subscriptions, retained = unit.load_state()[1:]
        assert (subscriptions, [fetched(each) for each in retained]) == ([SUBSCRIPTION], [newer])
        unit.save_effects([SubscriptionRemoved(SUBSCRIPTION), RetainedCleared("a/b"), RetainedCleared("c")])

    assert state(store) == ([], [])


def test_effects_that_are_backed_out_were_never(store: QueueManagerStore) -> None:
    unit = store.unit_of_work()
    unit.save_effects([SubscriptionAdded(SUBSCRIPTION)])
    unit.put("Q", None, b"1")
    unit.backout()

    assert (state(store), store.find_queue("Q")) == (([], []), None)


def test_saving_an_effect_twice_is_harmless(store: QueueManagerStore) -> None:
    for _ in range(2):
        with store.unit_of_work() as unit:
            unit.save_effects([SubscriptionAdded(SUBSCRIPTION), RetainedStored(RETAINED)])

    assert state(store) == ([SUBSCRIPTION], [RETAINED])


@pytest.mark.rule("MB-6")
def test_a_restart_drops_non_persistent_retained_publications_8_5(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        unit.save_effects([RetainedStored(RETAINED)])
        unit.save_effects([RetainedStored(RetainedPublication("n", publication(persistence=0)))])
    with store.unit_of_work() as unit:
        assert unit.discard_nonpersistent_retained() == 1

    assert state(store)[1] == [RETAINED]


@given(
    st.builds(
        Subscription,
        sub_id=st.binary(min_size=24, max_size=24),
        topic_string=st.text(),
        dest_queue=st.text(),
        dest_qmgr=st.text(),
        created=st.datetimes(timezones=st.just(UTC)),
        name=st.none() | st.text(),
        wildcard=st.sampled_from(WildcardScheme),
        user_data=st.none() | st.text(),
        accounting_token=st.binary(max_size=32),
        options=st.builds(SubscriptionOptions, local=st.booleans(), persistence=st.sampled_from(DeliveryPersistence)),
        identities=st.lists(st.text()).map(tuple),
        expires_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    )
)
def test_a_subscription_and_its_json_are_inverses(subscription: Subscription) -> None:
    assert subscription_of(subscription_state(subscription)) == subscription


@given(
    st.builds(
        Publication,
        st.one_of(st.binary().map(lambda body: decode(body, Mqmd())), st.just(decode(WITH_HEADER))),
        st.datetimes(timezones=st.just(UTC)),
        st.none() | st.datetimes(timezones=st.just(UTC)),
        st.booleans(),
    )
)
def test_a_publication_and_its_row_are_inverses(publication: Publication) -> None:
    assert publication_of(publication_row(publication)) == publication


def test_a_new_queue_manager_has_the_default_objects(store: QueueManagerStore) -> None:
    objects = store.load_state()[0]

    assert (objects.qmgr, set(objects.queues)) == (
        QueueManager("QM1"),
        {*SYSTEM_QUEUES, *(queue.name for queue in DEFAULT_QUEUES)},
    )
    assert set(objects.models) == {model.name for model in DEFAULT_MODELS}
    assert {topic.name for topic in objects.topics} == {topic.name for topic in DEFAULT_TOPIC_OBJECTS}


def test_definitions_survive_and_deleted_defaults_stay_deleted(store: QueueManagerStore, clock: Clock) -> None:
    record = AuthorityRecord("TOPIC", "T", "GROUP", "a group", ("PUB", "SUB"))
    made: list[Definition] = [
        LocalQueue("Q", max_depth=7),
        AliasQueue("AL", "Q"),
        Namelist("NL", ("A", "B")),
        TopicObject("T", "t/1"),
        record,
    ]
    with store.unit_of_work() as unit:
        for definition in made:
            unit.save_definition(definition)
        unit.delete_definition("namelist", SUB_POINT_NAMELIST)
        unit.delete_definition("qlocal", "SYSTEM.BROKER.ADMIN.STREAM")
        unit.delete_definition("topic", "NONE")

    with again(store, clock) as other:
        objects = other.load_state()[0]
    kept = [objects.queues["Q"], objects.aliases["AL"], objects.namelists["NL"], objects.topics.get("T")]
    assert [*kept, objects.authorities[record.name]] == made
    assert SUB_POINT_NAMELIST not in objects.namelists
    assert "SYSTEM.BROKER.ADMIN.STREAM" not in objects.queues


def test_a_queue_with_messages_is_not_deleted_2055(store: QueueManagerStore) -> None:
    put(store, "Q", b"1")
    with store.unit_of_work() as unit:
        with pytest.raises(QueueError) as refused:
            unit.delete_definition("qlocal", "Q")
        unit.clear_queue("Q")
        unit.delete_definition("qlocal", "Q")

    assert refused.value.reason == 2055
    assert store.find_queue("Q") is None


def test_a_queue_manager_keeps_its_name(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        with pytest.raises(StoreError, match="QM2"):
            unit.save_definition(QueueManager("QM2"))
        with pytest.raises(StoreError):
            unit.delete_definition("qmgr", "QM1")


CHANGES = [
    ("definition", lambda unit: unit.save_definition(LocalQueue("Q"))),
    ("deletion", lambda unit: unit.delete_definition("namelist", SUB_POINT_NAMELIST)),
    ("subscription", lambda unit: unit.save_effects([SubscriptionAdded(SUBSCRIPTION)])),
    ("retained", lambda unit: unit.save_effects([RetainedStored(RETAINED), RetainedStored(RETAINED)])),
]
NO_CHANGES = [
    ("put", lambda unit: unit.put("Q", None, b"1")),
    ("delivery", lambda unit: unit.save_effects([Delivery(OTHER, "a/b", RETAINED.publication)])),
    ("nothing-dropped", lambda unit: unit.discard_nonpersistent_retained()),
]


@pytest.mark.parametrize(
    ("change", "grows"),
    [*((c[1], 1) for c in CHANGES), *((c[1], 0) for c in NO_CHANGES)],
    ids=[c[0] for c in CHANGES + NO_CHANGES],
)
def test_the_state_version_tells_of_changes(store: QueueManagerStore, clock: Clock, change: object, grows: int) -> None:
    with store.unit_of_work() as unit:
        before = unit.state_version
        change(unit)  # type: ignore[operator]
        at_end = unit.state_version
    with again(store, clock) as other, other.unit_of_work() as unit:
        assert (at_end, unit.state_version) == (before + grows, before + grows)


@pytest.mark.parametrize("home", ["sqlite"], indirect=True)
def test_a_subscription_that_another_process_makes_leaves_the_definitions_known(
    store: QueueManagerStore, clock: Clock
) -> None:
    put(store, "Q", b"1")
    with again(store, clock) as other, other.unit_of_work() as unit:
        unit.save_effects([SubscriptionAdded(SUBSCRIPTION)])
    statements: list[str] = []
    store.database.connection.set_trace_callback(statements.append)

    put(store, "Q", b"2")

    assert not [statement for statement in statements if "FROM definitions" in statement]
    assert store.depth("Q") == 2


def test_what_another_process_defines_counts_at_once(store: QueueManagerStore, clock: Clock) -> None:
    put(store, "Q", b"1")
    with again(store, clock) as other, other.unit_of_work() as unit:
        unit.save_definition(LocalQueue("Q", put_enabled=False))

    with pytest.raises(QueueError, match="2051"):
        put(store, "Q", b"2")


# The directory


def test_queue_managers_of_one_home(home: Home) -> None:
    names = ["QM1", "qm1", "A.B/C", "%_"]
    for name in names:
        QueueManagerStore.create(home, QueueManager(name)).close()

    assert queue_managers(home) == tuple(sorted(names))
    for name in names:
        with QueueManagerStore.open(home, name) as store:
            assert store.name == name


def test_no_name_leads_out_of_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    QueueManagerStore.create(home, QueueManager("..")).close()
    QueueManagerStore.create(home, QueueManager("../../x")).close()

    assert [entry.name for entry in tmp_path.iterdir()] == ["home"]


@pytest.mark.parametrize("name", ["", "A B", "A" * 49, "A\\B", "ä"])
def test_what_cannot_name_a_queue_manager(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="name"):
        QueueManagerStore.create(tmp_path, QueueManager(name))
    with pytest.raises(StoreError, match="name"):
        QueueManagerStore.open(tmp_path, name)


def test_a_second_creation_is_refused_and_changes_nothing(store: QueueManagerStore) -> None:
    put(store, "Q", b"1")
    with pytest.raises(QueueManagerExistsError):
        QueueManagerStore.create(store.home, QueueManager("QM1", strict=True))

    assert bodies(store, "Q") == [b"1"]


def test_an_unknown_queue_manager_is_told_with_the_known_ones(store: QueueManagerStore) -> None:
    with pytest.raises(QueueManagerNotFoundError, match=r"QM2 does not exist .*QM1.*create QM2"):
        QueueManagerStore.open(store.home, "QM2")


ERRORS = [
    UnknownQueueError("Q"),
    QueueError(2053, "Q", "full"),
    MessageRefusedError(2030, "Q", "long"),
    QueueManagerNotFoundError("A", "B", ("C",)),
    QueueManagerExistsError("A", "B"),
    StoreBusyError("A", 1.5),
    StoreFullError("A"),
    StoreDamagedError("A", "B"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling(error: StoreError) -> None:
    back = pickle.loads(pickle.dumps(error))

    assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))


# Waiting


def test_waiting_ends_at_once_for_what_came_since_the_last_look(store: QueueManagerStore, clock: Clock) -> None:
    with store.unit_of_work():
        pass
    with again(store, clock) as other:
        put(other, "Q", b"1")

    assert store.wait_for_change(60)
    assert not store.wait_for_change(0.01)


def test_own_commits_are_no_change(store: QueueManagerStore) -> None:
    put(store, "Q", b"1")

    assert not store.wait_for_change(0.01)
