"""Puts as JSON Lines: what both engines write to a name that ends in ``.jsonl``."""

from __future__ import annotations

from binascii import hexlify
from collections.abc import Sequence
from typing import BinaryIO, Final

from commands.broker.puts import Outgoing, Put

# What a line has beside the names of a put: seq and n before them, the descriptor and the data behind them.
_SEQ: Final = b'{"seq":'
_N: Final = b',"n":'
_DATA: Final = b'","body_hex":"'
_END: Final = b'"}\n'
_EMPTY: Final = _DATA + b'"}'

_Names = tuple[object, ...]
_MOST_NAMES: Final = 65_536
"""Some 300 bytes each."""


class PutLines:
    """A file of puts while it is written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._names: dict[_Names, bytes] = {}

    def write(self, put: Put) -> None:
        """One put."""
        self._file.write(put.model_dump_json().encode() + b"\n")

    def add(self, seq: int, at_qmgr: str, puts: Sequence[Outgoing], begin: int = 0) -> None:
        """The puts of command *seq*, which arrived at *at_qmgr*. begin: the n of the first one."""
        front, parts = b"%b%d%b" % (_SEQ, seq, _N), list[bytes]()
        for n, put in enumerate(puts, begin):
            # Destinations come again and again; all but descriptor and body is looked up.
            key = (at_qmgr, *put[:3], *put[5:9])
            names = self._names.get(key)
            if names is None:
                names = self._keep(key, at_qmgr, put)
            parts += (front, b"%d" % n, names, hexlify(put.md), _DATA, hexlify(put.body), _END)
        self._file.write(b"".join(parts))

    def close(self) -> None:
        """Do nothing: every put is already written."""

    def _keep(self, key: _Names, at_qmgr: str, put: Outgoing) -> bytes:
        """What is between n and descriptor in the line of a put, as the model writes it."""
        line = Put.of(0, at_qmgr, 0, put._replace(md=b"", body=b"")).model_dump_json().encode()
        names = line.removeprefix(b"%b0%b0" % (_SEQ, _N)).removesuffix(_EMPTY)
        if len(self._names) >= _MOST_NAMES:
            self._names.clear()
        self._names[key] = names
        return names
