"""One conversation: a program connected to the queue manager over a channel, and its calls, one at a time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from commands.listener.gate import Gate
from commands.listener.security import Identity, Security
from commands.listener.targets import ObjectDescriptor
from commands.listener.worker import Worker
from commands.qmgr.mqi.attributes import Values, identifier
from commands.qmgr.mqi.calls import Program
from commands.qmgr.mqi.context import Application
from commands.qmgr.mqi.errors import MqiError
from commands.qmgr.mqi.given import GetOptions, Got
from commands.qmgr.mqi.handles import OpenQueues
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.connection import ProgramConnection
from commands.qmgr.store.unit_of_work import SqliteUnitOfWork
from rfh2.mqi_constants import MQRC_HCONN_ERROR, MQRC_NO_MSG_AVAILABLE, MQRC_Q_MGR_NAME_ERROR
from rfh2.mqmd import Mqmd
from rfh2.pcf_admin_names import MQOT_Q_MGR, MQOT_TOPIC

_log: Final = logging.getLogger("qpubsub.listener")
_ANY_NAME: Final = ("", "*")


class Arrivals:
    """Wakes those who wait for messages."""

    def __init__(self) -> None:
        self._expected: dict[str, asyncio.Event] = {}

    def wake(self, queues: Iterable[str] | None) -> None:
        """There may be new messages on *queues*; None for any queue."""
        for name in list(self._expected) if queues is None else queues:
            event = self._expected.pop(name, None)
            if event is not None:
                event.set()

    def expect(self, queue: str) -> asyncio.Event:
        """Set when something may next have come to *queue*; all who wait for one queue share it."""
        return self._expected.setdefault(queue, asyncio.Event())


async def _first_of(seconds: float | None, *events: asyncio.Event | None) -> None:
    """Wait until one of *events* is set, or *seconds* have passed."""
    waits = [asyncio.ensure_future(event.wait()) for event in events if event is not None]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


@dataclass(slots=True)
class Manager:
    """What all conversations share. new_id: 24 bytes that nothing else has."""

    name: str
    worker: Worker
    arrivals: Arrivals
    security: Security
    new_id: Callable[[], bytes]
    open_queues: OpenQueues = field(default_factory=OpenQueues)
    holder: ProgramConnection | None = None
    numbers: int = 0

    def next_number(self) -> int:
        """The number of a new conversation, unique in this process."""
        self.numbers += 1
        return self.numbers


class Conversation:
    """identity: who the session says that its program is. trace: of the connection, for the log."""

    def __init__(self, manager: Manager, identity: Identity, trace: str) -> None:
        self._manager, self.identity, self._trace = manager, identity, trace
        self._number = manager.next_number()
        self._program: Program | None = None
        self._unique = manager.new_id()[-8:]
        self._application = ""
        self.qmgr = manager.name

    # The connection

    @property
    def is_connected(self) -> bool:
        """Whether MQCONN succeeded, and MQDISC has not come."""
        return self._program is not None

    @property
    def connection_id(self) -> bytes:
        """The connection identifier: 128 bytes of which 24 are used."""
        return (b"AMQC" + self.qmgr[:12].ljust(12).encode("ascii", "replace") + self._unique).ljust(128, b"\0")

    @property
    def connection_tag(self) -> str:
        """The connection tag."""
        return f"MQCT{self._unique.hex().upper()}{identifier(self.qmgr)}{self._application}"

    def log(self, text: str) -> None:
        """Write a line to the listener's log."""
        _log.warning("%s: %s", self._trace, text)

    def debug(self, text: str) -> None:
        """The same for what is nobody's fault, where the log is to have that."""
        _log.debug("%s: %s", self._trace, text)

    async def connect(self, qmgr: str, application: str, kind: int, accounting_token: bytes) -> int:
        """MQCONN; the reason, 0 where it succeeds."""
        if qmgr.lstrip("*") not in _ANY_NAME and qmgr.lstrip("*") != self.qmgr:
            return MQRC_Q_MGR_NAME_ERROR
        user, reason = await self._manager.security.user_of(self.identity)
        if reason:
            _log.warning("%s: user %r may not connect (reason %d)", self._trace, self.identity.user, reason)
            return reason
        self._application = application
        context = Application(user, application, kind, accounting_token)
        manager = self._manager

        def made(store: QueueManagerStore) -> Program:
            if manager.holder is None:
                manager.holder = store.connect()
            return Program(
                *(store.name, store.connect(), manager.holder, self._number, context, manager.open_queues),
                *(manager.new_id, store.clock),
            )

        self._program = await manager.worker.alone(made)
        return 0

    async def disconnect(self, commit: bool) -> None:
        """MQDISC, or with *commit* false the end of a broken connection."""
        program, self._program = self._program, None
        if program is not None:
            queues = await self._manager.worker.alone(lambda store: program.disconnect(store.unit_of_work, commit))
            self._manager.arrivals.wake(queues)

    def _connected(self) -> Program:
        if self._program is None:
            raise MqiError(MQRC_HCONN_ERROR, "the program is not connected")
        return self._program

    # Objects

    async def open(self, od: ObjectDescriptor, options: int) -> int:
        """MQOPEN; the handle. Writes the names into *od*."""
        program = self._connected()
        number = await self._manager.worker.alone(
            lambda store: program.open(od.target, options, od.dynamic_name, store.unit_of_work)
        )
        handle = program.handle(number)
        if od.object_type not in (MQOT_Q_MGR, MQOT_TOPIC):
            od.resolve(handle.name if handle.qmgr else handle.queue, handle.qmgr or self.qmgr, handle.made is not None)
        elif od.structure["Version"] >= 2:
            od.structure["KnownDestCount"] = 1
        return number

    async def close(self, handle: int, options: int) -> None:
        """MQCLOSE."""
        program = self._connected()
        await self._manager.worker.alone(lambda _: program.close(handle, options))

    async def inquire(self, handle: int, selectors: list[int]) -> Values:
        """MQINQ."""
        program = self._connected()
        return await self._manager.worker.do(lambda unit: program.inquire(unit, handle, selectors))

    # Messages

    async def put(
        self,
        od: ObjectDescriptor | None,
        handle: int,
        mqmd: Mqmd,
        options: int,
        body: bytes,
        deferred: bool = False,
    ) -> tuple[Mqmd, str]:
        """MQPUT, or MQPUT1 with *od*; the descriptor as put, and the queue. deferred: as ``Program.put`` says."""
        program = self._connected()
        if od is not None:
            target = od.target
            put = await self._manager.worker.do(lambda unit: program.put1(unit, target, mqmd, options, body))
            queue = target.name
        else:
            opened = program.handle(handle)
            put = await self._manager.worker.do(lambda unit: program.put(unit, handle, mqmd, options, body, deferred))
            queue = opened.queue or opened.name
        self._manager.arrivals.wake((queue,))
        return put, queue

    async def activate(self, msg_id: bytes, put: bool) -> None:
        """Put a deferred message, or with *put* false take it back."""
        program = self._connected()
        self._manager.arrivals.wake(await self._manager.worker.do(lambda unit: program.activate(unit, msg_id, put)))

    async def get(self, handle: int, asked: GetOptions, wait_ms: int, gate: Gate | None = None) -> Got | None:
        """MQGET; it waits up to *wait_ms*, below 0 for ever. gate: for a consumer; None where that has ended."""
        program = self._connected()
        queue = program.handle(handle).queue
        end = None if wait_ms < 0 else time.monotonic() + wait_ms / 1000
        while True:
            # Whatever comes from here on is noticed, also while the queue is looked at.
            arrived = self._manager.arrivals.expect(queue)
            changed = None if gate is None else gate.change()
            if gate is not None and not await gate.enter():
                return None
            try:
                return await self._manager.worker.do(lambda unit: program.get(unit, handle, asked))
            except MqiError as error:
                left = None if end is None else end - time.monotonic()
                if error.reason != MQRC_NO_MSG_AVAILABLE or (left is not None and left <= 0):
                    raise
            finally:
                if gate is not None:
                    gate.leave()
            await _first_of(left, arrived, changed)

    async def commit(self) -> None:
        """MQCMIT."""
        await self._end(self._connected().commit)

    async def backout(self) -> None:
        """MQBACK."""
        await self._end(self._connected().backout)

    async def _end(self, end: Callable[[SqliteUnitOfWork], list[str]]) -> None:
        self._manager.arrivals.wake(await self._manager.worker.do(end))
