"""Definitions of what clients connect by: channels, rules for who may use them, passwords, listeners.

Defaults are those of IBM's SYSTEM.DEF.SVRCONN, SYSTEM.DEFAULT.AUTHINFO.IDPWOS and SYSTEM.DEFAULT.LISTENER.TCP. These
are there without being defined; one that was altered is kept like any other definition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SVRCONN: Final = "SVRCONN"
ALL_PRIVILEGED: Final = "*MQADMIN"
DEFAULT_CONNAUTH: Final = "SYSTEM.DEFAULT.AUTHINFO.IDPWOS"

# TYPE of a channel authentication record.
BLOCKUSER: Final = "BLOCKUSER"
BLOCKADDR: Final = "BLOCKADDR"
SSLPEERMAP: Final = "SSLPEERMAP"
USERMAP: Final = "USERMAP"
ADDRESSMAP: Final = "ADDRESSMAP"


@dataclass(frozen=True, slots=True)
class ServerChannel:
    """DEFINE CHANNEL with CHLTYPE(SVRCONN): by which clients connect.

    mcauser: the user as which their programs work, "" for their own. sharing: conversations of a connection.
    instances: the most connections at a time; instances_of_client: of one address. heartbeat: seconds. cipher: "" for
    any connection; else only TLS, with this cipher. needs_certificate: whether such a client must show a certificate.
    peer: what the subject of the certificate must be like.
    """

    name: str
    channel_type: str = SVRCONN
    transport: str = "TCP"
    description: str = ""
    mcauser: str = ""
    sharing: int = 10
    instances: int = 999_999_999
    instances_of_client: int = 999_999_999
    max_message_length: int = 104_857_600
    heartbeat: int = 300
    cipher: str = ""
    needs_certificate: bool = True
    peer: str = ""


@dataclass(frozen=True, slots=True)
class ChannelAuthentication:
    """SET CHLAUTH: a rule for the channels that *profile* names, ``*`` in it any characters.

    user_list, address_list: of BLOCKUSER and BLOCKADDR. address, client_user, peer, issuer: of whom the rule is; ""
    where it does not matter. user_source: ``MAP`` (to mcauser), ``NOACCESS`` or ``CHANNEL``. check_client: ``ASQMGR``,
    ``REQDADM`` or ``REQUIRED``. warns: the rule blocks nobody, and who would be blocked is logged.
    """

    profile: str
    type: str
    description: str = ""
    user_list: tuple[str, ...] = ()
    address_list: tuple[str, ...] = ()
    address: str = ""
    client_user: str = ""
    peer: str = ""
    issuer: str = ""
    user_source: str = "MAP"
    mcauser: str = ""
    check_client: str = "ASQMGR"
    warns: bool = False

    @property
    def name(self) -> str:
        """The key of the record."""
        return "\n".join((self.profile, self.type, self.address, self.client_user, self.peer, self.issuer))


@dataclass(frozen=True, slots=True)
class AuthenticationInfo:
    """DEFINE AUTHINFO with AUTHTYPE(IDPWOS): when passwords are compared.

    check_client, check_local: ``NONE``, ``OPTIONAL``, ``REQUIRED`` or ``REQDADM``. adopts: whether a program works as
    the user of the password. delay: seconds until a wrong one is refused. method: ``OS``, which here is the users'
    file, or ``PAM``.
    """

    name: str
    authentication_type: str = "IDPWOS"
    description: str = ""
    check_client: str = "REQDADM"
    check_local: str = "OPTIONAL"
    adopts: bool = True
    delay: float = 1
    method: str = "OS"


@dataclass(frozen=True, slots=True)
class TcpListener:
    """DEFINE LISTENER with TRPTYPE(TCP). address: IPADDR, "" for all. control: ``QMGR``, ``STARTONLY`` or ``MANUAL``.

    is_started: what START or STOP LISTENER has said since; None where neither was given.
    """

    name: str
    transport: str = "TCP"
    description: str = ""
    port: int = 1414
    address: str = ""
    control: str = "MANUAL"
    is_started: bool | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether ``run`` listens here."""
        return self.control != "MANUAL" if self.is_started is None else self.is_started


DEFAULT_CHANNELS: Final = (ServerChannel("SYSTEM.DEF.SVRCONN"), ServerChannel("SYSTEM.AUTO.SVRCONN"))
DEFAULT_AUTHENTICATION: Final = (AuthenticationInfo(DEFAULT_CONNAUTH),)
DEFAULT_LISTENERS: Final = (TcpListener("SYSTEM.DEFAULT.LISTENER.TCP"),)
# They count until the first SET CHLAUTH, which keeps those of them that it does not remove.
DEFAULT_RULES: Final = (
    ChannelAuthentication(
        "SYSTEM.ADMIN.SVRCONN",
        ADDRESSMAP,
        "Default rule to allow MQ Explorer access",
        address="*",
        user_source="CHANNEL",
    ),
    ChannelAuthentication(
        "SYSTEM.*",
        ADDRESSMAP,
        "Default rule to disable all SYSTEM channels",
        address="*",
        user_source="NOACCESS",
    ),
    ChannelAuthentication("*", BLOCKUSER, "Default rule to disallow privileged users", user_list=(ALL_PRIVILEGED,)),
)
