"""What the present state of a queue manager says about its subscriptions: what would keep the next publication back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product

from commands.broker.authority import Action
from commands.broker.core import BrokerCore
from commands.broker.profiles import parse_profile
from commands.explain.why.near import NearMiss, NearMisses, Publishing
from commands.explain.why.question import Asked
from commands.explain.why.queues import QueueState
from commands.explain.why.rules import disabled_sentence, expired_sentence
from commands.explain.why.spelling import has_wildcards_of_other_scheme, wrong_wildcards
from commands.explain.why.verdict import PLACES, Reason, Verdict
from rfh2.captured import iso
from streams.patterns import parse_pattern, written_topic
from streams.subscriptions import Subscription
from streams.topic_strings import is_within


@dataclass(frozen=True, slots=True)
class Traffic:
    """What was counted. topics: on which something was published. delivered, filtered: publications, by sub_id."""

    topics: Collection[str] = ()
    delivered: Mapping[bytes, int] = field(default_factory=dict)
    filtered: Mapping[bytes, int] = field(default_factory=dict)


def present_answers(
    broker: BrokerCore, asked: Asked, queue_state: QueueState, now: datetime, traffic: Traffic | None = None
) -> Iterator[Verdict]:
    """An answer about no publication for each subscription that is asked for: what keeps all of them back, if anything.

    A subscription without such a reason that nothing was delivered to is compared with the topics of *traffic*.
    *now* matters because an expired subscription is there until the next command.
    """
    traffic = Traffic() if traffic is None else traffic
    wanted = [
        subscription
        for subscription in broker.space.subscriptions()
        if asked.is_about_subscription(subscription) and asked.is_about_topic(subscription.topic_string)
    ]
    silent = [s for s in wanted if not traffic.delivered.get(s.sub_id) and not traffic.filtered.get(s.sub_id)]
    near = near_misses(silent, traffic.topics)
    for subscription in wanted:
        found = _kept_back(broker, subscription, queue_state, now)
        if found is None and (miss := near.get(subscription.sub_id)) is not None:
            found = miss.reason, miss.why
        reason, why = found or _as_counted(subscription, traffic)
        is_delivered = reason in (Reason.DELIVERED, Reason.TRANSMISSION)
        qmgr = "" if subscription.dest_qmgr == broker.qmgr else subscription.dest_qmgr
        topic = subscription.topic_string
        yield Verdict(None, topic, subscription.dest_queue, subscription.name, is_delivered, reason, why, qmgr)


def near_misses(subscriptions: Collection[Subscription], topics: Collection[str]) -> dict[bytes, NearMiss]:
    """The first near miss of each subscription among *topics*, by its sub_id."""
    index = NearMisses()
    for subscription in subscriptions:
        index.add(subscription)
    places = {s.prefix: (s.stream, s.sub_point) for s in subscriptions}
    found: dict[bytes, NearMiss] = {}
    for topic, (prefix, (stream, sub_point)) in product(topics if subscriptions else (), places.items()):
        if is_within(prefix, topic) and topic != prefix:
            written = topic[len(prefix) + 1 :] if prefix else topic
            for miss in index.find(Publishing(topic, written, prefix, stream, sub_point), ()):
                if miss.reason not in PLACES:
                    found.setdefault(miss.subscription.sub_id, miss)
    return found


def _kept_back(
    broker: BrokerCore, subscription: Subscription, queue_state: QueueState, now: datetime
) -> tuple[Reason, str] | None:
    """What keeps every publication from a subscription."""
    if subscription.expires_at is not None and subscription.expires_at <= now:
        return Reason.EXPIRED_SUBSCRIPTION, expired_sentence(subscription.expires_at)
    state = queue_state(subscription.dest_qmgr, subscription.dest_queue)
    if state is not None and state[0] is not Reason.DELIVERED:
        return state
    if subscription.options.pub_on_req_only:
        return Reason.REQUEST_ONLY, "it is registered with PubOnReqOnly: it gets retained publications after ReqUpdate"
    literal = parse_pattern(subscription.topic_string, subscription.wildcard).literal_topic
    topics = broker.objects.topics
    if not topics.resolve(literal).pub:
        return Reason.PUBLISH_DISABLED, disabled_sentence(literal, topics)
    if broker.objects.authorities and not _publishers(broker, literal):
        why = f"no authority record allows anybody but mqm to publish on {literal!r}: SET AUTHREC with AUTHADD(PUB)"
        return Reason.AUTHORITY, why
    return state


def _publishers(broker: BrokerCore, topic: str) -> set[str]:
    """Users and groups whose authority records allow them to publish on *topic*."""
    covering = broker.objects.topics.covering(topic)
    return {
        record.entity
        for record in broker.objects.authorities.values()
        if record.object_type == "TOPIC" and Action.PUBLISH.value in record.authorities
        if (profile := parse_profile(record.profile)) is not None and any(map(profile.fits, covering))
    }


def _as_counted(subscription: Subscription, traffic: Traffic) -> tuple[Reason, str]:
    """The answer about a subscription that nothing is against, by what was counted of it."""
    delivered, filtered = (counts.get(subscription.sub_id, 0) for counts in (traffic.delivered, traffic.filtered))
    if filtered and not delivered:
        return Reason.FILTER, f"the filter {subscription.selector} excluded all publications so far: {filtered:,}"
    said = [f"{delivered:,} delivered" if delivered else "nothing was delivered yet"]
    if has_wildcards_of_other_scheme(written_topic(subscription), subscription.wildcard):
        said.append(wrong_wildcards(subscription.wildcard))
    if subscription.selector:
        said.append(f"the filter is {subscription.selector}")
    if subscription.options.new_pubs_only:
        said.append("NewPubsOnly: no retained publications")
    if subscription.expires_at is not None:
        said.append(f"it expires at {iso(subscription.expires_at)}")
    return Reason.DELIVERED, f"the next publication on {subscription.topic_string!r} is delivered ({'; '.join(said)})"
