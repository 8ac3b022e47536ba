"""The listeners of a queue manager, asked from any process who is connected to them.

Each listener answers on a socket in the queue manager's directory, out of its memory. So nothing is written while
programs work, and nothing is left that says something false: where the socket's listener has died, nobody answers.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from pydantic import ValidationError

from commands.broker.connections import ListenerReport, Obeyed, Order

SOCKETS: Final = "listener-{}.sock"
# Whoever asks may hold a unit of work open.
_ANSWERED_S: Final = 1.0

_Told = TypeVar("_Told", ListenerReport, Obeyed)


class AskedListeners:
    """``Listeners`` of the queue manager in *directory*."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def reports(self) -> Sequence[ListenerReport]:
        return self._asked(b"", ListenerReport)

    def obey(self, order: Order) -> Sequence[Obeyed]:
        return self._asked(order.model_dump_json().encode(), Obeyed)

    def _asked(self, question: bytes, kind: type[_Told]) -> list[_Told]:
        answers = []
        for path in sorted(self._directory.glob(SOCKETS.format("*"))):
            with suppress(OSError, ValidationError):  # of a listener that has died, or dies
                answers.append(kind.model_validate_json(answer(path, question)))
        return answers


def answer(path: Path, question: bytes) -> bytes:
    """What the listener behind a socket answers. Raises OSError where none is there, or it takes too long."""
    with reached(path) as where, socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(_ANSWERED_S)
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
