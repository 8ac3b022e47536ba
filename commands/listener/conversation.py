"""One conversation: a program connected to the queue manager over a channel, and its calls, one at a time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final, TypeVar

from commands.broker.channel_authentication import ChannelRules
from commands.broker.objects import DELAY_QUEUE
from commands.listener.request import Held, Instances, Memory, ObjectDescriptor
from commands.listener.security import Admission, Identity, Security
from commands.listener.wire import Gate, MessageWaiters, Signal, new_signal
from commands.listener.worker import Taken, Worker
from commands.qmgr.event_numbers import CHANNEL_BROKEN, CHANNEL_ENDED, CHANNEL_STARTED, LOGIN_REFUSED
from commands.qmgr.mqi.attributes import Values, identifier
from commands.qmgr.mqi.authority import OpenAuthority, TopicDefinitions
from commands.qmgr.mqi.calls import NO_FIELDS, Program, PutFields
from commands.qmgr.mqi.getting import NOTHING_AHEAD, Ahead, GetOptions, Got
from commands.qmgr.mqi.handles import Application, AsyncPuts, ConnectedProgram, Defaults, OpenQueues
from commands.qmgr.mqi.putting import DelayedMessages
from commands.qmgr.mqi.refusals import MqiError
from commands.qmgr.mqi.subscription_rules import REPLY_QUEUE, SubscriptionAnswer, SubscriptionDescriptor
from commands.qmgr.mqi.subscriptions import ANSWER_WITHIN_S, Pending
from commands.qmgr.mqi.transactions import BackedOutError
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.connection import ProgramConnection
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2 import mqi_constants as m
from rfh2.constants import MQPER_NOT_PERSISTENT, MQRC_NOT_AUTHORIZED, MQRC_RESOURCE_PROBLEM
from rfh2.errors import QPubSubError, QueueError, StoreError
from rfh2.mqmd import RawMqmd
from rfh2.pcf_admin_names import MQOT_Q_MGR, MQOT_TOPIC

_Result = TypeVar("_Result")
_log: Final = logging.getLogger("qpubsub.listener")
_CONNECTION_ID_BYTES: Final = 24
# Beside the time for which a request may wait: to carry it out.
_ANSWERED_S: Final = 10
_DELAYED_AGAIN_S: Final = 5.0
_ENDED_AGAIN_S: Final = 1.0


async def _first_of(seconds: float | None, *signals: asyncio.Future[Any] | None) -> None:
    """Wait until one of *signals* is given, or *seconds* have passed."""
    given = [signal for signal in signals if signal is not None]
    await asyncio.wait(given, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)


@dataclass(slots=True)
class Shared:
    """What all conversations share. new_id: 24 bytes that nothing else has. quiescing: given when the listener ends.

    connected: the conversations of programs, by the identifiers of their connections. stopped: the channels that were.
    ending: what is left to be done for programs that have ended. failed: called with a fault that ends the listener.
    """

    name: str
    worker: Worker
    waiters: MessageWaiters
    security: Security
    new_id: Callable[[], bytes]
    memory: Memory
    failed: Callable[[BaseException], None]
    quiescing: Signal = field(default_factory=new_signal)
    open_queues: OpenQueues = field(default_factory=OpenQueues)
    topics: TopicDefinitions = field(default_factory=TopicDefinitions)
    holder: ProgramConnection | None = None
    instances: Instances = field(default_factory=Instances)
    numbers: int = 0
    connected: dict[bytes, Conversation] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    ending: set[asyncio.Task[None]] = field(default_factory=set)

    async def rules(self) -> ChannelRules:
        """What the definitions say now of clients. Raises StoreError."""
        return self.security.rules(await self.worker.do(self.topics.objects, lasting=False))

    def wake(self, queues: Iterable[str]) -> None:
        """There may be new messages on *queues*, which no unit of work of the worker's has given to those who wait."""
        self.worker.retry(queues)
        self.waiters.wake(queues)

    async def ended(self, program: Program, commit: bool) -> bool:
        """Whether the unit of work of *program*, which ends, is done as it is to be. Raises StoreError."""
        is_done, queues = await self.worker.alone(lambda store: program.disconnect(store.unit_of_work, commit))
        self.wake(queues)
        return is_done

    def end_later(self, program: Program) -> None:
        """Back out what *program* has left, when the database is there again: the program may be gone by then."""

        async def end() -> None:
            is_ended = False
            while not is_ended:
                await asyncio.sleep(_ENDED_AGAIN_S)
                try:
                    await self.ended(program, commit=False)
                    is_ended = True
                except StoreError:
                    continue
                except Exception as error:  # what it holds nobody else would get: the next listener gives it back
                    self.failed(error)
                    return

        task = asyncio.get_running_loop().create_task(end())
        self.ending.add(task)
        task.add_done_callback(self.ending.discard)

    def next_number(self) -> int:
        """The number of a new conversation, unique in this process."""
        self.numbers += 1
        return self.numbers


async def deliver_delayed(shared: Shared) -> None:
    """Put each delayed message when it is due, until it is cancelled."""
    delayed = DelayedMessages(shared.open_queues)
    while True:
        arrived = shared.waiters.expect(DELAY_QUEUE)
        try:
            queues, wait_s = await shared.worker.alone(delayed.move)
            shared.wake(queues)
        except Exception as error:
            _log.error("delayed messages wait: %s", error, exc_info=not isinstance(error, StoreError))
            wait_s = _DELAYED_AGAIN_S
        await _first_of(wait_s, arrived)


@dataclass(slots=True)
class Attempts:
    """Those to connect, of all conversations of a connection: one at a time, and none after a wrong password.

    connected: the programs that are. A wrong password of another one does not end their connection. puts, gets: of
    those that were.
    """

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    has_failed: bool = False
    connected: int = 0
    puts: int = 0
    gets: int = 0


class Conversation:
    """identity: who the session says that its program is. trace: of the connection, for the log."""

    def __init__(self, shared: Shared, identity: Identity, trace: str, attempts: Attempts) -> None:
        self._shared, self.identity, self._trace, self._attempts = shared, identity, trace, attempts
        self._number = shared.next_number()
        self._program: Program | None = None
        self._unique = shared.new_id()[-8:]
        self._application = ""
        self._waits = 0
        self._getting: dict[asyncio.Future[int], int] = {}
        self._no_program = m.MQRC_HCONN_ERROR
        self.was_connected = False
        self.qmgr = shared.name

    # The connection

    @property
    def is_connected(self) -> bool:
        """Whether MQCONN succeeded, and MQDISC has not come."""
        return self._program is not None

    @property
    def waits(self) -> bool:
        """Whether a call waits for a message."""
        return self._waits > 0

    @property
    def program(self) -> Program | None:
        """The program that is connected."""
        return self._program

    @property
    def waiting(self) -> set[int]:
        """The handles of which calls wait for a message."""
        return set(self._getting.values())

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

    def debug(self, text: str, value: object = "") -> None:
        """The same for what is nobody's fault, where the log is to have that."""
        _log.debug("%s: %s%s", self._trace, text, value)

    def _log_refusal(self, application: str, reason: int, why: str, number: int = LOGIN_REFUSED) -> None:
        """Write for an audit who may not connect and *why*: as whom, from where, by which channel and program."""
        identity, credentials = self.identity, self.identity.credentials
        user = identity.user if credentials is None else credentials.user
        given = "without a password" if credentials is None or not credentials.password else "with a password"
        text = "%s: user %r, %s, may not connect by channel %r: reason %d, %s (program %r, which runs as user %r)"
        words = (self._trace, user, given, identity.channel, reason, why, application, identity.user)
        _log.error(text, *words, extra={**self._about(number, user, application), "reason": reason})

    def _about(self, number: int, user: str, application: str) -> dict[str, Any]:
        """What an event about a program has beside its text. number: of IBM MQ's message for it."""
        return {
            "numbers": (number,),
            "address": self.identity.address,
            "channel": self.identity.channel,
            "user": user,
            "asserted": self.identity.user,
            "program": application,
        }

    def _log_connected(self, application: Application) -> None:
        text = "%s: user %r has connected by channel %r (program %r, which runs as user %r)"
        words = (self._trace, application.user, self.identity.channel, application.name, self.identity.user)
        about = self._about(CHANNEL_STARTED, application.user, application.name)
        _log.info(text, *words, extra={**about, "is_told": True})

    def _log_end(self, program: Program, in_order: bool) -> None:
        """in_order: by MQDISC, or because the listener ends; else the program has died, or was ended."""
        level, number = (logging.INFO, CHANNEL_ENDED) if in_order else (logging.ERROR, CHANNEL_BROKEN)
        how = "has disconnected from" if in_order else "ended without MQDISC on"
        text = "%s: user %r %s channel %r after %d puts and %d gets (program %r)"
        user, name = program.application.user, program.application.name
        words = (self._trace, user, how, self.identity.channel, program.puts, program.gets, name)
        _log.log(level, text, *words, extra={**self._about(number, user, name), "is_told": in_order})

    async def connect(self, qmgr: str, application: str, kind: int, accounting_token: bytes) -> int:
        """MQCONN; the reason, 0 where it succeeds."""
        if self._program is not None:
            return m.MQRC_ALREADY_CONNECTED
        if not qmgr.startswith("*") and qmgr not in ("", self.qmgr):
            return m.MQRC_Q_MGR_NAME_ERROR
        if self._shared.quiescing.done():
            return m.MQRC_Q_MGR_QUIESCING
        admission = await self._admitted()
        user, reason = admission.user, admission.reason
        if reason:
            self._log_refusal(application, reason, admission.why, admission.number)
            return reason
        self._application = application
        context = Application(user, application, kind, accounting_token)
        shared = self._shared

        def made(store: QueueManagerStore) -> Program:
            with store.unit_of_work() as unit:
                OpenAuthority(shared.topics, user).connect(unit)
            if shared.holder is None:
                shared.holder = store.connect()
            connected = ConnectedProgram(
                qmgr=store.name,
                application=context,
                number=self._number,
                connection=store.connect(),
                holder=shared.holder,
                open_queues=shared.open_queues,
                topics=shared.topics,
                new_id=shared.new_id,
                clock=store.clock,
            )
            return Program(connected)

        try:
            self._program = await shared.worker.alone(made)
        except MqiError as error:
            self._log_refusal(application, error.reason, error.why)
            return error.reason
        shared.connected[self.connection_id[:_CONNECTION_ID_BYTES]] = self
        self.was_connected = True
        self._attempts.connected += 1
        self._log_connected(context)
        return 0

    async def _admitted(self) -> Admission:
        """The user as whom the program works, and the reason for which it may not connect."""
        async with self._attempts.turn:
            if self._attempts.has_failed:
                return Admission("", MQRC_NOT_AUTHORIZED, why="a password on this connection was wrong")
            admission = await self._shared.security.admission(self.identity, await self._shared.rules())
            self._attempts.has_failed = admission.is_wrong_password and not self._attempts.connected
        return admission

    async def disconnect(self, commit: bool) -> None:
        """MQDISC; without *commit* the end of a broken connection. Raises MqiError 2003 (a warning), StoreError."""
        program, self._program = self._program, None
        self._shared.connected.pop(self.connection_id[:_CONNECTION_ID_BYTES], None)
        if program is not None:
            self._attempts.connected -= 1
            self._attempts.puts += program.puts
            self._attempts.gets += program.gets
            self._log_end(program, commit or self._shared.quiescing.done())
            try:
                is_done = await self._shared.ended(program, commit)
            except StoreError:
                self._shared.end_later(program)
                raise
            except QPubSubError:
                raise
            except Exception as error:
                self._shared.failed(error)
                raise
            if not is_done:
                raise BackedOutError(m.MQCC_WARNING)

    def cancel_waits(self, connection_id: bytes, reason: int) -> None:
        """End with *reason* the calls of another conversation of this user that wait for a message."""
        other = self._shared.connected.get(connection_id)
        if other is None or other._connected().application.user != self._connected().application.user:
            return
        other._end_waits(reason)

    def _end_waits(self, reason: int) -> None:
        for getting in self._getting:
            if not getting.done():
                getting.set_result(reason)

    async def stop(self) -> None:
        """End the program (STOP CONN) and not the connection, which others share: all its calls fail with 2009."""
        self._no_program = m.MQRC_CONNECTION_BROKEN
        self._end_waits(m.MQRC_CONNECTION_BROKEN)
        await self.disconnect(commit=False)

    def _connected(self) -> Program:
        if self._program is None:
            raise MqiError(self._no_program, "the program is not connected")
        return self._program

    def _fail_if_quiescing(self, options: int) -> None:
        """*options*: of MQOPEN, MQPUT, MQGET or MQSUB, where the bit is the same. Raises MqiError 2161."""
        if options & m.MQGMO_FAIL_IF_QUIESCING and self._shared.quiescing.done():
            raise MqiError(m.MQRC_Q_MGR_QUIESCING, "the queue manager is ending")

    # Objects

    async def open(self, od: ObjectDescriptor, options: int) -> int:
        """MQOPEN; the handle. Writes the names into *od*."""
        self._fail_if_quiescing(options)
        program = self._connected()
        number = await self._shared.worker.alone(
            lambda store: program.open(od.target, options, od.dynamic_name, store.unit_of_work)
        )
        handle = program.handle(number)
        if od.object_type not in (MQOT_Q_MGR, MQOT_TOPIC):
            od.resolve(handle.name if handle.qmgr else handle.queue, handle.qmgr or self.qmgr, handle.made is not None)
        elif od.structure["Version"] >= 2:
            od.structure["KnownDestCount"] = 1
        return number

    def defaults(self, handle: int) -> Defaults:
        """What the object that is open says for what options leave to it."""
        return self._connected().handle(handle).defaults

    async def close(self, handle: int, options: int) -> None:
        """MQCLOSE."""
        program = self._connected()
        if program.handle(handle).subscription is not None:
            subscriber = program.subscriber
            pending = await self._shared.worker.do(lambda unit: subscriber.begin_close(handle, options, unit))
            if pending is not None:
                await self._required(pending)
        await self._shared.worker.alone(lambda _: program.close(handle, options))

    # Subscriptions

    async def subscribe(self, descriptor: SubscriptionDescriptor, hobj: int) -> tuple[int, int, SubscriptionAnswer]:
        """MQSUB; the handles of the subscription and of its queue, and what there is. hobj: the queue, 0 for none."""
        self._fail_if_quiescing(descriptor.options)
        program, worker = self._connected(), self._shared.worker
        subscriber = program.subscriber
        pending = await worker.alone(lambda store: subscriber.begin(descriptor, hobj, store.unit_of_work))
        answer = await self._answer(pending)
        hsub, hobj = await worker.alone(lambda store: subscriber.finish(pending, answer, store.unit_of_work))
        assert answer is not None
        return hsub, hobj, answer

    async def join(self, sub_id: bytes) -> tuple[int, int, SubscriptionAnswer]:
        """MQSUB for a subscription that another program has open; the same as ``subscribe`` gives."""
        subscriber = self._connected().subscriber
        return await self._shared.worker.alone(lambda store: subscriber.join(sub_id, store.unit_of_work))

    async def request_retained(self, hsub: int, action: int) -> int:
        """MQSUBRQ; how many publications were sent."""
        subscriber = self._connected().subscriber
        pending = await self._shared.worker.do(lambda unit: subscriber.begin_retained(hsub, action, unit))
        return (await self._required(pending)).count

    async def _answer(self, pending: Pending) -> SubscriptionAnswer | None:
        """What the command processor answers; None where it does not."""
        subscriber, end = self._connected().subscriber, time.monotonic() + ANSWER_WITHIN_S + _ANSWERED_S
        while True:
            arrived = self._shared.waiters.expect(REPLY_QUEUE)
            answer = await self._shared.worker.do(lambda unit: subscriber.take_answer(pending, unit), lasting=False)
            if answer is not None or time.monotonic() > end:
                return answer
            await _first_of(end - time.monotonic(), arrived)

    async def _required(self, pending: Pending) -> SubscriptionAnswer:
        answer = await self._answer(pending)
        if answer is None:
            raise MqiError(MQRC_RESOURCE_PROBLEM, "the command processor has not answered in time")
        if answer.reason:
            raise MqiError(answer.reason, answer.why)
        return answer

    async def inquire(self, handle: int, selectors: list[int]) -> Values:
        """MQINQ."""
        program = self._connected()
        return await self._shared.worker.do(lambda unit: program.inquire(unit, handle, selectors), lasting=False)

    async def set(self, handle: int, values: Sequence[tuple[int, int]]) -> None:
        """MQSET."""
        program = self._connected()
        await self._shared.worker.do(lambda unit: program.set(unit, handle, values))
        self._shared.wake((program.handle(handle).queue,))  # a get that waits is to fail where it is inhibited

    # Messages

    async def put(
        self,
        od: ObjectDescriptor | None,
        handle: int,
        mqmd: RawMqmd,
        options: int,
        body: bytes,
        deferred: bool = False,
        fields: PutFields = NO_FIELDS,
    ) -> tuple[bytes, str]:
        """MQPUT, or MQPUT1 with *od*; the descriptor as put, and the queue. deferred: as ``Program.put`` says."""
        self._fail_if_quiescing(options)
        program, worker = self._connected(), self._shared.worker
        # After a power failure there is no uncommitted message, and there need be none that is not persistent.
        lasting = deferred or not (options & m.MQPMO_SYNCPOINT or mqmd.persistence == MQPER_NOT_PERSISTENT)
        work: Callable[[EmbeddedUnitOfWork], bytes]
        if od is not None:
            target = od.target
            work, queue = lambda unit: program.put1(unit, target, mqmd, options, body, fields), target.name
        else:
            opened = program.handle(handle)
            work = lambda unit: program.put(unit, handle, mqmd, options, body, deferred, fields)  # noqa: E731
            queue = opened.queue or opened.name
        put = await worker.do(work, lasting, lambda _: program.more)
        self._shared.waiters.wake(_taken_from(program.more))
        return put, queue

    async def put_unanswered(
        self,
        od: ObjectDescriptor | None,
        handle: int,
        mqmd: RawMqmd,
        options: int,
        body: bytes,
        fields: PutFields = NO_FIELDS,
    ) -> None:
        """The same for a program that does not wait for the answer, and would take one for that to its next call.

        MQSTAT gives what came of it, as long as the program is connected.
        """
        program = self._program
        if program is None:
            return
        try:
            await self.put(od, handle, mqmd, options, body, fields=fields)
        except (MqiError, StoreError) as error:
            reason = error.reason if isinstance(error, (MqiError, QueueError)) else m.MQRC_Q_MGR_NOT_AVAILABLE
            self.debug(f"MQPUT without an answer: {error}")
            target = od.target if od is not None else dict(program.handles).get(handle)
            of = (0, "") if target is None else (target.object_type, target.name)
            program.async_puts.fail(reason, *of)
        else:
            program.async_puts.done += 1

    def take_async_puts(self) -> AsyncPuts:
        """MQSTAT: what became of such puts since it was last called."""
        program = self._connected()
        puts, program.async_puts = program.async_puts, AsyncPuts()
        return puts

    def reserve_ids(self) -> bytes:
        """An identifier that ends with four zeros; with anything else in their place it is the program's to use."""
        return b"AMQ qpubsub " + self._shared.new_id()[-8:] + bytes(4)

    async def activate(self, msg_id: bytes, put: bool) -> None:
        """Put a deferred message, or with *put* false take it back."""
        program = self._connected()
        work = self._shared.worker.do(lambda unit: program.activate(unit, msg_id, put), fills=lambda queues: queues)
        self._shared.waiters.wake(await work)

    async def get(
        self,
        handle: int,
        asked: GetOptions,
        wait_ms: int,
        held: Held,
        gate: Gate | None = None,
        ahead: Ahead = NOTHING_AHEAD,
    ) -> Got | None:
        """MQGET; it waits up to *wait_ms*, below 0 for ever. gate: for a consumer; None where that has ended.

        held: the memory that the message uses; where there is no room for it, it stays on its queue. ahead: what is to
        be got with it.
        """
        program, worker, waiters = self._connected(), self._shared.worker, self._shared.waiters
        # After a power failure, what was got in syncpoint is back on its queue in any case.
        lasting = not asked.options & (m.MQGMO_SYNCPOINT | m.MQGMO_ANY_BROWSE)
        queue = program.handle(handle).queue
        end = None if wait_ms < 0 else time.monotonic() + wait_ms / 1000
        quiescing = self._shared.quiescing if asked.options & m.MQGMO_FAIL_IF_QUIESCING else None
        cancelled: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._getting[cancelled] = handle
        try:
            while True:
                # Whatever comes from here on is noticed, also while the queue is looked at.
                self._fail_if_quiescing(asked.options)
                if gate is not None and not await gate.open():
                    return None
                changed = None if gate is None else gate.change()
                # Looking at many messages takes turns: others have theirs between them.
                chooses, seq = program.chooses(handle, asked), None
                arrived = waiters.expect(queue) if chooses or asked.options & m.MQGMO_ANY_BROWSE else None
                if chooses:
                    seq, goes_on = await worker.alone(lambda store: program.look(store, handle, asked), brief=True)
                    if goes_on and not cancelled.done():
                        continue
                left = None if end is None else end - time.monotonic()
                is_over, got = left is not None and left <= 0, None
                stands = not is_over and seq is None and not asked.options & m.MQGMO_ANY_BROWSE
                if stands or seq is not None or not chooses:
                    take = _Take(program, handle, asked, seq, held, ahead, gate, comes=chooses and seq is None)
                    taking = worker.take(
                        queue if stands else "", take, lasting, lambda _: program.more, tries=not take.comes
                    )
                    try:
                        got = None if take.comes else await taking.future
                        if got is None and stands:
                            await self._wait(left, taking.future, arrived, changed, quiescing, cancelled)
                            worker.withdraw(taking)
                            got = await taking.future
                    finally:
                        worker.withdraw(taking)
                        take.end()
                if got is not None:
                    waiters.wake(_taken_from(program.more))
                    return got  # type: ignore[no-any-return]
                if seq is not None:
                    continue  # another program has got it
                if is_over:
                    raise MqiError(m.MQRC_NO_MSG_AVAILABLE, f"{queue} has no such message")
                if not stands:
                    await self._wait(left, arrived, changed, quiescing, cancelled)
                if cancelled.done():
                    raise MqiError(cancelled.result(), "the program has ended the wait")
        finally:
            del self._getting[cancelled]

    async def _wait(self, seconds: float | None, *signals: asyncio.Future[Any] | None) -> None:
        self._waits += 1
        try:
            await _first_of(seconds, *signals)
        finally:
            self._waits -= 1

    async def commit(self) -> None:
        """MQCMIT."""
        if not await self._end(commit=True):
            raise BackedOutError

    async def backout(self) -> None:
        """MQBACK."""
        await self._end(commit=False)

    async def transact(
        self, work: Callable[[Program, EmbeddedUnitOfWork], tuple[_Result, Iterable[str]]], lasting: bool
    ) -> _Result:
        """An XA call: its result. *work* gives it with the queues that have more messages. Raises StoreError."""
        program = self._connected()
        result, queues = await self._shared.worker.do(lambda unit: work(program, unit), lasting, itemgetter(1))
        self._shared.waiters.wake(queues)
        return result

    async def _end(self, commit: bool) -> bool:
        program = self._connected()
        since = program.transactions.since
        try:
            is_done, queues = await self._shared.worker.do(
                lambda unit: program.end_unit(unit, commit), fills=itemgetter(1)
            )
        except StoreError:
            program.transactions.stay(since, commit)
            raise
        self._shared.waiters.wake(queues)
        return is_done


def _taken_from(queues: list[str]) -> list[str]:
    taken = queues[:]
    queues.clear()
    return taken


@dataclass(slots=True)
class _Take:
    """Gets a message, if there is one and it may be sent; the gate is held until ``end``.

    comes: only what was just put, for there was nothing that the program chooses.
    """

    program: Program
    handle: int
    asked: GetOptions
    seq: int | None
    held: Held
    ahead: Ahead
    gate: Gate | None
    comes: bool
    is_over: bool = False
    passes: bool = False

    def __call__(self, unit: EmbeddedUnitOfWork) -> Taken[Got] | None:
        if self.is_over or not (self.gate is None or self.gate.enter()):
            return None
        self.passes, seq = True, self.seq
        try:
            if self.comes:
                seq, is_all = self.program.comes(unit, self.handle, self.asked)
                self.is_over = not is_all
                if seq is None:
                    self._leave()
                    return None
            got = self.program.get(unit, self.handle, self.asked, seq)
            self.held.add(len(got.body))
            if seq is None and self.ahead is not NOTHING_AHEAD:
                self.ahead.messages.clear()
                self.program.get_ahead(unit, self.handle, self.asked, got, self.ahead)
                self.held.add(sum(len(each.body) for each in self.ahead.messages))
        except MqiError as error:
            self._leave()
            if error.reason != m.MQRC_NO_MSG_AVAILABLE:
                raise
            return None
        except Exception:
            self._leave()
            raise
        return Taken(got, self._lasts(unit, got))

    def _lasts(self, unit: EmbeddedUnitOfWork, got: Got) -> bool:
        """Whether a power failure must not put back what is got.

        What this unit of work has put, and need not have, is after a power failure not there, got or not.
        """
        if self.asked.options & (m.MQGMO_SYNCPOINT | m.MQGMO_ANY_BROWSE):
            return False
        gets = (got, *self.ahead.messages)
        return any(each.mqmd.persistence != MQPER_NOT_PERSISTENT or not unit.is_new(each.seq) for each in gets)

    def end(self) -> None:
        """The message is on its way, or nothing is wanted any more."""
        self.is_over = True
        self._leave()

    def _leave(self) -> None:
        if self.passes and self.gate is not None:
            self.gate.leave()
        self.passes = False
