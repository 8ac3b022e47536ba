"""The kinds of objects that DEFINE, ALTER, DELETE and DISPLAY know: where each is kept, and what its answers say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from commands.broker.channel_objects import DEFAULT_CONNAUTH, AuthenticationInfo, ServerChannel, TcpListener
from commands.broker.objects import AliasQueue, ClusterChannel, LocalQueue, ModelQueue, Objects
from commands.mqsc import answers, attributes, channel_attributes
from commands.mqsc.attributes import ObjectKind
from rfh2.constants import MQ_CHANNEL_NAME_LENGTH, MQ_OBJECT_NAME_LENGTH
from streams.topic_objects import DEFAULT_TOPIC, Namelist, TopicObject

_NO_SUCH_OBJECT: Final = ("", "")


@dataclass(frozen=True, slots=True)
class ObjectFamily:
    """One kind of definition that has a name: where it is kept, how it is made, and its message numbers.

    required: the keyword without which nothing is defined, and its field. template: the object whose attributes count
    where DEFINE gives none; it is there whether or not it is kept.
    """

    kind: ObjectKind
    stored_as: str
    make: Callable[[str], Any]
    of: Callable[[Objects], Mapping[str, Any]]
    created: tuple[str, str]
    changed: tuple[str, str]
    deleted: tuple[str, str]
    display: tuple[str, str]
    required: tuple[str, str] = _NO_SUCH_OBJECT
    longest_name: int = MQ_OBJECT_NAME_LENGTH
    template: str = ""

    def existing(self, objects: Objects, name: str) -> Any:
        """The object of this name; None where there is none."""
        found = self.of(objects).get(name)
        return self.make(name) if found is None and name == self.template else found


def _topics(objects: Objects) -> Mapping[str, TopicObject]:
    return {topic_object.name: topic_object for topic_object in objects.topics.own}


_QUEUE_WORDS: Final = (answers.QUEUE_CREATED, answers.QUEUE_CHANGED, answers.QUEUE_DELETED, answers.QUEUE_DISPLAY)

TOPIC: Final = ObjectFamily(
    attributes.TOPIC,
    "topic",
    lambda name: TopicObject(name, ""),
    _topics,
    answers.TOPIC_CREATED,
    answers.TOPIC_CHANGED,
    answers.TOPIC_DELETED,
    answers.TOPIC_DISPLAY,
    required=("TOPICSTR", "topic_string"),
    template=DEFAULT_TOPIC,
)
QLOCAL: Final = ObjectFamily(
    attributes.QLOCAL,
    "qlocal",
    LocalQueue,
    lambda objects: objects.queues,
    *_QUEUE_WORDS,
    template="SYSTEM.DEFAULT.LOCAL.QUEUE",
)
QALIAS: Final = ObjectFamily(
    attributes.QALIAS,
    "qalias",
    lambda name: AliasQueue(name, ""),
    lambda objects: objects.aliases,
    *_QUEUE_WORDS,
    template="SYSTEM.DEFAULT.ALIAS.QUEUE",
)
QMODEL: Final = ObjectFamily(
    attributes.QMODEL,
    "qmodel",
    ModelQueue,
    lambda objects: objects.models,
    *_QUEUE_WORDS,
    template="SYSTEM.DEFAULT.MODEL.QUEUE",
)
QUEUES: Final = (QLOCAL, QALIAS, QMODEL)
NAMELIST: Final = ObjectFamily(
    attributes.NAMELIST,
    "namelist",
    Namelist,
    lambda objects: objects.namelists,
    answers.NAMELIST_CREATED,
    answers.NAMELIST_CHANGED,
    answers.NAMELIST_DELETED,
    answers.NAMELIST_DISPLAY,
    template="SYSTEM.DEFAULT.NAMELIST",
)
_CHANNEL_WORDS: Final = (
    answers.CHANNEL_CREATED,
    answers.CHANNEL_CHANGED,
    answers.CHANNEL_DELETED,
    answers.CHANNEL_DISPLAY,
)
CHANNEL: Final = ObjectFamily(
    channel_attributes.CHANNEL,
    "channel",
    ClusterChannel,
    lambda objects: objects.channels,
    *_CHANNEL_WORDS,
    required=("CHLTYPE", "channel_type"),
    longest_name=MQ_CHANNEL_NAME_LENGTH,
)
SERVER_CHANNEL: Final = ObjectFamily(
    channel_attributes.SERVER_CHANNEL,
    "svrconn",
    ServerChannel,
    lambda objects: objects.server_channels,
    *_CHANNEL_WORDS,
    required=("CHLTYPE", "channel_type"),
    longest_name=MQ_CHANNEL_NAME_LENGTH,
    template="SYSTEM.DEF.SVRCONN",
)
CHANNELS: Final = (CHANNEL, SERVER_CHANNEL)
AUTHINFO: Final = ObjectFamily(
    channel_attributes.AUTHINFO,
    "authinfo",
    AuthenticationInfo,
    lambda objects: objects.authentication,
    answers.AUTHINFO_CREATED,
    answers.AUTHINFO_CHANGED,
    answers.AUTHINFO_DELETED,
    answers.AUTHINFO_DISPLAY,
    required=("AUTHTYPE", "authentication_type"),
    template=DEFAULT_CONNAUTH,
)
LISTENER: Final = ObjectFamily(
    channel_attributes.LISTENER,
    "listener",
    TcpListener,
    lambda objects: objects.listeners,
    answers.LISTENER_CREATED,
    answers.LISTENER_CHANGED,
    answers.LISTENER_DELETED,
    answers.LISTENER_DISPLAY,
    required=("TRPTYPE", "transport"),
    template="SYSTEM.DEFAULT.LISTENER.TCP",
)
FAMILIES: Final = {
    "TOPIC": TOPIC,
    "QLOCAL": QLOCAL,
    "QALIAS": QALIAS,
    "QMODEL": QMODEL,
    "NAMELIST": NAMELIST,
    "CHANNEL": CHANNEL,
    "AUTHINFO": AUTHINFO,
    "LISTENER": LISTENER,
}
