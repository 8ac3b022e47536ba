"""Administrative topic objects, and the attributes that a topic inherits from them (guide 2.5.4, 2.5.4.1).

An attribute of None is ASPARENT: it is taken from the topic object at the nearest topic above that gives it, at last
from SYSTEM.BASE.TOPIC, whose defaults hold even where that object was deleted. WILDCARD is never inherited: it says
what happens at one place of the tree (streams.topic_strings).

    Sport            no object
    Sport/Soccer     FOOTBALL.EUROPEAN, DURSUB(NO)
    Sport/Soccer/TeamX/Results   resolves to DURSUB(NO); Sport/Tennis to DURSUB(YES), from SYSTEM.BASE.TOPIC

Resolving looks at the beginnings of the topic string that are as long as some object's; each answer is kept until an
object changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Final

from rfh2.bounded_cache import BoundedCache
from rfh2.constants import MQRC_UNKNOWN_OBJECT_NAME, MQRCCF_TOPIC_ERROR
from rfh2.errors import CommandError
from rfh2.pcf_admin_names import MQRCCF_OBJECT_ALREADY_EXISTS, MQRCCF_TOPICSTR_ALREADY_EXISTS
from streams.patterns import check_publication_topic, parse_pattern
from streams.subscriptions import WildcardScheme
from streams.topic_strings import BlockSet, at_and_above

DEFAULT_STREAM: Final = "SYSTEM.BROKER.DEFAULT.STREAM"
ADMIN_STREAM: Final = "SYSTEM.BROKER.ADMIN.STREAM"
DEFAULT_SUB_POINT: Final = "SYSTEM.BROKER.DEFAULT.SUBPOINT"

QUEUE_NAMELIST: Final = "SYSTEM.QPUBSUB.QUEUE.NAMELIST"
SUB_POINT_NAMELIST: Final = "SYSTEM.QPUBSUB.SUBPOINT.NAMELIST"


@dataclass(frozen=True, slots=True)
class Namelist:
    """A list of object names under a name (DEFINE NAMELIST); ALTER replaces all its names at once (guide 6.5.6)."""

    name: str
    names: tuple[str, ...] = ()
    description: str = ""

    def __contains__(self, name: object) -> bool:
        return name in self.names


# The two that every queue manager has for queued publish/subscribe (guide 6.5.4, 6.5.6).
DEFAULT_NAMELISTS: Final = (
    Namelist(QUEUE_NAMELIST, (DEFAULT_STREAM, ADMIN_STREAM), "Queued publish/subscribe stream queues"),
    Namelist(SUB_POINT_NAMELIST, (DEFAULT_SUB_POINT,), "Queued publish/subscribe subscription points"),
)

BASE_TOPIC: Final = "SYSTEM.BASE.TOPIC"


_MOST_RESOLVED_BYTES: Final = 16 << 20
# What a resolved topic takes beside its topic string.
_RESOLVED_BYTES: Final = 600


class Wildcard(StrEnum):
    """WILDCARD: whether wildcard subscriptions from above reach this topic and those below it."""

    PASSTHRU = "PASSTHRU"
    BLOCK = "BLOCK"


class Scope(StrEnum):
    """PUBSCOPE, SUBSCOPE: this queue manager alone, or the whole network."""

    ALL = "ALL"
    QMGR = "QMGR"


class MessageDelivery(StrEnum):
    """PMSGDLV, NPMSGDLV: to how many subscribers a publication must be delivered for the put to succeed."""

    ALL = "ALL"
    ALLDUR = "ALLDUR"
    ALLAVAIL = "ALLAVAIL"


class PutResponse(StrEnum):
    """DEFPRESP: whether the queue manager answers each put at once."""

    SYNC = "SYNC"
    ASYNC = "ASYNC"


class ProxySubscriptions(StrEnum):
    """PROXYSUB: whether proxy subscriptions are made before anyone subscribes."""

    FIRSTUSE = "FIRSTUSE"
    FORCE = "FORCE"


class ClusterRoute(StrEnum):
    """CLROUTE: whether publications go to the members of the cluster directly, or through the topic's hosts."""

    DIRECT = "DIRECT"
    TOPICHOST = "TOPICHOST"


@dataclass(frozen=True, slots=True)
class TopicObject:
    """One administrative topic object (DEFINE TOPIC); None is ASPARENT throughout.

    pub, sub: PUB and SUB, True for ENABLED. durable_subs: DURSUB. def_priority: DEFPRTY. def_persistence: DEFPSIST,
    True for YES. def_put_response: DEFPRESP. pmsgdlv, npmsgdlv: PMSGDLV and NPMSGDLV. durable_model_queue,
    non_durable_model_queue: MDURMDL, MNDURMDL. cluster: CLUSTER; "" is no cluster of its own, so the one above counts.
    cluster_route: CLROUTE, which counts where cluster is given.
    """

    name: str
    topic_string: str
    description: str = ""
    wildcard: Wildcard = Wildcard.PASSTHRU
    pub: bool | None = None
    sub: bool | None = None
    durable_subs: bool | None = None
    pub_scope: Scope | None = None
    sub_scope: Scope | None = None
    def_priority: int | None = None
    def_persistence: bool | None = None
    def_put_response: PutResponse | None = None
    pmsgdlv: MessageDelivery | None = None
    npmsgdlv: MessageDelivery | None = None
    durable_model_queue: str | None = None
    non_durable_model_queue: str | None = None
    use_dead_letter_queue: bool | None = None
    proxy_subs: ProxySubscriptions = ProxySubscriptions.FIRSTUSE
    cluster: str = ""
    cluster_route: ClusterRoute = ClusterRoute.DIRECT


@dataclass(frozen=True, slots=True)
class ResolvedTopic:
    """The attributes that hold at one topic, nothing left ASPARENT (guide 2.5.4, "Inheriting attributes").

    object_name: the nearest topic object at or above the topic; SYSTEM.BASE.TOPIC where there is none. cluster_object:
    the topic object that gives the cluster; "" where the topic is in none.
    """

    topic_string: str
    object_name: str
    pub: bool
    sub: bool
    durable_subs: bool
    pub_scope: Scope
    sub_scope: Scope
    def_priority: int
    def_persistence: bool
    def_put_response: PutResponse
    pmsgdlv: MessageDelivery
    npmsgdlv: MessageDelivery
    durable_model_queue: str
    non_durable_model_queue: str
    use_dead_letter_queue: bool
    cluster: str
    cluster_object: str = ""


# Guide 2.5.4.1, table 1; PUBSCOPE, SUBSCOPE and USEDLQ are not in the table and have the values of DEFINE TOPIC.
BASE_DEFAULTS: Final = TopicObject(
    name=BASE_TOPIC,
    topic_string="",
    description="Base topic for resolving attributes",
    pub=True,
    sub=True,
    durable_subs=True,
    pub_scope=Scope.ALL,
    sub_scope=Scope.ALL,
    def_priority=0,
    def_persistence=False,
    def_put_response=PutResponse.SYNC,
    pmsgdlv=MessageDelivery.ALLDUR,
    npmsgdlv=MessageDelivery.ALLAVAIL,
    durable_model_queue="SYSTEM.DURABLE.MODEL.QUEUE",
    non_durable_model_queue="SYSTEM.NDURABLE.MODEL.QUEUE",
    use_dead_letter_queue=True,
)

DEFAULT_TOPIC: Final = "SYSTEM.DEFAULT.TOPIC"
"""The object that DEFINE TOPIC takes its attributes from."""

# Those of the two streams and of the default subscription point that every queue manager has. Their topics lie at the
# root, and the administration stream's stay open where SYSTEM.BASE.TOPIC is disabled.
DEFAULT_TOPIC_OBJECTS: Final = (
    BASE_DEFAULTS,
    TopicObject(DEFAULT_TOPIC, ""),
    TopicObject(DEFAULT_STREAM, "", "Default stream for queued publish/subscribe"),
    TopicObject(ADMIN_STREAM, "", "Admin stream for queued publish/subscribe", pub=True, sub=True),
    TopicObject(DEFAULT_SUB_POINT, "", "Default subscription point for queued publish/subscribe"),
)

_INHERITED: Final = tuple(
    field.name
    for field in fields(ResolvedTopic)
    if field.name not in {"topic_string", "object_name", "cluster", "cluster_object"}
)


class TopicObjects:
    """All topic objects of a queue manager, by name and by topic string.

    Several objects may have an empty topic string (templates, and streams that lie at the root); any other topic
    string belongs to one object. ``version`` grows with each change, for callers that cache results.

    A member of a cluster also has copies of the cluster's topic objects (guide 3.2.1.1). They count like its own, but
    have no definition here: what is defined here with the same name or topic string takes their place.
    """

    __slots__ = ("_blocks", "_by_name", "_by_topic", "_copies", "_lengths", "_resolved", "version")

    def __init__(self, objects: Iterable[TopicObject] = DEFAULT_TOPIC_OBJECTS) -> None:
        self._by_name: dict[str, TopicObject] = {}
        self._by_topic: dict[str, TopicObject] = {}
        self._copies: set[str] = set()
        self._resolved: BoundedCache[str, ResolvedTopic] = BoundedCache(_MOST_RESOLVED_BYTES)
        self._blocks: BlockSet | None = None
        # Of the topic strings in _by_topic, each once, in descending order.
        self._lengths: tuple[int, ...] | None = None
        self.version = 0
        for topic_object in objects:
            self.define(topic_object)

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[TopicObject]:
        """All objects, by name."""
        return iter([self._by_name[name] for name in sorted(self._by_name)])

    @property
    def own(self) -> Iterable[TopicObject]:
        """Those that are defined here, by name: all but the copies."""
        return [topic_object for topic_object in self if topic_object.name not in self._copies]

    @property
    def copies(self) -> Set[str]:
        """The names of the copies."""
        return frozenset(self._copies)

    def is_copy(self, name: str) -> bool:
        """Whether the object of this name is a copy."""
        return name in self._copies

    def copy(self, topic_objects: Iterable[TopicObject]) -> None:
        """Have these copies of cluster topics, and no others; where there is one of its own, that counts."""
        for name in list(self._copies):
            self._remove(name)
        for topic_object in topic_objects:
            if topic_object.name not in self._by_name and topic_object.topic_string not in self._by_topic:
                self._put(topic_object)
                self._copies.add(topic_object.name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def define(self, topic_object: TopicObject) -> None:
        """DEFINE TOPIC.

        Raises CommandError: 4001 where the name is taken, 3300 where another object has the topic string, 3072 where
        the topic string could not be published to.
        """
        if topic_object.name in self._by_name and topic_object.name not in self._copies:
            why = f"topic object {topic_object.name} exists"
            raise CommandError(MQRCCF_OBJECT_ALREADY_EXISTS, topic_object.topic_string, why)
        self._check_topic_string(topic_object)
        at = self._by_topic.get(topic_object.topic_string)
        for name in self._copies & {topic_object.name, "" if at is None else at.name}:
            self._remove(name)
        self._put(topic_object)

    def alter(self, topic_object: TopicObject) -> None:
        """ALTER TOPIC: the object of this name takes this value.

        Raises CommandError: 2085 where there is no such object, 3072 where its topic string would change: that is done
        by deleting and defining it (guide 2.5.4, note to figure 7).
        """
        before = self._defined(topic_object.name)
        if topic_object.topic_string != before.topic_string:
            why = "the topic string of a topic object cannot be altered; delete and define the object"
            raise CommandError(MQRCCF_TOPIC_ERROR, topic_object.topic_string, why)
        self._put(topic_object)

    def delete(self, name: str) -> TopicObject:
        """DELETE TOPIC; returns what was deleted. Raises CommandError 2085 where there is no such object."""
        topic_object = self._defined(name)
        self._remove(name)
        return topic_object

    def get(self, name: str) -> TopicObject | None:
        """The object of this name, if there is one."""
        return self._by_name.get(name)

    def require(self, name: str) -> TopicObject:
        """The object of this name. Raises CommandError 2085 (MQRC_UNKNOWN_OBJECT_NAME) where there is none."""
        try:
            return self._by_name[name]
        except KeyError:
            raise CommandError(MQRC_UNKNOWN_OBJECT_NAME, None, f"there is no topic object {name}") from None

    def at(self, topic_string: str) -> TopicObject | None:
        """The object whose topic string this is; for "" SYSTEM.BASE.TOPIC, if it exists."""
        return self._by_topic.get(topic_string) if topic_string else self._by_name.get(BASE_TOPIC)

    def nearest(self, topic_string: str) -> TopicObject | None:
        """The object at the topic or at the nearest topic above; None where only SYSTEM.BASE.TOPIC is left."""
        return next(self._upwards(topic_string), None)

    def covering(self, topic_string: str) -> list[str]:
        """The names of the objects at the topic and above it, SYSTEM.BASE.TOPIC last: where rights come from (5.1)."""
        return [*(topic_object.name for topic_object in self._upwards(topic_string)), BASE_TOPIC]

    def resolve(self, topic_string: str) -> ResolvedTopic:
        """The attributes that hold at a topic, inherited where objects do not give them (guide 2.5.4, 2.5.4.1)."""
        resolved = self._resolved.get(topic_string)
        if resolved is None:
            resolved = self._resolve(topic_string)
            self._resolved.keep(topic_string, resolved, _RESOLVED_BYTES + 4 * len(topic_string))
        return resolved

    def resolve_subscription(self, pattern: str, scheme: WildcardScheme) -> ResolvedTopic:
        """The attributes that hold for a subscription: truncate at the first wildcard, scan left (guide 2.5.4).

        Raises CommandError 3072 where *pattern* is none of *scheme*.
        """
        return self.resolve(parse_pattern(pattern, scheme).literal_topic)

    def blocks(self) -> BlockSet:
        """The topic strings with WILDCARD(BLOCK) as they are now; the same value until an object changes."""
        if self._blocks is None:
            strings = (o.topic_string for o in self._by_name.values() if o.wildcard is Wildcard.BLOCK)
            self._blocks = BlockSet(frozenset(string for string in strings if string))
        return self._blocks

    def _check_topic_string(self, topic_object: TopicObject) -> None:
        if not topic_object.topic_string:
            return
        check_publication_topic(topic_object.topic_string)
        other = self._by_topic.get(topic_object.topic_string)
        if other is not None and other.name not in self._copies:
            why = f"topic object {other.name} has this topic string"
            raise CommandError(MQRCCF_TOPICSTR_ALREADY_EXISTS, topic_object.topic_string, why)

    def _defined(self, name: str) -> TopicObject:
        """The object of this name that is defined here. Raises CommandError 2085."""
        topic_object = self.require(name)
        if name in self._copies:
            raise CommandError(
                MQRC_UNKNOWN_OBJECT_NAME, None, f"topic object {name} is a copy: it is defined elsewhere"
            )
        return topic_object

    def _remove(self, name: str) -> None:
        topic_object = self._by_name.pop(name)
        if topic_object.topic_string:
            del self._by_topic[topic_object.topic_string]
        self._copies.discard(name)
        self._changed()

    def _put(self, topic_object: TopicObject) -> None:
        self._by_name[topic_object.name] = topic_object
        if topic_object.topic_string:
            self._by_topic[topic_object.topic_string] = topic_object
        self._changed()

    def _changed(self) -> None:
        self.version += 1
        self._resolved.clear()
        self._blocks = None
        self._lengths = None

    def _upwards(self, topic_string: str) -> Iterator[TopicObject]:
        if self._lengths is None:
            self._lengths = tuple(sorted(set(map(len, self._by_topic)), reverse=True))
        return filter(None, map(self._by_topic.get, at_and_above(topic_string, self._lengths)))

    def _resolve(self, topic_string: str) -> ResolvedTopic:
        chain = list(self._upwards(topic_string))
        nearest = chain[0].name if chain else BASE_TOPIC
        base = self._by_name.get(BASE_TOPIC)
        if base is not None:
            chain.append(base)
        chain.append(BASE_DEFAULTS)
        effective: dict[str, Any] = {}
        for attribute in _INHERITED:
            effective[attribute] = next(v for o in chain if (v := getattr(o, attribute)) is not None)
        clustered = next((o for o in chain if o.cluster), None)
        cluster, cluster_object = ("", "") if clustered is None else (clustered.cluster, clustered.name)
        return ResolvedTopic(
            topic_string=topic_string,
            object_name=nearest,
            cluster=cluster,
            cluster_object=cluster_object,
            **effective,
        )
