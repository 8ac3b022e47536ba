"""Carries out one command in a unit of work: the broker processes it, its effects are saved, its puts delivered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from commands.broker.core import BrokerCore
from commands.broker.counts import Counts
from commands.broker.objects import CONTROL_QUEUE
from commands.broker.outcome import Arrival, Outcome
from commands.broker.puts import Outgoing, Put, PutKind
from commands.broker.reading import Reading
from commands.disk.errors import UndeliverableError
from commands.headers.response import Completion
from commands.qmgr.delivery import Backlog, Cause, Deliverer, Refusal, for_neighbour, is_stranding
from commands.qmgr.event_numbers import CONTROL_FAILED, DEAD_LETTER, DISCARDED, PUBLISH_FAILED
from commands.qmgr.flow_messages import INTER_QMGR_QUEUES
from commands.qmgr.link_port import Administered, CommandServer, is_native
from commands.qmgr.loaded import LoadedBroker
from commands.qmgr.observer import Ending, Observer, ProcessorTally, Sample, count
from commands.qmgr.sending import COD, report
from commands.qmgr.store.port import StoredMessage, UnitOfWork
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from commands.qmgr.watchdog import CommandLimits, reason_of
from commands.templates.parts import Parts, parts_of
from rfh2.constants import MQRCCF_COMMAND_FAILED, MQRCCF_NO_RETAINED_MSG
from rfh2.errors import DecodeError
from rfh2.mqmd import Mqmd, name_of
from streams.operations import Effect, Unsubscribe

_log = logging.getLogger("qpubsub.processor")


@dataclass(slots=True)
class Batch:
    """The work of one unit of work so far, which counts when it is committed."""

    tally: ProcessorTally = field(default_factory=ProcessorTally)
    counts: Counts = field(default_factory=Counts)
    puts: list[Put] = field(default_factory=list)
    size_bytes: int = 0  # of messages removed and put
    # A message, now done, that ended a processor or took long to read; it is the last one in its unit of work.
    suspect: StoredMessage | None = None
    # Definitions have changed; that command too is the last one, because the processor may have to read other queues.
    redefined: bool = False
    endings: dict[Ending, int] = field(default_factory=dict)  # of commands that no template answered, for an observer
    refusals: dict[Refusal, int] = field(default_factory=dict)  # dead letters whose queue refused them

    def refused(self, kind: PutKind, queue: str, letter: Outgoing) -> None:
        """Count one message that *queue* refused, and that became *letter*."""
        refusal = Refusal(kind, queue, letter.reason)
        self.refusals[refusal] = self.refusals.get(refusal, 0) + 1

    def ended(self, command: str, completion: Completion | None, reason: int | None) -> None:
        """Count how one command ended."""
        ending = Ending(command, "" if completion is None else completion.value, reason)
        self.endings[ending] = self.endings.get(ending, 0) + 1


class Execution:
    """Carries out commands for one processor.

    clock: UTC now. records: whether a batch has to know its puts. servers: of commands that are not the broker's, by
    their queues. observer: who measures, if anybody does.
    """

    def __init__(
        self,
        *,
        loaded: LoadedBroker,
        limits: CommandLimits,
        clock: Callable[[], datetime],
        backlog: Backlog,
        records: bool,
        logged: set[str],
        servers: Mapping[str, CommandServer] = MappingProxyType({}),
        observer: Observer | None = None,
    ) -> None:
        self._servers, self._observer = servers, observer
        self._loaded, self._limits, self._clock, self._backlog = loaded, limits, clock, backlog
        self._records, self._logged = records, logged
        self._deliverer: Deliverer | None = None

    def arrival(self, message: StoredMessage) -> Arrival:
        """*message* as an arrival for the broker at the present time."""
        return Arrival(message.seq, self._clock(), message.queue, message.md, message.body, message.user)

    def carry_out(self, unit: UnitOfWork, message: StoredMessage, batch: Batch) -> None:
        """Carry out *message*, which was just got. Raises UndeliverableError, ApartError, StoreError."""
        broker, arrival = self._loaded.of(unit), self.arrival(message)
        # Most of these are no more than that: the option is in one of two bytes, by the byte order.
        if (message.md[9] | message.md[10]) & 0x08 and isinstance(unit, EmbeddedUnitOfWork):
            report(unit, COD, Mqmd.decode(message.md), message.body, message.user, arrival.now)
        reading = self._limits.reading_of(message, is_first=not batch.tally.commands)
        server = self._servers.get(message.queue)
        if server is not None:
            self._administer(server, unit, message, reading, batch)
            return
        if message.queue in INTER_QMGR_QUEUES:
            self._from_neighbour(unit, broker, message, arrival, reading, batch)
            return
        work_out, templates = self._limits.work_out, self._loaded.templates
        sample = None if self._observer is None else self._observer.sample(message)
        parts = None if self._loaded.tree is None else parts_of(arrival)
        for_tree = self._foreseen_for_tree(arrival, parts)
        if sample is not None:
            outcome = work_out(message, reading, self._sampled, broker, arrival, reading, sample)
        elif reading is None and templates is not None and for_tree is not None:
            outcome = work_out(message, reading, templates.process, arrival, parts)
        elif self._loaded.tree is not None:
            outcome = work_out(message, reading, broker.trace, arrival, reading)
        else:
            outcome = work_out(message, reading, broker.process, arrival, reading)
        if reading is not None:
            batch.suspect = message
        if outcome.effects:
            for retained in unit.save_effects(outcome.effects):
                broker.space.retain(retained)
        self._deliver(unit, broker, arrival, outcome, batch, for_tree=for_tree or ())
        if sample is not None:
            sample.delivered()
        if (network := self._loaded.network) is not None and (outgoing := network.sent_on(outcome)):
            self._to_neighbours(unit, broker, outgoing, Cause.of(arrival))
        self._loaded.is_at(unit.state_version)

    def arrange(self, unit: UnitOfWork) -> None:
        """Send neighbours what they have to know of the state that was loaded. Raises StoreError."""
        broker, network = self._loaded.of(unit), self._loaded.network
        now = self._clock()
        arranged = None if network is None else network.arrange(now)
        if network is None or arranged is None:
            return
        unit.save_effects(arranged.outcome.effects)
        self._to_neighbours(unit, broker, arranged.outgoing, Cause(now))
        self._loaded.is_at(unit.state_version)

    def _to_neighbours(self, unit: UnitOfWork, broker: BrokerCore, outgoing: Sequence[Outgoing], cause: Cause) -> None:
        for name in {put.qmgr for put in outgoing}:
            queue = unit.find_queue(name)
            if queue is None or is_stranding(queue):
                made = for_neighbour(name)
                unit.save_definition(made)
                broker.objects.put(made)
        if outgoing:
            deliverer = self._delivering(unit, broker)
            for put in outgoing:
                deliverer.deliver(put, cause)

    def _from_neighbour(
        self,
        unit: UnitOfWork,
        broker: BrokerCore,
        message: StoredMessage,
        arrival: Arrival,
        reading: Reading | None,
        batch: Batch,
    ) -> None:
        """Carry out what a neighbour sent (guide 3.1)."""
        network = self._loaded.network
        assert network is not None
        came = self._limits.work_out(message, reading, network.receive, arrival)
        if reading is not None:
            batch.suspect = message
        for retained in unit.save_effects(came.outcome.effects):
            broker.space.retain(retained)
        self._deliver(unit, broker, arrival, came.outcome, batch)
        self._to_neighbours(unit, broker, came.outgoing, Cause.of(arrival))
        self._loaded.is_at(unit.state_version)
        if came.is_outdated:
            self._loaded.forget()

    def _sampled(self, broker: BrokerCore, arrival: Arrival, reading: Reading | None, sample: Sample) -> Outcome:
        """The outcome of a command that is measured step by step."""
        if reading is None:
            reading = Reading.of(arrival.md, arrival.body)
        arrival, reading = sample.read(arrival, reading)
        explains = sample.explains
        if explains or self._loaded.tree is not None:
            outcome = broker.trace(arrival, reading, explains=explains)
        else:
            outcome = broker.process(arrival, reading)
        return sample.worked_out(outcome)

    def _administer(
        self, server: CommandServer, unit: UnitOfWork, message: StoredMessage, reading: Reading | None, batch: Batch
    ) -> None:
        """Carry out an administration command, and put each of its responses as soon as it is made."""
        broker, arrival = self._loaded.of(unit), self.arrival(message)

        def work() -> Administered:
            self._limits.meter.understood(0)  # such a command is never read outside the unit of work
            return server.carry_out(unit, broker, arrival)

        done = self._limits.work_out(message, reading, work)
        if reading is not None:
            batch.suspect = message
        deliverer, cause, tally = self._delivering(unit, broker), Cause.of(arrival), batch.tally
        for n, put in enumerate(done.puts):
            delivered = deliverer.deliver(put, cause)
            if delivered is not None:
                tally.put(delivered.kind)
                batch.size_bytes += len(delivered.body)
                if self._records:
                    batch.puts.append(Put.of(arrival.seq, broker.qmgr, n, delivered))
        tally.commands += 1
        if self._observer is not None:
            batch.ended(server.kind, done.completion, done.reason)
        batch.size_bytes += len(arrival.body)
        if done.completion is Completion.ERROR:
            tally.errors += 1
            about = {"seq": arrival.seq, "queue": arrival.queue, "reason": done.reason, **_cause(done.reason, arrival)}
            _log.info("message %d on %s: %s", arrival.seq, arrival.queue, done.why, extra=about)
        self._loaded.is_at(unit.state_version)
        if done.redefined or (done.resubscribed and self._loaded.is_connected):
            batch.redefined = True
            self._loaded.redefined(unit)

    def set_aside(
        self, unit: UnitOfWork, queues: tuple[str, ...], message: StoredMessage, fault: Exception, batch: Batch
    ) -> None:
        """Get *message* once more and make it a dead letter: *fault* kept it from being processed."""
        reason = reason_of(fault)
        named = MQRCCF_COMMAND_FAILED if reason is None else reason
        about = {"seq": message.seq, "queue": message.queue, "reason": named, "numbers": _failed(message.queue, True)}
        about |= _cause(named, message)
        if reason is None:
            why = f"internal error: {fault!r}"
            text = "message %d on %s: internal error"
            _log.error(text, message.seq, message.queue, extra=about, exc_info=fault)
        else:
            why = f"set aside: {fault}"
            _log.error("message %d on %s: %s", message.seq, message.queue, why, extra=about)
        _take_again(unit, queues, message)
        broker, arrival = self._loaded.of(unit), self.arrival(message)
        outcome = broker.set_aside(arrival, named, why)
        self._deliver(unit, broker, arrival, outcome, batch, is_logged=reason is not None)
        batch.suspect = message

    def discard(
        self,
        unit: UnitOfWork,
        queues: tuple[str, ...],
        message: StoredMessage,
        error: UndeliverableError,
        batch: Batch,
    ) -> None:
        """Get *message* once more and discard it, as PSNPMSG allows."""
        _take_again(unit, queues, message)
        about = {"seq": message.seq, "queue": message.queue, "numbers": (DISCARDED,)}
        _log.error("message %d on %s is discarded (PSNPMSG): %s", message.seq, message.queue, error, extra=about)
        batch.tally.add(ProcessorTally(commands=1, errors=1, discarded=1))
        if self._observer is not None:
            batch.ended("", Completion.ERROR, None)

    def end_subscriptions(self, unit: UnitOfWork) -> None:
        """Remove the subscriptions whose temporary dynamic queue was deleted before *unit* began (guide 6.7.2)."""
        sub_ids = unit.take_ended_subscriptions()
        if sub_ids:
            self._end(unit, self._loaded.of(unit), sub_ids)

    def end_without_queue(self, unit: UnitOfWork) -> None:
        """Remove those whose queue no longer exists, as a restart of the queue manager does."""
        broker = self._loaded.of(unit)
        temporary = (s for s in broker.space.subscriptions() if s.temporary and s.dest_qmgr == broker.qmgr)
        self._end(unit, broker, [s.sub_id for s in temporary if unit.find_queue(s.dest_queue) is None])

    def _end(self, unit: UnitOfWork, broker: BrokerCore, sub_ids: Sequence[bytes]) -> None:
        effects: list[Effect] = []
        for sub_id in sub_ids:
            subscription = broker.space.subscription(sub_id)
            if subscription is not None:
                effects += broker.space.apply(Unsubscribe(subscription), self._clock())
                text = "subscription %s to %s has ended: its temporary dynamic queue %s is gone"
                name, queue = subscription.name or sub_id.hex(), subscription.dest_queue
                _log.info(text, name, subscription.topic_string, queue, extra={"queue": queue})
        unit.save_effects(effects)
        if self._loaded.tree is not None:
            self._loaded.tree.ended(effects)
        if effects and (network := self._loaded.network) is not None:
            self._to_neighbours(unit, broker, network.changed(effects), Cause(self._clock()))
        self._loaded.is_at(unit.state_version)

    def _delivering(self, unit: UnitOfWork, broker: BrokerCore) -> Deliverer:
        deliverer = self._deliverer
        if deliverer is None or not deliverer.is_of(unit, broker.objects):
            deliverer = self._deliverer = Deliverer(unit, broker.objects, self._logged, self._backlog)
        return deliverer

    def _deliver(
        self,
        unit: UnitOfWork,
        broker: BrokerCore,
        arrival: Arrival,
        outcome: Outcome,
        batch: Batch,
        is_logged: bool = False,
        for_tree: Sequence[Outgoing] = (),
    ) -> None:
        """Put the messages of one command; it counts when all are put.

        is_logged: the failure was logged before. for_tree: the messages for the linked topic tree, if a template made
        the outcome.
        """
        deliverer, cause, puts = self._delivering(unit, broker), Cause.of(arrival), outcome.puts
        delivered = deliverer.deliver_all(puts, cause)
        ended = deliverer.take_ended()
        outgoing = self._for_tree(arrival, outcome, for_tree)
        for put in outgoing:
            deliverer.deliver(put, cause)
        count(batch.counts, outcome, delivered, arrival.now)
        if ended:
            self._end(unit, broker, ended)
        tally, size_bytes = batch.tally, len(arrival.body)
        tally.commands += 1
        # What a template makes is a Publish that was ok: it alone has topics and no command.
        if self._observer is not None and (outcome.command is not None or not outcome.topics):
            name = "" if outcome.command is None else type(outcome.command).__name__
            batch.ended(name, outcome.completion, outcome.reason)
        tally.linked += len(outgoing)
        if delivered is puts and not self._records:
            for put in puts:
                size_bytes += len(put.body)
            responses = 1 if puts and puts[-1].kind is PutKind.RESPONSE else 0  # a template's is the last
            tally.publications += len(puts) - responses
            tally.responses += responses
            delivered = ()
        for n, done in enumerate(delivered):
            if done is not None:
                tally.put(done.kind)
                size_bytes += len(done.body)
                if done.kind is PutKind.DEADLETTER and (wanted := puts[n]).kind is not PutKind.DEADLETTER:
                    batch.refused(wanted.kind, wanted.queue, done)
                if self._records:
                    batch.puts.append(Put.of(arrival.seq, broker.qmgr, n, done))
        batch.size_bytes += size_bytes
        for what in outcome.lost:
            _log.warning(
                "message %d on %s: left out for %s", arrival.seq, arrival.queue, what, extra={"seq": arrival.seq}
            )
        if outcome.completion is Completion.ERROR:
            tally.errors += 1
        if outcome.completion is Completion.ERROR and not is_logged:
            numbers = _failed(arrival.queue, any(put.kind is PutKind.DEADLETTER for put in outcome.puts))
            about = {"seq": arrival.seq, "queue": arrival.queue, "reason": outcome.reason, "numbers": numbers}
            about |= _cause(outcome.reason, arrival)
            level = logging.INFO if outcome.reason == MQRCCF_NO_RETAINED_MSG else logging.WARNING
            _log.log(level, "message %d on %s: %s", arrival.seq, arrival.queue, outcome.why, extra=about)

    def _foreseen_for_tree(self, arrival: Arrival, parts: Parts | None) -> tuple[Outgoing, ...] | None:
        """The messages for the linked topic tree, if the command is a publication; None where the outcome decides."""
        tree = self._loaded.tree
        if tree is None or (arrival.md is not None and is_native(arrival.md)):
            return ()
        return tree.forms.answer(arrival, parts)

    def _for_tree(self, arrival: Arrival, outcome: Outcome, foreseen: Sequence[Outgoing]) -> Sequence[Outgoing]:
        """The messages for the linked topic tree. foreseen: those of a publication by a template."""
        tree = self._loaded.tree
        if tree is None:
            return ()
        if outcome.trace is None:
            if outcome.completion is not Completion.OK:
                return ()
            tree.repeated(retain=bool(outcome.effects))
            return foreseen
        if arrival.md is not None and is_native(arrival.md):
            return tree.after(outcome.trace, is_native=True)
        outgoing = tree.after(outcome.trace, is_native=False)
        tree.forms.learn(arrival, outcome, outgoing)
        return outgoing


def _failed(queue: str, is_dead_letter: bool) -> tuple[int, ...]:
    """The event numbers of a command on *queue* that could not be processed."""
    number = CONTROL_FAILED if queue == CONTROL_QUEUE else PUBLISH_FAILED
    return (number, DEAD_LETTER) if is_dead_letter else (number,)


def _cause(reason: int | None, message: Arrival | StoredMessage) -> dict[str, tuple[int, str]]:
    """For the log: the reason of a command in error, and the program that put it."""
    try:
        program = "" if message.md is None else name_of(Mqmd.decode(message.md).put_appl_name)
    except DecodeError:
        program = ""
    return {"cause": (reason or 0, program)}


def _take_again(unit: UnitOfWork, queues: tuple[str, ...], message: StoredMessage) -> None:
    again = unit.get_next(queues)
    assert again is not None
    assert (again.queue, again.body) == (message.queue, message.body)
