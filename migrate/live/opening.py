"""Which queue manager the options name, and how it is reached.

    nothing                       the embedded queue manager of -m
    --admin https://host[:9443]   IBM MQ's REST interface
    --queues mq://...             PCF on the command queue of IBM MQ, and its queues for messages; ibmmq:// likewise

With both of the latter, commands go by REST and messages through the connection. The file of ``--config`` has user and
password: a command line never does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from commands.broker.objects import ADMIN_COMMAND_QUEUE
from commands.client.errors import MqError
from commands.config.home import Home
from commands.config.settings import Config, ConfigError, QueuesConfig
from commands.config.urls import Address, parse_mq_address
from commands.links.ibmmq.channel import connection_to
from commands.links.ibmmq.manager import MqMessages
from commands.mqsc.answers import Answer
from commands.mqsc.model import Command, Statement
from commands.mqsc.pcf.client import Replies, replies, request
from commands.qmgr.admin import StatementRunner
from commands.qmgr.store import QueueManagerStore
from commands.terminal.users import current_user, groups_of
from migrate.live.administrator import (
    AdministrationError,
    Administrator,
    Outcome,
    Row,
    display_command,
    judged,
    outcome_of,
    rows_of,
    whole,
)
from migrate.live.loading import Messages
from migrate.live.rest import RestAdministrator
from migrate.live.state_of import retained_copies
from migrate.planned_state import data_digest
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import MQMT_REQUEST, MQRCCF_COMMAND_FAILED, reason_name
from rfh2.errors import CommandError, DecodeError
from rfh2.message import decode
from rfh2.mqmd import Mqmd
from rfh2.pcf import Pcf, decode_pcf
from rfh2.pcf_names import MQCFC_LAST


@dataclass(slots=True)
class LiveQueueManager:
    """One queue manager. messages: None where only administration is possible. store: of an embedded one."""

    administrator: Administrator
    messages: Messages | None = None
    store: QueueManagerStore | None = None
    connection: MqMessages | None = None

    def retained_data(self) -> dict[str, str] | None:
        """A digest of the data of each retained publication, by topic string; None where they cannot be read.

        Raises MqError, MigrationError.
        """
        if self.store is not None:
            return {r.topic_string: data_digest(r.publication.message.body) for r in self.store.load_state()[2]}
        if self.connection is None:
            return None
        copies = retained_copies(self.connection)
        return {topic: data_digest(decode(body, md).body) for topic, (md, body) in copies.items()}

    def close(self) -> None:
        """End all connections."""
        self.administrator.close()
        if self.connection is not None:
            self.connection.close()


def open_live(
    home: Home,
    qmgr: str,
    config: Config,
    admin: str | None,
    queues: str | None,
    called: tuple[str, str] = ("--admin", "--queues"),
) -> LiveQueueManager:
    """The queue manager that the options *admin* and *queues* name, else the configuration, else the embedded one.

    called: what messages call the two. Raises ConfigError, StoreError; a connection is made when it is needed.
    """
    admin, queues = admin or config.admin.url, queues or config.queues.url
    address = None if queues is None else _address(queues, qmgr, called[1])
    connection = None if address is None else MqMessages(address, config.queues, "qpubsub migration")
    if admin is not None:
        return LiveQueueManager(
            RestAdministrator(admin, qmgr, config.admin, called[0]), connection, connection=connection
        )
    if address is not None:
        administrator = PcfAdministrator(CommandQueue(address, config.queues), qmgr)
        return LiveQueueManager(administrator, connection, connection=connection)
    store = QueueManagerStore.open(home, qmgr)
    return LiveQueueManager(EmbeddedAdministrator(store), store, store)


def _address(url: str, qmgr: str, called: str) -> Address:
    address = parse_mq_address(url, called)
    if address.qmgr != qmgr:
        raise ConfigError(called, f"the URL names queue manager {address.qmgr}, not {qmgr}")
    return address


# Administration by PCF: commands on SYSTEM.ADMIN.COMMAND.QUEUE of the queue manager that ibmmq:// names.
#
# Each command has a message identifier of its own. Its responses have that as CorrelId and arrive on a temporary
# dynamic queue. The last one says that it is the last. A response that does not arrive leaves open whether the
# command was done.

MODEL_QUEUE: Final = "SYSTEM.DEFAULT.MODEL.QUEUE"
_FORMAT: Final = "MQADMIN"
_LITTLE_ENDIAN: Final = 546
_EXPIRY_TENTHS: Final = 600
# A queue manager that has begun to answer goes on at once.
_WAIT_MS: Final = 30_000


class PcfTransport(Protocol):
    """Carries a PCF command to a command server, and gives its responses."""

    @property
    def where(self) -> str: ...

    def exchange(self, command: Pcf) -> Iterator[Pcf]:
        """The responses, up to the last one. Raises AdministrationError."""
        ...

    def close(self) -> None: ...


class PcfAdministrator:
    """One queue manager whose command server *transport* reaches."""

    def __init__(self, transport: PcfTransport, qmgr: str) -> None:
        self._transport, self._qmgr = transport, qmgr

    @property
    def qmgr(self) -> str:
        return self._qmgr

    @property
    def where(self) -> str:
        return self._transport.where

    def display(self, target: str, name: str | None = None, **scope: str) -> list[Row]:
        command = display_command(target, name, scope)
        found = self._done(command)
        # That the command failed is said beside each reason why, or it is the reason.
        reasons = [reason for reason in found.reasons if reason != MQRCCF_COMMAND_FAILED] or found.reasons
        failures = [_failure(command, reason, found.parameter) for reason in dict.fromkeys(reasons)]
        return whole(list(found.rows), failures, f"{self.where}: DISPLAY {target}")

    def run(self, statement: Statement) -> Outcome:
        if statement.command is None:
            return Outcome(False, text=str(statement.error))
        try:
            return _outcome(statement.command, self._done(statement.command))
        except CommandError as error:
            return Outcome(False, str(error.reason), f"{error.why}: use the REST interface (--admin https://...)")

    def close(self) -> None:
        self._transport.close()

    def _done(self, command: Command) -> Replies:
        try:
            return replies(self._transport.exchange(request(command)))
        except DecodeError as error:
            raise AdministrationError(f"{self.where}: a response cannot be read: {error}") from error


class CommandQueue:
    """The command server of IBM MQ behind a connection. Raises AdministrationError, ConfigError."""

    def __init__(self, address: Address, config: QueuesConfig) -> None:
        self._connection = connection_to(address, config, "qpubsub administration")
        self._address = address
        self._replies: tuple[Any, str] | None = None

    @property
    def where(self) -> str:
        return f"queue manager {self._address.qmgr} at {self._address}"

    def exchange(self, command: Pcf) -> Iterator[Pcf]:
        try:
            yield from self._exchange(command)
        except MqError as error:
            self.close()
            raise AdministrationError(f"{self.where}: {error}") from error

    def close(self) -> None:
        self._replies = None
        self._connection.disconnect()

    def _exchange(self, command: Pcf) -> Iterator[Pcf]:
        handle, queue = self._reply_queue()
        msg_id = os.urandom(24)
        mqmd = Mqmd(
            msg_type=MQMT_REQUEST,
            expiry=_EXPIRY_TENTHS,
            encoding=_LITTLE_ENDIAN,
            coded_char_set_id=UTF8_CCSID,
            format=_FORMAT,
            msg_id=msg_id,
            reply_to_q=queue,
        )
        self._connection.put1(ADMIN_COMMAND_QUEUE, "", mqmd.encode(), command.encode(), _NO_SYNCPOINT)
        while True:
            got = self._connection.get(handle, _NO_SYNCPOINT, correl_id=msg_id, wait_ms=_WAIT_MS)
            if got is None:
                why = f"no answer from the command server in {_WAIT_MS // 1000} s; DISPLAY QMSTATUS CMDSERV shows it"
                raise AdministrationError(f"{self.where}: {why}")
            message = decode(got.body, got.md)
            response = decode_pcf(message.body, message.body_ccsid, message.body_offset)
            yield response
            if response.control == MQCFC_LAST:
                return

    def _reply_queue(self) -> tuple[Any, str]:
        if self._replies is None or not self._connection.is_up:
            if not self._connection.is_up:
                self._connection.connect()
            self._replies = self._connection.temporary_queue(MODEL_QUEUE)
        return self._replies


# MQPMO_NO_SYNCPOINT and MQGMO_NO_SYNCPOINT.
_NO_SYNCPOINT: Final = 4


def _outcome(command: Command, found: Replies) -> Outcome:
    return judged([_failure(command, found.reason, found.parameter)] if found.reason else [])


def _failure(command: Command, reason: int, parameter: int) -> Outcome:
    named = "" if command.name is None else f"({command.name.text})"
    about = [reason_name(reason) or "", f"parameter {parameter}" if parameter else ""]
    more = ", ".join(each for each in about if each)
    text = f"{command.verb} {command.target}{named}: reason {reason}" + (f" ({more})" if more else "")
    return Outcome(False, str(reason), text)


class EmbeddedAdministrator:
    """Runs MQSC on the database of an embedded queue manager; a running processor goes on beside it."""

    def __init__(self, store: QueueManagerStore) -> None:
        self._store = store
        self._runner = StatementRunner(store, current_user(), groups_of, lambda: datetime.now(UTC))

    @property
    def qmgr(self) -> str:
        return self._store.name

    @property
    def where(self) -> str:
        return f"the embedded queue manager {self.qmgr}"

    def display(self, target: str, name: str | None = None, **scope: str) -> list[Row]:
        statement = Statement(1, 1, (), f"DISPLAY {target}", display_command(target, name, scope))
        return rows_of(self._answer(statement), self.where)

    def run(self, statement: Statement) -> Outcome:
        return outcome_of(self._answer(statement))

    def close(self) -> None:
        self._store.close()

    def _answer(self, statement: Statement) -> Answer:
        ((_, answer),) = self._runner.run([statement])
        return answer
