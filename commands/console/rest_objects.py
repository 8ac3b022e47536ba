"""Queue managers, queues, subscriptions and channels as resources: JSON with sections, of what DISPLAY shows.

    {"queue": [{"name": "SPORT", "type": "local", "general": {"description": "", "inhibitPut": false, ...}}]}

Each row of the tables is one attribute: its place in the JSON, the keyword of MQSC, and the values that have other
words. What to show is asked for with ``attributes`` and ``status``: ``*``, or places with commas between.

Messages over HTTP, as the messaging REST interface of IBM MQ has them: text in, text out, a call of MQI each.

What a program of the user may do, its authorities and the reasons of a refusal are those of every program
(``commands.qmgr.mqi``). A message is put with Format MQSTR in UTF-8. Only such messages are got: any other one stays on
the queue, and is answered with HTTP status 501.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from commands.broker.attribute_kinds import SWITCHES, Shown
from commands.broker.authority import GroupsOf
from commands.mqsc.pcf.json_commands import JsonCommandError
from commands.mqsc.script import Command, Keyword, Value
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

Row = Mapping[str, Shown]
_YES: Final = {"YES": True, "NO": False}
_RESPONSES: Final = {"SYNC": "synchronous", "ASYNC": "asynchronous"}


@dataclass(frozen=True, slots=True)
class Field:
    """place: with dots. keyword: of DISPLAY. words: MQSC's words and what they are in JSON; others stay as they are."""

    place: str
    keyword: str
    words: Mapping[str, Any] | None = None

    def of(self, row: Row) -> Any:
        """The value in JSON."""
        value = row[self.keyword]
        if self.keyword in SWITCHES:
            return value == self.keyword
        return value if self.words is None or not isinstance(value, str) else self.words.get(value, value)

    def keyword_for(self, value: Any) -> Keyword:
        """The parameter that gives *value*. Raises JsonCommandError."""
        if self.keyword in SWITCHES and isinstance(value, bool):
            return Keyword(self.keyword if value else f"NO{self.keyword}", None)
        if self.words is not None:
            found = next((word for word, meaning in self.words.items() if meaning == value), None)
            if found is None:
                known = ", ".join(str(each) for each in self.words.values())
                raise JsonCommandError(self.place, f"{value} is not one of {known}")
            value = found
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise JsonCommandError(self.place, "a text or a whole number is expected")
        return Keyword(self.keyword, (Value(str(value), quoted=True),))


@dataclass(frozen=True, slots=True)
class Resource:
    """name: in the path, and of the list. target: of DISPLAY. always: shown without being asked for.

    status: the object of the DISPLAY that shows *of_status*; "" for none.
    """

    name: str
    target: str
    names: str
    always: tuple[Field, ...]
    attributes: tuple[Field, ...]
    status: str = ""
    of_status: tuple[Field, ...] = ()


_TYPES: Final = {"QLOCAL": "local", "QALIAS": "alias", "QMODEL": "model"}
_MESSAGES: Final = "applicationDefaults.message"

QUEUE: Final = Resource(
    "queue",
    "QUEUE",
    "QUEUE",
    (Field("name", "QUEUE"), Field("type", "TYPE", _TYPES)),
    (
        Field("general.description", "DESCR"),
        Field("general.inhibitPut", "PUT", {"ENABLED": False, "DISABLED": True}),
        Field("general.inhibitGet", "GET", {"ENABLED": False, "DISABLED": True}),
        Field("general.isTransmissionQueue", "USAGE", {"XMITQ": True, "NORMAL": False}),
        Field("alias.targetName", "TARGET"),
        Field("alias.targetType", "TARGTYPE", {"QUEUE": "queue", "TOPIC": "topic"}),
        Field(f"{_MESSAGES}Persistence", "DEFPSIST", {"YES": "persistent", "NO": "nonPersistent"}),
        Field(f"{_MESSAGES}Priority", "DEFPRTY"),
        Field(
            f"{_MESSAGES}PropertyControl",
            "PROPCTL",
            {"ALL": "all", "COMPAT": "compatible", "FORCE": "force", "NONE": "none", "V6COMPAT": "version6Compatible"},
        ),
        Field("applicationDefaults.putResponse", "DEFPRESP", _RESPONSES),
        Field("applicationDefaults.sharedInput", "DEFSOPT", {"SHARED": True, "EXCL": False}),
        Field("extended.allowSharedInput", "SHARE"),
        Field("extended.backoutRequeueQueueName", "BOQNAME"),
        Field("extended.backoutThreshold", "BOTHRESH"),
        Field("storage.maximumDepth", "MAXDEPTH"),
        Field("storage.maximumMessageLength", "MAXMSGL"),
        Field("storage.messageDeliverySequence", "MSGDLVSQ", {"PRIORITY": "priority", "FIFO": "fifo"}),
        Field("trigger.enabled", "TRIGGER"),
        Field("trigger.type", "TRIGTYPE", {"NONE": "none", "FIRST": "first", "EVERY": "every", "DEPTH": "depth"}),
        Field("trigger.depth", "TRIGDPTH"),
        Field("trigger.messagePriority", "TRIGMPRI"),
        Field("trigger.data", "TRIGDATA"),
        Field("trigger.initiationQueueName", "INITQ"),
        Field("trigger.processName", "PROCESS"),
    ),
    "QSTATUS",
    (
        Field("status.currentDepth", "CURDEPTH"),
        Field("status.openInputCount", "IPPROCS"),
        Field("status.openOutputCount", "OPPROCS"),
        Field("status.oldestMessageAge", "MSGAGE"),
    ),
)
SUBSCRIPTION: Final = Resource(
    "subscription",
    "SUB",
    "SUB",
    (Field("name", "SUB"), Field("id", "SUBID"), Field("resolvedTopicString", "TOPICSTR")),
    (
        Field("destination.name", "DEST"),
        Field("destination.qmgrName", "DESTQMGR"),
        Field("destination.correlationId", "DESTCORL"),
        Field("destination.isManaged", "DESTCLAS", {"MANAGED": True, "PROVIDED": False}),
        Field("extended.deliverOnRequest", "REQONLY", _YES),
        Field("extended.expiry", "EXPIRY", {"UNLIMITED": -1}),
        Field("extended.group", "GROUPSUB", _YES),
        Field("extended.level", "SUBLEVEL"),
        Field("extended.messagePriority", "PUBPRTY", {"ASPUB": "asPublished", "ASQDEF": "asQueue"}),
        Field(
            "extended.messagePropertyControl",
            "PSPROP",
            {"COMPAT": "compatible", "MSGPROP": "messageProperty", "NONE": "none", "RFH2": "rfh2"},
        ),
        Field("extended.networkScope", "SUBSCOPE", {"ALL": "all", "QMGR": "qmgr"}),
        Field("extended.wildcard", "WSCHEMA", {"TOPIC": "topic", "CHAR": "character"}),
        Field("extended.filterString", "SELECTOR"),
        Field("general.isDurable", "DURABLE", _YES),
        Field("general.type", "SUBTYPE", {"ADMIN": "administrative", "API": "api", "PROXY": "proxy"}),
        Field("topic.name", "TOPICOBJ"),
        Field("user.accountingToken", "PUBACCT"),
        Field("user.applicationIdentityData", "PUBAPPID"),
        Field("user.data", "USERDATA"),
        Field("user.name", "SUBUSER"),
        Field("user.override", "VARUSER", {"ANY": True, "FIXED": False}),
    ),
)
CHANNEL: Final = Resource(
    "channel",
    "CHANNEL",
    "CHANNEL",
    (
        Field("name", "CHANNEL"),
        Field(
            "type",
            "CHLTYPE",
            {"SVRCONN": "serverConnection", "CLUSRCVR": "clusterReceiver", "CLUSSDR": "clusterSender"},
        ),
    ),
    (
        Field("general.description", "DESCR"),
        Field("general.maximumMessageLength", "MAXMSGL"),
        Field("general.heartbeatInterval", "HBINT"),
        Field("general.transportType", "TRPTYPE", {"TCP": "tcp"}),
        Field("connectionManagement.maximumInstances", "MAXINST"),
        Field("connectionManagement.maximumInstancesPerClient", "MAXINSTC"),
        Field("connectionManagement.sharedConversations", "SHARECNV"),
        Field("connection.host", "CONNAME"),
        Field("cluster.name", "CLUSTER"),
        Field("receiverSecurity.channelAgentUserId", "MCAUSER"),
        Field("transportSecurity.cipherSpecification", "SSLCIPH"),
        Field("transportSecurity.certificatePeerName", "SSLPEER"),
        Field("transportSecurity.requirePartnerCertificate", "SSLCAUTH", {"REQUIRED": True, "OPTIONAL": False}),
    ),
    "CHSTATUS",
    (Field("status.state", "STATUS", {"RUNNING": "running"}), Field("status.connectionHost", "CONNAME")),
)
QMGR: Final = Resource(
    "qmgr",
    "QMGR",
    "QMNAME",
    (Field("name", "QMNAME"),),
    (
        Field("extended.description", "DESCR"),
        Field("extended.deadLetterQueueName", "DEADQ"),
        Field("extended.publishSubscribeMode", "PSMODE"),
        Field("extended.publishSubscribeParent", "PARENT"),
    ),
    "QMSTATUS",
    (Field("status.connectionCount", "CONNS"), Field("status.channelInitiatorState", "CHINIT")),
)
RESOURCES: Final = (QUEUE, SUBSCRIPTION, CHANNEL)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the query of a GET asks for. name: full or generic. type: "" for all."""

    name: str = "*"
    type: str = ""
    attributes: str = ""
    status: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str], name: str = "") -> Asked:
        """Raises JsonCommandError for a parameter that is not known, or two names."""
        known = ("name", "type", "attributes", "status")
        for key in query:
            if key not in known or (key == "name" and name):
                raise JsonCommandError(key, f"this query parameter is not known here; known are {', '.join(known)}")
        kind = query.get("type", "all")
        return cls(
            name or query.get("name", "*"),
            "" if kind == "all" else kind,
            query.get("attributes", ""),
            query.get("status", ""),
        )


def display(target: str, name: str | None = None) -> Command:
    """``DISPLAY target(name) ALL``."""
    return Command("DISPLAY", target, None if name is None else Value(name, quoted=True), (Keyword("ALL", None),))


def shown(resource: Resource, asked: Asked, rows: Sequence[Row], status: Sequence[Row] = ()) -> list[dict[str, Any]]:
    """The objects in JSON. status: rows of the DISPLAY of their status. Raises JsonCommandError."""
    attributes = list(_chosen(resource.attributes, asked.attributes, "attributes"))
    of_status = list(_chosen(resource.of_status, asked.status, "status"))
    by_name: dict[Shown, list[Row]] = {}
    for row in status:
        by_name.setdefault(row[resource.names], []).append(row)
    found = []
    for row in rows:
        made = _made((*resource.always, *attributes), row)
        if asked.type and made.get("type") != asked.type:
            continue
        if of_status:
            there = [_made(of_status, each)["status"] for each in by_name.get(row[resource.names], ())]
            if resource is CHANNEL:
                made["currentStatus"] = there
            elif there:
                made["status"] = there[0]
        found.append(made)
    return found


def _chosen(fields: Sequence[Field], asked: str, called: str) -> Iterator[Field]:
    """The fields that *asked* names: ``*``, a section, or places with commas between."""
    for word in filter(None, asked.split(",")):
        there = [field for field in fields if word == "*" or f"{field.place}.".startswith(f"{word}.")]
        if not there:
            raise JsonCommandError(called, f"{word} is not known; known are {', '.join(each.place for each in fields)}")
        yield from there


def _made(fields: Sequence[Field], row: Row) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for field in fields:
        if field.keyword not in row:
            continue
        *sections, last = field.place.split(".")
        at = made
        for section in sections:
            at = at.setdefault(section, {})
        at[last] = field.of(row)
    return made


def changed_queue(verb: str, name: str, body: object, kinds: Mapping[str, str]) -> Command:
    """DEFINE or ALTER of a queue. kinds: the type of each queue that is there, where *body* has none.

    Raises JsonCommandError.
    """
    given = dict(_places("", body))
    for key in ("name", "type"):
        if key in given and not isinstance(given[key], str):
            raise JsonCommandError(key, "a text is expected")
    kind = given.pop("type", kinds.get(name, "local"))
    target = next((word for word, meaning in _TYPES.items() if meaning == kind), None)
    if target is None:
        raise JsonCommandError("type", f"{kind} is not one of {', '.join(_TYPES.values())}")
    given.pop("name", None)
    by_place = {field.place: field for field in QUEUE.attributes}
    unknown = next((place for place in given if place not in by_place), None)
    if unknown is not None:
        raise JsonCommandError(unknown, "this attribute is not known here")
    keywords = tuple(by_place[place].keyword_for(value) for place, value in given.items())
    return Command(verb, target, Value(name, quoted=True), keywords)


def _places(above: str, body: object) -> Iterator[tuple[str, Any]]:
    """The values in *body*, each with its place."""
    if not isinstance(body, dict):
        raise JsonCommandError(above or "body", "a JSON object is expected")
    for key, value in body.items():
        place = f"{above}.{key}" if above else key
        if isinstance(value, dict):
            yield from _places(place, value)
        else:
            yield place, value


def kinds_of(rows: Sequence[Row]) -> dict[str, str]:
    """The type of each queue of DISPLAY QUEUE."""
    return {str(row["QUEUE"]): _TYPES[str(row["TYPE"])] for row in rows}


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
