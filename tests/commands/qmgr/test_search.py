"""Looking for a message among many: how much is looked at, and that nothing is missed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.port import BODY, MessageRow
from commands.qmgr.store.uncommitted import ANY, Match, Search
from rfh2.mqmd import Mqmd

MOST_ROWS = 100


@pytest.fixture
def store(tmp_path: Path) -> Iterator[QueueManagerStore]:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        yield store


def put(
    store: QueueManagerStore, *bodies: bytes, priority: int = 0, correl_id: bytes = bytes(24), queue: str = "Q"
) -> int:
    """Put messages on a queue; the number of the last one."""
    md = Mqmd(priority=priority, correl_id=correl_id).encode()
    with store.unit_of_work() as unit:
        return [unit.put(queue, md, body) for body in bodies][-1]


def look(store: QueueManagerStore, search: Search) -> list[tuple[int | None, bool]]:
    """The turns that it takes to know."""
    turns = [search.turn(store.database, 0, _fits)]
    while not turns[-1][1]:
        turns.append(search.turn(store.database, 0, _fits))
    return turns


def _fits(row: MessageRow) -> bool:
    return row[BODY] == b"good"


@pytest.mark.rule("LSN-43")
def test_a_turn_is_bounded_and_none_looks_again_at_what_was_looked_at(store: QueueManagerStore) -> None:
    put(store, *[b"bad"] * 1_000)
    statements: list[str] = []
    store.database.connection.set_trace_callback(statements.append)
    search = Search("Q", ANY)
    turns = look(store, search)
    assert (turns[-1], search.looked_at) == ((None, True), 1_000)
    assert len(turns) >= 1_000 / MOST_ROWS
    assert len(statements) <= 12 * len(turns)  # each looks whether something came of a higher priority
    assert not any("BEGIN" in statement for statement in statements)
    assert look(store, search) == [(None, True)]
    assert search.looked_at == 1_000
    put(store, b"bad", b"bad")
    found = put(store, b"good")
    assert look(store, search) == [(found, True)]
    assert search.looked_at == 1_003


def test_others_put_and_get_between_the_turns(store: QueueManagerStore, tmp_path: Path) -> None:
    put(store, *[b"bad"] * 300)
    search = Search("Q", ANY)
    assert search.turn(store.database, 0, _fits) == (None, False)
    with QueueManagerStore.open(tmp_path, "QM1", patience_s=0) as other:
        found = put(other, b"good")
    assert look(store, search)[-1] == (found, True)


def test_ids_are_compared_without_reading_the_headers(store: QueueManagerStore) -> None:
    put(store, *[b"good"] * 1_000)
    found = put(store, b"good", correl_id=b"a" * 24)
    search = Search("Q", Match(correl_id=b"a" * 24))
    assert look(store, search) == [(found, True)]
    assert search.looked_at == 1


def test_long_messages_make_a_turn_short(store: QueueManagerStore) -> None:
    put(store, *[bytes(400_000)] * 7)
    search = Search("Q", ANY)
    assert [is_over for _, is_over in look(store, search)] == [False, False, True]


def test_the_highest_priority_is_first_also_when_it_comes_later(store: QueueManagerStore) -> None:
    low = put(store, b"good", priority=1)
    search = Search("Q", ANY)
    assert look(store, search)[-1] == (low, True)
    high = put(store, b"bad", b"good", priority=8)
    assert look(store, search)[-1] == (high, True)
    assert look(store, search)[-1] == (high, True)
    with store.unit_of_work() as unit:
        unit.uncommitted.remove("Q", high)
    assert look(store, search)[-1] == (low, True)


def test_a_search_behind_a_place_sees_nothing_before_it(store: QueueManagerStore) -> None:
    first, second = put(store, b"good"), put(store, b"good")
    search = Search("Q", ANY, (9, first))
    assert look(store, search)[-1] == (second, True)
    search.came(first)
    put(store, b"good", priority=5)
    assert look(store, search)[-1] == (second, True)


# What programs do: put and hide, or get and hide, then commit or back out; their messages have old numbers.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["put", "hide"]), st.integers(0, 2), st.sampled_from([b"good", b"bad"])),
        st.tuples(st.sampled_from(["look", "take", "remove", "commit", "backout"]), st.just(0), st.just(b"")),
    ),
    max_size=25,
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueueManagerStore]:
    """For all examples: each has a queue and a program of its own."""
    with QueueManagerStore.create(tmp_path_factory.mktemp("home"), QueueManager("QM1")) as store:
        yield store


NUMBERS = count()


@pytest.mark.rule("LSN-43")
@given(STEPS)
@settings(deadline=None, max_examples=60)
def test_what_is_found_is_what_a_look_at_all_finds(
    shared: QueueManagerStore, steps: list[tuple[str, int, bytes]]
) -> None:
    number = next(NUMBERS)
    queue, program = f"Q{number}", f"1 {number}"
    search = Search(queue, ANY)
    for step, priority, body in [*steps, ("look", 0, b"")]:
        if step in ("put", "hide"):
            seq = put(shared, body, priority=priority, queue=queue)
            if step == "hide":
                with shared.unit_of_work() as unit:
                    unit.uncommitted.put(queue, seq, program)
            continue
        found, is_over = look(shared, search)[-1]
        good = [m for m in shared.browse(queue) if m.body == b"good"] if shared.find_queue(queue) else []
        assert (found, is_over) == (good[0].seq if good else None, True)
        with shared.unit_of_work() as unit:
            if step == "remove" and found is not None:
                unit.uncommitted.remove(queue, found)
            elif step == "take" and found is not None:
                unit.uncommitted.got(queue, found, program)
            elif step in ("commit", "backout"):
                end = unit.uncommitted.commit if step == "commit" else unit.uncommitted.backout
                for seq in end(program).values():
                    search.came(seq)
