"""The directories of queue managers: one for each, under a home, with the name of the queue manager."""

from __future__ import annotations

from pathlib import Path

from commands.broker.objects import is_object_name
from rfh2.errors import StoreError

DATABASE = "qmgr.sqlite3"

# MQ's own rule for directory names; neither & nor ! can be part of a queue manager's name, so it can be undone.
_TO_DIRECTORY = str.maketrans("./", "!&")
_FROM_DIRECTORY = str.maketrans("!&", "./")


def directory_of(home: Path, name: str) -> Path:
    """The directory of queue manager *name*: its name, with ``!`` for a period and ``&`` for a slash.

    Raises StoreError for what cannot be the name of a queue manager.
    """
    if not is_object_name(name):
        raise StoreError(f"{name!r} cannot name a queue manager: 1 to 48 of A-Z a-z 0-9 . _ / %")
    return home / name.translate(_TO_DIRECTORY)


def queue_managers(home: Path) -> tuple[str, ...]:
    """The names of the queue managers in *home*, in order; none where there is no such directory.

    What cannot be looked into is passed over: it may be another user's. Raises OSError where *home* cannot be read.
    """
    if not home.is_dir():
        return ()
    found = (entry.name for entry in home.iterdir() if is_there(entry / DATABASE))
    return tuple(sorted(name.translate(_FROM_DIRECTORY) for name in found))


def is_there(path: Path) -> bool:
    """Whether there is such a file, and it can be seen."""
    try:
        return path.is_file()
    except OSError:
        return False
