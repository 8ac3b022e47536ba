"""Which application an item belongs to: by its queue, its user or its program, as a file says, or as they are found.

    [[application]]
    name = "Trading desk"
    queues = ["DESK.", "QUOTES.IN"]
    users = ["desk*"]
    programs = ["quotefeed"]

A queue belongs to the application with the longest prefix of its name. What the file does not know is grouped by what
it says itself: by the first part of the queue's name, up to a period; else by the application that all other items of
the same user belong to; else by the program or the user. The rest are items of the queue managers themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from commands.network.toml_tables import Table, TableFileError, TomlLines, hint, made, parsed, read_text
from migrate.estate.item_rows import Owner

THE_REST: Final = "queue managers themselves"
_TABLE: Final = "application"


class Application(Table):
    """One ``[[application]]``. queues: beginnings of names. users, programs: names, or beginnings with ``*`` behind."""

    name: str
    queues: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


@dataclass(slots=True)
class Applications:
    """The applications of a file, and those that were found. mapped: of the file."""

    mapped: tuple[Application, ...] = ()
    _users: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def learn(self, owners: Iterable[Owner], streams: Collection[str]) -> None:
        """Look at items before their applications are asked for: which users have queues of which application."""
        for owner in owners:
            if owner.user and (name := self._by_queue(owner.queue, streams)):
                self._users[owner.user].add(name)

    def name_of(self, owner: Owner, streams: Collection[str]) -> str:
        """The application of an item. streams: of its broker, whose queues belong to no application."""
        found = self._by_queue(owner.queue, streams) or self._mapped("users", owner.user)
        if found:
            return found
        named = self._users.get(owner.user, set())
        if owner.user and len(named) == 1:
            return next(iter(named))
        found = self._mapped("programs", owner.program)
        if found:
            return found
        if owner.program:
            return f"program {owner.program}"
        return f"user {owner.user}" if owner.user else THE_REST

    def _by_queue(self, queue: str, streams: Collection[str]) -> str:
        if not queue or queue in streams or queue.startswith("SYSTEM."):
            return ""
        longest, found = 0, ""
        for application in self.mapped:
            for prefix in application.queues:
                if queue.startswith(prefix) and len(prefix) > longest:
                    longest, found = len(prefix), application.name
        return found or queue.split(".", 1)[0]

    def _mapped(self, word: str, value: str) -> str:
        if not value:
            return ""
        for application in self.mapped:
            for given in getattr(application, word):
                if value == given or (given.endswith("*") and value.startswith(given[:-1])):
                    return application.name
        return ""


def read_applications(path: Path) -> Applications:
    """The applications of the file at *path*. Raises TableFileError."""
    text = read_text(path, "docs/estate.md shows one")
    return Applications(parse_applications(parsed(text, str(path)), TomlLines(text, str(path)), str(path)))


def parse_applications(values: Mapping[str, object], lines: TomlLines, file: str) -> tuple[Application, ...]:
    """The applications that *values* describe. Raises TableFileError with the line."""
    for key in values:
        if key != _TABLE:
            raise TableFileError(lines.of_key(key), f"there is no key {key}{hint(key, (_TABLE,))}")
    tables = values.get(_TABLE)
    if not isinstance(tables, list) or not tables:
        raise TableFileError(file, "it has no [[application]]: one for each application, with its name")
    found = [
        made(Application, table, partial(lines.of_key, table=_TABLE, number=number))
        for number, table in enumerate(tables)
    ]
    names = [application.name for application in found]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise TableFileError(lines.of_key("name", _TABLE, number), f"{name} is there already")
    return tuple(found)
