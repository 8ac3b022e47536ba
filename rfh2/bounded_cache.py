"""A cache that is bounded in bytes."""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Values that can be made again, by key, of so many bytes at most. Whoever fills it owns it.

    most_bytes: for all entries. An entry that alone takes more than a 64th of that is not kept: one that large seldom
    comes again, and would drive the others out. Where an entry has no room, all the others are thrown out: what is in
    use is made once more, while ageing would cost every look-up. Threads may share one: what two of them keep at one
    moment may be counted twice. largest_bytes: that 64th.
    """

    __slots__ = ("_entries", "_left", "_most_bytes", "largest_bytes")

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = self._left = most_bytes
        self.largest_bytes = most_bytes // 64
        self._entries: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """The value kept for *key*, if there is one."""
        return self._entries.get(key)

    def keep(self, key: K, value: V, size_bytes: int) -> None:
        """Keep the value of a key that has none. size_bytes: what both take in memory, roughly; above 0."""
        if size_bytes > self.largest_bytes:
            return
        if size_bytes > self._left:
            self.clear()
        self._left -= size_bytes
        self._entries[key] = value

    def clear(self) -> None:
        """Forget all entries."""
        self._entries.clear()
        self._left = self._most_bytes
