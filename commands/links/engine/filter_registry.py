"""What the tree has to send: the selections that legacy subscriptions come to, and how far the tree knows of them.

A selection is whatever a tree subscribes by: an MQTT filter, or a topic string and its wildcard scheme. Subscriptions
share selections. One is

    wanted    while some subscription needs it
    settled   when the tree has it, and what the tree retained there is known here, and that is committed
    asked     while the processor's thread tells the tree of it
    fresh     when that is done, until the commit settles it
    refused   when the tree will not have it; until it is asked again (``pardon``) or there is a new connection
    banned    when the tree breaks the connection over it: it is not asked for again

Until the subscriptions are known (``is_known``) nobody may ask what is unwanted: what an earlier run asked the tree for
has to stay as it is.

Used by the processor's thread and by a link's own: each method holds the lock.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from streams.operations import Effect, SubscriptionAdded, SubscriptionAltered, SubscriptionRemoved
from streams.subscriptions import Subscription

K = TypeVar("K", bound=Hashable)


class Interest(Generic[K]):
    """The selections of all subscriptions. selection: what a subscription needs, None for nothing.

    is_known: whether the subscriptions have been told (``follow``).
    """

    def __init__(self, selection: Callable[[Subscription], K | None], settled: Iterable[K] = ()) -> None:
        self._selection = selection
        self.lock = threading.RLock()
        self._wanted: Counter[K] = Counter()
        self._of: dict[bytes, K] = {}
        self._pending: list[Effect] = []
        self._settled = set(settled)
        self._asked, self._fresh, self._refused = set[K](), set[K](), set[K]()
        self._banned = set[K]()
        self.is_known = False

    # What the processor tells

    def note(self, effects: Sequence[Effect]) -> None:
        """These happened, unless it is all backed out."""
        changes = SubscriptionAdded | SubscriptionAltered | SubscriptionRemoved
        self._pending += [effect for effect in effects if isinstance(effect, changes)]

    def committed(self) -> tuple[list[K], bool]:
        """All that was noted holds: what is settled by it, and whether any subscription changed."""
        with self.lock:
            fresh = list(self._fresh)
            self._settled |= self._fresh
            self._fresh.clear()
            pending, self._pending = self._pending, []
            for effect in pending:
                if isinstance(effect, SubscriptionAdded):
                    self._count(effect.subscription)
                elif isinstance(effect, SubscriptionAltered):
                    self._uncount(effect.before)
                    self._count(effect.after)
                elif isinstance(effect, SubscriptionRemoved):
                    self._uncount(effect.subscription)
            return fresh, bool(pending)

    def follow(self, subscriptions: Iterable[Subscription]) -> None:
        """These are the subscriptions, whatever was noted before."""
        with self.lock:
            self.is_known = True
            self._pending.clear()
            self._of.clear()
            self._wanted.clear()
            self._fresh.clear()
            for subscription in subscriptions:
                self._count(subscription)

    # What the tree is told

    def needs(self, selection: K) -> bool:
        """Whether the tree has to be told of it."""
        with self.lock:
            known = (self._settled, self._fresh, self._refused, self._banned)
            return not any(selection in each for each in known)

    def ask(self, selection: K) -> bool:
        """Whether the tree has to be told of it now; who is told so must call ``answered``."""
        with self.lock:
            if not self.needs(selection):
                return False
            self._asked.add(selection)
            return True

    def answered(self, selection: K, has: bool) -> None:
        """Whether the tree has it now; if so it stays once the unit of work is committed."""
        with self.lock:
            self._asked.discard(selection)
            if has:
                self._fresh.add(selection)

    def settle(self, selection: K) -> bool:
        """The tree has it, and what it retained there is safe here; whether it is still wanted."""
        with self.lock:
            if selection in self._wanted:
                self._settled.add(selection)
            return selection in self._wanted

    def refuse(self, selection: K) -> None:
        """The tree will not have it."""
        with self.lock:
            self._refused.add(selection)

    def ban(self, selection: K) -> None:
        """The tree breaks the connection over it."""
        with self.lock:
            self._banned.add(selection)

    def pardon(self) -> bool:
        """Ask again for what the tree would not have: someone may have granted it. Whether there is anything."""
        with self.lock:
            refused, self._refused = self._refused, set()
            return bool(refused)

    def connected(self, remembered: bool) -> bool:
        """There is a new connection; remembered: the tree still has what it had. Whether anything was forgotten."""
        with self.lock:
            self._refused.clear()
            forgotten = bool(self._settled) and not remembered
            if not remembered:
                self._settled.clear()
            return forgotten

    def behind(self) -> list[K]:
        """What is wanted, and is nobody's business yet."""
        with self.lock:
            known = (self._settled, self._asked, self._fresh, self._refused, self._banned)
            return [selection for selection in self._wanted if not any(selection in each for each in known)]

    def is_wanted(self, selection: K) -> bool:
        """Whether a subscription needs it, or is about to."""
        with self.lock:
            return any(selection in each for each in (self._wanted, self._asked, self._fresh))

    def wanted(self) -> list[K]:
        """All that is wanted."""
        with self.lock:
            return [*self._wanted, *self._asked, *self._fresh]

    def drop_unwanted(self, had: Iterable[K]) -> list[K]:
        """Those of *had* that nobody wants; they are settled no more."""
        with self.lock:
            gone = [selection for selection in had if not self.is_wanted(selection)]
            self._settled.difference_update(gone)
            return gone

    def _count(self, subscription: Subscription) -> None:
        selection = self._selection(subscription)
        if selection is not None and self._of.get(subscription.sub_id) != selection:
            self._uncount(subscription)
            self._of[subscription.sub_id] = selection
            self._wanted[selection] += 1

    def _uncount(self, subscription: Subscription) -> None:
        selection = self._of.pop(subscription.sub_id, None)
        if selection is not None:
            self._wanted[selection] -= 1
            if not self._wanted[selection]:
                del self._wanted[selection]
