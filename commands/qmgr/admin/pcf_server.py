"""The command server: PCF commands on SYSTEM.ADMIN.COMMAND.QUEUE, carried out as MQSC's are, and answered.

    message ── decode_pcf ── reading.read ──> commands of MQSC     or CommandError
            ── rights.check ── execute.carry_out ── Keeper.keep     changes, in the unit of work of the get
            ── writing ──> responses, one an object, as they are put

The responses to an inquiry are made one by one while they are put: 100,000 subscriptions take no more memory than a
few.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Final

from commands.broker.authority import GroupsOf
from commands.broker.core import BrokerCore
from commands.broker.descriptor import Ids, Origin
from commands.broker.objects import ADMIN_COMMAND_QUEUE, Objects
from commands.broker.outcome import Arrival
from commands.broker.puts import Outgoing, PutKind
from commands.broker.respond import is_due, reply_descriptor
from commands.headers.response import Completion
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer, DefinitionDeleted, DefinitionStored
from commands.mqsc.execute import carry_out
from commands.mqsc.pcf import writing
from commands.mqsc.pcf.reading import Request, read
from commands.mqsc.pcf.rights import Rights
from commands.mqsc.script import Command
from commands.qmgr.admin.runner import Keeper, UnitQueues, executed, listeners_of, neighbours_of
from commands.qmgr.admin_port import Administered
from commands.qmgr.backlog import Backlog
from commands.qmgr.store.port import ListsQueues, UnitOfWork
from rfh2.ccsid import ENCODINGS, UTF8_CCSID, ByteOrder
from rfh2.constants import (
    MQEI_UNLIMITED,
    MQRO_PASS_DISCARD_AND_EXPIRY,
)
from rfh2.errors import CommandError, DecodeError
from rfh2.message import decode
from rfh2.mqmd import Mqmd, name_of
from rfh2.pcf import FORMATS, Pcf, decode_pcf
from rfh2.pcf_admin_names import MQRCCF_MD_FORMAT_ERROR
from streams.operations import Delivery
from streams.topic_space import TopicSpace

_QUEUES: Final = ("QUEUE", "QLOCAL", "QSTATUS")
_FORMAT: Final = "MQADMIN"


class PcfCommandServer:
    """The command server of one queue manager. groups_of: the groups of a user. backlog: of what can be put nowhere."""

    queue = ADMIN_COMMAND_QUEUE
    kind = "PCF"

    def __init__(self, groups_of: GroupsOf, backlog: Backlog) -> None:
        self._groups_of, self._keeper = groups_of, Keeper(backlog)

    def carry_out(self, unit: UnitOfWork, broker: BrokerCore, arrival: Arrival) -> Administered:
        """Do what the message asks for; a message that is no PCF is answered with 3023, or is a dead letter."""
        ids = Ids(broker.qmgr, arrival.seq)
        try:
            message = decode(arrival.body, arrival.md)
            if name_of(message.body_format) not in FORMATS:
                why = f"Format is {message.body_format!r}, not MQADMIN"
                raise CommandError(MQRCCF_MD_FORMAT_ERROR, why=why)
            pcf = decode_pcf(message.body, message.body_ccsid, message.body_offset)
        except (DecodeError, CommandError) as error:
            return self._unreadable(broker, arrival, error, ids)
        answered = _Answered(broker.qmgr, arrival.now, message.mqmd, pcf.order, ids)
        try:
            request = read(pcf, broker.objects)
            objects = self._objects(unit, request, broker.objects)
            administration = self._administration(unit, objects, broker.space, arrival, message.mqmd, ids)
            rights = Rights(administration)
            if request.escaped is not None:
                answers = [executed(request.escaped, rights, administration)]
                responses = writing.escaped(request, answers[-1], pcf.order)
            else:
                for command in request.commands:
                    rights.check(command)
                answers = [self._done(command, rights, administration, request) for command in request.commands]
                responses = writing.success(pcf.command, request.about, answers[-1].found, pcf.order)
        except CommandError as error:
            puts = answered.puts(writing.failure(pcf.command, error, pcf.order), Completion.ERROR)
            return Administered(puts, Completion.ERROR, reason=error.reason, why=str(error))
        completion = Completion.OK if answers[-1].ok else Completion.ERROR
        changes = [change for answer in answers for change in answer.changes]
        for answer in answers:
            self._keeper.keep(answer, broker.objects, unit, arrival.now)
        redefined = any(isinstance(change, DefinitionStored | DefinitionDeleted) for change in changes)
        # What members are to get again is read when the state is loaded.
        redefined = redefined or request.about.target == "CLUSTER"
        resubscribed = any(not isinstance(c, DefinitionStored | DefinitionDeleted | Delivery) for c in changes)
        return Administered(answered.puts(responses, completion), completion, redefined, resubscribed)

    @staticmethod
    def _objects(unit: UnitOfWork, request: Request, objects: Objects) -> Objects:
        """*objects* with the queues that have come into being by being named since they were loaded.

        For Inquire commands a copy that has all of them; else those that the command names are taken in.
        """
        if request.about.verb == "DISPLAY":
            if request.about.target in _QUEUES and isinstance(unit, ListsQueues):
                objects = copy(objects)
                objects.queues = {found.name: found for found in unit.local_queues()}
            return objects
        for command in request.commands:
            destination = command.keyword("DEST")
            named = [command.name] if command.target == "QLOCAL" and command.name is not None else []
            for value in (*named, *((destination.values or ()) if destination is not None else ())):
                found = None if value.text in objects.queues else unit.find_queue(value.text)
                if found is not None and found.name == value.text:
                    objects.queues[found.name] = found
        return objects

    def _administration(
        self, unit: UnitOfWork, objects: Objects, space: TopicSpace, arrival: Arrival, mqmd: Mqmd, ids: Ids
    ) -> Administration:
        user = name_of(mqmd.user_identifier) if arrival.user is None else arrival.user

        def new_sub_id() -> bytes:
            sub_id = ids()
            while space.subscription(sub_id) is not None:
                sub_id = ids()
            return sub_id

        queues, neighbours, listeners = UnitQueues(unit), neighbours_of(unit), listeners_of(unit)
        return Administration(
            objects, space, arrival.now, queues, new_sub_id, user, self._groups_of, neighbours, listeners
        )

    @staticmethod
    def _done(command: Command, rights: Rights, administration: Administration, request: Request) -> Answer:
        """The result of one command. Raises CommandError if it failed."""
        answer = carry_out(command, administration)
        if not answer.ok:
            error = writing.refused(answer, request.about)
            if request.about.names and error.reason == request.about.not_found:
                return answer  # a list of no names
            raise error
        if request.about.target in _QUEUES:
            answer = replace(answer, found=tuple(answer.found))  # its depths are those before the responses are put
        if command.verb != "DISPLAY" or not rights.checks:
            return answer
        visible = rights.visible(command, answer.found)
        first = next(visible, None)
        if first is None and not request.about.names:
            raise CommandError(request.about.not_found, why="there is none that the user may display")
        return replace(answer, found=() if first is None else chain([first], visible))

    def _unreadable(
        self, broker: BrokerCore, arrival: Arrival, error: DecodeError | CommandError, ids: Ids
    ) -> Administered:
        """Answer the message if it asks for an answer and can be read; otherwise make it a dead letter."""
        reason, why = error.reason, str(error)
        try:
            mqmd = Mqmd() if arrival.md is None else Mqmd.decode(arrival.md)
        except DecodeError:
            mqmd = Mqmd()
        answered = _Answered(broker.qmgr, arrival.now, mqmd, mqmd.order, ids)
        failed = writing.failure(0, CommandError(reason, why=why), mqmd.order)
        puts = answered.puts(failed, Completion.ERROR)
        first = next(puts, None)
        puts = iter(broker.set_aside(arrival, reason, why).puts) if first is None else chain([first], puts)
        return Administered(puts, Completion.ERROR, reason=reason, why=why)


class _Answered:
    """Makes the responses to one message into puts."""

    def __init__(self, qmgr: str, now: datetime, command: Mqmd, order: ByteOrder, ids: Ids) -> None:
        self._qmgr, self._now, self._command, self._order, self._ids = qmgr, now, command, order, ids

    def puts(self, responses: Iterator[Pcf], completion: Completion) -> Iterator[Outgoing]:
        """A put for each response; none where the message asks for none, or names no queue for it."""
        command = self._command
        queue = name_of(command.reply_to_q)
        if not queue or not is_due(command, completion):
            return
        qmgr = name_of(command.reply_to_qmgr) or self._qmgr
        origin = Origin.of(self._qmgr, self._now)
        expiry = command.expiry if command.report & MQRO_PASS_DISCARD_AND_EXPIRY else MQEI_UNLIMITED
        made = Mqmd(encoding=ENCODINGS[self._order], coded_char_set_id=UTF8_CCSID, format=_FORMAT)
        for response in responses:
            described = reply_descriptor(
                command, made, self._ids(), expiry, command.priority, command.persistence, origin
            )
            yield Outgoing(
                PutKind.RESPONSE,
                qmgr,
                queue,
                described.encode(),
                response.encode(),
                completion=completion,
                reason=response.reason,
            )
