"""Who sends a request too slowly, or is one too many, loses the connection; no server and no clock is needed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from commands.console.server import protocol_of

HEAD = b"POST /decode HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n"


class Timers:
    """A loop that runs nothing, and keeps what is to happen later: seconds, by what is to be called."""

    def __init__(self) -> None:
        self.waiting: dict[object, tuple[float, Callable[[], None]]] = {}

    def call_later(self, seconds: float, call: Callable[[], None]) -> SimpleNamespace:
        key = object()
        self.waiting[key] = seconds, call
        return SimpleNamespace(cancel=lambda: self.waiting.pop(key, None))

    def create_task(self, work: Coroutine[Any, Any, None], **_: object) -> Mock:
        work.close()
        return Mock()

    @property
    def seconds(self) -> list[float]:
        return [seconds for seconds, _ in self.waiting.values()]

    def pass_by(self) -> None:
        for _, call in list(self.waiting.values()):
            call()


class Client:
    """A connection. is_ended: whether the server has broken it."""

    def __init__(self, made: H11Protocol) -> None:
        self.protocol, self.is_ended = made, False
        nothing = {"is_closing": lambda: False, "resume_reading": lambda: None, "pause_reading": lambda: None}
        transport = SimpleNamespace(get_extra_info=lambda _: None, abort=self._end, **nothing)
        made.connection_made(transport)  # type: ignore[arg-type]

    def _end(self) -> None:
        self.is_ended = True


@pytest.fixture
def timers() -> Timers:
    return Timers()


@pytest.fixture
def connect(timers: Timers) -> Callable[[], Client]:
    async def app(_scope: object, _receive: object, _send: object) -> None: ...

    config, state = Config(app, log_config=None, lifespan="off"), ServerState()
    kind = protocol_of(2, head_s=10, body_s=60)
    return lambda: Client(kind(config, state, {}, timers))  # type: ignore[arg-type]


def test_a_head_has_to_come_in_time(connect: Callable[[], Client], timers: Timers) -> None:
    client = connect()
    for byte in HEAD[:-2]:
        client.protocol.data_received(bytes([byte]))
        assert timers.seconds == [10], "each byte gives it no more time"
    timers.pass_by()
    assert client.is_ended


def test_a_body_has_more_time_and_an_answer_as_much_as_it_takes(connect: Callable[[], Client], timers: Timers) -> None:
    client = connect()
    client.protocol.data_received(HEAD + b"da")
    assert timers.seconds == [60]
    client.protocol.data_received(b"t")
    assert timers.seconds == [60]
    client.protocol.data_received(b"a")
    assert timers.seconds == []
    assert not client.is_ended


def test_so_many_connections_and_no_more(connect: Callable[[], Client], timers: Timers) -> None:
    one, two, three = connect(), connect(), connect()
    assert [each.is_ended for each in (one, two, three)] == [False, False, True]
    assert len(timers.seconds) == 2
    two.protocol.connection_lost(ConnectionResetError())
    three.protocol.connection_lost(ConnectionResetError())
    assert not connect().is_ended
