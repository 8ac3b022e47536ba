"""The definitions of one queue manager, in memory: its attributes, queues, namelists, topic objects and authorities.

MQSC's DEFINE, ALTER and DELETE change them, and the broker reads them. A definition is a frozen value. The edge keeps
each as JSON (``state_of``, ``definition_of``). Attributes have MQSC's meaning. Defaults are those of a new queue
manager.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from typing import Any, Final

from pydantic import TypeAdapter

from commands.broker import channel_objects
from streams.topic_objects import (
    ADMIN_STREAM as ADMIN_STREAM,  # noqa: PLC0414 - exported
    DEFAULT_NAMELISTS,
    DEFAULT_STREAM as DEFAULT_STREAM,  # noqa: PLC0414 - exported
    Namelist,
    TopicObject,
    TopicObjects,
)

# What names of queues say: whether it is one of IBM MQ classes for JMS, and whether a queue manager made it up.
#
# In publish/subscribe (MQJMS_PSQ.mqsc) a subscriber of JMS has its own queue (a dynamic one, or one that an
# administrator defined), or shares one with others. Those that share a queue find their messages by CorrelId.

ADMIN_QUEUE: Final = "SYSTEM.JMS.ADMIN.QUEUE"
STATUS_QUEUE: Final = "SYSTEM.JMS.PS.STATUS.QUEUE"
REPORT_QUEUE: Final = "SYSTEM.JMS.REPORT.QUEUE"
NONDURABLE_PREFIX: Final = "SYSTEM.JMS.ND."
DURABLE_PREFIX: Final = "SYSTEM.JMS.D."
SHARED_QUEUES: Final = frozenset(
    f"SYSTEM.JMS.{kind}{connection}SUBSCRIBER.QUEUE" for kind in ("D.", "ND.") for connection in ("", "CC.")
)
"""Those that subscribers share: CC for connection consumers."""

RECORD_QUEUES: Final = (ADMIN_QUEUE, STATUS_QUEUE)
"""Where SUBSTORE(QUEUE) keeps what it knows of subscriptions and subscribers."""


def is_for_nondurable(queue: str) -> bool:
    """Whether *queue* is one of subscribers that end with their program."""
    return queue.startswith(NONDURABLE_PREFIX)


def is_for_durable(queue: str) -> bool:
    """Whether *queue* is one of subscriptions that outlive their program."""
    return queue.startswith(DURABLE_PREFIX)


# Names that queue managers give to dynamic queues: the prefix that a program asks for, then what makes it unique.
#
# AMQ.4D3F1A2B20000105            AMQ.*, the default of MQOD.DynamicQName
# AMQSPSDA.4D3F1A2B20000105       the same with the program's own prefix

_DEFAULT_PREFIX: Final = "AMQ."
# IBM MQ replaces the asterisk with this.
_UNIQUE_PART: Final = re.compile("[0-9A-F]{16}")
_UNIQUE_LENGTH: Final = 16


def is_dynamic_name(queue: str) -> bool:
    """Whether *queue* looks like the name of a dynamic queue, whatever prefix the program gave."""
    return queue.startswith(_DEFAULT_PREFIX) or has_unique_part(queue)


def has_unique_part(queue: str) -> bool:
    """Whether *queue* ends with what a queue manager puts in the place of the asterisk."""
    return _UNIQUE_PART.fullmatch(queue[-_UNIQUE_LENGTH:]) is not None


CONTROL_QUEUE = "SYSTEM.BROKER.CONTROL.QUEUE"
DEAD_LETTER_QUEUE = "SYSTEM.DEAD.LETTER.QUEUE"
INTER_QMGR_PUBS = "SYSTEM.INTER.QMGR.PUBS"
"""Where publications of neighbours arrive (guide 3.7): the destination of proxy subscriptions."""
ADMIN_COMMAND_QUEUE = "SYSTEM.ADMIN.COMMAND.QUEUE"
DELAY_QUEUE = "SYSTEM.DDELAY.LOCAL.QUEUE"
"""Where messages with a delivery delay wait."""
SYSTEM_QUEUES = (CONTROL_QUEUE, DEFAULT_STREAM, ADMIN_STREAM, DEAD_LETTER_QUEUE, ADMIN_COMMAND_QUEUE)
UNLIMITED_DEPTH = 999_999_999
# DEFTYPE: how a local queue was created.
PREDEFINED = "PREDEFINED"
TEMPORARY = "TEMPDYN"
PERMANENT = ("PERMDYN", "SHAREDYN")

# CHLTYPE of the channels of a cluster: by which a member receives, and by which it first reaches a full repository.
CLUSRCVR = "CLUSRCVR"
CLUSSDR = "CLUSSDR"

_OBJECT_NAME = re.compile(r"[A-Za-z0-9._/%]{1,48}")


_PERSISTENT = frozenset({DEFAULT_STREAM, ADMIN_STREAM})


def is_object_name(name: str) -> bool:
    """Whether *name* may name a queue or a queue manager: 1 to 48 of the characters MQ allows."""
    return _OBJECT_NAME.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class QueueManager:
    """A queue manager's own attributes (guide 6.3, 6.5.1, 7.3). strict: a command that names a queue never creates it.

    custom: IBM's place for attributes of others, ``NAME(VALUE)``; ``PSCTAGS(STRICT)`` is the bridge's. suspended: the
    clusters of SUSPEND QMGR: where a cluster topic has other hosts, these get its publications. chlauth: whether
    channel authentication records count; has_rules: whether its own do, in place of the default ones. connauth: the
    AUTHINFO that says when passwords are compared. key_repository, certificate_label: SSLKEYR and CERTLABL, of a queue
    manager of IBM's; the listener's certificate is the configuration's.
    """

    name: str
    strict: bool = False
    description: str = ""
    psmode: str = "ENABLED"
    psrtycnt: int = 5
    psnpmsg: str = "DISCARD"
    psnpres: str = "NORMAL"
    pssyncpt: str = "IFPER"
    treelife: int = 1800
    deadq: str = DEAD_LETTER_QUEUE
    parent: str = ""
    custom: str = ""
    suspended: tuple[str, ...] = ()
    chlauth: bool = True
    has_rules: bool = False
    connauth: str = channel_objects.DEFAULT_CONNAUTH
    key_repository: str = ""
    certificate_label: str = ""

    @property
    def strict_tags(self) -> bool:
        """Whether Publish accepts only IBM's tags in psc (2337); otherwise subscribers also get a program's own."""
        return "PSCTAGS(STRICT)" in self.custom.upper().split()


@dataclass(frozen=True, slots=True)
class QueueAttributes:
    """What a local queue has, and a model queue for the queues made from it.

    shareable, exclusive_by_default: SHARE, DEFSOPT(EXCL). in_order_of: MSGDLVSQ. properties: PROPCTL. triggered and
    what follows: of triggering, which is a transmission queue's alone, whose channel starts by itself.
    """

    name: str
    description: str = ""
    def_priority: int = 0
    def_persistent: bool = False
    max_depth: int = UNLIMITED_DEPTH
    max_message_length: int = 104_857_600
    get_enabled: bool = True
    put_enabled: bool = True
    backout_threshold: int = 0
    backout_queue: str = ""
    transmission: bool = False
    shareable: bool = True
    exclusive_by_default: bool = False
    in_order_of: str = "PRIORITY"
    properties: str = "COMPAT"
    def_put_response: str = "SYNC"
    triggered: bool = False
    trigger_type: str = "FIRST"
    trigger_depth: int = 1
    trigger_priority: int = 0
    trigger_data: str = ""
    initiation_queue: str = ""
    process: str = ""


@dataclass(frozen=True, slots=True)
class LocalQueue(QueueAttributes):
    """DEFINE QLOCAL. The defaults are those of a queue that was created because a command named it.

    owner: the user for whom a dynamic queue was made, who has every authority for it; "" for none.
    """

    definition_type: str = PREDEFINED
    owner: str = ""

    @property
    def is_temporary(self) -> bool:
        """Whether it is a temporary dynamic queue, which is deleted with the program that made it (guide 6.7.2)."""
        return self.definition_type == TEMPORARY


@dataclass(frozen=True, slots=True)
class ModelQueue(QueueAttributes):
    """DEFINE QMODEL: the attributes of the queue that is made when a program opens the model.

    definition_type: ``TEMPDYN``, ``PERMDYN`` or ``SHAREDYN``.
    """

    definition_type: str = TEMPORARY


def dynamic_queue(model: ModelQueue, name: str, owner: str = "") -> LocalQueue:
    """The local queue of that name that opening *model* makes for the user *owner*."""
    of_model = {field.name: getattr(model, field.name) for field in fields(model)}
    return LocalQueue(**of_model | {"name": name, "owner": owner})


def new_queue(name: str) -> LocalQueue:
    """The queue of that name as it is created with the queue manager, or when a command names it.

    The stream queues of a queue manager are DEFPSIST(YES): retained publications of a program that leaves persistence
    to the queue survive a restart.
    """
    return LocalQueue(name, def_persistent=name in _PERSISTENT)


@dataclass(frozen=True, slots=True)
class AliasQueue:
    """DEFINE QALIAS: a second name for a queue or, with TARGTYPE(TOPIC), for a topic object.

    properties, def_put_response: what programs have that open it, in place of the queue's.
    """

    name: str
    target: str
    target_type: str = "QUEUE"
    description: str = ""
    properties: str = "COMPAT"
    def_put_response: str = "SYNC"


@dataclass(frozen=True, slots=True)
class AuthorityRecord:
    """SET AUTHREC: what one user or group may do with the objects of one profile (guide 5).

    object_type: ``TOPIC``, ``QUEUE``, ``NAMELIST`` or ``QMGR``. profile: an object name, or a generic one. entity_type:
    ``PRINCIPAL`` or ``GROUP``. authorities: MQSC's words (``PUB``, ``SUB``, ``PUT`` ...), in alphabetical order.
    """

    object_type: str
    profile: str
    entity_type: str
    entity: str
    authorities: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The key of the record. Only its last part may have blanks, so that the parts are unambiguous."""
        return f"{self.object_type} {self.profile} {self.entity_type} {self.entity}"


@dataclass(frozen=True, slots=True)
class ClusterChannel:
    """DEFINE CHANNEL with CHLTYPE(CLUSRCVR), which makes the queue manager a member of clusters, or CHLTYPE(CLUSSDR).

    The members of a cluster in one home find each other: a CLUSSDR channel, which names a full repository, and CONNAME
    are kept for scripts. cluster: CLUSTER. cluster_namelist: CLUSNL, a namelist with the names of clusters.
    """

    name: str
    channel_type: str = CLUSRCVR
    cluster: str = ""
    cluster_namelist: str = ""
    connection_name: str = ""
    description: str = ""


Definition = (
    QueueManager
    | LocalQueue
    | AliasQueue
    | ModelQueue
    | Namelist
    | TopicObject
    | AuthorityRecord
    | ClusterChannel
    | channel_objects.ServerChannel
    | channel_objects.ChannelAuthentication
    | channel_objects.AuthenticationInfo
    | channel_objects.TcpListener
)

_KINDS: dict[str, type[Any]] = {
    "qmgr": QueueManager,
    "qlocal": LocalQueue,
    "qalias": AliasQueue,
    "qmodel": ModelQueue,
    "namelist": Namelist,
    "topic": TopicObject,
    "authrec": AuthorityRecord,
    "channel": ClusterChannel,
    "svrconn": channel_objects.ServerChannel,
    "chlauth": channel_objects.ChannelAuthentication,
    "authinfo": channel_objects.AuthenticationInfo,
    "listener": channel_objects.TcpListener,
}
_KIND_OF: Final = {cls: kind for kind, cls in _KINDS.items()}
_MOST_PARSED: Final = 1_000

# Where they are kept in ``Objects``.
_PLACES: Final = {
    "qlocal": "queues",
    "qalias": "aliases",
    "qmodel": "models",
    "namelist": "namelists",
    "authrec": "authorities",
    "channel": "channels",
    "svrconn": "own_channels",
    "chlauth": "own_rules",
    "authinfo": "own_authentication",
    "listener": "own_listeners",
}


# The objects of a new queue manager beside its input queues and namelists. Names, DEFTYPE, DEFPSIST and MAXDEPTH are
# those of IBM MQ's default objects, and of the script that defines the queues of JMS publish/subscribe there
# (MQJMS_PSQ.mqsc). SYSTEM.BROKER.MODEL.STREAM is there for scripts: the broker makes no stream from it (guide 6.1).
_SHARED_DEPTH: Final = 100_000

DEFAULT_MODELS: Final = (
    ModelQueue("SYSTEM.DEFAULT.MODEL.QUEUE"),
    ModelQueue("SYSTEM.MQSC.REPLY.QUEUE", "MQSC replies"),
    ModelQueue("SYSTEM.MQEXPLORER.REPLY.MODEL", "Replies to administration programs"),
    ModelQueue("SYSTEM.JMS.TEMPQ.MODEL", "JMS temporary queues"),
    ModelQueue("SYSTEM.NDURABLE.MODEL.QUEUE", "Managed queues of non-durable subscriptions"),
    ModelQueue("SYSTEM.DURABLE.MODEL.QUEUE", "Managed queues of durable subscriptions", definition_type=PERMANENT[0]),
    ModelQueue("SYSTEM.BROKER.MODEL.STREAM", "Stream queues", def_persistent=True, definition_type=PERMANENT[0]),
    ModelQueue("SYSTEM.JMS.MODEL.QUEUE", "JMS subscriber queues", definition_type=PERMANENT[0]),
)
DEFAULT_QUEUES: Final = (
    LocalQueue(DELAY_QUEUE, "Messages with a delivery delay"),
    LocalQueue("SYSTEM.JMS.ADMIN.QUEUE", "JMS publish/subscribe: administration", def_persistent=True),
    LocalQueue("SYSTEM.JMS.PS.STATUS.QUEUE", "JMS publish/subscribe: subscriber status", def_persistent=True),
    LocalQueue("SYSTEM.JMS.REPORT.QUEUE", "JMS publish/subscribe: responses", def_persistent=True),
    *(
        LocalQueue(
            f"SYSTEM.JMS.{kind}SUBSCRIBER.QUEUE",
            f"JMS publish/subscribe: shared, {text}",
            def_persistent=True,
            max_depth=_SHARED_DEPTH,
        )
        for kind, text in (
            ("ND.", "non-durable"),
            ("ND.CC.", "non-durable, connection consumers"),
            ("D.", "durable"),
            ("D.CC.", "durable, connection consumers"),
        )
    ),
)


class Objects:
    """All definitions of one queue manager. Mutable, in memory; the caller that changes it also saves it in the store.

    is_gone: whether a name is that of a dynamic queue that was deleted; None where that is not known.
    """

    def __init__(self, qmgr: QueueManager) -> None:
        self.qmgr = qmgr
        self.queues: dict[str, LocalQueue] = {name: new_queue(name) for name in SYSTEM_QUEUES}
        self.queues |= {queue.name: queue for queue in DEFAULT_QUEUES}
        self.aliases: dict[str, AliasQueue] = {}
        self.models: dict[str, ModelQueue] = {model.name: model for model in DEFAULT_MODELS}
        self.is_gone: Callable[[str], bool] | None = None
        self.namelists: dict[str, Namelist] = {namelist.name: namelist for namelist in DEFAULT_NAMELISTS}
        self.topics = TopicObjects()
        self.authorities: dict[str, AuthorityRecord] = {}
        self.channels: dict[str, ClusterChannel] = {}
        self.own_channels: dict[str, channel_objects.ServerChannel] = {}
        self.own_rules: dict[str, channel_objects.ChannelAuthentication] = {}
        self.own_authentication: dict[str, channel_objects.AuthenticationInfo] = {}
        self.own_listeners: dict[str, channel_objects.TcpListener] = {}

    @property
    def clusters(self) -> tuple[str, ...]:
        """The clusters that the queue manager is a member of, by name: those of its CLUSRCVR channels."""
        return tuple(self.cluster_channels)

    @property
    def cluster_channels(self) -> Mapping[str, str]:
        """Those clusters, by name, each with its CLUSRCVR channel: the first one by name."""
        return _cluster_channels(self.channels.values(), self.namelists)

    def queue(self, name: str) -> LocalQueue | None:
        """The local queue of that name, or behind the alias of that name; None where there is none."""
        alias = self.aliases.get(name)
        if alias is not None and alias.target_type == "QUEUE":
            name = alias.target
        return self.queues.get(name)

    def put(self, definition: Definition) -> None:
        """Define or replace."""
        if isinstance(definition, QueueManager):
            self.qmgr = definition
        elif not isinstance(definition, TopicObject):
            self.of_kind(kind_of(definition))[definition.name] = definition
        elif definition.name not in self.topics or self.topics.is_copy(definition.name):
            self.topics.define(definition)
        else:
            self.topics.alter(definition)

    def delete(self, kind: str, name: str) -> None:
        """Forget the definition of that kind and name. KeyError where there is none; CommandError 2085 for a topic."""
        if kind == "topic":
            self.topics.delete(name)
        else:
            del self.of_kind(kind)[name]

    def forget(self) -> None:
        """Forget everything but the queue manager's own definition, also what a new one begins with."""
        for kind in _PLACES:
            self.of_kind(kind).clear()
        for topic in list(self.topics.own):
            self.topics.delete(topic.name)

    def of_kind(self, kind: str) -> dict[str, Any]:
        """The definitions of a kind that has names, but for topic objects."""
        found: dict[str, Any] = getattr(self, _PLACES[kind])
        return found

    @property
    def named(self) -> Iterator[Definition]:
        """All definitions that have names, but for topic objects."""
        for place in _PLACES.values():
            yield from getattr(self, place).values()

    # What clients connect by: a default object is there until one of its name is defined.

    @property
    def server_channels(self) -> Mapping[str, channel_objects.ServerChannel]:
        """The channels of clients, by name."""
        return _with_defaults(channel_objects.DEFAULT_CHANNELS, self.own_channels)

    @property
    def authentication(self) -> Mapping[str, channel_objects.AuthenticationInfo]:
        """The authentication information objects, by name."""
        return _with_defaults(channel_objects.DEFAULT_AUTHENTICATION, self.own_authentication)

    @property
    def listeners(self) -> Mapping[str, channel_objects.TcpListener]:
        """The listeners, by name."""
        return _with_defaults(channel_objects.DEFAULT_LISTENERS, self.own_listeners)

    @property
    def channel_records(self) -> tuple[channel_objects.ChannelAuthentication, ...]:
        """The channel authentication records: those of a new queue manager until there are others."""
        return tuple(self.own_rules.values()) if self.qmgr.has_rules else channel_objects.DEFAULT_RULES


def _with_defaults(defaults: Iterable[Any], own: Mapping[str, Any]) -> dict[str, Any]:
    return {each.name: each for each in defaults} | dict(own)


def _cluster_channels(channels: Iterable[ClusterChannel], namelists: Mapping[str, Namelist]) -> dict[str, str]:
    found: dict[str, str] = {}
    for channel in channels:
        if channel.channel_type == CLUSRCVR:
            namelist = namelists.get(channel.cluster_namelist)
            for cluster in (channel.cluster,) if namelist is None else namelist.names:
                found[cluster] = min(channel.name, found.get(cluster, channel.name))
    found.pop("", None)
    return dict(sorted(found.items()))


def kind_of(definition: Definition) -> str:
    """The kind under which the store keeps *definition*."""
    return _KIND_OF[type(definition)]


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(_KINDS[kind])


def state_of(definition: Definition) -> str:
    """*definition* as JSON text."""
    return _adapter(kind_of(definition)).dump_json(definition).decode()


# Queue managers of one home have most of theirs in common, and are read again after each change.
@lru_cache(_MOST_PARSED)
def definition_of(kind: str, state: str) -> Definition:
    """The definition that ``state_of`` wrote."""
    value: Definition = _adapter(kind).validate_json(state)
    return value
