"""Which queue manager the options name, and how it is reached.

    nothing                       the embedded queue manager of -m
    --admin https://host[:9443]   IBM MQ's REST interface
    --queues mq://...             PCF on the command queue of IBM MQ, and its queues for messages; ibmmq:// likewise

With both of the latter, commands go by REST and messages through the connection. The file of ``--config`` has user and
password: a command line never does.

Administration by IBM MQ's REST interface, version 2: ``POST .../admin/action/qmgr/QMGR/mqsc``.

    DISPLAY         {"type": "runCommandJSON", "command": "display", "qualifier": "sub", "name": "*", ...}
    other commands  {"type": "runCommand", "parameters": {"command": "DEFINE TOPIC(...) ..."}}

HTTP status 200 does not mean that the command succeeded: ``overallCompletionCode`` says that, and each object has a
code of its own. A command that finds nothing ends with reason 2085 or the like, and is no error. The header against
cross-site requests has to be there; its value does not matter.

TLS certificates are always verified. A user and a password are sent by TLS alone, except to this machine itself. No
message has a password in it.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol
from urllib.parse import quote, urlsplit

from commands.broker.attribute_kinds import SWITCHES, Shown
from commands.broker.objects import ADMIN_COMMAND_QUEUE
from commands.client.errors import MqError
from commands.config.home import Home
from commands.config.settings import AdminConfig, Config, ConfigError, QueuesConfig
from commands.config.urls import Address, parse_mq_address
from commands.links.ibmmq.channel import connection_to
from commands.links.ibmmq.manager import MqMessages
from commands.mqsc.answers import Answer
from commands.mqsc.pcf.client import Replies, replies, request
from commands.mqsc.script import Command, Statement
from commands.qmgr.admin import StatementRunner
from commands.qmgr.store import QueueManagerStore
from commands.terminal.users import current_user, groups_of
from migrate.live.loading import Messages
from migrate.live.snapshot import (
    AdministrationError,
    Administrator,
    Outcome,
    Row,
    display_command,
    judged,
    message_number,
    outcome_of,
    rows_of,
    whole,
)
from migrate.live.state_of import retained_copies
from migrate.planned_state import data_digest
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import MQMT_REQUEST, MQRCCF_COMMAND_FAILED, reason_name
from rfh2.errors import CommandError, DecodeError, system_words
from rfh2.message import decode
from rfh2.mqmd import Mqmd
from rfh2.pcf import Pcf, decode_pcf
from rfh2.pcf_names import MQCFC_LAST

DEFAULT_PORT: Final = 9443
_PATH: Final = "/ibmmq/rest/v2/admin/action/qmgr/{}/mqsc"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_STATUSES: Final = {
    401: "the user or the password is wrong, or none was sent",
    403: "the user has no role for administration (MQWebAdmin, or MQWebUser and its authorities)",
    404: "there is no such queue manager at the server, or its REST interface is not enabled",
}


class RestAdministrator:
    """One queue manager behind a server of mqweb. url: ``https://host[:9443]``, which messages call *called*.

    Raises ConfigError.
    """

    def __init__(self, url: str, qmgr: str, config: AdminConfig, called: str = "--admin") -> None:
        parts = _parts(url, called)
        self._qmgr, self._config = qmgr, config
        self._host, self._port, self._is_tls = parts
        self._headers = _headers(config, self._host, called, is_tls=self._is_tls)
        self._path = _PATH.format(quote(qmgr, safe=""))
        self._tls = _tls(config) if self._is_tls else None
        self._connection: http.client.HTTPConnection | None = None

    @property
    def qmgr(self) -> str:
        return self._qmgr

    @property
    def where(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"queue manager {self._qmgr} at http{'s' if self._is_tls else ''}://{host}:{self._port}"

    def display(self, target: str, name: str | None = None, **scope: str) -> list[Row]:
        body: dict[str, Any] = {"type": "runCommandJSON", "command": "display", "qualifier": target.lower()}
        if name is not None:
            body["name"] = name
        if scope:
            body["parameters"] = {word.lower(): text for word, text in scope.items()}
        body["responseParameters"] = ["all"]
        try:
            found = self._post(body)
        except (OSError, http.client.HTTPException):
            # The server closes a connection that was idle: to look a second time changes nothing.
            found = self._posted(body)
        parts = [each["parameters"] for each in _responses(found) if each.get("parameters")]
        if not all(isinstance(part, dict) for part in parts):
            raise AdministrationError(f"{self.where}: DISPLAY {target}: its parameters are not an object")
        rows: list[Row] = [_row(part) for part in parts]
        return whole(rows, _failures(found), f"{self.where}: DISPLAY {target}")

    def run(self, statement: Statement) -> Outcome:
        return _rest_outcome(self._posted({"type": "runCommand", "parameters": {"command": statement.text}}))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _posted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self._post(body)
        except ssl.SSLCertVerificationError as error:
            why = f"its certificate is not trusted: {error.verify_message}; name the issuer's with ca_file in --config"
            raise AdministrationError(f"{self.where}: {why}") from error
        except (OSError, http.client.HTTPException) as error:
            self.close()
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise AdministrationError(f"{self.where} was not reached: {why}") from error

    def _post(self, body: Mapping[str, Any]) -> dict[str, Any]:
        try:
            connection = self._connected()
            connection.request("POST", self._path, json.dumps(body).encode(), self._headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        try:
            found = json.loads(data) if data else {}
        except ValueError as error:
            raise AdministrationError(
                f"{self.where}: the answer is not JSON (HTTP status {response.status})"
            ) from error
        if not isinstance(found, dict):
            raise AdministrationError(f"{self.where}: the answer is not a JSON object (HTTP status {response.status})")
        if response.status != http.client.OK or "overallCompletionCode" not in found:
            raise AdministrationError(f"{self.where}: HTTP status {response.status}: {_error(response.status, found)}")
        listed = found.get("commandResponse", [] if found["overallCompletionCode"] else None)
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            raise AdministrationError(
                f"{self.where}: the answer has no list commandResponse (HTTP status {response.status})"
            )
        return found

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            timeout = self._config.timeout_s
            if self._tls is None:
                self._connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
            else:
                self._connection = http.client.HTTPSConnection(
                    self._host, self._port, timeout=timeout, context=self._tls
                )
        return self._connection


def _parts(url: str, called: str) -> tuple[str, int, bool]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(called, f"it is not a URL: {error}") from None
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ConfigError(called, f"https://host:{DEFAULT_PORT} was expected")
    if parts.password is not None or parts.username is not None:
        raise ConfigError(called, "user and password have no place in a URL; see [admin] of --config")
    if parts.path.strip("/") or parts.query:
        raise ConfigError(called, "only scheme, host and port: -m names the queue manager")
    return parts.hostname, port or DEFAULT_PORT, parts.scheme == "https"


def _headers(config: AdminConfig, host: str, called: str, *, is_tls: bool) -> dict[str, str]:
    headers = {
        "Content-Type": "application/json;charset=utf-8",
        "Accept": "application/json",
        "ibm-mq-rest-csrf-token": "qpubsub",
    }
    password = config.password()
    if config.user is None or password is None:
        return headers
    if not is_tls and host not in _LOOPBACK:
        raise ConfigError(called, "a password is sent only by https://")
    token = base64.b64encode(f"{config.user}:{password}".encode()).decode("ascii")
    return headers | {"Authorization": f"Basic {token}"}


def _tls(config: AdminConfig) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=None if config.ca_file is None else str(config.ca_file))
        if config.cert_file is not None:
            context.load_cert_chain(config.cert_file, config.key_file)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(str(file) for file in (config.ca_file, config.cert_file, config.key_file) if file is not None)
        raise ConfigError("[admin]", f"{files}: {system_words(error)}") from error
    return context


def _responses(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    responses: list[Mapping[str, Any]] = found.get("commandResponse") or []
    return responses


def _failures(found: Mapping[str, Any]) -> list[Outcome]:
    """What failed, each part of the answer by itself; the whole, where it has failed and no part says why."""
    failures = [_rest_failure(each, each.get("reasonCode")) for each in _responses(found) if each.get("completionCode")]
    if not failures and found.get("overallCompletionCode"):
        return [_rest_failure({}, found.get("overallReasonCode"))]
    return failures


def _rest_failure(response: Mapping[str, Any], reason: object) -> Outcome:
    text = _text(response)
    return Outcome(False, message_number(text) or str(reason or 0), text or f"reason {reason or 0}")


def _rest_outcome(found: Mapping[str, Any]) -> Outcome:
    """What became of a command that changes something."""
    return judged(_failures(found), " ".join(filter(None, map(_text, _responses(found)))))


def _text(response: Mapping[str, Any]) -> str:
    said = (line.strip() for key in ("message", "text") for line in _lines(response.get(key)))
    return " ".join(line for line in said if line)


def _lines(said: object) -> list[str]:
    if isinstance(said, str):
        return [said]
    return [str(line) for line in said] if isinstance(said, list) else []


def _row(parameters: Mapping[str, Any]) -> dict[str, Shown]:
    row: dict[str, Shown] = {}
    for key, value in parameters.items():
        word = key.upper()
        if word in SWITCHES and isinstance(value, str) and value.upper() in ("YES", "NO"):
            row[word] = word if value.upper() == "YES" else f"NO{word}"
        elif isinstance(value, bool) or value is None:
            row[word] = "" if value is None else ("YES" if value else "NO")
        elif isinstance(value, list):
            row[word] = tuple(str(each).rstrip(" ") for each in value)
        else:
            row[word] = value if isinstance(value, int) else str(value)
    return row


def _error(status: int, found: Mapping[str, Any]) -> str:
    errors = found.get("error")
    said = [each for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []
    texts = [str(each.get("message") or "") for each in said] + [str(each.get("action") or "") for each in said]
    shown = " ".join(text for text in texts if text)
    return shown or _STATUSES.get(status, "no answer of the REST interface")


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
