"""Puts as JSON Lines: what both engines write to a name that ends in ``.jsonl``."""

from __future__ import annotations

from binascii import hexlify
from collections.abc import Sequence
from typing import BinaryIO, Final

from commands.broker.puts import Outgoing, Put
from commands.templates.cached_puts import CachedPuts, CacheEntry

# What a line has beside the names of a put: seq and n before them, the descriptor and the data behind them.
_SEQ: Final = b'{"seq":'
_N: Final = b',"n":'
_DATA: Final = b'","body_hex":"'
_END: Final = b'"}\n'
_EMPTY: Final = _DATA + b'"}'

# A put takes about 200 bytes here.
_ROOM: Final = 65_536


class PutLines:
    """A file of puts while it is written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._names: dict[CacheEntry, tuple[bytes, ...]] = {}
        self._room = _ROOM

    def write(self, put: Put) -> None:
        """One put."""
        self._file.write(put.model_dump_json().encode() + b"\n")

    def add(self, seq: int, puts: Sequence[Outgoing], begin: int = 0) -> None:
        """The puts of one message. begin: the n of the first one."""
        for n, put in enumerate(puts, begin):
            self.write(Put.of(seq, n, put))

    def add_again(self, seq: int, again: CachedPuts, begin: int = 0) -> None:
        """The puts of a publication like one before. begin: as for ``add``."""
        entry, mds, bodies = again
        names = self._names.get(entry)
        if names is None:
            names = self._names_of(entry)
        front = b"%b%d%b" % (_SEQ, seq, _N)
        parts: list[bytes] = []
        for n, (name, md, body) in enumerate(zip(names, mds, bodies, strict=True), begin):
            parts += (front, b"%d" % n, name, hexlify(md), _DATA, hexlify(body), _END)
        self._file.write(b"".join(parts))

    def close(self) -> None:
        """Do nothing: every put is already written."""

    def _names_of(self, entry: CacheEntry) -> tuple[bytes, ...]:
        """What is between n and descriptor in the line of each put, as the model writes it."""
        count = len(entry.kinds)
        nothing = [b""] * count
        empty = [put.model_dump_json().encode() for put in CachedPuts(entry, nothing, nothing).puts(0)]
        begins = (b"%b0%b%d" % (_SEQ, _N, n) for n in range(count))
        names = tuple(line.removeprefix(begin).removesuffix(_EMPTY) for line, begin in zip(empty, begins, strict=True))
        if self._room < count:
            self._names.clear()
            self._room = _ROOM
        if count <= _ROOM:
            self._names[entry] = names
            self._room -= count
        return names
