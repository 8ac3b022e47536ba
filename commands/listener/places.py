"""Where a listener listens that obeys the LISTENER objects: which of them are started, and at which addresses."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from commands.broker.channel_authentication import ChannelRules
from commands.broker.channel_objects import TcpListener
from commands.broker.connections import ListeningPlace
from commands.config.urls import is_loopback
from commands.disk.open_files import Acceptor

_log: Final = logging.getLogger("qpubsub.listener")
_ALL: Final = ("", "*")
_LOOPBACK: Final = "127.0.0.1"


class Place(NamedTuple):
    """An address to listen at. why: what is to be said of it."""

    host: str
    port: int
    why: str = ""


def place_of(listener: TcpListener, rules: ChannelRules, reads_passwords: bool, has_tls: bool) -> Place:
    """Where *listener* is to listen.

    One without IPADDR listens at all addresses, but at the loopback address alone as long as no channel is defined, or
    where passwords would come unprotected. An IPADDR that is given is meant; then only the first holds.
    """
    host = "" if listener.address in _ALL else listener.address
    if host and is_loopback(host):
        return Place(host, listener.port)
    if rules.accepts_any:
        return Place(_LOOPBACK, listener.port, "no channel is defined, so only programs of this machine may connect")
    if reads_passwords and not has_tls:
        if not listener.address:
            return Place(_LOOPBACK, listener.port, "passwords come as they are: add [listener.tls], or give IPADDR")
        return Place(host, listener.port, "passwords come as they are, without TLS")
    return Place(host, listener.port)


class Places:
    """The sockets of started listeners. listen: listens at a place; gives what accepts there, and the port."""

    def __init__(self, listen: Callable[[str, int], Awaitable[tuple[Acceptor, int]]]) -> None:
        self._listen = listen
        self._open: dict[str, tuple[Place, Acceptor]] = {}

    async def obey(self, wanted: Mapping[str, Place]) -> int:
        """Listen at the *wanted* places, by the names of their listeners, and at no others.

        Returns the port of the first that is new; 0 for none. A place that cannot be had is logged.
        """
        for name, (place, acceptor) in list(self._open.items()):
            if wanted.get(name) != place:
                acceptor.close()
                del self._open[name]
                _log.info("listener %s: stopped", name)
        first = 0
        for name, place in wanted.items():
            if name in self._open:
                continue
            try:
                acceptor, port = await self._listen(place.host, place.port)
            except OSError as error:
                _log.error(
                    "listener %s: cannot listen on %s:%d: %s", name, place.host or "*", place.port, error.strerror
                )
                continue
            self._open[name] = (place, acceptor)
            first = first or port
            if place.why:
                _log.warning("listener %s: %s", name, place.why)
        return first

    @property
    def told(self) -> list[ListeningPlace]:
        """Where it listens now."""
        return [ListeningPlace(name=name, host=at.host, port=at.port) for name, (at, _) in self._open.items()]

    def close(self) -> None:
        """Take no more connections."""
        for _, acceptor in self._open.values():
            acceptor.close()
