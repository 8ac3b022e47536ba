"""The interface of a tree that is logs: streams of JetStream, partitions of Kafka.

A log has numbered messages, and keeps them whether they were read or not. So the bridge remembers itself how far it has
read (``commands.links.engine.inbound_writer``), and which filters it follows (``commands.links.engine.filters``).
The engine does that and all that follows from it (``log_receiver``, ``log_adapter``); an adapter makes the calls.

M is a message as the tree's client library gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from commands.links.engine.filters import Positions
from commands.links.engine.properties import TreeMessage

M = TypeVar("M")
Following = Callable[[], Sequence[str]]
"""Says which filters there are now."""


@dataclass(frozen=True, slots=True)
class Placed(Generic[M]):
    """*message*, with *payload*, at *position* of *log*; None: up to there, nothing more for the bridge."""

    log: str
    position: int
    message: M | None = None
    payload: bytes = b""


class LogReader(Protocol[M]):
    """Reads logs on from where it was opened; for one thread. After an exception it is closed, and another opened."""

    def read(self, limit: int, timeout_s: float) -> Sequence[Placed[M]]:
        """At most the next *limit*, in the order of each log; wait up to timeout_s if there is none.

        Raises StoreError, also where something may be missing between what has come.
        """

    def close(self) -> None:
        """Stop reading. Raises nothing."""


class Logs(Protocol[M]):
    """A tree that is logs; for several threads. Each call raises StoreError. bridge: the bridge's name there."""

    bridge: str

    def make_ready(self) -> None:
        """Make what the bridge needs there, if it is not there."""

    def ends(self) -> Positions:
        """The position of the last message in each log. A log that was made anew has another name, if that is known."""

    def begins(self) -> Positions:
        """The position before the first message in each log."""

    def reader(self, positions: Positions, following: Following) -> LogReader[M]:
        """A reader of what comes behind *positions* and a filter selects, or more than that."""

    def follow(self, following: Following) -> None:
        """There are other filters: have the open reader read what they select too."""

    def waits(self, positions: Positions) -> bool:
        """Whether the open reader has something behind *positions*."""

    def record(self, message: M) -> TreeMessage:
        """What is in a message."""

    def retained(self, filters: Sequence[str]) -> Iterable[M]:
        """The last message of each topic that *filters* select, or of more topics, where the tree retains them."""

    def close(self) -> None:
        """Disconnect. Raises nothing."""


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
