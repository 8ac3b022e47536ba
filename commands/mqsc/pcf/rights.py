"""The authorities that PCF commands need (guide 5, and IBM's "Authorizations for PCF commands").

    Inquire, Ping        DSP of the object; without it an object that a generic name stands for is passed over
    Create, Copy         CRT of the new object; with Replace, of one that is there, CHG
    Change               CHG
    Delete               DLT
    Clear                CLR
    Set, Delete Auth Rec CHG of the queue manager
    channels, clusters,  to change anything CHG of the queue manager: they make it a member of a cluster, and let
    AUTHINFO, LISTENER   clients in
    and for any of them  DSP of the queue manager

A subscription has no records of its own: what is asked for are DSP, and to make, change or delete one CTRL, of the
topic objects at and above its topic, and PUT on its destination for the user who makes it. As everywhere, nothing is
checked before the first record is set. Whoever runs ``qpubsub mqsc`` may do everything: the files of the queue
manager are his.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from commands.broker.attribute_kinds import Shown
from commands.broker.authority import RecordedAuthority, queue_on_the_way
from commands.mqsc.administration import Administration
from commands.mqsc.answers import is_generic
from commands.mqsc.script import Command
from rfh2.constants import MQRC_NOT_AUTHORIZED
from rfh2.errors import CommandError
from streams.topic_strings import SEPARATOR

Row = Mapping[str, Shown]

_WORDS: Final = {"ALTER": "CHG", "CLEAR": "CLR", "DEFINE": "CRT", "DELETE": "DLT", "DISPLAY": "DSP"}
_OBJECT_TYPES: Final = {
    "NAMELIST": "NAMELIST",
    "QALIAS": "QUEUE",
    "QLOCAL": "QUEUE",
    "QSTATUS": "QUEUE",
    "QMODEL": "QUEUE",
    "QREMOTE": "QUEUE",
    "QUEUE": "QUEUE",
    "TOPIC": "TOPIC",
}
_CHANGES_QMGR: Final = frozenset({"ALTER", "RESUME", "SET", "START", "STOP", "SUSPEND"})
_OF_QMGR: Final = frozenset({"AUTHINFO", "AUTHREC", "CHANNEL", "CHLAUTH", "CLUSTER", "LISTENER"})
_AT_TOPICS: Final = frozenset({"SUB", "SBSTATUS", "TPSTATUS"})
_WILD: Final = frozenset("#+*?")


class Rights:
    """What the user who sent a command may do."""

    def __init__(self, administration: Administration) -> None:
        self._administration, self._user = administration, administration.user
        self._authority = RecordedAuthority(administration.objects, administration.groups_of)

    def check(self, command: Command) -> None:
        """Raise CommandError 2035 where *command* may not be carried out."""
        qmgr = self._administration.objects.qmgr.name
        self._require("QMGR", qmgr, "DSP")
        name = "" if command.name is None else command.name.text
        if command.target in _OBJECT_TYPES:
            if command.verb == "DISPLAY" and is_generic(name):
                return
            object_type, word = _OBJECT_TYPES[command.target], _WORDS[command.verb]
            if command.keyword("REPLACE") is not None and self._exists(object_type, name):
                word = "CHG"
            self._require(object_type, name, word)
        elif command.target == "SUB" and command.verb != "DISPLAY":
            self._check_subscription(command, name)
        elif command.target == "TOPICSTR":
            self._require_topic(name, "CLR")
        elif command.verb in _CHANGES_QMGR or (command.target in _OF_QMGR and command.verb != "DISPLAY"):
            self._require("QMGR", qmgr, "CHG")

    def visible(self, command: Command, rows: Iterable[Row]) -> Iterator[Row]:
        """Those of *rows* whose object the user may display."""
        object_type = _OBJECT_TYPES.get(command.target)
        for row in rows:
            if object_type is not None:
                key = "QUEUE" if object_type == "QUEUE" else object_type
                allowed = self._authority.may_administer(self._user, object_type, str(row[key]), "DSP")
            elif command.target in _AT_TOPICS:
                allowed = self._may_topic(self._topic_of(row), "DSP")
            else:
                allowed = True
            if allowed:
                yield row

    def _topic_of(self, row: Row) -> str:
        if "SUBID" in row:
            found = self._administration.topic_space.subscription(bytes.fromhex(str(row["SUBID"])))
            return "" if found is None else found.topic_string
        return str(row["TOPICSTR"])

    @property
    def checks(self) -> bool:
        """Whether anything is checked for this user."""
        return self._authority.checks(self._user)

    def _check_subscription(self, command: Command, name: str) -> None:
        """CTRL at the topic of the subscription that is there, or that is to be made; PUT on its destination."""
        space, objects = self._administration.topic_space, self._administration.objects
        sub_id = command.keyword("SUBID")
        found = space.by_name(name)
        if sub_id is not None and sub_id.values:
            found = space.subscription(bytes.fromhex(sub_id.values[0].text))
        if found is not None:
            self._require_topic(found.topic_string, "CTRL")
        if command.verb == "DEFINE":
            given = {k.name: k.values[0].text for k in command.keywords if k.values}
            above = objects.topics.get(given.get("TOPICOBJ", ""))
            parts = (above.topic_string if above is not None else "", given.get("TOPICSTR", ""))
            self._require_topic(SEPARATOR.join(filter(None, parts)), "CTRL")
        destination = command.keyword("DEST")
        if destination is not None and destination.values:
            at = command.keyword("DESTQMGR")
            qmgr = at.values[0].text if at is not None and at.values else objects.qmgr.name
            queue = queue_on_the_way(qmgr or objects.qmgr.name, destination.values[0].text, objects.qmgr.name)
            if not self._authority.may_put(self._user, queue):
                raise _not_authorized(f"{self._user or 'no user'} may not put on {queue}")

    def _exists(self, object_type: str, name: str) -> bool:
        objects = self._administration.objects
        there = {
            "NAMELIST": name in objects.namelists,
            "QUEUE": name in objects.queues or name in objects.aliases,
            "TOPIC": name in objects.topics and not objects.topics.is_copy(name),
        }
        return there[object_type]

    def _require(self, object_type: str, name: str, word: str) -> None:
        if not self._authority.may_administer(self._user, object_type, name, word):
            raise _not_authorized(f"{self._user or 'no user'} has no {word} authority for {object_type} {name}")

    def _require_topic(self, topic_string: str, word: str) -> None:
        if not self._may_topic(topic_string, word):
            raise _not_authorized(f"{self._user or 'no user'} has no {word} authority at topic '{topic_string}'")

    def _may_topic(self, topic_string: str, word: str) -> bool:
        return self._authority.may_administer_topic(self._user, _without_wildcards(topic_string), word)


def _without_wildcards(topic_string: str) -> str:
    """The levels above the first that holds a character which is a wildcard in either scheme."""
    levels = topic_string.split(SEPARATOR)
    wild = next((at for at, level in enumerate(levels) if _WILD.intersection(level)), len(levels))
    return SEPARATOR.join(levels[:wild])


def _not_authorized(why: str) -> CommandError:
    return CommandError(MQRC_NOT_AUTHORIZED, why=why)
