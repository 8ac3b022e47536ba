"""The filters that legacy subscriptions need, and their state at the tree.

A filter selects topics in a tree: it is an MQTT filter, or a topic string and its wildcard scheme. Subscriptions
share filters. A filter is

    wanted         while some subscription needs it
    synced         when the tree has it, and its retained publications are known here and committed
    pending        while the processor's thread subscribes to it
    uncommitted    when the tree has it, until the commit syncs it
    rejected       when the tree refuses it, until the next try (``retry_rejected``) or a new connection
    banned         when the tree ends the connection because of it: the bridge does not subscribe to it again
    unconfirmed    when it is synced, and the tree may have forgotten it since: it is subscribed to once more
    ended          when its last subscription went: another instance may have subscribed to it in the same session

Before the subscriptions are known (``is_known``), the bridge must not unsubscribe: the subscriptions of an earlier run
must stay as they are.

Used by the processor's thread and by a link's own: each method holds the lock.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from commands.links.engine.adapter import Adapter, FilterAnswer, TreeClient
from streams.operations import Effect, SubscriptionAdded, SubscriptionAltered, SubscriptionRemoved
from streams.subscriptions import Subscription

K = TypeVar("K", bound=Hashable)


class FilterRegistry(Generic[K]):
    """The filters of all subscriptions. filter_of: what a subscription needs, None for nothing.

    forgets: whether a tree that still has the bridge's filters may have forgotten some of them. is_known: whether there
    was a first ``load``. connections: how many there were.
    """

    def __init__(
        self, filter_of: Callable[[Subscription], K | None], synced: Iterable[K] = (), *, forgets: bool = False
    ) -> None:
        self._filter_of, self._forgets = filter_of, forgets
        self.lock = threading.RLock()
        self._wanted: Counter[K] = Counter()
        self._of: dict[bytes, K] = {}
        self._changes: list[Effect] = []
        self._synced = set(synced)
        self._pending, self._uncommitted, self._rejected = set[K](), set[K](), set[K]()
        self._banned, self._unconfirmed, self._ended = set[K](), set[K](), set[K]()
        self.connections = 0
        self.is_known = False

    # The processor

    def note(self, effects: Sequence[Effect]) -> None:
        """Note changes that take effect with their commit."""
        kinds = SubscriptionAdded | SubscriptionAltered | SubscriptionRemoved
        self._changes += [effect for effect in effects if isinstance(effect, kinds)]

    def committed(self) -> tuple[list[K], bool]:
        """The changes noted are committed: the filters that are synced by it, and whether any subscription changed."""
        with self.lock:
            uncommitted = list(self._uncommitted)
            self._synced |= self._uncommitted
            self._uncommitted.clear()
            changes, self._changes = self._changes, []
            for effect in changes:
                if isinstance(effect, SubscriptionAdded):
                    self._count(effect.subscription)
                elif isinstance(effect, SubscriptionAltered):
                    self._uncount(effect.before)
                    self._count(effect.after)
                elif isinstance(effect, SubscriptionRemoved):
                    self._uncount(effect.subscription)
            return uncommitted, bool(changes)

    def load(self, subscriptions: Iterable[Subscription]) -> None:
        """Take these subscriptions as all that there are; forget the changes noted before."""
        with self.lock:
            self.is_known = True
            self._changes.clear()
            self._of.clear()
            self._wanted.clear()
            self._uncommitted.clear()
            for subscription in subscriptions:
                self._count(subscription)

    # The tree

    def needs(self, key: K) -> bool:
        """Whether the tree does not have it yet, and may be asked for it."""
        with self.lock:
            known = (self._synced, self._uncommitted, self._rejected, self._banned)
            return not any(key in each for each in known)

    def begin(self, key: K) -> bool:
        """Whether it has to be subscribed to now; if so, ``answered`` must be called after."""
        with self.lock:
            if not self.needs(key):
                return False
            self._pending.add(key)
            return True

    def answered(self, key: K, has: bool) -> None:
        """Whether the tree has it now; if so it is synced once the unit of work is committed."""
        with self.lock:
            self._pending.discard(key)
            if has:
                self._uncommitted.add(key)

    def sync(self, key: K) -> bool:
        """The tree has it, and its retained publications are safe here; whether it is still wanted."""
        with self.lock:
            if key in self._wanted:
                self._synced.add(key)
            return key in self._wanted

    def reject(self, key: K) -> None:
        """The tree refuses it."""
        with self.lock:
            self._rejected.add(key)
            self._synced.discard(key)

    def ban(self, key: K) -> None:
        """The tree ends the connection because of it."""
        with self.lock:
            self._banned.add(key)

    def retry_rejected(self) -> bool:
        """Allow another try of rejected filters: someone may have granted them. Whether there are any."""
        with self.lock:
            rejected, self._rejected = self._rejected, set()
            return bool(rejected)

    def connected(self, remembered: bool) -> bool:
        """There is a new connection; remembered: the tree still has its filters. Whether it forgot any."""
        with self.lock:
            self.connections += 1
            self._rejected.clear()
            forgotten = bool(self._synced) and not remembered
            if not remembered:
                self._synced.clear()
                self._ended.clear()
            self._unconfirmed = set(self._synced) if self._forgets else set()
            return forgotten

    def unconfirmed(self) -> list[K]:
        """The filters that are wanted and synced, and that the tree may have forgotten."""
        with self.lock:
            return [key for key in self._wanted if key in self._unconfirmed and key in self._synced]

    def confirm(self, keys: Iterable[K], connection: int) -> None:
        """The tree has these, as of a connection, by its number in ``connections``."""
        with self.lock:
            if connection == self.connections:
                self._unconfirmed.difference_update(keys)

    def unsynced(self) -> list[K]:
        """The filters that are wanted, and neither synced nor about to be."""
        with self.lock:
            known = (self._synced, self._pending, self._uncommitted, self._rejected, self._banned)
            return [key for key in self._wanted if not any(key in each for each in known)]

    def is_wanted(self, key: K) -> bool:
        """Whether a subscription needs it, or is about to."""
        with self.lock:
            return any(key in each for each in (self._wanted, self._pending, self._uncommitted))

    def wanted(self) -> list[K]:
        """All that is wanted."""
        with self.lock:
            return [*self._wanted, *self._pending, *self._uncommitted]

    def drop_unwanted(self, held: Iterable[K]) -> list[K]:
        """Those of *held* and those that ended, where nobody wants them: until ``dropped``. They are synced no more."""
        with self.lock:
            gone = [key for key in dict.fromkeys((*held, *self._ended)) if not self.is_wanted(key)]
            self._synced.difference_update(gone)
            return gone

    def dropped(self, key: K) -> None:
        """The tree does not have it, or nobody has to ask."""
        with self.lock:
            self._ended.discard(key)

    def _count(self, subscription: Subscription) -> None:
        key = self._filter_of(subscription)
        if key is not None and self._of.get(subscription.sub_id) != key:
            self._uncount(subscription)
            self._of[subscription.sub_id] = key
            self._wanted[key] += 1

    def _uncount(self, subscription: Subscription) -> None:
        key = self._of.pop(subscription.sub_id, None)
        if key is not None:
            self._wanted[key] -= 1
            if not self._wanted[key]:
                del self._wanted[key]
                self._ended.add(key)


F = TypeVar("F")


class Subscribing(Generic[F]):
    """Subscribes to filters at the tree."""

    def __init__(self, adapter: Adapter[F, Any], registry: FilterRegistry[F]) -> None:
        self._adapter, self._registry = adapter, registry

    def subscribe(self, client: TreeClient[F], filters: Sequence[F], urgent: bool) -> list[F]:
        """Subscribe; returns those that the tree has now. Raises StoreError where the tree does not answer."""
        accepted: list[F] = []
        log = self._adapter.log
        for said in client.subscribe(filters, urgent) if filters else ():
            match said.answer:
                case FilterAnswer.ACCEPTED:
                    accepted.append(said.filter)
                case FilterAnswer.REJECTED:
                    self._registry.reject(said.filter)
                    log.error("%s: native publications will not reach its subscribers", said.why)
                case FilterAnswer.BANNED:
                    self._registry.ban(said.filter)
                    text = "%s: it is not asked for it again until the bridge is started again, and native publications"
                    log.error(text + " will not reach its subscribers", said.why)
                case FilterAnswer.LATER:
                    if said.why:
                        log.warning("%s; native publications will come once it has the subscription", said.why)
        return accepted
