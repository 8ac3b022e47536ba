"""A queue manager that sends what it must not: the client ends with a sentence, neither hangs nor grows.

Rows of docs/conformance.md: MQC-5.
"""

from __future__ import annotations

import random
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from commands.client import connection, line
from commands.client.connection import Connection, Place
from commands.client.errors import MqError
from rfh2.channel.segments import CONFIRM, FIRST, LAST, WHOLE, SegmentHeader, SegmentType
from rfh2.errors import QPubSubError
from rfh2.mqi_constants import MQOO_INPUT_SHARED, MQOO_OUTPUT
from rfh2.mqmd import Mqmd
from tests.commands.listener.conftest import listener_at
from tests.waiting import PATIENCE_S

SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(12, 200))]


@contextmanager
def between(port: int, change: Callable[[int, bytes], bytes | None], timeout_s: float = PATIENCE_S) -> Iterator[Place]:
    """A place behind which a listener answers, each of whose segments *change* may change; None closes the socket."""
    server = socket.create_server(("127.0.0.1", 0))
    sockets: list[socket.socket] = []

    def pump(source: socket.socket, target: socket.socket, changes: bool) -> None:
        count = 0
        with suppress(OSError):
            while data := source.recv(65_536):
                changed = change(count, data) if changes else data
                count += 1
                if changed is None:
                    break
                target.sendall(changed)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                peer, _ = server.accept()
                real = socket.create_connection(("127.0.0.1", port))
                sockets.extend((peer, real))
                for arguments in ((peer, real, False), (real, peer, True)):
                    threading.Thread(target=pump, args=arguments, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield Place((("127.0.0.1", server.getsockname()[1]),), "C", "QM1", timeout_s=timeout_s)
    finally:
        server.close()
        for each in sockets:
            each.close()


def session(place: Place) -> None:
    """What a program does."""
    with Connection.to(place) as made:
        handle = made.open(connection.Target("Q"), MQOO_INPUT_SHARED | MQOO_OUTPUT).handle
        made.put(handle, Mqmd(version=2).encode(), b"x" * 40_000, 4)
        made.get(handle, connection.Wanted(4))
        made.get(handle, connection.Wanted(4, 50))
        made.inquire(handle, [3])
        made.commit()


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits two minutes for an answer here."""
    monkeypatch.setattr(connection, "CALL_S", 0.3)
    monkeypatch.setattr(connection, "_GRACE_S", 0.05)
    monkeypatch.setattr(line, "SEND_S", 0.3)


@pytest.mark.rule("MQC-5")
@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_comes_the_client_ends_with_a_reason(home: Path, seed: int) -> None:
    """Bytes changed, left out, doubled, cut, or the connection closed, at a place that the seed gives."""
    chance = random.Random(seed)
    at, how = chance.randrange(14), seed % 5

    def change(count: int, data: bytes) -> bytes | None:
        if count != at:
            return data
        where = chance.randrange(len(data))
        if how == 0:
            return data[:where] + bytes([data[where] ^ (1 << chance.randrange(8))]) + data[where + 1 :]
        if how == 1:
            return data[:where] + bytes(chance.randrange(256) for _ in range(20)) + data[where + 20 :]
        if how == 2:
            return data[:where]
        return data + data if how == 3 else None

    with listener_at(home) as port, between(port, change, 0.5) as place, suppress(MqError):
        session(place)


def hostile(answers: Callable[[int], bytes]) -> tuple[Place, socket.socket]:
    """A place where nothing is read, and *answers* are sent until the client is gone."""
    server = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        with suppress(OSError):
            peer, _ = server.accept()
            with peer:
                count = 0
                while True:
                    peer.sendall(answers(count))
                    count += 1

    threading.Thread(target=run, daemon=True).start()
    return Place((("127.0.0.1", server.getsockname()[1]),), "C", "QM1", timeout_s=0.3), server


HEADER = SegmentHeader(SegmentType.INITIAL_DATA, order="little")
FLOODS: list[tuple[str, Callable[[int], bytes]]] = [
    ("not a segment", lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    ("a length of nothing", lambda _: b"TSH \0\0\0\0" + bytes(20)),
    ("a length beyond all", lambda _: b"TSH \x7f\xff\xff\xff" + bytes(20)),
    ("heartbeats for ever", lambda _: HEADER._replace(kind=9, flags=WHOLE | CONFIRM).write(b"")),
    ("a reply to nothing", lambda _: HEADER._replace(kind=0x95).write(bytes(100))),
    ("a message for nobody", lambda _: HEADER._replace(kind=0x0D, conversation=1).write(bytes(500))),
    ("a reply without an end", lambda n: HEADER._replace(kind=0x91, flags=0 if n else FIRST).write(bytes(30_000))),
    ("INITIAL_DATA for ever", lambda _: HEADER._replace(flags=2).write(b"ID  \x11" + bytes(235))),
    ("a level that is none", lambda _: HEADER.write(b"ID  \xff" + bytes(235))),
    ("STATUS without a code", lambda _: HEADER._replace(kind=5, flags=2).write(b"")),
    ("conversations nobody began", lambda _: HEADER._replace(kind=0x0C, conversation=99).write(bytes(20))),
    ("notifications for ever", lambda _: HEADER._replace(kind=0x0F, flags=LAST).write(bytes(16))),
]


@pytest.mark.rule("MQC-5")
@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("answers", [flood for _, flood in FLOODS], ids=[name for name, _ in FLOODS])
def test_a_flood_ends_the_connection_and_takes_no_room(answers: Callable[[int], bytes]) -> None:
    place, server = hostile(answers)
    tracemalloc.start()
    try:
        with server, pytest.raises(QPubSubError) as refused:
            Connection.to(place)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(refused.value, MqError)
    assert str(refused.value)
    assert "Traceback" not in str(refused.value)
    assert most < 20_000_000


def test_a_message_longer_than_was_agreed_is_not_taken(home: Path) -> None:
    """TotalMsgLength of an ASYNC_MESSAGE that says more."""

    def change(_count: int, data: bytes) -> bytes:
        if data[:4] == b"TSHM" and data[17] == SegmentType.ASYNC_MESSAGE:
            return data[: 36 + 28] + (1 << 30).to_bytes(4, "little") + data[36 + 32 :]
        return data

    with (
        listener_at(home) as port,
        between(port, change) as place,
        pytest.raises(MqError, match="announces a message of 1073741824 bytes"),
    ):
        session(place)
