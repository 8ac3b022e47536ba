"""Where a listener listens that obeys the LISTENER objects: which of them are started, and at which addresses."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from commands.broker.channel_objects import TcpListener
from commands.broker.connections import ListeningPlace
from commands.broker.objects import Objects
from commands.config.urls import is_loopback
from commands.disk.open_files import Acceptor
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork

_log: Final = logging.getLogger("qpubsub.listener")
_ALL: Final = ("", "*")
_LOOPBACK: Final = "127.0.0.1"


class Place(NamedTuple):
    """An address to listen at. why: what is to be said of it."""

    host: str
    port: int
    why: str = ""


def place_of(listener: TcpListener, accepts_any: bool, is_safe: bool) -> Place:
    """Where *listener* is to listen.

    One without IPADDR listens at all addresses, but at the loopback address alone as long as no channel is defined, or
    where passwords would come as they are. An IPADDR that is given is meant; then only the first holds. accepts_any: of
    ``ChannelRules``. is_safe: whether no password comes as it is.
    """
    host = "" if listener.address in _ALL else listener.address
    if host and is_loopback(host):
        return Place(host, listener.port)
    if accepts_any:
        return Place(_LOOPBACK, listener.port, "no channel is defined, so only programs of this machine may connect")
    if not is_safe:
        if not listener.address:
            return Place(_LOOPBACK, listener.port, "passwords come as they are: add [listener.tls], or give IPADDR")
        return Place(host, listener.port, "passwords come as they are, without TLS")
    return Place(host, listener.port)


def forget_stops(unit: EmbeddedUnitOfWork, objects: Objects) -> None:
    """STOP LISTENER holds until ``run`` begins again, except where nothing but START LISTENER starts it."""
    for each in objects.own_listeners.values():
        if each.control != "MANUAL" and each.is_started is False:
            unit.save_definition(replace(each, is_started=None))


class Places:
    """The sockets of started listeners. listen: listens at a place; gives what accepts there, and the port."""

    def __init__(self, listen: Callable[[str, int], Awaitable[tuple[Acceptor, int]]]) -> None:
        self._listen = listen
        self._open: dict[str, tuple[Place, Acceptor, int]] = {}

    @property
    def port(self) -> int:
        """The port of the first that listens; 0 where none does."""
        return next((port for _, _, port in self._open.values()), 0)

    async def obey(self, wanted: Mapping[str, Place]) -> None:
        """Listen at the *wanted* places, by the names of their listeners, and at no others.

        A place that cannot be had is logged.
        """
        for name, (place, acceptor, _) in list(self._open.items()):
            if wanted.get(name) != place:
                acceptor.close()
                del self._open[name]
                _log.info("listener %s: stopped", name)
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
            self._open[name] = (place, acceptor, port)
            if place.why:
                _log.warning("listener %s: %s", name, place.why)

    @property
    def told(self) -> list[ListeningPlace]:
        """Where it listens now."""
        return [ListeningPlace(name=name, host=at.host, port=port) for name, (at, _, port) in self._open.items()]

    def close(self) -> None:
        """Take no more connections."""
        for _, acceptor, _ in self._open.values():
            acceptor.close()
