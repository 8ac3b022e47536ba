"""A small file of a fixed size, which can be written even when the disk is full.

It takes all of its space when it is made. It holds one JSON object, written to two places in turn: a reader during a
write finds the object before.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any, Final

from commands.disk.files import private

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
