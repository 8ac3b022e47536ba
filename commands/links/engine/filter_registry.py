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

Looks up what the tree retains, for the commands that need it before they are processed.

A RegSub waits until the tree has its filter, and gets what the tree retains under it. A ReqUpdate looks this up too if
the tree does not report that a retained publication was cleared (Feature.REQUEST). So does a DeletePub with wildcards,
which may clear more than is known here. The link asks the tree outside the unit of work (``Questions``).
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from commands.links.engine import adapter as trees
from commands.links.engine.inbound_writer import News, TreeRetained
from commands.qmgr.link_port import Feature, How, TopicSpaceView, TreeNotAskedError
from rfh2.errors import StoreError
from streams import operations
from streams.patterns import parse_pattern
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
        self._changes: list[operations.Effect] = []
        self._synced = set(synced)
        self._pending, self._uncommitted, self._rejected = set[K](), set[K](), set[K]()
        self._banned, self._unconfirmed, self._ended = set[K](), set[K](), set[K]()
        self.connections = 0
        self.is_known = False

    # The processor

    def note(self, effects: Sequence[operations.Effect]) -> None:
        """Note changes that take effect with their commit."""
        kinds = operations.SubscriptionAdded | operations.SubscriptionAltered | operations.SubscriptionRemoved
        self._changes += [effect for effect in effects if isinstance(effect, kinds)]

    def committed(self) -> tuple[list[K], bool]:
        """The changes noted are committed: the filters that are synced by it, and whether any subscription changed."""
        with self.lock:
            uncommitted = list(self._uncommitted)
            self._synced |= self._uncommitted
            self._uncommitted.clear()
            changes, self._changes = self._changes, []
            for effect in changes:
                if isinstance(effect, operations.SubscriptionAdded):
                    self._count(effect.subscription)
                elif isinstance(effect, operations.SubscriptionAltered):
                    self._uncount(effect.before)
                    self._count(effect.after)
                elif isinstance(effect, operations.SubscriptionRemoved):
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


class Subscribing(Generic[trees.F]):
    """Subscribes to filters at the tree."""

    def __init__(self, adapter: trees.Adapter[trees.F, Any], registry: FilterRegistry[trees.F]) -> None:
        self._adapter, self._registry = adapter, registry

    def subscribe(self, client: trees.TreeClient[trees.F], filters: Sequence[trees.F], urgent: bool) -> list[trees.F]:
        """Subscribe; returns those that the tree has now. Raises StoreError where the tree does not answer."""
        accepted: list[trees.F] = []
        log = self._adapter.log
        for said in client.subscribe(filters, urgent) if filters else ():
            match said.answer:
                case trees.FilterAnswer.ACCEPTED:
                    accepted.append(said.filter)
                case trees.FilterAnswer.REJECTED:
                    self._registry.reject(said.filter)
                    log.error("%s: native publications will not reach its subscribers", said.why)
                case trees.FilterAnswer.BANNED:
                    self._registry.ban(said.filter)
                    text = "%s: it is not asked for it again until the bridge is started again, and native publications"
                    log.error(text + " will not reach its subscribers", said.why)
                case trees.FilterAnswer.LATER:
                    if said.why:
                        log.warning("%s; native publications will come once it has the subscription", said.why)
        return accepted


# The questions to a link's tree that a command needs before it is processed, and their answers.
#
# The processor processes commands inside a unit of work, and does not wait for the tree there
# (``commands.qmgr.link_port``). So it notes a question that has no answer yet, and asks it after the unit of work.
# The answer is for the next unit of work, which processes the command. Unused answers are kept while the next
# questions are asked.

Q = TypeVar("Q", bound=Hashable)
A = TypeVar("A")

# After this time other publications may have replaced those in the answer: if the next unit of work has failed for so
# long, ask the tree again.
_STALE_S: Final = 30.0


class Questions(Generic[Q, A]):
    """Questions and answers; used by the processor's thread alone.

    ask: asks the tree all of these, returns what it answered to each, and raises nothing. unused: called with each
    question whose answer no command used.
    """

    def __init__(
        self, ask: Callable[[Sequence[Q]], dict[Q, A]], unused: Callable[[Q], None] = lambda _question: None
    ) -> None:
        self._ask, self._unused = ask, unused
        self._pending: dict[Q, None] = {}
        self._answers: dict[Q, tuple[float, A]] = {}
        self._used: set[Q] = set()

    def has(self, question: Q) -> bool:
        """Whether there is an answer to it."""
        found = self._answers.get(question)
        return found is not None and time.monotonic() - found[0] < _STALE_S

    def answer(self, question: Q) -> A:
        """The answer. Raises TreeNotAskedError where there is none yet."""
        if not self.has(question):
            self.note(question)
            raise TreeNotAskedError(str(question))
        self._used.add(question)
        return self._answers[question][1]

    def note(self, question: Q) -> None:
        """Ask it too, the next time."""
        if not self.has(question):
            self._pending[question] = None

    def ask(self) -> bool:
        """Ask what is pending; whether anything was."""
        pending, self._pending = self._pending, {}
        if pending:
            at = time.monotonic()
            self._answers |= {question: (at, answer) for question, answer in self._ask(tuple(pending)).items()}
        return bool(pending)

    def committed(self) -> None:
        """A unit of work is over: drop its answers, except those that a command may still wait for."""
        if not self._pending:
            self.forget()
        for question in self._used:
            self._answers.pop(question, None)
        self._used.clear()

    def forget(self) -> None:
        """The answers may be out of date."""
        for question in self._answers.keys() - self._used:
            self._unused(question)
        self._answers.clear()
        self._used.clear()


class Silence:
    """Begins when the tree does not answer; ends when it answers anything, or after longest_s (None: never)."""

    def __init__(self, longest_s: float | None) -> None:
        self._longest_s = longest_s
        self._lock = threading.Lock()
        self._since: float | None = None

    def begin(self) -> bool:
        """The tree has not answered. Whether it did until now."""
        with self._lock:
            is_new = not self._holds()
            if is_new:
                self._since = time.monotonic()
            return is_new

    def end(self) -> None:
        """The tree has answered."""
        with self._lock:
            self._since = None

    @property
    def holds(self) -> bool:
        """Whether the tree is not to be asked."""
        with self._lock:
            return self._holds()

    def _holds(self) -> bool:
        if self._since is None:
            return False
        return self._longest_s is None or time.monotonic() - self._since < self._longest_s


@dataclass(frozen=True, slots=True)
class Question(Generic[trees.F]):
    """A question: what the tree retains under a filter. subscribe: also subscribe to the filter."""

    filter: trees.F
    subscribe: bool


@dataclass(frozen=True, slots=True)
class TreeAnswer:
    """retained: what the tree retains, None if it gave no answer. has: whether it has the filter."""

    retained: TreeRetained | None = None
    has: bool = False


class Lookups(Generic[trees.F]):
    """Used by the processor's thread alone. filter_of: of a subscription; wake: makes the keeper look for work."""

    def __init__(
        self,
        adapter: trees.Adapter[trees.F, Any],
        registry: FilterRegistry[trees.F],
        filter_of: Callable[[Subscription], trees.F | None],
        silence: Silence,
        news: News,
        wake: Callable[[], None],
    ) -> None:
        self._adapter, self._registry, self._filter_of = adapter, registry, filter_of
        self._silence, self._news, self._wake = silence, news, wake
        self._client = adapter.client()
        self._subscribing = Subscribing(adapter, registry)
        self._questions: Questions[Question[trees.F], TreeAnswer] = Questions(self._asked, self._unused)
        self._retains = trees.carries(adapter.capabilities, Feature.RETAIN)
        self._on_request = trees.how(adapter.capabilities, Feature.REQUEST) is How.DOES
        self._clears = trees.carries(adapter.capabilities, Feature.CLEAR)

    def before(
        self, operation: operations.Operation, space: TopicSpaceView, now: datetime
    ) -> Sequence[operations.Operation]:
        """What the topic space must know first. Raises TreeNotAskedError if the tree must be asked before."""
        question = self._question(operation)
        if question is None:
            return ()
        if question.subscribe and not self._questions.has(question) and not self._registry.needs(question.filter):
            return ()
        answer = self._questions.answer(question)
        if question.subscribe:
            self._registry.answered(question.filter, answer.has)
        if answer.retained is None:
            return ()
        known = space.retained(*self._adapter.pattern_of(question.filter), now)
        return [learnt for _, learnt in self._news.of(answer.retained, known, now)]

    def prefetch(self, operation: operations.Operation) -> None:
        """*operation* comes soon: add its question to the next ones."""
        question = self._question(operation)
        if question is not None and (not question.subscribe or self._registry.needs(question.filter)):
            self._questions.note(question)

    def fetch(self) -> bool:
        """Ask the tree; whether there was anything to ask."""
        return self._questions.ask()

    def forget(self) -> None:
        """The answers may be out of date."""
        self._questions.forget()

    def committed(self) -> None:
        """The unit of work that the answers were for is over."""
        self._questions.committed()

    def answers(self) -> bool:
        """Make a round trip: whether the tree has answered, after all that it had to send. Raises StoreError."""
        return self._client.answers()

    def close(self) -> None:
        """Release the calls."""
        self._client.close()

    def _question(self, operation: operations.Operation) -> Question[trees.F] | None:
        if isinstance(operation, operations.Subscribe | operations.AlterSubscription):
            wanted = self._filter_of(operation.subscription)
            return None if wanted is None else Question(wanted, subscribe=True)
        if isinstance(operation, operations.RequestRetained) and self._on_request:
            wanted = self._filter_of(operation.subscription)
            return None if wanted is None else Question(wanted, subscribe=False)
        if isinstance(operation, operations.ClearRetained) and self._clears:
            # A wildcard may clear more topics than are known here.
            if not parse_pattern(operation.topic_string, operation.wildcard).is_wild:
                return None
            wanted = self._adapter.filter_of(operation.topic_string, operation.wildcard)
            return None if wanted is None else Question(wanted, subscribe=False)
        return None

    def _asked(self, questions: Sequence[Question[trees.F]]) -> dict[Question[trees.F], TreeAnswer]:
        answers = dict.fromkeys(questions, TreeAnswer())
        at_once = self._adapter.filters_at_once
        for at in range(0, len(questions), at_once):
            answers |= self._answers(questions[at : at + at_once])
        return answers

    def _answers(self, questions: Sequence[Question[trees.F]]) -> dict[Question[trees.F], TreeAnswer]:
        """The answers to those that the tree has answered."""
        asked = [each for each in questions if not each.subscribe or self._registry.begin(each.filter)]
        log, name = self._adapter.log, self._adapter.name
        try:
            if self._silence.holds:
                raise trees.TreeUnreachableError(self._adapter.trouble or f"{name} does not answer")
            urgent = [each.filter for each in asked if each.subscribe]
            accepted = set(self._subscribing.subscribe(self._client, urgent, urgent=True))
            asked = [each for each in asked if not each.subscribe or each.filter in accepted]
            return self._looked_up(asked)
        except trees.TreeRefusedError as error:
            log.error("%s: what natives retain there is not known", error)
            if error.lasting:
                for each in asked:
                    if each.subscribe:
                        self._registry.reject(each.filter)
        except StoreError as error:
            if self._silence.begin():
                about = (error, self._adapter.pattern_of(questions[0].filter)[0], len(questions) - 1)
                log.warning("%s; native publications under %.200s and %d more will come once it can be reached", *about)
            self._wake()
        return {}

    def _looked_up(self, asked: Sequence[Question[trees.F]]) -> dict[Question[trees.F], TreeAnswer]:
        if not self._retains or not asked:
            return {each: TreeAnswer(None, has=True) for each in asked}
        filters = list(dict.fromkeys(each.filter for each in asked))
        there = self._client.retained(filters)
        if len(filters) == 1:
            return {each: TreeAnswer(there, has=True) for each in asked}
        under = there.by_filter(self._adapter.matcher(filters))
        return {each: TreeAnswer(under.get(each.filter, TreeRetained()), has=True) for each in asked}

    def _unused(self, question: Question[trees.F]) -> None:
        if question.subscribe:
            self._registry.answered(question.filter, False)
            self._wake()
