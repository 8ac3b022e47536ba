"""What IBM's Java classes were answered by a queue manager, sent to the client: it says what those said.

Each call that was recorded is made again with its own values, and each segment that the client sends is compared with
the recorded one, byte for byte, but for numbers of processes, random numbers and the protected password. The
transcripts are beside the checkout; without them these tests are skipped.

Rows of docs/conformance.md: MQC-1.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from commands.client import connection as client
from commands.client.calls import Target, Wanted
from commands.client.connection import Connection, Place
from commands.client.errors import MqError
from commands.client.flow import Offer
from rfh2.channel.layouts import API_HEADER, LPOO, MQOD, MQPMO, REQUEST_MSGS, SELECTION, SPI, SPI_BLOCK
from rfh2.channel.segments import (
    CONFIRM,
    IDENTIFIERS,
    PREFIX_BYTES,
    REPLY,
    SegmentType,
    Structure,
    read_segment,
    segment_length,
)
from rfh2.mqi_constants import MQGMO_WAIT
from rfh2.mqmd import read_mqmd
from rfh2.pcf_admin_names import MQOT_Q_MGR
from tests.commands.listener.transcripts import Said, said
from tests.waiting import PATIENCE_S

FOLDER = Path(__file__).parents[4] / "shared" / "captures" / "client-channel"
_API = API_HEADER.size

# By type of segment: first and last byte of the payload that may differ, and why.
MASKS: dict[int, tuple[tuple[int, int, str], ...]] = {
    SegmentType.INITIAL_DATA: ((136, 147, "process, thread, trace"), (148, 159, "product"), (228, 239, "random")),
    SegmentType.USERID: ((16, 27, "the password, which a trace shows as asterisks"),),
    SegmentType.CONAUTH_INFO: ((35, 42, "the protected password"),),
    SegmentType.SPI: ((24, 27, "how long the answer may be"),),
}


@dataclass(frozen=True, slots=True)
class Recorded(Place):
    """A place where the client offers what was offered."""

    first: bytes = b""

    def offer(self) -> Offer:
        assert self.password is None or self.first
        longest = int.from_bytes(self.first[16:20], "big")
        return Offer(self.channel, self.qmgr, heartbeat_s=self.heartbeat_s, longest_message=longest)


def differing(got: bytes, wanted: Said) -> list[int]:
    """Where the payloads differ, masked bytes aside. A trace cuts what is filled up with zeros."""
    masks = MASKS.get(wanted.header.kind, ())
    masked = {at for first, last, _ in masks for at in range(first, last + 1)}
    assert len(wanted.payload) <= len(got) <= len(wanted.payload) + 1
    return [at for at in range(len(wanted.payload)) if at not in masked and got[at] != wanted.payload[at]]


class Server(threading.Thread):
    """Sends the recorded side of a queue manager, and compares what comes between."""

    def __init__(self, segments: list[Said]) -> None:
        super().__init__(daemon=True)
        self._segments, self._socket = segments, socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.compared, self.differences = 0, list[str]()

    def run(self) -> None:
        peer, _ = self._socket.accept()
        with self._socket, peer, suppress(ConnectionError):
            stream = peer.makefile("rb")
            waiting: list[tuple[int | None, int]] = []
            for number, segment in enumerate(self._segments):
                header = segment.header
                asked = (header.conversation, header.kind & 0x8F)
                if segment.by_client:
                    self._compare(number, stream.read, segment)
                    waiting.append(asked)
                    continue
                if header.kind > 0x90 and asked not in waiting:
                    self._read(stream.read)  # its request was not captured
                elif asked in waiting:
                    waiting.remove(asked)
                peer.sendall(segment.encode())

    def _read(self, read: Callable[[int], bytes]) -> bytes:
        prefix = read(PREFIX_BYTES)
        return prefix + read(segment_length(prefix) - PREFIX_BYTES)

    def _compare(self, number: int, read: Callable[[int], bytes], wanted: Said) -> None:
        data = self._read(read)
        header, payload = read_segment(data)
        where = f"segment {number}, {wanted.header}"
        if header != wanted.header._replace(of_connection=wanted.struc_id == "TSHC"):
            self.differences.append(f"{where}: {header}")
        elif at := differing(payload, wanted):
            self.differences.append(f"{where}: bytes {at}")
        self.compared += 1


class Program:
    """Makes the recorded calls again."""

    def __init__(self, segments: list[Said], port: int) -> None:
        first = segments[0].payload
        self.secret = any(each.header.kind == SegmentType.CONAUTH_INFO for each in segments)
        connects = [each for each in segments if each.header.kind == SegmentType.MQCONN]
        body = connects[0].payload[_API:]
        self.place = Recorded(
            (("127.0.0.1", port),),
            first[24:44].decode().rstrip(),
            body[:48].decode().strip("* "),
            "app" if self.secret else None,
            "s3cret!!" if self.secret else None,
            application=body[48:76].decode().rstrip(),
            heartbeat_s=int.from_bytes(first[96:100], "big"),
            first=first,
        )
        self.reconnects = bool(int.from_bytes(body[116:120], "little") & 0x0100_0000)
        self.connections: dict[int, Connection] = {}
        self.segments = segments

    def run(self) -> None:
        for segment in self.segments:
            if segment.by_client:
                self._again(segment)
            elif segment.header.kind == SegmentType.MQDISC + REPLY:
                # The request of one of them was not captured.
                ended = self.connections.pop(segment.header.conversation or 0, None)
                if ended is not None:
                    ended.disconnect()
        for each in self.connections.values():
            each.disconnect()

    def _again(self, segment: Said) -> None:
        kind, payload, number = segment.header.kind, segment.payload, segment.header.conversation or 0
        handle = int.from_bytes(payload[12:16], "little", signed=True)
        if kind == SegmentType.MQCONN:
            first = next(iter(self.connections.values()), None)
            self.connections[number] = Connection.to(self.place) if first is None else first.another()
        elif kind == SegmentType.MQOPEN:
            options = int.from_bytes(payload[_API + MQOD[2].size :][:4], "little")
            self.connections[number].open(Target(kind=MQOT_Q_MGR), options)
        elif kind == SegmentType.MQINQ:
            count = int.from_bytes(payload[16:20], "little")
            selectors = [int.from_bytes(payload[28 + 4 * n : 32 + 4 * n], "little") for n in range(count)]
            self.connections[number].inquire(handle, selectors, int.from_bytes(payload[24:28], "little"))
        elif kind == SegmentType.MQCLOSE:
            self.connections[number].close(handle, int.from_bytes(payload[16:20], "little"))
        elif kind == SegmentType.SPI and payload[16] == 12:
            self._open(self.connections[number], payload)
        elif kind == SegmentType.MQPUT:
            md = read_mqmd(payload, _API)
            pmo = Structure(MQPMO[2], bytearray(payload), _API + len(md.data))
            length = int.from_bytes(payload[pmo.end : pmo.end + 4], "little")
            body = payload[pmo.end + 4 : pmo.end + 4 + length]
            self.connections[number].put(handle, md.data, body, pmo["Options"])
        elif kind == SegmentType.REQUEST_MSGS:
            self._get(self.connections[number], payload)
        elif kind == SegmentType.MQCMIT:
            self.connections[number].commit()
        elif kind == SegmentType.MQBACK:
            self.connections[number].backout()
        elif kind == SegmentType.MQDISC:
            ended = self.connections.pop(number)
            if number == 1:
                # The end of one of the others was not captured: neither the request nor the reply.
                for left, each in self.connections.items():
                    each._line.end(left)
                self.connections.clear()
            ended.disconnect()

    def _open(self, connection: Connection, payload: bytes) -> None:
        lpoo = Structure(LPOO[3], bytearray(payload), _API + SPI.size + 2 * SPI_BLOCK.size)
        version = int.from_bytes(payload[lpoo.end + 4 : lpoo.end + 8], "little")
        od = Structure(MQOD[version], bytearray(payload), lpoo.end)
        texts = (od.text(name) for name in ("ObjectQMgrName", "DynamicQName", "AlternateUserId"))
        target = Target(od.text("ObjectName"), od["ObjectType"], *texts, version=version)
        connection.open(target, lpoo["Options"])

    wanted = Wanted()

    def _get(self, connection: Connection, payload: bytes) -> None:
        fields = Structure(REQUEST_MSGS, bytearray(payload), 0)
        if fields["Flags"] & 0x10:
            chosen, at, ids = Structure(SELECTION, bytearray(payload), fields.end), fields.end + SELECTION.size, {}
            for bit, name, size in IDENTIFIERS:
                if chosen["MatchOptions"] & bit:
                    ids[name], at = payload[at : at + size], at + size
            self.wanted = Wanted(
                match=chosen["MatchOptions"],
                ccsid=chosen["CodedCharSetId"],
                encoding=chosen["Encoding"],
                number=chosen["MsgSeqNumber"],
                **ids,  # type: ignore[arg-type]
            )
        options, wait_ms = fields["Options"] & ~MQGMO_WAIT, fields["WaitInterval"]
        got = connection.get(fields["ObjectHandle"], replace(self.wanted, options=options, wait_ms=wait_ms))
        assert got is not None


@pytest.fixture(params=["java_pcf_fap17_get_streaming", "jms_fap17_put_two_sessions", "jms_fap17_refused_2035"])
def segments(request: pytest.FixtureRequest) -> list[Said]:
    path = FOLDER / f"{request.param}.txt"
    if not path.exists():
        pytest.skip(f"{path.name} is not beside the checkout")
    return list(said(path))


@pytest.mark.rule("MQC-1")
def test_the_client_says_what_java_said(segments: list[Said], monkeypatch: pytest.MonkeyPatch) -> None:
    user = next(each.payload[28:92] for each in segments if each.header.kind == SegmentType.USERID)
    monkeypatch.setattr(client, "_user", lambda: user.decode().rstrip())
    server = Server(segments)
    program = Program(segments, server.port)
    if program.reconnects:
        plain = client.calls.connect
        monkeypatch.setattr(client.calls, "connect", lambda *given: plain(*given, reconnects=True))
    server.start()
    refused = sum(1 for each in segments if each.by_client) < 10
    with pytest.raises(MqError, match="2035") if refused else nullcontext():
        program.run()
    server.join(PATIENCE_S)
    assert server.differences == [], "\n".join(server.differences)
    assert server.compared == sum(1 for each in segments if each.by_client)


def test_the_transcripts_tell_the_two_sides_apart(segments: list[Said]) -> None:
    """What a test of this file takes for the client's is what it compares."""
    first, second = segments[0], segments[1]
    assert first.by_client
    assert first.header.flags & CONFIRM
    assert not second.by_client
