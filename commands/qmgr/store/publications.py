"""Retained publications without their messages, which stay in the database until they are needed.

However many topics retain a publication, it is one row and one object. A cache of limited size keeps the messages read
last, so that memory grows with the number of topics and not with the size of their publications.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from commands.disk.errors import UNREADABLE, StoreDamagedError
from commands.qmgr.store.database import FAILURES, Database
from rfh2.errors import StoreError
from rfh2.message import Message, decode

CACHE_BYTES: Final = 16 * 1024 * 1024
# What a small message takes beside its bytes once it is decoded.
_OVERHEAD_BYTES: Final = 4 * 1024

_MESSAGE: Final = "SELECT md, body FROM publications WHERE number = ?"
_TOPIC: Final = "SELECT topic FROM retained WHERE publication = ? LIMIT 1"


class KeptMessages:
    """The messages of a database's retained publications. settle: called before the table is read.

    The cache holds at most ``CACHE_BYTES``, and the message asked for last however long it is.
    """

    __slots__ = ("_cache", "_database", "_room", "_settle", "_size_bytes")

    def __init__(self, database: Database, settle: Callable[[], None], room_bytes: int = CACHE_BYTES) -> None:
        self._database, self._settle, self._room = database, settle, room_bytes
        # The one used last is the last one. What was not asked for since it was written is not decoded.
        self._cache: dict[int, tuple[Message | tuple[bytes, bytes], int]] = {}
        self._size_bytes = 0

    def message(self, number: int) -> Message:
        """The message of publication *number*. Raises StoreDamagedError where it cannot be read, StoreError."""
        found = self._cache.pop(number, None)
        if found is not None:
            held, size_bytes = found
            message = held if isinstance(held, Message) else self._decoded(number, *held)
            self._cache[number] = message, size_bytes
            return message
        self._settle()
        try:
            row = self._database.connection.execute(_MESSAGE, (number,)).fetchone()
        except FAILURES as error:
            raise self._database.translated(error) from error
        if row is None:
            raise StoreError(f"{self._database.path}: a retained publication was cleared meanwhile; try again")
        md, body = row
        message = self._decoded(number, md, body)
        self._keep(number, message, len(md) + len(body))
        return message

    def _decoded(self, number: int, md: bytes, body: bytes) -> Message:
        try:
            return decode(body, md)
        except UNREADABLE as error:
            raise self._unreadable(number) from error

    def _unreadable(self, number: int) -> StoreDamagedError:
        topics = self._database.connection.execute(_TOPIC, (number,)).fetchall()
        return StoreDamagedError.unreadable(
            self._database.path, f"retained publication on {topics[0][0] if topics else '?'}"
        )

    def keep(self, number: int, md: bytes, body: bytes) -> None:
        """Put a message that is about to be written into the cache."""
        self._keep(number, (md, body), len(md) + len(body))

    def _keep(self, number: int, message: Message | tuple[bytes, bytes], size_bytes: int) -> None:
        size_bytes += _OVERHEAD_BYTES
        self._cache[number] = message, size_bytes
        self._size_bytes += size_bytes
        while self._size_bytes > self._room and len(self._cache) > 1:
            _, gone_bytes = self._cache.pop(next(iter(self._cache)))
            self._size_bytes -= gone_bytes

    def forget(self) -> None:
        """Messages were not written, so their numbers will be used again: remove them from the cache."""
        self._cache.clear()
        self._size_bytes = 0


@dataclass(frozen=True, slots=True)
class StoredPublication:
    """A ``Published`` of a database. number: never given twice there.

    Good as long as the database is open; only version 6, which a queue manager does not run, asks for stream and
    subscription point.
    """

    number: int
    published_at: datetime
    expires_at: datetime | None
    local: bool
    messages: KeptMessages = field(repr=False, compare=False)

    @property
    def message(self) -> Message:
        """Raises StoreDamagedError, StoreError."""
        return self.messages.message(self.number)

    @property
    def stream(self) -> str | None:
        """Not kept."""
        return None

    @property
    def sub_point(self) -> str | None:
        """Not kept."""
        return None
