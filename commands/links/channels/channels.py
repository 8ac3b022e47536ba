"""The thread that carries messages from the transmission queues of one queue manager to others of the same home.

It serves every transmission queue with the name of a queue manager of that home, except those that ``run`` made because
a message named a queue manager nobody had defined a way to. It also looks who is in the clusters.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from commands.broker.authority import GroupsOf, no_groups
from commands.config.home import Home, PostgresqlHome
from commands.disk.errors import SupersededError
from commands.links.channels.channel import PATIENCE_S, Channel
from commands.links.engine.threads import Backoff, Threads
from commands.network.cluster_topics import RepositoryEntry
from commands.qmgr.delivery import is_stranding
from commands.qmgr.store import Durability, QueueManagerStore
from commands.qmgr.store.opening import DATABASE, directory_of, is_there, queue_managers
from rfh2.errors import StoreError

# Keeps what a queue manager knows of the other members of its clusters, which are in the same home.
#
# Who is a member, and which cluster topics it defines, is in each queue manager's own database. So nothing has to be
# told to a full repository: every member looks at the others, at most once a second, and only at those whose database
# has changed. What it finds is recorded (``commands.network.cluster_topics``), and counts from the next command on.


EVERY_S: Final = 1.0
# Looking takes at most a fiftieth of the time in a home of many queue managers, and is done every ten seconds at least.
_SHARE: Final = 50
_AT_LEAST_EVERY_S: Final = 10.0
_AFTER_TROUBLE_S: Final = 10.0

_Seen = tuple[int, ...]


class RepositoryManager:
    """That of the queue manager that *here* is the store of. there: opens another one of the home, to read it."""

    def __init__(self, home: Home, here: QueueManagerStore, there: Callable[[str], QueueManagerStore]) -> None:
        self._home, self._here, self._open = home, here, there
        self._own: tuple[int, RepositoryEntry] = (-1, RepositoryEntry(here.name))
        self._entries: dict[str, tuple[_Seen | None, RepositoryEntry]] = {}
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
            seen = _seen(self._home, name)
            before = self._entries.get(name)
            if before is not None and seen is not None and before[0] == seen:
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


def _seen(home: Home, name: str) -> _Seen | None:
    """What changes with each commit; None where only the database can say. Raises FileNotFoundError for none."""
    if isinstance(home, PostgresqlHome):
        if not is_there(home, name):
            raise FileNotFoundError(name)
        return None
    path = directory_of(home, name) / DATABASE
    files = [path.stat()]
    with suppress(FileNotFoundError):
        files.append(path.with_name(f"{path.name}-wal").stat())
    return tuple(number for file in files for number in (file.st_ino, file.st_size, file.st_mtime_ns))


_log = logging.getLogger("qpubsub.network")

IDLE_S: Final = 0.5
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 10.0
_PATIENCE_IN_TROUBLE_S: Final = 0.2
_JOIN_S: Final = 10.0
_LOOK_S: Final = 0.1


class _ChannelState:
    """One transmission queue: its channel, what is in the way, and when to try again (monotonic seconds)."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.trouble = ""
        self.due_s = 0.0
        self._backoff = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)

    def is_free(self) -> None:
        """Nothing is in the way."""
        self.trouble, self.due_s = "", 0.0
        self.channel.patience_s = PATIENCE_S
        self._backoff.reset()

    def is_blocked(self, error: StoreError) -> bool:
        """Note what is in the way; whether that is news. While it is, other ways do not wait long for this one."""
        is_news, self.trouble = self.trouble != str(error), str(error)
        self.due_s = time.monotonic() + self._backoff.next()
        self.channel.patience_s = _PATIENCE_IN_TROUBLE_S
        return is_news


class Channels:
    """Those of one queue manager. home: where it and the others are. here: opens it, as its command processor.

    groups_of: the groups of a user.
    """

    def __init__(
        self,
        home: Home,
        here: Callable[[], QueueManagerStore],
        durability: Durability,
        groups_of: GroupsOf = no_groups,
    ) -> None:
        self._home, self._open, self._durability, self._groups_of = home, here, durability, groups_of
        self._stop = threading.Event()
        self._threads = Threads(_log, "the way to other queue managers")
        self._store: QueueManagerStore | None = None
        self._repository: RepositoryManager | None = None
        self._states: dict[str, _ChannelState] = {}
        self._queues: tuple[int, tuple[str, ...]] = (-1, ())

    def start(self, ended: Callable[[], None]) -> None:
        """Begin to carry. ended: called if the thread ends by a fault."""
        self._threads.start(ended, carriers=self._run)

    def stop(self) -> None:
        """Finish the work in progress, and end."""
        self._stop.set()
        self._threads.join(_JOIN_S)

    @property
    def fault(self) -> str:
        """Why the thread has ended by itself; "" where it has not."""
        return self._threads.fault

    def carry(self, *, only_due: bool = False) -> int:
        """Carry what waits now, from every transmission queue; returns how many messages left.

        What has become known of the members of clusters is counted too.

        For the thread that calls it alone: with ``start``, that is this object's own. only_due: pass over other queue
        managers that did not take messages, or were looked at, a moment ago. Raises SupersededError once another
        command processor works for the queue manager. What another queue manager does not take stays, and does not keep
        others from getting theirs.
        """
        if self._store is None or self._repository is None:
            self._store = self._open()
            self._repository = RepositoryManager(self._home, self._store, lambda name: self._there(name, _LOOK_S))
        carried = self._repository.look(only_due=only_due)
        for queue in self._transmission_queues(self._store):
            state = self._state(self._store, queue)
            if only_due and state.due_s > time.monotonic():
                continue
            try:
                while count := state.channel.carry():
                    carried += count
                state.is_free()
            except SupersededError:
                raise
            except StoreError as error:
                if state.is_blocked(error):
                    _log.error("messages for queue manager %s wait: %s", queue, error)
        return carried

    def close(self) -> None:
        """Close all queue managers."""
        for state in self._states.values():
            state.channel.close()
        self._states.clear()
        if self._store is not None:
            self._store.close()
        self._store = self._repository = None

    def _run(self) -> None:
        backoff = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        try:
            while not self._stop.is_set():
                try:
                    carried = self.carry(only_due=True)
                    backoff.reset()
                    if not carried and self._store is not None:
                        self._store.wait_for_change(self._idle_s())
                except SupersededError:
                    return  # the command processor ends for the same reason, and says so
                except StoreError as error:
                    _log.error("messages for other queue managers wait: %s", error)
                    self.close()
                    self._stop.wait(backoff.next())
        finally:
            self.close()

    def _idle_s(self) -> float:
        """How long there is nothing to do, unless something changes here."""
        due = [state.due_s for state in self._states.values() if state.trouble]
        return max(0.0, min([IDLE_S, *(each - time.monotonic() for each in due)]))

    def _transmission_queues(self, store: QueueManagerStore) -> tuple[str, ...]:
        version = store.definitions_version()
        if version != self._queues[0]:
            found = (each for each in store.local_queues() if each.transmission and not is_stranding(each))
            self._queues = version, tuple(each.name for each in found if each.name != store.name)
        return tuple(name for name in self._queues[1] if name in self._states or self._is_here(name))

    def _is_here(self, name: str) -> bool:
        return is_there(self._home, name)

    def _state(self, store: QueueManagerStore, queue: str) -> _ChannelState:
        if queue not in self._states:
            self._states[queue] = _ChannelState(Channel(store, queue, lambda: self._there(queue), self._groups_of))
        return self._states[queue]

    def _there(self, name: str, patience_s: float = PATIENCE_S) -> QueueManagerStore:
        assert self._store is not None
        clock = self._store.clock
        return QueueManagerStore.open(self._home, name, durability=self._durability, patience_s=patience_s, clock=clock)
