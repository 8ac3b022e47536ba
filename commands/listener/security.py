"""Who may connect, and as which user their programs work: the rules of channels, users, passwords.

The rules have the words of IBM's channel authentication records (CHLAUTH): a channel may be limited to addresses, block
users, and say which user its programs work as (MCAUSER). When passwords are compared, and what follows from a right
one, has the words of connection authentication (CONNAUTH).

    address  ->  password, where one is required or given  ->  its user (ADOPTCTX), else that of the program
             ->  MCAUSER  ->  blocked users

A program works as a user of 1 to 12 characters, none of them blank: the descriptor of a message has room for no more,
and what is left of a longer name may be another user.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Final, NamedTuple

from commands.broker.authority import ADMINISTRATOR, GroupsOf, no_groups
from commands.config.settings import ChannelRule, ConnAuth
from commands.listener.passwords import IsRight
from commands.qmgr.event_numbers import ADDRESS_BLOCKED, LOGIN_REFUSED, NO_PASSWORD, USER_BLOCKED, WRONG_PASSWORD
from rfh2.constants import MQRC_NOT_AUTHORIZED

_MOST_PASSWORD_BYTES: Final = 256
_ALL_PRIVILEGED: Final = "*MQADMIN"
_USER: Final = re.compile(r"[!-~\xa1-\xff]+")
_LONGEST_USER: Final = 12
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


class Admission(NamedTuple):
    """The user with whose authority a program works; 0, or the reason for which it may not connect.

    is_wrong_password: whether that is the reason. why, number: for the log, the number of IBM MQ's message.
    """

    user: str
    reason: int = 0
    is_wrong_password: bool = False
    why: str = ""
    number: int = LOGIN_REFUSED


@dataclass(slots=True)
class _Turns:
    """Who waits for the passwords of one address to be compared: one after the other, in order."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    count: int = 0


class Security:
    """The answers of a queue manager's channels. channels: by name; ``*`` for all others.

    is_right: compares passwords; without it, only a channel that requires one is refused. groups_of: the groups of a
    user; those in group mqm are privileged.
    """

    def __init__(
        self,
        channels: Mapping[str, ChannelRule],
        is_right: IsRight | None = None,
        connauth: ConnAuth | None = None,
        groups_of: GroupsOf = no_groups,
    ) -> None:
        self._channels, self._is_right, self._connauth = channels, is_right, connauth or ConnAuth()
        self._groups_of = groups_of
        self._threads = ThreadPoolExecutor(_COMPARED_AT_A_TIME, "passwords")
        self._turns: dict[str, _Turns] = {}

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

    async def admission(self, identity: Identity) -> Admission:
        """Whether the program may connect, and as which user it works."""
        rule = self.rule(identity.channel)
        credentials = identity.credentials
        user = _name(credentials.user if credentials is not None and self._connauth.adoptctx else identity.user)
        if rule is None or not _is_among(identity.address, rule.addresses):
            why = "its address is not among those of the channel"
            return Admission(user, MQRC_NOT_AUTHORIZED, why=why, number=ADDRESS_BLOCKED)
        blocked = {word.lower() for word in rule.block_users}
        matters = _ALL_PRIVILEGED.lower() in blocked or self._connauth.chckclnt == "reqdadm"
        privileged = matters and await self._is_privileged(user)
        if self._is_compared(rule, privileged, credentials) and not await self._is_authentic(identity):
            await asyncio.sleep(self._connauth.faildlay)
            number = WRONG_PASSWORD if credentials is not None and credentials.password else NO_PASSWORD
            return Admission(user, MQRC_NOT_AUTHORIZED, True, "the password is missing or wrong", number)
        works_as = rule.mcauser or user
        if works_as and (len(works_as) > _LONGEST_USER or not _USER.fullmatch(works_as)):
            why = f"a user has 1 to {_LONGEST_USER} characters and no blanks; MCAUSER names one for other names"
            return Admission(works_as, MQRC_NOT_AUTHORIZED, why=why)
        is_blocked = user in blocked or (privileged and _ALL_PRIVILEGED.lower() in blocked)
        if not works_as or is_blocked or (not rule.mcauser and works_as in blocked):
            if not works_as:
                return Admission("", MQRC_NOT_AUTHORIZED, why="there is none")
            return Admission(works_as, MQRC_NOT_AUTHORIZED, why="the user is blocked", number=USER_BLOCKED)
        return Admission(works_as)

    async def _is_privileged(self, user: str) -> bool:
        """Whether *user* is mqm, or in that group. To look that up may take a while."""
        if user == ADMINISTRATOR:
            return True
        if not _USER.fullmatch(user):
            return False  # the system knows no such user
        return ADMINISTRATOR in await asyncio.to_thread(self._groups_of, user)

    def _is_compared(self, rule: ChannelRule, privileged: bool, credentials: Credentials | None) -> bool:
        """Whether the password is compared; it is wrong where none was given."""
        check = self._connauth.chckclnt
        if rule.password or check == "required":
            return True
        if self._is_right is None or check == "none":
            return False
        is_given = credentials is not None and credentials.password != ""
        return is_given or (check == "reqdadm" and privileged)

    async def _is_authentic(self, identity: Identity) -> bool:
        credentials = identity.credentials
        if credentials is None or self._is_right is None:
            return False
        user, password = _name(credentials.user), credentials.password
        if not user or not password or "\0" in user + password or len(password.encode()) > _MOST_PASSWORD_BYTES:
            return False
        loop = asyncio.get_running_loop()
        async with self._turn_of(identity.address):
            return await loop.run_in_executor(self._threads, self._is_right, user, password)

    @asynccontextmanager
    async def _turn_of(self, address: str) -> AsyncIterator[None]:
        """One comparison of an address at a time waits for a thread: who guesses from another one delays nobody."""
        turns = self._turns.setdefault(address, _Turns())
        turns.count += 1
        try:
            async with turns.lock:
                yield
        finally:
            turns.count -= 1
            if not turns.count:
                del self._turns[address]


def _name(user: str) -> str:
    return user.strip().lower()


def _is_among(address: str, networks: tuple[str, ...]) -> bool:
    if not networks:
        return True
    try:
        asked = ip_address(address)
    except ValueError:
        return False
    return any(asked in ip_network(network, strict=False) for network in networks)
