"""The socket of a connection, with TLS or without.

Several threads may use it: one receives while another sends. What waits, waits outside the lock, because a TLS
connection takes one call at a time.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from typing import Final

from commands.client.errors import CONNECT, ConnectionLostError, reason_word
from rfh2.errors import system_words

_RECEIVE_BYTES: Final = 262_144
_HOST, _TLS, _BROKEN = 2538, 2393, 2009


def lost(what: str, reason: int = _BROKEN) -> ConnectionLostError:
    """The error for a connection that is of no use any more."""
    return ConnectionLostError(what, reason, reason_word(reason))


class Transport:
    """A connected socket. Raises ConnectionLostError from everything."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._socket = connected
        self._turn = threading.Lock()
        self._in, self._out = select.poll(), select.poll()
        self._in.register(connected, select.POLLIN)
        self._out.register(connected, select.POLLOUT)

    def receive(self, timeout_s: float) -> bytes | None:
        """What comes; None where nothing does in this time."""
        end_s = time.monotonic() + timeout_s
        while True:
            pending = isinstance(self._socket, ssl.SSLSocket) and self._socket.pending()
            if not pending and not self._in.poll(max(0.0, end_s - time.monotonic()) * 1_000):
                return None
            with self._turn:
                try:
                    data = self._socket.recv(_RECEIVE_BYTES)
                except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    continue  # a part of what TLS needs
                except (OSError, ValueError) as error:
                    raise lost(f"the connection is broken: {_words(error)}") from error
            if not data:
                raise lost("the queue manager closed the connection")
            return data

    def send(self, data: bytes | bytearray, timeout_s: float) -> None:
        """Send all of it; the other end must take something within this time."""
        view = memoryview(data)
        while view:
            with self._turn:
                try:
                    sent = self._socket.send(view[:_RECEIVE_BYTES])
                except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    sent = 0
                except (OSError, ValueError) as error:
                    raise lost(f"the connection is broken: {_words(error)}") from error
            view = view[sent:]
            if view and not sent and not self._out.poll(timeout_s * 1_000):
                raise lost(f"the queue manager took nothing of what was sent to it in {timeout_s:g} s")

    def close(self) -> None:
        """Close it at once."""
        with self._turn:
            self._socket.close()


def connected(
    places: Sequence[tuple[str, int]], tls: ssl.SSLContext | None, timeout_s: float, what: str = CONNECT
) -> Transport:
    """The first of *places* that takes a connection. Raises ConnectionLostError: what the last one said."""
    failure = lost(f"{what}: no address is given", _HOST)
    for host, port in places:
        try:
            plain = socket.create_connection((host, port), timeout_s)
        except (OSError, UnicodeError) as error:
            failure = lost(f"{what} to {host}({port}): {_words(error)}", _HOST)
            continue
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return Transport(plain if tls is None else tls.wrap_socket(plain, server_hostname=host))
        except (OSError, ValueError) as error:
            plain.close()
            failure = lost(f"{what} to {host}({port}) with TLS: {_words(error)}", _TLS)
    raise failure


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return (error.reason or "the handshake failed").replace("_", " ").lower()
    return system_words(error) if isinstance(error, OSError) else str(error)
