"""Whether a program's user may open an object as it asks: IBM's authorizations for MQI calls (guide 2.5.4, 5).

The check is made when an object is opened, on the name that the program gives.

    MQOO_INPUT_*             GET             MQOO_SET                 SET
    MQOO_BROWSE              BROWSE          MQOO_PASS_*_CONTEXT      PASSID, PASSALL
    MQOO_OUTPUT              PUT             MQOO_SET_*_CONTEXT       SETID, SETALL, of the queue manager too
    MQOO_INQUIRE             INQ

    an alias                 its own authorities; of a topic, PUB at the topic too; MQOO_SET, SET of its queue too
    a model queue            DSP, and what the options ask for: the queue made from it is its user's
    another queue manager    those of the transmission queue
    a transmission queue     SETALL in place of PUT
    a managed queue          its owner; the queues of the bridge itself: mqm (``commands.broker.authority``)
    another user             ALTUSR of the queue manager; then that user's authorities count

Nothing is checked before the first authority record is set.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from commands.broker.authority import Action, GroupsOf, RecordedAuthority, no_groups
from commands.broker.objects import LocalQueue, Objects, QueueManager
from commands.qmgr.mqi.refusals import MqiError
from rfh2 import mqi_constants as m
from rfh2.constants import MQRC_NOT_AUTHORIZED, MQRC_PUT_INHIBITED
from streams.topic_objects import TopicObjects


class Definitions(Protocol):
    """A unit of work of the queue manager, as far as authority is read in it."""

    @property
    def definitions_version(self) -> int | None: ...
    def load_objects(self) -> Objects: ...
    def queue_manager(self) -> QueueManager: ...
    def find_queue(self, name: str) -> LocalQueue | None: ...
    def topic_behind(self, name: str) -> str | None: ...


def check_enabled(objects: Objects) -> None:
    """Raises MqiError 2531 where the queue manager takes no publications and no subscriptions."""
    if objects.qmgr.psmode == "DISABLED":
        raise MqiError(m.MQRC_PUBSUB_INHIBITED, "PSMODE is DISABLED")


class TopicDefinitions:
    """What the definitions say to the programs of one queue manager. groups_of: the groups of a user.

    Whether a program may publish on a topic (the authority records, PUB of the topic objects, PSMODE): what the command
    processor says of a publication comes too late for the program that put it. And the topic objects, for the model of
    a managed queue. It keeps the definitions, as long as their version is the same.
    """

    def __init__(self, groups_of: GroupsOf = no_groups) -> None:
        self._groups_of = groups_of
        self._known: tuple[int, Objects, RecordedAuthority] | None = None

    def authority(self, unit: Definitions) -> RecordedAuthority:
        """What users may do. Raises StoreError. It does not know dynamic queues: they are no definitions."""
        return self._definitions(unit)[1]

    def check_topic(self, unit: Definitions, topic: str) -> None:
        """Raises MqiError 2051 where nothing may be put to *topic* now, 2531 where to none, StoreError."""
        objects, _ = self._definitions(unit)
        check_enabled(objects)
        resolved = objects.topics.resolve(topic)
        if not resolved.pub:
            raise MqiError(MQRC_PUT_INHIBITED, f"topic object {resolved.object_name} has PUB(DISABLED)")

    def objects(self, unit: Definitions) -> Objects:
        """All definitions; the same object as long as they are the same. Raises StoreError."""
        return self._definitions(unit)[0]

    def topics(self, unit: Definitions) -> TopicObjects:
        """The topic objects. Raises StoreError."""
        return self._definitions(unit)[0].topics

    def _definitions(self, unit: Definitions) -> tuple[Objects, RecordedAuthority]:
        version = unit.definitions_version
        if self._known is not None and self._known[0] == version:
            return self._known[1:]
        objects = unit.load_objects()
        authority = RecordedAuthority(objects, self._groups_of)
        # What this unit of work has changed may be backed out.
        self._known = None if version is None else (version, objects, authority)
        return objects, authority


_OF_OPTION: Final = (
    (m.MQOO_ANY_INPUT, "GET"),
    (m.MQOO_BROWSE, "BROWSE"),
    (m.MQOO_OUTPUT, "PUT"),
    (m.MQOO_INQUIRE, "INQ"),
    (m.MQOO_SET, "SET"),
    (m.MQOO_PASS_IDENTITY_CONTEXT, "PASSID"),
    (m.MQOO_PASS_ALL_CONTEXT, "PASSALL"),
    (m.MQOO_SET_IDENTITY_CONTEXT, "SETID"),
    (m.MQOO_SET_ALL_CONTEXT, "SETALL"),
)
_OF_QMGR_TOO: Final = frozenset({"SETID", "SETALL"})
_CONNECTS: Final = ("CONNECT",)


class OpenAuthority:
    """What the user of one program may open. definitions: with the authority records.

    Everything here raises MqiError 2035 for what the user may not do, StoreError.
    """

    def __init__(self, definitions: TopicDefinitions, user: str) -> None:
        self._definitions, self._user = definitions, user

    def connect(self, unit: Definitions) -> None:
        """Whether the user may connect."""
        self._check_queue_manager(unit, self._user, _CONNECTS)

    def acting_user(self, unit: Definitions, options: int, alternate: str) -> str:
        """Whose authorities count: the user's, or with MQOO_ALTERNATE_USER_AUTHORITY those of *alternate*."""
        if not options & m.MQOO_ALTERNATE_USER_AUTHORITY:
            return self._user
        self._check_queue_manager(unit, self._user, ("ALTUSR",))
        return alternate.lower()  # as users who connect are

    def queue_manager(self, unit: Definitions, options: int, user: str) -> None:
        """Whether *user* may open the queue manager itself."""
        self._check_queue_manager(unit, user, _asked(options))

    def topic(self, unit: Definitions, topic: str, options: int, user: str) -> None:
        """Whether *user* may publish at *topic*, where that is what *options* ask for."""
        if options & m.MQOO_OUTPUT:
            if not self._definitions.authority(unit).may_use_topic(user, Action.PUBLISH, topic):
                raise _refused(user, "PUB", f"at '{topic}'")
            self._check_queue_manager(unit, user, _OF_QMGR_TOO.intersection(_asked(options)))

    def queue(self, unit: Definitions, name: str, options: int, user: str) -> None:
        """Whether *user* may open the local queue or the alias *name*, or have it made for output.

        A queue that neither is there nor will be made needs no authority: that it is missing is another reason.
        """
        if not self._definitions.authority(unit).checks(user):
            return
        found = unit.find_queue(name)
        if found is None and not self._is_known(unit, name, options):
            return
        asked, owner = _asked(options), ""
        if found is not None and found.name == name:
            owner = found.owner
            if found.transmission and "PUT" in asked:
                asked = (asked - {"PUT"}) | {"SETALL"}
        elif found is not None and "SET" in asked:
            self._check_queue(unit, user, found.name, ("SET",), found.owner)  # it is the queue that MQSET changes
        self._check_queue(unit, user, name, asked, owner)

    def model(self, unit: Definitions, name: str, options: int, user: str) -> None:
        """Whether *user* may have a queue made from the model queue *name*."""
        self._check_queue(unit, user, name, _asked(options) | {"DSP"})

    def transmission(self, unit: Definitions, name: str, options: int, user: str) -> None:
        """Whether *user* may send messages to other queue managers by transmission queue *name*."""
        self._check_queue(unit, user, name, _asked(options))

    @staticmethod
    def _is_known(unit: Definitions, name: str, options: int) -> bool:
        """Whether *name*, no local queue, is an alias, or will be a queue when it is opened."""
        return unit.topic_behind(name) is not None or (
            bool(options & m.MQOO_OUTPUT) and not unit.queue_manager().strict
        )

    def _check_queue(self, unit: Definitions, user: str, name: str, asked: Iterable[str], owner: str = "") -> None:
        authorities = frozenset(asked)
        if not self._definitions.authority(unit).may_use_queue(user, name, authorities, owner):
            raise _refused(user, " ".join(sorted(authorities)), f"for queue {name}")
        self._check_queue_manager(unit, user, _OF_QMGR_TOO & authorities)

    def _check_queue_manager(self, unit: Definitions, user: str, asked: Iterable[str]) -> None:
        authorities = frozenset(asked)
        if authorities and not self._definitions.authority(unit).may_use_queue_manager(user, authorities):
            raise _refused(user, " ".join(sorted(authorities)), "for the queue manager")


def _asked(options: int) -> frozenset[str]:
    return frozenset(word for bits, word in _OF_OPTION if options & bits)


def _refused(user: str, what: str, where: str) -> MqiError:
    return MqiError(MQRC_NOT_AUTHORIZED, f"user {user} does not have {what} authority {where}")
