"""Puts as JSON Lines: what both engines write to a name that ends in ``.jsonl``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from commands.broker.puts import Outgoing, Put
from commands.qmgr.cached_puts import CachedPuts


class PutLines:
    """A file of puts while it is written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, put: Put) -> None:
        """One put."""
        self._file.write(put.model_dump_json().encode() + b"\n")

    def add(self, seq: int, puts: Sequence[Outgoing]) -> None:
        """The puts of one message."""
        for n, put in enumerate(puts):
            self.write(Put.of(seq, n, put))

    def add_again(self, seq: int, again: CachedPuts) -> None:
        """The puts of a publication like one before."""
        for put in again.puts(seq):
            self.write(put)

    def close(self) -> None:
        """Do nothing: every put is already written."""
