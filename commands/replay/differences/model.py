"""One difference between what version 6 and version 7 put, and its columns in a file."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Final

from pydantic import BaseModel, ConfigDict

FINDING: Final = "finding"
"""The name in place of a rule for a difference that no rule explains."""


class Change(StrEnum):
    """What is different, seen from version 6.

    GAINED, LOST: a publication that version 7 alone, or version 6 alone, puts. SPLIT: publications that are one message
    in version 6 and several in version 7. CONTENT: the same publication, put with different content. ANSWER: another
    response, or dead letter, or none.
    """

    GAINED = "gained"
    LOST = "lost"
    SPLIT = "split"
    CONTENT = "content"
    ANSWER = "answer"


class PutDifference(BaseModel):
    """One difference, in what one command leads to, for one subscriber or for the command's sender.

    seq, time, qmgr, user, program, command: of the command; program is PutApplName. rule: D01 to D34, or ``finding``.
    since: the earlier command that made the two differ, where it was one. queue, sub_name, sub_user: the subscriber's;
    for an answer, where it goes, without sub_user. topic: as the subscriber sees. old, new: how many messages each
    version puts or, of an answer, what it says. why: for people.
    """

    model_config = ConfigDict(frozen=True)

    seq: int
    time: datetime | None
    qmgr: str
    user: str
    program: str
    command: str | None
    rule: str
    since: int | None
    change: Change
    queue: str
    sub_name: str | None
    sub_user: str | None
    topic: str | None
    old: str
    new: str
    why: str
