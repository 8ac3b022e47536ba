"""Keeps the filters at the tree equal to those of the subscriptions, after a new connection or a change.

The keeper unsubscribes from filters that no subscription needs. It subscribes to filters that are needed and not
synced; then it puts the tree's retained publications as commands, like new publications; then the filter is synced.
After a new connection it subscribes once more to filters that a tree may have forgotten: one that was killed may have
an older state than it had answered for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Generic, TypeVar

from commands.links.engine.adapter import Adapter, TreeClient, carries
from commands.links.engine.filter_registry import FilterRegistry, Subscribing
from commands.links.engine.lookups import Silence
from commands.links.engine.retained import NewerTopics, News
from commands.links.engine.spool import LinkStores
from commands.links.engine.threads import Backoff, IdleCounter
from commands.qmgr.link_port import Feature
from rfh2.errors import StoreError

F = TypeVar("F", bound=Hashable)

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 30.0
_LOOK_S: Final = 1.0
_NAP_S: Final = 0.05
_LOOKS: Final = 5
# Someone may grant at any time what the tree refuses, and the tree does not report it: so often try again.
RETRY_REJECTED_S: Final = 300.0


class Keeper(Generic[F]):
    """A thread's work, until *stop* is set. ``wake`` makes it look for work."""

    def __init__(
        self,
        adapter: Adapter[F, Any],
        registry: FilterRegistry[F],
        stores: LinkStores,
        silence: Silence,
        news: News,
        newer: NewerTopics,
        stop: threading.Event,
    ) -> None:
        self._adapter, self._registry, self._stores, self._silence = adapter, registry, stores, silence
        self._news, self._newer, self._stop = news, newer, stop
        self._subscribing = Subscribing(adapter, registry)
        self._retains = carries(adapter.capabilities, Feature.RETAIN)
        self._work = threading.Event()
        self._busy = False
        self.counter = IdleCounter()

    def wake(self) -> None:
        """There may be something to do."""
        self._work.set()

    @property
    def is_idle(self) -> bool:
        """Whether it has nothing to do, and is doing nothing."""
        return not self._busy and not self._work.is_set() and not self._left()

    def _left(self) -> bool:
        return bool(self._registry.unsynced() or self._registry.unconfirmed())

    def run(self) -> None:
        """The thread's work."""
        client = self._adapter.client()
        backoff = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        retry_at = time.monotonic() + RETRY_REJECTED_S
        while not self._stop.is_set():
            self._work.wait(_LOOK_S)
            if time.monotonic() >= retry_at:
                retry_at += RETRY_REJECTED_S
                if self._registry.retry_rejected():
                    self.wake()
            if not self._work.is_set() or self._is_down() or not self._registry.is_known:
                self._stop.wait(_NAP_S)
                continue
            self._busy = True
            self._work.clear()
            try:
                self.one_round(client)
                self.counter.found(1)
                backoff.reset()
            except StoreError as error:
                self.counter.failed(error)
                pause_s = backoff.next()
                if not self._is_down():
                    text = "subscriptions at %s wait: %s; the next try is in %.1f seconds"
                    self._adapter.log.warning(text, self._adapter.name, error, pause_s)
                self._stop.wait(pause_s)
                self.wake()
            finally:
                self._busy = False
        client.close()

    def _is_down(self) -> bool:
        return self._adapter.is_up is False

    def one_round(self, client: TreeClient[F]) -> None:
        """Do all that there is to do. Raises StoreError: then it has to be done again."""
        client.prepare()
        self._drop_unwanted(client)
        for some in self._portions(self._registry.unsynced()):
            self._catch_up(client, some)
        connection = self._registry.connections
        for some in self._portions(self._registry.unconfirmed()):
            self._subscribing.subscribe(client, some, urgent=False)
            self._registry.confirm(some, connection)
        if self._stop.is_set():
            return
        if self._silence.holds:
            if client.answers():
                self._silence.end()
            else:
                self.wake()
        with self._registry.lock:
            self._adapter.save()

    def _portions(self, filters: Sequence[F]) -> Iterator[Sequence[F]]:
        """*filters* in portions, until it is to stop."""
        at_once = self._adapter.filters_at_once
        for at in range(0, len(filters), at_once):
            if self._stop.is_set():
                return
            yield filters[at : at + at_once]

    def _drop_unwanted(self, client: TreeClient[F]) -> None:
        with self._registry.lock:
            unwanted = self._registry.drop_unwanted(self._adapter.held())
        for topic_filter in unwanted:
            # Under the lock, and only while no subscription needs it again: a filter that is needed is never removed.
            with self._registry.lock:
                if not self._registry.is_wanted(topic_filter):
                    client.unsubscribe(topic_filter)
                self._registry.dropped(topic_filter)

    def _catch_up(self, client: TreeClient[F], filters: Sequence[F]) -> None:
        accepted = self._subscribing.subscribe(client, filters, urgent=False)
        if accepted and self._retains:
            # What came meanwhile may be older, where it had waited here, or newer: so look again.
            for left in reversed(range(_LOOKS)):
                with self._newer.noted():
                    if self._learn(client, accepted, is_last=not left):
                        break
        with self._registry.lock:
            self._adapter.synced([each for each in accepted if self._registry.sync(each)])

    def _learn(self, client: TreeClient[F], filters: Sequence[F], is_last: bool) -> bool:
        """Tell the queue manager what the tree retains under *filters*; whether nothing came between.

        is_last: in any case, but for topics on which something came.
        """
        there = client.retained(filters)
        matcher = self._adapter.matcher(filters)
        with self._stores.retained() as kept:
            here = [retained for retained in kept if matcher(retained.topic_string)]
            learnt = [native for native, _ in self._news.of(there, here, datetime.now(UTC))]
        if not learnt:
            return True
        writer = self._stores.writer()
        try:
            with self._newer.turn:
                fresh = [native for native in learnt if native.topic not in self._newer.topics]
                if len(fresh) < len(learnt) and not is_last:
                    return False
                writer.put(fresh)
        finally:
            writer.close()
        return True
