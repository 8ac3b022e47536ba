"""The listeners of a queue manager, asked from any process who is connected to them.

Each listener answers on a socket in the queue manager's directory, out of its memory. So nothing is written while
programs work, and nothing is left that says something false: where the socket's listener has died, nobody answers.
Those of another machine are asked through the database (``Database.ask``).
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from pydantic import ValidationError

from commands.broker.connections import ListenerReport, NotAnsweredError, Obeyed, Order
from commands.qmgr.store.database import Database

LISTENERS: Final = "listeners "
"""How a question to listeners of another machine begins."""
SOCKETS: Final = "listener-{}.sock"
# Whoever asks may hold a unit of work open.
ANSWERED_S: Final = 5.0

_Told = TypeVar("_Told", ListenerReport, Obeyed)


class AskedListeners:
    """``Listeners`` of the queue manager in *database*."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def reports(self) -> Sequence[ListenerReport]:
        return self._asked("", ListenerReport)

    def obey(self, order: Order) -> Sequence[Obeyed]:
        return self._asked(order.model_dump_json(), Obeyed)

    def _asked(self, question: str, kind: type[_Told]) -> list[_Told]:
        elsewhere = self._database.ask(LISTENERS + question)
        told = answers(self._database.directory, question) if elsewhere is None else json.loads(elsewhere)
        found = []
        for each in told:
            with suppress(ValidationError):  # of a listener that dies
                found.append(kind.model_validate_json(each))
        return found


def answers(directory: Path, question: str, within_s: float = ANSWERED_S) -> list[str]:
    """What the listeners of this machine answer. Raises NotAnsweredError."""
    found = []
    for path in sorted(directory.glob(SOCKETS.format("*"))):
        try:
            found.append(answer(path, question.encode(), within_s).decode())
        except TimeoutError as error:
            raise NotAnsweredError(f"the listener at {path}", within_s) from error
        except OSError:  # of a listener that has died, or dies
            continue
    return found


def answer(path: Path, question: bytes, within_s: float) -> bytes:
    """What the listener behind a socket answers. Raises OSError where none is there, or it takes too long."""
    with reached(path) as where, socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(within_s)
        asking.connect(where)
        asking.sendall(question + b"\n")
        return b"".join(iter(lambda: asking.recv(1 << 16), b""))


@contextmanager
def reached(path: Path) -> Iterator[str]:
    """A name of *path* that is short enough for a socket (107 bytes), while inside. Raises OSError."""
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        short = f"/proc/self/fd/{directory}/{path.name}"
        yield short if Path("/proc/self/fd").is_dir() else str(path)
    finally:
        os.close(directory)
