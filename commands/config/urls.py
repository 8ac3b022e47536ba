"""The URLs of ``--queues`` and ``--topics``.

    mqtt://[user@]host[:1883]       an MQTT 5 broker
    mqtts://[user@]host[:8883]      the same, by TLS
    nats://[user@]host[:4222]       NATS with JetStream
    tls://[user@]host[:4222]        the same, by TLS
    kafka://[user@]host[:9092][,host[:port]]...     Kafka
    kafkas://[user@]host[:9093][,host[:port]]...    the same, by TLS
    mq://[user@]host[:1414][,host[:port]]/QMGR?channel=CHANNEL     IBM MQ, without its client
    mq:///QMGR                      the same, by a CCDT in JSON
    ibmmq://host[:1414]/QMGR?channel=CHANNEL      IBM MQ by client connection, the parameters in the URL
    ibmmq:///QMGR                   IBM MQ as the environment says: MQSERVER, or a CCDT

A password in a URL is refused: everyone who lists processes could see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from commands.config.settings import ConfigError

PORTS: Final = {
    "mqtt": 1883,
    "mqtts": 8883,
    "nats": 4222,
    "tls": 4222,
    "kafka": 9092,
    "kafkas": 9093,
    "ibmmq": 1414,
    "mq": 1414,
}
LOOPBACK: Final = "127.0.0.1"
_BY_TLS: Final = {"mqtts": "mqtt", "tls": "nats", "kafkas": "kafka"}
_OF_MQ: Final = ("ibmmq", "mq")
_WITH_MORE: Final = ("kafka://", "kafkas://")
_PARAMETERS: Final = {"ibmmq": frozenset({"channel"}), "mq": frozenset({"channel", "cipher"})}


@dataclass(frozen=True, slots=True)
class Address:
    """Where another broker is. host: "" if the environment gives it. qmgr, channel, cipher: for IBM MQ.

    more: other hosts, of Kafka or IBM MQ.
    """

    scheme: str
    host: str
    port: int
    user: str | None = None
    qmgr: str = ""
    channel: str | None = None
    more: tuple[str, ...] = ()
    cipher: str | None = None

    @property
    def secure(self) -> bool:
        """Whether the scheme asks for TLS."""
        return self.scheme in _BY_TLS

    @property
    def kind(self) -> str:
        """The kind of broker: the scheme for it without TLS; IBM MQ is one kind, whichever client reaches it."""
        return "ibmmq" if self.scheme in _OF_MQ else _BY_TLS.get(self.scheme, self.scheme)

    @property
    def needs_library(self) -> bool:
        """Whether IBM's client library reaches it."""
        return self.scheme == "ibmmq"

    @property
    def hosts(self) -> tuple[str, ...]:
        """``host:port`` of each host; none if the environment gives it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (f"{host}:{self.port}", *self.more) if host else ()

    def __str__(self) -> str:
        at = self.hosts[0] if self.host else ""
        return f"{self.scheme}://{at}" + (f"/{self.qmgr}" if self.qmgr else "")


def parse_address(text: str, option: str) -> Address:
    """Read *text*, given to *option*. Raises ConfigError, which never shows a password."""
    more: tuple[str, ...] = ()
    if text.startswith(_WITH_MORE):
        text, *others = text.rstrip("/").split(",")
        more = tuple(others)
    elif text.startswith("mq://"):
        hosts, slash, rest = text.removeprefix("mq://").partition("/")
        first, *others = hosts.split(",")
        text, more = f"mq://{first}{slash}{rest}", tuple(others)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ConfigError(option, f"it is not a URL: {error}") from None
    known = ", ".join(f"{scheme}://" for scheme in PORTS)
    if parts.scheme not in PORTS:
        raise ConfigError(option, f"{parts.scheme or 'a bare word'} is not one of {known}")
    if parts.password is not None:
        raise ConfigError(option, "a password has no place in a URL; name password_file or password_env in --config")
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(set(given) - _PARAMETERS.get(parts.scheme, frozenset())):
        raise ConfigError(option, f"{parts.scheme}:// has no parameter {unknown[0]}")
    path = unquote(parts.path.strip("/"))
    if parts.scheme in _OF_MQ:
        if not path or "/" in path:
            raise ConfigError(option, f"the queue manager's name is missing: {parts.scheme}://host:1414/QMGR")
    elif path and parts.hostname:
        raise ConfigError(option, f"{parts.scheme}:// takes no path; the prefix of topics is a key of --config")
    elif not parts.hostname:
        raise ConfigError(option, f"the host is missing: {parts.scheme}://host")
    user = unquote(parts.username) if parts.username else None
    host = parts.hostname or ""
    return Address(
        parts.scheme,
        host,
        port or PORTS[parts.scheme],
        user,
        path if parts.scheme in _OF_MQ else "",
        given.get("channel"),
        more,
        given.get("cipher"),
    )


def parse_mq_address(text: str, option: str) -> Address:
    """The queue manager of ``mq://`` or ``ibmmq://``, given to *option*. Raises ConfigError for anything else."""
    address = parse_address(text, option)
    if address.scheme not in _OF_MQ:
        raise ConfigError(option, f"{address.scheme}:// has no queues; mq:// and ibmmq:// have")
    return address


def is_mq_address(text: str) -> bool:
    """Whether *text* is a URL of a queue manager that is reached without IBM's client, and no name."""
    return text.startswith("mq://")


def is_topic_address(text: str) -> bool:
    """Whether *text* is a URL of Kafka, and no path."""
    return text.startswith(_WITH_MORE)


def parse_topic_address(text: str, option: str) -> tuple[Address, str]:
    """The cluster and the topic of ``kafka://host[:9092][,host...]/TOPIC``, given to *option*. Raises ConfigError."""
    scheme, _, rest = text.partition("://")
    hosts, _, topic = rest.rpartition("/")
    if not hosts or not topic:
        raise ConfigError(option, f"the topic is missing: {scheme}://{rest.rstrip('/')}/TOPIC")
    return parse_address(f"{scheme}://{hosts}", option), topic


def parse_listen(where: str, option: str) -> tuple[str, int]:
    """Host and port of ``[HOST:]PORT``, the loopback address where there is no host. Raises ConfigError.

    option: the option or key that says so.
    """
    host, _, port = where.rpartition(":")
    if not port.isdecimal() or not 0 <= int(port) <= 65_535:
        raise ConfigError(option, f"{where} is not HOST:PORT or a port, as in 127.0.0.1:1414")
    return host.strip("[]") or LOOPBACK, int(port)


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach what listens on *host*."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
