"""Where queue managers are: a directory, or a database of PostgreSQL."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

_SCHEMES: Final = ("postgresql://", "postgres://")
# A session's name has 63 characters, and ends with the queue manager.
_LONGEST_HOST: Final = 40
_PASSWORD: Final = re.compile(r"([?&]password=)[^&]*")


@dataclass(frozen=True, slots=True)
class PostgresqlHome:
    """A database of PostgreSQL. url: as libpq takes it, perhaps with a password, which is shown nowhere."""

    url: str = field(repr=False)

    def __str__(self) -> str:
        """The URL without its password."""
        parts = urlsplit(self.url)
        user, at, host = parts.netloc.rpartition("@")
        query = _PASSWORD.sub(r"\1...", f"?{parts.query}").removeprefix("?")
        return urlunsplit((parts.scheme, f"{user.partition(':')[0]}{at}{host}", parts.path, query, ""))

    @property
    def directory(self) -> Path:
        """Where this machine keeps what is its own: sockets between processes, and nothing that outlives them."""
        above = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        return Path(above) / "qpubsub" / f".{sha256(str(self).encode()).hexdigest()[:12]}"


def process_here(pid: int) -> str:
    """How a process of this machine is called in a home that several machines share: ``PID on HOST``."""
    return f"{pid} on {socket.gethostname()[:_LONGEST_HOST]}"


Home = Path | PostgresqlHome
"""A directory holds its queue managers in SQLite."""


def parse_home(text: str) -> Home:
    """The home that *text* names: a URL that begins with postgresql://, or a directory.

    Raises ValueError for another URL.
    """
    if text.startswith(_SCHEMES):
        return PostgresqlHome(text)
    if "://" in text:
        raise ValueError(
            f"{text.partition('://')[0]}:// is not a home: give a directory, or postgresql://HOST/DATABASE"
        )
    return Path(text)
