"""Which rule counts for a client that connects: the precedence of channel authentication records.

    BLOCKADDR    before anything else is read from the client
    mapping      one record: of the most specific channel profile; of a certificate before that of a user, and this
                 before that of an address; of the most specific certificate, user and address
    BLOCKUSER    the record of the most specific profile, for the user as which the program would work

Users are compared without regard to case, as they are everywhere here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address, ip_network
from typing import Final

from commands.broker import channel_objects
from commands.broker.objects import Objects

_MAPPING: Final = (channel_objects.SSLPEERMAP, channel_objects.USERMAP, channel_objects.ADDRESSMAP)
_ANY_CHANNEL: Final = "SYSTEM.DEF.SVRCONN"
_LOOPBACK: Final = ("127.0.0.0/8", "::1")
_RANGE: Final = re.compile(r"([0-9A-Fa-f]+)-([0-9A-Fa-f]+)")
# As in IBM's rules for SSLPEER; these are the short names that OpenSSL gives in full.
_DN_NAMES: Final = {
    "commonName": "CN",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "title": "T",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
    "emailAddress": "MAIL",
    "serialNumber": "SERIALNUMBER",
}
_SYNONYMS: Final = {"S": "ST", "SP": "ST", "E": "MAIL"}

LONGEST_USER: Final = 12
_USER: Final = re.compile(r"[!-~\xa1-\xff]+")

DistinguishedName = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Client:
    """A client that connects. user: as which it wants to work. subject, issuer: of its certificate; () for none."""

    channel: str
    address: str
    user: str = ""
    subject: DistinguishedName = ()
    issuer: DistinguishedName = ()


@dataclass(frozen=True, slots=True)
class ChannelRules:
    """What the definitions say of clients. authentication: of CONNAUTH; None where passwords are not looked at.

    accepts_any: whether a channel that is not defined is like SYSTEM.DEF.SVRCONN, for clients of this machine.
    """

    channels: Mapping[str, channel_objects.ServerChannel]
    records: tuple[channel_objects.ChannelAuthentication, ...] = ()
    authentication: channel_objects.AuthenticationInfo | None = field(
        default_factory=lambda: channel_objects.AuthenticationInfo(channel_objects.DEFAULT_CONNAUTH)
    )
    accepts_any: bool = False

    @classmethod
    def of(cls, objects: Objects) -> ChannelRules:
        """Those of a queue manager. Until it has a channel for clients, any name is one on the loopback address."""
        qmgr, channels = objects.qmgr, objects.server_channels
        records = objects.channel_records if qmgr.chlauth else ()
        is_open = all(name.startswith("SYSTEM.") for name in channels)
        return cls(channels, tuple(records), objects.authentication.get(qmgr.connauth), is_open)

    def channel(self, name: str, address: str) -> channel_objects.ServerChannel | None:
        """The channel that a client of *address* names; None where there is none for it."""
        found = self.channels.get(name) or self.channels.get("*")
        if found is None and self.accepts_any and any(fits(address, each) for each in _LOOPBACK):
            return self.channels[_ANY_CHANNEL]
        return found

    def blocking(self, address: str) -> channel_objects.ChannelAuthentication | None:
        """The BLOCKADDR record for *address*."""
        blocked = (each for each in self.records if each.type == channel_objects.BLOCKADDR)
        return next((each for each in blocked if any(fits(address, one) for one in each.address_list)), None)

    def mapping(self, client: Client) -> channel_objects.ChannelAuthentication | None:
        """The record that says what becomes of *client*."""
        found = [each for each in self.records if each.type in _MAPPING and _is_of(each, client)]
        return min(found, key=_precedence, default=None)

    def blocked_users(self, channel: str) -> channel_objects.ChannelAuthentication | None:
        """The BLOCKUSER record for the users of *channel*."""
        found = [
            each for each in self.records if each.type == channel_objects.BLOCKUSER and like(channel, each.profile)
        ]
        return min(found, key=lambda each: specificity(each.profile), default=None)


def user_of(record: channel_objects.ChannelAuthentication | None, mcauser: str, user: str) -> str:
    """As whom a client works: of whom the rule says so, else as the channel says, else as *user*."""
    mapped = "" if record is None or record.user_source != "MAP" else record.mcauser
    return mapped or mcauser or user


def is_user(name: str) -> bool:
    """Whether a system may know a user of this name: it has no blanks."""
    return _USER.fullmatch(name) is not None


def can_work(user: str) -> bool:
    """Whether a program can work as *user*: a message's descriptor has room for 12 characters."""
    return len(user) <= LONGEST_USER and is_user(user)


def is_blocked(record: channel_objects.ChannelAuthentication, user: str, privileged: bool) -> bool:
    """Whether a BLOCKUSER record is for *user*."""
    listed = {each.lower() for each in record.user_list}
    return user.lower() in listed or (privileged and channel_objects.ALL_PRIVILEGED.lower() in listed)


def _is_of(record: channel_objects.ChannelAuthentication, client: Client) -> bool:
    return (
        like(client.channel, record.profile)
        and (not record.address or fits(client.address, record.address))
        and (not record.client_user or record.client_user.lower() == client.user.lower())
        and (not record.peer or is_peer(client.subject, record.peer))
        and (not record.issuer or is_peer(client.issuer, record.issuer))
    )


def _precedence(record: channel_objects.ChannelAuthentication) -> tuple[object, ...]:
    return (
        specificity(record.profile),
        _MAPPING.index(record.type),
        specificity(record.peer),
        specificity(record.issuer),
        tuple(map(_width, _parts(record.address))) if record.address else (3,),
    )


def specificity(pattern: str) -> tuple[int, int]:
    """Sorts patterns: one without ``*`` first, then the one with more characters beside it."""
    return ("*" in pattern, -len(pattern.replace("*", "")))


def like(text: str, pattern: str) -> bool:
    """Whether *text* is what *pattern* describes, each ``*`` in it any characters."""
    return _compiled(pattern).fullmatch(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))))


def fits(address: str, pattern: str) -> bool:
    """Whether *address* is one of *pattern*: ``*``, ``10.1.*``, ``10.1.2-5.7``, or a network ``10.1.0.0/16``."""
    if pattern == "*":
        return True
    try:
        asked = ip_address(address)
        if asked.version == 6 and asked.ipv4_mapped is not None:
            asked = asked.ipv4_mapped
        if "/" in pattern or not re.search(r"[*-]", pattern):
            return asked in ip_network(pattern, strict=False)
    except ValueError:
        return False
    if (":" in pattern) != (asked.version == 6):
        return False
    base, given, wanted = (16 if asked.version == 6 else 10), _parts(asked.exploded), _parts(pattern)
    if wanted[-1] == "*":
        wanted += ["*"] * (len(given) - len(wanted))
    if len(given) != len(wanted):
        return False
    return all(_is_in(int(one, base), part, base) for one, part in zip(given, wanted, strict=True))


def is_address_pattern(pattern: str) -> bool:
    """Whether *pattern* is one for addresses; names of hosts are none, as no name is looked up."""
    try:
        if "/" in pattern or not re.search(r"[*-]", pattern):
            ip_network(pattern, strict=False)
            return True
    except ValueError:
        return False
    base, most, limit = (16, 8, 0xFFFF) if ":" in pattern else (10, 4, 255)
    parts = _parts(pattern)
    try:
        numbers = [int(number, base) for part in parts if part != "*" for number in part.split("-", 1)]
    except ValueError:
        return False
    is_whole = len(parts) == most or (len(parts) < most and parts[-1] == "*")
    return is_whole and all(0 <= number <= limit for number in numbers)


def _parts(address: str) -> list[str]:
    return re.split(r"[.:]", address)


def _width(part: str) -> int:
    return 2 if part == "*" else 1 if "-" in part or "/" in part else 0


def _is_in(number: int, part: str, base: int) -> bool:
    if part == "*":
        return True
    found = _RANGE.fullmatch(part)
    low, high = found.groups() if found else (part, part)
    return int(low, base) <= number <= int(high, base)


# Certificates


def distinguished_name(parts: Iterable[Iterable[tuple[str, str]]]) -> DistinguishedName:
    """The name in a certificate, as ``ssl`` gives it."""
    return tuple((_DN_NAMES.get(key, key.upper()), value) for part in parts for key, value in part)


def peer_pattern(pattern: str) -> DistinguishedName:
    """``CN=A*,OU=B`` in its parts. Raises ValueError where it has another form."""
    found = re.findall(r"\s*([A-Za-z]+)\s*=\s*(\"[^\"]*\"|[^,;]*)\s*(?:[,;]|$)", pattern)
    rest = re.sub(r"\s*[A-Za-z]+\s*=\s*(\"[^\"]*\"|[^,;]*)\s*(?:[,;]|$)", "", pattern)
    if rest.strip() or not found:
        raise ValueError(f"{pattern!r} is not a list of attributes of a distinguished name")
    return tuple((_SYNONYMS.get(key.upper(), key.upper()), value.strip().strip('"')) for key, value in found)


def is_peer(name: DistinguishedName, pattern: str) -> bool:
    """Whether each part of *pattern* is in *name*. Several OU or DC must be there in this order, from the first on."""
    at: dict[str, int] = {}
    for key, wanted in peer_pattern(pattern):
        values = [value for own, value in name if own == key]
        position = at.get(key, 0)
        at[key] = position + 1
        given = values[position:] if key not in ("OU", "DC") else values[position : position + 1]
        if not any(like(value, wanted) for value in given):
            return False
    return True
