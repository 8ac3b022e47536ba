"""A queue manager with IBM's developer defaults, for tests and laptops: ``qpubsub dev``.

Queues DEV.QUEUE.1 to 3 and DEV.DEAD.LETTER.QUEUE, topic DEV.BASE.TOPIC, channel DEV.APP.SVRCONN for user app, channel
DEV.ADMIN.SVRCONN for user admin, as IBM's container image icr.io/ibm-messaging/mq has them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from commands.broker.objects import QueueManager
from commands.config.access import password_hash
from commands.config.home import Home, PostgresqlHome
from commands.config.settings import Config, ConfigError
from commands.disk.errors import QueueManagerNotFoundError
from commands.disk.files import private
from commands.disk.lock import HolderLock, require_locks
from commands.qmgr.store import Durability, QueueManagerStore
from commands.running.mqsc_scripts import ScriptDirectory, apply_script
from commands.running.run_settings import RunSettings
from commands.terminal.users import groups_of

APP, ADMIN = "app", "admin"
APP_CHANNEL, ADMIN_CHANNEL = "DEV.APP.SVRCONN", "DEV.ADMIN.SVRCONN"
_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {APP: ("mqclient",), ADMIN: ("mqm",)}
_MEMORY: Final = Path("/dev/shm")
_ROOM_BYTES: Final = 512 << 20
_PREFIX, _LOCK, _USERS = "qpubsub-dev-", "dev.lock", "dev.users"
_STARTING_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Developer:
    """What ``qpubsub dev`` is asked for. listen: [HOST:]PORT; port 0 for any that is free.

    passwords: of the users app and admin; a channel whose user has one demands it, and none demands one if neither
    has. defaults: whether there are the developer defaults. mqsc: a directory of scripts.
    """

    qmgr: str = "QM1"
    listen: str = "1414"
    passwords: Mapping[str, str]
    defaults: bool = True
    mqsc: Path | None = None
    metrics: str | None = None
    log: Path | None = None

    def settings(self, home: Home, config: Config) -> RunSettings:
        """Make the queue manager in *home*, if it is not there, and its objects; how to run it.

        Raises ConfigError, StoreError, OSError.
        """
        with _made(home, self.qmgr) as store:
            if self.defaults:
                _, refused = apply_script(store, self._script(), groups_of_developer)
                if refused:
                    raise ConfigError("the developer defaults", refused[0][1])
        if self.mqsc is not None and not self.defaults:
            # They may have the channels without which nothing listens on addresses of other machines.
            ScriptDirectory(self.mqsc, lambda: _made(home, self.qmgr), groups_of_developer).look()
        listener: dict[str, Any] = {"listen": self.listen, "plain_passwords": True}
        if self.passwords:
            listener["users_file"] = _users_file(_place_of(home) / _USERS, self.passwords)
        tables: dict[str, Any] = {"listener": config.listener.model_copy(update=listener)}
        if self.mqsc is not None:
            tables["mqsc"] = config.mqsc.model_copy(update={"directory": self.mqsc})
        return RunSettings(
            qmgr=self.qmgr,
            home=home,
            config=config.model_copy(update=tables),
            durability=Durability.NORMAL,
            metrics=self.metrics,
            log=self.log,
            groups_of=groups_of_developer,
        )

    def _script(self) -> str:
        text = (files(__package__) / "developer.mqsc").read_text(encoding="utf-8")
        return text.replace("CHCKCLNT(ASQMGR)", "CHCKCLNT(REQUIRED)") if APP in self.passwords else text


def _place_of(home: Home) -> Path:
    return home.directory if isinstance(home, PostgresqlHome) else home


def groups_of_developer(user: str) -> tuple[str, ...]:
    """The groups of a user: those of IBM's image for its two users, else those of this machine."""
    return _GROUPS.get(user) or groups_of(user)


@contextmanager
def passing_home() -> Iterator[Path]:
    """A home for as long as this process is inside: in memory where there is room, else a temporary directory.

    In memory, a process that ended by force left its own behind; the next one removes it. Raises
    SystemUnsuitableError on Windows.
    """
    require_locks("a queue manager in memory")
    in_memory = _has_room(_MEMORY)
    if in_memory:
        _sweep(_MEMORY)
    home, owner = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_MEMORY if in_memory else None)), os.getpid()
    lock = HolderLock(home / _LOCK)
    lock.take()
    try:
        yield home
    finally:
        if os.getpid() == owner:  # a forked child ends before
            shutil.rmtree(home, ignore_errors=True)


def _has_room(directory: Path) -> bool:
    with suppress(OSError):
        about = os.statvfs(directory)
        return os.access(directory, os.W_OK) and about.f_bavail * about.f_frsize >= _ROOM_BYTES
    return False


def _sweep(directory: Path) -> None:
    for left in directory.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            lock = HolderLock(left / _LOCK)
            if time.time() - left.stat().st_mtime > _STARTING_S and lock.take():
                shutil.rmtree(left, ignore_errors=True)
                lock.release()


def _made(home: Home, qmgr: str) -> QueueManagerStore:
    try:
        return QueueManagerStore.open(home, qmgr, durability=Durability.NORMAL)
    except QueueManagerNotFoundError:
        return QueueManagerStore.create(home, QueueManager(qmgr), durability=Durability.NORMAL)


def _users_file(path: Path, passwords: Mapping[str, str]) -> Path:
    with open(path, "w", opener=private, encoding="utf-8") as file:
        file.writelines(f"{user}:{password_hash(password)}\n" for user, password in passwords.items())
    return path
