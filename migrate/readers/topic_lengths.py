"""Registrations on a stream for topics that version 6 took, and that are too long with the stream's prefix.

Version 6 kept its streams apart; the replay puts the topics of a stream below its name, as version 7 does. Therefore
the replay refuses a topic that is within the limit by itself and beyond it with the prefix. Such a registration is an
item of the state like any other: the plan says that it cannot be migrated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from commands.model import Command, DeregisterSubscriber, RegisterSubscriber, RegOpt
from migrate.legacy_state import LegacySubscription, Source
from rfh2.constants import MQ_TOPIC_STR_LENGTH
from streams.subscriptions import WildcardScheme
from streams.topic_objects import DEFAULT_STREAM
from streams.topic_strings import add_prefix


class Registrant(NamedTuple):
    """The traditional identity of a command, and its user."""

    queue: str
    qmgr: str
    correl_id: str | None
    user: str


@dataclass(slots=True)
class LongTopics:
    """The registrations that exist after the commands so far."""

    found: dict[tuple[str, str, str, str | None, str], LegacySubscription] = field(default_factory=dict)

    def takes(self, command: Command, stream: str, source: Source, registrant: Registrant) -> bool:
        """Carry out a command that the replay refused because of its topics' length; whether it was one."""
        if not isinstance(command, RegisterSubscriber | DeregisterSubscriber) or stream == DEFAULT_STREAM:
            return False
        own = max(map(len, command.topics), default=0)
        with_prefix = max((len(add_prefix(stream, topic)) for topic in command.topics), default=0)
        if not own <= MQ_TOPIC_STR_LENGTH < with_prefix:
            return False
        for topic in command.topics:
            key = (stream, registrant.qmgr, registrant.queue, registrant.correl_id, topic)
            if isinstance(command, DeregisterSubscriber):
                self.found.pop(key, None)
            else:
                self.found[key] = _subscription(command, topic, stream, source, registrant)
        return True

    def items(self) -> Iterator[LegacySubscription]:
        """An item for each."""
        yield from self.found.values()


def _subscription(
    command: RegisterSubscriber, topic: str, stream: str, source: Source, registrant: Registrant
) -> LegacySubscription:
    identity = command.sub_identity
    return LegacySubscription(
        source=source,
        topic=topic,
        queue=registrant.queue,
        qmgr=registrant.qmgr,
        correl_id=registrant.correl_id,
        stream=stream,
        sub_point=command.sub_point,
        scheme=WildcardScheme.CHAR,
        format=command.header,
        user=registrant.user,
        name=command.sub_name,
        user_data=command.sub_user_data,
        identities=() if identity is None else (identity,),
        filter=command.filter,
        options=tuple(option.value for option in command.options or () if option is not RegOpt.NONE),
        unknown=("expires_at",),
    )
