"""The surroundings of one command: a frozen view of the queue manager, which the edge makes for each command.

``CommandPlan`` is what translating the command in them gives: operations to apply, and warnings for its sender.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from commands.broker.authority import Action, Authority
from commands.broker.descriptor import fitting, is_of_a_put
from commands.broker.objects import CONTROL_QUEUE, DEAD_LETTER_QUEUE, DEFAULT_STREAM, Objects, is_object_name
from commands.headers.response import Warned
from commands.model import QueuedCommand
from rfh2 import constants as mq
from rfh2.errors import CommandError
from rfh2.message import Message
from rfh2.mqi_constants import MQCI_NONE
from rfh2.mqmd import Mqmd, name_of
from streams.mapping import is_stream_queue, stream_topic, sub_point_prefix
from streams.operations import Operation
from streams.patterns import parse_pattern
from streams.subscriptions import PublicationFormat, Subscription, WildcardScheme
from streams.topic_objects import QUEUE_NAMELIST, SUB_POINT_NAMELIST, Namelist
from streams.topic_space import TopicSpace


class Semantics(StrEnum):
    """The version whose behaviour applies: 7, or 6 where guide 7.5 and 8.5 say that it differed."""

    V7 = "v7"
    V6 = "v6"


V6_BROKER: Final = "v6-broker"
"""Version 6 as WebSphere MQ's own broker had it: wildcards are characters in MQRFH2 commands too (guide 2.5.1.1)."""
SEMANTICS: Final = (Semantics.V7.value, Semantics.V6.value, V6_BROKER)
"""What ``--semantics`` may be. ``v6`` is that of Event Broker and Message Broker."""


def semantics_of(name: str) -> Semantics:
    """The version that *name* of SEMANTICS stands for. Raises ValueError for another name."""
    return Semantics.V6 if name == V6_BROKER else Semantics(name)


class InputQueueKind(StrEnum):
    """The kind of the queue on which a command arrived."""

    CONTROL = "control"
    STREAM = "stream"
    OTHER = "other"


SETUP: Final = " in the script of --setup"


def not_read(queue: str, where: str = "") -> str:
    """Why no broker reads *queue* and, if it is for a stream, what to do; in words for people (guide 6.5.4).

    where: ``SETUP`` for what is replayed, which has no queue manager.
    """
    if not queue:
        return "the message names no queue"
    return f"{queue} is not in {QUEUE_NAMELIST}. If it is a stream queue, add it with ALTER NAMELIST{where}"


def stream_prefix(stream: str, objects: Objects, semantics: Semantics) -> str:
    """The prefix of the topics of a stream that is not the default one (guide 6.1).

    Under version 6 streams need no topic objects. The prefix of a stream without a TOPICSTR is its name, which
    separates its retained publications from those elsewhere.
    """
    prefix = stream_topic(stream, objects.topics).prefix
    return stream if not prefix and semantics is Semantics.V6 else prefix


def has_stream(queue: str, objects: Objects, semantics: Semantics) -> bool:
    """Whether the queue manager takes publications from *queue* (guide 6.1).

    Version 6 had no namelist: a local queue became a stream when a command named it (guide 6.1, 6.5.4). It could
    also make the queue from SYSTEM.BROKER.MODEL.STREAM; here the queue must be defined.
    """
    return _is_listed(queue, objects) or (semantics is Semantics.V6 and _may_be_stream(queue, objects))


def _is_listed(queue: str, objects: Objects) -> bool:
    namelist = objects.namelists.get(QUEUE_NAMELIST)
    return queue == DEFAULT_STREAM if namelist is None else is_stream_queue(queue, namelist)


def input_queue(name: str, objects: Objects) -> str | None:
    """The queue that *name* is, or is an alias of, if queued publish/subscribe takes commands from it; otherwise None.

    A subscription must not deliver there: its publications would be published again, or carried out, without end.
    """
    alias = objects.aliases.get(name)
    queue = alias.target if alias is not None and alias.target_type == "QUEUE" else name
    return queue if queue == CONTROL_QUEUE or _is_listed(queue, objects) else None


def _may_be_stream(queue: str, objects: Objects) -> bool:
    if queue in (CONTROL_QUEUE, DEAD_LETTER_QUEUE, objects.qmgr.deadq):
        return False
    found = objects.queues.get(queue)
    return found is not None and not found.transmission


def prefix_of_sub_point(sub_point: str | None, objects: Objects, semantics: Semantics) -> str | None:
    """The prefix of a subscription point; "" for none given, None for one that does not exist (guide 6.2)."""
    if semantics is Semantics.V6:
        return sub_point or ""  # version 6 accepted any new subscription point (guide 8.5)
    namelist = objects.namelists.get(SUB_POINT_NAMELIST, Namelist(SUB_POINT_NAMELIST))
    return sub_point_prefix(sub_point, namelist, objects.topics)


@dataclass(slots=True, unsafe_hash=True)
class Context:
    """One command's surroundings.

    message: the command message. queue: where it was put. user: who put it. now: UTC. new_id: 24 bytes, unique,
    ascending from call to call; subscriptions take theirs from it. rfh2_wildcards: the scheme of MQRFH2 commands.
    The broker changes nothing here when it decides.
    """

    objects: Objects
    space: TopicSpace
    authority: Authority
    message: Message
    queue: str
    user: str
    now: datetime
    new_id: Callable[[], bytes]
    semantics: Semantics = Semantics.V7
    rfh2_wildcards: WildcardScheme = WildcardScheme.TOPIC

    @property
    def mqmd(self) -> Mqmd:
        return self.message.mqmd

    @property
    def qmgr(self) -> str:
        return self.objects.qmgr.name

    @property
    def place(self) -> InputQueueKind:
        """Which kind of queue the command was put to; a broker does not read OTHER (guide 6.5.4; 6.7.7, 3079)."""
        if self.queue == CONTROL_QUEUE:
            return InputQueueKind.CONTROL
        return InputQueueKind.STREAM if self.is_stream(self.queue) else InputQueueKind.OTHER

    def is_stream(self, queue: str) -> bool:
        """Whether the broker takes publications from *queue* (guide 6.1)."""
        return has_stream(queue, self.objects, self.semantics)

    @property
    def is_read(self) -> bool:
        """Whether queued publish/subscribe takes every message from the queue on which this one arrived."""
        return self.queue == CONTROL_QUEUE or self.is_listed(self.queue)

    def is_listed(self, queue: str) -> bool:
        """Whether *queue* is in SYSTEM.QPUBSUB.QUEUE.NAMELIST; the broker then takes every message from it."""
        return _is_listed(queue, self.objects)

    @property
    def is_own_publication(self) -> bool:
        """Whether this queue manager put the message for a subscriber (guide 6.7.9).

        A dead letter that is put back with its context is not: it keeps the MsgId that its program gave it or got.
        """
        mqmd = self.mqmd
        if mqmd.put_appl_type != mq.MQAT_BROKER or name_of(mqmd.reply_to_q):
            return False
        is_here = name_of(mqmd.put_appl_name) == name_of(fitting(self.qmgr, 28))
        return is_here and is_of_a_put(mqmd.msg_id, self.qmgr)

    def scheme_of(self, header: PublicationFormat) -> WildcardScheme:
        """The wildcards of a command in *header*: MQRFH and PCF have the character-based ones (guide 2.5.1.1)."""
        return self.rfh2_wildcards if header is PublicationFormat.RFH2 else WildcardScheme.CHAR

    def stream_of_publisher(self, header: PublicationFormat) -> str | None:
        """The stream that a publisher means by this queue; None for the default one.

        Under version 6 an MQRFH2 publisher has no streams: its queue is the input of some message flow (guide 8.5).
        """
        if self.queue == DEFAULT_STREAM or (self.semantics is Semantics.V6 and header is PublicationFormat.RFH2):
            return None
        return self.queue

    def prefix_of_stream(self, stream: str | None) -> str:
        """The prefix of a stream's topics (guide 6.1)."""
        return "" if stream is None else stream_prefix(stream, self.objects, self.semantics)

    def sub_point_prefix(self, sub_point: str | None) -> str | None:
        """The prefix of a subscription point; "" for none given, None for one that does not exist (guide 6.2)."""
        return prefix_of_sub_point(sub_point, self.objects, self.semantics)

    @property
    def reply_to(self) -> tuple[str, str]:
        """(queue manager, queue) for responses; the queue is empty where the command names none (guide 6.7.8)."""
        return name_of(self.mqmd.reply_to_qmgr) or self.qmgr, name_of(self.mqmd.reply_to_q)

    @property
    def expires_at(self) -> datetime | None:
        """When the command message, and what it publishes or registers, expires; None for never."""
        expiry = self.mqmd.expiry
        if expiry <= 0:
            return None
        try:
            return self.now + timedelta(milliseconds=100 * expiry)
        except OverflowError:
            return None  # after the last date that Python has: the time in a capture may be any

    @property
    def priority(self) -> int:
        """The command's priority, as its queue resolves it."""
        if self.mqmd.priority != mq.MQPRI_PRIORITY_AS_Q_DEF:
            return self.mqmd.priority
        queue = self.objects.queue(self.queue)
        return queue.def_priority if queue is not None else 0

    @property
    def persistence(self) -> int:
        """The command's persistence, as its queue resolves it: MQPER_PERSISTENT or MQPER_NOT_PERSISTENT."""
        if self.mqmd.persistence != mq.MQPER_PERSISTENCE_AS_Q_DEF:
            return self.mqmd.persistence
        queue = self.objects.queue(self.queue)
        return mq.MQPER_PERSISTENT if queue is not None and queue.def_persistent else 0

    def may(self, action: Action, pattern: str, scheme: WildcardScheme) -> bool:
        """Whether the sender may do *action* at the levels of *pattern* before its first wildcard (guide 2.5.4, 5)."""
        return self.authority.may_use_topic(self.user, action, parse_pattern(pattern, scheme).literal_topic)

    def subscriber_queue(self, command: QueuedCommand, correl_as_id: bool, needed: bool = True) -> Destination:
        """The subscriber queue that *command* names, by its tags or by the descriptor's defaults (guide 6.7.2).

        needed: whether the command uses it. Names in tags may be padded with blanks, like those in fields. Raises
        CommandError 3074 or 3076 where a name is not valid, or is missing although it is needed. If it is not needed,
        only names in tags are checked, so that a wrong ReplyToQ does not keep a publication from its subscribers.
        """
        given_qmgr, given_queue = name_of(command.qmgr_name or ""), name_of(command.q_name or "")
        qmgr = given_qmgr or name_of(self.mqmd.reply_to_qmgr) or self.qmgr
        queue = given_queue or name_of(self.mqmd.reply_to_q)
        if (needed or given_qmgr) and not is_object_name(qmgr):
            raise CommandError(mq.MQRCCF_Q_MGR_NAME_ERROR, why="not a valid name", tags=(("QMgrName", qmgr),))
        if needed and not queue:
            raise CommandError(mq.MQRCCF_Q_NAME_ERROR, why="neither QName nor ReplyToQ names a queue")
        if queue and (needed or given_queue) and not is_object_name(queue):
            raise CommandError(mq.MQRCCF_Q_NAME_ERROR, why="not a valid name", tags=(("QName", queue),))
        return Destination(qmgr, queue, self.mqmd.correl_id if correl_as_id else MQCI_NONE)

    def check_reachable(self, destination: Destination) -> None:
        """Raises CommandError 3074 or 3076 where a strict queue manager does not know *destination*.

        No queue manager delivers to a model queue, an alias of a topic, or a dynamic queue that was deleted. This one
        does not deliver to the queues from which it takes commands either.
        """
        if destination.qmgr == self.qmgr:
            self._check_is_queue(destination.queue)
        if not self.objects.qmgr.strict:
            return
        queues = self.objects.queues
        if destination.qmgr != self.qmgr:
            if destination.qmgr not in queues:
                why = "no transmission queue has this name"
                raise CommandError(mq.MQRCCF_Q_MGR_NAME_ERROR, why=why, tags=(("QMgrName", destination.qmgr),))
        elif destination.queue not in queues and destination.queue not in self.objects.aliases:
            why = "the queue does not exist"
            raise CommandError(mq.MQRCCF_Q_NAME_ERROR, why=why, tags=(("QName", destination.queue),))

    def _check_is_queue(self, name: str) -> None:
        objects = self.objects
        if name in objects.models:
            why = "it is a model queue: open it, and name the dynamic queue that it gives"
        elif objects.is_gone is not None and objects.is_gone(name):
            why = "it was a dynamic queue, and was deleted"
        elif name in objects.aliases and objects.aliases[name].target_type == "TOPIC":
            why = "it is an alias of a topic; publications are delivered to queues"
        elif (queue := input_queue(name, objects)) is not None:
            why = f"the queue manager takes commands from {queue}, so it would publish its own publications without end"
        else:
            return
        raise CommandError(mq.MQRCCF_Q_NAME_ERROR, why=why, tags=(("QName", name),))


@dataclass(frozen=True, slots=True)
class Destination:
    """A subscriber's traditional identity: queue manager, queue, and correlation identifier or MQCI_NONE."""

    qmgr: str
    queue: str
    correl_id: bytes = MQCI_NONE

    @property
    def key(self) -> tuple[str, str, bytes]:
        return (self.qmgr, self.queue, self.correl_id)


@dataclass(frozen=True, slots=True)
class CommandPlan:
    """The operations of one command, in order.

    full: the subscription whose attributes FullResp asks for: as it will be or, if it is removed, as it was.
    """

    operations: tuple[Operation, ...] = ()
    warnings: tuple[Warned, ...] = ()
    full: Subscription | None = None


def not_authorized(topic: str) -> Warned:
    """The warning for a topic that the sender has no authority for."""
    return Warned(mq.MQRCCF_NOT_AUTHORIZED, (("Topic", topic),))


def warnings_or_error(refused: list[Warned], anything_left: bool) -> tuple[Warned, ...]:
    """*refused* as warnings; raises the first as a CommandError where the rest of the command has no operations."""
    if refused and not anything_left:
        raise CommandError(refused[0].reason, refused[0].tags[0][1], "not authorized", refused[0].tags)
    return tuple(refused)
