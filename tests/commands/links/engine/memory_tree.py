"""A topic tree in memory, and an adapter for it: the shortest one there can be, and the template of others.

Two natures, by ``Nature``: a tree to which a connection is kept and that answers for each publication, as an MQTT
broker does; and one that is called when it is needed, has units of work, and tells nobody what was cleared, as IBM MQ
does.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from commands.links.engine.adapter import (
    Engine,
    FilterAnswer,
    NotCarriedError,
    Prepared,
    Sent,
    Subscribed,
    TreeArrivals,
    TreeUnreachableError,
    UnansweredError,
    Waiting,
)
from commands.links.engine.inbound_writer import NativePublication, TreeRetained
from commands.links.engine.properties import ForTree
from commands.links.engine.spool import Spool
from commands.qmgr.link_port import Capability, Feature, How
from rfh2.constants import MQRC_NOT_AUTHORIZED, MQRCCF_TOPIC_ERROR
from streams.patterns import parse_pattern
from streams.subscriptions import WildcardScheme

Filter = tuple[str, WildcardScheme]


@dataclass(frozen=True, slots=True)
class Nature:
    """What kind of tree. stays_connected: whether a connection is kept. how: what differs from How.DOES."""

    name: str
    stays_connected: bool
    how: tuple[tuple[Feature, How], ...] = ()

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """Its table."""
        given = dict(self.how)
        return tuple(Capability(feature, given.get(feature, How.DOES)) for feature in Feature)

    def but(self, feature: Feature, how: How) -> Nature:
        """The same tree, one thing aside."""
        return replace(self, how=(*self.how, (feature, how)))


ANSWERS_FOR_EACH: Final = Nature(
    "answers for each", True, ((Feature.UNIT_OF_WORK, How.EMULATED), (Feature.REQUEST, How.EMULATED))
)
UNITS_OF_WORK: Final = Nature("units of work", False)


class MemoryTree:
    """The tree, and native programs on it. Tests have it go away, forget, refuse and break off.

    published: by the bridge, topic and data. calls: names of the calls that the bridge made. breaks_at: the next
    publication with this data breaks the connection instead of being taken, once. unanswered: topics of publications
    for which it never answers. busy: topics of those that it would take later.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.is_there, self.sessions = True, 0
        self.filters: set[Filter] = set()
        self.retained: dict[str, NativePublication | None] = {}
        self.inbox: deque[NativePublication] = deque()
        self.published: list[tuple[str, bytes]] = []
        self.cleared: list[str] = []
        self.calls: list[str] = []
        self.refused_topics: set[str] = set()
        self.refused_filters: set[str] = set()
        self.unanswered: set[str] = set()
        self.busy: set[str] = set()
        self.breaks_at: bytes | None = None
        self.connected: Callable[[bool], None] = lambda remembered: None

    def publish(self, topic: str, data: bytes, retain: bool = False) -> None:
        """A native program does."""
        with self.lock:
            native = NativePublication(topic, data, retain=retain)
            if retain:
                self.retained[topic] = native
                if not data:
                    del self.retained[topic]
            if any(parse_pattern(*each).matches(topic) for each in self.filters):
                self.inbox.append(native)

    def go(self) -> None:
        """It is gone; what it keeps stays."""
        self.is_there = False

    def come(self, remembers: bool = True) -> None:
        """It is there again."""
        with self.lock:
            if not remembers:
                self.filters.clear()
                self.inbox.clear()
            self.is_there = True
        self.connected(remembers)

    def called(self, name: str) -> None:
        """The bridge makes a call. Raises TreeUnreachableError where the tree is gone."""
        if not self.is_there:
            raise TreeUnreachableError("the tree is gone")
        self.calls.append(name)

    def take(self, wanted: ForTree) -> None:
        """The bridge publishes or clears."""
        with self.lock:
            if wanted.clear:
                self.retained.pop(wanted.topic, None)
                self.cleared.append(wanted.topic)
                return
            self.published.append((wanted.topic, wanted.payload))
            if wanted.retain:
                self.retained[wanted.topic] = None


class MemoryAdapter:
    """The adapter of a bridge (``Adapter``)."""

    kind, name = "in-memory", "the tree in memory"
    log = logging.getLogger("qpubsub.memory")
    filters_at_once = 3
    forgets_filters = False

    def __init__(self, tree: MemoryTree, nature: Nature) -> None:
        self._tree, self._nature = tree, nature
        self.capabilities = nature.capabilities

    # Names: topic strings as here, but those that begin with $ are the tree's own, and it has no blanks

    def filter_of(self, topic_string: str, wildcard: WildcardScheme) -> Filter | None:
        parse_pattern(topic_string, wildcard)
        return None if topic_string.startswith("$") else (topic_string, wildcard)

    def pattern_of(self, topic_filter: Filter) -> tuple[str, WildcardScheme]:
        return topic_filter

    def matcher(self, filters: Sequence[Filter]) -> Callable[[str], Sequence[Filter]]:
        return lambda topic: [each for each in filters if parse_pattern(*each).matches(topic)]

    def why_stays(self, topic_string: str) -> str | None:
        return "it is the tree's own" if topic_string.startswith("$") else None

    def why_not_carried(self, topic_string: str) -> str | None:
        return self.why_stays(topic_string) or ("it has a blank" if " " in topic_string else None)

    # Its life

    def attach(self, engine: Engine[Filter]) -> None:
        self._engine = engine

    def start(self) -> None:
        if self._nature.stays_connected:
            self._tree.connected = self._engine.connected
            self._engine.connected(True)

    def stop(self) -> None:
        self._tree.connected = lambda remembered: None

    @property
    def is_up(self) -> bool | None:
        return self._tree.is_there if self._nature.stays_connected else None

    def wait_up(self, timeout_s: float) -> bool:
        if self.is_up is False:
            threading.Event().wait(min(timeout_s, 0.02))
        return self.is_up is not False

    @property
    def trouble(self) -> str:
        return "the tree is gone" if self.is_up is False else ""

    @property
    def next_try_s(self) -> float | None:
        return None

    # Filters: the tree is asked which it has

    def remembered(self) -> Collection[Filter]:
        return ()

    def held(self) -> Collection[Filter]:
        return tuple(self._tree.filters)

    def synced(self, filters: Iterable[Filter]) -> None:
        pass

    def save(self) -> None:
        pass

    # Calls

    def client(self) -> MemoryCalls:
        return MemoryCalls(self._tree)

    def receiver(self) -> MemoryReceiver:
        return MemoryReceiver(self._tree)

    def sender(self, spool: Spool, stop: threading.Event) -> MemorySender:
        in_unit_of_work = (Feature.UNIT_OF_WORK, How.DOES) in [(each.feature, each.how) for each in self.capabilities]
        return MemorySender(self._tree, self, in_unit_of_work)


class MemoryCalls:
    """``TreeClient``."""

    def __init__(self, tree: MemoryTree) -> None:
        self._tree = tree

    def prepare(self) -> None:
        pass

    def subscribe(self, filters: Sequence[Filter], urgent: bool) -> Iterator[Subscribed[Filter]]:
        for each in filters:
            self._tree.called("subscribe")
            if each[0] in self._tree.refused_filters:
                yield Subscribed(each, FilterAnswer.REJECTED, f"the tree refuses {each[0]}")
                continue
            with self._tree.lock:
                self._tree.filters.add(each)
            yield Subscribed(each)

    def unsubscribe(self, topic_filter: Filter) -> None:
        self._tree.called("unsubscribe")
        self._tree.filters.discard(topic_filter)

    def retained(self, filters: Sequence[Filter]) -> TreeRetained:
        self._tree.called("retained")
        patterns = [parse_pattern(*each) for each in filters]
        with self._tree.lock:
            there = {t: n for t, n in self._tree.retained.items() if any(p.matches(t) for p in patterns)}
        return TreeRetained(tuple(n for n in there.values() if n is not None), frozenset(there))

    def answers(self) -> bool:
        self._tree.called("answers")
        return True

    def close(self) -> None:
        pass


class MemoryReceiver:
    """``Receiver``: what was taken stays in the tree's inbox until it is accepted."""

    def __init__(self, tree: MemoryTree) -> None:
        self._tree, self._taken = tree, 0

    @property
    def is_waiting(self) -> bool:
        return bool(self._tree.inbox)

    def take(self, limit: int, timeout_s: float) -> TreeArrivals:
        if not self._tree.inbox or not self._tree.is_there:
            threading.Event().wait(min(timeout_s, 0.02))
            return TreeArrivals()
        with self._tree.lock:
            natives = list(self._tree.inbox)[:limit]
        self._taken = len(natives)
        return TreeArrivals(natives, self._taken)

    def accept(self) -> None:
        self._tree.called("accept")
        with self._tree.lock:
            for _ in range(self._taken):
                self._tree.inbox.popleft()
        self._taken = 0

    def undo(self) -> None:
        self._taken = 0

    def close(self) -> None:
        pass


class MemorySender:
    """``Sender``."""

    def __init__(self, tree: MemoryTree, adapter: MemoryAdapter, in_unit_of_work: bool) -> None:
        self._tree, self._adapter, self._in_unit_of_work = tree, adapter, in_unit_of_work

    def prepare(self, wanted: ForTree) -> Prepared[ForTree] | None:
        why = self._adapter.why_not_carried(wanted.topic)
        if why is not None:
            raise NotCarriedError(MQRCCF_TOPIC_ERROR, f"topic {wanted.topic}: {why}")
        if wanted.payload == b"a fault":
            raise ZeroDivisionError("injected")
        return Prepared(wanted)

    def send(self, batch: Iterable[Waiting[ForTree]]) -> Iterator[Sent]:
        unit: list[ForTree] = []
        missing: list[Waiting[ForTree]] = []
        for each in batch:
            self._tree.called("publish")
            if each.wanted.payload == self._tree.breaks_at:
                self._tree.breaks_at = None
                raise TreeUnreachableError("the connection is broken")
            if each.wanted.topic in self._tree.unanswered | self._tree.busy:
                missing.append(each)
                continue
            if each.wanted.topic in self._tree.refused_topics:
                yield Sent(each.message, MQRC_NOT_AUTHORIZED, f"the tree refuses topic {each.wanted.topic}")
                continue
            if self._in_unit_of_work and not each.wanted.clear:
                unit.append(each.item)
            else:
                self._tree.take(each.item)
            yield Sent(each.message)
        for wanted in unit:
            self._tree.take(wanted)
        if missing:
            keys = [each.key for each in missing if each.wanted.topic in self._tree.unanswered]
            raise UnansweredError("the tree has not answered for all", keys)

    def done(self) -> None:
        pass

    def close(self) -> None:
        pass
