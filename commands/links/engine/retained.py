"""Compares what a topic tree retains with what is retained here; the differences are news.

The tree retains one publication for each topic, the last one. So a native publication there that is not known here is
news, unless what is retained here is here alone because of its scope. If one is known here from the tree and is no
longer there, someone has cleared it. Publications that legacy programs retained stay here, even if the tree does not
have them: a broker may lose them.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

from commands.links.engine.inbound_writer import (
    LONGEST_EXPIRY,
    TENTHS,
    NativePublication,
    command_for,
    why_not_command,
)
from commands.qmgr.link_port import came_from_tree
from rfh2.message import Message, decode
from streams.delivery_rules import is_of_queue_manager, is_published_for_queue_manager
from streams.operations import ClearRetained, Operation, Publication, PublishToTopic, RetainedPublication
from streams.subscriptions import Subscription
from streams.topic_objects import TopicObjects

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


_log = logging.getLogger("qpubsub.live")

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
