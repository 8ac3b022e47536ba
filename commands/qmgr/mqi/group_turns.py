"""Whose turn it is: which message MQGET gives to a program that gets messages by their groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from commands.qmgr.mqi.groups import Member, Place, is_complete
from commands.qmgr.mqi.handles import Handle
from commands.qmgr.store.database import Database
from commands.qmgr.store.messages import BEFORE_ALL, MD, MessageRow
from commands.qmgr.store.uncommitted import Match, descriptors_of_group
from rfh2.mqi_constants import (
    MQGMO_ALL_MSGS_AVAILABLE,
    MQGMO_ANY_BROWSE,
    MQGMO_BROWSE_FIRST,
    MQGMO_BROWSE_MSG_UNDER_CURSOR,
    MQGMO_LOGICAL_ORDER,
    MQGMO_MSG_UNDER_CURSOR,
)

BY_GROUPS: Final = MQGMO_LOGICAL_ORDER | MQGMO_ALL_MSGS_AVAILABLE


class Turn:
    """One MQGET with *options* of *handle*. number: the MsgSeqNumber that it asks for, if it does."""

    def __init__(self, handle: Handle, options: int, number: int | None = None) -> None:
        self._handle, self._options, self._number = handle, options, number
        browses = bool(options & MQGMO_ANY_BROWSE)
        if options & MQGMO_BROWSE_FIRST:
            handle.groups.browsing = replace(handle.groups.browsing, group_id=b"", begun=None)
        self._current = handle.groups.browsing if browses else handle.groups.getting
        self._in_order = bool(options & MQGMO_LOGICAL_ORDER)
        self._complete: dict[bytes, bool] = {}

    def narrowed(self, match: Match, after: Place) -> tuple[Match, Place]:
        """What to look for, and behind which place: the rest of a group is wherever it is."""
        if self._in_order and self._current.group_id:
            return match._replace(group_id=self._current.group_id), BEFORE_ALL
        if self._in_order and after != BEFORE_ALL and self._current.begun is not None:
            return match, self._current.begun
        return match, after

    def is_of(self, database: Database, row: MessageRow, now_us: int) -> bool:
        """Whether it is the turn of the message in *row*. Raises StoreError."""
        member, current = Member.of(row[MD]), self._current
        if self._number is not None and member.number != self._number:
            return False
        if self._in_order and not current.is_next(member):
            return False
        if not self._options & MQGMO_ALL_MSGS_AVAILABLE:
            return True
        if member.group_id in (b"", current.group_id, current.available):
            return True
        if member.group_id not in self._complete:
            of_group = descriptors_of_group(database, self._handle.queue, member.group_id, now_us)
            self._complete[member.group_id] = is_complete(of_group)
        return self._complete[member.group_id]

    def taken(self, member: Member, in_syncpoint: bool, place: Place) -> None:
        """The message is got or browsed. Raises MqiError 2245, 2246."""
        current = self._current
        if self._in_order:
            if self._options & (MQGMO_MSG_UNDER_CURSOR | MQGMO_BROWSE_MSG_UNDER_CURSOR):
                current.require_next(member)
            if not self._options & MQGMO_ANY_BROWSE:
                current.require_syncpoint(in_syncpoint)
                self._handle.groups.changing(in_syncpoint)
            current.moved(member, in_syncpoint, place)
        if self._options & MQGMO_ALL_MSGS_AVAILABLE:
            current.available = member.group_id
