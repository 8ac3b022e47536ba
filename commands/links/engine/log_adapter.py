"""The part of an adapter that all trees which are logs share (``Adapter``): capabilities, names, filters, and calls.

A filter is text, as in the topic-based scheme, with ``#`` at the end only. Such trees have no topics of their own, so
wildcards select topic strings with ``$`` too: all topic strings and filters begin with ``/`` here.

``Logs`` is the interface of such a tree: streams of JetStream, partitions of Kafka.

A log has numbered messages, and keeps them whether they were read or not. So the bridge remembers itself how far it has
read (``commands.links.engine.inbound_writer``), and which filters it follows (``commands.links.engine.filters``).
The engine does that and all that follows from it (``log_receiver``, ``log_adapter``); an adapter makes the calls.

M is a message as the tree's client library gives it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from commands.links.engine.adapter import Engine, Subscribed, TreeArrivals, Unconnected
from commands.links.engine.filters import FollowedFilters, Positions, levels_of, matcher_of, selected
from commands.links.engine.inbound_writer import NativePublication, TreeRetained, Unreadable
from commands.links.engine.properties import TreeMessage, native_of
from commands.qmgr.link_port import Capability, Feature, How
from streams.subscriptions import WildcardScheme
from streams.topic_strings import SEPARATOR

Following = Callable[[], Sequence[str]]
"""Says which filters there are now."""

M = TypeVar("M")


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


Rows = Mapping[Feature, How]
_COMMON: Final[Rows] = {
    Feature.ALTER: How.EMULATED,
    Feature.RETAIN_EMPTY: How.DOES,
    Feature.PROPERTIES: How.DOES,
    Feature.HEADERS: How.NOT_CARRIED,
    Feature.SELECTORS: How.EMULATED,
    Feature.SCOPE: How.EMULATED,
    Feature.OTHER_SUBS_ONLY: How.DOES,
    Feature.IDENTITY: How.EMULATED,
}


def capabilities_of(rows: Rows) -> tuple[Capability, ...]:
    """The table, in the order of the features. rows: what is the tree's own."""
    all_rows = {**_COMMON, **rows}
    return tuple(Capability(feature, all_rows[feature]) for feature in Feature)


# Messages of a tree that is logs, read by filters (``Receiver``).
#
# The position of the bridge is committed in the unit of work of the commands that came up to there. So nothing comes
# twice, whatever was killed: what a reader has given and nobody took comes again from another one, and nothing else
# does.


# How often to look for new logs, and to keep a position before which there was nothing for a subscriber.
_LOOK_S: Final = 60.0
_KEEP_S: Final = 10.0
# How often to ask the tree for a sign of life, where nothing is read.
_ALIVE_S: Final = 5.0


class LogReceiver(Generic[M]):
    """For the engine's thread; other threads call what is said to be theirs. kept: the position committed last."""

    def __init__(self, logs: Logs[M], filters: FollowedFilters, default_format: str, log: logging.Logger) -> None:
        self._logs, self._filters, self._default_format, self._log = logs, filters, default_format, log
        self._reader: LogReader[M] | None = None
        self._position: Positions = {}
        self._ahead: Positions = {}
        self._last_kept: Positions = {}
        self._taken: TreeArrivals | None = None
        self._undone: TreeArrivals | None = None
        self._wake, self._look_at, self._keep_at = threading.Event(), 0.0, 0.0
        self._is_behind = False
        self.kept: Callable[[], Positions | None]

    # Other threads

    def follow(self) -> None:
        """There may be a first filter."""
        self._wake.set()

    def look(self) -> None:
        """Find out whether there is something to read. Raises StoreError."""
        self._is_behind = bool(self._filters.all()) and self._logs.waits(self._position)

    def native(self, record: TreeMessage) -> NativePublication | None:
        """The publication in a record with a topic string; None if it has expired."""
        return native_of(record, time.time(), self._default_format)

    # The engine's thread

    @property
    def is_waiting(self) -> bool:
        return bool(self._taken or self._undone or self._is_behind)

    def take(self, limit: int, timeout_s: float) -> TreeArrivals:
        if self._undone is None and not self._filters.all():
            self.close()
            self._position, self._is_behind = {}, False
            if time.monotonic() > self._look_at:
                self._logs.ends()  # nobody else may ask it for long, and somebody may want to know that it is away
                self._look_at = time.monotonic() + _ALIVE_S
            self._wake.wait(timeout_s)
            self._wake.clear()
            return TreeArrivals()
        taken, self._undone = self._undone or self._read(limit, timeout_s), None
        self._taken = taken
        if not taken.count:
            self._is_behind = False
            if taken.position is None:
                self.accept()
        return taken

    def accept(self) -> None:
        self._taken = None
        self._position = {**self._position, **self._ahead}
        self._filters.passed(self._position)

    def undo(self) -> None:
        self._taken, self._undone = None, self._taken or self._undone

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None

    def _read(self, limit: int, timeout_s: float) -> TreeArrivals:
        try:
            placed = self._opened().read(limit, timeout_s)
        except Exception:
            self.close()
            raise
        # Never back: what was accepted does not come again.
        self._ahead = {each.log: max(each.position, self._position[each.log]) for each in placed}
        natives = [native for each in placed if (native := self._native(each)) is not None]
        behind, now = {**self._position, **self._ahead}, time.monotonic()
        is_kept = bool(natives) or (behind != self._last_kept and now > self._keep_at)
        if is_kept:
            self._last_kept, self._keep_at = behind, now + _KEEP_S
        count = sum(each.message is not None for each in placed)
        return TreeArrivals(natives, count, position=behind if is_kept else None)

    def _opened(self) -> LogReader[M]:
        """A reader of all logs that there are. Raises StoreError."""
        if self._reader is not None and time.monotonic() < self._look_at:
            return self._reader
        ends = self._logs.ends()
        self._look_at = time.monotonic() + _LOOK_S
        if self._reader is not None and ends.keys() == self._position.keys():
            return self._reader
        begins, known = self._logs.begins(), self._position or self.kept() or {}
        for gone in known.keys() - ends.keys():
            self._log.warning("%s is gone: what natives published there and had not come yet is lost", gone)
        self.close()
        self._position = {log: self._begin(log, known, begins.get(log, -1), end) for log, end in ends.items()}
        self._reader = self._logs.reader(self._position, self._filters.all)
        return self._reader

    def _begin(self, log: str, known: Positions, begin: int, end: int) -> int:
        """Behind which position to read *log*."""
        since = self._filters.first(log)
        # A position that no subscriber needs any more is an earlier one.
        since = end if since is None else since
        position = max(known.get(log, since), since)
        if begin <= position <= end:
            return position
        if position >= 0:
            text = "%s: what natives published at positions %d to %d is gone"
            self._log.warning(text, log, position + 1, begin)
        if position > end:
            self._filters.restart(log)
        return begin

    def _native(self, placed: Placed[M]) -> NativePublication | Unreadable | None:
        """The publication; None for one that no subscription needs, or that this bridge has sent or has already."""
        if placed.message is None:
            return None
        try:
            record = self._logs.record(placed.message)
            by = record.bridge
            if by == self._logs.bridge or (by is not None and record.is_copy):
                return None
            like = record.near if record.topic is None else record.topic
            # Where a message is like no topic string, nobody can say that no subscriber wants it.
            if (like or record.topic is not None) and not self._takes(like, placed):
                return None
            if record.topic is None:
                self._log.error("message %d of %s (%.200s) is on no topic", placed.position, placed.log, like)
                return Unreadable(placed.payload)
            return self.native(record)
        except Exception as error:
            # A fault of ours, or a value nobody thought of: it must not keep what is behind it waiting.
            self._log.error("message %d of %s cannot be read", placed.position, placed.log, exc_info=error)
            return Unreadable(placed.payload)

    def _takes(self, topic: str, placed: Placed[M]) -> bool:
        return self._filters.takes(selected(topic), placed.log, placed.position)


class LogAdapter(Unconnected, Generic[M]):
    """A tree that is logs. path: of the file in which the filters are kept. Raises StoreError if it cannot be used."""

    log: logging.Logger

    def __init__(self, logs: Logs[M], path: Path, default_format: str) -> None:
        self._logs, self._filters = logs, FollowedFilters(path)
        self._receiver = LogReceiver(logs, self._filters, default_format, self.log)

    # Names

    def filter_of(self, topic_string: str, wildcard: WildcardScheme) -> str | None:
        return filter_of(topic_string, wildcard)

    def pattern_of(self, topic_filter: str) -> tuple[str, WildcardScheme]:
        return topic_filter.removeprefix(SEPARATOR), WildcardScheme.TOPIC

    def matcher(self, filters: Sequence[str]) -> Callable[[str], Sequence[str]]:
        return matcher_of(filters, selected)

    def why_stays(self, topic_string: str) -> str | None:
        """None: the tree has a name for every topic string."""

    def why_not_carried(self, topic_string: str) -> str | None:
        """None: the tree has a name for every topic string."""

    # Its life

    def attach(self, engine: Engine[str]) -> None:
        self._receiver.kept = engine.position

    def stop(self) -> None:
        self._logs.close()
        self._filters.save()

    # Filters

    def remembered(self) -> Collection[str]:
        return self._filters.synced

    def held(self) -> Collection[str]:
        return self._filters.all()

    def synced(self, filters: Iterable[str]) -> None:
        self._filters.sync(filters)

    def save(self) -> None:
        self._filters.save(only_changes=True)

    # Calls

    def client(self) -> LogCalls[M]:
        return LogCalls(self._logs, self._receiver, self._filters)

    def receiver(self) -> LogReceiver[M]:
        return self._receiver


class LogCalls(Generic[M]):
    """The calls of one thread (``TreeClient``)."""

    def __init__(self, logs: Logs[M], receiver: LogReceiver[M], filters: FollowedFilters) -> None:
        self._logs, self._receiver, self._filters = logs, receiver, filters

    def prepare(self) -> None:
        self._logs.make_ready()

    def subscribe(self, filters: Sequence[str], urgent: bool) -> Iterator[Subscribed[str]]:
        del urgent  # one is as fast as another
        self._filters.follow(filters, self._logs.ends())
        self._logs.follow(self._filters.all)
        self._receiver.follow()
        yield from map(Subscribed, filters)

    def unsubscribe(self, topic_filter: str) -> None:
        self._filters.remove(topic_filter)

    def retained(self, filters: Sequence[str]) -> TreeRetained:
        matches, natives, topics = matcher_of(filters, selected), list[NativePublication](), set[str]()
        for message in self._logs.retained(filters):
            record = self._logs.record(message)
            if record.topic is None or record.clears or not matches(record.topic):
                continue
            is_own = record.bridge == self._logs.bridge
            native = None if is_own else self._receiver.native(record)
            if is_own or native is not None:
                topics.add(record.topic)
            if native is not None and not native.clears:
                natives.append(native)
        return TreeRetained(tuple(natives), frozenset(topics))

    def answers(self) -> bool:
        self._receiver.look()
        return True

    def close(self) -> None:
        """Nothing is held: the adapter disconnects."""


def filter_of(topic_string: str, scheme: WildcardScheme) -> str | None:
    """The narrowest filter that selects all that the pattern does; None if there is none.

    Raises CommandError 3072 where *topic_string* is no pattern of that scheme.
    """
    levels = levels_of(topic_string, scheme)
    return None if levels is None else selected(SEPARATOR.join(levels))
