"""Whether two readings of a broker are the same, and how they differ.

The fingerprint depends on the contents of the items, not on where they were found or on their order: two listings of
the same broker have the same fingerprint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from pydantic import TypeAdapter

from migrate.legacy_state import CLASS_OF_FIELD, Item, LegacyState

_ADAPTERS: Final = {cls.kind: TypeAdapter[Item](cls) for cls in CLASS_OF_FIELD.values()}


def digest(item: Item) -> str:
    """32 hexadecimal digits for the contents of *item*."""
    said = _ADAPTERS[item.kind].dump_json(item, exclude={"source"}, exclude_defaults=True)
    return sha256(b"%s %s" % (item.kind.encode(), said)).hexdigest()[:32]


def fingerprint(state: LegacyState) -> str:
    """40 hexadecimal digits for the whole state."""
    return combined(digest(item) for _, item in state.items())


def combined(digests: Iterable[str]) -> str:
    """The fingerprint of items that have these digests, in whatever order."""
    whole = sha256()
    for one in sorted(digests):
        whole.update(one.encode())
    return whole.hexdigest()[:40]


@dataclass(frozen=True, slots=True)
class ReadingDifference:
    """What changed from one reading to a later one: labels of new items, and how many of each kind are gone."""

    added: tuple[str, ...]
    removed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def labelled(state: LegacyState) -> Iterator[tuple[str, str]]:
    """(digest, label) of every item: what to keep of a reading in order to compare a later one with it."""
    return ((digest(item), item.label) for _, item in state.items())


def difference(before: Iterable[tuple[str, str]], after: Iterable[tuple[str, str]]) -> ReadingDifference:
    """The items that only *after* has and those that only *before* has, each in its own order."""
    before, after = list(before), list(after)
    were, are = Counter(d for d, _ in before), Counter(d for d, _ in after)
    return ReadingDifference(_beyond(after, were), _beyond(before, are))


def _beyond(items: Iterable[tuple[str, str]], others: Counter[str]) -> tuple[str, ...]:
    left = Counter(others)
    found = []
    for one, label in items:
        if left[one]:
            left[one] -= 1
        else:
            found.append(label)
    return tuple(found)
