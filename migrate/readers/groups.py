"""Who is a group and who is in it: ``/etc/group``, or what ``getent group`` and ``getent passwd`` print.

    traders:x:2001:anne,fred
    staff:x:100:
    anne:x:1001:100:Anne:/home/anne:/bin/sh

A line of four fields is a group with its members, a line of seven fields a user with the number of the primary group. A
file may hold both. The listing distinguishes users from groups in access control lists and says whose authority a user
has; it is no state of the broker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from migrate.legacy_state import Item, Principal, Source, Unread
from migrate.readers.text import SourceLine, lines_of

_GROUP: Final = re.compile(r"([^:\s#+-][^:\s]*):[^:]*:(\d+):([^:]*)")
_USER: Final = re.compile(r"([^:\s#+-][^:\s]*):[^:]*:\d+:(\d+):[^:]*:[^:]*:[^:]*")
# Lines of NIS, which stand for entries elsewhere.
_ELSEWHERE: Final = ("+", "-")


def looks_like(text: str) -> bool:
    """Whether every line of *text* is one of a group or of a user, at least one of a group."""
    lines = _lines(text)
    return any(_GROUP.fullmatch(line.text) for line in lines) and all(
        _GROUP.fullmatch(line.text) or _USER.fullmatch(line.text) or line.text.startswith(_ELSEWHERE) for line in lines
    )


def read(text: str, file: str) -> Iterator[Item]:
    """A Principal for each group, then for each user with the groups that the listing names."""
    groups: dict[str, int] = {}
    numbers: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    primary: dict[str, str] = {}
    first: dict[str, int] = {}
    for line in _lines(text):
        group, user = _GROUP.fullmatch(line.text), _USER.fullmatch(line.text)
        if group is not None:
            groups.setdefault(group[1], line.number)
            numbers.setdefault(group[2], group[1])
            for name in filter(None, (each.strip() for each in group[3].split(","))):
                first.setdefault(name, line.number)
                members.setdefault(name, []).append(group[1])
        elif user is not None:
            first.setdefault(user[1], line.number)
            primary[user[1]] = user[2]
        else:
            is_elsewhere = line.text.startswith(_ELSEWHERE)
            why = "it stands for entries of a directory service" if is_elsewhere else "it is neither a group nor a user"
            source = Source(file=file, position=line.number)
            yield Unread(source=source, text=line.text, why=why, is_state=False, warns=True)
    for name, number in groups.items():
        yield Principal(source=Source(file=file, position=number), name=name, type="group")
    for name, number in first.items():
        own = [numbers[primary[name]]] if primary.get(name) in numbers else []
        theirs = tuple(dict.fromkeys([*own, *members.get(name, [])]))
        yield Principal(source=Source(file=file, position=number), name=name, type="user", groups=theirs)


def _lines(text: str) -> list[SourceLine]:
    return [line for line in lines_of(text) if not line.text.startswith("#")]
