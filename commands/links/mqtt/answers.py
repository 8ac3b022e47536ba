"""The answers of the MQTT broker to a connection, a SUBSCRIBE and a PUBLISH, and missing answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from commands.links.mqtt.packets import MqttPublication

_FAILURE: Final = 0x80


@dataclass(frozen=True, slots=True)
class Received:
    """A publication that came. mid: its packet identifier, to acknowledge it, in *connection*. identifiers: of the
    subscriptions that it was sent for. again: whether it may have come before."""

    packet: MqttPublication
    mid: int
    connection: int
    identifiers: tuple[int, ...]
    again: bool


@dataclass(frozen=True, slots=True)
class Granted:
    """What the broker says when it accepts a connection (CONNACK). max_packet: bytes, None for no limit."""

    session_present: bool
    max_qos: int = 2
    retain: bool = True
    max_packet: int | None = None
    receive_maximum: int = 65_535
    identifiers: bool = True
    session_expiry_s: int | None = None


class MqttConnection:
    """One connection, from the attempt to its end. number: of those that the broker accepted."""

    def __init__(self) -> None:
        self.paho: Any = None
        self.number = 0
        self.socket: Any = None
        self.answered = False
        self.since = time.monotonic()
        self.lock = threading.Lock()
        self.tickets: dict[int, Ticket] = {}
        self.early: dict[int, tuple[int, str]] = {}
        self.refusals: dict[int, tuple[int, str]] = {}
        self.ended = threading.Event()
        self.blames = False

    def end(self) -> None:
        """The connection is gone: no request on it gets an answer any more."""
        with self.lock:
            self.ended.set()
            left, self.tickets = list(self.tickets.values()), {}
        for ticket in left:
            ticket.lose()


class Ticket:
    """An answer to a SUBSCRIBE or UNSUBSCRIBE that is waited for."""

    __slots__ = ("_connection", "_done", "_lost", "_refused", "code", "name")

    def __init__(self, connection: MqttConnection, refused: Callable[[], None] | None = None) -> None:
        self._connection, self._refused = connection, refused
        self._done = threading.Event()
        self._lost = False
        self.code, self.name = 0, ""

    def settle(self, code: int, name: str) -> None:
        """The answer has arrived."""
        self.code, self.name = code, name
        if self.refused and self._refused is not None:
            self._refused()
        self._done.set()

    def lose(self) -> None:
        """The connection is gone, so the answer will not arrive."""
        self._lost = True
        self._done.set()

    @property
    def refused(self) -> bool:
        """Whether it is a refusal."""
        return self.code >= _FAILURE

    @property
    def is_blamed(self) -> bool:
        """Whether the broker ended the connection instead of answering, and may have done so because of this."""
        return self._lost and self._connection.blames

    def wait(self, timeout_s: float) -> bool:
        """Wait for the answer; whether it arrived."""
        return self._done.wait(timeout_s) and not self._lost


class SentPacket:
    """A publication on its way, until the broker has answered for it or the connection is gone."""

    __slots__ = ("_connection", "_info")

    def __init__(self, info: Any, connection: MqttConnection) -> None:
        self._info, self._connection = info, connection

    def wait(self, timeout_s: float) -> bool:
        """Wait for the answer; whether it came."""
        if self._info.rc:
            # The connection broke at that moment; the packet may have been sent before.
            self._connection.ended.wait(timeout_s)
            return False
        self._info.wait_for_publish(timeout_s)
        return bool(self._info.is_published())

    @property
    def is_lost(self) -> bool:
        """Whether the connection is gone, so that no answer comes any more."""
        return self._connection.ended.is_set() and (self._info.rc != 0 or not self._info.is_published())

    @property
    def is_blamed(self) -> bool:
        """Whether the broker ended the connection instead of answering, and may have done so because of this."""
        return self.is_lost and self._connection.blames

    def refusal(self) -> tuple[int, str] | None:
        """Reason code and its name where the broker did not take it; ask once, after the answer."""
        return self._connection.refusals.pop(self._info.mid, None)


def refusal(what: str, code: int, name: str) -> str:
    """That the broker refuses *what*, with MQTT 5's reason code and its name."""
    return f"the MQTT broker refuses {what}: {name} (0x{code:02X})"
