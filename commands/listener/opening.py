"""The listener that ``--listen`` and the table [listener] of the configuration ask for."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path
from typing import Final

from commands.broker.authority import GroupsOf, no_groups
from commands.config.settings import ChannelRule, ConfigError, ListenerConfig, ListenerTls
from commands.config.urls import is_loopback, parse_listen
from commands.listener.passwords import IsRight, by_pam, in_users_file
from commands.listener.security import Security
from commands.listener.server import Listener, ListenerOptions
from commands.listener.session import Bounds
from commands.qmgr.store import Durability, QueueManagerStore

_MEGABYTE: Final = 1_000_000


def listener_of(
    config: ListenerConfig,
    listen: str | None,
    home: Path,
    qmgr: str,
    durability: Durability,
    groups_of: GroupsOf = no_groups,
) -> Callable[[], Listener] | None:
    """Makes the listener; None where none is asked for. listen: of the command line, which comes first.

    groups_of: the groups of a user, for authority records.

    Raises ConfigError for what cannot be listened on, or would let anybody in.
    """
    where = listen or config.listen
    if where is None:
        return None
    host, port = parse_listen(where, "--listen")
    if not config.channels and not is_loopback(host):
        why = f"{host} can be reached from other machines: say in [listener.channels] who may connect"
        raise ConfigError("[listener]", why)
    is_right = _passwords(config)
    security = Security(_rules(config), is_right, config.connauth, groups_of)
    if security.requires_passwords and is_right is None:
        raise ConfigError("[listener]", "passwords are required, but there is no users_file")
    tls = None if config.tls is None else tls_context(config.tls, "[listener.tls]")
    if security.reads_passwords and tls is None and not (config.plain_passwords or is_loopback(host)):
        raise ConfigError(
            "[listener]",
            "passwords are sent as they are: add [listener.tls], listen on 127.0.0.1, set chckclnt to none, or "
            "plain_passwords to true",
        )
    options = ListenerOptions(
        host,
        port,
        Bounds(config.sharing, config.longest_message, config.heartbeat),
        config.connections,
        config.most_of_address,
        config.memory_megabytes * _MEGABYTE,
        tls=tls,
    )

    def open_store() -> QueueManagerStore:
        return QueueManagerStore.open(home, qmgr, durability=durability)

    return lambda: Listener(options, qmgr, open_store, security, groups_of)


def _rules(config: ListenerConfig) -> dict[str, ChannelRule]:
    for name, channel in config.channels.items():
        for network in channel.addresses:
            try:
                ip_network(network, strict=False)
            except ValueError as error:
                raise ConfigError(f"[listener.channels.{name}] addresses", str(error)) from error
    return config.channels or {"*": ChannelRule()}


def _passwords(config: ListenerConfig) -> IsRight | None:
    """What compares passwords; None where nothing is to compare them with. Raises ConfigError."""
    if config.connauth.authenmd == "pam":
        return by_pam(config.connauth.pam_service)
    return None if config.users_file is None else in_users_file(config.users_file)


def tls_context(files: ListenerTls, table: str) -> ssl.SSLContext:
    """What a server with these files needs. table: of the configuration, for errors. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(files.cert_file, files.key_file)
        if files.ca_file is not None:
            context.load_verify_locations(files.ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
    except OSError as error:
        raise ConfigError(table, f"the certificate or key cannot be used: {error}") from error
    return context
