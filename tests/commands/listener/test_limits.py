"""Limits: what hostile peers can take of the listener, and what others notice of it.

Rows of docs/conformance.md: LSN-22.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import select
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from commands.disk.open_files import Acceptor, OutOfFiles, carried, listening_sockets
from commands.listener.request import Connections, Held, Memory
from commands.qmgr.mqi.refusals import MqiError
from rfh2.channel.layouts import SOCKET_ACTION
from rfh2.channel.segments import CONFIRM, WHOLE, SegmentHeader, SegmentType, Structure
from rfh2.mqi_constants import MQGMO_SYNCPOINT, MQOO_INPUT_SHARED, MQOO_OUTPUT
from tests.commands.listener.conftest import listener_at
from tests.commands.listener.mqi_client import MqiClient, StatusError
from tests.waiting import PATIENCE_MS, PATIENCE_S, until

IN, OUT = MQOO_INPUT_SHARED, MQOO_OUTPUT
NO_ROOM = 2102


def is_ended(peer: socket.socket) -> bool:
    """Whether the listener ends the connection, after whatever it still sends."""
    peer.settimeout(PATIENCE_S)
    try:
        while peer.recv(65_536):
            pass
    except ConnectionError:
        return True
    return True


def raw(port: int, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), PATIENCE_S, source_address=(address, 0))


def is_served(port: int) -> bool:
    with suppress(OSError, StatusError), MqiClient(port) as client:
        return client.connect() == 0
    return False


# Connections


def test_connections_are_counted() -> None:
    connections = Connections(3, 2)
    for address in ("a", "a", "b"):
        assert connections.refusal(address) is None
        connections.begin(address)
    assert "there are 3 connections" in (connections.refusal("c") or "")
    connections.end("b")
    assert "a has 2 connections" in (connections.refusal("a") or "")
    assert connections.refusal("c") is None
    connections.end("a")
    connections.end("a")
    assert (connections.count, dict(connections.of_address)) == (0, {})


def test_no_more_connections_than_allowed(home: Path) -> None:
    with listener_at(home, connections=2) as port, MqiClient(port) as one, MqiClient(port) as two:
        with raw(port) as third:
            assert is_ended(third)
        assert (one.connect(), two.connect()) == (0, 0)


@pytest.mark.rule("LSN-22")
def test_no_more_connections_of_an_address_than_allowed(home: Path) -> None:
    with listener_at(home, connections_of_address=1) as port, MqiClient(port) as one:
        with raw(port) as second:
            assert is_ended(second)
        with raw(port, "127.0.0.2") as other:
            other.sendall(one.header(SegmentType.INITIAL_DATA).write(one.offer("A", 0)))
            assert other.recv(3) == b"TSH"
        assert one.connect() == 0


def test_room_for_a_connection_is_there_again_when_one_has_gone(home: Path) -> None:
    with listener_at(home, connections=1) as port:
        for _ in range(3):
            until(lambda: is_served(port), "the listener to count no connection that has gone")


# Open files


@pytest.mark.parametrize(
    ("wanted", "limit", "most"), [(1_000, 1_024, 480), (1_000, 4_096, 1_000), (1_000, None, 1_000), (1_000, 20, 1)]
)
def test_no_more_connections_than_open_files_carry(wanted: int, limit: int | None, most: int) -> None:
    assert carried(wanted, 2, limit) == most


def test_the_listener_says_how_many_it_carries(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("commands.listener.server.open_files", lambda: 68)
    with listener_at(home) as port, MqiClient(port) as one, MqiClient(port) as two:
        with raw(port) as third:
            assert is_ended(third)
        assert (one.connect(), two.connect()) == (0, 0)
    assert "at most 2 connections instead of 1000: this process may have 68 open files" in caplog.text


class Scarce:
    """A listening socket; *failures* of its calls find no open file."""

    def __init__(self, real: socket.socket, failures: int) -> None:
        self._real, self.failures = real, failures
        self.fileno, self.close = real.fileno, real.close

    def accept(self) -> tuple[socket.socket, Any]:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self._real.accept()


def test_a_server_without_open_files_rests_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("commands.disk.open_files._REST_S", 0.01)

    async def accepted() -> None:
        made = asyncio.Event()

        class Protocol(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                made.set()
                transport.close()

        (real,) = await listening_sockets("127.0.0.1", 0, 5)
        sockets: Any = [Scarce(real, 3)]
        acceptor = Acceptor(sockets, Protocol, OutOfFiles(logging.getLogger("test"), "here", lambda: 0.0))
        with raw(real.getsockname()[1]):
            await made.wait()
        acceptor.close()
        assert sockets[0].failures == 0

    asyncio.run(accepted())
    assert [record.getMessage() for record in caplog.records if record.name == "test"] == [
        "here: no connection can be accepted: Too many open files (limit of open files, LimitNOFILE)"
    ]


def test_a_lack_of_open_files_is_said_once_a_minute_and_other_faults_as_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    moments = [0.0, 1.0, 59.0, 60.0, 61.0]
    out_of_files = OutOfFiles(logging.getLogger("test"), "here", iter(moments).__next__)
    loop = asyncio.new_event_loop()
    for _ in moments:
        error = OSError(errno.EMFILE, "Too many open files")
        out_of_files.handle(loop, {"message": "socket.accept()", "exception": error, "socket": None})
    assert len(caplog.records) == 2
    out_of_files.handle(loop, {"message": "another one", "exception": ValueError()})
    loop.close()
    assert caplog.records[-1].getMessage() == "another one"


# Half-open connections


def test_a_connection_that_says_nothing_is_ended(home: Path) -> None:
    with listener_at(home, first_s=0.2) as port, raw(port) as silent:
        assert is_ended(silent)


@pytest.mark.nightly
def test_a_connection_without_a_program_is_ended(home: Path) -> None:
    """It has agreed on everything, and keeps its place without MQCONN."""
    with listener_at(home, first_s=5) as port, MqiClient(port) as client:
        assert client.receive() is None


@pytest.mark.nightly
def test_a_program_may_be_quiet_for_longer(home: Path) -> None:
    with listener_at(home, first_s=5) as port, MqiClient(port) as client:
        assert client.connect() == 0
        time.sleep(5.5)
        assert client.commit() == 0


@pytest.mark.nightly
def test_a_shared_connection_may_stay_when_its_programs_have_gone(home: Path) -> None:
    end = Structure.new(SOCKET_ACTION, "little")
    end["ConversationId"], end["Type"] = 1, 2
    with listener_at(home, first_s=5) as port, MqiClient(port, sharing=10) as client:
        client.conversation = 1
        assert (client.connect(), client.disconnect()) == (0, 0)
        client.send(SegmentHeader(SegmentType.SOCKET_ACTION, of_connection=True).write(bytes(end)))
        time.sleep(5.5)
        client.send(SegmentHeader(SegmentType.HEARTBEAT, CONFIRM | WHOLE, of_connection=True).write(b""))
        received = client.receive()
        assert received is not None
        assert received[0].kind == SegmentType.HEARTBEAT


@pytest.mark.rule("LSN-22")
@pytest.mark.nightly
def test_tls_handshakes_that_do_not_end_count_as_connections_and_are_ended(
    home: Path, certificate: tuple[Path, Path]
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*certificate)
    with listener_at(home, tls=tls, first_s=5, connections=2) as port, raw(port) as one, raw(port) as two:
        one.sendall(b"\x16\x03")
        with raw(port) as third:
            assert is_ended(third)
        assert is_ended(one)
        assert is_ended(two)


# Memory


def test_memory_is_held_until_it_is_released() -> None:
    memory = Memory(100)
    one, two = Held(memory), Held(memory)
    one.add(60)
    two.add(40)
    with pytest.raises(MqiError, match="100 bytes") as refused:
        two.add(1)
    assert refused.value.reason == NO_ROOM
    one.release()
    two.add(60)
    two.release()
    two.release()
    assert memory.used_bytes == 0
    with pytest.raises(MqiError, match="has ended"):
        one.add(1)


def test_a_message_longer_than_agreed_is_refused(home: Path) -> None:
    with listener_at(home, longest_message=65_536) as port, MqiClient(port) as client:
        assert client.connect() == 0
        handle = client.opened("Q", OUT)
        assert client.put(handle, bytes(65_536))[0] == 0
        with pytest.raises((AssertionError, OSError)):
            client.put(handle, bytes(200_000))
        assert is_served(port)


def test_calls_that_do_not_end_share_a_limited_memory(home: Path) -> None:
    """Each peer sends much of a call, and never its end: the one for which there is no room is sent away."""
    peers: list[MqiClient] = []
    with listener_at(home, memory_bytes=1_000_000) as port:
        for _ in range(4):
            peer = MqiClient(port)
            peers.append(peer)
            assert peer.connect() == 0
            for n in range(10):
                with suppress(OSError):
                    peer.request_part(SegmentType.MQPUT, bytes(30_000), first=n == 0)
        ended, _, _ = select.select([peer.socket for peer in peers], [], [], PATIENCE_S)
        assert len(ended) == 1  # there is room for three
        assert is_ended(ended[0])
        for peer in peers:
            peer.close()
        assert is_served(port)


def mqput_begun(peer: MqiClient) -> None:
    peer.request_part(SegmentType.MQPUT, bytes(4_000), first=True)


def mqconn_begun(peer: MqiClient) -> None:
    peer.request_part(SegmentType.MQCONN, bytes(300), first=True)


def mqput_whole(peer: MqiClient) -> None:
    peer.request(SegmentType.MQPUT, bytes(1_000))


def long_segment(peer: MqiClient) -> None:
    peer.request(SegmentType.MQCONN, bytes(30_000))


def long_user(peer: MqiClient) -> None:
    peer.send(peer.header(SegmentType.USERID).write(bytes(30_000)))


def messages_asked_for(peer: MqiClient) -> None:
    peer.send(peer.header(SegmentType.REQUEST_MSGS).write(bytes(100)))


@pytest.mark.rule("LSN-22")
@pytest.mark.parametrize("sends", [mqput_begun, mqconn_begun, mqput_whole, long_segment, long_user, messages_asked_for])
def test_a_stranger_is_sent_away_with_anything_but_a_short_mqconn(
    port: int, caplog: pytest.LogCaptureFixture, sends: Callable[[MqiClient], None]
) -> None:
    with MqiClient(port) as peer:
        sends(peer)
        assert is_ended(peer.socket)
    assert "the program is not connected" in caplog.text or "no more than 4096 is taken yet" in caplog.text
    assert is_served(port)


def test_another_conversation_of_a_connection_is_a_stranger_until_it_is_connected(port: int) -> None:
    begin = Structure.new(SOCKET_ACTION, "little")
    begin["ConversationId"], begin["Type"] = 3, 1
    with MqiClient(port, sharing=10) as client:
        client.conversation = 1
        assert client.connect() == 0
        client.send(SegmentHeader(SegmentType.SOCKET_ACTION, of_connection=True).write(bytes(begin)))
        assert client.receive() is not None
        client.conversation = 3
        mqput_begun(client)
        assert is_ended(client.socket)


def test_what_strangers_send_uses_no_memory_of_programs(home: Path) -> None:
    """There is none at all for calls, and still they can connect."""
    with listener_at(home, memory_bytes=1) as port, MqiClient(port) as client:
        assert client.connect() == 0


@pytest.mark.rule("LSN-22")
def test_a_message_that_there_is_no_room_for_stays_on_its_queue(home: Path) -> None:
    body = bytes(400_000)
    with listener_at(home, memory_bytes=500_000) as port, MqiClient(port) as client, MqiClient(port) as peer:
        assert (client.connect(), peer.connect()) == (0, 0)
        handle = client.opened("Q", IN | OUT)
        assert client.put(handle, body)[0] == 0
        for n in range(5):
            peer.request_part(SegmentType.MQPUT, bytes(30_000), first=n == 0)
        end = time.monotonic() + PATIENCE_S
        while (got := client.get(handle)).reason == 0 and time.monotonic() < end:
            client.put(handle, body)
        assert got.reason == NO_ROOM
        peer.close()
        while (got := client.get(handle)).reason == NO_ROOM and time.monotonic() < end:
            time.sleep(0.02)
        assert (got.reason, got.body) == (0, body)


def test_a_peer_that_reads_nothing_is_ended_and_its_get_backed_out(home: Path) -> None:
    with listener_at(home, send_s=3) as port, MqiClient(port) as client, MqiClient(port) as peer:
        assert (client.connect(), peer.connect()) == (0, 0)
        out, source = client.opened("Q", OUT), peer.opened("Q", IN)
        body = bytes(4_000_000)
        for _ in range(3):
            assert client.put(out, body)[0] == 0
        for _ in range(3):
            peer.request_get(source, MQGMO_SYNCPOINT, longest=len(body))
        back = client.opened("Q", IN)
        got = [client.get(back, wait_ms=PATIENCE_MS, longest=len(body)).body for _ in range(3)]
        assert got == [body] * 3
