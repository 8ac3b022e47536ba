"""Message groups: messages that are put and got one after the other, in their order (IBM's MQPMO and MQGMO, Options).

A group is known by its GroupId; its messages are numbered from 1, and the last one says that it is that. With
MQPMO_LOGICAL_ORDER the queue manager numbers them, with MQGMO_LOGICAL_ORDER it gives them in that order wherever they
are on the queue, and with MQGMO_ALL_MSGS_AVAILABLE it begins a group only when all of it is there. A handle has one
group that it puts, one that it gets, and one that it browses.

    no group      MSG_IN_GROUP: a new group, number 1      LAST_MSG_IN_GROUP: a group of one
    in a group    MSG_IN_GROUP: the next number            LAST_MSG_IN_GROUP: the next number, and no group then
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from commands.qmgr.mqi.refusals import MqiError
from rfh2 import mqi_constants as m
from rfh2.ccsid import order_of
from rfh2.layouts import MQMD2
from rfh2.mqmd import Mqmd

IN_GROUP: Final = m.MQMF_MSG_IN_GROUP | m.MQMF_LAST_MSG_IN_GROUP
"""MsgFlags of a message of a group."""
_NO_GROUP: Final = bytes(24)
_NUMBERS: Final = range(1, 1_000_000_000)
_SPANS: Final = {name: at for name, at, _ in MQMD2.spans()}
_GROUP_ID: Final = slice(_SPANS["GroupId"], _SPANS["GroupId"] + 24)
_NUMBER, _FLAGS = _SPANS["MsgSeqNumber"], _SPANS["MsgFlags"]
Place = tuple[int, int]
"""Where a message is on its queue: rank and seq."""


class Member(NamedTuple):
    """What a message says of its group. group_id: empty for one that is in no group."""

    group_id: bytes
    number: int
    is_last: bool

    @classmethod
    def of(cls, md: bytes) -> Member:
        """What the descriptor *md* says."""
        if len(md) < MQMD2.size:
            return cls(b"", 1, False)
        number, flags = (int.from_bytes(md[at : at + 4], order_of(md)) for at in (_NUMBER, _FLAGS))
        if not flags & IN_GROUP:
            return cls(b"", 1, False)
        return cls(md[_GROUP_ID], number, bool(flags & m.MQMF_LAST_MSG_IN_GROUP))


@dataclass(slots=True)
class Current:
    """The group that a handle is in. group_id: empty for none. number: of its last message. begun: where it began."""

    group_id: bytes = b""
    number: int = 0
    in_syncpoint: bool = False
    persistence: int = 0
    begun: Place | None = None
    available: bytes = b""  # the group all of which was there

    def require_syncpoint(self, in_syncpoint: bool) -> None:
        """Raises MqiError 2245 where a group is not put or got in one way."""
        if self.group_id and in_syncpoint != self.in_syncpoint:
            raise MqiError(m.MQRC_INCONSISTENT_UOW, "some messages of the group are in syncpoint, and others are not")

    def put(self, mqmd: Mqmd, in_syncpoint: bool, new_id: bytes) -> Mqmd:
        """MQPUT with MQPMO_LOGICAL_ORDER: the descriptor with its group. Raises MqiError 2241, 2245, 2185."""
        if not mqmd.msg_flags & IN_GROUP:
            if self.group_id:
                raise MqiError(m.MQRC_INCOMPLETE_GROUP, "the group has no last message yet")
            return mqmd
        self.require_syncpoint(in_syncpoint)
        if self.group_id and self.persistence != mqmd.persistence:
            raise MqiError(m.MQRC_INCONSISTENT_PERSISTENCE, "the messages of a group are persistent, or none is")
        group_id, number = (self.group_id, self.number + 1) if self.group_id else (new_id, 1)
        self.persistence = mqmd.persistence
        self.moved(Member(group_id, number, bool(mqmd.msg_flags & m.MQMF_LAST_MSG_IN_GROUP)), in_syncpoint, None)
        return replace(mqmd, version=2, group_id=group_id, msg_seq_number=number, offset=0)

    def moved(self, member: Member, in_syncpoint: bool, place: Place | None) -> None:
        """The next message was put, got or browsed."""
        if not self.group_id:
            self.begun = place
        self.group_id = b"" if member.is_last else member.group_id
        self.number, self.in_syncpoint = member.number, in_syncpoint

    def is_next(self, member: Member) -> bool:
        """Whether it is this message's turn."""
        if self.group_id:
            return (member.group_id, member.number) == (self.group_id, self.number + 1)
        return not member.group_id or member.number == 1

    def require_next(self, member: Member) -> None:
        """Raises MqiError 2246 where the message under the cursor is not the next one."""
        if not self.is_next(member):
            raise MqiError(m.MQRC_INVALID_MSG_UNDER_CURSOR, "the message under the cursor is not the next of its group")


@dataclass(slots=True)
class Groups:
    """Those of one handle, and as they were when its unit of work began."""

    putting: Current = field(default_factory=Current)
    getting: Current = field(default_factory=Current)
    browsing: Current = field(default_factory=Current)
    _before: tuple[Current, Current] | None = None

    def changing(self, in_syncpoint: bool) -> None:
        """A message is about to be put or got."""
        if in_syncpoint and self._before is None:
            self._before = replace(self.putting), replace(self.getting)

    def ended(self, commit: bool) -> None:
        """The unit of work has ended."""
        if self._before is not None and not commit:
            self.putting, self.getting = self._before
        self._before = None


def numbered(mqmd: Mqmd, new_id: bytes) -> Mqmd:
    """The descriptor of a message whose program numbers it; a group without GroupId gets one. Raises MqiError 2250."""
    if not mqmd.msg_flags & IN_GROUP:
        return mqmd
    if mqmd.msg_seq_number not in _NUMBERS:
        raise MqiError(m.MQRC_MSG_SEQ_NUMBER_ERROR, f"MsgSeqNumber is {mqmd.msg_seq_number}")
    return replace(mqmd, group_id=new_id) if mqmd.group_id == _NO_GROUP else mqmd


def is_complete(descriptors: Iterable[bytes]) -> bool:
    """Whether these are all messages of a group."""
    members = [Member.of(md) for md in descriptors]
    last = max((member.number for member in members if member.is_last), default=0)
    return last > 0 and {member.number for member in members} >= set(range(1, last + 1))
