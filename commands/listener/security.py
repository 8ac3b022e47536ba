"""Who may connect, and as which user their programs work: the channel rules of the configuration, users, passwords.

The rules have the words of IBM's channel authentication records: a channel may be limited to addresses, block users,
and say which user its programs work as (MCAUSER). A user who must give a password is looked up in a file with one
``user:hash`` on each line, as ``qpubsub passwd`` would write it; the hashes are scrypt's.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Final

from commands.links.engine.config import ChannelRule
from rfh2.constants import MQRC_NOT_AUTHORIZED

_SCRYPT: Final = "scrypt"
_N, _R, _P, _SALT_BYTES, _KEY_BYTES = 1 << 14, 8, 1, 16, 32
_MOST_PASSWORD_BYTES: Final = 256
_MEMORY: Final = 64 << 20
_ALL_PRIVILEGED: Final = "*mqadmin"
_PRIVILEGED: Final = frozenset({"mqm"})


@dataclass(frozen=True, slots=True)
class Identity:
    """What a client says of itself. user, password: of USERID or CONAUTH_INFO. address: of its socket."""

    channel: str
    address: str
    user: str = ""
    password: str | None = None


class Security:
    """The answers of a queue manager's channels. channels: by name; ``*`` for all others. users_file: of hashes."""

    def __init__(self, channels: Mapping[str, ChannelRule], users_file: Path | None = None) -> None:
        self._channels, self._users_file = channels, users_file

    @property
    def reads_passwords(self) -> bool:
        """Whether any channel requires a password, which must then come as it is."""
        return any(rule.password for rule in self._channels.values())

    def rule(self, channel: str) -> ChannelRule | None:
        """The rule of a channel; None where there is no such channel."""
        return self._channels.get(channel) or self._channels.get("*")

    async def user_of(self, identity: Identity) -> tuple[str, int]:
        """The user with whose authority the program works; and 0, or the reason for which it may not connect."""
        rule = self.rule(identity.channel)
        user = identity.user.strip().lower()
        if rule is None or not _is_among(identity.address, rule.addresses):
            return user, MQRC_NOT_AUTHORIZED
        if rule.password and not await asyncio.to_thread(self._is_right, user, identity.password):
            return user, MQRC_NOT_AUTHORIZED
        works_as = rule.mcauser or user
        blocked = {
            name for word in rule.block_users for name in (_PRIVILEGED if word == "*MQADMIN" else {word.lower()})
        }
        if not works_as or (not rule.mcauser and works_as in blocked) or user in blocked:
            return works_as, MQRC_NOT_AUTHORIZED
        return works_as, 0

    def _is_right(self, user: str, password: str | None) -> bool:
        stored = self._stored(user)
        if password is None or not password or len(password.encode()) > _MOST_PASSWORD_BYTES:
            return False
        # An unknown user takes as long as a known one.
        return is_password(password, stored or _NOBODY) and stored is not None

    def _stored(self, user: str) -> str | None:
        if self._users_file is None:
            return None
        try:
            lines = self._users_file.read_text(encoding="utf-8").splitlines()
        except OSError:
            return None
        found = (line.partition(":") for line in lines if not line.lstrip().startswith("#"))
        return next((value.strip() for name, _, value in found if name.strip().lower() == user), None)


def _is_among(address: str, networks: tuple[str, ...]) -> bool:
    if not networks:
        return True
    try:
        asked = ip_address(address)
    except ValueError:
        return False
    return any(asked in ip_network(network, strict=False) for network in networks)


def password_hash(password: str, salt: bytes | None = None) -> str:
    """What the users' file holds for *password*."""
    salt = os.urandom(_SALT_BYTES) if salt is None else salt
    key = hashlib.scrypt(password.encode(), salt=salt, n=_N, r=_R, p=_P, maxmem=_MEMORY, dklen=_KEY_BYTES)
    return "$".join((_SCRYPT, str(_N), str(_R), str(_P), b64encode(salt).decode(), b64encode(key).decode()))


def is_password(password: str, stored: str) -> bool:
    """Whether *stored* is a hash of *password*."""
    try:
        kind, n, r, p, salt, key = stored.split("$")
        if kind != _SCRYPT or int(n) > 1 << 20:
            return False
        wanted = b64decode(key, validate=True)
        made = hashlib.scrypt(
            password.encode(),
            salt=b64decode(salt, validate=True),
            n=int(n),
            r=int(r),
            p=int(p),
            maxmem=_MEMORY * 16,
            dklen=len(wanted),
        )
    except (ValueError, Base64Error):
        return False
    return hmac.compare_digest(made, wanted)


_NOBODY: Final = password_hash("", bytes(_SALT_BYTES))
