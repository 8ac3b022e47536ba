"""Who may connect, and as which user their programs work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Identity:
    """What a client says of itself. user, password: of USERID or CONAUTH_INFO. address: of its socket."""

    channel: str
    address: str
    user: str = ""
    password: str | None = None


class Security(Protocol):
    """The answers of a queue manager's channels."""

    async def user_of(self, identity: Identity) -> tuple[str, int]:
        """The user with whose authority the program works; and 0, or the reason for which it may not connect."""


class Asserted:
    """Every client is believed: it is the user that it says."""

    async def user_of(self, identity: Identity) -> tuple[str, int]:
        """Its own user, in lower case as queue managers on Unix have it."""
        return identity.user.lower(), 0
