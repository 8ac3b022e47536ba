"""What the console may do and for whom: from the options and the table [console] of the configuration.

On the loopback address it is for whoever is on this machine. Anywhere else it demands passwords, and TLS for them.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from commands.config.settings import ConfigError, ConsoleConfig
from commands.config.urls import is_loopback, parse_listen
from commands.listener.opening import tls_context
from commands.listener.passwords import IsRight, in_users_file
from rfh2.distribution import how_to_install

_LIBRARIES: Final = ("starlette", "uvicorn")


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """Where it listens, and what it allows. port: 0 for any.

    write: whether dead letters can be put again. is_right: compares passwords; None where nobody is asked for one. tls:
    None for plain HTTP. names: of the host, for browsers, beside its addresses and localhost.
    """

    host: str
    port: int
    write: bool = False
    is_right: IsRight | None = None
    tls: ssl.SSLContext | None = None
    names: tuple[str, ...] = ()

    @property
    def scheme(self) -> str:
        """``https`` or ``http``."""
        return "http" if self.tls is None else "https"


def console_options(config: ConsoleConfig, where: str, option: str, write: bool = False) -> ConsoleOptions:
    """What to open at *where*, ``[HOST:]PORT``. option: what says so, for errors. write: of the command line.

    Raises ConfigError for what cannot be listened on, and for what would let anybody in.
    """
    host, port = parse_listen(where, option)
    for library in _LIBRARIES:
        if find_spec(library) is None:
            raise ConfigError("the console", f"{library} is not installed; {how_to_install('console')}")
    if not is_loopback(host):
        lacking = [name for name, given in (("users_file", config.users_file), ("tls", config.tls)) if given is None]
        if lacking:
            why = f"{host} can be reached from other machines: give {' and '.join(lacking)} in the table [console] of"
            raise ConfigError(option, f"{why} --config, or listen on 127.0.0.1")
    users = config.users_file
    if users is not None and not users.is_file():
        why = f"{users} does not exist; make it with: qpubsub passwd --users {users} USER"
        raise ConfigError("[console] users_file", why)
    return ConsoleOptions(
        host,
        port,
        write or config.write,
        None if users is None else in_users_file(users),
        None if config.tls is None else tls_context(config.tls, "[console.tls]"),
        config.names,
    )
