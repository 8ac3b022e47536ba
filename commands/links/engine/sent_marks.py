"""What a tree with transactions has of the outgoing queue, in a record that is kept in the tree.

The record is written in the transaction that sends. So a bridge that begins, or does not know how a transaction ended,
reads there which messages the tree has though they are on the outgoing queue still, and sends each once. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Final

_MARK_BYTES: Final = 8


class SentMarks:
    """A mark for each message that was sent and may be on the outgoing queue. epoch: of the command processor."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._marks: set[str] = set()
        self._is_fresh = False

    def read(self, record: bytes | None) -> int:
        """Have the marks of *record*, None for none yet; returns the epoch of the processor that wrote it, or -1."""
        state: dict[str, Any] = {"epoch": -1, "sent": ""} if record is None else json.loads(record)
        marks, length = state["sent"], 2 * _MARK_BYTES
        self._marks = {marks[at : at + length] for at in range(0, len(marks), length)}
        return int(state["epoch"])

    def record(self, keys: Iterable[bytes]) -> str:
        """The record once the messages with *keys* are sent too."""
        marks = self._marks.union(map(_mark, keys))
        return json.dumps({"epoch": self._epoch, "sent": "".join(sorted(marks))})

    def sent(self, keys: Iterable[bytes]) -> None:
        """The messages with *keys*, and the record, are committed in the tree."""
        before = len(self._marks)
        self._marks.update(map(_mark, keys))
        self._is_fresh = len(self._marks) > before

    def has(self, key: bytes) -> bool:
        """Whether the tree has the message with *key*."""
        return _mark(key) in self._marks

    def left(self) -> None:
        """A batch has left the outgoing queue. If some of it was sent just now, all that was sent before has left."""
        if self._is_fresh:
            self._marks.clear()
            self._is_fresh = False


def _mark(key: bytes) -> str:
    return blake2b(key, digest_size=_MARK_BYTES).hexdigest()
