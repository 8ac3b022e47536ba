"""Which requests are answered.

Host     a page elsewhere can give its own name the address of this machine (DNS rebinding), and would then read the
         console as its own. It cannot change the name that the browser sends: only addresses of this machine, localhost
         and names of the configuration are served.
Origin   a form elsewhere can be sent here. A browser says where it comes from: forms are taken from our pages only.
Token    each form has a number that only our own pages can know; it belongs to the session.
Session  a cookie, which pages elsewhere cannot send (SameSite) and scripts cannot read (HttpOnly). Where passwords are
         asked for, it counts only after a right one.
"""

from __future__ import annotations

import hmac
import secrets
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from commands.config.access import IsRight, in_users_file, tls_context
from commands.config.settings import ConfigError, ConsoleConfig
from commands.config.urls import is_loopback, parse_listen
from rfh2.distribution import how_to_install

# What the console may do and for whom: from the options and the table [console] of the configuration.
#
# On the loopback address it is for whoever is on this machine. Anywhere else it demands passwords, and TLS for them.

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
            raise ConfigError("the console", f"it needs the package {library}: {how_to_install('console')}")
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


_LASTS_S: Final = 12 * 3600.0
_MOST_SESSIONS: Final = 1_000
_POLICY: Final = {
    "default-src": "'none'",
    "style-src": "'self'",
    "script-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS: Final = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of each answer."""


@dataclass(frozen=True, slots=True)
class Session:
    """One browser. user: who gave a right password; "" where none is asked for. token: for its forms."""

    key: str
    token: str
    user: str = ""


class Doorkeeper:
    """Answers for one console. clock: seconds that only grow."""

    def __init__(self, options: ConsoleOptions, clock: Callable[[], float]) -> None:
        self._options, self._clock = options, clock
        self._secret = secrets.token_bytes(32)
        self._users: dict[str, tuple[str, float]] = {}
        names = ("localhost", *options.names) if is_loopback(options.host) else options.names
        self._names = frozenset(name.lower() for name in names)

    @property
    def cookie(self) -> str:
        """The name of the cookie: browsers send it to all ports of a host."""
        return f"qpubsub-console-{self._options.port}"

    @property
    def asks(self) -> bool:
        """Whether a password is needed."""
        return self._options.is_right is not None

    def refuses_host(self, host: str | None) -> bool:
        """Whether nothing may be answered to a request with this Host."""
        try:
            parts = urlsplit(f"//{host or ''}")
            name = (parts.hostname or "").lower().rstrip(".")
        except ValueError:
            return True
        if parts.netloc != host or "@" in parts.netloc:
            return True  # more than a name and a port: no browser sends it
        if name in self._names:
            return False
        try:
            address = ip_address(name)
        except ValueError:
            return True
        return is_loopback(self._options.host) and not address.is_loopback

    def refuses_origin(self, headers: Mapping[str, str]) -> bool:
        """Whether a change with these headers does not come from a page of ours."""
        origin = headers.get("origin")
        if origin is None:
            # No browser of these years leaves both out.
            return headers.get("sec-fetch-site") != "same-origin"
        return origin.lower() != f"{self._options.scheme}://{headers.get('host', '')}".lower()

    def session(self, key: str | None) -> Session | None:
        """The session of a cookie; None where there is none that counts."""
        if key is None or not (key.isascii() and key.isprintable()):
            return None
        if not self.asks:
            return Session(key, self._token(key))
        user, until = self._users.get(key, ("", 0.0))
        return Session(key, self._token(key), user) if self._clock() < until else None

    def new_session(self, user: str = "") -> Session:
        """A session for a browser that has none. user: who gave a right password."""
        key = secrets.token_urlsafe(32)
        if user:
            now = self._clock()
            self._users = {old: about for old, about in self._users.items() if now < about[1]}
            while len(self._users) >= _MOST_SESSIONS:
                del self._users[next(iter(self._users))]
            self._users[key] = user, now + _LASTS_S
        return Session(key, self._token(key), user)

    def end(self, session: Session) -> None:
        """It counts no more."""
        self._users.pop(session.key, None)

    def has_token(self, session: Session, token: str) -> bool:
        """Whether a form has the token of the session."""
        return hmac.compare_digest(token.encode(), session.token.encode())

    def _token(self, key: str) -> str:
        return hmac.new(self._secret, key.encode(), "sha256").hexdigest()
