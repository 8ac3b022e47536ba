"""Puts native publications as commands on the default stream's queue, many in one unit of work.

The bridge acknowledges them to the tree after the commit. If the queue is full or inhibited, they wait. A publication
that cannot become a command goes on the dead-letter queue unchanged.

``command_for`` makes the command, so that legacy subscribers receive it by the usual rules. A publication becomes
Publish; a retained one without data, which is how MQTT clears a topic, becomes DeletePub. The command is put on the
queue of the default stream and has ``NATIVE_MARK``. Subscribers get it like any other publication, in the header that
they registered with.

Compares what a topic tree retains with what is retained here; the differences are news.

The tree retains one publication for each topic, the last one. So a native publication there that is not known here is
news, unless what is retained here is here alone because of its scope. If one is known here from the tree and is no
longer there, someone has cleared it. Publications that legacy programs retained stay here, even if the tree does not
have them: a broker may lose them.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, Protocol, TypeVar

from commands.broker.objects import DEFAULT_STREAM
from commands.broker.puts import DeadLetters
from commands.headers.publication import has_room_for, user_folder
from commands.links.engine.filters import Positions
from commands.model import DeletePublication, Publish, PubOpt
from commands.qmgr.link_port import NATIVE_MARK, came_from_tree
from commands.qmgr.store.port import Queues
from rfh2 import constants as mq
from rfh2.bounded_cache import BoundedCache
from rfh2.ccsid import UTF8_CCSID
from rfh2.errors import DecodeError, MessageRefusedError, StoreError
from rfh2.folders import Folder, write
from rfh2.message import Message, decode, decode_chain
from rfh2.mqmd import Mqmd
from rfh2.rfh2 import Rfh2
from streams.delivery_rules import is_of_queue_manager, is_published_for_queue_manager
from streams.operations import ClearRetained, Operation, Publication, PublishToTopic, RetainedPublication
from streams.subscriptions import Subscription
from streams.topic_objects import TopicObjects

TENTHS: Final = 10
# The longest Expiry of a descriptor, in tenths of a second: nearly 7 years.
LONGEST_EXPIRY: Final = 0x7FFF_FFFF
_FORMAT_BYTES: Final = 8
_WITHOUT_HEADER: Final = (mq.MQFMT_NONE, mq.MQFMT_STRING)
_KNOWN_BYTES: Final = 4 << 20
_ENTRY_BYTES: Final = 2_000


class NativePublication(NamedTuple):
    """A publication in the form of the tree.

    expiry_s: seconds left, None for never. properties: the user's, in order. stamps: publication time and sequence
    number, as (psc tag, value). format, encoding, ccsid: of *payload*, as far as they are known.
    """

    topic: str
    payload: bytes
    retain: bool = False
    persistent: bool = True
    expiry_s: float | None = None
    priority: int = 0
    properties: tuple[tuple[str, str], ...] = ()
    stamps: tuple[tuple[str, str], ...] = ()
    format: str = ""
    encoding: int = mq.MQENC_NATIVE
    ccsid: int = UTF8_CCSID

    @property
    def clears(self) -> bool:
        """Whether it only clears the retained publication on its topic."""
        return self.retain and not self.payload


def is_format(text: str) -> bool:
    """Whether *text* can be the Format of a message: eight bytes of Latin-1."""
    try:
        return len(text.encode("latin-1")) <= _FORMAT_BYTES
    except UnicodeEncodeError:
        return False


def format_of(native: NativePublication) -> str:
    """The Format of the payload; none if it names a header and the payload does not begin with that header."""
    try:
        decode_chain(native.payload, native.format, native.ccsid)
    except DecodeError:
        return mq.MQFMT_NONE
    return native.format


def why_not_command(topic: str) -> str | None:
    """Why no command can name *topic*, None where one can."""
    if not topic:
        return "its topic is empty"
    if len(topic) > mq.MQ_TOPIC_STR_LENGTH:
        return f"its topic has {len(topic):,} characters; {mq.MQ_TOPIC_STR_LENGTH:,} is the limit"
    bad = next((character for character in topic if not has_room_for(character)), None)
    return None if bad is None else f"its topic has character U+{ord(bad):04X}, which XML does not allow"


def command_for(native: NativePublication, user: str) -> tuple[Mqmd, bytes, tuple[str, ...]]:
    """The descriptor and the bytes of the command, and the parts of the publication that a command has no field for.

    user: the user of the command. ``why_not_command`` must have returned None for the topic. An expiry that is too long
    for a descriptor becomes the longest one. A Format that names a header is left out if the payload does not begin
    with that header.
    """
    stamps = {tag: value for tag, value in reversed(native.stamps) if has_room_for(value)}
    unfit = tuple(dict.fromkeys(tag for tag, value in native.stamps if stamps.get(tag) != value))
    if native.clears:
        psc = write("psc", (("Command", DeletePublication.word), ("Topic", native.topic)))
    else:
        options = (("PubOpt", PubOpt.RETAIN_PUB.value),) if native.retain else ()
        psc = write("psc", (("Command", Publish.word), *options, ("Topic", native.topic), *stamps.items()))
    usr, lost = user_folder(native.properties)
    if (announced := format_of(native)) != native.format:
        native, unfit = native._replace(format=announced), (*unfit, "Format")
    header = Rfh2(
        tuple(Folder.of(text) for text in (psc, usr) if text),
        encoding=native.encoding,
        coded_char_set_id=native.ccsid,
        format=native.format,
    )
    expiry = mq.MQEI_UNLIMITED
    if native.expiry_s is not None:
        expiry = min(max(int(native.expiry_s * TENTHS), 1), LONGEST_EXPIRY)
    mqmd = Mqmd(
        expiry=expiry,
        coded_char_set_id=UTF8_CCSID,
        format=mq.MQFMT_RF_HEADER_2,
        priority=native.priority,
        persistence=mq.MQPER_PERSISTENT if native.persistent else 0,
        user_identifier=user[:12],
        appl_origin_data=NATIVE_MARK,
    )
    return mqmd, header.encode() + (b"" if native.clears else native.payload), (*unfit, *lost)


# The position of the bridge in the logs of its tree, as the only message on a queue of its own.
#
# It is put in the unit of work of the commands that came up to there. So after a crash the bridge goes on behind the
# last publication that is a command already, and none becomes one twice.

_MD: Final = Mqmd(format=mq.MQFMT_STRING, persistence=mq.MQPER_PERSISTENT, coded_char_set_id=1208).encode()


def keep_position(unit: Queues, queue: str, position: Positions) -> None:
    """Have *position* on *queue* instead of what is there. Raises StoreError."""
    if unit.find_queue(queue) is not None:
        while unit.get(queue) is not None:
            pass
    unit.put(queue, _MD, json.dumps(position).encode())


def kept_position(unit: Queues, queue: str) -> Positions | None:
    """The position on *queue*; None if there is none yet. Raises StoreError if it cannot be read."""
    if unit.find_queue(queue) is None:
        return None
    message = next(unit.browse(queue), None)
    if message is None:
        return None
    try:
        return {str(log): int(position) for log, position in json.loads(message.body).items()}
    except (ValueError, AttributeError, TypeError) as error:
        why = f"queue {queue} has no position ({error}); clear the queue; publications of natives may then come twice"
        raise StoreError(why) from error


_log = logging.getLogger("qpubsub.live")
_APPLICATION = "qpubsub"


class Messages(Protocol):
    """A queue manager as far as an inbound writer goes."""

    def unit_of_work(self) -> AbstractContextManager[Queues]: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A native publication that cannot be read; its payload becomes a dead letter."""

    payload: bytes


class CommandPutter:
    """Puts native publications on the default stream's queue, in units of work that the caller commits.

    qmgr: the queue manager's name. user: the user of the publications.
    """

    def __init__(self, qmgr: str, user: str, dead_letter_queue: str) -> None:
        self._user, self._dead_letters = user, DeadLetters(qmgr, dead_letter_queue)
        # Descriptors and headers, by publications without their data, if that changes nothing in them.
        self._known: BoundedCache[NativePublication, tuple[bytes, bytes]] = BoundedCache(_KNOWN_BYTES)

    def put_all(self, unit: Queues, natives: Sequence[NativePublication | Unreadable]) -> None:
        """Each of them, in order. Raises StoreError."""
        for native in natives:
            if isinstance(native, Unreadable):
                self.set_aside(unit, Mqmd(), native.payload, mq.MQRCCF_COMMAND_FAILED)
            else:
                self.put(unit, native)

    def put(self, unit: Queues, native: NativePublication) -> None:
        """One publication: a command, or a dead letter where it cannot be one. Raises StoreError."""
        about = native._replace(payload=b"")
        known = None if native.clears else self._known.get(about)
        if known is not None:
            self._put(unit, native, known[0], known[1] + native.payload)
            return
        why = why_not_command(native.topic)
        if why is not None:
            _log.error("a native publication is put on the dead-letter queue: %s", why)
            self.set_aside(unit, Mqmd(format=format_of(native)), native.payload, mq.MQRCCF_TOPIC_ERROR)
            return
        try:
            mqmd, body, lost = command_for(native, self._user)
            md = mqmd.encode()
        except Exception as error:
            # A fault of ours, or a value nobody thought of: it must not keep the publications behind it waiting.
            text = "a native publication on topic %s cannot be made a command; it is put on the dead-letter queue"
            _log.error(text, native.topic, exc_info=error)
            self.set_aside(unit, Mqmd(), native.payload, mq.MQRCCF_COMMAND_FAILED)
            return
        if lost:
            _log.warning("topic %s: a native publication loses %s", native.topic, ", ".join(lost))
        elif native.format in _WITHOUT_HEADER and native.expiry_s is None and native.payload:
            header = body[: -len(native.payload)]
            self._known.keep(about, (md, header), _ENTRY_BYTES + 8 * len(header))
        self._put(unit, native, md, body)

    def _put(self, unit: Queues, native: NativePublication, md: bytes, body: bytes) -> None:
        try:
            now = datetime.now(UTC)
            unit.put(DEFAULT_STREAM, md, body, time=now, user=self._user, application=_APPLICATION)
        except MessageRefusedError as error:
            _log.error("a native publication on %s is set aside: %s", native.topic, error)
            self.set_aside(unit, Mqmd.decode(md), body, error.reason)

    def set_aside(self, unit: Queues, mqmd: Mqmd, body: bytes, reason: int, queue: str = DEFAULT_STREAM) -> None:
        """Put it on the dead-letter queue. queue: the queue where it was, or its destination."""
        now = datetime.now(UTC)
        described = replace(mqmd, persistence=mq.MQPER_PERSISTENT)
        letter = self._dead_letters.put(described, body, reason, queue, now)
        unit.put(letter.queue, letter.md, letter.body, time=now)


class InboundWriter:
    """Puts native publications on the default stream's queue. queues: for this writer alone.

    position_queue: for the position behind them, where the tree does not remember it.
    """

    def __init__(self, queues: Messages, putter: CommandPutter, position_queue: str) -> None:
        self._queues, self._putter, self._position_queue = queues, putter, position_queue

    def put(self, natives: Sequence[NativePublication | Unreadable], position: Positions | None = None) -> None:
        """Put them all, and keep *position*; or nothing. Raises StoreError: then they may be tried again."""
        with self._queues.unit_of_work() as unit:
            self._putter.put_all(unit, natives)
            if position is not None:
                keep_position(unit, self._position_queue, position)

    def position(self) -> Positions | None:
        """The position that was kept last; None if none was. Raises StoreError."""
        with self._queues.unit_of_work() as unit:
            return kept_position(unit, self._position_queue)

    def close(self) -> None:
        """Release the queues."""
        self._queues.close()


# What the scope of publications and subscriptions means to a link (guide 3.3): the one place that decides it.
#
# A publication is of scope QMGR by Local or by PUBSCOPE(QMGR) of its topic, a subscription by Local or by
# SUBSCOPE(QMGR). What that comes to is the administrator's to say (``TopicsConfig.local``):
#
#     share   the tree belongs to the queue manager. All of it is carried; a tree with scopes of its own is told
#     keep    the tree is elsewhere. Publications and deletions of scope QMGR stay here; subscriptions of scope QMGR
#             need nothing from the tree, and get nothing that came from it


class LinkScope:
    """The scope of what one link carries. keeps: whether scope QMGR keeps things here."""

    def __init__(self, keeps: bool) -> None:
        self.keeps: Final = keeps
        self._topic_objects = TopicObjects()

    def load(self, topic_objects: TopicObjects) -> None:
        """Decide by these from now on."""
        self._topic_objects = topic_objects

    def is_of_queue_manager(self, topic_string: str, local: bool) -> bool:
        """Whether a publication on the topic, or its deletion, is of scope QMGR. local: whether it is Local itself."""
        return is_published_for_queue_manager(topic_string, local, self._topic_objects)

    def stays(self, topic_string: str, local: bool) -> bool:
        """Whether it does not go into the tree."""
        return self.keeps and self.is_of_queue_manager(topic_string, local)

    def needs_tree(self, subscription: Subscription) -> bool:
        """Whether a subscription needs publications from the tree. Raises CommandError 3072 for no pattern."""
        return not (self.keeps and is_of_queue_manager(subscription, self._topic_objects))

    def is_only_here(self, retained: RetainedPublication) -> bool:
        """Whether what is retained was published here and stays here, so that nobody else has it."""
        publication = retained.publication
        return self.stays(retained.topic_string, publication.local) and not came_from_tree(publication)


F = TypeVar("F", bound=Hashable)


@dataclass(frozen=True, slots=True)
class TreeRetained:
    """What the tree retains: native publications, and all topics on which there is anything.

    Topics have the form used here. A publication that cannot be read is only in the list of topics.
    """

    natives: tuple[NativePublication, ...] = ()
    topics: frozenset[str] = frozenset()

    def by_filter(self, matcher: Callable[[str], Iterable[F]]) -> dict[F, TreeRetained]:
        """The same, divided by filter. matcher: which filters select a topic."""
        natives: dict[F, list[NativePublication]] = defaultdict(list)
        topics: dict[F, set[str]] = defaultdict(set)
        for native in self.natives:
            for each in matcher(native.topic):
                natives[each].append(native)
        for topic in self.topics:
            for each in matcher(topic):
                topics[each].add(topic)
        return {each: TreeRetained(tuple(natives[each]), frozenset(on)) for each, on in topics.items()}


@dataclass(frozen=True, slots=True)
class News:
    """What the tree retains and is not known here, for one queue manager. user: of native publications."""

    user: str
    scope: LinkScope

    def of(
        self, there: TreeRetained, known: Iterable[RetainedPublication], now: datetime
    ) -> list[tuple[NativePublication, Operation]]:
        """The news that can be made known here, each with its operation. known: what is retained here on the topics."""
        return usable(differences(there, known, self.scope), self.user, now)


class NewerTopics:
    """On which topics something retained came while the keeper looked at what the tree retains: it is newer than that.

    turn: held while either of them puts commands, so that what was retained before is not put after it.
    """

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.topics: set[str] = set()
        self._looks = False

    @contextmanager
    def noted(self) -> Iterator[None]:
        """The keeper looks, and puts what it has learnt."""
        with self.turn:
            self._looks = True
        try:
            yield
        finally:
            with self.turn:
                self.topics, self._looks = set(), False

    def note(self, natives: Iterable[NativePublication | object]) -> None:
        """These came, and are put next; the caller has the turn."""
        if self._looks:
            self.topics.update(each.topic for each in natives if isinstance(each, NativePublication) and each.retain)


def differences(there: TreeRetained, known: Iterable[RetainedPublication], scope: LinkScope) -> list[NativePublication]:
    """The publications to publish and the topics to clear here, so that both sides agree.

    known: what is retained here on the same topics. What is retained here alone stays: the tree does not say whether
    its own is older, and has it still.
    """
    # Read their messages one after the other: together they may not fit in memory.
    here = {retained.topic_string: retained for retained in known}

    def is_known(native: NativePublication) -> bool:
        held = here.get(native.topic)
        return held is not None and (scope.is_only_here(held) or _payload(held.publication.message) == native.payload)

    news = [native for native in there.natives if not is_known(native)]
    for topic, held in here.items():
        if topic not in there.topics and came_from_tree(held.publication):
            news.append(NativePublication(topic, b"", retain=True))
    return news


def usable(news: Iterable[NativePublication], user: str, now: datetime) -> list[tuple[NativePublication, Operation]]:
    """Those of *news* that can be made known here, each with its operation; the others are logged and skipped.

    They stay in the tree, and must not make a command fail that looks there.
    """
    found = []
    for native in news:
        why = why_not_command(native.topic)
        try:
            if why is None:
                found.append((native, as_operation(native, user, now)))
        except Exception as error:  # a fault of ours, or a value nobody thought of
            why = f"it cannot be made a command ({error!r})"
        if why is not None:
            _log.warning("a native retained publication is passed over, topic %.200s: %s", native.topic, why)
    return found


def as_operation(native: NativePublication, user: str, now: datetime) -> Operation:
    """*native*, which is retained, as the operation that makes it known here. now: UTC."""
    if native.clears:
        return ClearRetained(native.topic)
    mqmd, body, _lost = command_for(native, user)
    longest_s = LONGEST_EXPIRY / TENTHS
    expires_at = None if native.expiry_s is None else now + timedelta(seconds=min(native.expiry_s, longest_s))
    return PublishToTopic(native.topic, Publication(decode(body, mqmd), now, expires_at), retain=True)


def _payload(message: Message) -> bytes:
    """The data behind the publish/subscribe header: it is the first header in all messages of legacy programs."""
    return b"".join([*(header.encode() for header in message.headers[1:]), message.body])
