"""Where a queue manager is: by an address of the form ``mq://``, by the configuration, or by a CCDT in JSON.

mq://[user@]host[:1414][,host[:port]]/QMGR?channel=NAME[&cipher=ANY_TLS12_OR_HIGHER]
mq:///QMGR                  the CCDT that [queues] ccdt or MQCCDTURL names, or MQSERVER
"""

from __future__ import annotations

import json
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from commands.client.connection import Place
from commands.config.settings import ConfigError, QueuesConfig
from commands.config.urls import Address
from rfh2.errors import system_words

_PORT: Final = 1_414
_CALLED: Final = "mq://"
_NO_CIPHER: Final = ("", "NONE")
_CONNECTION: Final = re.compile(r"\s*([^(),\s]+)(?:\((\d{1,5})\))?\s*")


@dataclass(frozen=True, slots=True)
class Channel:
    """A client connection channel of a CCDT. qmgr: "" for any. cipher: "" for none."""

    name: str
    addresses: tuple[tuple[str, int], ...]
    qmgr: str = ""
    cipher: str = ""
    sharing: int = 10
    heartbeat_s: int = 300
    longest_message: int = 104_857_600


def place_of(address: Address, config: QueuesConfig, application: str = "qpubsub") -> Place:
    """How to connect to *address*. Raises ConfigError."""
    name = address.channel or config.channel
    if address.host:
        if name is None:
            raise ConfigError(_CALLED, "the channel is missing: mq://host/QMGR?channel=NAME")
        channel = Channel(name, tuple(map(_host, address.hosts)))
    else:
        channel = _of_environment(address.qmgr, name, config)
    cipher = address.cipher or config.cipher or channel.cipher
    if config.key_repository is not None and config.ca_file is None:
        why = "mq:// reads ca_file, cert_file and key_file, which are PEM; key_repository is for ibmmq://"
        raise ConfigError("[queues] key_repository", why)
    return Place(
        channel.addresses,
        channel.name,
        "" if address.qmgr.startswith("*") else address.qmgr,
        address.user or config.user,
        config.password(),
        _tls(cipher or "", config),
        application,
        channel.sharing,
        channel.heartbeat_s,
        channel.longest_message,
    )


def _host(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal():
        return text.strip("[]"), _PORT
    return host.strip("[]"), int(port)


def _tls(cipher: str, config: QueuesConfig) -> ssl.SSLContext | None:
    if cipher.upper() in _NO_CIPHER and config.ca_file is None and config.cert_file is None:
        return None
    try:
        context = ssl.create_default_context(cafile=None if config.ca_file is None else str(config.ca_file))
        if config.cert_file is not None:
            context.load_cert_chain(config.cert_file, config.key_file)
    except (OSError, ValueError) as error:
        raise ConfigError("[queues] ca_file, cert_file, key_file", system_words(error)) from error
    return context


def _of_environment(qmgr: str, name: str | None, config: QueuesConfig) -> Channel:
    where = config.ccdt or os.environ.get("MQCCDTURL")
    if where is not None:
        return _of_ccdt(where, qmgr, name)
    server = os.environ.get("MQSERVER")
    if server is None:
        raise ConfigError(_CALLED, "the host is missing: mq://host/QMGR?channel=NAME, [queues] ccdt, or MQCCDTURL")
    parts = server.split("/", 2)
    if len(parts) != 3 or parts[1].upper() != "TCP":
        raise ConfigError("MQSERVER", f"{server} is not CHANNEL/TCP/HOST(PORT)")
    return Channel(name or parts[0], connection_list(parts[2], "MQSERVER"))


def connection_list(text: str, called: str) -> tuple[tuple[str, int], ...]:
    """The addresses of ``host(1414),host(1415)``, as CONNAME has them. Raises ConfigError."""
    parts = [_CONNECTION.fullmatch(part) for part in text.split(",")]
    found = tuple((part[1], int(part[2] or _PORT)) for part in parts if part is not None)
    if len(found) < len(parts) or any(port > 65_535 for _, port in found):
        raise ConfigError(called, f"{text} is not HOST(PORT), nor a list of these")
    return found


def _of_ccdt(where: str, qmgr: str, name: str | None) -> Channel:
    path = Path(where.removeprefix("file://"))
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError("[queues] ccdt", f"{path} is a binary CCDT; mq:// reads one in JSON") from error
    except ValueError as error:
        raise ConfigError("[queues] ccdt", f"{path} is not JSON: {error}") from error
    except OSError as error:
        raise ConfigError("[queues] ccdt", f"{path}: {system_words(error)}") from error
    for channel in channels_of(table, str(path)):
        if channel.qmgr in ("", qmgr.lstrip("*")) and name in (None, channel.name):
            return channel
    raise ConfigError("[queues] ccdt", f"{path} has no client connection for queue manager {qmgr}")


def channels_of(table: Any, called: str) -> list[Channel]:
    """The client connections of a CCDT in JSON. Raises ConfigError."""
    channels = []
    entries = table.get("channel") if isinstance(table, Mapping) else None
    if not isinstance(entries, list):
        raise ConfigError(called, "it has no list named channel")
    for entry in entries:
        if not isinstance(entry, Mapping) or entry.get("type", "clientConnection") != "clientConnection":
            continue
        try:
            client = entry.get("clientConnection", {})
            sharing = entry.get("connectionManagement", {})
            lines = client["connection"]
            channels.append(
                Channel(
                    entry["name"],
                    tuple((line["host"], int(line.get("port", _PORT))) for line in lines),
                    client.get("queueManager", ""),
                    entry.get("transmissionSecurity", {}).get("cipherSpecification", ""),
                    int(sharing.get("sharingConversations", 10)),
                    int(sharing.get("heartbeatInterval", 300)),
                    int(entry.get("general", {}).get("maximumMessageLength", 104_857_600)),
                )
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(called, f"channel {entry.get('name')} is not as in a CCDT: {error}") from error
    return channels
