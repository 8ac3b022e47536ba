"""What stands behind ``mqi.c`` in tests: queues, units of work, topics and PCF, just far enough; not a queue manager.

    python server.py --socket PATH --journal FILE [--qmgr QM1] [--definitions FILE]

Persistent messages and durable subscriptions are written to the journal as they are committed, so that it may be
killed. What it is asked to do wrong (``Faults``) comes over the same socket, operation F. It knows no conversion, no
segments, no groups, no channels. Standard library only: it shares no code with what is tested against it.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import struct
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OK, WARNING, FAILED = 0, 1, 2
NATIVE = 546
QUEUE, QMGR, TOPIC = 1, 5, 8
INPUT, EXCLUSIVE, BROWSE, OUTPUT, INQUIRE, SET_ALL = 1 | 2 | 4, 4, 8, 16, 32, 2048
COMMAND_QUEUE, MODEL_QUEUE = "SYSTEM.ADMIN.COMMAND.QUEUE", "SYSTEM.DEFAULT.MODEL.QUEUE"

_FIELDS = (
    ("StrucId", 4),
    ("Version", 0),
    ("Report", 0),
    ("MsgType", 0),
    ("Expiry", 0),
    ("Feedback", 0),
    ("Encoding", 0),
    ("CodedCharSetId", 0),
    ("Format", 8),
    ("Priority", 0),
    ("Persistence", 0),
    ("MsgId", 24),
    ("CorrelId", 24),
    ("BackoutCount", 0),
    ("ReplyToQ", 48),
    ("ReplyToQMgr", 48),
    ("UserIdentifier", 12),
    ("AccountingToken", 32),
    ("ApplIdentityData", 32),
    ("PutApplType", 0),
    ("PutApplName", 28),
    ("PutDate", 8),
    ("PutTime", 8),
    ("ApplOriginData", 4),
)
_AT: dict[str, tuple[int, int]] = {}
_end = 0
for _name, _size in _FIELDS:
    _AT[_name] = (_end, _size)
    _end += _size or 4
V1, V2 = 324, 364
_BINARY = ("MsgId", "CorrelId", "AccountingToken")
_CONTEXT = ("UserIdentifier", "AccountingToken", "ApplIdentityData", "PutApplType", "PutApplName", "PutDate", "PutTime")


class MD:
    """The bytes of an MQMD, with its fields as items: integers, identifiers as bytes, the rest as text."""

    def __init__(self, raw: bytes = b"") -> None:
        self.raw = bytearray(raw or struct.pack("<4sii", b"MD  ", 1, 0).ljust(V1, b"\0"))
        if not raw:
            for name, size in _FIELDS[1:]:
                if size and name not in _BINARY:
                    self[name] = ""
            self["MsgType"], self["Expiry"], self["Encoding"], self["CodedCharSetId"] = 8, -1, NATIVE, 1208

    def __getitem__(self, name: str) -> Any:
        at, size = _AT[name]
        if not size:
            return struct.unpack_from("<i", self.raw, at)[0]
        value = bytes(self.raw[at : at + size])
        return value if name in _BINARY else value.split(b"\0")[0].rstrip().decode("latin-1")

    def __setitem__(self, name: str, value: Any) -> None:
        at, size = _AT[name]
        if not size:
            struct.pack_into("<i", self.raw, at, value)
        elif name in _BINARY:
            self.raw[at : at + size] = value[:size].ljust(size, b"\0")
        else:
            self.raw[at : at + size] = value.encode("latin-1")[:size].ljust(size)

    def as_version(self, version: int) -> bytes:
        raw = bytes(self.raw)
        raw = raw[:V1] if version == 1 else raw.ljust(V1, b"\0")
        if version == 2 and len(raw) < V2:
            raw += bytes(24) + struct.pack("<iiii", 1, 0, 0, -1)
        return raw[:4] + struct.pack("<i", version) + raw[8:]


@dataclass
class Message:
    number: int
    md: MD
    body: bytes
    deadline: float | None = None
    holder: Conn | None = None

    @property
    def token(self) -> bytes:
        return self.number.to_bytes(16, "big")


@dataclass
class Queue:
    name: str
    kind: str = "local"
    attributes: dict[str, Any] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    waiters: set[asyncio.Future[None]] = field(default_factory=set)
    inputs: list[tuple[int, int]] = field(default_factory=list)

    def get(self, name: str, otherwise: Any) -> Any:
        return self.attributes.get(name, otherwise)

    def live(self) -> list[Message]:
        now = time.time()
        self.messages = [m for m in self.messages if m.holder or m.deadline is None or m.deadline > now]
        return [m for m in self.messages if m.holder is None]

    def add(self, message: Message) -> None:
        self.messages.append(message)
        self.messages.sort(key=lambda m: (-m.md["Priority"], m.number))
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)


@dataclass
class Subscription:
    name: str
    topic: str
    chars: bool
    queue: str
    correl_id: bytes
    durable: bool
    on_request: bool
    grouped: bool
    selector: str
    user: str

    def as_row(self) -> dict[str, Any]:
        return {**self.__dict__, "correl_id": self.correl_id.hex()}

    @classmethod
    def of(cls, row: dict[str, Any]) -> Subscription:
        return cls(**{**row, "correl_id": bytes.fromhex(row["correl_id"])})


@dataclass
class Handle:
    kind: str  # queue, qmgr, topic, sub
    options: int = 0
    queue: Queue | None = None
    topic: str = ""
    sub: Subscription | None = None
    cursor: int = -1
    made: str = ""


class Conn:
    def __init__(self, number: int, user: str, app: str) -> None:
        self.number, self.user, self.app = number, user, app
        self.handles: dict[int, Handle] = {}
        self.next = itertools.count(1)
        self.gets: list[tuple[Queue, Message]] = []
        self.puts: list[tuple[Queue, Message]] = []
        self.published: list[tuple[str, MD, bytes, int, int]] = []


class ReasonError(Exception):
    """A call ends with this reason."""

    def __init__(self, reason: int) -> None:
        super().__init__(reason)
        self.reason = reason


class BrokenError(Exception):
    """The connection is to break here."""


def pack(*parts: int | bytes) -> bytes:
    return b"".join(struct.pack("<i", p) if isinstance(p, int) else struct.pack("<i", len(p)) + bytes(p) for p in parts)


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 1

    def i(self) -> int:
        self.at += 4
        return int(struct.unpack_from("<i", self.data, self.at - 4)[0])

    def b(self) -> bytes:
        size = self.i()
        self.at += size
        return self.data[self.at - size : self.at]

    def s(self) -> str:
        return self.b().decode()


class Faults:
    """What is to go wrong: {op, queue, app, reason, times, skip}; without a reason the connection breaks.

    op: the letter of the operation. when: before or after it is carried out. end: the server dies. decides: unset while
    units of work of lost connections are to stay undecided.
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.decides = asyncio.Event()
        self.decides.set()

    def asked(self, op: str, queue: str, when: str, app: str = "") -> None:
        for row in self.rows:
            if row.get("app", app) != app:
                continue
            if row["op"] != op or row.get("when", "before") != when or row.get("queue", queue) != queue:
                continue
            if row.get("skip", 0) > 0:
                row["skip"] -= 1
                continue
            row["times"] = row.get("times", 1) - 1
            if row["times"] <= 0:
                self.rows.remove(row)
            if row.get("end"):
                os._exit(9)
            if "reason" in row:
                raise ReasonError(row["reason"])
            raise BrokenError


class Server:
    def __init__(self, qmgr: str, journal: Path | None, definitions: dict[str, Any]) -> None:
        self.define(qmgr, definitions)
        self.numbers, self.conns = itertools.count(1), itertools.count(1)
        self.unique = itertools.count(time.time_ns())
        self.faults = Faults()
        self.calls: dict[str, int] = {}
        self.connected: list[Conn] = []
        self.log: Any = None
        if journal is not None:
            self.replay(journal)
            self.log = journal.open("a", buffering=1)

    def define(self, qmgr: str, definitions: dict[str, Any]) -> None:
        """Be this queue manager, and empty."""
        self.qmgr, self.definitions = qmgr, definitions
        # Without it, a test gets the commands from their queue and answers them.
        self.has_command_server = definitions.get("command_server", True)
        self.queues: dict[str, Queue] = {MODEL_QUEUE: Queue(MODEL_QUEUE, "model"), COMMAND_QUEUE: Queue(COMMAND_QUEUE)}
        for name, attributes in definitions.get("queues", {}).items():
            self.queues[name] = Queue(name, attributes.get("kind", "local"), attributes)
        self.subscriptions: dict[str, Subscription] = {}
        self.retained: dict[str, tuple[bytes, bytes, int]] = {}

    # Keeping

    def note(self, **row: Any) -> None:
        if self.log is not None:
            self.log.write(json.dumps(row) + "\n")

    def replay(self, journal: Path) -> None:
        if not journal.exists():
            return
        messages: dict[int, tuple[str, Message]] = {}
        highest = 0
        for line in journal.read_text().splitlines():
            row = json.loads(line)
            for number in row.get("got", ()):
                messages.pop(number, None)
            for number, queue, md, body, deadline in row.get("put", ()):
                messages[number] = (queue, Message(number, MD(bytes.fromhex(md)), bytes.fromhex(body), deadline))
                highest = max(highest, number)
            for number in row.get("back", ()):
                if number in messages:
                    messages[number][1].md["BackoutCount"] += 1
            if "sub" in row:
                self.subscriptions[row["sub"]["name"]] = Subscription.of(row["sub"])
            if "unsub" in row:
                self.subscriptions.pop(row["unsub"], None)
            if "retain" in row:
                topic, md, body, options = row["retain"]
                self.retained[topic] = (bytes.fromhex(md), bytes.fromhex(body), options)
            if "clear" in row:
                self.retained.pop(row["clear"], None)
        for queue, message in messages.values():
            if queue in self.queues:
                self.queues[queue].add(message)
        self.numbers = itertools.count(highest + 1)

    # Calls

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conn: Conn | None = None
        following = asyncio.ensure_future(reader.readexactly(4))
        try:
            while True:
                (size,) = struct.unpack("<I", await following)
                request = Reader(await reader.readexactly(size))
                following = asyncio.ensure_future(reader.readexactly(4))
                op = chr(request.data[0])
                self.calls[op] = self.calls.get(op, 0) + 1
                try:
                    if op == "F":
                        answer = self.control(json.loads(request.b()))
                    elif op == "C":
                        conn = self.connect(request)
                        answer = pack(OK, 0, self.qmgr.encode())
                    elif conn is None:
                        break
                    else:
                        answer = await self.answer(op, conn, request, following)
                except ReasonError as error:
                    answer = pack(FAILED, error.reason)
                writer.write(struct.pack("<I", len(answer)) + answer)
                await writer.drain()
                if op == "D":
                    self.connected.remove(conn)  # type: ignore[arg-type]
                    conn = None
                    break
        except (asyncio.IncompleteReadError, ConnectionError, BrokenError):
            pass
        except Exception:
            traceback.print_exc()
        finally:
            following.cancel()
            if following.done() and not following.cancelled():
                following.exception()
            writer.close()
            if conn is not None:
                if conn.gets or conn.puts:
                    await self.faults.decides.wait()
                self.backout(conn)
                self.connected.remove(conn)
                for number in list(conn.handles):
                    self.shut(conn, number, 0)

    async def answer(self, op: str, conn: Conn, request: Reader, gone: asyncio.Future[bytes]) -> bytes:
        queue = self.named(op, conn, request)
        self.faults.asked(op, queue, "before", conn.app)
        if op == "G":
            answer = await self.get(conn, request, gone)
        else:
            calls = {"O": self.open, "X": self.close, "P": self.put, "1": self.put1, "Q": self.inquire, "U": self.sub}
            calls |= {"R": self.subrq, "M": self.mqcmit, "B": self.mqback, "D": self.mqdisc}
            answer = calls[op](conn, request)
        self.faults.asked(op, queue, "after", conn.app)
        return answer

    def named(self, op: str, conn: Conn, request: Reader) -> str:
        """The queue that a call is about, for faults."""
        at = request.at
        if op in "GPX":
            handle = conn.handles.get(request.i())
            found = handle.queue.name if handle is not None and handle.queue is not None else ""
        elif op == "O":
            request.i()
            found = request.s()
        elif op == "1":
            found = request.s()
        else:
            found = ""
        request.at = at
        return found

    def control(self, wanted: dict[str, Any]) -> bytes:
        if "anew" in wanted:
            assert not self.connected
            self.define(wanted["anew"]["qmgr"], wanted["anew"])
        if "fault" in wanted:
            self.faults.rows.append(wanted["fault"])
        if "decides" in wanted:
            (self.faults.decides.set if wanted["decides"] else self.faults.decides.clear)()
        for name, attributes in wanted.get("alter", {}).items():
            kind = attributes.get("kind", "local")
            self.queues.setdefault(name, Queue(name, kind)).attributes.update(attributes)
        for name in wanted.get("delete", ()):
            self.queues.pop(name, None)
        self.definitions.update(wanted.get("define", {}))
        if wanted.get("clear_faults"):
            self.faults.rows.clear()
        shown = {
            "depths": {name: len(queue.messages) for name, queue in self.queues.items()},
            "subscriptions": [s.as_row() for s in self.subscriptions.values()],
            "retained": sorted(self.retained),
            "calls": self.calls,
            "faults": self.faults.rows,
        }
        return pack(OK, 0, json.dumps(shown).encode())

    def connect(self, request: Reader) -> Conn:
        name, user, app, _pid, password = request.s(), request.s(), request.s(), request.i(), request.s()
        self.faults.asked("C", "", "before")
        if name and name != self.qmgr:
            raise ReasonError(2058)
        wanted = self.definitions.get("password")
        if wanted is not None and password != wanted:
            raise ReasonError(2035)
        self.connected.append(Conn(next(self.conns), user, app))
        return self.connected[-1]

    # Objects

    def resolve(self, name: str) -> Queue:
        queue = self.queues.get(name)
        if queue is None:
            raise ReasonError(2085)
        if queue.kind == "alias":
            target = self.queues.get(queue.get("target", ""))
            if target is None:
                raise ReasonError(2082)
            return target
        return queue

    def open(self, conn: Conn, request: Reader) -> bytes:
        kind, name, qmgr = request.i(), request.s(), request.s()
        dynamic, options, string = request.s(), request.i(), request.s()
        handle = next(conn.next)
        if kind == QMGR:
            conn.handles[handle] = Handle("qmgr", options)
            return pack(OK, 0, handle, 0, self.qmgr.encode())
        if kind == TOPIC:
            conn.handles[handle] = Handle("topic", options, topic=string or name)
            return pack(OK, 0, handle, 0, name.encode())
        if qmgr and qmgr != self.qmgr:
            xmit = self.queues.get(qmgr)
            if xmit is None:
                raise ReasonError(2087)
            conn.handles[handle] = Handle("queue", options, xmit)
            return pack(OK, 0, handle, 0, xmit.name.encode())
        for denied in self.definitions.get("denied", ()):
            if denied["queue"] == name and options & denied["options"]:
                raise ReasonError(2035)
        queue = self.resolve(name)
        made = 0
        if queue.kind == "model":
            name = (dynamic.rstrip("*") or "AMQ.")[:24] + f"{next(self.unique):016X}"
            queue = self.queues[name] = Queue(name, "dynamic")
            made = 1
        if options & INPUT:
            exclusive = any(conn_options & EXCLUSIVE for _, conn_options in queue.inputs)
            if queue.inputs and (exclusive or options & EXCLUSIVE):
                raise ReasonError(2042)
            queue.inputs.append((conn.number * 1_000_000 + handle, options))
        conn.handles[handle] = Handle("queue", options, queue, made=queue.name if made else "")
        return pack(OK, 0, handle, made, queue.name.encode())

    def close(self, conn: Conn, request: Reader) -> bytes:
        handle, options = request.i(), request.i()
        if handle not in conn.handles:
            raise ReasonError(2019)
        self.shut(conn, handle, options)
        return pack(OK, 0)

    def shut(self, conn: Conn, number: int, options: int) -> None:
        handle = conn.handles.pop(number)
        if handle.queue is not None:
            handle.queue.inputs = [i for i in handle.queue.inputs if i[0] != conn.number * 1_000_000 + number]
        if handle.made:
            self.queues.pop(handle.made, None)
        if handle.sub is not None and (options & 8 or not handle.sub.durable):
            self.unsubscribe(handle.sub.name)

    def inquire(self, conn: Conn, request: Reader) -> bytes:
        handle = conn.handles.get(request.i())
        selectors = [request.i() for _ in range(request.i())]
        if handle is None:
            raise ReasonError(2019)
        queue = handle.queue
        if queue is not None:
            numbers = {3: len(queue.live()), 5: queue.get("def_persistence", 0), 6: queue.get("def_priority", 0)}
            numbers |= {9: queue.get("get_inhibited", 0), 10: queue.get("put_inhibited", 0), 20: 1}
            numbers |= {13: queue.get("max_length", 4194304), 15: queue.get("max_depth", 5000)}
            numbers |= {22: queue.get("bothresh", 0), 17: len(queue.inputs)}
            numbers |= {7: 3 if queue.kind == "dynamic" else 1}
            texts = {2016: queue.name, 2019: queue.get("boqname", "")}
        else:
            numbers = {2: 1208, 31: 930, 32: 3, 13: 104857600, 187: self.definitions.get("psmode", 1)}
            texts = {2015: self.qmgr}
            texts[2006] = self.definitions.get("deadq", "SYSTEM.DEAD.LETTER.QUEUE")
        given, characters = [], b""
        for selector in selectors:
            if selector in numbers:
                given.append(numbers[selector])
            elif selector in texts:
                characters += texts[selector].encode().ljust(48)
            else:
                raise ReasonError(2067)
        return pack(OK, 0, len(given), *given, characters)

    # Messages

    def arrive(self, conn: Conn, queue: Queue, md: MD, body: bytes, options: int, may_set: bool) -> Message:
        """*md* as a queue manager completes it on a put."""
        if queue.get("put_inhibited", 0):
            raise ReasonError(2051)
        if len(body) > queue.get("max_length", 4194304):
            raise ReasonError(2030)
        promised = sum(1 for c in self.connected for q, _ in c.puts if q is queue)
        if len(queue.messages) + promised >= queue.get("max_depth", 5000):
            raise ReasonError(2053)
        if md["MsgId"] == bytes(24) or options & 64:
            md["MsgId"] = b"AMQ " + self.qmgr.encode()[:12].ljust(12) + struct.pack(">Q", next(self.unique))
        if md["Persistence"] == 2:
            md["Persistence"] = queue.get("def_persistence", 0)
        if md["Priority"] == -1:
            md["Priority"] = queue.get("def_priority", 0)
        if md["CodedCharSetId"] == 0:
            md["CodedCharSetId"] = 1208
        md["BackoutCount"] = 0
        if md["ReplyToQ"] and not md["ReplyToQMgr"]:
            md["ReplyToQMgr"] = self.qmgr
        if options & SET_ALL:
            if not may_set:
                raise ReasonError(2098)
        else:
            self.stamp(conn, md)
        deadline = time.time() + md["Expiry"] / 10 if md["Expiry"] > 0 else None
        return Message(next(self.numbers), md, body, deadline)

    def stamp(self, conn: Conn, md: MD) -> None:
        now = time.time()
        md["UserIdentifier"], md["AccountingToken"], md["ApplIdentityData"] = conn.user[:12], bytes(32), ""
        md["PutApplType"], md["PutApplName"], md["ApplOriginData"] = 6, conn.app[-28:], ""
        md["PutDate"] = time.strftime("%Y%m%d", time.gmtime(now))
        md["PutTime"] = time.strftime("%H%M%S", time.gmtime(now)) + f"{int(now % 1 * 100):02}"

    def put(self, conn: Conn, request: Reader) -> bytes:
        handle = conn.handles.get(request.i())
        options, raw, body = request.i(), request.b(), request.b()
        if handle is None:
            raise ReasonError(2019)
        if not handle.options & OUTPUT:
            raise ReasonError(2039)
        md = MD(raw)
        if handle.kind == "topic":
            if not options & SET_ALL:
                self.stamp(conn, md)
            if options & 2:
                conn.published.append((handle.topic, md, body, options, conn.number))
            else:
                self.publish(handle.topic, md, body, options)
            return pack(OK, 0, bytes(md.raw), b"")
        assert handle.queue is not None
        return self.place(conn, handle.queue, md, body, options, bool(handle.options & SET_ALL))

    def put1(self, conn: Conn, request: Reader) -> bytes:
        name, qmgr, options, raw, body = request.s(), request.s(), request.i(), request.b(), request.b()
        for denied in self.definitions.get("denied", ()):
            if denied["queue"] == name and denied["options"] & OUTPUT:
                raise ReasonError(2035)
        queue = self.queues.get(qmgr) if qmgr and qmgr != self.qmgr else self.resolve(name)
        if queue is None:
            raise ReasonError(2087)
        return self.place(conn, queue, MD(raw), body, options, True)

    def place(self, conn: Conn, queue: Queue, md: MD, body: bytes, options: int, may_set: bool) -> bytes:
        message = self.arrive(conn, queue, md, body, options, may_set)
        if options & 2:
            self.require_room(conn)
            conn.puts.append((queue, message))
        elif queue.name == COMMAND_QUEUE and self.has_command_server:
            self.command(message)
        else:
            self.commit_parts([], [(queue, message)])
        return pack(OK, 0, bytes(md.raw), queue.name.encode())

    async def get(self, conn: Conn, request: Reader, gone: asyncio.Future[bytes]) -> bytes:
        number, options, match, wait_ms, size = (request.i() for _ in range(5))
        raw, token = request.b(), request.b()
        handle = conn.handles.get(number)
        if handle is None or handle.queue is None:
            raise ReasonError(2019)
        queue, wanted, browse = handle.queue, MD(raw), bool(options & (16 | 32 | 2048))
        if queue.get("get_inhibited", 0):
            raise ReasonError(2016)
        if not handle.options & (BROWSE if browse else INPUT):
            raise ReasonError(2036 if browse else 2037)

        def pick() -> Message | None:
            live = queue.live()
            own = [m for m in queue.messages if m.holder is conn] if browse else []
            if options & (256 | 2048):
                return next((m for m in live if m.number == handle.cursor), None)
            if options & 32 and handle.cursor >= 0:
                order = sorted(live + own, key=lambda m: (-m.md["Priority"], m.number))
                at = next((k for k, m in enumerate(order) if m.number == handle.cursor), None)
                after = order[at + 1 :] if at is not None else [m for m in order if m.number > handle.cursor]
                live = [m for m in after if m.holder is None]
            for message in live:
                if match & 1 and wanted["MsgId"] not in (bytes(24), message.md["MsgId"]):
                    continue
                if match & 2 and wanted["CorrelId"] not in (bytes(24), message.md["CorrelId"]):
                    continue
                if match & 32 and token != message.token:
                    continue
                return message
            return None

        if options & 16:
            handle.cursor = -1
        end = time.monotonic() + wait_ms / 1000
        while (message := pick()) is None:
            if options & (256 | 2048):
                raise ReasonError(2034)
            left = end - time.monotonic()
            if not options & 1 or left <= 0:
                raise ReasonError(2033)
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            queue.waiters.add(waiter)
            done, _ = await asyncio.wait({waiter, gone}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            queue.waiters.discard(waiter)
            if gone in done:
                raise BrokenError
        md, complete = MD(bytes(message.md.raw)), OK
        reason = 0
        body = self.with_properties(message, options)
        if body is not message.body:
            md["Format"] = "MQHRF2"
        if len(body) > size:
            complete, reason = WARNING, 2079 if options & 64 else 2080
        if reason != 2080:
            if browse:
                handle.cursor = message.number
            elif options & 2:
                self.require_room(conn)
                message.holder = conn
                conn.gets.append((queue, message))
            else:
                self.commit_parts([(queue, message)], [])
        if message.deadline is not None:
            md["Expiry"] = max(1, int((message.deadline - time.time()) * 10))
        version = struct.unpack_from("<i", raw, 4)[0]
        return pack(
            complete, reason, len(body), md.as_version(version), queue.name.encode(), body[:size], message.token
        )

    @staticmethod
    def with_properties(message: Message, options: int) -> bytes:
        """MQGMO_PROPERTIES_FORCE_MQRFH2 is how all publications are kept here."""
        return message.body

    # Units of work

    def require_room(self, conn: Conn) -> None:
        """MAXUMSGS."""
        if len(conn.gets) + len(conn.puts) >= self.definitions.get("max_umsgs", 10_000):
            raise ReasonError(2024)

    def commit_parts(self, gets: list[tuple[Queue, Message]], puts: list[tuple[Queue, Message]]) -> None:
        for queue, message in gets:
            if message in queue.messages:
                queue.messages.remove(message)
        kept = [(q, m) for q, m in puts if m.md["Persistence"] == 1 and q.kind != "dynamic"]
        rows = [(m.number, q.name, bytes(m.md.raw).hex(), m.body.hex(), m.deadline) for q, m in kept]
        if rows or gets:
            self.note(got=[m.number for _, m in gets], put=rows)
        for queue, message in puts:
            if queue.name == COMMAND_QUEUE and self.has_command_server:
                self.command(message)
            else:
                queue.add(message)

    def mqcmit(self, conn: Conn, _request: Reader) -> bytes:
        gets, puts, published = conn.gets, conn.puts, conn.published
        conn.gets, conn.puts, conn.published = [], [], []
        self.commit_parts(gets, puts)
        for topic, md, body, options, _ in published:
            self.publish(topic, md, body, options)
        return pack(OK, 0)

    def mqback(self, conn: Conn, _request: Reader) -> bytes:
        self.backout(conn)
        return pack(OK, 0)

    def mqdisc(self, conn: Conn, request: Reader) -> bytes:
        self.mqcmit(conn, request)
        for number in list(conn.handles):
            self.shut(conn, number, 0)
        return pack(OK, 0)

    def backout(self, conn: Conn) -> None:
        if conn.gets:
            self.note(back=[m.number for _, m in conn.gets])
        for queue, message in conn.gets:
            message.holder = None
            message.md["BackoutCount"] += 1
            for waiter in queue.waiters:
                if not waiter.done():
                    waiter.set_result(None)
        conn.gets, conn.puts, conn.published = [], [], []

    # Topics

    def sub(self, conn: Conn, request: Reader) -> bytes:
        options, topic_object = request.i(), request.s()
        topic, name, _data, selector, correl_id = request.s(), request.s(), request.s(), request.s(), request.b()
        _expiry, _level, hobj = request.i(), request.i(), request.i()
        create, resume, durable, managed = options & 2, options & 4, options & 8, options & 32
        existing = self.subscriptions.get(name) if name else None
        if existing is not None and not resume:
            raise ReasonError(2432)
        if existing is None and not create:
            raise ReasonError(2428)
        if managed:
            queue = self.queues[made] = Queue(made := f"SYSTEM.MANAGED.{next(self.unique):016X}", "dynamic")
            hobj = next(conn.next)
            conn.handles[hobj] = Handle("queue", INPUT | BROWSE, queue, made=made)
        else:
            found = conn.handles.get(hobj)
            if existing is None and (found is None or found.queue is None):
                raise ReasonError(2019)
            queue = found.queue if found is not None else self.queues[existing.queue]  # type: ignore[union-attr,assignment]
        if not options & 0x400000:
            correl_id = struct.pack(">QQQ", 0x414D5120, 0, next(self.unique))
        if existing is None:
            name = name or f"unnamed {next(self.unique)}"
            existing = Subscription(
                name,
                topic or topic_object,
                bool(options & 0x100000),
                queue.name,
                correl_id,
                bool(durable),
                bool(options & 2048),
                bool(options & 0x10),
                selector,
                conn.user,
            )
            self.subscriptions[name] = existing
            if durable:
                self.note(sub=existing.as_row())
            if not options & (4096 | 2048):
                self.send_retained(existing)
        handle = next(conn.next)
        conn.handles[handle] = Handle("sub", options, sub=existing)
        return pack(OK, 0, handle, hobj, existing.correl_id)

    def unsubscribe(self, name: str) -> bool:
        gone = self.subscriptions.pop(name, None)
        if gone is not None and gone.durable:
            self.note(unsub=name)
        return gone is not None

    def subrq(self, conn: Conn, request: Reader) -> bytes:
        handle = conn.handles.get(request.i())
        if handle is None or handle.sub is None:
            raise ReasonError(2019)
        sent = self.send_retained(handle.sub)
        if not sent:
            raise ReasonError(2437)
        return pack(OK, 0, sent)

    def send_retained(self, subscription: Subscription) -> int:
        sent = 0
        for topic, (md, body, options) in sorted(self.retained.items()):
            if matches(subscription, topic) and self.selected(subscription, body):
                self.deliver(subscription, topic, MD(md), body, options, True)
                sent += 1
        return sent

    def publish(self, topic: str, md: MD, body: bytes, options: int) -> None:
        if md["Persistence"] == 2:
            md["Persistence"] = 0
        if md["Priority"] == -1:
            md["Priority"] = 0
        if options & 0x200000:
            self.retained[topic] = (bytes(md.raw), body, options)
            if md["Persistence"] == 1:
                self.note(retain=[topic, bytes(md.raw).hex(), body.hex(), options])
        groups = set()
        for subscription in list(self.subscriptions.values()):
            if subscription.on_request or not matches(subscription, topic):
                continue
            if not self.selected(subscription, body):
                continue
            group = (subscription.queue, subscription.correl_id)
            if subscription.grouped and group in groups:
                continue
            groups.add(group)
            self.deliver(subscription, topic, MD(bytes(md.raw)), body, options, False)

    def deliver(self, sub: Subscription, topic: str, md: MD, body: bytes, options: int, retained: bool) -> None:
        queue = self.queues.get(sub.queue)
        if queue is None:
            return
        md["MsgId"] = b"AMQ " + self.qmgr.encode()[:12].ljust(12) + struct.pack(">Q", next(self.unique))
        md["CorrelId"] = sub.correl_id
        md["BackoutCount"] = 0
        folders = [f"<mqps><Top>{escaped(topic)}</Top><Ret>{int(retained)}</Ret><Pub>{options}</Pub></mqps>".encode()]
        described = (md["Encoding"], md["CodedCharSetId"], md["Format"])
        rest = body
        if md["Format"] == "MQHRF2":
            length, encoding, ccsid, fmt = struct.unpack_from("<iii8s", body, 8)
            described, rest = (encoding, ccsid, fmt.decode().rstrip()), body[length:]
            at = 36
            while at < length:
                (size,) = struct.unpack_from("<i", body, at)
                folders.append(body[at + 4 : at + 4 + size].rstrip(b" \0"))
                at += 4 + size
        packed = b"".join(struct.pack("<i", len(p)) + p for p in (f + b" " * (-len(f) % 4) for f in folders))
        encoding, ccsid, fmt = described
        fixed = (2, 36 + len(packed), encoding, ccsid, fmt.encode().ljust(8), 0, 1208)
        header = struct.pack("<4siiii8sii", b"RFH ", *fixed) + packed
        md["Format"] = "MQHRF2"
        deadline = time.time() + md["Expiry"] / 10 if md["Expiry"] > 0 else None
        self.commit_parts([], [(queue, Message(next(self.numbers), md, header + rest, deadline))])

    @staticmethod
    def selected(subscription: Subscription, body: bytes) -> bool:
        """Selectors of one form alone: NAME IS NULL OR NAME <> 'VALUE'."""
        if not subscription.selector:
            return True
        form = re.fullmatch(r"(\w+) IS NULL OR \1 <> '([^']*)'", subscription.selector)
        assert form is not None, subscription.selector
        return f"<{form[1]}>{form[2]}</{form[1]}>".encode() not in body

    # PCF

    def command(self, message: Message) -> None:
        command, parameters = unpack_pcf(message.body)
        complete, reason = OK, 0
        names: list[str] = []
        if command == 184:  # MQCMD_CLEAR_TOPIC_STRING
            self.retained.pop(parameters[2094], None)
            self.note(clear=parameters[2094])
        elif command == 179:  # MQCMD_DELETE_SUBSCRIPTION
            if not self.unsubscribe(parameters[3152]):
                complete, reason = FAILED, 3311
        elif command == 177:  # MQCMD_CREATE_SUBSCRIPTION
            name = parameters[3152]
            row = (name, parameters[2094], False, parameters[3154], bytes(24), True, False, False, "", "admin")
            self.subscriptions[name] = Subscription(*row)
            self.note(sub=self.subscriptions[name].as_row())
        elif command == 176:  # MQCMD_INQUIRE_SUBSCRIPTION
            start = parameters[3152].rstrip("*")
            names = [name for name in self.subscriptions if name.startswith(start)]
            complete, reason = (OK, 0) if names else (FAILED, 2428)
        else:
            complete, reason = FAILED, 3007
        md = MD()
        md["MsgType"], md["CorrelId"], md["Format"] = 2, message.md["MsgId"], "MQADMIN"
        queue = self.queues.get(message.md["ReplyToQ"])
        for at, name in enumerate(names or [""], 1):
            last = int(at == max(len(names), 1))
            told = {3152: name, 3154: self.subscriptions[name].queue.ljust(48)} if name else {}
            body = struct.pack("<iiiiiiiii", 2, 36, 1, command, at, last, complete, reason, len(told))
            for parameter, value in told.items():
                text = value.encode()
                padded = text + bytes(-len(text) % 4)
                body += struct.pack("<iiiii", 4, 20 + len(padded), parameter, 1208, len(text)) + padded
            if queue is not None:
                queue.add(Message(next(self.numbers), MD(bytes(md.raw)), body))


def unpack_pcf(body: bytes) -> tuple[int, dict[int, Any]]:
    _type, length, _version, command, _seq, _control, _comp, _reason, count = struct.unpack_from("<9i", body)
    parameters: dict[int, Any] = {}
    at = length
    for _ in range(count):
        kind, size, parameter = struct.unpack_from("<3i", body, at)
        if kind == 3:
            (parameters[parameter],) = struct.unpack_from("<i", body, at + 12)
        elif kind == 4:
            (text,) = struct.unpack_from("<i", body, at + 16)
            parameters[parameter] = body[at + 20 : at + 20 + text].decode().rstrip()
        at += size
    return command, parameters


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def matches(subscription: Subscription, topic: str) -> bool:
    if subscription.chars:
        parts = re.split(r"(%[*?%]|[*?])", subscription.topic)
        pattern = "".join(
            ".*" if p == "*" else "." if p == "?" else re.escape(p[1:] if p[:1] == "%" else p) for p in parts
        )
        return re.fullmatch(pattern, topic, re.DOTALL) is not None

    def walk(wanted: list[str], levels: list[str]) -> bool:
        if not wanted:
            return not levels
        if wanted[0] == "#":
            return any(walk(wanted[1:], levels[k:]) for k in range(len(levels) + 1))
        return bool(levels) and wanted[0] in ("+", levels[0]) and walk(wanted[1:], levels[1:])

    return walk(subscription.topic.split("/"), topic.split("/"))


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", required=True)
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--definitions", type=Path)
    parser.add_argument("--qmgr", default="QM1")
    given = parser.parse_args()
    definitions = json.loads(given.definitions.read_text()) if given.definitions else {}
    server = Server(given.qmgr, given.journal, definitions)
    Path(given.socket).unlink(missing_ok=True)
    listener = await asyncio.start_unix_server(server.serve, given.socket)
    print("ready", flush=True)
    async with listener:
        await listener.serve_forever()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
