"""What a topic tree retains beside what is retained here: the differences, as news.

The tree has one place a topic, and what is in it came last. So a native publication there that is not known here is
news; one that is known from there and is there no longer was cleared. What legacy programs have retained stays, whether
the tree has it or not: a broker may forget.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from commands.links.engine.command_from_native import (
    LONGEST_EXPIRY,
    TENTHS,
    NativePublication,
    command_for,
    why_not_command,
)
from commands.qmgr.link_port import NATIVE_MARK
from rfh2.message import Message, decode
from streams.operations import ClearRetained, Operation, Publication, PublishToTopic, RetainedPublication

_log = logging.getLogger("qpubsub.live")

F = TypeVar("F", bound=Hashable)


@dataclass(frozen=True, slots=True)
class TreeRetained:
    """What the tree retains: native publications, and all topics on which there is anything.

    Topics are as here. One that cannot be read is on no list of publications, and its topic on the other.
    """

    natives: tuple[NativePublication, ...] = ()
    topics: frozenset[str] = frozenset()

    def by_filter(self, matcher: Callable[[str], Iterable[F]]) -> dict[F, TreeRetained]:
        """The same for each filter that selects any of it. matcher: which filters select a topic."""
        natives: dict[F, list[NativePublication]] = defaultdict(list)
        topics: dict[F, set[str]] = defaultdict(set)
        for native in self.natives:
            for each in matcher(native.topic):
                natives[each].append(native)
        for topic in self.topics:
            for each in matcher(topic):
                topics[each].add(topic)
        return {each: TreeRetained(tuple(natives[each]), frozenset(on)) for each, on in topics.items()}


def differences(there: TreeRetained, known: Iterable[RetainedPublication]) -> list[NativePublication]:
    """What has to be published or cleared here for both sides to agree.

    known: what is retained here on the same topics.
    """
    # Their messages are asked for one after the other: together they may be more than memory holds.
    here = {retained.topic_string: retained.publication for retained in known}
    news = [n for n in there.natives if n.topic not in here or _payload(here[n.topic].message) != n.payload]
    for topic, publication in here.items():
        if topic not in there.topics and publication.message.mqmd.appl_origin_data == NATIVE_MARK:
            news.append(NativePublication(topic, b"", retain=True))
    return news


def usable(news: Iterable[NativePublication], user: str, now: datetime) -> list[tuple[NativePublication, Operation]]:
    """Those of *news* that can be made known here, each with its operation; the others are logged and passed over.

    They stay in the tree, and no command that looks there may fail because of them.
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
    """What stands behind the header of publish/subscribe: the first one, in all that legacy programs send."""
    return b"".join([*(header.encode() for header in message.headers[1:]), message.body])
