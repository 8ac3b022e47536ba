"""Who may do what with topics, queues and the queue manager (guide 5): answered from its authority records.

Nothing is checked until the first record is set. After that, everything that no record allows is refused. Authorities
on topics are those of topic objects and apply to all topics below: a user has what the object at a topic grants, or any
object above it up to SYSTEM.BASE.TOPIC, and no object below can revoke it. If several records of one user or group
match an object's name, only the one with the most specific profile applies, even if it grants less
(``commands.broker.authority``). A user has the sum of what three kinds of records grant: his own record, those of his
groups, and that of group ``nobody``, to which every user belongs. ``mqm``, as user or group, may do everything.

Some queues need no record. A dynamic queue is its owner's. A managed queue (``SYSTEM.MANAGED.*``) is its owner's alone,
and the queues of the bridge itself (``SYSTEM.QPUBSUB.*``) are nobody's but mqm's, whatever records say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, Protocol

from commands.broker.objects import AuthorityRecord, Objects
from streams.fragments import Fragment, Wild, fragments_stand_in, read_fragments
from streams.subscriptions import MANAGED_PREFIX

GroupsOf = Callable[[str], Collection[str]]

_EVERYBODY = "nobody"
_MOST_KNOWN = 4_096
_TO_CONNECT = frozenset({"CONNECT", "INQ"})
ADMINISTRATOR = "mqm"
"""The user, and the group, that may do everything."""
OWN_PREFIX = "SYSTEM.QPUBSUB."
"""The queues that the bridge uses itself: what stands on them is no business of programs."""


class Action(StrEnum):
    """What a user wants to do with a topic. ReqUpdate needs RESUME; every user with SUB has it."""

    PUBLISH = "PUB"
    SUBSCRIBE = "SUB"
    RESUME = "RESUME"


class Authority(Protocol):
    """The answers of an object authority manager."""

    def may_use_topic(self, user: str, action: Action, topic_string: str) -> bool:
        """Whether *user* may do *action* at this topic, which holds no wildcards."""

    def may_put(self, user: str, queue: str) -> bool:
        """Whether *user* may put to *queue*."""

    def may_set_identity(self, user: str, queue: str) -> bool:
        """Whether *user* may set the identity context of what is put to *queue*."""


def queue_on_the_way(qmgr: str, queue: str, here: str) -> str:
    """The queue of queue manager *here* that a message for *queue* of *qmgr* is put to, for which it needs authority.

    That for another queue manager is put to the transmission queue, which has its name.
    """
    return queue if qmgr == here else qmgr


def no_groups(_user: str) -> Collection[str]:
    """For a replay, in which the groups of a user are not known."""
    return ()


class RecordedAuthority:
    """Authority by the records that *objects* holds now. groups_of: the groups of a user, as the edge knows them."""

    def __init__(self, objects: Objects, groups_of: GroupsOf = no_groups) -> None:
        self._objects, self._groups_of = objects, groups_of
        # What one entity's records grant on an object, as long as the records stay the same.
        self._records: tuple[AuthorityRecord, ...] = ()
        self._known: dict[tuple[str, str, tuple[str, str]], set[str]] = {}

    def may_use_topic(self, user: str, action: Action, topic_string: str) -> bool:
        """Guide 5.1: the topic objects at and above the topic are asked in turn."""
        entities = self._entities(user)
        if entities is None:
            return True
        enough = {action.value, Action.SUBSCRIBE.value} if action is Action.RESUME else {action.value}
        covering = self._objects.topics.covering(topic_string)
        return any(enough & self._granted("TOPIC", topic_object, entities) for topic_object in covering)

    def may_put(self, user: str, queue: str) -> bool:
        """Whether *user* has PUT authority for *queue*."""
        found = self._objects.queues.get(queue)
        return self.may_use_queue(user, queue, ("PUT",), "" if found is None else found.owner)

    def may_set_identity(self, user: str, queue: str) -> bool:
        """IBM MQ wants SETID for the queue and for the queue manager."""
        needed = ("SETID",)
        return self.may_use_queue(user, queue, needed) and self.may_use_queue_manager(user, needed)

    def may_use_queue(self, user: str, queue: str, authorities: Collection[str], owner: str = "") -> bool:
        """Whether *user* has all *authorities* (``GET``, ``PUT`` ...) for *queue*. owner: of a dynamic queue."""
        entities = self._entities(user)
        if entities is None:
            return True
        if queue.startswith(OWN_PREFIX):
            return False
        if owner and owner == user:
            return True
        return not queue.startswith(MANAGED_PREFIX) and self._granted("QUEUE", queue, entities).issuperset(authorities)

    def may_use_queue_manager(self, user: str, authorities: Collection[str]) -> bool:
        """Whether *user* has all *authorities* (``ALTUSR``, ``SETALL`` ...) for the queue manager itself.

        CONNECT and INQ are asked for only once a record grants CONNECT to somebody: without one, nobody could connect
        where only topics and queues have records.
        """
        entities = self._entities(user)
        if entities is None:
            return True
        asked = set(authorities)
        if not asked.isdisjoint(_TO_CONNECT) and not self._restricts_connecting():
            asked -= _TO_CONNECT
        return not asked or asked <= self._granted("QMGR", self._objects.qmgr.name, entities)

    def _restricts_connecting(self) -> bool:
        records = self._objects.authorities.values()
        return any(each.object_type == "QMGR" and "CONNECT" in each.authorities for each in records)

    def checks(self, user: str) -> bool:
        """Whether there is anything that *user* may not do."""
        return self._entities(user) is not None

    def may_administer(self, user: str, object_type: str, name: str, authority: str) -> bool:
        """Whether a record for the object has *authority*: ``CHG``, ``CLR``, ``CRT``, ``DLT``, ``DSP`` or ``CTRL``."""
        entities = self._entities(user)
        return entities is None or authority in self._granted(object_type, name, entities)

    def may_administer_topic(self, user: str, topic_string: str, authority: str) -> bool:
        """The same for a topic, which holds no wildcards: the topic objects at and above it are asked in turn."""
        entities = self._entities(user)
        if entities is None:
            return True
        covering = self._objects.topics.covering(topic_string)
        return any(authority in self._granted("TOPIC", topic_object, entities) for topic_object in covering)

    def _entities(self, user: str) -> set[tuple[str, str]] | None:
        """The entities whose records hold for *user*; None where nothing needs to be checked."""
        if not self._objects.authorities:
            return None
        groups = {*self._groups_of(user), _EVERYBODY}
        if user == ADMINISTRATOR or ADMINISTRATOR in groups:
            return None
        return {("PRINCIPAL", user), *(("GROUP", group) for group in groups)}

    def _granted(self, object_type: str, name: str, entities: Collection[tuple[str, str]]) -> set[str]:
        records = tuple(self._objects.authorities.values())
        if records != self._records or len(self._known) >= _MOST_KNOWN:
            self._records = records
            self._known.clear()
        granted: set[str] = set()
        for entity in entities:
            key = (object_type, name, entity)
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = _granted_to(entity, object_type, name, records)
            granted |= known
        return granted


def _granted_to(entity: tuple[str, str], object_type: str, name: str, records: Iterable[AuthorityRecord]) -> set[str]:
    """What *records* grant one entity on an object."""
    own = (each for each in records if (each.entity_type, each.entity) == entity and each.object_type == object_type)
    return _most_specific(own, name)


def _most_specific(records: Iterable[AuthorityRecord], name: str) -> set[str]:
    """What one entity's record for *name* grants: only the record with the most specific profile counts.

    IBM MQ does not say which of ``*A*`` and ``*B*`` is more specific. Among such records, only what all of them grant
    is granted.
    """
    fitting = [
        (profile.specificity, record.authorities)
        for record in records
        if (profile := parse_profile(record.profile)) is not None and profile.fits(name)
    ]
    least = min((specificity for specificity, _ in fitting), default=None)
    closest = [set(authorities) for specificity, authorities in fitting if specificity == least]
    return set.intersection(*closest) if closest else set()


# Generic profiles of authority records: which object names match a profile, and which of several profiles applies.
#
# The rules are those of IBM MQ's object authority manager. A name's qualifiers are the parts between its dots.
#
#     ?    exactly one character, no dot         AB.?D        AB.CD, not AB.CCD
#     *    as a qualifier: exactly one           ABC.*.JKL    ABC.DEF.JKL, not ABC.JKL, not ABC.DEF.GHI.JKL
#     *    in one: any characters, or none       ABC.DE*.JKL  ABC.DE.JKL, ABC.DEGH.JKL
#     **   any number of qualifiers, or none     ABC.**       ABC, ABC.DEF, ABC.DEF.GHI; not ABCD
#
# ``**`` is a whole qualifier and occurs once in a profile: first, last, between two others, or alone for every name.
#
# If several profiles match a name, only the most specific one applies. They are compared from left to right. At the
# first difference, an ordinary character is more specific than ``?``, ``?`` than ``*``, and ``*`` than ``**``.

MULTIPLE: Final = "**"
_DOT: Final = "."
_WILD: Final = {"*": Wild.MANY, "?": Wild.ONE}

# Specificity; a lower number is more specific. IBM's rule does not rank the end of a profile. Here it is less specific
# than a character that a longer profile has there (A*B beside A*), and more specific than a wildcard that may match
# nothing.
_LITERAL, _END, _DOT_BEFORE_MULTIPLE, _ONE, _MANY, _MULTIPLE = range(6)
_RANKS: Final = {"?": _ONE, "*": _MANY}

_Qualifier = tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile's name, generic or full.

    before, after: its qualifiers on both sides of ``**``; all are in *before* where has_multiple is False. specificity:
    if two profiles match one name, the profile with the lower value is more specific.
    """

    before: tuple[_Qualifier, ...]
    after: tuple[_Qualifier, ...]
    has_multiple: bool
    specificity: tuple[int, ...]

    def fits(self, name: str) -> bool:
        """Whether the profile matches the object of that name."""
        qualifiers = name.split(_DOT)
        spare = len(qualifiers) - len(self.before) - len(self.after)
        if spare < 0 or (spare and not self.has_multiple):
            return False
        beside = qualifiers[: len(self.before)] + qualifiers[len(self.before) + spare :]
        return all(map(fragments_stand_in, self.before + self.after, beside))


@lru_cache(maxsize=4096)
def parse_profile(text: str) -> Profile | None:
    """Read a profile's name; None for one that is not valid: ``**`` in part of a qualifier, or twice."""
    qualifiers = text.split(_DOT)
    if qualifiers.count(MULTIPLE) > 1 or any(MULTIPLE in each for each in qualifiers if each != MULTIPLE):
        return None
    at = qualifiers.index(MULTIPLE) if MULTIPLE in qualifiers else len(qualifiers)
    before, after = (tuple(map(_read, part)) for part in (qualifiers[:at], qualifiers[at + 1 :]))
    return Profile(before, after, at < len(qualifiers), tuple(_ranks(text)))


def is_generic_profile(text: str) -> bool:
    """Whether a profile's name holds wildcards."""
    return any(wild in text for wild in _WILD)


def _read(qualifier: str) -> _Qualifier:
    return read_fragments(_WILD.get(character, character) for character in qualifier)


def _ranks(text: str) -> Iterator[int]:
    at = 0
    while at < len(text):
        if text.startswith(MULTIPLE, at):
            yield _MULTIPLE
            at += len(MULTIPLE)
            continue
        yield _DOT_BEFORE_MULTIPLE if text.startswith(_DOT + MULTIPLE, at) else _RANKS.get(text[at], _LITERAL)
        at += 1
    yield _END
