"""The thread that carries messages from the transmission queues of one queue manager to others of the same home.

It serves every transmission queue with the name of a queue manager of that home, except those that ``run`` made because
a message named a queue manager nobody had defined a way to. It also looks who is in the clusters.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from commands.broker.authority import GroupsOf, no_groups
from commands.disk.errors import SupersededError
from commands.links.embedded.carrier import PATIENCE_S, Carrier
from commands.links.embedded.repository_manager import RepositoryManager
from commands.links.engine.backoff import Backoff
from commands.links.engine.threads import Threads
from commands.qmgr.delivery import is_stranding
from commands.qmgr.store import Durability, QueueManagerStore
from commands.qmgr.store.home import DATABASE, directory_of, is_there
from rfh2.errors import StoreError

_log = logging.getLogger("qpubsub.network")

IDLE_S: Final = 0.5
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 10.0
_PATIENCE_IN_TROUBLE_S: Final = 0.2
_JOIN_S: Final = 10.0
_LOOK_S: Final = 0.1


class _Way:
    """From one transmission queue: its carrier, what is in the way, and when to try again (monotonic seconds)."""

    def __init__(self, carrier: Carrier) -> None:
        self.carrier = carrier
        self.trouble = ""
        self.due_s = 0.0
        self._backoff = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)

    def is_free(self) -> None:
        """Nothing is in the way."""
        self.trouble, self.due_s = "", 0.0
        self.carrier.patience_s = PATIENCE_S
        self._backoff.reset()

    def is_blocked(self, error: StoreError) -> bool:
        """Note what is in the way; whether that is news. While it is, other ways do not wait long for this one."""
        is_news, self.trouble = self.trouble != str(error), str(error)
        self.due_s = time.monotonic() + self._backoff.next()
        self.carrier.patience_s = _PATIENCE_IN_TROUBLE_S
        return is_news


class Carriers:
    """Those of one queue manager. home: where it and the others are. here: opens it, as its command processor.

    groups_of: the groups of a user.
    """

    def __init__(
        self,
        home: Path,
        here: Callable[[], QueueManagerStore],
        durability: Durability,
        groups_of: GroupsOf = no_groups,
    ) -> None:
        self._home, self._open, self._durability, self._groups_of = home, here, durability, groups_of
        self._stop = threading.Event()
        self._threads = Threads(_log, "the way to other queue managers")
        self._store: QueueManagerStore | None = None
        self._repository: RepositoryManager | None = None
        self._ways: dict[str, _Way] = {}
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
            way = self._way(self._store, queue)
            if only_due and way.due_s > time.monotonic():
                continue
            try:
                while count := way.carrier.carry():
                    carried += count
                way.is_free()
            except SupersededError:
                raise
            except StoreError as error:
                if way.is_blocked(error):
                    _log.error("messages for queue manager %s wait: %s", queue, error)
        return carried

    def close(self) -> None:
        """Close all queue managers."""
        for way in self._ways.values():
            way.carrier.close()
        self._ways.clear()
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
        due = [way.due_s for way in self._ways.values() if way.trouble]
        return max(0.0, min([IDLE_S, *(each - time.monotonic() for each in due)]))

    def _transmission_queues(self, store: QueueManagerStore) -> tuple[str, ...]:
        version = store.definitions_version()
        if version != self._queues[0]:
            found = (each for each in store.local_queues() if each.transmission and not is_stranding(each))
            self._queues = version, tuple(each.name for each in found if each.name != store.name)
        return tuple(name for name in self._queues[1] if name in self._ways or self._is_here(name))

    def _is_here(self, name: str) -> bool:
        return is_there(directory_of(self._home, name) / DATABASE)

    def _way(self, store: QueueManagerStore, queue: str) -> _Way:
        if queue not in self._ways:
            self._ways[queue] = _Way(Carrier(store, queue, lambda: self._there(queue), self._groups_of))
        return self._ways[queue]

    def _there(self, name: str, patience_s: float = PATIENCE_S) -> QueueManagerStore:
        assert self._store is not None
        clock = self._store.clock
        return QueueManagerStore.open(self._home, name, durability=self._durability, patience_s=patience_s, clock=clock)
