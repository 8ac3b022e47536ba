"""What the definitions say to a program about a topic (guide 2.5.4, 5).

Whether it may publish there: the authority records, PUB of the topic objects, PSMODE. What the command processor says
of a publication comes too late for the program that put it. And the topic objects, for the model of a managed queue.
"""

from __future__ import annotations

from commands.broker.authority import GroupsOf, RecordedAuthority, no_groups
from commands.broker.objects import Objects
from commands.qmgr.mqi.errors import MqiError
from commands.qmgr.store.unit_of_work import SqliteUnitOfWork
from rfh2.constants import MQRC_PUT_INHIBITED
from rfh2.mqi_constants import MQRC_PUBSUB_INHIBITED
from streams.topic_objects import TopicObjects


def check_enabled(objects: Objects) -> None:
    """Raises MqiError 2531 where the queue manager takes no publications and no subscriptions."""
    if objects.qmgr.psmode == "DISABLED":
        raise MqiError(MQRC_PUBSUB_INHIBITED, "PSMODE is DISABLED")


class TopicDefinitions:
    """Of all programs of one queue manager. groups_of: the groups of a user.

    It keeps the definitions, as long as their version is the same.
    """

    def __init__(self, groups_of: GroupsOf = no_groups) -> None:
        self._groups_of = groups_of
        self._known: tuple[int, Objects, RecordedAuthority] | None = None

    def authority(self, unit: SqliteUnitOfWork) -> RecordedAuthority:
        """What users may do. Raises StoreError. It does not know dynamic queues: they are no definitions."""
        return self._definitions(unit)[1]

    def check_topic(self, unit: SqliteUnitOfWork, topic: str) -> None:
        """Raises MqiError 2051 where nothing may be put to *topic* now, 2531 where to none, StoreError."""
        objects, _ = self._definitions(unit)
        check_enabled(objects)
        resolved = objects.topics.resolve(topic)
        if not resolved.pub:
            raise MqiError(MQRC_PUT_INHIBITED, f"topic object {resolved.object_name} has PUB(DISABLED)")

    def topics(self, unit: SqliteUnitOfWork) -> TopicObjects:
        """The topic objects. Raises StoreError."""
        return self._definitions(unit)[0].topics

    def _definitions(self, unit: SqliteUnitOfWork) -> tuple[Objects, RecordedAuthority]:
        version = unit.definitions_version
        if self._known is not None and self._known[0] == version:
            return self._known[1:]
        objects = unit.load_objects()
        authority = RecordedAuthority(objects, self._groups_of)
        # What this unit of work has changed may be backed out.
        self._known = None if version is None else (version, objects, authority)
        return objects, authority
