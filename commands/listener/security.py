"""Who may connect, and as which user their programs work: the rules of channels, users, passwords.

The rules have the words of IBM's channel authentication records (CHLAUTH): a channel may be limited to addresses, block
users, and say which user its programs work as (MCAUSER). When passwords are compared, and what follows from a right
one, has the words of connection authentication (CONNAUTH).

    address  ->  password, where one is required or given  ->  its user (ADOPTCTX), else that of the program
             ->  MCAUSER  ->  blocked users
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Final

from commands.links.engine.config import ChannelRule, ConnAuth
from commands.listener.passwords import IsRight
from rfh2.constants import MQRC_NOT_AUTHORIZED

_MOST_PASSWORD_BYTES: Final = 256
_ALL_PRIVILEGED: Final = "*MQADMIN"
_PRIVILEGED: Final = frozenset({"mqm"})
# A comparison takes 16 MB and as much processor time as is to deter guessing: others wait.
_COMPARED_AT_A_TIME: Final = 2


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user and its password, as a client sent them in CONAUTH_INFO, or in the short fields of USERID."""

    user: str
    password: str


@dataclass(frozen=True, slots=True)
class Identity:
    """What a client says of itself. user: of USERID, as which its program runs. address: of its socket."""

    channel: str
    address: str
    user: str = ""
    credentials: Credentials | None = None


class Security:
    """The answers of a queue manager's channels. channels: by name; ``*`` for all others.

    is_right: compares passwords; without it, only a channel that requires one is refused.
    """

    def __init__(
        self, channels: Mapping[str, ChannelRule], is_right: IsRight | None = None, connauth: ConnAuth | None = None
    ) -> None:
        self._channels, self._is_right, self._connauth = channels, is_right, connauth or ConnAuth()
        self._threads = ThreadPoolExecutor(_COMPARED_AT_A_TIME, "passwords")

    @property
    def reads_passwords(self) -> bool:
        """Whether passwords are compared, which must then come as they are."""
        return (self._is_right is not None and self._connauth.chckclnt != "none") or self.requires_passwords

    @property
    def requires_passwords(self) -> bool:
        """Whether a channel, or all of them, require a password."""
        return self._connauth.chckclnt == "required" or any(rule.password for rule in self._channels.values())

    def rule(self, channel: str) -> ChannelRule | None:
        """The rule of a channel; None where there is no such channel."""
        return self._channels.get(channel) or self._channels.get("*")

    async def user_of(self, identity: Identity) -> tuple[str, int]:
        """The user with whose authority the program works; and 0, or the reason for which it may not connect."""
        rule = self.rule(identity.channel)
        credentials = identity.credentials
        user = _name(credentials.user if credentials is not None and self._connauth.adoptctx else identity.user)
        if rule is None or not _is_among(identity.address, rule.addresses):
            return user, MQRC_NOT_AUTHORIZED
        if self._is_compared(rule, user, credentials) and not await self._is_authentic(credentials):
            await asyncio.sleep(self._connauth.faildlay)
            return user, MQRC_NOT_AUTHORIZED
        works_as = rule.mcauser or user
        blocked = {name for word in rule.block_users for name in _blocked(word)}
        if not works_as or (not rule.mcauser and works_as in blocked) or user in blocked:
            return works_as, MQRC_NOT_AUTHORIZED
        return works_as, 0

    def _is_compared(self, rule: ChannelRule, user: str, credentials: Credentials | None) -> bool:
        """Whether the password is compared; it is wrong where none was given."""
        check = self._connauth.chckclnt
        if rule.password or check == "required":
            return True
        if self._is_right is None or check == "none":
            return False
        is_given = credentials is not None and credentials.password != ""
        return is_given or (check == "reqdadm" and user in _PRIVILEGED)

    async def _is_authentic(self, credentials: Credentials | None) -> bool:
        if credentials is None or self._is_right is None:
            return False
        user, password = _name(credentials.user), credentials.password
        if not user or not password or "\0" in user + password or len(password.encode()) > _MOST_PASSWORD_BYTES:
            return False
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._is_right, user, password)


def _name(user: str) -> str:
    return user.strip().lower()


def _blocked(word: str) -> frozenset[str]:
    return _PRIVILEGED if word.upper() == _ALL_PRIVILEGED else frozenset({word.lower()})


def _is_among(address: str, networks: tuple[str, ...]) -> bool:
    if not networks:
        return True
    try:
        asked = ip_address(address)
    except ValueError:
        return False
    return any(asked in ip_network(network, strict=False) for network in networks)
