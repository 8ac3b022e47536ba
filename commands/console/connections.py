"""The connections of a console: so many at a time, and each has to say what it wants in time."""

from __future__ import annotations

import asyncio
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS: Final = 200
# Whoever sends a request more slowly, or nothing at all, must not keep a connection: the head, and what follows it.
HEAD_S: Final = 10.0
BODY_S: Final = 60.0


def protocol_of(most: int, head_s: float = HEAD_S, body_s: float = BODY_S) -> type[H11Protocol]:
    """What uvicorn speaks HTTP by. most: connections at a time; further ones are closed. head_s, body_s: seconds."""

    class Limited(H11Protocol):
        _late: asyncio.TimerHandle | None = None
        _is_in_body = False

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > most:
                transport.abort()
                return
            self._look()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def handle_events(self) -> None:
            super().handle_events()
            self._look()

        def _look(self) -> None:
            """Begin to measure, or end it, by how much of the request has come."""
            state = self.conn.their_state
            if state is h11.IDLE and self._late is None:
                self._late = self.loop.call_later(head_s, self._end)
            elif state is h11.SEND_BODY and not self._is_in_body:
                self._stop()
                self._late, self._is_in_body = self.loop.call_later(body_s, self._end), True
            elif state not in (h11.IDLE, h11.SEND_BODY):
                self._stop()

        def _stop(self) -> None:
            if self._late is not None:
                self._late.cancel()
            self._late, self._is_in_body = None, False

        def _end(self) -> None:
            self.transport.abort()

    return Limited
