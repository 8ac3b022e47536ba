"""The listener that ``--listen`` and the table [listener] of the configuration ask for."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_network
from typing import Final

from commands.broker.authority import GroupsOf, no_groups
from commands.broker.objects import Objects
from commands.config.home import Home
from commands.config.settings import ChannelRule, ConfigError, ListenerConfig
from commands.config.urls import is_loopback, parse_listen
from commands.listener.passwords import IsRight, by_pam, in_users_file
from commands.listener.security import Security, requires_passwords, tls_context
from commands.listener.server import Listener, ListenerOptions
from commands.listener.session import Bounds
from commands.qmgr.store import Durability, QueueManagerStore
from rfh2.errors import StoreError

_MEGABYTE: Final = 1_000_000


def listener_of(
    config: ListenerConfig,
    listen: str | None,
    home: Home,
    qmgr: str,
    durability: Durability,
    groups_of: GroupsOf = no_groups,
) -> Callable[[], Listener] | None:
    """Makes the listener; None where none is asked for. listen: of the command line, which comes first.

    Where neither says where to listen, the LISTENER objects of the queue manager do, if any was defined.
    groups_of: the groups of a user, for authority records.

    Raises ConfigError for what cannot be listened on, or would let anybody in.
    """
    where = listen or config.listen
    defined = _definitions(home, qmgr)
    if where is None and (defined is None or not defined.own_listeners):
        return None
    host, port = (None, 0) if where is None else parse_listen(where, "--listen")
    is_right = None if config.users_file is None else in_users_file(config.users_file)
    security = Security(_rules(config), is_right, config.connauth, groups_of, _pam(config, defined))
    rules = security.rules(defined)
    if host is not None and not is_loopback(host) and (defined is None or rules.accepts_any) and not config.channels:
        why = f"{host} can be reached from other machines: say in [listener.channels] who may connect"
        raise ConfigError("[listener]", f"{why}, or with DEFINE CHANNEL and SET CHLAUTH")
    if where is not None and requires_passwords(rules) and security.compares(rules) is None:
        raise ConfigError("[listener]", "passwords are required, but there is no users_file")
    tls = None if config.tls is None else tls_context(config.tls, "[listener.tls]")
    is_safe = tls is not None or config.plain_passwords or host is None or is_loopback(host)
    if security.reads_passwords(rules) and not is_safe:
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
        plain_passwords=config.plain_passwords,
    )

    def open_store() -> QueueManagerStore:
        return QueueManagerStore.open(home, qmgr, durability=durability)

    return lambda: Listener(options, qmgr, open_store, security, groups_of)


def _definitions(home: Home, qmgr: str) -> Objects | None:
    """Those of the queue manager; None where it cannot be opened, which is for others to say."""
    try:
        with QueueManagerStore.open(home, qmgr) as store:
            return store.load_objects()
    except StoreError:
        return None


def _rules(config: ListenerConfig) -> dict[str, ChannelRule]:
    for name, channel in config.channels.items():
        for network in channel.addresses:
            try:
                ip_network(network, strict=False)
            except ValueError as error:
                raise ConfigError(f"[listener.channels.{name}] addresses", str(error)) from error
    return config.channels


def _pam(config: ListenerConfig, defined: Objects | None) -> IsRight | None:
    """What asks PAM, where anything says that it is to be asked. Raises ConfigError where it is not installed."""
    methods = {each.method for each in defined.authentication.values()} if defined is not None else set()
    return by_pam(config.connauth.pam_service) if "PAM" in methods or config.connauth.authenmd == "pam" else None
