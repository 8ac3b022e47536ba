"""Hostile bytes at a listener: segments of a program, changed at random, on connections of their own.

    python -m tests.reliability.segments --segments 1000000

Each connection, shared or not, begins as a program does, and goes on with segments that were changed: bytes behind the
header or anywhere, lengths, ends cut off, segments out of their order. The listener is a process of its own, which
counts the segments that it takes up. From time to time a program that does nothing wrong puts and gets a message.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore
from rfh2.channel import segments
from rfh2.channel.layouts import CAUT, NOTIFICATION, REQUEST_MSGS, SELECTION, SOCKET_ACTION
from rfh2.channel.segments import HEADER_BYTES, WHOLE, SegmentHeader, SegmentType, Structure, read_segment
from rfh2.layouts import Layout
from rfh2.mqi_constants import (
    MQOO_BROWSE,
    MQOO_INPUT_SHARED,
    MQOO_INQUIRE,
    MQOO_OUTPUT,
    MQOO_SET,
    MQSO_CREATE,
    MQSO_MANAGED,
)
from rfh2.pcf_admin_names import MQIA_INHIBIT_PUT
from tests.commands.listener.conftest import listener_at, processing
from tests.commands.listener.mqi_client import MqiClient

SETUP = "DEFINE QLOCAL(Q) MAXDEPTH(500)\nDEFINE QLOCAL(GOOD)"
CHANGED_TOGETHER = 45
TOGETHER = 4
MOST_UNCHANGED = 35
GOOD_EVERY = 500
PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class Soak:
    """What came of it.

    segments: changed ones that the listener took up. served: of the calls of the program that does nothing wrong.
    memory_kib: resident, of the listener, after a tenth, a half, and at the end. faults: lines of its log that name a
    fault of its own.
    """

    segments: int
    connections: int
    served: int
    memory_kib: tuple[int, int, int]
    faults: int
    seconds: int


def serve(home: Path) -> None:
    """Listen, print the port, and the number of segments taken up for each line on standard input."""
    taken = 0
    length = segments.segment_length

    def counted(prefix: bytes) -> int:
        nonlocal taken
        taken += 1
        return length(prefix)

    segments.segment_length = counted
    with processing(home), listener_at(home, connections=200) as port:
        print(port, flush=True)
        for _ in sys.stdin:
            print(taken, flush=True)


class _Server:
    """The listener as a process. faults: lines of its standard error that tell of an error nobody foresaw."""

    def __init__(self, home: Path) -> None:
        command = [sys.executable, "-m", "tests.reliability.segments", "--serve", str(home)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8")
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.faults: list[str] = []
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if re.search(r"Traceback|never retrieved|Unhandled|Error: ", line):
                self.faults.append(line)

    def taken(self) -> int:
        """Segments that it has taken up, whole or not."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        if not (line := self._process.stdout.readline()):
            raise RuntimeError(f"the listener has ended: {self._process.poll()}")
        return int(line)

    def memory_kib(self) -> int:
        """Resident memory."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found[1]) if found else 0

    def end(self) -> None:
        """Let it end, as a listener that is stopped does."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        if self._process.wait(PATIENCE_S):
            self.faults.append(f"the listener ended with {self._process.returncode}")
        self._reader.join(PATIENCE_S)


@contextmanager
def _server(home: Path) -> Iterator[_Server]:
    server = _Server(home)
    try:
        yield server
    finally:
        server.end()


class Recorded(MqiClient):
    """A program of which every segment is kept."""

    def __init__(self, port: int, sharing: int = 0) -> None:
        self.sent: list[bytes] = []
        super().__init__(port, sharing=sharing)

    def send(self, data: bytes) -> None:
        self.sent.append(data)
        super().send(data)


def recorded(port: int) -> list[bytes]:
    """What a program sends, a segment each."""
    with Recorded(port) as client:
        client.connect()
        handle = client.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT | MQOO_BROWSE | MQOO_INQUIRE | MQOO_SET)
        client.put(handle, b"0123456789" * 10, 0x2, format="MQSTR")
        client.put1("Q", b"short", 0x4)
        client.get(handle, 0x4000, coded_char_set_id=500)
        client.get(handle, 0x10)
        client.inquire(handle, 3, 2016, integers=1, characters=48)
        client.set(handle, {MQIA_INHIBIT_PUT: 0})
        client.status()
        subscribed = client.subscribe(MQSO_CREATE | MQSO_MANAGED, "Sport/Soccer")
        client.request_retained(subscribed.hsub)
        client.publish("Sport/Tennis", b"love", 0x4)
        client.commit()
        client.backout()
        client.call(SegmentType.SPI, client.long(1) + client.long(1) + client.long(256))
        client.shut(handle)
        return client.sent


def shared(port: int, alone: Sequence[bytes]) -> list[bytes]:
    """The same on a connection that is shared, with what is sent there only."""
    with Recorded(port, sharing=10) as client:
        agreed = client.sent
    calls = [_in_conversation(1, *read_segment(segment)) for segment in alone[len(agreed) :]]
    more = [
        (SegmentType.SOCKET_ACTION, _structure(SOCKET_ACTION, ConversationId=3, Type=1)),
        (SegmentType.NOTIFICATION, _structure(NOTIFICATION, Version=1, Code=3, Value=1)),
        (SegmentType.REQUEST_MSGS, _asks(_structure(REQUEST_MSGS, MaxMsgLength=-1, Flags=0x12), 3, bytes(48))),
        (SegmentType.REQUEST_MSGS, _asks(_structure(REQUEST_MSGS, MaxMsgLength=9, Flags=0x18, Options=0x4011), 0)),
        (SegmentType.HEARTBEAT, b""),
        (SegmentType.CONAUTH_INFO, _structure(CAUT, StrucId=b"CAUT", UserLength=5, PasswordLength=3) + b"alicepwd"),
    ]
    return [*agreed, *calls, *(_in_conversation(1, SegmentHeader(kind, WHOLE | 1), data) for kind, data in more)]


def _in_conversation(number: int, header: SegmentHeader, payload: bytes) -> bytes:
    return header._replace(conversation=number).write(payload)


def _structure(layout: Layout, **fields: Any) -> bytes:
    made = Structure.new(layout, "little")
    for name, value in fields.items():
        made[name] = value
    return bytes(made)


def _asks(request: bytes, match: int, ids: bytes = b"") -> bytes:
    """A REQUEST_MSGS for the first handle, with its selection."""
    asked = bytearray(request)
    Structure(REQUEST_MSGS, asked)["ObjectHandle"] = 2
    return bytes(asked) + _structure(SELECTION, SelectionIndex=1, MqmdVersion=2, MatchOptions=match) + ids


def changed(chance: random.Random, segment: bytes) -> bytes:
    """*segment*, changed: most often behind its header, so that the call is read and not only its frame."""
    data = bytearray(segment)
    kind = chance.random()
    header = HEADER_BYTES[segment[:4]]
    first = header if kind < 0.75 and len(data) > header else 0
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(first, len(data))
        data[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    if 0.75 <= kind < 0.85:
        data = data[: chance.randint(28, len(data))]
        data[4:8] = len(data).to_bytes(4, "big")
    elif 0.85 <= kind < 0.9:
        more = chance.randbytes(chance.randint(1, 200))
        data += more
        data[4:8] = len(data).to_bytes(4, "big")
    elif kind > 0.97:
        data = data[: chance.randint(1, len(data))]
    return bytes(data)


def attack(port: int, chance: random.Random, programs: Sequence[Sequence[bytes]]) -> int:
    """One connection; returns how many segments were sent as a program sends them. Raises TimeoutError."""
    segments = chance.choice(programs)
    good = chance.randint(0, len(segments))
    data = b"".join(segments[:good])
    # The first two agree on the connection: where that is done, they end it.
    anywhere = segments if good < 2 else segments[2:]
    data += b"".join(changed(chance, chance.choice(anywhere)) for _ in range(CHANGED_TOGETHER))
    try:
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as peer:
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
            while peer.recv(65_536):
                pass
    except TimeoutError:
        raise
    except OSError:
        pass  # the listener has ended the connection
    return good


class _Counted:
    """What all attackers did together. is_over: they are to end."""

    def __init__(self, server: _Server) -> None:
        self._server, self._lock = server, threading.Lock()
        self._unchanged = server.taken()
        self.connections = self.last = 0
        self.is_over = False

    def attack(self, chance: random.Random, programs: Sequence[Sequence[bytes]]) -> None:
        """One connection after the other."""
        while not self.is_over:
            try:
                good = attack(self._server.port, chance, programs)
            except TimeoutError as error:
                self._server.faults.append(f"a connection hung: {error}\n")
                continue
            with self._lock:
                self._unchanged += good
                self.connections += 1

    def is_served(self) -> bool:
        """Whether a program that does nothing wrong can put and get."""
        good = Recorded(self._server.port)
        try:
            with good:
                if good.connect() != 0:
                    return False
                handle = good.opened("GOOD", MQOO_INPUT_SHARED | MQOO_OUTPUT)
                good.put(handle, b"as ever")
                return good.get(handle).body == b"as ever"
        except OSError:
            return False
        finally:
            with self._lock:
                self._unchanged += len(good.sent)

    def reached(self) -> int:
        """How many changed segments the listener has taken up, but for those of connections that are not over."""
        with self._lock:
            unchanged = self._unchanged
        self.last = max(self.last, self._server.taken() - unchanged - TOGETHER * MOST_UNCHANGED)
        return self.last


def soak(home: Path, count: int, seed: int) -> Soak:
    """Send until the listener has taken up *count* changed segments."""
    QueueManagerStore.create(home, QueueManager("QM1", strict=True)).close()
    mqsc = [sys.executable, "-m", "commands.cli", "mqsc", "-m", "QM1", "-"]
    environment = {**os.environ, "QPUBSUB_HOME": str(home)}
    subprocess.run(mqsc, input=SETUP, text=True, check=True, env=environment, stdout=subprocess.DEVNULL)
    start = time.monotonic()
    with _server(home) as server:
        alone = recorded(server.port)
        programs = (alone, shared(server.port, alone))
        counted = _Counted(server)
        attackers = [
            threading.Thread(target=counted.attack, args=(random.Random(f"{seed} {n}"), programs), daemon=True)
            for n in range(TOGETHER)
        ]
        for attacker in attackers:
            attacker.start()
        memory: list[int] = []
        served = asked = 0
        try:
            while len(memory) < 3:
                time.sleep(0.05)
                if counted.reached() >= count * (0.1, 0.5, 1)[len(memory)]:
                    memory.append(server.memory_kib())
                if counted.connections >= GOOD_EVERY * asked:
                    asked += 1
                    served += counted.is_served()
        finally:
            counted.is_over = True
            for attacker in attackers:
                attacker.join(PATIENCE_S)
        asked += 1
        served += counted.is_served()
    faults = len(server.faults) + (asked - served)
    for line in server.faults[:5]:
        print(line, end="", file=sys.stderr)
    seconds = round(time.monotonic() - start)
    return Soak(counted.last, counted.connections, served, (memory[0], memory[1], memory[2]), faults, seconds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it, and print the figures as JSON; 1 where the listener failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.reliability.segments", description=__doc__)
    parser.add_argument("--segments", type=int, default=20_000, help="changed segments (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the changes (1)")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve is not None:
        serve(options.serve)
        return 0
    with tempfile.TemporaryDirectory() as directory:
        found = soak(Path(directory), options.segments, options.seed)
    figures: dict[str, Any] = asdict(found)
    figures["memory_kib"] = " → ".join(f"{kib:,}" for kib in found.memory_kib)
    print(json.dumps(figures, ensure_ascii=False))
    return int(found.faults > 0)


if __name__ == "__main__":
    raise SystemExit(main())
