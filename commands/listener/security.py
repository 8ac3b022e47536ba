"""Who may connect, and as which user their programs work: the rules of channels, users, passwords.

The definitions of the queue manager say it (``commands.broker.channel_authentication``): its channels, its channel
authentication records (CHLAUTH), and when passwords are compared (CONNAUTH). The tables of the configuration say the
same in other words; where [listener.channels] is given, it takes the place of the channels and records.

    record of the channel, address, user, certificate  ->  password, where one is required or given
        ->  its user (ADOPTCTX), else that of the program  ->  MCAUSER  ->  blocked users

A program works as a user of 1 to 12 characters, none of them blank: the descriptor of a message has room for no more,
and what is left of a longer name may be another user.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from commands.broker import channel_authentication as chlauth
from commands.broker.authority import ADMINISTRATOR, GroupsOf, no_groups
from commands.broker.channel_objects import (
    ADDRESSMAP,
    ALL_PRIVILEGED,
    BLOCKUSER,
    DEFAULT_CONNAUTH,
    AuthenticationInfo,
    ChannelAuthentication,
    ServerChannel,
)
from commands.broker.objects import Objects
from commands.config.access import IsRight
from commands.config.settings import ChannelRule, ConnAuth
from commands.qmgr.event_numbers import ADDRESS_BLOCKED, LOGIN_REFUSED, NO_PASSWORD, USER_BLOCKED, WRONG_PASSWORD
from rfh2.constants import MQRC_NOT_AUTHORIZED

_MOST_PASSWORD_BYTES: Final = 256
_log: Final = logging.getLogger("qpubsub.listener")
# Of the words for several ciphers, those that are for one version; nothing below TLS 1.2 connects here.
_ONLY: Final = {"ANY_TLS12": "TLSv1.2", "ANY_TLS13": "TLSv1.3", "ANY_TLS13_OR_HIGHER": "TLSv1.3"}
_METHODS: Final = {"file": "OS", "pam": "PAM"}
# A comparison takes 16 MB and as much processor time as is to deter guessing: others wait.
_COMPARED_AT_A_TIME: Final = 2


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user and its password, as a client sent them in CONAUTH_INFO, or in the short fields of USERID."""

    user: str
    password: str


@dataclass(frozen=True, slots=True)
class Identity:
    """What a client says of itself. user: of USERID, as which its program runs. address: of its socket.

    subject, issuer: of its certificate.
    """

    channel: str
    address: str
    user: str = ""
    credentials: Credentials | None = None
    subject: chlauth.DistinguishedName = ()
    issuer: chlauth.DistinguishedName = ()


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
    """The answers of a queue manager's channels. channels: of the configuration, by name; ``*`` for all others.

    is_right, pam: compare passwords with AUTHENMD(OS), and with AUTHENMD(PAM); without them, only who must give one is
    refused. groups_of: the groups of a user; those in group mqm are privileged.
    """

    def __init__(
        self,
        channels: Mapping[str, ChannelRule],
        is_right: IsRight | None = None,
        connauth: ConnAuth | None = None,
        groups_of: GroupsOf = no_groups,
        pam: IsRight | None = None,
    ) -> None:
        self._compare, self._connauth = {"OS": is_right, "PAM": pam}, connauth or ConnAuth()
        self._given = rules_of(channels) if channels else None
        self._defined: tuple[Objects, chlauth.ChannelRules] | None = None
        self._groups_of = groups_of
        self._threads = ThreadPoolExecutor(_COMPARED_AT_A_TIME, "passwords")
        self._turns: dict[str, _Turns] = {}

    def rules(self, objects: Objects | None = None) -> chlauth.ChannelRules:
        """What counts while the definitions are *objects*; None: those of a new queue manager."""
        if self._defined is not None and self._defined[0] is objects:
            return self._defined[1]
        rules = chlauth.ChannelRules({}) if objects is None else chlauth.ChannelRules.of(objects)
        if self._given is not None:
            rules = replace(self._given, authentication=rules.authentication)
        rules = replace(rules, authentication=self._authentication(rules.authentication))
        if objects is not None:
            self._defined = (objects, rules)
        return rules

    def _authentication(self, defined: AuthenticationInfo | None) -> AuthenticationInfo | None:
        """What CONNAUTH says, with what [listener.connauth] gives in its place."""
        given = self._connauth
        words = {
            "chckclnt": ("check_client", given.chckclnt.upper()),
            "adoptctx": ("adopts", given.adoptctx),
            "faildlay": ("delay", given.faildlay),
            "authenmd": ("method", _METHODS[given.authenmd]),
        }
        changed: dict[str, Any] = dict(words[name] for name in given.model_fields_set & words.keys())
        return replace(defined or AuthenticationInfo(DEFAULT_CONNAUTH), **changed) if changed else defined

    def compares(self, rules: chlauth.ChannelRules) -> IsRight | None:
        """What compares passwords; None where nothing is there to compare them with."""
        return self._compare["OS" if rules.authentication is None else rules.authentication.method]

    def reads_passwords(self, rules: chlauth.ChannelRules) -> bool:
        """Whether passwords are compared, which must then come as they are."""
        compares = rules.authentication is not None and rules.authentication.check_client != "NONE"
        return (compares and self.compares(rules) is not None) or requires_passwords(rules)

    async def admission(self, identity: Identity, rules: chlauth.ChannelRules | None = None) -> Admission:
        """Whether the program may connect, and as which user it works."""
        rules = rules or self.rules()
        credentials, authentication = identity.credentials, rules.authentication
        adopts = authentication is not None and authentication.adopts
        user = _name(credentials.user if credentials is not None and adopts else identity.user)
        channel = rules.channel(identity.channel, identity.address)
        if channel is None:
            return Admission(user, MQRC_NOT_AUTHORIZED, why=f"there is no channel {identity.channel}")
        client = chlauth.Client(identity.channel, identity.address, user, identity.subject, identity.issuer)
        record = rules.mapping(client)
        if record is not None and record.user_source == "NOACCESS" and not _only_warns(record, client):
            return Admission(
                user, MQRC_NOT_AUTHORIZED, why=f"{_told(record)} refuses every program", number=ADDRESS_BLOCKED
            )
        check = _check(rules, record)
        if await self._is_compared(check, user, rules, credentials) and not await self._is_authentic(identity, rules):
            await asyncio.sleep(1 if authentication is None else authentication.delay)
            number = WRONG_PASSWORD if credentials is not None and credentials.password else NO_PASSWORD
            return Admission(user, MQRC_NOT_AUTHORIZED, True, "the password is missing or wrong", number)
        works_as = chlauth.user_of(record, channel.mcauser, user)
        if works_as and not chlauth.can_work(works_as):
            why = f"a user has 1 to {chlauth.LONGEST_USER} characters and no blanks; MCAUSER names one for other names"
            return Admission(works_as, MQRC_NOT_AUTHORIZED, why=why)
        if not works_as:
            return Admission(works_as, MQRC_NOT_AUTHORIZED, why="there is none")
        blocking = rules.blocked_users(identity.channel)
        if blocking is not None and await self._is_blocked(blocking, works_as) and not _only_warns(blocking, client):
            return Admission(works_as, MQRC_NOT_AUTHORIZED, why="the user is blocked", number=USER_BLOCKED)
        return Admission(works_as)

    async def _is_blocked(self, record: ChannelAuthentication, user: str) -> bool:
        matters = ALL_PRIVILEGED in (each.upper() for each in record.user_list)
        return chlauth.is_blocked(record, user, matters and await self._is_privileged(_name(user)))

    async def _is_privileged(self, user: str) -> bool:
        """Whether *user* is mqm, or in that group. To look that up may take a while."""
        if user == ADMINISTRATOR:
            return True
        if not chlauth.is_user(user):
            return False  # the system knows no such user
        return ADMINISTRATOR in await asyncio.to_thread(self._groups_of, user)

    async def _is_compared(
        self, check: str, user: str, rules: chlauth.ChannelRules, credentials: Credentials | None
    ) -> bool:
        """Whether the password is compared; it is wrong where none was given."""
        if check == "REQUIRED":
            return True
        if self.compares(rules) is None or check == "NONE":
            return False
        is_given = credentials is not None and credentials.password != ""
        return is_given or (check == "REQDADM" and await self._is_privileged(user))

    async def _is_authentic(self, identity: Identity, rules: chlauth.ChannelRules) -> bool:
        credentials, is_right = identity.credentials, self.compares(rules)
        if credentials is None or is_right is None:
            return False
        user, password = _name(credentials.user), credentials.password
        if not user or not password or "\0" in user + password or len(password.encode()) > _MOST_PASSWORD_BYTES:
            return False
        loop = asyncio.get_running_loop()
        async with self._turn_of(identity.address):
            return await loop.run_in_executor(self._threads, is_right, user, password)

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


def _told(record: ChannelAuthentication) -> str:
    return f"CHLAUTH({record.profile}) TYPE({record.type})"


def _only_warns(record: ChannelAuthentication, client: chlauth.Client) -> bool:
    """Whether a record that would refuse *client* is WARN(YES): the log says so, and the client goes on."""
    if record.warns:
        text = "%s: %s would refuse user %r at channel %s"
        _log.warning(text, client.address, _told(record), client.user, client.channel)
    return record.warns


def _check(rules: chlauth.ChannelRules, record: ChannelAuthentication | None) -> str:
    """CHCKCLNT: of the record, else of the queue manager."""
    if record is not None and record.check_client != "ASQMGR":
        return record.check_client
    return "NONE" if rules.authentication is None else rules.authentication.check_client


def requires_passwords(rules: chlauth.ChannelRules) -> bool:
    """Whether a channel, or all of them, require a password."""
    of_all = rules.authentication is not None and rules.authentication.check_client == "REQUIRED"
    return of_all or any(record.check_client == "REQUIRED" for record in rules.records)


def rules_of(channels: Mapping[str, ChannelRule]) -> chlauth.ChannelRules:
    """What [listener.channels] says, as definitions."""
    records: list[ChannelAuthentication] = []
    for name, rule in channels.items():
        check = "REQUIRED" if rule.password else "ASQMGR"
        records.append(ChannelAuthentication(name, BLOCKUSER, user_list=rule.block_users))
        if rule.addresses:
            records.append(ChannelAuthentication(name, ADDRESSMAP, address="*", user_source="NOACCESS"))
        records += (
            ChannelAuthentication(name, ADDRESSMAP, address=each, user_source="CHANNEL", check_client=check)
            for each in rule.addresses or ("*",)
        )
    return chlauth.ChannelRules(
        {name: ServerChannel(name, mcauser=rule.mcauser) for name, rule in channels.items()}, tuple(records)
    )


def tls_refusal(channel: ServerChannel, cipher: tuple[str, str] | None, subject: chlauth.DistinguishedName) -> str:
    """Why the TLS of a connection is not what its channel asks for; "" where it is. cipher: its name, its version."""
    if channel.cipher and (cipher is None or not _is_cipher(channel.cipher, cipher)):
        return f"SSLCIPH is {channel.cipher}, and the connection has {'no TLS' if cipher is None else cipher[0]}"
    if channel.cipher and channel.needs_certificate and not subject:
        return "SSLCAUTH is REQUIRED, and the client showed no certificate that ca_file verifies"
    if channel.peer and not chlauth.is_peer(subject, channel.peer):
        return "SSLPEER is not the subject of the client's certificate"
    return ""


def _is_cipher(wanted: str, cipher: tuple[str, str]) -> bool:
    name, version = cipher
    if wanted in _ONLY:
        return version == _ONLY[wanted]
    if wanted.startswith("ANY"):
        return True
    return _plain(wanted) == _plain(name)


def _plain(cipher: str) -> str:
    """A cipher's name as IBM MQ and OpenSSL both have it once their marks are left out."""
    return re.sub(r"^TLSRSAWITH|^TLS(?=ECDHE)|WITH|[_-]", "", re.sub(r"[_-]", "", cipher.upper()))
