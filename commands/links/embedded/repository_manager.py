"""Keeps what a queue manager knows of the other members of its clusters, which are in the same home.

Who is a member, and which cluster topics it defines, is in each queue manager's own database. So nothing has to be told
to a full repository: every member looks at the others, at most once a second, and only at those whose database has
changed. What it finds is recorded (``commands.network.repository``), and counts from the next command on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from commands.network.repository import RepositoryEntry
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.home import DATABASE, directory_of, queue_managers
from rfh2.errors import StoreError

_log = logging.getLogger("qpubsub.network")

EVERY_S: Final = 1.0
# Looking takes at most a fiftieth of the time in a home of many queue managers, and is done every ten seconds at least.
_SHARE: Final = 50
_AT_LEAST_EVERY_S: Final = 10.0
_AFTER_TROUBLE_S: Final = 10.0

_Seen = tuple[int, ...]


class RepositoryManager:
    """That of the queue manager that *here* is the store of. there: opens another one of the home, to read it."""

    def __init__(self, home: Path, here: QueueManagerStore, there: Callable[[str], QueueManagerStore]) -> None:
        self._home, self._here, self._open = home, here, there
        self._own: tuple[int, RepositoryEntry] = (-1, RepositoryEntry(here.name))
        self._entries: dict[str, tuple[_Seen, RepositoryEntry]] = {}
        self._due_s = 0.0
        self._troubled: dict[str, float] = {}  # those that could not be read, and until when they are left alone

    def look(self, *, only_due: bool = False) -> int:
        """Look at the others; returns of how many something else is known now. only_due: if it was not done just now.

        Raises StoreError where that cannot be recorded. Of a queue manager that cannot be read, what is known stays.
        """
        begun = time.monotonic()
        if only_due and begun < self._due_s:
            return 0
        known = {entry.qmgr: entry for entry in self._here.repository()}
        clusters = set(self._own_entry().clusters)
        found: dict[str, RepositoryEntry] = {}
        if clusters:
            # One that is known and cannot be seen now has not left.
            for name in {*self._names(known), *known} - {self._here.name}:
                entry = self._entry(name, known.get(name))
                if entry is not None and clusters.intersection(entry.clusters):
                    found[name] = entry
        changes = [
            (known.get(name), found.get(name, RepositoryEntry(name)))
            for name in sorted({*known, *found})
            if known.get(name) != found.get(name)
        ]
        count = self._record(changes) if changes else 0
        ended = time.monotonic()
        self._due_s = ended + min(max(EVERY_S, _SHARE * (ended - begun)), _AT_LEAST_EVERY_S)
        return count

    def _names(self, known: Iterable[str]) -> Iterable[str]:
        try:
            return queue_managers(self._home)
        except OSError as error:
            _log.debug("%s cannot be listed: %s", self._home, error)
            return known

    def _record(self, changes: list[tuple[RepositoryEntry | None, RepositoryEntry]]) -> int:
        count = 0
        with self._here.unit_of_work() as unit:
            now = {entry.qmgr: entry for entry in unit.neighbours.repository()}
            for before, after in changes:
                if now.get(after.qmgr) == before:
                    unit.neighbours.learn(after)
                    count += 1
                else:
                    # It has said something of itself since it was read, and may not be what it was then.
                    self._entries.pop(after.qmgr, None)
        return count

    def _own_entry(self) -> RepositoryEntry:
        version = self._here.definitions_version()
        if version != self._own[0]:
            self._own = version, self._here.repository_entry()
        return self._own[1]

    def _entry(self, name: str, known: RepositoryEntry | None) -> RepositoryEntry | None:
        """What queue manager *name* says of itself; *known* where that cannot be read, None where it is gone."""
        if self._troubled.get(name, 0.0) > time.monotonic():
            return known
        try:
            seen = _seen(directory_of(self._home, name) / DATABASE)
            before = self._entries.get(name)
            if before is not None and before[0] == seen:
                return before[1]
            with self._open(name) as there:
                self._entries[name] = seen, there.repository_entry()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (StoreError, OSError) as error:
            self._troubled[name] = time.monotonic() + _AFTER_TROUBLE_S
            _log.debug("queue manager %s cannot be looked at: %s", name, error)
            return known
        self._troubled.pop(name, None)
        return self._entries[name][1]


def _seen(path: Path) -> _Seen:
    """What changes with each commit. Raises FileNotFoundError where there is no such database."""
    files = [path.stat()]
    with suppress(FileNotFoundError):
        files.append(path.with_name(f"{path.name}-wal").stat())
    return tuple(number for file in files for number in (file.st_ino, file.st_size, file.st_mtime_ns))
