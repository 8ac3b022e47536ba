"""A bounded cache keeps what has room, and no more."""

from __future__ import annotations

from hypothesis import given, strategies as st

from rfh2.bounded_cache import BoundedCache

ROOM = 640


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 12)), max_size=300))
def test_never_more_than_its_room_and_never_another_value(steps: list[tuple[int, int]]) -> None:
    cache: BoundedCache[int, tuple[int, int]] = BoundedCache(ROOM)
    sizes: dict[int, int] = {}
    for key, size in steps:
        found = cache.get(key)
        if found is None:
            sizes[key] = size
            cache.keep(key, (key, size), size)
        else:
            assert found == (key, sizes[key])
        assert sum(size for at, size in sizes.items() if cache.get(at) is not None) <= ROOM


def test_what_was_just_kept_is_there_unless_it_is_large() -> None:
    cache: BoundedCache[str, int] = BoundedCache(ROOM)
    for number in range(1000):
        cache.keep(f"{number}", number, 10)
        assert cache.get(f"{number}") == number
    cache.keep("large", 1, 11)
    assert cache.get("large") is None
    cache.clear()
    assert len(cache) == 0
    for number in range(64):
        cache.keep(f"{number}", number, 10)
    assert len(cache) == 64
