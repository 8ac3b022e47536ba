"""What the processor is working on: a page of memory that it shares with its supervisor.

The processor writes the page before it begins to work on a message, which costs less than a microsecond; the supervisor
reads it ten times a second. If a message takes longer, or the processor died on it, the supervisor writes it to a file
in the queue manager's directory. So ``status`` can show it and the next start knows it, even if both have ended.
Messages on which processors ended (``PoisonMessages``) are in a second file, written by the processor alone, when it
starts and when one of them is done.

A small file of a fixed size, which can be written even when the disk is full.

It takes all of its space when it is made. It holds one JSON object, written to two places in turn: a reader during a
write finds the object before.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import time
import zlib
from dataclasses import asdict, dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

from commands.disk.files import private
from commands.qmgr.store.port import StoredMessage
from commands.qmgr.watchdog import EndedProcessors
from rfh2.layouts import MQMD1

_HEAD: Final = 24  # number of the write, length and checksum of what follows, 8 hexadecimal digits each


class FixedFile:
    """The file at *path*, with room for objects of *room* bytes. Raises OSError where it cannot be opened or made."""

    def __init__(self, path: Path, room: int) -> None:
        self._room = room
        self._descriptor = private(str(path), os.O_RDWR | os.O_CREAT)
        try:
            missing = 2 * room - os.fstat(self._descriptor).st_size
            if missing > 0:
                _write(self._descriptor, bytes(missing), 2 * room - missing)
        except BaseException:
            os.close(self._descriptor)
            raise
        self._number = max((number for number, _ in _found(self._descriptor, room)), default=0)

    def write(self, content: dict[str, Any]) -> bool:
        """Write *content*; whether it fitted. Raises OSError."""
        data = json.dumps(content).encode()
        if len(data) > self._room - _HEAD:
            return False
        self._number += 1
        head = f"{self._number & 0xFFFF_FFFF:08x}{len(data):08x}{zlib.crc32(data):08x}".encode()
        _write(self._descriptor, head + data, self._room * (self._number % 2))
        return True

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def read_fixed(path: Path, room: int) -> dict[str, Any]:
    """The object written last to the file at *path*; empty if none can be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return {}
    try:
        found = _found(descriptor, room)
    except OSError:
        return {}
    finally:
        os.close(descriptor)
    return max(found, key=lambda each: each[0])[1] if found else {}


def _found(descriptor: int, room: int) -> list[tuple[int, dict[str, Any]]]:
    found = []
    for at in (0, room):
        data = os.pread(descriptor, room, at)
        try:
            number, length, checksum = (int(data[n : n + 8], 16) for n in (0, 8, 16))
            content = data[_HEAD : _HEAD + length]
            if zlib.crc32(content) == checksum and isinstance(value := json.loads(content), dict):
                found.append((number, value))
        except ValueError:
            continue  # never written, or being written now
    return found


def _write(descriptor: int, data: bytes, at: int) -> None:
    while data:
        written = os.pwrite(descriptor, data, at)
        data, at = data[written:], at + written


WORKING_FILE: Final = "run.working"
SUSPECTS_FILE: Final = "run.suspects"
ROOM: Final = 8192
_MOST_SUSPECTS: Final = 8

_SPANS: Final = MQMD1.slices()
_MSG_ID: Final = _SPANS["MsgId"]
_PUT_AT: Final = slice(_SPANS["PutDate"].start, _SPANS["PutTime"].stop)


class Phase(IntEnum):
    """What the processor does. READING, HELD_READING: decoding and parsing, outside and inside a unit of work."""

    STARTING = 0
    IDLE = 1
    READING = 2
    HELD_READING = 3
    WORKING_OUT = 4
    PUTTING = 5
    ENDING = 6


@dataclass(frozen=True, slots=True)
class MessageKey:
    """Identifies the message, also after a restart and in IBM MQ, where messages have no numbers."""

    queue: str
    msg_id: str
    put_at: str
    size_bytes: int

    @classmethod
    def of(cls, message: StoredMessage) -> MessageKey:
        """The key of *message*."""
        md = message.md
        return cls(message.queue, md[_MSG_ID].hex(), md[_PUT_AT].hex(), len(message.body))


@dataclass(frozen=True, slots=True)
class Work:
    """One look at the page. number: of the piece of work since the processor started. since: Unix time."""

    number: int
    phase: Phase
    seq: int
    since: float
    key: MessageKey

    @property
    def on_message(self) -> bool:
        """Whether a message is being worked on."""
        return self.phase in (Phase.READING, Phase.HELD_READING, Phase.WORKING_OUT, Phase.PUTTING)

    @property
    def can_hang(self) -> bool:
        """Whether this work has a time limit."""
        return self.phase in (Phase.READING, Phase.HELD_READING, Phase.WORKING_OUT)


_RECORD: Final = struct.Struct("<QQdQ24s16s48sQ")
_PACK: Final = _RECORD.pack_into
_PHASE_AT: Final = 512
_OVERDUE: Final = struct.Struct("<Q")
_OVERDUE_AT: Final = 1024
# A member of an enumeration costs more to look up than the byte to write.
_IDLE: Final = int(Phase.IDLE)


class WorkPage:
    """The shared memory: the processor writes, the supervisor reads; one number goes the other way."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 4096)
        self._number = 0

    def reset(self) -> None:
        """For a new processor."""
        self._memory[:] = bytes(len(self._memory))

    def begin(self, message: StoredMessage, phase: int) -> None:
        """Work on *message* begins."""
        self._number = number = self._number + 1
        memory, md = self._memory, message.md
        queue = message.queue.encode("utf-8", "replace")
        memory[_PHASE_AT] = _IDLE
        _PACK(memory, 0, number, message.seq, time.time(), len(message.body), md[_MSG_ID], md[_PUT_AT], queue, number)
        memory[_PHASE_AT] = phase

    @property
    def phase(self) -> Phase:
        """What the processor does."""
        return Phase(self._memory[_PHASE_AT])

    def enter(self, phase: int) -> None:
        """The processor does this now."""
        self._memory[_PHASE_AT] = phase

    def look(self) -> Work | None:
        """What the processor does now; None if it was about to change."""
        number, seq, since, size, msg_id, put_at, queue, again = _RECORD.unpack_from(self._memory, 0)
        phase = Phase(self._memory[_PHASE_AT])
        if number != again:
            return None
        name = queue.rstrip(b"\0").decode("utf-8", "replace")
        return Work(number, phase, seq, since, MessageKey(name, msg_id.hex(), put_at.hex(), size))

    def mark_overdue(self, number: int) -> None:
        """Work *number* takes too long."""
        _OVERDUE.pack_into(self._memory, _OVERDUE_AT, number)

    @property
    def is_overdue(self) -> bool:
        """Whether the work at hand takes too long, and may be interrupted."""
        (number,) = _OVERDUE.unpack_from(self._memory, _OVERDUE_AT)
        may = (Phase.READING, Phase.HELD_READING, Phase.WORKING_OUT)
        return number == self._number and self.phase in may


class PoisonMessages:
    """The messages on which processors of the queue manager in *directory* ended; for who holds the lock of it."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / SUSPECTS_FILE
        self._found: dict[MessageKey, EndedProcessors] = {}
        for each in read_fixed(self._path, ROOM).get("suspects", []):
            self._found[MessageKey(**each["message"])] = EndedProcessors(**each["blame"])

    def note_end(self, key: MessageKey, cause: str) -> EndedProcessors:
        """Note that one more processor ended on it. Raises OSError if it cannot be kept; it still counts here."""
        before = self._found.pop(key, None)
        ended = self._found[key] = EndedProcessors(1 if before is None else before.deaths + 1, cause[:200])
        for oldest in list(self._found)[:-_MOST_SUSPECTS]:
            del self._found[oldest]
        self._keep()
        return ended

    def ended_on(self, message: StoredMessage) -> EndedProcessors | None:
        """The record of *message*, if processors ended on it."""
        return self._found.get(MessageKey.of(message)) if self._found else None

    def succeeded(self, message: StoredMessage) -> None:
        """It is done. Raises OSError."""
        if self._found.pop(MessageKey.of(message), None) is not None:
            self._keep()

    def _keep(self) -> None:
        file = FixedFile(self._path, ROOM)
        try:
            found = self._found.items()
            file.write({"suspects": [{"message": asdict(key), "blame": asdict(ended)} for key, ended in found]})
        finally:
            file.close()


def key_of(working: dict[str, Any]) -> MessageKey:
    """The message that *working* (``being_worked_on``) is about."""
    return MessageKey(**working["message"])


def being_worked_on(directory: Path) -> dict[str, Any] | None:
    """The message that is being worked on for longer than a moment, as the supervisor wrote it last; None for none."""
    working = read_fixed(directory / WORKING_FILE, ROOM).get("working")
    return working if isinstance(working, dict) else None
