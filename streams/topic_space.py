"""The topic space of a queue manager: operations in, effects out. The one place where subscriptions and retained
publications change.

In memory and deterministic: the time is an argument, and equal operations give equal effects. An operation is checked
before anything changes; one that raises has changed nothing.

No answer contains anything that has expired. expire() removes it and returns effects, for callers that keep state. A
name is free again only after expire(), so a processor calls it before each command.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from rfh2.constants import MQRCCF_DUPLICATE_SUBSCRIPTION, MQRCCF_NOT_REGISTERED
from rfh2.errors import CommandError
from streams import operations as op
from streams.delivery_rules import (
    choose,
    gets_no_retained,
    is_home,
    is_of_queue_manager,
    kept_apart_by,
    not_chosen_by,
)
from streams.index import SubscriptionIndex
from streams.patterns import check_publication_topic, parse_pattern
from streams.retained import RetainedPublications
from streams.subscribers import Identity, Subscribers
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_objects import TopicObjects
from streams.topic_strings import BlockSet

Select = Callable[[Subscription, op.Published, str], bool]
Semantics = Literal["v7", "v6"]


class Decision(NamedTuple):
    """Who gets a publication."""

    chosen: list[Subscription]  # in the order of the subscriptions that select its topic
    passed_over: list[tuple[Subscription, op.Rule]]  # the others, in no particular order
    level: int | None  # the SUBLEVEL that took it; None where no subscription is at or below the publication's level


class TopicSpace:
    """Subscriptions, retained publications, and the operations on them.

    select: whether a subscription's selector lets a publication on a topic string through; asked only of subscriptions
    that have a selector, and taken to be always true where None. semantics: under "v6" a publication reaches only
    subscriptions of the same scope, local or global, of the same stream and of the same subscription point, and a name
    is unique in its stream; under "v7" scope keeps nothing from this queue manager's subscriptions, prefixes and
    WILDCARD(BLOCK) keep the others apart, and names are unique in the queue manager (guide 7.5, table 2; 7.6.1).
    is_foreign: whether a publication was published elsewhere although no neighbour sent it on; it does not go to
    subscriptions of scope QMGR (guide 3.3.2). None where there are none.
    """

    def __init__(
        self,
        topic_objects: TopicObjects,
        select: Select | None = None,
        semantics: Semantics | str = "v7",
        *,
        is_foreign: Callable[[op.Published], bool] | None = None,
    ) -> None:
        if semantics not in ("v7", "v6"):
            raise ValueError(f"semantics is v7 or v6, not {semantics!r}")
        self.topic_objects = topic_objects
        self._select, self._is_foreign = select, is_foreign
        self._apart = semantics == "v6"
        # How many operations and expiries it has carried out: the same number again means that nothing has changed.
        self.changes = 0
        # The same of subscriptions alone: while it stays, a topic matches the same ones, but for what has expired.
        self.subscription_changes = 0
        # The subscriptions whose selector excluded a publication of the last operation, one entry for each time.
        self.filtered: list[Subscription] = []
        self._reset()

    def _reset(self) -> None:
        self.subscription_changes += 1
        self._subscriptions: dict[bytes, Subscription] = {}
        self._by_name: dict[tuple[str | None, str], bytes] = {}
        self._subscribers = Subscribers()
        self._index = SubscriptionIndex()
        self._retained = RetainedPublications()
        # (expires_at, sub_id), with entries that an alteration has made stale, which are skipped.
        self._expiries: list[tuple[datetime, bytes]] = []

    # Looking

    def subscription(self, sub_id: bytes) -> Subscription | None:
        """The subscription of this sub_id, if there is one."""
        return self._subscriptions.get(sub_id)

    def by_name(self, name: str, stream: str | None = None) -> Subscription | None:
        """The subscription of this name, if there is one; names are unique in the queue manager (guide 7.6.1).

        stream: whose subscriptions are meant, where each stream has names of its own.
        """
        sub_id = self._by_name.get(self._name_key(name, stream))
        return None if sub_id is None else self._subscriptions[sub_id]

    def _name_key(self, name: str, stream: str | None) -> tuple[str | None, str]:
        return (stream if self._apart else None, name)

    def by_identity(self, identity: Identity, topic: str | None = None) -> tuple[Subscription, ...]:
        """The subscriptions of a traditional identity: queue manager, queue, correlation identifier (guide 6.7.2).

        topic: those to this one alone, as the subscriber wrote it; however many others there are, that costs the same.
        """
        return self._subscribers.of(identity, topic)

    def users_of(self, identity: Identity) -> frozenset[str]:
        """The users that registered the subscriptions of a traditional identity."""
        return self._subscribers.users(identity)

    def subscriptions(self) -> tuple[Subscription, ...]:
        """All subscriptions, in ascending order of sub_id."""
        return tuple(sorted(self._subscriptions.values(), key=_sub_id))

    def match(self, topic_string: str, now: datetime) -> tuple[Subscription, ...]:
        """The subscriptions whose topic string selects this topic, WILDCARD(BLOCK) heeded, in order of sub_id."""
        matches = self._index.match(topic_string)
        if self._expiries and self._expiries[0][0] <= now:
            return tuple(s for s in matches if s.expires_at is None or s.expires_at > now)
        return matches

    def match_once(self, topic_string: str, now: datetime) -> tuple[Subscription, ...]:
        """The same for a topic that is asked for once only: the answer is not kept in the cache."""
        matches = self._index.match_uncached(topic_string)
        return tuple(s for s in matches if s.expires_at is None or s.expires_at > now)

    def retained(
        self, topic_string: str, wildcard: WildcardScheme, now: datetime, *, heed_blocks: bool = True
    ) -> tuple[op.RetainedPublication, ...]:
        """The retained publications that a subscription made now would select, in order of topic string.

        heed_blocks: leave out what WILDCARD(BLOCK) would keep from it. Raises CommandError 3072 where *topic_string*
        is no pattern of that scheme.
        """
        pattern = parse_pattern(topic_string, wildcard)
        if not heed_blocks:
            return tuple(self._retained.match(pattern, now))
        return tuple(self._retained.match(pattern, now, self.topic_objects.blocks()))

    def decide(self, operation: op.PublishToTopic, matching: Sequence[Subscription]) -> Decision:
        """Who gets a publication. matching: subscriptions that select its topic, in ascending order of sub_id."""
        topic_string, publication = operation.topic_string, operation.publication
        receiving, passed_over = [], []
        for subscription in matching:
            rule = self._rule_against(subscription, publication, topic_string)
            if rule is None:
                receiving.append(subscription)
            else:
                passed_over.append((subscription, rule))
        chosen, level = choose(receiving, operation.pub_level, operation.not_to)
        given = chosen
        if operation.came_from or (self._is_foreign is not None and self._is_foreign(publication)):
            chosen = []
            for subscription in given:
                if self._stops_before(subscription, operation):
                    passed_over.append((subscription, op.Rule.SCOPE))
                else:
                    chosen.append(subscription)
        if len(given) < len(receiving):
            sub_ids = {subscription.sub_id for subscription in given}
            for subscription in receiving:
                if subscription.sub_id not in sub_ids:
                    passed_over.append((subscription, not_chosen_by(subscription, level, operation.not_to)))
        return Decision(chosen, passed_over, level)

    def passed_over(
        self, operation: op.PublishToTopic, now: datetime, delivered: int | None = None
    ) -> Iterator[op.PassedOver]:
        """The subscriptions that select the topic and would not get the publication, each with the rule that says so.

        In no particular order; asked just before the operation is carried out, or just after it. delivered: how many
        subscriptions got it, if that is known; where all did, only WILDCARD(BLOCK) is left to look at.
        """
        topic_string, publication, came_from = operation.topic_string, operation.publication, operation.came_from
        matching = self.match(topic_string, now)
        passed = [] if delivered == len(matching) else self.decide(operation, matching).passed_over
        for subscription in self._index.blocked(topic_string):
            if subscription.expires_at is None or subscription.expires_at > now:
                passed.append((subscription, op.Rule.BLOCKED))
        for subscription, rule in passed:
            yield op.PassedOver(subscription, topic_string, publication, rule, came_from)

    def rule_for(self, subscription: Subscription, operation: op.PublishToTopic, now: datetime) -> op.Rule | None:
        """Why a publication would not reach *subscription* if there were such a subscription; None where it would.

        subscription: a value whose topic string selects the topic. It may be one that exists no longer, or an existing
        one with another topic string. Raises CommandError 3072 where its topic string is no pattern of its scheme.
        """
        topic_string = operation.topic_string
        pattern = parse_pattern(subscription.topic_string, subscription.wildcard)
        if pattern.is_wild and self.topic_objects.blocks().blocks(topic_string, pattern.literal_depth):
            return op.Rule.BLOCKED
        others = [s for s in self.match(topic_string, now) if s.sub_id != subscription.sub_id]
        passed = self.decide(operation, [*others, subscription]).passed_over
        return next((rule for one, rule in passed if one is subscription), None)

    def passed_over_retained(
        self, subscription: Subscription, now: datetime, *, asked: bool
    ) -> Iterator[op.PassedOver]:
        """The retained publications that *subscription* selects and would not be sent, each with the rule.

        asked: whether the subscriber asks for them (MQSUBRQ), or is new.
        """
        pattern = parse_pattern(subscription.topic_string, subscription.wildcard)
        blocks, depth = self._index.blocks(subscription.sub_id), pattern.literal_depth
        for retained in self._retained.match(pattern, now):
            topic_string = retained.topic_string
            if pattern.is_wild and blocks and blocks.blocks(topic_string, depth):
                rule: op.Rule | None = op.Rule.BLOCKED
            else:
                rule = self._rule_against_retained(subscription, retained, asked=asked)
            if rule is not None:
                yield op.PassedOver(subscription, topic_string, retained.publication, rule)

    def retained_publications(self) -> tuple[op.RetainedPublication, ...]:
        """All retained publications held, in order of topic string."""
        return tuple(self._retained)

    # Changing

    def apply(self, operation: op.Operation, now: datetime) -> list[op.Effect]:
        """Carry out one operation and say what it did, in order.

        now: UTC. Raises CommandError, with nothing changed: 3072 for a topic string that is none of its kind, 3152 for
        a subscription name that is taken, 3073 for a subscription that is not there; ValueError for a sub_id that is.
        """
        self.filtered = []
        match operation:
            case op.PublishToTopic():
                effects = self._publish(operation, now)
            case op.Subscribe():
                effects = self._subscribe(operation, now)
            case op.AlterSubscription():
                effects = self._alter(operation, now)
            case op.Unsubscribe():
                effects = self._unsubscribe(operation)
            case op.ClearRetained():
                effects = self._clear_retained(operation, now)
            case op.RequestRetained():
                effects = self._deliver_retained(self._current(operation.subscription), now, asked=True)
        self.changes += 1
        return effects

    def is_due(self, now: datetime) -> bool:
        """Whether something may have expired."""
        return bool(self._expiries and self._expiries[0][0] <= now) or self._retained.is_due(now)

    def expire(self, now: datetime) -> list[op.Effect]:
        """Take out the subscriptions and retained publications that have expired, in order of expiry.

        Costs nothing while nothing is due.
        """
        effects: list[op.Effect] = []
        while self._expiries and self._expiries[0][0] <= now:
            expires_at, sub_id = heapq.heappop(self._expiries)
            subscription = self._subscriptions.get(sub_id)
            if subscription is not None and subscription.expires_at == expires_at:
                self._take_out(subscription)
                effects.append(op.SubscriptionRemoved(subscription))
        effects.extend(op.RetainedCleared(topic_string) for topic_string in self._retained.expire(now))
        self.changes += len(effects)
        return effects

    def restore(
        self,
        subscriptions: Iterable[Subscription],
        retained: Iterable[op.RetainedPublication],
        running: TopicSpace | None = None,
    ) -> None:
        """Load the saved state, as a queue manager does when it starts; blocks are evaluated again (guide 2.5.4).

        running: the topic space that this one takes over from while the queue manager runs; the subscriptions that it
        has on the same topic string keep the blocks that they were made under.

        Raises CommandError 3072 or 3152, or ValueError, where what was kept contradicts itself; the topic space is
        then empty.
        """
        self._reset()
        try:
            for subscription in subscriptions:
                self._check_new(subscription)
                self._put_in(subscription, None if running is None else running._blocks_of(subscription))
        except (CommandError, ValueError):
            self._reset()
            raise
        for publication in retained:
            self._retained.store(publication)

    def retain(self, retained: op.RetainedPublication) -> None:
        """Hold this one for its topic without sending it: for an edge that keeps retained publications elsewhere.

        After the processor has stored a publication, it passes the stored form here, which is without the message.
        """
        self._retained.store(retained)

    def forget_retained(self) -> None:
        """Hold no retained publication any more; costs nothing however many there are."""
        self._retained = RetainedPublications()

    def _blocks_of(self, subscription: Subscription) -> BlockSet | None:
        held = self._subscriptions.get(subscription.sub_id)
        if held is None or (held.topic_string, held.wildcard) != (subscription.topic_string, subscription.wildcard):
            return None
        return self._index.blocks(subscription.sub_id)

    def _subscribe(self, operation: op.Subscribe, now: datetime) -> list[op.Effect]:
        subscription = operation.subscription
        self._check_new(subscription)
        self._put_in(subscription)
        effects: list[op.Effect] = [op.SubscriptionAdded(subscription)]
        if operation.send_retained:
            effects += self._deliver_retained(subscription, now, asked=False)
        return effects

    def _alter(self, operation: op.AlterSubscription, now: datetime) -> list[op.Effect]:
        after = operation.subscription
        before = self._current(after)
        self._check_name(after)
        if (before.topic_string, before.wildcard) == (after.topic_string, after.wildcard):
            # The place in the topic space is the same, and so are the blocks it was made under.
            self._index.replace(after)
        else:
            parse_pattern(after.topic_string, after.wildcard)
            self._index.remove(before)
            self._index.add(after, self.topic_objects.blocks())
        self._forget(before)
        self._remember(after)
        effects: list[op.Effect] = [op.SubscriptionAltered(before, after)]
        if operation.send_retained:
            effects += self._deliver_retained(after, now, asked=False)
        return effects

    def _unsubscribe(self, operation: op.Unsubscribe) -> list[op.Effect]:
        subscription = self._current(operation.subscription)
        self._take_out(subscription)
        return [op.SubscriptionRemoved(subscription)]

    def _publish(self, operation: op.PublishToTopic, now: datetime) -> list[op.Effect]:
        topic_string, publication = operation.topic_string, operation.publication
        check_publication_topic(topic_string)
        chosen, passed_over, level = self.decide(operation, self.match(topic_string, now))
        self.filtered = [subscription for subscription, rule in passed_over if rule is op.Rule.FILTER]
        effects: list[op.Effect] = []
        # What an interceptor took is retained when it is published again, below its level: guide 4.6.1.
        if operation.retain and (level is None or level <= 1):
            retained = op.RetainedPublication(topic_string, publication)
            self._retained.store(retained)
            effects.append(op.RetainedStored(retained))
        old = operation.was_retained
        effects.extend(op.Delivery(subscription, topic_string, publication, old) for subscription in chosen)
        return effects

    def _clear_retained(self, operation: op.ClearRetained, now: datetime) -> list[op.Effect]:
        effects: list[op.Effect] = []
        for retained in self.retained(operation.topic_string, operation.wildcard, now):
            if self._apart and retained.publication.stream != operation.stream:
                continue
            if operation.of_scope and retained.publication.local != operation.local:
                continue
            self._retained.clear(retained.topic_string)
            effects.append(op.RetainedCleared(retained.topic_string))
        return effects

    def _deliver_retained(self, subscription: Subscription, now: datetime, *, asked: bool) -> list[op.Effect]:
        if gets_no_retained(subscription, asked=asked) is not None:
            return []
        pattern = parse_pattern(subscription.topic_string, subscription.wildcard)
        effects: list[op.Effect] = []
        for retained in self._retained.match(pattern, now, self._index.blocks(subscription.sub_id)):
            rule = self._rule_against_retained(subscription, retained, asked=asked)
            if rule is None:
                effects.append(
                    op.Delivery(subscription, retained.topic_string, retained.publication, from_retained=True)
                )
            elif rule is op.Rule.FILTER:
                self.filtered.append(subscription)
        return effects

    def _stops_before(self, subscription: Subscription, operation: op.PublishToTopic) -> bool:
        """Whether what came from elsewhere does not go to a subscription that was chosen; the closest of a group may be
        such a one, and nobody else of the group gets it then (guide 3.3.6)."""
        if is_home(subscription, operation, None if self._apart else self.topic_objects):
            return True
        return operation.was_retained and gets_no_retained(subscription, asked=False) is not None

    def _rule_against(self, subscription: Subscription, publication: op.Published, topic_string: str) -> op.Rule | None:
        """Why a publication as it is published does not reach a subscription by itself; None where it does."""
        if self._apart and (apart := kept_apart_by(subscription, publication)) is not None:
            return apart
        if subscription.options.pub_on_req_only:
            return op.Rule.REQUEST_ONLY
        if subscription.selector is None or self._select is None:
            return None
        return None if self._select(subscription, publication, topic_string) else op.Rule.FILTER

    def _rule_against_retained(
        self, subscription: Subscription, retained: op.RetainedPublication, *, asked: bool
    ) -> op.Rule | None:
        """The same for a retained publication; asked: whether the subscriber asks for it, or is new."""
        publication = retained.publication
        if self._apart and (apart := kept_apart_by(subscription, publication)) is not None:
            return apart
        is_foreign = self._is_foreign is not None and self._is_foreign(publication)
        if is_foreign and is_of_queue_manager(subscription, self.topic_objects):
            return op.Rule.SCOPE
        if (rule := gets_no_retained(subscription, asked=asked)) is not None:
            return rule
        if subscription.selector is None or self._select is None:
            return None
        return None if self._select(subscription, publication, retained.topic_string) else op.Rule.FILTER

    # Checking and keeping

    def _current(self, subscription: Subscription) -> Subscription:
        current = self._subscriptions.get(subscription.sub_id)
        if current is None:
            raise CommandError(MQRCCF_NOT_REGISTERED, subscription.topic_string, "the subscription does not exist")
        return current

    def _check_new(self, subscription: Subscription) -> None:
        if subscription.sub_id in self._subscriptions:
            raise ValueError(f"sub_id {subscription.sub_id.hex()} is in use")
        self._check_name(subscription)
        parse_pattern(subscription.topic_string, subscription.wildcard)

    def _check_name(self, subscription: Subscription) -> None:
        if subscription.name is None:
            return
        owner = self._by_name.get(self._name_key(subscription.name, subscription.stream))
        if owner is not None and owner != subscription.sub_id:
            why = f"subscription name {subscription.name} is in use"
            raise CommandError(MQRCCF_DUPLICATE_SUBSCRIPTION, subscription.topic_string, why)

    def _put_in(self, subscription: Subscription, blocks: BlockSet | None = None) -> None:
        self._index.add(subscription, self.topic_objects.blocks() if blocks is None else blocks)
        self._remember(subscription)

    def _take_out(self, subscription: Subscription) -> None:
        self._index.remove(subscription)
        self._forget(subscription)

    def _remember(self, subscription: Subscription) -> None:
        sub_id = subscription.sub_id
        self.subscription_changes += 1
        self._subscriptions[sub_id] = subscription
        self._subscribers.add(subscription)
        if subscription.name is not None:
            self._by_name[self._name_key(subscription.name, subscription.stream)] = sub_id
        if subscription.expires_at is not None:
            heapq.heappush(self._expiries, (subscription.expires_at, sub_id))
            if len(self._expiries) > 2 * len(self._subscriptions) + 64:
                self._drop_stale_expiries()

    def _forget(self, subscription: Subscription) -> None:
        self.subscription_changes += 1
        del self._subscriptions[subscription.sub_id]
        self._subscribers.remove(subscription)
        if subscription.name is not None:
            del self._by_name[self._name_key(subscription.name, subscription.stream)]

    def _drop_stale_expiries(self) -> None:
        self._expiries = [(s.expires_at, s.sub_id) for s in self._subscriptions.values() if s.expires_at is not None]
        heapq.heapify(self._expiries)


def _sub_id(subscription: Subscription) -> bytes:
    return subscription.sub_id
