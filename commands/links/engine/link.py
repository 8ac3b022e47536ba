"""The link between a queue manager's topic space and a topic tree elsewhere (``ManagedLink``), whatever kind of tree.

Three threads beside the processor's, and what an adapter has of its own:

    inward    publications that have come ─> commands on the default stream's queue, then accepted   ``pumps``
    outward   the outgoing queue ─> the tree; taken off once it has answered for them                ``pumps``
    keeper    the tree's filters as the subscriptions are, and what it retains there                 ``Keeper``

A filter is *synced* when the tree has it, and the publications that it retained under it are known here and committed.
A RegSub syncs its filter itself, before its response (``filter_registry``). The keeper syncs all others.

The link relies on what the tree remembers: after a restart of either side it subscribes and unsubscribes only the
difference, and nothing before it knows all subscriptions (``load``).

The keeper keeps the filters at the tree equal to those of the subscriptions, after a new connection or a change. It
unsubscribes from filters that no subscription needs. It subscribes to filters that are needed and not
synced; then it puts the tree's retained publications as commands, like new publications; then the filter is synced.
After a new connection it subscribes once more to filters that a tree may have forgotten: one that was killed may have
an older state than it had answered for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, Generic

from commands.broker.puts import Outgoing
from commands.config.settings import TopicsConfig
from commands.links.engine import adapter as trees
from commands.links.engine.filter_registry import FilterRegistry, Lookups, Silence, Subscribing
from commands.links.engine.inbound_writer import LinkScope, NewerTopics, News
from commands.links.engine.properties import clearing, publishing
from commands.links.engine.pumps import InboundPump, OutboundPump
from commands.links.engine.spool import LinkStores
from commands.links.engine.threads import Backoff, IdleCounter, Threads, settled
from commands.qmgr.link_port import Capability, Feature, LinkState, TopicSpaceView
from rfh2.errors import CommandError, StoreError
from streams.operations import ClearRetained, Effect, Operation, PublishToTopic, RetainedCleared
from streams.patterns import parse_pattern
from streams.subscriptions import Subscription
from streams.topic_objects import TopicObjects

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 30.0
_LOOK_S: Final = 1.0
_NAP_S: Final = 0.05
_LOOKS: Final = 5
# Someone may grant at any time what the tree refuses, and the tree does not report it: so often try again.
RETRY_REJECTED_S: Final = 300.0


class Keeper(Generic[trees.F]):
    """A thread's work, until *stop* is set. ``wake`` makes it look for work."""

    def __init__(
        self,
        adapter: trees.Adapter[trees.F, Any],
        registry: FilterRegistry[trees.F],
        stores: LinkStores,
        silence: Silence,
        news: News,
        newer: NewerTopics,
        stop: threading.Event,
    ) -> None:
        self._adapter, self._registry, self._stores, self._silence = adapter, registry, stores, silence
        self._news, self._newer, self._stop = news, newer, stop
        self._subscribing = Subscribing(adapter, registry)
        self._retains = trees.carries(adapter.capabilities, Feature.RETAIN)
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

    def one_round(self, client: trees.TreeClient[trees.F]) -> None:
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

    def _portions(self, filters: Sequence[trees.F]) -> Iterator[Sequence[trees.F]]:
        """*filters* in portions, until it is to stop."""
        at_once = self._adapter.filters_at_once
        for at in range(0, len(filters), at_once):
            if self._stop.is_set():
                return
            yield filters[at : at + at_once]

    def _drop_unwanted(self, client: trees.TreeClient[trees.F]) -> None:
        with self._registry.lock:
            unwanted = self._registry.drop_unwanted(self._adapter.held())
        for topic_filter in unwanted:
            # Under the lock, and only while no subscription needs it again: a filter that is needed is never removed.
            with self._registry.lock:
                if not self._registry.is_wanted(topic_filter):
                    client.unsubscribe(topic_filter)
                self._registry.dropped(topic_filter)

    def _catch_up(self, client: trees.TreeClient[trees.F], filters: Sequence[trees.F]) -> None:
        accepted = self._subscribing.subscribe(client, filters, urgent=False)
        if accepted and self._retains:
            # What came meanwhile may be older, where it had waited here, or newer: so look again.
            for left in reversed(range(_LOOKS)):
                with self._newer.noted():
                    if self._learn(client, accepted, is_last=not left):
                        break
        with self._registry.lock:
            self._adapter.synced([each for each in accepted if self._registry.sync(each)])

    def _learn(self, client: trees.TreeClient[trees.F], filters: Sequence[trees.F], is_last: bool) -> bool:
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


# One step may need several answers of a tree that is there, and waits for each.
_ANSWERS: Final = 4
_MOST_WARNED: Final = 10_000


class Link(Generic[trees.F, trees.P]):
    """The link; start it, use it from the processor's thread, stop it. stores: the queue manager's side."""

    def __init__(
        self, adapter: trees.Adapter[trees.F, trees.P], config: TopicsConfig, qmgr: str, stores: LinkStores
    ) -> None:
        self.adapter = adapter
        self._config, self._qmgr = config, qmgr
        self._scope = LinkScope(config.local == "keep")
        self._clears = trees.carries(adapter.capabilities, Feature.CLEAR)
        self._warned: set[str] = set()
        self._stop = threading.Event()
        self._registry: FilterRegistry[trees.F] = FilterRegistry(
            self._filter_of, adapter.remembered(), forgets=adapter.forgets_filters
        )
        adapter.attach(trees.Engine(self._registry.lock, self._registry.wanted, self._connected, stores.position))
        # If no connection is kept, nothing reports that the tree is there again: so try it.
        self._silence = Silence(config.patience_s if adapter.is_up is None else None)
        news = News(config.native_user, self._scope)
        newer = NewerTopics()
        self._keeper = Keeper(adapter, self._registry, stores, self._silence, news, newer, self._stop)
        self._lookups = Lookups(adapter, self._registry, self._filter_of, self._silence, news, self._keeper.wake)
        self._receiver = adapter.receiver()
        self._inbound = InboundPump(self._receiver, stores, config.batch, adapter.log, self._stop, newer)
        self._outbound = OutboundPump(adapter, stores, config.batch, self._stop)
        self._threads = Threads(adapter.log)

    # The processor's thread

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        return self.adapter.capabilities

    @property
    def outgoing_queue(self) -> str:
        return self._config.outgoing_queue

    @property
    def keeps_scope(self) -> bool:
        return self._scope.keeps

    def before(self, operation: Operation, space: TopicSpaceView, now: datetime) -> Sequence[Operation]:
        return self._lookups.before(operation, space, now)

    def prefetch(self, operation: Operation) -> None:
        self._lookups.prefetch(operation)

    def fetch(self) -> bool:
        return self._lookups.fetch()

    def after(self, operation: Operation, effects: Sequence[Effect]) -> Sequence[Outgoing]:
        self._registry.note(effects)
        if isinstance(operation, PublishToTopic):
            self.published(operation.retain)
            return self._publishing(operation)
        if isinstance(operation, ClearRetained):
            return self._clearing(operation, effects)
        return ()

    def published(self, retain: bool) -> None:
        if retain:
            self._lookups.forget()

    def expired(self, effects: Sequence[Effect]) -> None:
        self._registry.note(effects)

    def committed(self) -> None:
        self._lookups.committed()
        with self._registry.lock:
            synced, changed = self._registry.committed()
            self.adapter.synced(synced)
        if synced or changed:
            self._keeper.wake()

    def load(self, subscriptions: Iterable[Subscription], topic_objects: TopicObjects) -> None:
        self._scope.load(topic_objects)
        self._registry.load(subscriptions)
        self._keeper.wake()

    # Its life

    def start(self, ended: Callable[[], None] = lambda: None) -> None:
        self.adapter.start()
        self._threads.start(ended, inward=self._inbound.run, outward=self._outbound.run, keeper=self._keeper.run)

    def stop(self) -> None:
        self._stop.set()
        self._keeper.wake()
        self._threads.join(self._config.patience_s + 5)
        self._lookups.close()
        self.adapter.stop()

    def wait_up(self, timeout_s: float) -> bool:
        return self.adapter.wait_up(timeout_s)

    def settle(self, stop: threading.Event) -> bool:
        counters = (self._inbound.counter, self._outbound.counter)
        patience_s = self._config.patience_s * (_ANSWERS if self.adapter.is_up else 1)
        while settled(counters, lambda: self.is_idle, patience_s, stop):
            arrived = self._inbound.counter.done
            # The publications that the tree had sent before have arrived now.
            with suppress(StoreError):
                if self._lookups.answers() and self.is_idle and arrived == self._inbound.counter.done:
                    return True
        return False

    @property
    def trouble(self) -> str:
        counters = (self._inbound.counter, self._outbound.counter, self._keeper.counter)
        return self.adapter.trouble or next((each.trouble for each in counters if each.trouble), "")

    @property
    def fault(self) -> str:
        return self._threads.fault

    @property
    def state(self) -> LinkState:
        trouble, is_up = self.trouble, self.adapter.is_up
        return LinkState(not trouble if is_up is None else is_up, trouble, self.adapter.next_try_s)

    @property
    def received(self) -> int:
        return self._inbound.counter.done

    @property
    def sent(self) -> int:
        return self._outbound.counter.done

    @property
    def refused(self) -> int:
        return self._outbound.counter.refused

    @property
    def is_idle(self) -> bool:
        """Whether nothing that has come waits here, and no filter waits to be synced."""
        return self.adapter.is_up is not False and not self._receiver.is_waiting and self._keeper.is_idle

    # Publications to the tree

    def _publishing(self, operation: PublishToTopic) -> Sequence[Outgoing]:
        topic, local = operation.topic_string, operation.publication.local
        if self._scope.stays(topic, local):
            return ()
        why = self.adapter.why_stays(topic)
        if why is not None:
            self._warn_once(topic, f"publications on it stay here: {why}")
            return ()
        local = self._scope.is_of_queue_manager(topic, local)
        return (publishing(operation, self._qmgr, self.outgoing_queue, local),)

    def _clearing(self, operation: ClearRetained, effects: Sequence[Effect]) -> Sequence[Outgoing]:
        if not self._clears:
            return ()
        topics = [effect.topic_string for effect in effects if isinstance(effect, RetainedCleared)]
        pattern = parse_pattern(operation.topic_string, operation.wildcard)
        if not pattern.is_wild and pattern.literal not in topics:
            topics.append(pattern.literal)
        scope, local = self._scope, operation.local
        leaving = [topic for topic in topics if not scope.stays(topic, local)]
        carried = [topic for topic in leaving if self.adapter.why_not_carried(topic) is None]
        return tuple(
            clearing(topic, self._qmgr, self.outgoing_queue, scope.is_of_queue_manager(topic, local))
            for topic in carried
        )

    # Filters

    def _filter_of(self, subscription: Subscription) -> trees.F | None:
        try:
            if not self._scope.needs_tree(subscription):
                return None
            found = self.adapter.filter_of(subscription.topic_string, subscription.wildcard)
        except CommandError:
            return None  # the topic space will say so
        if found is None:
            self._warn_once(subscription.topic_string, f"no {self.adapter.kind} topic can be selected by it")
        return found

    def _connected(self, remembered: bool) -> None:
        if self._registry.connected(remembered):
            text = "%s has forgotten the session of this bridge: what natives published meanwhile is lost"
            self.adapter.log.warning(text, self.adapter.name)
        self._silence.end()
        self._keeper.wake()

    def _warn_once(self, topic_string: str, what: str) -> None:
        if topic_string not in self._warned and len(self._warned) < _MOST_WARNED:
            self._warned.add(topic_string)
            self.adapter.log.warning("topic %s: %s", topic_string, what)
