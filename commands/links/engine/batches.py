"""Divides what goes to a tree into batches that are sent together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")

_MOST: Final = 1_000


def batches(
    given: Iterable[T], size: Callable[[T], int], most_bytes: int, apart: Callable[[T], Hashable] | None = None
) -> Iterator[list[T]]:
    """Batches of *given*, in order, each of about *most_bytes* at most, and of one item at least.

    size: of an item, in bytes. apart: two items for which it is equal are not in one batch; None for no such rule.
    """
    together: list[T] = []
    kinds: set[Hashable] = set()
    length = 0
    for each in given:
        kind = len(together) if apart is None else apart(each)
        if together and (kind in kinds or length > most_bytes or len(together) == _MOST):
            yield together
            together, kinds, length = [], set(), 0
        together.append(each)
        kinds.add(kind)
        length += size(each)
    if together:
        yield together
