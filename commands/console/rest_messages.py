"""Messages over HTTP, as the messaging REST interface of IBM MQ has them: text in, text out, a call of MQI each.

What a program of the user may do, its authorities and the reasons of a refusal are those of every program
(``commands.qmgr.mqi``). A message is put with Format MQSTR in UTF-8. Only such messages are got: any other one stays on
the queue, and is answered with HTTP status 501.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from commands.broker.authority import GroupsOf
from commands.mqsc.pcf.json_commands import JsonCommandError
from commands.qmgr.mqi.authority import OpenAuthority, TopicDefinitions
from commands.qmgr.mqi.calls import Program
from commands.qmgr.mqi.getting import GetOptions, Got
from commands.qmgr.mqi.handles import Application, ConnectedProgram, OpenQueues, Target
from commands.qmgr.mqi.refusals import MqiError
from commands.qmgr.store import QueueManagerStore
from rfh2 import mqi_constants as m
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import MQEI_UNLIMITED, MQFMT_STRING, MQPER_NOT_PERSISTENT, MQPER_PERSISTENT
from rfh2.errors import QPubSubError
from rfh2.mqmd import Mqmd, name_of, read_mqmd
from rfh2.pcf_admin_names import MQOT_TOPIC

MOST_LISTED: Final = 1_000
"""Messages of one list."""

_APPLICATION: Final = "qpubsub REST"
_APPLICATION_KIND: Final = 6  # MQAT_UNIX
_PREFIX: Final = "ibm-mq-md-"
_PERSISTENCE: Final = {"persistent": MQPER_PERSISTENT, "nonPersistent": MQPER_NOT_PERSISTENT}
_HEADERS: Final = ("correlationid", "expiry", "persistence", "priority", "replyto")
_LONGEST_EXPIRY_MS: Final = 99_999_999_900


class UnsupportedMessageError(QPubSubError):
    """A message that is no text: it stays on the queue. form: its Format."""

    def __init__(self, form: str) -> None:
        super().__init__(form)
        self.form = form

    def __str__(self) -> str:
        return f"the message has Format {self.form or 'MQNONE'}, and not MQSTR; it stays on the queue"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which message is got: by identifiers, or the first one. v3: whether identifiers begin with ``ID:``."""

    msg_id: bytes | None = None
    correl_id: bytes | None = None

    @classmethod
    def of(cls, query: Mapping[str, str], is_v3: bool) -> Choice:
        """Raises JsonCommandError."""
        found = {key: query.get(key) for key in ("messageId", "correlationId")}
        ids = {key: None if text is None else _identifier(key, text, is_v3) for key, text in found.items()}
        return cls(ids["messageId"], ids["correlationId"])

    def options(self, options: int) -> GetOptions:
        """Of MQGET."""
        match = m.MQMO_MATCH_MSG_ID if self.msg_id is not None else 0
        match |= m.MQMO_MATCH_CORREL_ID if self.correl_id is not None else 0
        return GetOptions(options, match, self.msg_id or bytes(24), self.correl_id or bytes(24), ccsid=UTF8_CCSID)


def descriptor(headers: Mapping[str, str], is_v3: bool) -> Mqmd:
    """The descriptor that ``ibm-mq-md-*`` headers ask for. Raises JsonCommandError for what is not known."""
    for name in headers:
        if name.startswith(_PREFIX) and name.removeprefix(_PREFIX) not in _HEADERS:
            raise JsonCommandError(name, f"it is not known here; known are {', '.join(_PREFIX + e for e in _HEADERS)}")
        if name == "ibm-mq-usr":
            raise JsonCommandError(name, "message properties cannot be given here; put the message with its MQRFH2")
    mqmd = Mqmd(format=MQFMT_STRING, coded_char_set_id=UTF8_CCSID, persistence=MQPER_NOT_PERSISTENT, expiry=-1)
    given = {name: headers[_PREFIX + name] for name in _HEADERS if _PREFIX + name in headers}
    if (text := given.get("correlationid")) is not None:
        mqmd = replace(mqmd, correl_id=_identifier(f"{_PREFIX}correlationId", text, is_v3))
    if (text := given.get("expiry")) is not None and text != "unlimited":
        mqmd = replace(mqmd, expiry=max(_number(f"{_PREFIX}expiry", text, _LONGEST_EXPIRY_MS) // 100, 1))
    if (text := given.get("persistence")) is not None:
        if text not in _PERSISTENCE:
            raise JsonCommandError(f"{_PREFIX}persistence", f"{text} is not one of {', '.join(_PERSISTENCE)}")
        mqmd = replace(mqmd, persistence=_PERSISTENCE[text])
    if (text := given.get("priority")) is not None:
        mqmd = replace(mqmd, priority=_number(f"{_PREFIX}priority", text, 9))
    if (text := given.get("replyto")) is not None:
        queue, _, qmgr = text.partition("@")
        mqmd = replace(mqmd, reply_to_q=queue, reply_to_qmgr=qmgr)
    return mqmd


def described(got: Got, is_v3: bool) -> dict[str, str]:
    """The headers that say what *got* has."""
    mqmd = got.mqmd.decoded
    prefix = "ID:" if is_v3 else ""
    persistence = "persistent" if mqmd.persistence == MQPER_PERSISTENT else "nonPersistent"
    headers = {
        "ibm-mq-md-messageId": prefix + mqmd.msg_id.hex(),
        "ibm-mq-md-correlationId": prefix + mqmd.correl_id.hex(),
        "ibm-mq-md-expiry": "unlimited" if mqmd.expiry == MQEI_UNLIMITED else str(mqmd.expiry * 100),
        "ibm-mq-md-persistence": persistence,
    }
    if is_v3:
        headers["ibm-mq-md-priority"] = str(mqmd.priority)
    if name_of(mqmd.reply_to_q):
        headers["ibm-mq-md-replyTo"] = f"{name_of(mqmd.reply_to_q)}@{name_of(mqmd.reply_to_qmgr)}"
    return headers


def put(store: QueueManagerStore, user: str, groups_of: GroupsOf, queue: str, mqmd: Mqmd, body: bytes) -> bytes:
    """Put a message on a queue; its MsgId. Raises MqiError, QueueError, StoreError."""
    return _put(store, user, groups_of, Target(name=queue), mqmd, body, m.MQPMO_NO_SYNCPOINT)


def publish(
    store: QueueManagerStore, user: str, groups_of: GroupsOf, topic: str, mqmd: Mqmd, body: bytes, *, retain: bool
) -> None:
    """Publish a message on a topic. Raises MqiError, QueueError, StoreError."""
    target = Target(MQOT_TOPIC, topic=topic)
    _put(store, user, groups_of, target, mqmd, body, m.MQPMO_NO_SYNCPOINT | (m.MQPMO_RETAIN if retain else 0))


def got(
    store: QueueManagerStore, user: str, groups_of: GroupsOf, queue: str, choice: Choice, *, takes: bool
) -> Got | None:
    """The message; None where there is none. takes: whether it leaves the queue.

    Raises UnsupportedMessageError, MqiError, QueueError, StoreError.
    """
    options = m.MQGMO_NO_SYNCPOINT | m.MQGMO_NO_PROPERTIES | m.MQGMO_CONVERT
    with _connected(store, user, groups_of) as program:
        opened = m.MQOO_BROWSE | (m.MQOO_INPUT_SHARED if takes else 0)
        number = program.open(Target(name=queue), opened, "", store.unit_of_work)
        found = _next(store, program, number, choice.options(options | m.MQGMO_BROWSE_FIRST))
        if found is None:
            return None
        form = name_of(found.mqmd.decoded.format)
        if form != MQFMT_STRING:
            raise UnsupportedMessageError(form)
        if takes:
            with store.unit_of_work() as unit:
                found = program.get(unit, number, GetOptions(options | m.MQGMO_MSG_UNDER_CURSOR, 0, ccsid=UTF8_CCSID))
        return found


def listed(
    store: QueueManagerStore, user: str, groups_of: GroupsOf, queue: str, choice: Choice, limit: int
) -> list[dict[str, Any]]:
    """The first messages of a queue: identifiers and formats. Raises MqiError, QueueError, StoreError."""
    found: list[dict[str, Any]] = []
    with _connected(store, user, groups_of) as program:
        number = program.open(Target(name=queue), m.MQOO_BROWSE, "", store.unit_of_work)
        options = m.MQGMO_NO_SYNCPOINT | m.MQGMO_NO_PROPERTIES
        at = m.MQGMO_BROWSE_FIRST
        while len(found) < limit:
            message = _next(store, program, number, choice.options(options | at))
            if message is None:
                break
            mqmd = message.mqmd.decoded
            ids = {"messageId": mqmd.msg_id.hex(), "correlationId": mqmd.correl_id.hex()}
            found.append({**ids, "format": name_of(mqmd.format)})
            at = m.MQGMO_BROWSE_NEXT
    return found


def _next(store: QueueManagerStore, program: Program, number: int, asked: GetOptions) -> Got | None:
    """What MQGET gives; None for 2033."""
    seq, more = None, program.chooses(number, asked)
    while more:
        seq, more = program.look(store, number, asked)
    try:
        with store.unit_of_work() as unit:
            return program.get(unit, number, asked, seq)
    except MqiError as error:
        if error.reason == m.MQRC_NO_MSG_AVAILABLE:
            return None
        raise


def _put(
    store: QueueManagerStore, user: str, groups_of: GroupsOf, target: Target, mqmd: Mqmd, body: bytes, options: int
) -> bytes:
    with _connected(store, user, groups_of) as program, store.unit_of_work() as unit:
        return Mqmd.decode(program.put1(unit, target, read_mqmd(mqmd.encode()), options, body)).msg_id


@contextmanager
def _connected(store: QueueManagerStore, user: str, groups_of: GroupsOf) -> Iterator[Program]:
    """A program of *user*, for the calls of one request."""
    topics = TopicDefinitions(groups_of)
    with store.unit_of_work() as unit:
        OpenAuthority(topics, user).connect(unit)
    connection = store.connect()
    application = Application(user, _APPLICATION, _APPLICATION_KIND)
    program = Program(
        ConnectedProgram(
            qmgr=store.name,
            application=application,
            number=1,
            connection=connection,
            holder=connection,
            open_queues=OpenQueues(),
            topics=topics,
            new_id=lambda: b"AMQ qpubsub REST" + os.urandom(8),
            clock=store.clock,
        )
    )
    try:
        yield program
    finally:
        program.disconnect(store.unit_of_work, commit=False)


def _identifier(key: str, text: str, is_v3: bool) -> bytes:
    digits = text.removeprefix("ID:") if is_v3 else text
    try:
        found = bytes.fromhex(digits)
    except ValueError:
        found = b""
    if len(found) != 24:
        raise JsonCommandError(key, f"{'ID: and ' if is_v3 else ''}48 hexadecimal digits are expected")
    return found


def _number(key: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= most):
        raise JsonCommandError(key, f"a whole number from 0 to {most} is expected")
    return int(text)
