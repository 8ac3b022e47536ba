"""The broker's core: one command message in; effects on the topic space and puts out. No I/O, no clock.

The processor, the local replay and embedding programs all run this code. The arrival contains all outside information:
the time, the arrival number from which identifiers are made, and the user.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from commands.broker.authority import Authority, RecordedAuthority
from commands.broker.budget import Meter
from commands.broker.context import Context, InputQueueKind, Semantics, not_read
from commands.broker.copies import Copies, copies
from commands.broker.dead_letter import DeadLetters, is_wanted
from commands.broker.forward import Forwarder, RenderedHeaders
from commands.broker.identifiers import Ids, Origin
from commands.broker.objects import CONTROL_QUEUE, Objects
from commands.broker.plan import CommandPlan
from commands.broker.puts import Outgoing, PutKind
from commands.broker.respond import is_due, response
from commands.broker.trace import Trace, Tracer
from commands.broker.translate import translate, unrefused
from commands.headers.registry import parse
from commands.headers.response import Completion, Warned
from commands.model import Command, Publish
from rfh2.constants import MQAT_BROKER, MQRCCF_NO_RETAINED_MSG
from rfh2.errors import CommandError, DecodeError, QPubSubError
from rfh2.frozen import quick
from rfh2.inherited_ccsids import is_resolved, resolved
from rfh2.message import Message, decode, encode
from rfh2.mqmd import Mqmd, name_of
from streams.operations import AlterSubscription, Delivery, Effect, Operation, PublishToTopic, RequestRetained
from streams.patterns import written_topic
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_space import TopicSpace

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@quick
@dataclass(frozen=True, slots=True)
class Arrival:
    """A message that was put to a queue.

    seq: arrival number, unique in the queue manager. md: the bytes of its MQMD, or None for the defaults. user: who put
    it, or None for the MQMD's UserIdentifier. now: UTC.
    """

    seq: int
    now: datetime
    queue: str
    md: bytes | None
    body: bytes
    user: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one arrival.

    puts, effects: in order. command: None where the message could not be read as a command. completion: None where the
    message was not a command and was passed over. reason: the first reason code. undecodable: the message could not be
    read. lost: parts of a publication that the format of a subscriber cannot hold, after the name of its queue (guide
    8.7). operations: those of a command that was carried out. copies: the deliveries that each publication among the
    puts stands for, in their order. filtered: the subscriptions whose selection string excluded a publication. trace:
    how the result was reached, where the caller asked for it.
    """

    puts: tuple[Outgoing, ...] = ()
    effects: tuple[Effect, ...] = ()
    command: Command | None = None
    completion: Completion | None = None
    reason: int | None = None
    why: str = ""
    undecodable: bool = False
    lost: tuple[str, ...] = ()
    operations: tuple[Operation, ...] = ()
    copies: tuple[Copies, ...] = ()
    filtered: tuple[Subscription, ...] = ()
    trace: Trace | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading a message, independent of the queue manager.

    command: the command in it, or the error for the response. The processor makes it outside a unit of work if reading
    may take long.
    """

    message: Message | DecodeError
    command: Command | DecodeError | CommandError | None = None

    @classmethod
    def of(cls, md: bytes | None, body: bytes) -> Reading:
        """Read a message. Raises nothing: an error is a result."""
        try:
            message = decode(body, md)
        except DecodeError as error:
            return cls(error)
        try:
            return cls(message, parse(message))
        except (DecodeError, CommandError) as error:
            return cls(message, error)


@dataclass(slots=True)
class _Work:
    """One arrival in progress. command: the command, or the error, from an earlier reading; None without one."""

    arrival: Arrival
    message: Message
    context: Context
    origin: Origin
    ids: Ids
    command: Command | DecodeError | CommandError | None = None
    effects: list[Effect] = field(default_factory=list)
    puts: list[Outgoing] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    copies: tuple[Copies, ...] = ()
    filtered: list[Subscription] = field(default_factory=list)
    tracer: Tracer | None = None


class BrokerCore:
    """A queue manager's queued publish/subscribe interface, on objects and a topic space in memory.

    semantics: ``v7``, or ``v6`` for the old broker's behaviour where it differed (guide 7.5, 8.5). authority: by
    default that of the objects' records. rfh2_wildcards: the scheme of MQRFH2 commands; WebSphere MQ version 6's own
    broker had CHAR for all (guide 2.5.1.1). meter: counts what each command uses; None for no limits. before: called
    before each operation; it brings what is known elsewhere into the topic space, and returns the effects.
    """

    def __init__(
        self,
        objects: Objects,
        space: TopicSpace,
        semantics: str = "v7",
        authority: Authority | None = None,
        *,
        rfh2_wildcards: WildcardScheme = WildcardScheme.TOPIC,
        meter: Meter | None = None,
        before: Callable[[Operation, datetime], Sequence[Effect]] | None = None,
    ) -> None:
        self.objects, self.space = objects, space
        self._before = before
        self.rfh2_wildcards = rfh2_wildcards
        self._meter = meter
        self._headers = RenderedHeaders()
        self.semantics = Semantics(semantics)
        self.authority = authority if authority is not None else RecordedAuthority(self.objects)
        # Items defined at EPOCH, when no time was known, start to expire with the first message.
        lasting = (s for s in self.space.subscriptions() if s.expires_at is not None)
        self._not_begun = tuple(s for s in lasting if s.created == EPOCH)

    @property
    def qmgr(self) -> str:
        """The queue manager's name."""
        return self.objects.qmgr.name

    def process(self, arrival: Arrival, reading: Reading | None = None) -> Outcome:
        """Process one message: the effects have been applied to the topic space when this returns.

        reading: the result of reading it before, if there is one. Raises OverBudgetError where the meter does; the
        topic space may then have a part of the command's changes.
        """
        return self._process(arrival, reading, None)

    def trace(
        self, arrival: Arrival, reading: Reading | None = None, *, explains: bool = False, forwards: bool = True
    ) -> Outcome:
        """The same with a trace.

        explains: whether the trace also says whom operations passed over, and why. forwards: whether messages are made
        for subscribers; without them, the outcome has no puts of publications, and ``copies`` says for whom each of
        them would be; a response then has another MsgId.
        """
        tracer = Tracer(explains, forwards)
        return replace(self._process(arrival, reading, tracer), trace=tracer.trace())

    def _process(self, arrival: Arrival, reading: Reading | None, tracer: Tracer | None) -> Outcome:
        if self._not_begun:
            self._begin(arrival.now)
        origin = Origin.of(self.qmgr, arrival.now)
        try:
            mqmd = Mqmd() if arrival.md is None else Mqmd.decode(arrival.md)
            if reading is None:
                message = decode(arrival.body, None if arrival.md is None else mqmd)
            else:
                message = _message_of(reading, arrival, mqmd)
        except DecodeError as error:
            if arrival.md is None or error.header == "MQMD":
                mqmd = Mqmd()
            work = self._work(arrival, resolved(Message(mqmd, (), arrival.body)), origin)
            if not _is_read(work.context):
                return _not_read(work.context)
            return self._undecodable(work, error)
        if not is_resolved(message):
            arrival, message = as_kept(arrival, message)
        work = self._work(arrival, message, origin)
        work.command = None if reading is None else reading.command
        if not _is_read(work.context) and not _makes_a_stream(work):
            return _not_read(work.context)
        expired = self.space.expire(arrival.now)
        work.effects += expired
        if tracer is not None:
            tracer.reached, tracer.expired = True, tuple(expired)
            work.tracer = tracer
        return self._command(work)

    def foreseen(self, arrival: Arrival) -> tuple[Operation, ...]:
        """The operations of one message if it were processed now; none if it is in error. Changes nothing."""
        try:
            message = decode(arrival.body, arrival.md)
            work = self._work(arrival, message, Origin.of(self.qmgr, arrival.now))
            return tuple(translate(parse(message), work.context).operations)
        except QPubSubError:
            return ()

    def _begin(self, now: datetime) -> None:
        for subscription in self._not_begun:
            assert subscription.expires_at is not None
            begun = replace(subscription, created=now, expires_at=now + (subscription.expires_at - EPOCH))
            self.space.apply(AlterSubscription(begun, send_retained=False), now)
        self._not_begun = ()

    def set_aside(self, arrival: Arrival, reason: int, why: str) -> Outcome:
        """Make a dead letter of a message that must not be processed; do nothing else with it."""
        try:
            mqmd = Mqmd() if arrival.md is None else Mqmd.decode(arrival.md)
        except DecodeError:
            mqmd = Mqmd()
        message = resolved(Message(mqmd, (), arrival.body))
        work = self._work(arrival, message, Origin.of(self.qmgr, arrival.now))
        self._dead_letter(work, reason)
        return self._failed(work, None, reason, why)

    def _work(self, arrival: Arrival, message: Message, origin: Origin) -> _Work:
        ids = Ids(self.qmgr, arrival.seq)
        user = name_of(message.mqmd.user_identifier) if arrival.user is None else arrival.user
        context = Context(
            self.objects,
            self.space,
            self.authority,
            message,
            arrival.queue,
            user,
            arrival.now,
            partial(self._new_sub_id, ids),
            self.semantics,
            self.rfh2_wildcards,
        )
        return _Work(arrival, message, context, origin, ids)

    def _new_sub_id(self, ids: Ids) -> bytes:
        # Several captures in one can have a number twice, but two subscriptions must not share an identifier.
        sub_id = ids()
        while self.space.subscription(sub_id) is not None:
            sub_id = ids()
        return sub_id

    def _command(self, work: _Work) -> Outcome:
        command: Command | None = None
        try:
            command = parse(work.message) if work.command is None else _parsed(work)
            if self._meter is not None:
                self._meter.understood(len(command.topics))
            plan = translate(command, work.context)
            deliveries = self._apply(work, plan)
        except DecodeError as error:
            return self._undecodable(work, error)
        except CommandError as error:
            _note_refused(work, command)
            return self._refused(work, command, error)
        if plan.warnings:
            _note_refused(work, command)
        self._forward(work, command, deliveries)
        completion = Completion.WARNING if plan.warnings else Completion.OK
        self._respond(work, completion, plan.warnings, plan)
        reason = plan.warnings[0].reason if plan.warnings else None
        outcome = Outcome(
            tuple(work.puts),
            tuple(work.effects),
            command,
            completion,
            reason,
            operations=tuple(plan.operations),
            copies=work.copies,
            filtered=tuple(work.filtered),
        )
        return replace(outcome, lost=tuple(work.lost)) if work.lost else outcome

    def _apply(self, work: _Work, plan: CommandPlan) -> list[Delivery]:
        deliveries: list[Delivery] = []
        now, tracer = work.arrival.now, work.tracer
        for operation in plan.operations:
            if self._before is not None:
                work.effects += self._before(operation, now)
            effects = self.space.apply(operation, now) if tracer is None else tracer.apply(self.space, operation, now)
            work.filtered += self.space.filtered
            if isinstance(operation, RequestRetained) and not effects:
                subscription = operation.subscription
                why = "the topic has no retained publication"
                raise CommandError(MQRCCF_NO_RETAINED_MSG, written_topic(subscription), why)
            if self._meter is not None:
                self._meter.changed(len(effects))
            for effect in effects:
                if isinstance(effect, Delivery):
                    deliveries.append(effect)
                else:
                    work.effects.append(effect)
        return deliveries

    def _forward(self, work: _Work, command: Command, deliveries: list[Delivery]) -> None:
        if not deliveries:
            return
        work.copies = tuple(copies(deliveries, self.semantics))
        if work.tracer is not None and not work.tracer.forwards:
            return
        forwarder = Forwarder(self.qmgr, work.arrival.now, work.origin, command, self._headers)
        for delivery, *others in work.copies:
            put = forwarder.put(delivery, work.ids(), self.objects, *others)
            if self._meter is not None:
                self._meter.made(len(put.body))
            work.puts.append(put)
        work.lost += forwarder.lost

    def _respond(
        self, work: _Work, completion: Completion, answers: tuple[Warned, ...], plan: CommandPlan | None = None
    ) -> bool:
        """Put the response, if one is due and has a destination; whether it was put."""
        context = work.context
        qmgr, queue = context.reply_to
        if not queue or not is_due(context.mqmd, completion):
            return False
        full = plan.full if plan is not None else None
        message = response(
            work.message,
            completion,
            answers,
            work.ids(),
            context.priority,
            context.persistence,
            work.origin,
            full,
        )
        reason = answers[0].reason if answers else None
        work.puts.append(
            Outgoing(
                PutKind.RESPONSE,
                qmgr,
                queue,
                message,
                encode(message),
                completion=completion,
                reason=reason,
                expires_at=context.expires_at,
            )
        )
        return True

    def _refused(self, work: _Work, command: Command | None, error: CommandError) -> Outcome:
        """Answer a command in error if it asks for that; otherwise make it a dead letter."""
        tags = error.tags or ((("Topic", error.topic),) if error.topic is not None else ())
        answered = self._respond(work, Completion.ERROR, (Warned(error.reason, tags),))
        # A ReqUpdate that finds nothing retained was processed completely, so its message need not be kept.
        if not answered and error.reason != MQRCCF_NO_RETAINED_MSG:
            self._dead_letter(work, error.reason)
        return self._failed(work, command, error.reason, str(error))

    def _undecodable(self, work: _Work, error: DecodeError) -> Outcome:
        """Make a dead letter of a message that cannot be read, and also answer it if it asks for that."""
        self._dead_letter(work, error.reason)
        self._respond(work, Completion.ERROR, (Warned(error.reason),))
        return replace(self._failed(work, None, error.reason, str(error)), undecodable=True)

    def _dead_letter(self, work: _Work, reason: int) -> None:
        if not is_wanted(work.message.mqmd):
            return
        arrival, expires_at = work.arrival, work.context.expires_at
        letters = DeadLetters(self.qmgr, self.objects.qmgr.deadq)
        mqmd, body = work.message.mqmd, arrival.body
        work.puts.append(letters.put(mqmd, body, reason, arrival.queue, arrival.now, expires_at=expires_at))

    def _failed(self, work: _Work, command: Command | None, reason: int, why: str) -> Outcome:
        return Outcome(tuple(work.puts), tuple(work.effects), command, Completion.ERROR, reason, why)


def _message_of(reading: Reading, arrival: Arrival, mqmd: Mqmd) -> Message:
    if isinstance(reading.message, DecodeError):
        raise reading.message
    # Expiry and BackoutCount may have changed since.
    return reading.message if arrival.md is None else replace(reading.message, mqmd=mqmd)


def as_kept(arrival: Arrival, message: Message) -> tuple[Arrival, Message]:
    """A message as a queue manager would keep it: a capture may show what a program gave to MQPUT.

    A message put by the broker has MQAT_BROKER and cannot inherit a CCSID; a dead letter has the message's own bytes.
    """
    kept = resolved(message)
    body = encode(kept)
    if kept.mqmd != message.mqmd:
        # The characters of the first header are in the CCSID that the descriptor now names.
        with suppress(DecodeError):
            kept = decode(body, kept.mqmd)
    return arrival if body == arrival.body else replace(arrival, body=body), kept


def _parsed(work: _Work) -> Command:
    if work.command is None:
        return parse(work.message)
    if isinstance(work.command, DecodeError | CommandError):
        raise work.command
    return work.command


def _note_refused(work: _Work, command: Command | None) -> None:
    """Note in the trace what a Publish would have done with the topics that were refused."""
    tracer = work.tracer
    if tracer is None or not tracer.explains or not isinstance(command, Publish):
        return
    done = {op.topic_string for traced in tracer.operations if isinstance(op := traced.operation, PublishToTopic)}
    with suppress(CommandError):
        tracer.refused = tuple(op for op in unrefused(command, work.context) if op.topic_string not in done)


def _is_read(context: Context) -> bool:
    """Whether queued publish/subscribe takes every message from the queue on which this one arrived."""
    return context.queue == CONTROL_QUEUE or context.is_listed(context.queue)


def _makes_a_stream(work: _Work) -> bool:
    """Whether the message makes the queue a stream of version 6: a publication that no broker put there."""
    if work.context.place is InputQueueKind.OTHER or work.message.mqmd.put_appl_type == MQAT_BROKER:
        return False
    try:
        return not _parsed(work).on_control_queue
    except (DecodeError, CommandError):
        return False


def _not_read(context: Context) -> Outcome:
    return Outcome(why=f"not processed: {not_read(context.queue)}")
