"""The broker's core: one command message in; effects on the topic space and puts out. No I/O, no clock.

The processor, the local replay and embedding programs all run this code. The arrival contains all outside information:
the time, the arrival number from which identifiers are made, and the user.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from commands.broker.authority import Authority, RecordedAuthority
from commands.broker.budget import Meter
from commands.broker.context import V6_BROKER, CommandPlan, Context, InputQueueKind, not_read, semantics_of
from commands.broker.descriptor import Ids, Origin
from commands.broker.exit_calls import ExitCalls, PublishExitFailedError, Undo
from commands.broker.exit_values import PublishExit
from commands.broker.forward import Forwarder, MadePuts, RenderedHeaders
from commands.broker.objects import Objects
from commands.broker.outcome import Arrival, Outcome, Tracer, copies
from commands.broker.puts import Copies, DeadLetters, Exited, Outgoing, PutKind, is_wanted
from commands.broker.reading import Reading, as_kept, decoded
from commands.broker.respond import is_due, response
from commands.broker.times import EPOCH
from commands.broker.translate import translate, unrefused
from commands.headers.registry import parse
from commands.headers.response import Completion, Warned
from commands.model import Command, Publish
from rfh2.constants import MQAT_BROKER, MQRCCF_NO_RETAINED_MSG
from rfh2.errors import CommandError, DecodeError, QPubSubError
from rfh2.message import Message, decode, encode, is_resolved, resolved
from rfh2.mqmd import Mqmd, name_of
from streams.operations import AlterSubscription, Delivery, Effect, Operation, PublishToTopic, RequestRetained
from streams.patterns import written_topic
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_space import TopicSpace


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
    exited: list[Exited] = field(default_factory=list)
    filtered: list[Subscription] = field(default_factory=list)
    carried: tuple[Delivery, ...] = ()
    tracer: Tracer | None = None


class BrokerCore:
    """A queue manager's queued publish/subscribe interface, on objects and a topic space in memory.

    semantics: one of SEMANTICS; those of version 6 are the old broker's behaviour where it differed (guide 7.5, 8.5).
    authority: by default that of the objects' records. rfh2_wildcards: the scheme of MQRFH2 commands; WebSphere MQ
    version 6's own broker, ``v6-broker``, had CHAR for all (guide 2.5.1.1). meter: counts what each command uses; None
    for no limits. before: called before each operation; it brings what is known elsewhere into the topic space, and
    returns the effects. publish_exit: called for each message for a subscriber (guide 4.6.2); None for none.
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
        publish_exit: PublishExit | None = None,
    ) -> None:
        self.objects, self.space = objects, space
        self._before, self.publish_exit = before, publish_exit
        self.rfh2_wildcards = WildcardScheme.CHAR if semantics == V6_BROKER else rfh2_wildcards
        self.meter = meter
        self._headers = RenderedHeaders()
        self.semantics = semantics_of(semantics)
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
        self,
        arrival: Arrival,
        reading: Reading | None = None,
        *,
        explains: bool = False,
        forwards: bool = True,
        made: MadePuts | None = None,
    ) -> Outcome:
        """The same with a trace.

        explains: whether the trace also says whom operations passed over, and why. forwards: whether messages are made
        for subscribers; without them, the outcome has no puts of publications, and ``copies`` says for whom each of
        them would be; a response then has another MsgId. made: what another broker of the queue manager made
        of the arrival; the same publication for the same subscriber is taken from there.
        """
        tracer = Tracer(explains, forwards, made)
        outcome = self._process(arrival, reading, tracer)
        outcome.trace = tracer.trace()
        return outcome

    def _process(self, arrival: Arrival, reading: Reading | None, tracer: Tracer | None) -> Outcome:
        self._begin(arrival.now)
        origin = Origin.of(self.qmgr, arrival.now)
        try:
            message = decoded(arrival.md, arrival.body) if reading is None else reading.message_with(arrival.md)
        except DecodeError as error:
            mqmd = Mqmd() if arrival.md is None or error.header == "MQMD" else Mqmd.decode(arrival.md)
            work = self._work(arrival, resolved(Message(mqmd, (), arrival.body)), origin)
            if not work.context.is_read:
                return Outcome(why=f"not processed: {not_read(arrival.queue)}")
            return self._undecodable(work, error)
        if not is_resolved(message):
            body, message = as_kept(arrival.body, message)
            if body is not arrival.body:
                arrival = replace(arrival, body=body)
        work = self._work(arrival, message, origin)
        work.command = None if reading is None else reading.command
        if not work.context.is_read and not _makes_a_stream(work):
            return Outcome(why=f"not processed: {not_read(arrival.queue)}")
        expired = self.space.expire(arrival.now)
        work.effects += expired
        if tracer is not None:
            tracer.reached, tracer.expired = True, tuple(expired)
            work.tracer = tracer
        return self._command(work)

    def publish(
        self, arrival: Arrival, operation: PublishToTopic, command: Command | None, ids: Ids, *, explains: bool = False
    ) -> Outcome:
        """Publish what a neighbour in the network sent on (guide 3.1): it has been checked where it was published.

        arrival: its number and time. command: the publisher's. ids: go on where those of the same arrival ended here.
        explains: as for ``trace``, without messages for subscribers. Where the publish exit fails, nothing is done but
        what expired, and the outcome is in error, without a dead letter: it has to be of what the neighbour sent.
        """
        undo = None if self.publish_exit is None else Undo(self.space)
        expired = self.expire(arrival.now)
        work = self._work(arrival, operation.publication.message, Origin.of(self.qmgr, arrival.now))
        work.ids, work.tracer = ids, Tracer(True, False) if explains else None
        work.effects += expired
        deliveries = self._apply(work, CommandPlan((operation,)), undo)
        try:
            self._forward(work, command, deliveries)
        except PublishExitFailedError as error:
            assert undo is not None
            _take_back(work, undo)
            return self._failed(work, command, error.reason, str(error))
        done = _done(work, command, Completion.OK, (operation,))
        if work.tracer is not None:
            done.trace = work.tracer.trace()
        return done

    def expire(self, now: datetime) -> list[Effect]:
        """Take out what has expired, as before each message; the time of what the setup defined begins no later."""
        self._begin(now)
        return self.space.expire(now)

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
        undo = None if self.publish_exit is None else Undo(self.space)
        try:
            command = parse(work.message) if work.command is None else _parsed(work)
            if self.meter is not None:
                self.meter.understood(len(command.topics))
            plan = translate(command, work.context)
            deliveries = self._apply(work, plan, undo)
        except DecodeError as error:
            return self._undecodable(work, error)
        except CommandError as error:
            _note_refused(work, command)
            return self._refused(work, command, error)
        try:
            self._forward(work, command, deliveries)
        except PublishExitFailedError as error:
            assert undo is not None
            _take_back(work, undo)
            _note_refused(work, command)
            return self._refused(work, command, error)
        if plan.warnings:
            _note_refused(work, command)
        completion = Completion.WARNING if plan.warnings else Completion.OK
        self._respond(work, completion, plan.warnings, plan)
        reason = plan.warnings[0].reason if plan.warnings else None
        return _done(work, command, completion, plan.operations, reason)

    def _apply(self, work: _Work, plan: CommandPlan, undo: Undo | None) -> list[Delivery]:
        deliveries: list[Delivery] = []
        now, tracer = work.arrival.now, work.tracer
        for operation in plan.operations:
            if self._before is not None:
                work.effects += self._before(operation, now)
            if undo is not None:
                undo.before(operation, now)
            effects = self.space.apply(operation, now) if tracer is None else tracer.apply(self.space, operation, now)
            work.filtered += self.space.filtered
            if undo is not None:
                undo.after(effects)
            if isinstance(operation, RequestRetained) and not effects:
                subscription = operation.subscription
                why = "the topic has no retained publication"
                raise CommandError(MQRCCF_NO_RETAINED_MSG, written_topic(subscription), why)
            if self.meter is not None:
                self.meter.changed(len(effects))
            for effect in effects:
                if isinstance(effect, Delivery):
                    deliveries.append(effect)
                else:
                    work.effects.append(effect)
        return deliveries

    def _forward(self, work: _Work, command: Command | None, deliveries: list[Delivery]) -> None:
        if not deliveries:
            return
        work.carried = tuple([delivery for delivery in deliveries if delivery.subscription.is_proxy])
        if work.carried:
            deliveries = [delivery for delivery in deliveries if not delivery.subscription.is_proxy]
        found = copies(deliveries, self.semantics)
        if work.tracer is not None and not work.tracer.forwards:
            work.copies = tuple(found)
            return
        forwarder = Forwarder(self.qmgr, work.arrival.now, work.origin, command, self._headers)
        made = None if work.tracer is None else work.tracer.made
        calls: ExitCalls | None = None
        if self.publish_exit is not None:
            letters = DeadLetters(self.qmgr, self.objects.qmgr.deadq)
            calls = ExitCalls(self.publish_exit, letters, work.arrival.now)
        kept: list[Copies] = []
        for copy in found:
            msg_id = work.ids()
            put: Outgoing | None = None if made is None else made.put(copy, msg_id)
            if put is None:
                put = forwarder.put(copy[0], msg_id, self.objects, *copy[1:])
            if calls is not None and put is not None:
                put, exited = calls.passed(put, copy)
                work.exited += () if exited is None else (exited,)
            if put is not None:
                if self.meter is not None:
                    self.meter.made(len(put.body))
                work.puts.append(put)
                kept.append(copy)
        work.copies = tuple(kept)
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
                message.mqmd.encode(),
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


def _done(
    work: _Work, command: Command | None, done: Completion, operations: Sequence[Operation], reason: int | None = None
) -> Outcome:
    return Outcome(
        tuple(work.puts),
        tuple(work.effects),
        command,
        done,
        reason,
        lost=tuple(work.lost),
        operations=tuple(operations),
        topics=tuple([each.topic_string for each in operations if isinstance(each, PublishToTopic)]),
        copies=work.copies,
        exited=tuple(work.exited),
        filtered=tuple(work.filtered),
        carried=work.carried,
    )


def _parsed(work: _Work) -> Command:
    if work.command is None:
        return parse(work.message)
    if isinstance(work.command, DecodeError | CommandError):
        raise work.command
    return work.command


def _take_back(work: _Work, undo: Undo) -> None:
    """Nothing of the command counts: its changes in the topic space are taken back, and it puts no publication."""
    taken = {id(effect) for effect in undo.take_back(work.arrival.now)}
    work.effects = [effect for effect in work.effects if id(effect) not in taken]
    work.puts, work.lost, work.exited, work.filtered, work.copies = [], [], [], [], ()
    if work.tracer is not None:
        work.tracer.taken_back()


def _note_refused(work: _Work, command: Command | None) -> None:
    """Note in the trace what a Publish would have done with the topics that were refused."""
    tracer = work.tracer
    if tracer is None or not tracer.explains or not isinstance(command, Publish):
        return
    done = {op.topic_string for traced in tracer.operations if isinstance(op := traced.operation, PublishToTopic)}
    with suppress(CommandError):
        tracer.refused = tuple(op for op in unrefused(command, work.context) if op.topic_string not in done)


def _makes_a_stream(work: _Work) -> bool:
    """Whether the message makes the queue a stream of version 6: a publication that no broker put there."""
    if work.context.place is InputQueueKind.OTHER or work.message.mqmd.put_appl_type == MQAT_BROKER:
        return False
    try:
        return not _parsed(work).on_control_queue
    except (DecodeError, CommandError):
        return False
