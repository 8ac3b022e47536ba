"""``why`` on a queue manager: a copy of its state in memory explains publications without delivering them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from commands.broker.authority import ADMINISTRATOR, Action, GroupsOf, RecordedAuthority, parse_profile
from commands.broker.core import BrokerCore
from commands.broker.objects import DEFAULT_STREAM, UNLIMITED_DEPTH, Objects
from commands.broker.outcome import Arrival
from commands.broker.selection import Selection
from commands.explain.build import CommandSpec, command_message
from commands.explain.why import Explainer
from commands.explain.why.near import first_near_misses, has_wildcards_of_other_scheme, wrong_wildcards
from commands.explain.why.verdict import (
    Asked,
    QueueState,
    Reason,
    Verdict,
    by_definition,
    disabled_sentence,
    expired_sentence,
)
from commands.qmgr.store import Overview, QueueManagerStore
from commands.terminal.counted import counted
from rfh2.captured import iso
from rfh2.ccsid import UTF8_CCSID
from rfh2.mqmd import Mqmd
from streams.mapping import stream_topic
from streams.patterns import parse_pattern, written_topic
from streams.subscriptions import Subscription
from streams.topic_objects import QUEUE_NAMELIST
from streams.topic_space import TopicSpace
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
    near = first_near_misses(silent, traffic.topics, elsewhere=False)
    for subscription in wanted:
        found = _kept_back(broker, subscription, queue_state, now)
        if found is None and (miss := near.get(subscription.sub_id)) is not None:
            found = miss.reason, miss.why
        reason, why = found or _as_counted(subscription, traffic)
        is_delivered = reason in (Reason.DELIVERED, Reason.TRANSMISSION)
        qmgr = "" if subscription.dest_qmgr == broker.qmgr else subscription.dest_qmgr
        topic = subscription.topic_string
        yield Verdict(None, topic, subscription.dest_queue, subscription.name, is_delivered, reason, why, qmgr)


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
    said = [f"{counted(delivered, 'publication')} delivered so far" if delivered else "nothing was delivered yet"]
    if has_wildcards_of_other_scheme(written_topic(subscription), subscription.wildcard):
        said.append(wrong_wildcards(subscription.wildcard))
    if subscription.selector:
        said.append(f"the filter is {subscription.selector}")
    if subscription.options.new_pubs_only:
        said.append("NewPubsOnly: no retained publications")
    if subscription.expires_at is not None:
        said.append(f"it expires at {iso(subscription.expires_at)}")
    return Reason.DELIVERED, f"nothing keeps publications on {subscription.topic_string!r} back: {'; '.join(said)}"


_THE_ONE = 1


@dataclass(frozen=True, slots=True)
class MadeUp:
    """A publication that nobody put. stream: the queue. properties: of folder usr. user: who would publish it."""

    topic: str
    data: str = ""
    stream: str = DEFAULT_STREAM
    properties: dict[str, Any] = field(default_factory=dict)
    user: str = ""

    @classmethod
    def at(cls, topic_string: str, objects: Objects, data: str, properties: dict[str, Any], user: str) -> MadeUp:
        """One whose resolved topic string is *topic_string*: on the stream whose prefix it has."""
        namelist = objects.namelists.get(QUEUE_NAMELIST)
        for stream in () if namelist is None else namelist.names:
            prefix = stream_topic(stream, objects.topics).prefix
            if prefix and is_within(prefix, topic_string) and topic_string != prefix:
                return cls(topic_string[len(prefix) + 1 :], data, stream, properties, user)
        return cls(topic_string, data, DEFAULT_STREAM, properties, user)


class LiveWhy:
    """The state of a queue manager as of one moment. Nothing that is asked of it changes the queue manager."""

    def __init__(self, store: QueueManagerStore, groups_of: GroupsOf, asked: Asked) -> None:
        self._store, self._groups_of, self._asked = store, groups_of, asked
        # While publications are followed: the depth of each queue before the next of them.
        self._depths: dict[str, int] | None = None

    def present(self) -> Iterator[Verdict]:
        """What the state says about each subscription."""
        broker = self._broker()
        subscriptions, topics = self._store.counts()
        traffic = Traffic(
            tuple(topics),
            {sub_id: counts.delivered for sub_id, counts in subscriptions.items()},
            {sub_id: counts.filtered for sub_id, counts in subscriptions.items()},
        )
        state, now = self._queue_state(broker.objects), datetime.now(UTC)
        found = list(present_answers(broker, self._asked, state, now, traffic))
        yield from found or [self._nobody(broker, self._asked.topic, "there is no subscription")]

    def publication(self, made_up: MadeUp) -> list[Verdict]:
        """Who would get a publication, and who would not. Its seq is None, as there is none."""
        broker = self._broker()
        asked = replace(self._asked, seq=_THE_ONE, topic=None)
        explainer = Explainer(broker, asked, self._queue_state(broker.objects))
        mqmd = Mqmd(coded_char_set_id=UTF8_CCSID, user_identifier=made_up.user)
        message = command_message(
            CommandSpec("Publish", (made_up.topic,), usr=made_up.properties, data=made_up.data, mqmd=mqmd)
        )
        arrival = Arrival(_THE_ONE, datetime.now(UTC), made_up.stream, message.md, message.body, made_up.user or None)
        verdicts = [replace(verdict, seq=None) for verdict in explainer.take(arrival)]
        if verdicts:
            return verdicts
        why = explainer.refusal or "no subscription selects the topic"
        return [self._nobody(broker, made_up.topic, why)]

    def _nobody(self, broker: BrokerCore, topic: str | None, why: str) -> Verdict:
        """The answer where no subscription is asked for, or none is there. why: for the latter."""
        asked, subscriptions = self._asked, broker.space.subscriptions()
        if subscriptions and not any(map(asked.is_about_subscription, subscriptions)):
            similar = asked.similar_queues({subscription.dest_queue for subscription in subscriptions})
            why = f"there is no subscription{asked.subscriber_words}{similar}"
        return Verdict(None, topic, asked.queue or "", asked.sub, False, Reason.NO_MATCH, why)

    def all_topics(self) -> tuple[str, ...]:
        """Topics to subscribe to for every publication, once: the root, and what WILDCARD(BLOCK) keeps from it."""
        objects = self._store.load_state()[0]
        return ("#", *(f"{blocked}/#" for blocked in sorted(objects.topics.blocks().topic_strings)))

    def received(self, topic_string: str, data: str, properties: dict[str, Any], here: str) -> list[Verdict]:
        """Who else got a publication that arrived on *topic_string*, as the state is now. here: the queue it came to.

        A queue that is full now may have been filled by it: so the depth counts that it had before (``settle``).
        """
        if not self._asked.is_about_topic(topic_string):
            return []
        objects = self._store.load_state()[0]
        # Its publisher is not known, and had the authority.
        found = self.publication(MadeUp.at(topic_string, objects, data, properties, ADMINISTRATOR))
        for verdict in found:
            if verdict.delivered and self._depths is not None:
                self._depths[verdict.queue] = self._depths.get(verdict.queue, 0) + 1
        others = [verdict for verdict in found if verdict.queue != here]
        why = "no other subscription selects the topic"
        nobody = Verdict(None, topic_string, self._asked.queue or "", self._asked.sub, False, Reason.NO_MATCH, why)
        return others or [nobody]

    def depths(self) -> dict[str, int]:
        """The present depth of each queue."""
        return {queue.definition.name: queue.depth for queue in self._store.overview().queues}

    def settle(self, depths: dict[str, int]) -> None:
        """No publication that ``received`` has not explained came before *depths* were read."""
        self._depths = depths

    def _broker(self) -> BrokerCore:
        objects, subscriptions, retained = self._store.load_state()
        objects.is_gone = self._store.is_gone
        space = TopicSpace(objects.topics, Selection())
        space.restore(subscriptions, retained)
        return BrokerCore(objects, space, authority=RecordedAuthority(objects, self._groups_of))

    def _queue_state(self, objects: Objects) -> QueueState:
        return by_depth(objects, self._store.overview(), self._depths)


def by_depth(objects: Objects, overview: Overview, before: Mapping[str, int] | None = None) -> QueueState:
    """What definitions and present depths say about a queue. before: the depths that count where they are less."""
    defined = by_definition(objects)
    queues = {queue.definition.name: queue for queue in overview.queues}
    has_gone = objects.is_gone

    def state(qmgr: str, name: str) -> tuple[Reason, str] | None:
        found = defined(qmgr, name)
        if found is not None:
            return found
        alias = objects.aliases.get(name)
        queue = queues.get(name if alias is None else alias.target)
        if queue is None:
            if has_gone is not None and has_gone(name):
                return Reason.QUEUE_GONE, f"queue {name} was a dynamic queue, and was deleted"
            return None
        definition, depth = queue.definition, queue.depth
        if before is not None:
            depth = min(depth, before.get(definition.name, 0))
        if definition.max_depth < UNLIMITED_DEPTH and depth >= definition.max_depth:
            messages = f"{depth:,} message{'' if depth == 1 else 's'}"
            why = f"queue {definition.name} is full: {messages}, MAXDEPTH({definition.max_depth})"
            return Reason.QUEUE_FULL, f"{why}; get messages, or ALTER QLOCAL({definition.name}) MAXDEPTH(...)"
        if not definition.get_enabled:
            why = f"queue {definition.name} has GET(DISABLED): the publication arrives, but no program can get it"
            return Reason.DELIVERED, why
        return None

    return state
